//! Cached store statistics. Quick counts are taken for each request; slow ones are cached, so that counting takes a
//! bounded share of the time.
//!
//! Guarantees: at most one count runs at a time, and takes a bounded share of the time, regardless of the requests.
//! Non-goals: counting, which the engine does.

use std::sync::{Arc, Mutex, PoisonError};

use engine::Store;
use engine::clock::Clock;
use engine::stats::StoreStats;

use crate::limits::{METRICS_CPU_FRACTION, METRICS_STATS_FAST};

/// Cache of the last count.
#[derive(Default)]
pub struct StoreStatsCache(Mutex<Option<CachedStats>>);

struct CachedStats {
    stats: Arc<StoreStats>,
    counted_us: u64,
    took_us: u64,
}

impl StoreStatsCache {
    /// Returns the statistics. Blocks on the disk, or on a concurrent count.
    pub fn get(&self, store: &Store, clock: &dyn Clock) -> engine::Result<Arc<StoreStats>> {
        self.get_or_count(clock, || store.stats())
    }

    fn get_or_count(
        &self,
        clock: &dyn Clock,
        count: impl FnOnce() -> engine::Result<StoreStats>,
    ) -> engine::Result<Arc<StoreStats>> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let began_us = clock.monotonic_us();
        if let Some(last) = kept.as_ref().filter(|last| last.is_fresh_at(began_us)) {
            return Ok(last.stats.clone());
        }
        let stats = Arc::new(count()?);
        let counted_us = clock.monotonic_us();
        let took_us = counted_us.saturating_sub(began_us);
        *kept = Some(CachedStats { stats: stats.clone(), counted_us, took_us });
        Ok(stats)
    }
}

impl CachedStats {
    fn is_fresh_at(&self, now_us: u64) -> bool {
        let is_quick = u128::from(self.took_us) < METRICS_STATS_FAST.as_micros();
        let rest_us = self.took_us.saturating_mul(u64::from(METRICS_CPU_FRACTION));
        !is_quick && now_us.saturating_sub(self.counted_us) < rest_us
    }
}

#[cfg(test)]
mod tests {
    use engine::clock::SimClock;

    use super::*;

    /// Returns how many of some counts were made that are requested a second apart and take so long.
    fn made(asked: u64, took_ms: u64) -> u64 {
        let (kept, clock) = (StoreStatsCache::default(), SimClock::at(0));
        let mut made = 0;
        for _ in 0..asked {
            let count = || {
                made += 1;
                clock.advance(took_ms);
                Ok(StoreStats { objects: made, ..StoreStats::default() })
            };
            let stats = kept.get_or_count(&clock, count).unwrap();
            assert_eq!(stats.objects, made);
            clock.advance(1_000);
        }
        made
    }

    #[test]
    fn fast_stats_are_not_cached() {
        assert_eq!(made(100, 10), 100);
        // 200 ms, and then 4 s until the next.
        assert_eq!(made(100, 200), 25);
    }

    #[test]
    fn failed_stats_are_not_cached() {
        let (kept, clock) = (StoreStatsCache::default(), SimClock::at(0));
        assert!(kept.get_or_count(&clock, || Err(engine::Error::Closed)).is_err());
        assert!(kept.get_or_count(&clock, || Ok(StoreStats::default())).is_ok());
    }
}
