//! Top hits of a search, in bounded memory.
//!
//! Order: folders before files, then higher score, shorter name, name, key. The order is total, so the same names
//! and query give the same hits, and pages do not overlap.
//!
//! Non-goals: scoring.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use memchr::memrchr;

/// Matching name with its score.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RankedName {
    pub(super) key: String,
    pub(super) points: u16,
}

/// Worst of the top hits: a name that compares less is not one of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct WorstHit {
    pub(super) is_folder: bool,
    pub(super) points: u16,
    /// Number of characters of its name.
    pub(super) name_chars: Reverse<usize>,
}

/// Bounded collection of the top hits.
pub(super) struct TopHits {
    capacity: usize,
    /// Max-heap with the worst hit on top.
    heap: BinaryHeap<RankedName>,
    /// Number of hits offered.
    count: usize,
}

impl TopHits {
    pub(super) fn new(capacity: usize) -> Self {
        Self { capacity, heap: BinaryHeap::new(), count: 0 }
    }

    pub(super) fn offer(&mut self, key: &str, points: u16) {
        self.count += 1;
        if self.heap.len() >= self.capacity {
            match self.heap.peek() {
                Some(worst) if order((key, points), worst.place()).is_lt() => drop(self.heap.pop()),
                _ => return,
            }
        }
        self.heap.push(RankedName { key: key.to_owned(), points });
    }

    /// Returns the worst of the top hits; the default while any hit is one.
    pub(super) fn worst(&self) -> WorstHit {
        if self.capacity == 0 {
            return WorstHit { is_folder: true, points: u16::MAX, name_chars: Reverse(0) };
        }
        let worst = self.heap.peek().filter(|_| self.heap.len() >= self.capacity);
        worst.map_or_else(WorstHit::default, |RankedName { key, points }| WorstHit {
            is_folder: is_folder(key),
            points: *points,
            name_chars: Reverse(name(key).chars().count()),
        })
    }

    /// Returns the number of hits offered.
    pub(super) fn count(&self) -> usize {
        self.count
    }

    /// Merges the hits of another collection of different names.
    pub(super) fn add(&mut self, other: Self) {
        let count = self.count + other.count;
        other.heap.into_iter().for_each(|ranked| self.offer(&ranked.key, ranked.points));
        self.count = count;
    }

    /// Returns the minimum score of folders, or else files; hits below it are only counted.
    pub(super) fn score_min(&self, of_folders: bool) -> u16 {
        match self.heap.peek() {
            _ if self.heap.len() < self.capacity => 0,
            Some(worst) => match (is_folder(&worst.key), of_folders) {
                (true, true) | (false, false) => worst.points,
                (false, true) => 0,
                (true, false) => u16::MAX,
            },
            None => u16::MAX,
        }
    }

    /// Returns the number of hits offered, and the top hits, best first.
    pub(super) fn into_sorted(self) -> (usize, Vec<RankedName>) {
        (self.count, self.heap.into_sorted_vec())
    }
}

/// Compares two keys with their scores; the cheapest and most distinctive criteria come first.
fn order((key, points): (&str, u16), (other, other_points): (&str, u16)) -> Ordering {
    let chars = |key| name(key).chars().count();
    (is_folder(other).cmp(&is_folder(key)))
        .then_with(|| other_points.cmp(&points))
        .then_with(|| chars(key).cmp(&chars(other)))
        .then_with(|| name(key).cmp(name(other)))
        .then_with(|| key.cmp(other))
}

fn is_folder(key: &str) -> bool {
    key.ends_with('/')
}

fn name(key: &str) -> &str {
    let key = key.strip_suffix('/').unwrap_or(key);
    let begin = memrchr(b'/', key.as_bytes()).map_or(0, |slash| slash + 1);
    key.get(begin..).unwrap_or_default()
}

impl RankedName {
    fn place(&self) -> (&str, u16) {
        (&self.key, self.points)
    }
}

impl Ord for RankedName {
    fn cmp(&self, other: &Self) -> Ordering {
        order(self.place(), other.place())
    }
}

impl PartialOrd for RankedName {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn top_hits_are_sorted_and_total_is_exact() {
        let offered = [
            ("b", 9),
            ("x/a", 9),
            ("a", 9),
            ("aa", 9),
            ("zz", 10),
            ("f/", 1),
            ("a/b", 9),
            ("c", 8),
            ("é", 9),
        ];
        let order = ["f/", "zz", "a", "x/a", "a/b", "b", "é", "aa", "c"];
        let all = offered.len();
        for capacity in 0..all + 2 {
            let mut best = TopHits::new(capacity);
            offered.iter().for_each(|(key, points)| best.offer(key, *points));
            let (count, found) = best.into_sorted();
            let keys: Vec<&str> = found.iter().map(|it| it.key.as_str()).collect();
            assert_eq!((count, keys.as_slice()), (all, &order[..capacity.min(all)]));
            for half in 0..all {
                let (mut one, mut other) = (TopHits::new(capacity), TopHits::new(capacity));
                offered[..half].iter().for_each(|(key, points)| one.offer(key, *points));
                offered[half..].iter().for_each(|(key, points)| other.offer(key, *points));
                one.add(other);
                assert_eq!(one.into_sorted(), (count, found.clone()));
            }
        }
    }
}
