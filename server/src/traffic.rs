//! What happens in one place, counted as it happens: requests, bytes, work on pictures.
//!
//! Whoever counts adds to a few numbers, and compares the minute with the one before. The first of a minute moves what
//! was counted to where it belongs: into a ring of minutes, and into hours that wait to be written. Promises: counting
//! takes no lock but once a minute, and no memory; what is counted is moved once, and neither lost nor doubled by
//! others who count meanwhile; memory is bounded.
//! Never here: what is kept on the disk.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use http::StatusCode;

use crate::limits::{TRAFFIC_HOURS_KEPT_DAYS, TRAFFIC_MINUTES};

pub const MINUTE_MS: u64 = 60_000;
pub const HOUR_MS: u64 = 60 * MINUTE_MS;
/// Hours that wait to be written, where nothing can be: the oldest go first.
const UNWRITTEN_MAX: usize = 24 * TRAFFIC_HOURS_KEPT_DAYS as usize;

/// What happened in some time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Requests that were answered.
    pub requests: u64,
    /// Those whose status was 5xx.
    pub errors: u64,
    /// Those whose status was 4xx.
    pub refusals: u64,
    /// Bytes of bodies that went out.
    pub bytes_out: u64,
    /// Bytes of bodies that came in.
    pub bytes_in: u64,
    /// Pictures that were worked on,
    pub images: u64,
    /// and for how long, in microseconds.
    pub image_us: u64,
}

/// What happens in a bucket, or outside of all.
#[derive(Debug, Default)]
pub struct Traffic {
    requests: AtomicU64,
    errors: AtomicU64,
    refusals: AtomicU64,
    bytes_out: AtomicU64,
    bytes_in: AtomicU64,
    images: AtomicU64,
    image_us: AtomicU64,
    /// The minute that these belong to; zero before anything was counted.
    minute: AtomicU64,
    kept: Mutex<Kept>,
}

/// What was counted and has its place.
#[derive(Debug, Default)]
struct Kept {
    minutes: BTreeMap<u64, Counts>,
    /// By hour, since the last write.
    unwritten: BTreeMap<u64, Counts>,
}

impl Traffic {
    /// A request was answered.
    pub fn note_answer(&self, status: StatusCode, now_ms: u64) {
        self.turn_to(now_ms);
        self.requests.fetch_add(1, Ordering::Relaxed);
        if status.is_client_error() {
            self.refusals.fetch_add(1, Ordering::Relaxed);
        } else if status.is_server_error() {
            self.errors.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// A piece of an answer is on its way.
    pub fn note_bytes_out(&self, bytes: usize) {
        self.bytes_out.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// A piece of a request has come.
    pub fn note_bytes_in(&self, bytes: usize) {
        self.bytes_in.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// A picture was worked on for so long.
    pub fn note_image(&self, took_us: u64) {
        self.images.fetch_add(1, Ordering::Relaxed);
        self.image_us.fetch_add(took_us, Ordering::Relaxed);
    }

    /// What is counted from now on belongs to this minute.
    pub fn turn_to(&self, now_ms: u64) {
        let minute = now_ms / MINUTE_MS;
        if self.minute.load(Ordering::Relaxed) != minute {
            drop(self.settle(minute));
        }
    }

    /// The last minutes of which anything is known, up to now.
    pub fn minutes(&self, now_ms: u64) -> BTreeMap<u64, Counts> {
        self.settle(now_ms / MINUTE_MS).minutes.clone()
    }

    /// What was not written yet, by hour.
    pub fn unwritten(&self, now_ms: u64) -> BTreeMap<u64, Counts> {
        self.settle(now_ms / MINUTE_MS).unwritten.clone()
    }

    /// The same, which is taken away: whoever takes it writes it, or puts it back.
    pub fn take_unwritten(&self, now_ms: u64) -> BTreeMap<u64, Counts> {
        std::mem::take(&mut self.settle(now_ms / MINUTE_MS).unwritten)
    }

    /// Puts back what was taken and could not be written.
    pub fn put_back(&self, hours: &BTreeMap<u64, Counts>) {
        let mut kept = self.kept();
        for (hour, counts) in hours {
            kept.add_hour(*hour, counts);
        }
    }

    /// Takes over what another one has counted until now.
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
            // Nobody has said yet what time it is.
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

    /// Also those to come, where the clock was set back.
    fn forget_minutes(&mut self, now: u64) {
        let first = (now + 1).saturating_sub(TRAFFIC_MINUTES);
        self.minutes.retain(|minute, _| (first..=now + 1).contains(minute));
    }
}

impl Counts {
    /// These, too.
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

/// What happens in a bucket is nothing of what the bucket is: two records are alike without it.
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
        // That of an hour ago is just there.
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
