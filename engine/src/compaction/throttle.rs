//! Compaction rate limit that backs off when commits slow down.
//!
//! The commit latency is measured before a compaction begins. While the latency is more than twice as high, and above a
//! minimum, the rate is halved, down to a floor; otherwise it doubles again, up to its initial value.
//!
//! Guarantees: without waiting commits, the only cost is the rate limit.
//! Non-goals: the choice of what is copied.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::clock::Clock;
use crate::commit::CommitLatency;

/// Rate limiter of copied bytes.
pub(crate) struct Throttle {
    clock: Arc<dyn Clock>,
    load: Arc<CommitLatency>,
    /// Waits for this duration, or until cancelled.
    wait: Box<dyn Fn(Duration) + Send + Sync>,
    bytes_per_second_max: Option<u64>,
    /// 99th percentile of the commit latency before the compaction, in microseconds.
    quiet_us: u64,
    state: Mutex<State>,
}

struct State {
    bytes_per_second: u64,
    adjusted_ms: u64,
    /// Bytes copied since the last pause.
    owed_bytes: u64,
}

impl Throttle {
    /// Creates a limiter of this many bytes per second, or without a limit.
    pub(crate) fn new(
        clock: Arc<dyn Clock>,
        load: Arc<CommitLatency>,
        bytes_per_second_max: Option<u64>,
        wait: impl Fn(Duration) + Send + Sync + 'static,
    ) -> Self {
        let now = clock.monotonic_ms();
        let bytes_per_second = bytes_per_second_max.unwrap_or(u64::MAX);
        Self {
            quiet_us: load.percentile_99_us().unwrap_or(0).max(SLOW_COMMIT_US / 2),
            wait: Box::new(wait),
            state: Mutex::new(State { bytes_per_second, adjusted_ms: now, owed_bytes: 0 }),
            bytes_per_second_max,
            clock,
            load,
        }
    }

    /// Charges copied bytes to the limit and waits if necessary.
    pub(crate) fn consume(&self, bytes: u64) {
        let Some(most) = self.bytes_per_second_max else { return };
        let pause = {
            let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            self.adjust_rate(&mut state, most);
            state.owed_bytes += bytes;
            if state.owed_bytes < CHUNK_BYTES.min(state.bytes_per_second / 8) {
                return;
            }
            let owed = std::mem::take(&mut state.owed_bytes);
            Duration::from_micros(owed.saturating_mul(1_000_000) / state.bytes_per_second.max(1))
        };
        (self.wait)(pause);
    }

    fn adjust_rate(&self, state: &mut State, most: u64) {
        let now = self.clock.monotonic_ms();
        if now.saturating_sub(state.adjusted_ms) < ADJUST_INTERVAL_MS {
            return;
        }
        state.adjusted_ms = now;
        let suffers = self.load.percentile_99_us().is_some_and(|us| us > 2 * self.quiet_us);
        state.bytes_per_second = if suffers {
            (state.bytes_per_second / 2).max(BYTES_PER_SECOND_MIN.min(most))
        } else {
            state.bytes_per_second.saturating_mul(2).min(most)
        };
    }
}

/// Commit latency below which commits are not considered slow, in microseconds.
const SLOW_COMMIT_US: u64 = 4_000;
/// Interval of rate adjustments, in milliseconds.
const ADJUST_INTERVAL_MS: u64 = 250;
/// Minimum rate, so that every compaction ends.
const BYTES_PER_SECOND_MIN: u64 = 1 << 20;
/// Bytes copied between two pauses.
const CHUNK_BYTES: u64 = 1 << 20;

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;
    use crate::clock::SimClock;

    /// Copies for some seconds of simulated time, with a commit of `commit_us` after each chunk; returns the bytes
    /// copied.
    fn copied_in(
        seconds: u64,
        load: &Arc<CommitLatency>,
        clock: &Arc<SimClock>,
        commit_us: u64,
    ) -> u64 {
        let waited = Arc::new(AtomicU64::new(0));
        let (time, counter) = (Arc::clone(clock), Arc::clone(&waited));
        let wait = move |pause: Duration| {
            let ms = u64::try_from(pause.as_millis()).unwrap();
            counter.fetch_add(ms, Ordering::SeqCst);
            time.advance(ms);
        };
        let throttle =
            Throttle::new(Arc::clone(clock) as _, Arc::clone(load), Some(64 << 20), wait);
        let mut copied = 0;
        while waited.load(Ordering::SeqCst) < seconds * 1_000 {
            load.observe(commit_us);
            throttle.consume(1 << 20);
            copied += 1 << 20;
        }
        copied
    }

    #[test]
    fn throttle_keeps_rate_while_commits_are_fast() {
        let (load, clock) = (Arc::new(CommitLatency::default()), Arc::new(SimClock::at(0)));
        let copied = copied_in(10, &load, &clock, 100);
        assert!((600 << 20..=680 << 20).contains(&copied), "{copied}");
    }

    #[test]
    fn throttle_halves_rate_on_slow_commits_and_recovers() {
        let (load, clock) = (Arc::new(CommitLatency::default()), Arc::new(SimClock::at(0)));
        let slow = copied_in(20, &load, &clock, 50_000);
        assert!(slow < 200 << 20, "{slow}");
        let again = copied_in(10, &load, &clock, 100);
        assert!(again > 300 << 20, "{again}");
    }
}
