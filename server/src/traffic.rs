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

use crate::limits::{TRAFFIC_HOURS_KEPT_DAYS, TRAFFIC_MINUTES};

pub const MINUTE_MS: u64 = 60_000;
pub const HOUR_MS: u64 = 60 * MINUTE_MS;
/// Maximum hours that wait to be persisted while writes fail; the oldest are dropped.
const UNWRITTEN_MAX: usize = 24 * TRAFFIC_HOURS_KEPT_DAYS as usize;

/// Counts of a period.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
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
pub struct Traffic {
    requests: AtomicU64,
    errors: AtomicU64,
    refusals: AtomicU64,
    bytes_out: AtomicU64,
    bytes_in: AtomicU64,
    images: AtomicU64,
    image_us: AtomicU64,
    /// Minute of the current counts; zero before the first count.
    minute: AtomicU64,
    kept: Mutex<Kept>,
}

/// Counts that were assigned to their period.
#[derive(Debug, Default)]
struct Kept {
    minutes: BTreeMap<u64, Counts>,
    /// Counts by hour, since the last write.
    unwritten: BTreeMap<u64, Counts>,
}

impl Traffic {
    /// Counts a response.
    pub fn note_answer(&self, status: StatusCode, now_ms: u64) {
        self.turn_to(now_ms);
        self.requests.fetch_add(1, Ordering::Relaxed);
        if status.is_client_error() {
            self.refusals.fetch_add(1, Ordering::Relaxed);
        } else if status.is_server_error() {
            self.errors.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Counts bytes of a response body.
    pub fn note_bytes_out(&self, bytes: usize) {
        self.bytes_out.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// Counts bytes of a request body.
    pub fn note_bytes_in(&self, bytes: usize) {
        self.bytes_in.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// Counts a processed image and its time.
    pub fn note_image(&self, took_us: u64) {
        self.images.fetch_add(1, Ordering::Relaxed);
        self.image_us.fetch_add(took_us, Ordering::Relaxed);
    }

    /// Assigns later counts to the minute of this time.
    pub fn turn_to(&self, now_ms: u64) {
        let minute = now_ms / MINUTE_MS;
        if self.minute.load(Ordering::Relaxed) != minute {
            drop(self.settle(minute));
        }
    }

    /// Returns the recent minutes with counts, up to now.
    pub fn minutes(&self, now_ms: u64) -> BTreeMap<u64, Counts> {
        self.settle(now_ms / MINUTE_MS).minutes.clone()
    }

    /// Returns the counts that are not persisted yet, by hour.
    pub fn unwritten(&self, now_ms: u64) -> BTreeMap<u64, Counts> {
        self.settle(now_ms / MINUTE_MS).unwritten.clone()
    }

    /// Takes the counts that are not persisted yet, by hour: the caller persists them, or puts them back.
    pub fn take_unwritten(&self, now_ms: u64) -> BTreeMap<u64, Counts> {
        std::mem::take(&mut self.settle(now_ms / MINUTE_MS).unwritten)
    }

    /// Puts back counts that could not be persisted.
    pub fn put_back(&self, hours: &BTreeMap<u64, Counts>) {
        let mut kept = self.kept();
        for (hour, counts) in hours {
            kept.add_hour(*hour, counts);
        }
    }

    /// Moves the counts of other counters into these.
    pub fn take_over(&self, other: &Self, now_ms: u64) {
        let (minutes, hours) = {
            let mut theirs = other.settle(now_ms / MINUTE_MS);
            (std::mem::take(&mut theirs.minutes), std::mem::take(&mut theirs.unwritten))
        };
        let mut kept = self.kept();
        for (minute, counts) in &minutes {
            kept.minutes.entry(*minute).or_default().add(counts);
        }
        for (hour, counts) in &hours {
            kept.add_hour(*hour, counts);
        }
    }

    #[cold]
    fn settle(&self, minute: u64) -> MutexGuard<'_, Kept> {
        let mut kept = self.kept();
        let before = match self.minute.swap(minute, Ordering::Relaxed) {
            // No count has set the time yet.
            0 => minute,
            before => before,
        };
        let counts = self.take();
        if counts != Counts::default() {
            kept.add(before, &counts);
        }
        kept.forget_minutes(minute);
        kept
    }

    fn take(&self) -> Counts {
        let take = |count: &AtomicU64| match count.load(Ordering::Relaxed) {
            0 => 0,
            _ => count.swap(0, Ordering::Relaxed),
        };
        Counts {
            requests: take(&self.requests),
            errors: take(&self.errors),
            refusals: take(&self.refusals),
            bytes_out: take(&self.bytes_out),
            bytes_in: take(&self.bytes_in),
            images: take(&self.images),
            image_us: take(&self.image_us),
        }
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Kept {
    fn add(&mut self, minute: u64, counts: &Counts) {
        self.minutes.entry(minute).or_default().add(counts);
        self.add_hour(minute / (HOUR_MS / MINUTE_MS), counts);
    }

    fn add_hour(&mut self, hour: u64, counts: &Counts) {
        self.unwritten.entry(hour).or_default().add(counts);
        while self.unwritten.len() > UNWRITTEN_MAX {
            self.unwritten.pop_first();
        }
    }

    /// Drops old minutes, and future ones, which remain when the clock was set back.
    fn forget_minutes(&mut self, now: u64) {
        let first = (now + 1).saturating_sub(TRAFFIC_MINUTES);
        self.minutes.retain(|minute, _| (first..=now + 1).contains(minute));
    }
}

impl Counts {
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
impl PartialEq for Traffic {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Traffic {}

#[cfg(test)]
mod tests {
    use super::*;

    const NOON_MS: u64 = 1_769_860_800_000;
    const NOON: u64 = NOON_MS / MINUTE_MS;

    fn requests(minutes: &BTreeMap<u64, Counts>) -> Vec<(u64, u64)> {
        minutes.iter().map(|(minute, counts)| (minute - NOON, counts.requests)).collect()
    }

    #[test]
    fn what_is_counted_belongs_to_its_minute_and_hour() {
        let traffic = Traffic::default();
        traffic.note_answer(StatusCode::OK, NOON_MS);
        traffic.note_bytes_out(10);
        traffic.note_answer(StatusCode::NOT_FOUND, NOON_MS + MINUTE_MS - 1);
        traffic.note_answer(StatusCode::BAD_GATEWAY, NOON_MS + MINUTE_MS);
        traffic.note_bytes_in(3);
        traffic.note_image(1_500);
        // Set back by a second.
        traffic.note_answer(StatusCode::OK, NOON_MS + MINUTE_MS - 1);
        traffic.note_answer(StatusCode::OK, NOON_MS + HOUR_MS);
        let minutes = traffic.minutes(NOON_MS + HOUR_MS - 1);
        assert_eq!(requests(&minutes), [(0, 3), (1, 1), (60, 1)]);
        let first = Counts { requests: 3, refusals: 1, bytes_out: 10, ..Counts::default() };
        assert_eq!(minutes[&NOON], first);
        let (errors, images) = (1, 1);
        let second = Counts {
            requests: 1,
            errors,
            bytes_in: 3,
            images,
            image_us: 1_500,
            ..Counts::default()
        };
        assert_eq!(minutes[&(NOON + 1)], second);
        let hours = traffic.take_unwritten(NOON_MS + HOUR_MS);
        let sums: Vec<_> = hours.values().map(|counts| counts.requests).collect();
        assert_eq!(sums, [4, 1]);
        assert!(traffic.take_unwritten(NOON_MS + HOUR_MS).is_empty());
        traffic.put_back(&hours);
        assert_eq!(traffic.unwritten(NOON_MS + HOUR_MS), hours);
    }

    #[test]
    fn what_is_taken_over_is_there_once() {
        let (heir, gone) = (Traffic::default(), Traffic::default());
        heir.note_answer(StatusCode::OK, NOON_MS);
        gone.note_answer(StatusCode::OK, NOON_MS);
        gone.note_answer(StatusCode::OK, NOON_MS + MINUTE_MS);
        let now_ms = NOON_MS + MINUTE_MS;
        for _ in 0..2 {
            heir.take_over(&gone, now_ms);
            assert_eq!(requests(&heir.minutes(now_ms)), [(0, 2), (1, 1)]);
            assert_eq!(heir.unwritten(now_ms)[&(NOON_MS / HOUR_MS)].requests, 3);
        }
        assert!(gone.minutes(now_ms).is_empty() && gone.unwritten(now_ms).is_empty());
        gone.note_bytes_in(7);
        heir.take_over(&gone, now_ms);
        assert_eq!(heir.minutes(now_ms)[&(NOON + 1)].bytes_in, 7);
    }

    #[test]
    fn only_the_last_minutes_are_kept_and_hours_only_so_many() {
        let traffic = Traffic::default();
        for hour in 0..1_000 {
            traffic.note_answer(StatusCode::OK, NOON_MS + hour * HOUR_MS);
        }
        let now_ms = NOON_MS + 999 * HOUR_MS;
        // The minute of an hour ago is still present.
        assert_eq!(traffic.minutes(now_ms).len(), 2);
        assert_eq!(traffic.minutes(now_ms + MINUTE_MS).len(), 1);
        assert_eq!(traffic.minutes(now_ms + (TRAFFIC_MINUTES - 1) * MINUTE_MS).len(), 1);
        assert!(traffic.minutes(now_ms + TRAFFIC_MINUTES * MINUTE_MS).is_empty());
        let hours = traffic.unwritten(now_ms);
        assert_eq!(hours.len(), UNWRITTEN_MAX);
        assert_eq!(*hours.last_key_value().unwrap().0, now_ms / HOUR_MS);
    }

    #[test]
    fn nothing_is_lost_or_doubled_where_many_count_while_time_passes() {
        let traffic = Traffic::default();
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let traffic = &traffic;
                scope.spawn(move || {
                    for at in 0..10_000 {
                        traffic
                            .note_answer(StatusCode::OK, NOON_MS + (at / 500 + thread) * MINUTE_MS);
                        traffic.note_bytes_out(7);
                    }
                });
            }
        });
        let hours = traffic.unwritten(NOON_MS);
        let mut sum = Counts::default();
        hours.values().for_each(|counts| sum.add(counts));
        assert_eq!(sum, Counts { requests: 40_000, bytes_out: 280_000, ..Counts::default() });
    }
}
