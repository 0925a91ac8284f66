//! Which segments exist, which are open, and how they come and go.
//!
//! Promises: an id is given out once in the life of an open store; a big segment that no record names is either in
//! flight or gone; a removed name is durably removed before a checkpoint stops looking for it.
//! Never here: what lies in a segment.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, Weak};

use quick_cache::sync::Cache;

use super::cursor::RecordCursor;
use super::kept::KeptBodies;
use super::open::{OpenSegment, Patience, Verification, read_header};
use super::retained::RetainedSegments;
use super::sightings::Sightings;
use crate::clock::Clock;
use crate::disk::{Disk, DiskFile};
use crate::entropy::Entropy;
use crate::error::{Error, Result};
use crate::format::{Checksum, Malformed, SegmentClass, SegmentHeader, SegmentId};
use crate::limits;

/// The segments of a store.
pub(crate) struct SegmentSet {
    disk: Arc<dyn Disk>,
    clock: Arc<dyn Clock>,
    entropy: Arc<dyn Entropy>,
    store: uuid::Uuid,
    next_id: AtomicU64,
    in_flight: Mutex<BTreeSet<SegmentId>>,
    growing: RwLock<BTreeMap<SegmentId, Arc<OpenSegment>>>,
    mapped: Cache<SegmentId, Arc<OpenSegment>>,
    /// The maps, and the files of growing segments, that may still be held by a reader.
    readers: Mutex<BTreeMap<SegmentId, Vec<Reader>>>,
    /// Read while a segment is mapped, written while one must not be.
    mapping: RwLock<()>,
    /// Which of the segments that hold records are compacted ones; the others are of the log.
    compacted: RwLock<BTreeSet<SegmentId>>,
    /// Log segments that recovery left unsealed, and where their groups end.
    unsealed: Mutex<Vec<(SegmentHeader, u64)>>,
    /// Folders of big segments whose own names are durable.
    named_folders: Mutex<BTreeSet<String>>,
    /// Folders from which names were removed since they were last synced.
    removed_from: Mutex<BTreeSet<String>>,
    sightings: Arc<Sightings>,
    kept_bodies: KeptBodies,
    verification: Verification,
    held: Mutex<Held>,
    pub(super) retained: RetainedSegments,
}

/// Whether names are held, and what was retired since.
#[derive(Default)]
struct Held {
    holders: usize,
    retired: BTreeSet<(SegmentId, SegmentClass)>,
}

/// While this is there, no name of a segment that was in use is removed, and no space of one is given back; what is
/// retired goes when the last one is dropped. After a crash before that, opening finds it as what it is: named by
/// nothing.
pub(crate) struct NamesHeld(Arc<SegmentSet>);

impl NamesHeld {
    /// What was retired and still has its name.
    pub(crate) fn retired(&self) -> BTreeSet<SegmentId> {
        locked(&self.0.held).retired.iter().map(|(id, _)| *id).collect()
    }
}

impl Drop for NamesHeld {
    fn drop(&mut self) {
        let mut held = locked(&self.0.held);
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
    /// The segments of the store with this id. Large objects that are gone can come back for so many milliseconds.
    pub(crate) fn new(
        disk: Arc<dyn Disk>,
        clock: Arc<dyn Clock>,
        entropy: Arc<dyn Entropy>,
        store: uuid::Uuid,
        verification: Verification,
        undelete_window_ms: u64,
    ) -> Self {
        Self {
            disk,
            clock,
            entropy,
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
            held: Mutex::default(),
            sightings: Arc::default(),
            kept_bodies: KeptBodies::default(),
            verification,
            retained: RetainedSegments::new(undelete_window_ms),
        }
    }

    /// The disk that the segments lie on.
    pub(crate) fn disk(&self) -> &dyn Disk {
        self.disk.as_ref()
    }

    /// Where time comes from.
    pub(crate) fn clock(&self) -> &dyn Clock {
        self.clock.as_ref()
    }

    /// The id of the store.
    pub(crate) fn store(&self) -> uuid::Uuid {
        self.store
    }

    /// Sees to it that no id up to and including this one is given out.
    pub(crate) fn skip_ids_through(&self, seen: u64) {
        self.next_id.fetch_max(seen.saturating_add(1), Ordering::SeqCst);
    }

    /// The id that the next new segment gets.
    pub(crate) fn next_id(&self) -> u64 {
        self.next_id.load(Ordering::SeqCst)
    }

    /// A big segment with an id from here on may be an orphan after a crash; one below is not.
    pub(crate) fn orphan_floor(&self) -> u64 {
        // In this order: an id that is taken in between is above the floor either way.
        let next = self.next_id();
        locked(&self.in_flight).first().map_or(next, |id| id.get().min(next))
    }

    /// Makes a spare log segment: its name and its space are durable, its header is blank.
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
                // What is left is a spare that recovery removes; the space should come back now.
                let _ = self.disk.remove(&path);
                Err(Error::io(format!("making {path}"), source))
            }
        }
    }

    /// Makes the file of a compacted segment; whoever fills it gives it its header. Nothing is in it before
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

    /// Records are to be found in this compacted segment from now on.
    pub(crate) fn add_compacted(&self, id: SegmentId) {
        self.compacted.write().unwrap_or_else(PoisonError::into_inner).insert(id);
    }

    /// The class of a segment that holds records.
    pub(crate) fn class_of(&self, id: SegmentId) -> SegmentClass {
        let compacted = self.compacted.read().unwrap_or_else(PoisonError::into_inner);
        if compacted.contains(&id) { SegmentClass::Compacted } else { SegmentClass::Log }
    }

    /// Whether this log segment still grows, or could not be sealed.
    pub(crate) fn is_growing(&self, id: SegmentId) -> bool {
        self.growing.read().unwrap_or_else(PoisonError::into_inner).contains_key(&id)
    }

    /// Makes the file of a big segment. Until it is committed or abandoned it is in flight.
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

    /// The header of a big segment whose file is still to be made, in a folder that is there. It is in flight from now
    /// on.
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

    /// A record in the log names this big segment now.
    pub(crate) fn commit_big(&self, id: SegmentId) {
        locked(&self.in_flight).remove(&id);
    }

    /// Nobody will name this big segment: removes it at once, since nobody can hold a name that never was in use.
    pub(crate) fn abandon_big(&self, id: SegmentId) {
        locked(&self.in_flight).insert(id);
        self.remove_name(id, SegmentClass::Big);
    }

    /// Removes a segment's name; readers that have it open go on. What cannot be removed stays in flight, so that the
    /// next opening looks for it.
    pub(crate) fn retire(&self, id: SegmentId, class: SegmentClass) {
        if class == SegmentClass::Compacted {
            self.compacted.write().unwrap_or_else(PoisonError::into_inner).remove(&id);
        }
        let mut held = locked(&self.held);
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
        // After the name is gone, so that nobody maps the file again for nothing.
        self.mapped.remove(&id);
        // One that is gone already may have been removed by a process that was killed before it synced.
        if removed.map_or_else(|error| error.kind() == io::ErrorKind::NotFound, |()| true) {
            self.was_removed_from(id.folder(class));
            locked(&self.in_flight).remove(&id);
        } else {
            locked(&self.in_flight).insert(id);
        }
    }

    /// Keeps the names of all segments, and all that is in them, until the answer is dropped. Waits for whoever gives
    /// space back.
    pub(crate) fn hold_names(self: &Arc<Self>) -> NamesHeld {
        let _mapping = self.mapping.read().unwrap_or_else(PoisonError::into_inner);
        locked(&self.held).holders += 1;
        NamesHeld(Arc::clone(self))
    }

    /// Names were removed from this folder, and perhaps not durably yet.
    pub(crate) fn was_removed_from(&self, folder: String) {
        locked(&self.removed_from).insert(folder);
    }

    /// Makes all removals durable. Those that this fails for are not durable yet: the next call tries them again.
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

    /// Reads of this log segment go to the file until [`SegmentSet::sealed`].
    pub(crate) fn add_growing(&self, header: SegmentHeader, file: Arc<dyn DiskFile>) {
        let open = Arc::new(OpenSegment::growing(
            header,
            SegmentClass::Log,
            file,
            Arc::clone(&self.clock),
            self.verification,
        ));
        // Whoever reads it goes on reading the file after it was sealed.
        let reader: Weak<OpenSegment> = Arc::downgrade(&open);
        locked(&self.readers).entry(open.id()).or_default().push(reader);
        self.growing.write().unwrap_or_else(PoisonError::into_inner).insert(open.id(), open);
    }

    /// This log segment, whose groups end at `end`, is to be sealed by whoever asks [`SegmentSet::take_unsealed`].
    pub(crate) fn seal_later(&self, header: SegmentHeader, end: u64) {
        locked(&self.unsealed).push((header, end));
    }

    /// The log segments that are still to be sealed.
    pub(crate) fn take_unsealed(&self) -> Vec<(SegmentHeader, u64)> {
        std::mem::take(&mut locked(&self.unsealed))
    }

    /// This log segment changes no more: from now on it is mapped.
    pub(crate) fn sealed(&self, id: SegmentId) {
        self.growing.write().unwrap_or_else(PoisonError::into_inner).remove(&id);
    }

    /// Opens a segment for reading. None: it is not open, and `patience` forbids to wait for the disk.
    ///
    /// `class` is [`SegmentClass::Log`] for every segment that holds records: which are compacted is known here.
    pub(crate) fn open(
        &self,
        id: SegmentId,
        class: SegmentClass,
        patience: Patience,
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
        if patience == Patience::Refuse {
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
                of_this.extend(open.held());
                Ok(Arc::new(open))
            })
            .map(Some)
    }

    /// Does something to the file of a sealed segment that nobody reads from a map and nobody holds the name of, and
    /// sees to it that nobody begins to meanwhile. None, with nothing done, while somebody does.
    pub(crate) fn while_unread<T>(
        &self,
        id: SegmentId,
        work: impl FnOnce(&dyn DiskFile) -> Result<T>,
    ) -> Result<Option<T>> {
        let _mapping = self.mapping.write().unwrap_or_else(PoisonError::into_inner);
        if locked(&self.held).holders > 0 {
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

    /// The records of a segment of the log, or of a compacted one, in order. A damaged footer is told of.
    pub(crate) fn records(&self, id: SegmentId) -> Result<RecordCursor> {
        let (file, path, header) = self.open_records(id)?;
        let cursor = RecordCursor::open(file, path, header, None)?;
        if let Some(error) = cursor.footer_damage() {
            self.sightings.add(&error);
        }
        Ok(cursor)
    }

    /// The header of a segment of the log, or of a compacted one.
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

    /// Damage that reads have met.
    pub(crate) fn sightings(&self) -> &Arc<Sightings> {
        &self.sightings
    }

    /// What openings of bodies found out.
    pub(crate) fn kept_bodies(&self) -> &KeptBodies {
        &self.kept_bodies
    }

    /// Every block of this segment is verified again before it is next handed out.
    pub(crate) fn forget_verified(&self, id: SegmentId) {
        if let Some(open) = self.mapped.peek(&id) {
            open.forget_verified();
        }
        let growing = self.growing.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(open) = growing.get(&id) {
            open.forget_verified();
        }
    }

    /// How many segments are mapped.
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
            salt: self.entropy.number(),
            base_lsn: 0,
            predecessor: None,
            first_group: 0,
            previous_group: Checksum::default(),
            created_ms: self.clock.unix_ms(),
        })
    }
}

/// Can be upgraded as long as somebody reads from a map, or from a file that grew.
type Reader = Weak<dyn Send + Sync>;

/// The folder of all folders of big segments.
pub(crate) const BIG_FOLDER: &str = "big";
/// The folder of compacted segments.
pub(crate) const COMPACTED_FOLDER: &str = "compacted";
/// The folder of the log.
pub(crate) const LOG_FOLDER: &str = "log";

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
