//! Cache file of a segment in the remote store: which of its units are present, and which are being fetched.
//!
//! Guarantees: a unit is fetched by one reader at a time; the file is not emptied while it is read.
//! Non-goals: the fetch itself.

use std::collections::BTreeSet;
use std::io::{self, ErrorKind};
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard};

use bytes::Bytes;

use super::segment_cache::CacheUsage;
use crate::clock::Clock;
use crate::disk::Disk;
use crate::format::{RemoteReference, SegmentId};
use crate::limits;

/// Size in bytes of what is fetched at least.
pub(super) const UNIT: u64 = limits::TIER_UNIT_BYTES;

/// State of a cache file, which all who have it open share.
pub(super) struct CacheEntry {
    /// Path of the segment in the data folder.
    pub(super) path: String,
    pub(super) cache_path: String,
    /// Name in the remote store.
    pub(super) object: String,
    pub(super) bytes: u64,
    /// First bytes, which the reference contains.
    pub(super) page: Bytes,
    clock: Arc<dyn Clock>,
    /// Locked for reading while present units are read or marked, for writing while the file is emptied.
    content: RwLock<()>,
    units: Mutex<Units>,
    fetched: Condvar,
    last_read_ms: AtomicU64,
}

/// Units of a cache file.
struct Units {
    /// One bit per unit.
    present: Vec<u64>,
    count: u64,
    fetching: BTreeSet<u64>,
    /// Unit after the last fetched one, and number of units to fetch if the next read begins there.
    next: u64,
    window: u64,
}

impl Units {
    fn has(&self, unit: u64) -> bool {
        let word = usize::try_from(unit / 64).ok().and_then(|word| self.present.get(word));
        word.is_some_and(|word| word & (1 << (unit % 64)) != 0)
    }

    fn set(&mut self, unit: u64, is_present: bool) {
        let word = usize::try_from(unit / 64).ok().and_then(|word| self.present.get_mut(word));
        let Some(word) = word else { return };
        let bit = 1 << (unit % 64);
        match (*word & bit != 0, is_present) {
            (false, true) => self.count += 1,
            (true, false) => self.count -= 1,
            _ => return,
        }
        *word ^= bit;
    }
}

/// How the next units of a read are obtained.
pub(super) enum Step {
    /// From the cache file.
    Present(Range<u64>),
    /// By the caller, from the remote store.
    Fetch(Range<u64>),
}

impl CacheEntry {
    pub(super) fn new(
        path: &str,
        cache_path: String,
        reference: &RemoteReference,
        page: Bytes,
        clock: Arc<dyn Clock>,
    ) -> Self {
        let words = reference.bytes.div_ceil(UNIT).div_ceil(64);
        let units = Units {
            present: vec![0; usize::try_from(words).unwrap_or(0)],
            count: 0,
            fetching: BTreeSet::new(),
            next: 0,
            window: 1,
        };
        Self {
            path: path.to_owned(),
            cache_path,
            page,
            object: reference.object.object_name(),
            bytes: reference.bytes,
            last_read_ms: AtomicU64::new(clock.monotonic_ms()),
            clock,
            content: RwLock::default(),
            units: Mutex::new(units),
            fetched: Condvar::new(),
        }
    }

    pub(super) fn usage(&self, id: SegmentId) -> CacheUsage {
        let count = self.units().count;
        CacheUsage {
            id,
            bytes: (count * UNIT).min(self.bytes),
            is_complete: count == self.bytes.div_ceil(UNIT),
            last_read_ms: self.last_read_ms.load(Ordering::Relaxed),
        }
    }

    fn units(&self) -> MutexGuard<'_, Units> {
        self.units.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Protects the content from being emptied.
    pub(super) fn content(&self) -> RwLockReadGuard<'_, ()> {
        self.content.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Empties the file. Waits for its readers.
    pub(super) fn trim(&self, local: &dyn Disk) -> io::Result<()> {
        let _content = self.content.write().unwrap_or_else(PoisonError::into_inner);
        let mut units = self.units();
        units.present.fill(0);
        units.count = 0;
        drop(units);
        match local.open(&self.cache_path) {
            Ok(file) => file.set_len(0).and_then(|()| file.set_len(self.bytes)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Notes a read, which fails if it ends after the segment. Returns its end.
    pub(super) fn begin_read(&self, offset: u64, length: usize) -> io::Result<u64> {
        let end = offset.saturating_add(length as u64);
        self.last_read_ms.store(self.clock.monotonic_ms(), Ordering::Relaxed);
        if end > self.bytes { Err(ErrorKind::UnexpectedEof.into()) } else { Ok(end) }
    }

    /// Returns whether all units of a range are present.
    pub(super) fn has(&self, range: Range<u64>) -> bool {
        let units = self.units();
        (range.start / UNIT..range.end.div_ceil(UNIT)).all(|unit| units.has(unit))
    }

    /// Makes the units of a range absent.
    pub(super) fn discard(&self, range: Range<u64>) {
        let mut units = self.units();
        for unit in range.start / UNIT..range.end.div_ceil(UNIT) {
            units.set(unit, false);
        }
    }

    /// Returns how the first of the wanted units are obtained. Waits while another reader fetches them.
    pub(super) fn step(&self, wanted: &Range<u64>) -> Step {
        let mut units = self.units();
        while units.fetching.contains(&wanted.start) {
            units = self.fetched.wait(units).unwrap_or_else(PoisonError::into_inner);
        }
        let first = wanted.start;
        if units.has(first) {
            let end = (first..wanted.end).find(|unit| !units.has(*unit)).unwrap_or(wanted.end);
            return Step::Present(first..end);
        }
        let window = match first == units.next && first > 0 {
            true => (2 * units.window).min(limits::TIER_READ_AHEAD_BYTES_MAX / UNIT),
            false => 1,
        };
        let ahead = (first + window).min(self.bytes.div_ceil(UNIT)).max(wanted.end);
        let last = ahead.min(first + limits::TIER_READ_AHEAD_BYTES_MAX / UNIT);
        let stop = |unit: &u64| units.has(*unit) || units.fetching.contains(unit);
        let end = (first..last).find(stop).unwrap_or(last);
        units.fetching.extend(first..end);
        units.window = window;
        units.next = end;
        Step::Fetch(first..end)
    }

    /// Ends the fetch of units.
    pub(super) fn end_fetch(&self, fetched: Range<u64>, is_present: bool) {
        let mut units = self.units();
        for unit in fetched {
            units.fetching.remove(&unit);
            if is_present {
                units.set(unit, true);
            }
        }
        self.fetched.notify_all();
    }

    pub(super) fn byte_range(&self, units: &Range<u64>) -> Range<u64> {
        units.start * UNIT..(units.end * UNIT).min(self.bytes)
    }
}
