//! File of a segment in the remote store, read through a cache file.
//!
//! The file is divided into units. A read fetches those that it needs and that the cache file does not have; sequential
//! reads fetch further ahead.
//!
//! The header page of a log or compacted segment is in its reference: opening a store fetches only segments that it
//! replays.
//!
//! Guarantees: a unit is fetched by one reader at a time; if the cache file cannot be written, reads are served without
//! it.
//! Non-goals: verification; the size of the cache.

use std::collections::BTreeSet;
use std::io::{self, ErrorKind};
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};

use bytes::Bytes;

use super::CACHE_FOLDER;
use crate::clock::Clock;
use crate::disk::{Access, Disk, DiskFile, Mapping};
use crate::error::RemoteFailure;
use crate::format::{RemoteReference, SegmentId};
use crate::limits;
use crate::remote::{Part, RemoteStore};

const UNIT: u64 = limits::TIER_UNIT_BYTES;

/// Counts of reads that went to the remote store.
#[derive(Debug, Default)]
pub(crate) struct TierReads {
    requests: AtomicU64,
    bytes: AtomicU64,
}

impl TierReads {
    /// Returns the number of requests.
    pub(crate) fn requests(&self) -> u64 {
        self.requests.load(Ordering::Relaxed)
    }

    /// Returns the number of bytes fetched.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }
}

/// Use of a cache file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CacheUsage {
    pub(crate) id: SegmentId,
    /// Bytes that are present.
    pub(crate) bytes: u64,
    /// Whether all bytes are.
    pub(crate) is_complete: bool,
    /// Monotonic time of the last read.
    pub(crate) last_read_ms: u64,
}

/// State of a cache file, which all who have it open share.
pub(super) struct CacheEntry {
    path: String,
    cache_path: String,
    object: String,
    bytes: u64,
    /// First bytes, which the reference contains.
    page: Bytes,
    clock: Arc<dyn Clock>,
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
enum Step {
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

    /// Returns how the first of the wanted units are obtained. Waits while another reader fetches them.
    fn step(&self, wanted: &Range<u64>) -> Step {
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
    fn end_fetch(&self, fetched: Range<u64>, is_present: bool) {
        let mut units = self.units();
        for unit in fetched {
            units.fetching.remove(&unit);
            if is_present {
                units.set(unit, true);
            }
        }
        self.fetched.notify_all();
    }

    fn byte_range(&self, units: &Range<u64>) -> Range<u64> {
        units.start * UNIT..(units.end * UNIT).min(self.bytes)
    }
}

/// Open file of a segment in the remote store.
pub(crate) struct CachedFile {
    entry: Arc<CacheEntry>,
    local: Arc<dyn Disk>,
    /// Opened, or created, by the first read that needs it.
    cache: OnceLock<Arc<dyn DiskFile>>,
    /// `None`: only the page can be read.
    remote: Option<Arc<dyn RemoteStore>>,
    reads: Arc<TierReads>,
}

impl CachedFile {
    pub(super) fn new(
        entry: Arc<CacheEntry>,
        local: Arc<dyn Disk>,
        remote: Option<Arc<dyn RemoteStore>>,
        reads: Arc<TierReads>,
    ) -> Self {
        Self { entry, local, cache: OnceLock::new(), remote, reads }
    }

    fn cache(&self) -> io::Result<&dyn DiskFile> {
        if let Some(cache) = self.cache.get() {
            return Ok(cache.as_ref());
        }
        let path = &self.entry.cache_path;
        self.local.create_folder(CACHE_FOLDER)?;
        let cache = match self.local.create(path) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => self.local.open(path)?,
            other => {
                let cache = other?;
                cache.set_len(self.entry.bytes)?;
                cache
            }
        };
        Ok(self.cache.get_or_init(|| cache).as_ref())
    }

    fn check(&self, offset: u64, length: usize) -> io::Result<u64> {
        let end = offset.saturating_add(length as u64);
        let now_ms = self.entry.clock.monotonic_ms();
        self.entry.last_read_ms.store(now_ms, Ordering::Relaxed);
        if end > self.entry.bytes { Err(ErrorKind::UnexpectedEof.into()) } else { Ok(end) }
    }

    fn fetch(&self, units: Range<u64>) -> io::Result<Bytes> {
        let range = self.entry.byte_range(&units);
        let fetched = self.fetch_range(range.clone());
        let is_present = fetched.as_ref().is_ok_and(|bytes| {
            self.cache().and_then(|cache| cache.write_at(range.start, &[bytes])).is_ok()
        });
        self.entry.end_fetch(units, is_present);
        fetched
    }

    fn fetch_range(&self, range: Range<u64>) -> io::Result<Bytes> {
        let CacheEntry { object, path, .. } = &*self.entry;
        let Some(remote) = &self.remote else {
            let why = "is only in the remote store, which this process does not use";
            return Err(io::Error::other(RemoteFailure(format!("{path} {why}"))));
        };
        let length = range.end - range.start;
        self.reads.requests.fetch_add(1, Ordering::Relaxed);
        let found = remote.read(object, Part::Range(range));
        let found = found
            .map_err(|why| io::Error::other(RemoteFailure(format!("{path} in {object}: {why}"))))?;
        // Not damage: the configuration may name another remote store.
        let found = found.ok_or_else(|| {
            let why = format!("{path}: the remote store has no object {object}");
            io::Error::other(RemoteFailure(why))
        })?;
        // A shorter object is damage, like a file that is cut.
        if found.bytes.len() as u64 != length {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        self.reads.bytes.fetch_add(length, Ordering::Relaxed);
        Ok(found.bytes)
    }
}

impl DiskFile for CachedFile {
    fn bytes_len(&self) -> io::Result<u64> {
        Ok(self.entry.bytes)
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        let end = self.check(offset, buffer.len())?;
        let in_page = self.entry.page.get(usize::try_from(offset).unwrap_or(usize::MAX)..);
        let in_page = in_page.unwrap_or_default();
        let (first, mut rest) = buffer.split_at_mut(in_page.len().min(buffer.len()));
        first.copy_from_slice(&in_page[..first.len()]);
        let mut at = offset + first.len() as u64;
        while at < end {
            let wanted = at / UNIT..end.div_ceil(UNIT);
            let step = self.entry.step(&wanted);
            let (Step::Present(units) | Step::Fetch(units)) = &step;
            let until = self.entry.byte_range(units).end.min(end);
            let length = usize::try_from(until - at).unwrap_or(usize::MAX).min(rest.len());
            let (piece, after) = rest.split_at_mut(length);
            match step {
                Step::Present(_) => self.cache()?.read_at(at, piece)?,
                Step::Fetch(units) => {
                    let skip = usize::try_from(at - units.start * UNIT).unwrap_or(usize::MAX);
                    let bytes = self.fetch(units)?;
                    let found = bytes.get(skip..).and_then(|bytes| bytes.get(..length));
                    piece.copy_from_slice(found.ok_or(ErrorKind::UnexpectedEof)?);
                }
            }
            (at, rest) = (until, after);
        }
        Ok(())
    }

    fn read_at_if_resident(&self, offset: u64, buffer: &mut [u8]) -> io::Result<bool> {
        let end = self.check(offset, buffer.len())?;
        let is_present = {
            let units = self.entry.units();
            (offset / UNIT..end.div_ceil(UNIT)).all(|unit| units.has(unit))
        };
        if is_present { self.cache()?.read_at_if_resident(offset, buffer) } else { Ok(false) }
    }

    fn write_at(&self, _: u64, _: &[&[u8]]) -> io::Result<()> {
        Err(ErrorKind::Unsupported.into())
    }

    fn set_len(&self, _: u64) -> io::Result<()> {
        Err(ErrorKind::Unsupported.into())
    }

    fn allocate(&self, _: u64) -> io::Result<()> {
        Err(ErrorKind::Unsupported.into())
    }

    fn punch(&self, _: Range<u64>) -> io::Result<()> {
        Err(ErrorKind::Unsupported.into())
    }

    fn sync_data(&self) -> io::Result<()> {
        Ok(())
    }

    fn changes(&self) -> io::Result<u64> {
        self.cache.get().map_or(Ok(0), |cache| cache.changes())
    }

    fn map(&self, _: Access) -> io::Result<Box<dyn Mapping>> {
        Err(ErrorKind::Unsupported.into())
    }

    fn is_remote(&self) -> bool {
        true
    }

    fn discard_cached(&self, range: Range<u64>) -> bool {
        let mut units = self.entry.units();
        for unit in range.start / UNIT..range.end.div_ceil(UNIT) {
            units.set(unit, false);
        }
        true
    }
}
