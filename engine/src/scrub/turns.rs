//! Scrub schedule: which segments are due, and in which order.
//!
//! A segment that was never verified counts as verified at its creation. New segments therefore never precede
//! waiting ones, and every segment is eventually verified, however fast others are added.
//!
//! Non-goals: disk and clock access.

use std::collections::VecDeque;

use crate::format::{SegmentClass, SegmentId};

/// Scheduling data of a segment. Times are milliseconds since 1970.
#[derive(Clone, Copy, Debug)]
pub(super) struct Turn {
    pub(super) id: SegmentId,
    pub(super) class: SegmentClass,
    /// Time of the last verification.
    pub(super) verified_ms: Option<u64>,
    /// Creation time; only used while the segment was never verified.
    pub(super) made_ms: u64,
}

/// Returns the due segments, the longest waiting first: immediately if never verified, otherwise after the period.
pub(super) fn in_turn(
    all: impl IntoIterator<Item = Turn>,
    period_ms: u64,
    now_ms: u64,
) -> VecDeque<(SegmentId, SegmentClass)> {
    let is_due = |turn: &Turn| {
        turn.verified_ms.is_none_or(|verified_ms| verified_ms.saturating_add(period_ms) <= now_ms)
    };
    let mut due: Vec<Turn> = all.into_iter().filter(is_due).collect();
    due.sort_by_key(|turn| (turn.verified_ms.unwrap_or(turn.made_ms), turn.id));
    due.into_iter().map(|turn| (turn.id, turn.class)).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn turn(id: u64, made_ms: u64, verified_ms: Option<u64>) -> Turn {
        let id = SegmentId::new(id).unwrap();
        Turn { id, class: SegmentClass::Log, verified_ms, made_ms }
    }

    fn ids(due: VecDeque<(SegmentId, SegmentClass)>) -> Vec<u64> {
        due.into_iter().map(|(id, _)| id.get()).collect()
    }

    #[test]
    fn what_waits_longest_is_first_and_what_was_never_verified_waits_since_it_was_made() {
        let all = [
            turn(1, 10, Some(500)),
            turn(2, 20, None),
            turn(3, 30, Some(40)),
            turn(4, 600, None),
            turn(5, 35, None),
            turn(6, 50, Some(901)),
        ];
        assert_eq!(ids(in_turn(all, 100, 1_000)), [2, 5, 3, 1, 4]);
        assert_eq!(ids(in_turn(all, 600, 1_000)), [2, 5, 3, 4], "1 and 6 are not due again");
    }

    #[test]
    fn every_turn_comes_while_more_is_added_than_is_read() {
        let mut all: BTreeMap<u64, Turn> = BTreeMap::new();
        let mut counts: BTreeMap<u64, u64> = BTreeMap::new();
        for now_ms in 1..4_000 {
            for id in [3 * now_ms, 3 * now_ms + 1, 3 * now_ms + 2] {
                all.insert(id, turn(id, now_ms, None));
            }
            let first = ids(in_turn(all.values().copied(), 50, now_ms))[0];
            all.get_mut(&first).unwrap().verified_ms = Some(now_ms);
            *counts.entry(first).or_default() += 1;
        }
        let of_the_first: Vec<_> = counts.iter().take(100).collect();
        assert!(of_the_first.iter().all(|(_, count)| **count >= 2), "{of_the_first:?}");
        let ids: Vec<u64> = counts.keys().copied().collect();
        assert!(ids.windows(2).all(|pair| pair[0] + 1 == pair[1]), "none was passed over");
    }
}
