//! The best of many candidates, in memory for so many and no more.
//!
//! Order: folders before files, then more points, then the name, then the key. So the same names and query give the
//! same hits, and a page that begins later goes on where the one before ended. Never here: what gives points.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// A name that matches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Ranked {
    pub(super) key: String,
    pub(super) points: u16,
}

/// The best so far.
pub(super) struct Best {
    capacity: usize,
    /// The worst of them on top.
    heap: BinaryHeap<Ranked>,
    /// How many were offered.
    count: usize,
}

impl Best {
    pub(super) fn new(capacity: usize) -> Self {
        Self { capacity, heap: BinaryHeap::new(), count: 0 }
    }

    pub(super) fn offer(&mut self, key: &str, points: u16) {
        self.count += 1;
        if self.heap.len() >= self.capacity {
            match self.heap.peek() {
                Some(worst) if points < worst.points && worst.is_like(key) => return,
                Some(worst) if place(key, points) < worst.place() => drop(self.heap.pop()),
                _ => return,
            }
        }
        self.heap.push(Ranked { key: key.to_owned(), points });
    }

    /// Takes over what another has: the two were offered different names.
    pub(super) fn add(&mut self, other: Self) {
        let count = self.count + other.count;
        other.heap.into_iter().for_each(|ranked| self.offer(&ranked.key, ranked.points));
        self.count = count;
    }

    /// Files with fewer points than these are only counted.
    pub(super) fn points_min(&self) -> u16 {
        match self.heap.peek() {
            Some(worst) if self.heap.len() >= self.capacity && !worst.key.ends_with('/') => {
                worst.points
            }
            _ if self.capacity == 0 => u16::MAX,
            _ => 0,
        }
    }

    /// How many were offered, and the best of them, the very best first.
    pub(super) fn into_sorted(self) -> (usize, Vec<Ranked>) {
        (self.count, self.heap.into_sorted_vec())
    }
}

type Order<'a> = (bool, Reverse<u16>, &'a str, &'a str);

fn place(key: &str, points: u16) -> Order<'_> {
    let folder = key.strip_suffix('/');
    let name = folder.unwrap_or(key).rsplit('/').next().unwrap_or_default();
    (folder.is_none(), Reverse(points), name, key)
}

impl Ranked {
    /// Whether both are folders, or both are files.
    fn is_like(&self, key: &str) -> bool {
        self.key.ends_with('/') == key.ends_with('/')
    }

    fn place(&self) -> Order<'_> {
        place(&self.key, self.points)
    }
}

impl Ord for Ranked {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.place().cmp(&other.place())
    }
}

impl PartialOrd for Ranked {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_are_kept_in_order_and_all_are_counted() {
        let offered = [("b", 9), ("x/a", 9), ("a", 9), ("z", 10), ("f/", 1), ("a/b", 9), ("c", 8)];
        let order = ["f/", "z", "a", "x/a", "a/b", "b", "c"];
        for capacity in 0..9 {
            let mut best = Best::new(capacity);
            offered.iter().for_each(|(key, points)| best.offer(key, *points));
            let (count, found) = best.into_sorted();
            let keys: Vec<&str> = found.iter().map(|it| it.key.as_str()).collect();
            assert_eq!((count, keys.as_slice()), (7, &order[..capacity.min(7)]));
            for half in 0..7 {
                let (mut one, mut other) = (Best::new(capacity), Best::new(capacity));
                offered[..half].iter().for_each(|(key, points)| one.offer(key, *points));
                offered[half..].iter().for_each(|(key, points)| other.offer(key, *points));
                one.add(other);
                assert_eq!(one.into_sorted(), (count, found.clone()));
            }
        }
    }
}
