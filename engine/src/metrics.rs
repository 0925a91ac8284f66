//! Metrics of an open store: counters and histograms.
//!
//! Guarantees: recording only updates a few atomic numbers, without locks or allocation; a snapshot includes
//! everything recorded before it began. Metrics do not survive a restart.
//! Non-goals: where each metric is recorded.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::clock::Clock;

/// Atomic counter or gauge.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    /// Adds to the value.
    pub fn add(&self, more: u64) {
        self.0.fetch_add(more, Ordering::Relaxed);
    }

    /// Sets the value.
    pub fn set(&self, value: u64) {
        self.0.store(value, Ordering::Relaxed);
    }

    /// Returns the value.
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Histogram: number of recorded values per range.
#[derive(Debug)]
pub struct Histogram {
    bounds: &'static [u64],
    /// Counts, one per bound, and one for values above the last.
    counts: Box<[Counter]>,
    sum: Counter,
}

/// Snapshot of a [`Histogram`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HistogramSnapshot {
    /// Inclusive upper bounds of the ranges, ascending. The last range has no bound.
    pub bounds: &'static [u64],
    /// Number of values in each range; one more element than `bounds`.
    pub counts: Vec<u64>,
    /// Sum of all values.
    pub sum: u64,
}

impl Histogram {
    /// Creates an empty histogram with these inclusive upper bounds, which must ascend.
    pub fn new(bounds: &'static [u64]) -> Self {
        debug_assert!(bounds.is_sorted());
        let counts = (0..=bounds.len()).map(|_| Counter::default()).collect();
        Self { bounds, counts, sum: Counter::default() }
    }

    /// Records a value.
    pub fn observe(&self, value: u64) {
        let range = self.bounds.partition_point(|bound| *bound < value);
        if let Some(count) = self.counts.get(range) {
            count.add(1);
        }
        self.sum.add(value);
    }

    /// Returns a snapshot.
    pub fn read(&self) -> HistogramSnapshot {
        let counts = self.counts.iter().map(Counter::get).collect();
        HistogramSnapshot { bounds: self.bounds, counts, sum: self.sum.get() }
    }
}

impl HistogramSnapshot {
    /// Returns the number of values.
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// Returns the sum with another snapshot, which must have the same bounds.
    #[must_use]
    pub fn merge(mut self, other: &Self) -> Self {
        for (count, more) in self.counts.iter_mut().zip(&other.counts) {
            *count += more;
        }
        self.sum += other.sum;
        self
    }
}

/// Metrics of an open store.
pub(crate) struct Metrics {
    clock: Arc<dyn Clock>,
    pub(crate) syncs_us: Histogram,
    pub(crate) group_records: Histogram,
    pub(crate) group_bytes: Histogram,
    pub(crate) checkpoints_us: Histogram,
    pub(crate) checkpoints_failed: Counter,
    pub(crate) compactions: Counter,
    pub(crate) compacted_bytes: Counter,
    pub(crate) reclaimed_bytes: Counter,
    pub(crate) scrubbed_bytes: Counter,
    pub(crate) scrubbed_segments: Counter,
    /// Zero if unknown.
    pub(crate) scrub_oldest_ms: Counter,
    pub(crate) replayed_records: Counter,
    pub(crate) damage_at_opening: Counter,
}

/// Snapshot of the metrics since the store was opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreMetrics {
    /// Duration of successful log syncs, one per group, in microseconds.
    pub sync_duration_us: HistogramSnapshot,
    /// Records per nonempty group.
    pub group_records: HistogramSnapshot,
    /// Bytes per nonempty group.
    pub group_bytes: HistogramSnapshot,
    /// Duration of successful checkpoints in microseconds.
    pub checkpoint_duration_us: HistogramSnapshot,
    /// Failed checkpoints, including those without disk space. A failed checkpoint is retried unless the store is
    /// read-only or the index file cannot be used.
    pub checkpoints_failed: u64,
    /// Compactions that executed at least one step.
    pub compactions: u64,
    /// Record bytes copied by compactions.
    pub compacted_bytes: u64,
    /// Disk bytes reclaimed by compactions.
    pub reclaimed_bytes: u64,
    /// Bytes read by scrubs.
    pub scrubbed_bytes: u64,
    /// Segments fully read by scrubs.
    pub scrubbed_segments: u64,
    /// Time at which the least recently verified segment was verified, or written if it never was, in milliseconds
    /// since 1970. `None` without a background scrub, or without segments.
    pub scrub_oldest_ms: Option<u64>,
    /// Records replayed when the store was opened, because it was not closed before or its index was lost.
    pub replayed_records: u64,
    /// Corrupt locations found when the store was opened.
    pub open_damage_count: u64,
}

impl Metrics {
    pub(crate) fn new(clock: Arc<dyn Clock>) -> Self {
        Self {
            clock,
            syncs_us: Histogram::new(SYNCS_US),
            group_records: Histogram::new(GROUP_RECORDS),
            group_bytes: Histogram::new(GROUP_BYTES),
            checkpoints_us: Histogram::new(CHECKPOINTS_US),
            checkpoints_failed: Counter::default(),
            compactions: Counter::default(),
            compacted_bytes: Counter::default(),
            reclaimed_bytes: Counter::default(),
            scrubbed_bytes: Counter::default(),
            scrubbed_segments: Counter::default(),
            scrub_oldest_ms: Counter::default(),
            replayed_records: Counter::default(),
            damage_at_opening: Counter::default(),
        }
    }

    /// Runs a function and records its duration in `histogram`, unless it fails.
    pub(crate) fn timed<T, E>(
        &self,
        histogram: &Histogram,
        work: impl FnOnce() -> Result<T, E>,
    ) -> Result<T, E> {
        let began_us = self.clock.monotonic_us();
        let done = work()?;
        histogram.observe(self.clock.monotonic_us().saturating_sub(began_us));
        Ok(done)
    }

    pub(crate) fn read(&self) -> StoreMetrics {
        StoreMetrics {
            sync_duration_us: self.syncs_us.read(),
            group_records: self.group_records.read(),
            group_bytes: self.group_bytes.read(),
            checkpoint_duration_us: self.checkpoints_us.read(),
            checkpoints_failed: self.checkpoints_failed.get(),
            compactions: self.compactions.get(),
            compacted_bytes: self.compacted_bytes.get(),
            reclaimed_bytes: self.reclaimed_bytes.get(),
            scrubbed_bytes: self.scrubbed_bytes.get(),
            scrubbed_segments: self.scrubbed_segments.get(),
            scrub_oldest_ms: Some(self.scrub_oldest_ms.get()).filter(|ms| *ms > 0),
            replayed_records: self.replayed_records.get(),
            open_damage_count: self.damage_at_opening.get(),
        }
    }
}

const SYNCS_US: &[u64] = &[
    50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000,
    1_000_000, 5_000_000,
];
const GROUP_RECORDS: &[u64] = &[1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1_024];
const GROUP_BYTES: &[u64] =
    &[1 << 10, 1 << 12, 1 << 14, 1 << 16, 1 << 18, 1 << 20, 1 << 22, 1 << 24];
const CHECKPOINTS_US: &[u64] =
    &[1_000, 5_000, 10_000, 50_000, 100_000, 500_000, 1_000_000, 5_000_000, 10_000_000, 60_000_000];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::SimClock;

    #[test]
    fn histogram_bounds_are_inclusive() {
        let histogram = Histogram::new(&[10, 20]);
        for value in [0, 10, 11, 20, 21, 1_000] {
            histogram.observe(value);
        }
        let reading = histogram.read();
        assert_eq!((&*reading.counts, reading.sum, reading.count()), (&[2, 2, 2][..], 1_062, 6));
        let twice = reading.clone().merge(&reading);
        assert_eq!((&*twice.counts, twice.sum), (&[4, 4, 4][..], 2_124));
    }

    #[test]
    fn concurrent_observations_are_all_counted() {
        let histogram = Histogram::new(&[1, 2, 4]);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| (0..1_000).for_each(|at| histogram.observe(at % 5)));
            }
        });
        let reading = histogram.read();
        assert_eq!((&*reading.counts, reading.sum), (&[1_600, 800, 1_600, 0][..], 8_000));
    }

    #[test]
    fn failed_operations_record_no_duration() {
        let clock = Arc::new(SimClock::at(0));
        let metrics = Metrics::new(clock.clone());
        let work = |outcome: Result<(), ()>| {
            metrics.timed(&metrics.syncs_us, || {
                clock.advance(3);
                outcome
            })
        };
        assert_eq!((work(Ok(())), work(Err(()))), (Ok(()), Err(())));
        let read = metrics.read();
        assert_eq!((read.sync_duration_us.count(), read.sync_duration_us.sum), (1, 3_000));
        assert_eq!(read.scrub_oldest_ms, None);
    }
}
