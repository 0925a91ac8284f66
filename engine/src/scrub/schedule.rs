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
pub(super) struct DueSegment {
    pub(super) id: SegmentId,
    pub(super) class: SegmentClass,
    /// Time of the last verification.
    pub(super) verified_ms: Option<u64>,
    /// Creation time; only used while the segment was never verified.
    pub(super) made_ms: u64,
}

/// Returns the due segments, the longest waiting first: immediately if never verified, otherwise after the period.
pub(super) fn by_due_time(
    all: impl IntoIterator<Item = DueSegment>,
    period_ms: u64,
    now_ms: u64,
) -> VecDeque<(SegmentId, SegmentClass)> {
    let is_due = |turn: &DueSegment| {
        turn.verified_ms.is_none_or(|verified_ms| verified_ms.saturating_add(period_ms) <= now_ms)
    };
    let mut due: Vec<DueSegment> = all.into_iter().filter(is_due).collect();
    due.sort_by_key(|turn| (turn.verified_ms.unwrap_or(turn.made_ms), turn.id));
    due.into_iter().map(|turn| (turn.id, turn.class)).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn due_segment(id: u64, made_ms: u64, verified_ms: Option<u64>) -> DueSegment {
        let id = SegmentId::new(id).unwrap();
        DueSegment { id, class: SegmentClass::Log, verified_ms, made_ms }
    }

    fn ids(due: VecDeque<(SegmentId, SegmentClass)>) -> Vec<u64> {
        due.into_iter().map(|(id, _)| id.get()).collect()
    }

    #[test]
    fn scrub_order_is_oldest_verification_or_creation() {
        let all = [
            due_segment(1, 10, Some(500)),
            due_segment(2, 20, None),
            due_segment(3, 30, Some(40)),
            due_segment(4, 600, None),
            due_segment(5, 35, None),
            due_segment(6, 50, Some(901)),
        ];
        assert_eq!(ids(by_due_time(all, 100, 1_000)), [2, 5, 3, 1, 4]);
        assert_eq!(ids(by_due_time(all, 600, 1_000)), [2, 5, 3, 4], "1 and 6 are not due again");
    }

    #[test]
    fn scrub_schedule_does_not_starve_old_segments() {
        let mut all: BTreeMap<u64, DueSegment> = BTreeMap::new();
        let mut counts: BTreeMap<u64, u64> = BTreeMap::new();
        for now_ms in 1..4_000 {
            for id in [3 * now_ms, 3 * now_ms + 1, 3 * now_ms + 2] {
                all.insert(id, due_segment(id, now_ms, None));
            }
            let first = ids(by_due_time(all.values().copied(), 50, now_ms))[0];
            all.get_mut(&first).unwrap().verified_ms = Some(now_ms);
            *counts.entry(first).or_default() += 1;
        }
        let of_the_first: Vec<_> = counts.iter().take(100).collect();
        assert!(of_the_first.iter().all(|(_, count)| **count >= 2), "{of_the_first:?}");
        let ids: Vec<u64> = counts.keys().copied().collect();
        assert!(ids.windows(2).all(|pair| pair[0] + 1 == pair[1]), "none was skipped");
    }
}
