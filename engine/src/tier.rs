//! Disk of a store whose sealed segments may be only in the remote store.
//!
//! In place of its file such a segment has a *reference*, a small file that names its object. It is read through a
//! cache file in `cache/`, into which pieces are fetched as they are read. A segment with a file is read from it alone.
//!
//! Cache files are read, not mapped: no reader depends on a mapping that shows what is written later.
//!
//! Guarantees: the name of a segment exists before, during and after it is moved. The cache survives neither a restart
//! nor a crash: only whole segments that were moved back do.
//! Non-goals: which segments to move; whether the remote store has them; verification.

mod cache_entry;
mod cached_file;
mod segment_cache;

use std::collections::BTreeSet;
use std::io::{self, ErrorKind};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;

pub(crate) use self::cached_file::CachedFile;
pub(crate) use self::segment_cache::CacheUsage;
use self::segment_cache::{CacheEntries, SegmentCache, cache_path};
use crate::clock::Clock;
use crate::disk::{Disk, DiskFile, Lock};
use crate::format::{
    BIG_FOLDER, COMPACTED_FOLDER, LOG_FOLDER, REFERENCE_BYTES, REFERENCE_SUFFIX, RemoteReference,
    SEGMENT_HEADER_BYTES, SEGMENT_SUFFIX, SegmentClass, SegmentId,
};
use crate::limits;
use crate::remote::RemoteStore;

/// Disk whose segments may be in the remote store.
pub(crate) struct TieredDisk {
    local: Arc<dyn Disk>,
    cache: Arc<SegmentCache>,
    /// Segments with a reference and no file, once they were listed.
    remote_only: Mutex<Option<BTreeSet<SegmentId>>>,
}

impl TieredDisk {
    /// Creates the disk over the local one. The caller bounds the cache files.
    pub(crate) fn new(
        local: Arc<dyn Disk>,
        remote: Arc<dyn RemoteStore>,
        clock: Arc<dyn Clock>,
    ) -> Self {
        Self::with_cache(local, Some(remote), clock, u64::MAX)
    }

    /// Creates the disk of a process that does not replicate, with bounded cache files. Without a remote store only
    /// header pages of segments in it can be read.
    pub(crate) fn unreplicated(
        local: Arc<dyn Disk>,
        remote: Option<Arc<dyn RemoteStore>>,
        clock: Arc<dyn Clock>,
    ) -> Self {
        Self::with_cache(local, remote, clock, limits::UNREPLICATED_CACHE_BYTES_MAX)
    }

    fn with_cache(
        local: Arc<dyn Disk>,
        remote: Option<Arc<dyn RemoteStore>>,
        clock: Arc<dyn Clock>,
        bytes_max: u64,
    ) -> Self {
        let cache = SegmentCache::new(Arc::clone(&local), remote, clock, bytes_max);
        Self { local, cache: Arc::new(cache), remote_only: Mutex::default() }
    }

    /// Removes the cache files. Before the first read or after the last; the caller holds the lock of the folder.
    pub(crate) fn empty_cache(&self) -> io::Result<()> {
        self.cache.remove_all()
    }

    /// Returns the local disk.
    pub(crate) fn local(&self) -> &dyn Disk {
        self.local.as_ref()
    }

    /// Returns the numbers of requests of reads to the remote store, and of the bytes that they fetched.
    pub(crate) fn fetches(&self) -> [u64; 2] {
        self.cache.fetches()
    }

    /// Returns the first failure of the remote store.
    pub(crate) fn failure(&self) -> Option<&str> {
        self.cache.failure()
    }

    /// Returns the cache files.
    pub(crate) fn cached(&self) -> Vec<CacheUsage> {
        self.cache.usages()
    }

    /// Replaces the file of a segment by a reference to its copy in the remote store. Readers of the file are not
    /// affected. `NotFound` if there is no file.
    pub(crate) fn evict(&self, class: SegmentClass, reference: &RemoteReference) -> io::Result<()> {
        let id = reference.object.id;
        let (path, folder) = (id.path(class), id.folder(class));
        let _entries = self.cache.entries();
        let segment = self.local.open(&path)?;
        let mut page = [0; SEGMENT_HEADER_BYTES];
        let page = match class {
            SegmentClass::Big => &mut [],
            SegmentClass::Log | SegmentClass::Compacted => &mut page[..],
        };
        segment.read_at(0, page)?;
        self.write_reference(class, reference, page)?;
        self.local.sync_folder(&folder)?;
        self.local.remove(&path)?;
        self.note(id, true);
        self.local.sync_folder(&folder)
    }

    /// Writes a reference, with the header page of a log or compacted segment. Its name is durable once its folder is
    /// synced.
    pub(crate) fn write_reference(
        &self,
        class: SegmentClass,
        reference: &RemoteReference,
        page: &[u8],
    ) -> io::Result<()> {
        let name = reference_path(&reference.object.id.path(class)).unwrap_or_default();
        match self.local.remove(&name) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let file = self.local.create(&name)?;
        file.write_at(0, &[&reference.encode(page)])?;
        file.sync_data()
    }

    /// Empties the cache file of a segment. Its readers fetch again.
    pub(crate) fn trim(&self, id: SegmentId) -> io::Result<()> {
        self.cache.trim(id)
    }

    fn discard_entry(&self, entries: &mut CacheEntries, id: SegmentId) -> io::Result<()> {
        match entries.remove(&id) {
            Some(_) => match self.local.remove(&cache_path(id)) {
                // Nothing was read from the remote store.
                Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
                other => other,
            },
            None => Ok(()),
        }
    }

    /// Makes the cache file of a segment, which has to be complete, its file.
    pub(crate) fn promote(&self, id: SegmentId, class: SegmentClass) -> io::Result<()> {
        let (path, folder) = (id.path(class), id.folder(class));
        let mut entries = self.cache.entries();
        self.local.open(&cache_path(id))?.sync_data()?;
        self.local.rename(&cache_path(id), &path)?;
        entries.remove(&id);
        self.note(id, false);
        self.local.sync_folder(&folder)?;
        match self.local.remove(&reference_path(&path).unwrap_or_default()) {
            // It replaced a file.
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
            other => other,
        }
    }

    /// Opens the copy of a segment that may also have a file.
    pub(crate) fn open_copy(&self, class: SegmentClass, reference: &RemoteReference) -> CachedFile {
        self.cache.open(&reference.object.id.path(class), reference, Bytes::new())
    }

    /// Reads the reference in place of a file, with the header page that it contains; `None` if there is none.
    pub(crate) fn reference(&self, path: &str) -> io::Result<Option<(RemoteReference, Bytes)>> {
        let Some(name) = reference_path(path) else { return Ok(None) };
        let file = match self.local.open(&name) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            other => other?,
        };
        let length = usize::try_from(file.bytes_len()?).unwrap_or(usize::MAX);
        let mut bytes = vec![0; length.min(REFERENCE_BYTES + SEGMENT_HEADER_BYTES)];
        file.read_at(0, &mut bytes)?;
        let bytes = Bytes::from(bytes);
        let decoded = RemoteReference::decode(&bytes);
        let (reference, page) = decoded.map_err(|reason| {
            io::Error::new(ErrorKind::InvalidData, format!("{name} is damaged: {reason}"))
        })?;
        Ok(Some((reference, bytes.slice_ref(page))))
    }

    /// Notes that a segment is only in the remote store, or no longer.
    fn note(&self, id: SegmentId, is_remote_only: bool) {
        let mut known = self.remote_only.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(ids) = known.as_mut() else { return };
        if is_remote_only {
            ids.insert(id)
        } else {
            ids.remove(&id)
        };
    }
}

impl Disk for TieredDisk {
    fn open(&self, path: &str) -> io::Result<Arc<dyn DiskFile>> {
        let missing = match self.local.open(path) {
            Err(error) if error.kind() == ErrorKind::NotFound => error,
            other => return other,
        };
        match self.reference(path)? {
            Some((reference, page)) => Ok(Arc::new(self.cache.open(path, &reference, page))),
            // It may have been moved back in between.
            None if reference_path(path).is_some() => self.local.open(path),
            None => Err(missing),
        }
    }

    fn create(&self, path: &str) -> io::Result<Arc<dyn DiskFile>> {
        self.local.create(path)
    }

    fn remove(&self, path: &str) -> io::Result<()> {
        let Some(reference) = reference_path(path) else { return self.local.remove(path) };
        let mut entries = self.cache.entries();
        let (removed, referred) = (self.local.remove(path), self.local.remove(&reference));
        if let Some(id) = segment_of(path) {
            self.note(id, false);
            self.discard_entry(&mut entries, id)?;
        }
        match removed {
            Err(error) if error.kind() == ErrorKind::NotFound => referred,
            other => other,
        }
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.local.rename(from, to)
    }

    fn link(&self, from: &str, to: &str) -> io::Result<()> {
        self.local.link(from, to)
    }

    fn list(&self, folder: &str) -> io::Result<Vec<String>> {
        let mut names = self.local.list(folder)?;
        let mut has_references = false;
        for name in &mut names {
            if let Some(stem) = name.strip_suffix(REFERENCE_SUFFIX) {
                *name = format!("{stem}{SEGMENT_SUFFIX}");
                has_references = true;
            }
        }
        if has_references {
            names.sort_unstable();
            names.dedup();
        }
        Ok(names)
    }

    fn create_folder(&self, folder: &str) -> io::Result<()> {
        self.local.create_folder(folder)
    }

    fn sync_folder(&self, folder: &str) -> io::Result<()> {
        self.local.sync_folder(folder)
    }

    fn lock(&self) -> io::Result<Box<dyn Lock>> {
        self.local.lock()
    }

    fn lock_holder(&self) -> Option<u32> {
        self.local.lock_holder()
    }

    fn free_bytes(&self) -> io::Result<u64> {
        self.local.free_bytes()
    }

    fn capacity_bytes(&self) -> io::Result<u64> {
        self.local.capacity_bytes()
    }

    fn is_local(&self, path: &str) -> io::Result<bool> {
        let Some(id) = segment_of(path) else { return Ok(true) };
        let mut known = self.remote_only.lock().unwrap_or_else(PoisonError::into_inner);
        let ids = match known.as_mut() {
            Some(ids) => ids,
            None => known.insert(evicted_segments(self.local())?),
        };
        Ok(!ids.contains(&id))
    }
}

/// Returns the path of the reference in place of a segment; `None` for other files.
fn reference_path(path: &str) -> Option<String> {
    path.strip_suffix(SEGMENT_SUFFIX).map(|stem| format!("{stem}{REFERENCE_SUFFIX}"))
}

fn segment_of(path: &str) -> Option<SegmentId> {
    path.rsplit('/').next().and_then(SegmentId::from_file_name)
}

/// Returns the segment to which the file of this name is a reference; `None` for other files.
pub(crate) fn reference_of(name: &str) -> Option<SegmentId> {
    let stem = name.strip_suffix(REFERENCE_SUFFIX)?;
    SegmentId::from_file_name(&format!("{stem}{SEGMENT_SUFFIX}"))
}

/// Returns the folders of segments, with the class of the segments in each.
pub(crate) fn segment_folders(disk: &dyn Disk) -> io::Result<Vec<(String, SegmentClass)>> {
    let big = disk.list(BIG_FOLDER)?.into_iter();
    let big = big.map(|name| (format!("{BIG_FOLDER}/{name}"), SegmentClass::Big));
    let others = [(LOG_FOLDER, SegmentClass::Log), (COMPACTED_FOLDER, SegmentClass::Compacted)];
    Ok(others.map(|(folder, class)| (folder.to_owned(), class)).into_iter().chain(big).collect())
}

/// Lists the segments that have a reference and no file on the local disk.
pub(crate) fn evicted_segments(local: &dyn Disk) -> io::Result<BTreeSet<SegmentId>> {
    let mut ids = BTreeSet::new();
    for (folder, _) in segment_folders(local)? {
        let names = local.list(&folder)?;
        ids.extend(names.iter().filter_map(|name| reference_of(name)));
        for id in names.iter().filter_map(|name| SegmentId::from_file_name(name)) {
            ids.remove(&id);
        }
    }
    Ok(ids)
}
