//! Commit latency statistics (99th percentile) for background throttling.
//!
//! Guarantees: one short lock per group.
//! Non-goals: throttling.

use std::sync::{Mutex, PoisonError};

/// Latencies of the last groups.
#[derive(Default)]
pub(crate) struct CommitLatency(Mutex<Recent>);

#[derive(Default)]
struct Recent {
    us: Vec<u64>,
    next: usize,
}

impl CommitLatency {
    /// Records the latency of a group in microseconds, from its first batch to the acknowledgement.
    pub(crate) fn observe(&self, us: u64) {
        let mut recent = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let at = recent.next % RECENT_GROUPS;
        if at < recent.us.len() {
            recent.us[at] = us;
        } else {
            recent.us.push(us);
        }
        recent.next = at + 1;
    }

    /// Returns the 99th percentile of recent group latencies; `None` until there are enough samples.
    pub(crate) fn percentile_99_us(&self) -> Option<u64> {
        let mut us = self.0.lock().unwrap_or_else(PoisonError::into_inner).us.clone();
        if us.len() < RECENT_GROUPS_MIN {
            return None;
        }
        us.sort_unstable();
        us.get(us.len() * 99 / 100).copied()
    }
}

/// Number of recent groups sampled.
const RECENT_GROUPS: usize = 256;
/// Minimum number of samples for a percentile.
const RECENT_GROUPS_MIN: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commit_latency_remembers_the_slowest_recent_groups() {
        let load = CommitLatency::default();
        assert_eq!(load.percentile_99_us(), None);
        for us in 1..=1_000 {
            load.observe(us);
        }
        assert!(load.percentile_99_us().is_some_and(|us| us >= 990));
        for _ in 0..RECENT_GROUPS {
            load.observe(5);
        }
        assert_eq!(load.percentile_99_us(), Some(5));
    }
}
