//! Segment set: creation, lookup, opening and removal of segments.
//!
//! Guarantees: an id is assigned only once during the lifetime of an open store; a big segment that no record refers
//! to is either in flight or removed; a name is durably removed before a checkpoint stops looking for it.
//! Non-goals: the content of segments.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock, Weak};

use quick_cache::sync::Cache;

use super::body_cache::BodyCache;
use super::open_segment::{OpenSegment, ReadMode, Verification, read_header};
use super::record_cursor::RecordCursor;
use super::remote_segments::RemoteSegments;
use super::reported_corruption::ReportedCorruption;
use super::retention::RetainedSegments;
use crate::clock::Clock;
use crate::disk::{Disk, DiskFile};
use crate::error::{Error, Result};
use crate::format::{
    BIG_FOLDER, COMPACTED_FOLDER, Checksum, Malformed, SegmentClass, SegmentHeader, SegmentId,
};
use crate::limits;
use crate::rng::Rng;

/// Segments of a store.
pub(crate) struct SegmentSet {
    disk: Arc<dyn Disk>,
    clock: Arc<dyn Clock>,
    rng: Arc<dyn Rng>,
    store: uuid::Uuid,
    next_id: AtomicU64,
    in_flight: Mutex<BTreeSet<SegmentId>>,
    growing: RwLock<BTreeMap<SegmentId, Arc<OpenSegment>>>,
    mapped: Cache<SegmentId, Arc<OpenSegment>>,
    /// Maps, and files of segments without one, that may still be in use by a reader.
    readers: Mutex<BTreeMap<SegmentId, Vec<Reader>>>,
    /// Locked for reading while a segment is mapped, for writing while none may be mapped.
    mapping: RwLock<()>,
    /// Compacted segments; all other segments with records are log segments.
    compacted: RwLock<BTreeSet<SegmentId>>,
    /// Log segments that recovery left unsealed, with the end of their groups.
    unsealed: Mutex<Vec<(SegmentHeader, u64)>>,
    /// Folders of big segments whose own names are durable.
    named_folders: Mutex<BTreeSet<String>>,
    /// Folders from which names were removed since their last sync.
    removed_from: Mutex<BTreeSet<String>>,
    reported_corruption: Arc<ReportedCorruption>,
    body_cache: BodyCache,
    verification: Verification,
    retirement: Mutex<RetirementState>,
    pub(super) retained: RetainedSegments,
    /// Copies in the remote store, if the store is replicated.
    remote: OnceLock<Arc<RemoteSegments>>,
}

/// Number of active holds on names, and segments retired since.
#[derive(Default)]
struct RetirementState {
    holders: usize,
    retired: BTreeSet<(SegmentId, SegmentClass)>,
}

/// Hold on segment names: while it exists, no name of a segment that was in use is removed and no space is punched.
///
/// Segments retired during the hold are removed when the last hold is dropped. After a crash before that, recovery
/// finds them unreferenced and removes them.
pub(crate) struct RemovalGuard(Arc<SegmentSet>);

impl RemovalGuard {
    /// Returns the segments that were retired and still have their name.
    pub(crate) fn retired(&self) -> BTreeSet<SegmentId> {
        locked(&self.0.retirement).retired.iter().map(|(id, _)| *id).collect()
    }
}

impl Drop for RemovalGuard {
    fn drop(&mut self) {
        let mut held = locked(&self.0.retirement);
        held.holders -= 1;
        let is_last = held.holders == 0;
        let retired = if is_last { std::mem::take(&mut held.retired) } else { BTreeSet::new() };
        drop(held);
        for (id, class) in retired {
            self.0.retire(id, class);
        }
    }
}

impl SegmentSet {
    /// Creates the segment set of the store with this id. Deleted large objects are retained for this many
    /// milliseconds.
    pub(crate) fn new(
        disk: Arc<dyn Disk>,
        clock: Arc<dyn Clock>,
        rng: Arc<dyn Rng>,
        store: uuid::Uuid,
        verification: Verification,
        undelete_window_ms: u64,
        body_cache_bytes: usize,
    ) -> Self {
        Self {
            disk,
            clock,
            rng,
            store,
            next_id: AtomicU64::new(1),
            in_flight: Mutex::default(),
            growing: RwLock::default(),
            mapped: Cache::new(limits::OPEN_SEGMENTS_MAX),
            readers: Mutex::default(),
            mapping: RwLock::default(),
            compacted: RwLock::default(),
            unsealed: Mutex::default(),
            named_folders: Mutex::default(),
            removed_from: Mutex::default(),
            retirement: Mutex::default(),
            reported_corruption: Arc::default(),
            body_cache: BodyCache::new(body_cache_bytes),
            verification,
            retained: RetainedSegments::new(undelete_window_ms),
            remote: OnceLock::new(),
        }
    }

    /// Returns the disk of the segments.
    pub(crate) fn disk(&self) -> &dyn Disk {
        self.disk.as_ref()
    }

    /// Returns the clock.
    pub(crate) fn clock(&self) -> &dyn Clock {
        self.clock.as_ref()
    }

    /// Returns the id of the store.
    pub(crate) fn store(&self) -> uuid::Uuid {
        self.store
    }

    /// Makes the store replicated: segments are replaced only after they were uploaded. Once, before the first write.
    pub(crate) fn replicate(&self, remote: Arc<RemoteSegments>) {
        let _ = self.remote.set(remote);
    }

    /// Returns whether a log or compacted segment may be replaced by a compaction, or punched.
    pub(crate) fn may_be_replaced(&self, id: SegmentId) -> bool {
        self.remote.get().is_none_or(|remote| remote.is_uploaded(id))
    }

    /// Returns whether the file of a segment is on this machine; true if that cannot be determined.
    pub(crate) fn is_local(&self, id: SegmentId, class: SegmentClass) -> bool {
        self.disk.is_local(&id.path(class)).unwrap_or(true)
    }

    /// Closes the file of a segment that was moved: the next read opens it where it is now.
    pub(crate) fn reopen(&self, id: SegmentId) {
        self.mapped.remove(&id);
    }

    /// Returns the monotonic time at which an open segment was last read, within some seconds; `None` if it is not
    /// open.
    pub(crate) fn last_read_ms(&self, id: SegmentId) -> Option<u64> {
        self.mapped.peek(&id).map(|open| open.last_read_ms())
    }

    /// Uploads a new segment to the remote store, if that is required before its record is committed.
    pub(crate) fn upload_before_commit(&self, id: SegmentId, class: SegmentClass) -> Result<()> {
        self.remote.get().map_or(Ok(()), |remote| remote.upload_before_commit(id, class))
    }

    /// Ensures that no id up to and including this one is assigned.
    pub(crate) fn skip_ids_through(&self, seen: u64) {
        self.next_id.fetch_max(seen.saturating_add(1), Ordering::SeqCst);
    }

    /// Returns the id of the next new segment.
    pub(crate) fn next_id(&self) -> u64 {
        self.next_id.load(Ordering::SeqCst)
    }

    /// Returns the lowest id of a big segment that may become an orphan in a crash.
    pub(crate) fn orphan_floor(&self) -> u64 {
        // The order matters: an id assigned in between is above the floor either way.
        let next = self.next_id();
        locked(&self.in_flight).first().map_or(next, |id| id.get().min(next))
    }

    /// Creates a spare log segment: its name and space are durable, its header is blank.
    pub(crate) fn create_spare(&self, bytes: u64) -> Result<(Arc<dyn DiskFile>, SegmentHeader)> {
        let header = self.new_header(SegmentClass::Log)?;
        let path = header.segment.path(SegmentClass::Log);
        let made = self.disk.create(&path).and_then(|file| {
            file.allocate(bytes)?;
            file.sync_data()?;
            self.disk.sync_folder(&header.segment.folder(SegmentClass::Log))?;
            Ok(file)
        });
        match made {
            Ok(file) => Ok((file, header)),
            Err(source) => {
                // The remaining file would be removed as a spare by recovery; removing it now reclaims the space
                // earlier.
                let _ = self.disk.remove(&path);
                Err(Error::io(format!("making {path}"), source))
            }
        }
    }

    /// Creates the file of a compacted segment; the caller writes its header. The segment has no records before
    /// [`SegmentSet::add_compacted`].
    pub(crate) fn create_compacted(&self) -> Result<(Arc<dyn DiskFile>, SegmentHeader)> {
        let header = self.new_header(SegmentClass::Compacted)?;
        let path = header.segment.path(SegmentClass::Compacted);
        let made = self.disk.create_folder(COMPACTED_FOLDER).and_then(|()| self.disk.create(&path));
        made.map(|file| (file, header))
            .map_err(|source| Error::io(format!("making {path}"), source))
    }

    /// Makes the names of compacted segments durable, and that of their folder.
    pub(crate) fn sync_compacted_names(&self) -> Result<()> {
        let synced =
            self.disk.sync_folder(COMPACTED_FOLDER).and_then(|()| self.disk.sync_folder(""));
        synced.map_err(|source| Error::io(format!("syncing {COMPACTED_FOLDER}"), source))
    }

    /// Registers that the record of a compacted segment is committed, or that the segment was removed.
    pub(crate) fn end_compaction(&self, id: SegmentId) {
        if let Some(remote) = self.remote.get() {
            remote.end_compaction(id);
        }
    }

    /// Registers a compacted segment, which contains records from now on.
    pub(crate) fn add_compacted(&self, id: SegmentId) {
        self.compacted.write().unwrap_or_else(PoisonError::into_inner).insert(id);
    }

    /// Returns the class of a segment with records.
    pub(crate) fn class_of(&self, id: SegmentId) -> SegmentClass {
        let compacted = self.compacted.read().unwrap_or_else(PoisonError::into_inner);
        if compacted.contains(&id) { SegmentClass::Compacted } else { SegmentClass::Log }
    }

    /// Returns whether this log segment is growing, or could not be sealed.
    pub(crate) fn is_unsealed(&self, id: SegmentId) -> bool {
        self.growing.read().unwrap_or_else(PoisonError::into_inner).contains_key(&id)
    }

    /// Creates the file of a big segment, which is in flight until it is committed or abandoned.
    pub(crate) fn create_big(&self) -> Result<(Arc<dyn DiskFile>, SegmentHeader)> {
        let header = self.begin_big()?;
        let path = header.segment.path(SegmentClass::Big);
        match self.disk.create(&path) {
            Ok(file) => Ok((file, header)),
            Err(source) => {
                locked(&self.in_flight).remove(&header.segment);
                Err(Error::io(format!("making {path}"), source))
            }
        }
    }

    /// Returns the header of a big segment whose file is not created yet, in an existing folder, and marks it in
    /// flight.
    pub(crate) fn begin_big(&self) -> Result<SegmentHeader> {
        let header = {
            let mut in_flight = locked(&self.in_flight);
            let header = self.new_header(SegmentClass::Big)?;
            in_flight.insert(header.segment);
            header
        };
        let folder = header.segment.folder(SegmentClass::Big);
        self.disk.create_folder(&folder).map_err(|source| {
            locked(&self.in_flight).remove(&header.segment);
            Error::io(format!("making {folder}"), source)
        })?;
        Ok(header)
    }

    /// Makes the name of a big segment durable, and that of its folder.
    pub(crate) fn sync_big_name(&self, id: SegmentId) -> Result<()> {
        let folder = id.folder(SegmentClass::Big);
        let io = |source| Error::io(format!("syncing {folder}"), source);
        self.disk.sync_folder(&folder).map_err(io)?;
        if !locked(&self.named_folders).contains(&folder) {
            self.disk.sync_folder(BIG_FOLDER).map_err(io)?;
            locked(&self.named_folders).insert(folder);
        }
        Ok(())
    }

    /// Marks a big segment as referred to by a log record.
    pub(crate) fn commit_big(&self, id: SegmentId) {
        locked(&self.in_flight).remove(&id);
    }

    /// Removes an uncommitted big segment immediately; it was never in use, so no hold applies to its name.
    pub(crate) fn abandon_big(&self, id: SegmentId) {
        locked(&self.in_flight).insert(id);
        self.remove_name(id, SegmentClass::Big);
    }

    /// Removes the name of a segment; readers that have it open are not affected. On failure it stays in flight, so
    /// that the next recovery looks for it.
    pub(crate) fn retire(&self, id: SegmentId, class: SegmentClass) {
        if class == SegmentClass::Compacted {
            self.compacted.write().unwrap_or_else(PoisonError::into_inner).remove(&id);
        }
        let mut held = locked(&self.retirement);
        if held.holders > 0 {
            held.retired.insert((id, class));
            locked(&self.in_flight).insert(id);
            return;
        }
        drop(held);
        self.remove_name(id, class);
    }

    fn remove_name(&self, id: SegmentId, class: SegmentClass) {
        let removed = self.disk.remove(&id.path(class));
        // After the removal of the name, so that the file is not mapped again.
        self.mapped.remove(&id);
        // A missing file may have been removed by a process that was killed before it synced the folder.
        if removed.map_or_else(|error| error.kind() == io::ErrorKind::NotFound, |()| true) {
            self.was_removed_from(id.folder(class));
            locked(&self.in_flight).remove(&id);
        } else {
            locked(&self.in_flight).insert(id);
        }
    }

    /// Holds the names and contents of all segments until the returned value is dropped. Waits for a running hole
    /// punch.
    pub(crate) fn block_removal(self: &Arc<Self>) -> RemovalGuard {
        let _mapping = self.mapping.read().unwrap_or_else(PoisonError::into_inner);
        locked(&self.retirement).holders += 1;
        RemovalGuard(Arc::clone(self))
    }

    /// Records that names were removed from this folder, possibly not durably yet.
    pub(crate) fn was_removed_from(&self, folder: String) {
        locked(&self.removed_from).insert(folder);
    }

    /// Makes all removals durable. Folders whose sync fails are retried on the next call.
    pub(crate) fn sync_removals(&self) -> Result<()> {
        let mut folders = std::mem::take(&mut *locked(&self.removed_from));
        while let Some(folder) = folders.pop_first() {
            match self.disk.sync_folder(&folder) {
                Err(source) if source.kind() != io::ErrorKind::NotFound => {
                    let error = Error::io(format!("syncing {folder}"), source);
                    folders.insert(folder);
                    locked(&self.removed_from).append(&mut folders);
                    return Err(error);
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Registers a growing log segment, which is read through this file handle until [`SegmentSet::sealed`].
    pub(crate) fn register_unsealed(&self, header: SegmentHeader, file: Arc<dyn DiskFile>) {
        let open = Arc::new(OpenSegment::unsealed(
            header,
            SegmentClass::Log,
            file,
            Arc::clone(&self.clock),
            self.verification,
        ));
        // A reader continues to use the file after the segment was sealed.
        locked(&self.readers).entry(open.id()).or_default().push(reader_of(&open));
        self.growing.write().unwrap_or_else(PoisonError::into_inner).insert(open.id(), open);
    }

    /// Queues this log segment, whose groups end at `end`, for [`SegmentSet::take_unsealed`].
    pub(crate) fn seal_later(&self, header: SegmentHeader, end: u64) {
        locked(&self.unsealed).push((header, end));
    }

    /// Takes the log segments that are still to be sealed.
    pub(crate) fn take_unsealed(&self) -> Vec<(SegmentHeader, u64)> {
        std::mem::take(&mut locked(&self.unsealed))
    }

    /// Marks this log segment as sealed, so that its whole file is mapped from now on.
    pub(crate) fn sealed(&self, id: SegmentId) {
        // Dropped, which unmaps it, after the lock is released.
        let _open = self.growing.write().unwrap_or_else(PoisonError::into_inner).remove(&id);
    }

    /// Opens a segment for reading; `None` if it is not open and `mode` forbids waiting for the disk.
    ///
    /// `class` is [`SegmentClass::Log`] for every segment with records; the set knows which are compacted.
    pub(crate) fn open(
        &self,
        id: SegmentId,
        class: SegmentClass,
        mode: ReadMode,
    ) -> Result<Option<Arc<OpenSegment>>> {
        if let Some(open) = self.mapped.get(&id) {
            return Ok(Some(open));
        }
        if class == SegmentClass::Log {
            let growing = self.growing.read().unwrap_or_else(PoisonError::into_inner);
            if let Some(open) = growing.get(&id) {
                return Ok(Some(Arc::clone(open)));
            }
        }
        if mode == ReadMode::NonBlocking {
            return Ok(None);
        }
        let class = if class == SegmentClass::Log { self.class_of(id) } else { class };
        let _mapping = self.mapping.read().unwrap_or_else(PoisonError::into_inner);
        self.mapped
            .get_or_insert_with(&id, || {
                let open = OpenSegment::map(
                    self.disk.as_ref(),
                    id,
                    class,
                    self.store,
                    &self.clock,
                    self.verification,
                )?;
                let mut readers = locked(&self.readers);
                if readers.len() > 2 * limits::OPEN_SEGMENTS_MAX {
                    readers.retain(|_, of_one| of_one.iter().any(|it| it.strong_count() > 0));
                }
                let of_this = readers.entry(id).or_default();
                of_this.retain(|it| it.strong_count() > 0);
                let open = Arc::new(open);
                of_this.push(reader_of(&open));
                Ok(open)
            })
            .map(Some)
    }

    /// Runs a function on the file of a sealed segment that has no readers of its map and no holds on its name, and
    /// prevents new ones during the call. `None`, without calling it, if there are any.
    pub(crate) fn with_exclusive_file<T>(
        &self,
        id: SegmentId,
        work: impl FnOnce(&dyn DiskFile) -> Result<T>,
    ) -> Result<Option<T>> {
        let _mapping = self.mapping.write().unwrap_or_else(PoisonError::into_inner);
        if locked(&self.retirement).holders > 0 {
            return Ok(None);
        }
        self.mapped.remove(&id);
        let readers = locked(&self.readers).remove(&id).unwrap_or_default();
        if readers.iter().any(|it| it.strong_count() > 0) {
            locked(&self.readers).insert(id, readers);
            return Ok(None);
        }
        let path = id.path(self.class_of(id));
        let file = self.disk.open(&path);
        let file = file.map_err(|source| Error::io(format!("opening {path}"), source))?;
        work(file.as_ref()).map(Some)
    }

    /// Returns a cursor over the records of a log or compacted segment. A damaged footer is reported.
    pub(crate) fn records(&self, id: SegmentId) -> Result<RecordCursor> {
        let (file, path, header) = self.open_records(id)?;
        let cursor = RecordCursor::open(file, path, header, None)?;
        if let Some(error) = cursor.footer_damage() {
            self.reported_corruption.add(&error);
        }
        Ok(cursor)
    }

    /// Returns the header of a log or compacted segment.
    pub(crate) fn header(&self, id: SegmentId) -> Result<SegmentHeader> {
        self.open_records(id).map(|(_, _, header)| header)
    }

    fn open_records(&self, id: SegmentId) -> Result<(Arc<dyn DiskFile>, String, SegmentHeader)> {
        let class = self.class_of(id);
        let path = id.path(class);
        let file = self.disk.open(&path).map_err(|source| match source.kind() {
            io::ErrorKind::NotFound => Error::corrupt(path.clone(), 0, Malformed::Missing),
            _ => Error::io(format!("opening {path}"), source),
        })?;
        let header = read_header(file.as_ref(), &path, id, class, self.store)?;
        Ok((file, path, header))
    }

    /// Returns the corruption reported by reads.
    pub(crate) fn reported_corruption(&self) -> &Arc<ReportedCorruption> {
        &self.reported_corruption
    }

    /// Returns the body cache.
    pub(crate) fn body_cache(&self) -> &BodyCache {
        &self.body_cache
    }

    /// Resets the verified blocks of this segment, so that each is verified before it is next returned.
    pub(crate) fn forget_verified(&self, id: SegmentId) {
        if let Some(open) = self.mapped.peek(&id) {
            open.forget_verified();
        }
        let growing = self.growing.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(open) = growing.get(&id) {
            open.forget_verified();
        }
    }

    /// Returns the number of mapped segments.
    pub(crate) fn mapped_count(&self) -> usize {
        self.mapped.len()
    }

    fn new_header(&self, class: SegmentClass) -> Result<SegmentHeader> {
        let id = self.next_id.fetch_add(1, Ordering::SeqCst);
        let segment = SegmentId::new(id).ok_or(Error::TooLarge("segment ids"))?;
        Ok(SegmentHeader {
            store: self.store,
            segment,
            class,
            salt: self.rng.next_u64(),
            base_lsn: 0,
            predecessor: None,
            first_group: 0,
            previous_group: Checksum::default(),
            created_ms: self.clock.unix_ms(),
        })
    }
}

/// Weak reference that can be upgraded while the map of a segment, or the file of one without a map, is in use.
type Reader = Weak<dyn Send + Sync>;

/// Returns the weak reference of an open segment.
fn reader_of(open: &Arc<OpenSegment>) -> Reader {
    let in_use: Weak<OpenSegment> = Arc::downgrade(open);
    open.liveness_handle().unwrap_or(in_use)
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
