//! Bounded map that evicts entries without recent use.
//!
//! Two generations of half the size: an entry found in the old one moves to the young one, and when the young one is
//! full the old one is dropped. Non-goals: the content.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Mutex, PoisonError};

/// Bounded map; the latest entries are always present.
pub(super) struct GenerationCache<K, V> {
    generations: Mutex<Generations<K, V>>,
    /// Entries per generation.
    size: usize,
}

struct Generations<K, V> {
    young: HashMap<K, V>,
    old: HashMap<K, V>,
}

impl<K: Eq + Hash + Clone, V: Clone> GenerationCache<K, V> {
    /// Creates a map for a maximum of entries, at least two.
    pub(super) fn new(entries_max: usize) -> Self {
        let generations = Generations { young: HashMap::new(), old: HashMap::new() };
        Self { generations: Mutex::new(generations), size: (entries_max / 2).max(1) }
    }

    pub(super) fn get(&self, key: &K) -> Option<V> {
        let mut generations = self.generations.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(value) = generations.young.get(key) {
            return Some(value.clone());
        }
        let value = generations.old.remove(key)?;
        generations.put(self.size, key.clone(), value.clone());
        Some(value)
    }

    pub(super) fn put(&self, key: K, value: V) {
        let mut generations = self.generations.lock().unwrap_or_else(PoisonError::into_inner);
        generations.old.remove(&key);
        generations.put(self.size, key, value);
    }
}

impl<K: Eq + Hash, V> Generations<K, V> {
    fn put(&mut self, size: usize, key: K, value: V) {
        if self.young.len() >= size && !self.young.contains_key(&key) {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(key, value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lru_keeps_recently_used_entries() {
        let map = GenerationCache::new(10);
        map.put(0, "asked for");
        for key in 1..1_000 {
            map.put(key, "not asked for");
            assert_eq!(map.get(&0), Some("asked for"), "after {key}");
        }
        let known = (1..1_000).filter(|key| map.get(key).is_some()).count();
        assert!((1..10).contains(&known), "{known}");
        map.put(0, "new");
        assert_eq!(map.get(&0), Some("new"));
    }
}
