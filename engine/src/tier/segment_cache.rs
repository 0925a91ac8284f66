//! Cache files of segments in the remote store, and where their bytes are fetched from.
//!
//! Guarantees: cache files are at most as large as the limit, except for what a read adds before it is compared.
//! Non-goals: which segments are in the remote store; verification.

use std::collections::BTreeMap;
use std::io::{self, ErrorKind};
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use bytes::Bytes;

use super::cache_entry::CacheEntry;
use super::cached_file::CachedFile;
use crate::clock::Clock;
use crate::disk::Disk;
use crate::error::RemoteFailure;
use crate::format::{RemoteReference, SEGMENT_SUFFIX, SegmentId};
use crate::remote::{Part, RemoteStore};

/// Folder of cache files.
pub(super) const CACHE_FOLDER: &str = "cache";

/// Segments in the remote store that were opened.
pub(super) type CacheEntries = BTreeMap<SegmentId, Arc<CacheEntry>>;

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

/// Cache files of a store.
pub(super) struct SegmentCache {
    pub(super) local: Arc<dyn Disk>,
    /// `None`: only header pages can be read.
    remote: Option<Arc<dyn RemoteStore>>,
    clock: Arc<dyn Clock>,
    /// Above this number of bytes the least recently read cache files are emptied.
    bytes_max: u64,
    /// Locked while a segment is moved or removed.
    entries: Mutex<CacheEntries>,
    requests: AtomicU64,
    fetched_bytes: AtomicU64,
    /// First failure of the remote store.
    failure: OnceLock<String>,
}

impl SegmentCache {
    pub(super) fn new(
        local: Arc<dyn Disk>,
        remote: Option<Arc<dyn RemoteStore>>,
        clock: Arc<dyn Clock>,
        bytes_max: u64,
    ) -> Self {
        Self {
            local,
            remote,
            clock,
            bytes_max,
            entries: Mutex::default(),
            requests: AtomicU64::new(0),
            fetched_bytes: AtomicU64::new(0),
            failure: OnceLock::new(),
        }
    }

    /// Removes all cache files. Not while segments are read.
    pub(super) fn remove_all(&self) -> io::Result<()> {
        self.entries().clear();
        let names = self.local.list(CACHE_FOLDER)?;
        names.iter().try_for_each(|name| self.local.remove(&format!("{CACHE_FOLDER}/{name}")))
    }

    pub(super) fn entries(&self) -> MutexGuard<'_, CacheEntries> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the use of all cache files.
    pub(super) fn usages(&self) -> Vec<CacheUsage> {
        self.entries().iter().map(|(id, entry)| entry.usage(*id)).collect()
    }

    /// Returns the numbers of requests of reads, and of the bytes that they fetched.
    pub(super) fn fetches(&self) -> [u64; 2] {
        [&self.requests, &self.fetched_bytes].map(|count| count.load(Ordering::Relaxed))
    }

    /// Returns the first failure of the remote store.
    pub(super) fn failure(&self) -> Option<&str> {
        self.failure.get().map(String::as_str)
    }

    fn fail(&self, why: String) -> io::Error {
        let _ = self.failure.set(why.clone());
        io::Error::other(RemoteFailure(why))
    }

    /// Opens a segment, with the first bytes that its reference contains.
    pub(super) fn open(
        self: &Arc<Self>,
        path: &str,
        reference: &RemoteReference,
        page: Bytes,
    ) -> CachedFile {
        let id = reference.object.id;
        let new_entry = || {
            let clock = Arc::clone(&self.clock);
            Arc::new(CacheEntry::new(path, cache_path(id), reference, page, clock))
        };
        let entry = Arc::clone(self.entries().entry(id).or_insert_with(new_entry));
        CachedFile::new(entry, Arc::clone(self))
    }

    /// Empties the cache file of a segment. Its readers fetch again.
    pub(super) fn trim(&self, id: SegmentId) -> io::Result<()> {
        let entry = self.entries().get(&id).cloned();
        entry.map_or(Ok(()), |entry| entry.trim(self.local.as_ref()))
    }

    /// Empties cache files while all are larger than the limit.
    pub(super) fn make_room(&self) {
        if self.bytes_max == u64::MAX {
            return;
        }
        let mut usages = self.usages();
        usages.sort_unstable_by_key(|usage| usage.last_read_ms);
        let mut bytes: u64 = usages.iter().map(|usage| usage.bytes).sum();
        for usage in usages.iter().filter(|usage| usage.bytes > 0) {
            // A file that cannot be emptied is no reason to fail a read.
            if bytes <= self.bytes_max || self.trim(usage.id).is_err() {
                return;
            }
            bytes -= usage.bytes;
        }
    }

    /// Reads a range of a segment from the remote store.
    pub(super) fn fetch(&self, path: &str, object: &str, range: Range<u64>) -> io::Result<Bytes> {
        let Some(remote) = &self.remote else {
            let why = "is only in the remote store, and none is configured here";
            return Err(self.fail(format!("{path} {why}")));
        };
        let length = range.end - range.start;
        self.requests.fetch_add(1, Ordering::Relaxed);
        let found = remote.read(object, Part::Range(range));
        let found = found.map_err(|why| self.fail(format!("{path} in {object}: {why}")))?;
        // Not damage: the configuration may name another remote store.
        let missing = || self.fail(format!("{path}: the remote store has no object {object}"));
        let found = found.ok_or_else(missing)?;
        // A shorter object is damage, like a file that is cut.
        if found.bytes.len() as u64 != length {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        self.fetched_bytes.fetch_add(length, Ordering::Relaxed);
        Ok(found.bytes)
    }
}

pub(super) fn cache_path(id: SegmentId) -> String {
    format!("{CACHE_FOLDER}/{id}{SEGMENT_SUFFIX}")
}

#[cfg(test)]
mod tests {
    use std::thread;

    use uuid::Uuid;

    use super::*;
    use crate::clock::SimClock;
    use crate::disk::DiskFile;
    use crate::disk::sim::SimDisk;
    use crate::format::RemoteSegment;
    use crate::limits;
    use crate::remote::SimRemote;

    const UNIT: u64 = limits::TIER_UNIT_BYTES;
    const UNITS: u64 = 4;
    const SEGMENTS: u64 = 3;

    /// Returns a byte of a segment: no two are equal everywhere.
    fn byte(segment: u64, at: u64) -> u8 {
        ((at / 1_000 + 17 * segment) % 255) as u8 + 1
    }

    /// Creates a cache of this size over a remote store with segments, and opens them.
    fn opened(bytes_max: u64) -> (Arc<SegmentCache>, Vec<CachedFile>) {
        let clock: Arc<dyn Clock> = Arc::new(SimClock::at(0));
        let remote = SimRemote::new(Arc::clone(&clock));
        let references: Vec<_> = (1..=SEGMENTS)
            .map(|number| {
                let object = RemoteSegment { id: SegmentId::new(number).unwrap(), salt: number };
                let reference = RemoteReference { store: Uuid::nil(), object, bytes: UNITS * UNIT };
                let content: Vec<u8> = (0..UNITS * UNIT).map(|at| byte(number, at)).collect();
                remote.create(&object.object_name(), &[content.into()]).unwrap();
                reference
            })
            .collect();
        let (disk, remote) = (Arc::new(SimDisk::new()), Some(Arc::new(remote) as _));
        let cache = Arc::new(SegmentCache::new(disk, remote, clock, bytes_max));
        let open = |it: &RemoteReference| {
            cache.open(&format!("compacted/{}.seg", it.object.id), it, Bytes::new())
        };
        let files = references.iter().map(open).collect();
        (cache, files)
    }

    fn check(file: &CachedFile, segment: u64, at: u64) {
        let mut found = [0; 3_000];
        file.read_at(at, &mut found).unwrap();
        let expected: Vec<u8> = (at..).map(|at| byte(segment, at)).take(found.len()).collect();
        assert!(found[..] == expected, "segment {segment} at {at}");
    }

    #[test]
    fn cache_files_are_emptied_above_the_limit() {
        let (cache, files) = opened(5 * UNIT);
        for round in 0..3 {
            for (segment, file) in (1..).zip(&files) {
                for unit in 0..UNITS {
                    check(file, segment, unit * UNIT + 7);
                    let bytes: u64 = cache.usages().iter().map(|usage| usage.bytes).sum();
                    assert!(bytes > 0 && bytes <= 5 * UNIT, "round {round}: {bytes}");
                }
            }
        }
    }

    #[test]
    fn readers_of_emptied_cache_files_see_no_other_bytes() {
        let (cache, files) = opened(2 * UNIT);
        thread::scope(|scope| {
            for reader in 0..6_u64 {
                let files = &files;
                scope.spawn(move || {
                    for step in 0..300 {
                        let segment = (reader + step) % SEGMENTS;
                        let unit = (reader * 7 + step * 5) % UNITS;
                        check(&files[segment as usize], segment + 1, unit * UNIT + 900 * reader);
                    }
                });
            }
        });
        assert!(cache.fetches()[0] > SEGMENTS * UNITS, "units were fetched again");
    }
}
