//! Usage counters of a bucket: requests, bytes, image processing.
//!
//! Counting adds to a few atomics, and compares the current minute with the last one. The first count of a minute moves
//! the sums into a ring of minutes, and into hours that wait to be persisted. Guarantees: counting takes no lock except
//! once a minute, and allocates nothing; counts are moved once, neither lost nor doubled by concurrent counting; memory
//! is bounded. Non-goals: persistence.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use http::StatusCode;

use crate::limits::{USAGE_HOURS_RETENTION_DAYS, USAGE_MINUTES_KEPT};

pub const MINUTE_MS: u64 = 60_000;
pub const HOUR_MS: u64 = 60 * MINUTE_MS;
/// Maximum hours that wait to be persisted while writes fail; the oldest are dropped.
const UNWRITTEN_HOURS_MAX: usize = 24 * USAGE_HOURS_RETENTION_DAYS as usize;

/// Counts of a period.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UsageCounts {
    /// Requests that were answered.
    pub requests: u64,
    /// Responses with status 5xx.
    pub errors: u64,
    /// Responses with status 4xx.
    pub refusals: u64,
    /// Bytes of response bodies.
    pub bytes_out: u64,
    /// Bytes of request bodies.
    pub bytes_in: u64,
    /// Images that were processed.
    pub images: u64,
    /// Time of image processing in microseconds.
    pub image_us: u64,
}

/// Usage counters of a bucket, or of all requests outside any bucket.
#[derive(Debug, Default)]
pub struct BucketCounters {
    requests: AtomicU64,
    errors: AtomicU64,
    refusals: AtomicU64,
    bytes_out: AtomicU64,
    bytes_in: AtomicU64,
    images: AtomicU64,
    image_us: AtomicU64,
    /// Minute of the current counts; zero before the first count.
    minute: AtomicU64,
    rollup: Mutex<Rollup>,
}

/// Counts that were assigned to their period.
#[derive(Debug, Default)]
struct Rollup {
    minutes: BTreeMap<u64, UsageCounts>,
    /// Counts by hour, since the last write.
    unwritten: BTreeMap<u64, UsageCounts>,
}

impl BucketCounters {
    /// Counts a response.
    pub fn count_response(&self, status: StatusCode, now_ms: u64) {
        self.advance_to(now_ms);
        self.requests.fetch_add(1, Ordering::Relaxed);
        if status.is_client_error() {
            self.refusals.fetch_add(1, Ordering::Relaxed);
        } else if status.is_server_error() {
            self.errors.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Counts bytes of a response body.
    pub fn add_bytes_out(&self, bytes: usize) {
        self.bytes_out.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// Counts bytes of a request body.
    pub fn add_bytes_in(&self, bytes: usize) {
        self.bytes_in.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// Counts a processed image and its time.
    pub fn count_image(&self, took_us: u64) {
        self.images.fetch_add(1, Ordering::Relaxed);
        self.image_us.fetch_add(took_us, Ordering::Relaxed);
    }

    /// Assigns later counts to the minute of this time.
    pub fn advance_to(&self, now_ms: u64) {
        let minute = now_ms / MINUTE_MS;
        if self.minute.load(Ordering::Relaxed) != minute {
            drop(self.roll_over(minute));
        }
    }

    /// Returns the recent minutes with counts, up to now.
    pub fn minutes(&self, now_ms: u64) -> BTreeMap<u64, UsageCounts> {
        self.roll_over(now_ms / MINUTE_MS).minutes.clone()
    }

    /// Returns the counts that are not persisted yet, by hour.
    pub fn unwritten(&self, now_ms: u64) -> BTreeMap<u64, UsageCounts> {
        self.roll_over(now_ms / MINUTE_MS).unwritten.clone()
    }

    /// Takes the counts that are not persisted yet, by hour: the caller persists them, or puts them back.
    pub fn take_unwritten(&self, now_ms: u64) -> BTreeMap<u64, UsageCounts> {
        std::mem::take(&mut self.roll_over(now_ms / MINUTE_MS).unwritten)
    }

    /// Puts back counts that could not be persisted.
    pub fn restore_unwritten(&self, hours: &BTreeMap<u64, UsageCounts>) {
        let mut kept = self.lock_rollup();
        for (hour, counts) in hours {
            kept.add_hour(*hour, counts);
        }
    }

    /// Moves the counts of other counters into these.
    pub fn merge_from(&self, other: &Self, now_ms: u64) {
        let (minutes, hours) = {
            let mut theirs = other.roll_over(now_ms / MINUTE_MS);
            (std::mem::take(&mut theirs.minutes), std::mem::take(&mut theirs.unwritten))
        };
        let mut kept = self.lock_rollup();
        for (minute, counts) in &minutes {
            kept.minutes.entry(*minute).or_default().add(counts);
        }
        for (hour, counts) in &hours {
            kept.add_hour(*hour, counts);
        }
    }

    #[cold]
    fn roll_over(&self, minute: u64) -> MutexGuard<'_, Rollup> {
        let mut kept = self.lock_rollup();
        let before = match self.minute.swap(minute, Ordering::Relaxed) {
            // No count has set the time yet.
            0 => minute,
            before => before,
        };
        let counts = self.take();
        if counts != UsageCounts::default() {
            kept.add(before, &counts);
        }
        kept.forget_minutes(minute);
        kept
    }

    fn take(&self) -> UsageCounts {
        let take = |count: &AtomicU64| match count.load(Ordering::Relaxed) {
            0 => 0,
            _ => count.swap(0, Ordering::Relaxed),
        };
        UsageCounts {
            requests: take(&self.requests),
            errors: take(&self.errors),
            refusals: take(&self.refusals),
            bytes_out: take(&self.bytes_out),
            bytes_in: take(&self.bytes_in),
            images: take(&self.images),
            image_us: take(&self.image_us),
        }
    }

    fn lock_rollup(&self) -> MutexGuard<'_, Rollup> {
        self.rollup.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Rollup {
    fn add(&mut self, minute: u64, counts: &UsageCounts) {
        self.minutes.entry(minute).or_default().add(counts);
        self.add_hour(minute / (HOUR_MS / MINUTE_MS), counts);
    }

    fn add_hour(&mut self, hour: u64, counts: &UsageCounts) {
        self.unwritten.entry(hour).or_default().add(counts);
        while self.unwritten.len() > UNWRITTEN_HOURS_MAX {
            self.unwritten.pop_first();
        }
    }

    /// Drops old minutes, and future ones, which remain when the clock was set back.
    fn forget_minutes(&mut self, now: u64) {
        let first = (now + 1).saturating_sub(USAGE_MINUTES_KEPT);
        self.minutes.retain(|minute, _| (first..=now + 1).contains(minute));
    }
}

impl UsageCounts {
    /// Adds other counts.
    pub fn add(&mut self, more: &Self) {
        for (count, more) in [
            (&mut self.requests, more.requests),
            (&mut self.errors, more.errors),
            (&mut self.refusals, more.refusals),
            (&mut self.bytes_out, more.bytes_out),
            (&mut self.bytes_in, more.bytes_in),
            (&mut self.images, more.images),
            (&mut self.image_us, more.image_us),
        ] {
            *count = count.saturating_add(more);
        }
    }
}

/// Counters are no part of a bucket's identity: all of them compare equal.
impl PartialEq for BucketCounters {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for BucketCounters {}

#[cfg(test)]
mod tests {
    use super::*;

    const NOON_MS: u64 = 1_769_860_800_000;
    const NOON: u64 = NOON_MS / MINUTE_MS;

    fn requests(minutes: &BTreeMap<u64, UsageCounts>) -> Vec<(u64, u64)> {
        minutes.iter().map(|(minute, counts)| (minute - NOON, counts.requests)).collect()
    }

    #[test]
    fn counts_are_assigned_to_minute_and_hour() {
        let traffic = BucketCounters::default();
        traffic.count_response(StatusCode::OK, NOON_MS);
        traffic.add_bytes_out(10);
        traffic.count_response(StatusCode::NOT_FOUND, NOON_MS + MINUTE_MS - 1);
        traffic.count_response(StatusCode::BAD_GATEWAY, NOON_MS + MINUTE_MS);
        traffic.add_bytes_in(3);
        traffic.count_image(1_500);
        // Set back by a second.
        traffic.count_response(StatusCode::OK, NOON_MS + MINUTE_MS - 1);
        traffic.count_response(StatusCode::OK, NOON_MS + HOUR_MS);
        let minutes = traffic.minutes(NOON_MS + HOUR_MS - 1);
        assert_eq!(requests(&minutes), [(0, 3), (1, 1), (60, 1)]);
        let first =
            UsageCounts { requests: 3, refusals: 1, bytes_out: 10, ..UsageCounts::default() };
        assert_eq!(minutes[&NOON], first);
        let (errors, images) = (1, 1);
        let second = UsageCounts {
            requests: 1,
            errors,
            bytes_in: 3,
            images,
            image_us: 1_500,
            ..UsageCounts::default()
        };
        assert_eq!(minutes[&(NOON + 1)], second);
        let hours = traffic.take_unwritten(NOON_MS + HOUR_MS);
        let sums: Vec<_> = hours.values().map(|counts| counts.requests).collect();
        assert_eq!(sums, [4, 1]);
        assert!(traffic.take_unwritten(NOON_MS + HOUR_MS).is_empty());
        traffic.restore_unwritten(&hours);
        assert_eq!(traffic.unwritten(NOON_MS + HOUR_MS), hours);
    }

    #[test]
    fn merged_counters_are_not_doubled() {
        let (heir, gone) = (BucketCounters::default(), BucketCounters::default());
        heir.count_response(StatusCode::OK, NOON_MS);
        gone.count_response(StatusCode::OK, NOON_MS);
        gone.count_response(StatusCode::OK, NOON_MS + MINUTE_MS);
        let now_ms = NOON_MS + MINUTE_MS;
        for _ in 0..2 {
            heir.merge_from(&gone, now_ms);
            assert_eq!(requests(&heir.minutes(now_ms)), [(0, 2), (1, 1)]);
            assert_eq!(heir.unwritten(now_ms)[&(NOON_MS / HOUR_MS)].requests, 3);
        }
        assert!(gone.minutes(now_ms).is_empty() && gone.unwritten(now_ms).is_empty());
        gone.add_bytes_in(7);
        heir.merge_from(&gone, now_ms);
        assert_eq!(heir.minutes(now_ms)[&(NOON + 1)].bytes_in, 7);
    }

    #[test]
    fn minutes_and_hours_are_bounded() {
        let traffic = BucketCounters::default();
        for hour in 0..1_000 {
            traffic.count_response(StatusCode::OK, NOON_MS + hour * HOUR_MS);
        }
        let now_ms = NOON_MS + 999 * HOUR_MS;
        // The minute of an hour ago is still present.
        assert_eq!(traffic.minutes(now_ms).len(), 2);
        assert_eq!(traffic.minutes(now_ms + MINUTE_MS).len(), 1);
        assert_eq!(traffic.minutes(now_ms + (USAGE_MINUTES_KEPT - 1) * MINUTE_MS).len(), 1);
        assert!(traffic.minutes(now_ms + USAGE_MINUTES_KEPT * MINUTE_MS).is_empty());
        let hours = traffic.unwritten(now_ms);
        assert_eq!(hours.len(), UNWRITTEN_HOURS_MAX);
        assert_eq!(*hours.last_key_value().unwrap().0, now_ms / HOUR_MS);
    }

    #[test]
    fn concurrent_counting_loses_and_doubles_nothing() {
        let traffic = BucketCounters::default();
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let traffic = &traffic;
                scope.spawn(move || {
                    for at in 0..10_000 {
                        traffic.count_response(
                            StatusCode::OK,
                            NOON_MS + (at / 500 + thread) * MINUTE_MS,
                        );
                        traffic.add_bytes_out(7);
                    }
                });
            }
        });
        let hours = traffic.unwritten(NOON_MS);
        let mut sum = UsageCounts::default();
        hours.values().for_each(|counts| sum.add(counts));
        assert_eq!(
            sum,
            UsageCounts { requests: 40_000, bytes_out: 280_000, ..UsageCounts::default() }
        );
    }
}
