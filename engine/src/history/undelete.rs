//! Restores deleted objects and earlier versions.
//!
//! Two scans of the log find the newest intact version of each requested object; then each is put like an
//! ordinary object, with the precondition that its name was not overwritten since.
//!
//! Guarantees: content type, attributes and creation time are preserved, the modification time is now; a version is
//! selected by its verified body, and verified again when it is read. A cancellation or crash leaves some objects
//! restored and the others unchanged.
//! Non-goals: listing versions.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry as Slot;
use std::ops::ControlFlow;

use super::RestoreError;
use super::deleted_filter::{DeletedFilter, LsnRange};
use super::log_scan::{LogReader, LogRecord, LogScan, read_by_footer, unrecoverable, verify};
use crate::commit::{Batch, CommitInfo, Etag, Precondition, PutOptions, is_move};
use crate::error::{Error, Result};
use crate::format::{Entry, EntryContent, HEAD_BYTES_MAX, ObjectMeta, RecordOp, SegmentClass};
use crate::limits;
use crate::name::{BucketName, FolderKey, ObjectName};
use crate::progress::{ProgressCallback, WorkProgress};
use crate::segment::{Body, ReadMode};
use crate::upload::{StagedBody, Upload};

/// Objects to restore.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UndeleteRequest {
    /// Newest intact version of one object that was deleted, or whose content is recorded as lost.
    Object(ObjectName),
    /// One version of an object, which replaces the current version. Restoring the current version itself is rejected
    /// unless it is unreadable.
    Version {
        /// Name of the object.
        name: ObjectName,
        /// LSN of the version, as in [`Version::lsn`](super::Version::lsn).
        lsn: u64,
    },
    /// Newest intact version of each object in a folder and its subfolders that was deleted since a given time and does
    /// not exist.
    Folder {
        /// Bucket of the folder.
        bucket: BucketName,
        /// Folder of the objects; the root is the whole bucket.
        folder: FolderKey,
        /// Earliest deletion time, in milliseconds since 1970.
        since_ms: u64,
    },
}

/// Report of a restore.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UndeleteReport {
    /// Restored objects, ordered by name.
    pub restored: Vec<RestoredObject>,
    /// Objects that were not restored, with the reason.
    pub failed: Vec<(ObjectName, RestoreError)>,
}

/// Restored object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RestoredObject {
    /// Name of the object.
    pub name: ObjectName,
    /// LSN of the restored version.
    pub lsn: u64,
    /// Reason why the version newer than the restored one could not be restored, if there was one.
    pub newer_unrecoverable: Option<RestoreError>,
}

/// Dependencies for putting objects again.
pub(crate) struct RestoreContext<'a> {
    pub(crate) upload: &'a dyn Fn() -> Upload,
    pub(crate) commit: &'a dyn Fn(Batch) -> Result<CommitInfo>,
    /// Returns operations to add to the batch that puts an object.
    pub(crate) along: &'a dyn Fn(&ObjectName) -> Batch,
    /// Maximum batch size in bytes.
    pub(crate) batch_bytes_max: u64,
}

/// Restores the requested objects, as far as possible.
pub(crate) fn undelete(
    log: &LogReader<'_>,
    put_back: &RestoreContext<'_>,
    request: &UndeleteRequest,
    watch: &mut ProgressCallback<'_>,
) -> Result<UndeleteReport> {
    let mut undeleted = UndeleteReport::default();
    let mut wanted = match request {
        UndeleteRequest::Object(name) => candidate_for_object(log, name, None, &mut undeleted)?,
        UndeleteRequest::Version { name, lsn } => {
            candidate_for_object(log, name, Some(*lsn), &mut undeleted)?
        }
        UndeleteRequest::Folder { bucket, folder, since_ms } => {
            let (bucket, folder) = (bucket.clone(), folder.clone());
            let asked = DeletedFilter { bucket, folder, since_ms: *since_ms, span: LsnRange::ALL };
            candidates_in_folder(log, &asked, watch)?
        }
    };
    if wanted.is_empty() {
        return Ok(undeleted);
    }
    LogScan::new(log).run(watch, &mut |found| choose(log, &mut wanted, found))?;
    wanted.retain(|_, wanted| !wanted.is_moved);
    restore_all(log, put_back, wanted, &mut undeleted, watch)?;
    undeleted.failed.sort_by(|one, other| one.0.cmp(&other.0));
    Ok(undeleted)
}

/// Object to be restored, with the state of the search.
#[derive(Default)]
pub(super) struct RestoreCandidate {
    /// LSN of the requested version, if only one is acceptable.
    pub(super) lsn: Option<u64>,
    /// Exclusive lower bound of the LSNs of puts.
    pub(super) after_lsn: u64,
    /// LSN of the last deletion.
    pub(super) deleted_lsn: u64,
    /// Content that the name currently has.
    pub(super) current: Option<Etag>,
    /// Metadata of the object put under another name directly before the deletion.
    pub(super) move_target: Option<ObjectMeta>,
    /// Whether the object was moved there.
    pub(super) is_moved: bool,
    /// Whether the log contains its deletion.
    pub(super) was_deleted: bool,
    /// Newest intact version.
    pub(super) chosen: Option<Entry>,
    /// Newest damaged version, with the reason.
    pub(super) lost: Option<(u64, RestoreError)>,
}

impl RestoreCandidate {
    /// Returns the reason why nothing can be restored, if no version was found.
    pub(super) fn unrecoverable_reason(&self) -> RestoreError {
        match self.lost {
            Some((_, why)) => why,
            None if self.was_deleted && self.lsn.is_none() => RestoreError::Compacted,
            None => RestoreError::NotFound,
        }
    }
}

fn candidate_for_object(
    log: &LogReader<'_>,
    name: &ObjectName,
    lsn: Option<u64>,
    undeleted: &mut UndeleteReport,
) -> Result<BTreeMap<ObjectName, RestoreCandidate>> {
    let entry = (log.entry)(name)?;
    let is_there = match &entry {
        Some(entry) => match lsn {
            None => !matches!(entry.content, EntryContent::Lost { .. }),
            Some(lsn) => lsn == entry.lsn && can_be_opened(log, name, entry)?,
        },
        None => false,
    };
    if is_there {
        undeleted.failed.push((name.clone(), RestoreError::NotDeleted));
        return Ok(BTreeMap::new());
    }
    let current = entry.map(|entry| Etag::of_hash(&entry.meta.hash));
    Ok([(name.clone(), RestoreCandidate { lsn, current, ..RestoreCandidate::default() })].into())
}

pub(super) fn candidates_in_folder(
    log: &LogReader<'_>,
    asked: &DeletedFilter,
    watch: &mut ProgressCallback<'_>,
) -> Result<BTreeMap<ObjectName, RestoreCandidate>> {
    let DeletedFilter { bucket, folder, since_ms, span } = asked;
    let mut wanted: BTreeMap<ObjectName, RestoreCandidate> = BTreeMap::new();
    LogScan::new(log).run(watch, &mut |found| {
        let RecordOp::Delete { name, deleted_ms } = &found.record().op else { return Ok(()) };
        let is_inside = name.bucket == *bucket && name.key.as_str().starts_with(folder.as_str());
        let lsn = found.record().lsn;
        let is_old = *deleted_ms < *since_ms || lsn <= span.after_lsn;
        if !is_inside || is_old || (log.entry)(name)?.is_some() {
            return Ok(());
        }
        match wanted.entry(name.clone()) {
            Slot::Vacant(slot) => {
                let (after_lsn, moved) = (span.after_lsn, found.move_target().cloned());
                slot.insert(RestoreCandidate {
                    was_deleted: true,
                    after_lsn,
                    deleted_lsn: lsn,
                    move_target: moved,
                    ..RestoreCandidate::default()
                });
            }
            Slot::Occupied(slot) => {
                let wanted = slot.into_mut();
                if wanted.deleted_lsn < lsn {
                    (wanted.deleted_lsn, wanted.move_target) = (lsn, None);
                }
                // A record and its copy may both exist, and only one of them next to the other half of a move.
                if wanted.deleted_lsn == lsn && wanted.move_target.is_none() {
                    wanted.move_target = found.move_target().cloned();
                }
            }
        }
        match wanted.len() > limits::VERSIONS_MAX {
            true => Err(Error::TooLarge("at most 100,000 objects are restored at once")),
            false => Ok(()),
        }
    })?;
    // An object that was deleted again later is outside of the range.
    wanted.retain(|_, wanted| wanted.deleted_lsn <= span.through_lsn);
    Ok(wanted)
}

/// Checks whether a record is a version to be restored.
pub(super) fn choose(
    log: &LogReader<'_>,
    wanted: &mut BTreeMap<ObjectName, RestoreCandidate>,
    found: &LogRecord<'_>,
) -> Result<()> {
    let lsn = found.record().lsn;
    match &found.record().op {
        RecordOp::Delete { name, .. } => {
            if let Some(wanted) = wanted.get_mut(name) {
                wanted.was_deleted = true;
            }
        }
        RecordOp::Put { name, meta, content } => {
            let Some(wanted) = wanted.get_mut(name) else { return Ok(()) };
            let moved = wanted.move_target.as_ref();
            wanted.is_moved |= moved.is_some_and(|put| is_move(put, meta));
            let is_older = wanted.chosen.as_ref().is_some_and(|chosen| chosen.lsn >= lsn);
            let is_meant = wanted.lsn.is_none_or(|only| only == lsn) && lsn > wanted.after_lsn;
            if is_older || !is_meant {
                return Ok(());
            }
            match verify(log, found)? {
                Ok(()) => {
                    let (record, meta) = (found.location(), meta.clone());
                    let content = EntryContent::of(content);
                    wanted.chosen = Some(Entry { lsn, record, meta, content });
                }
                Err(why) if wanted.lost.is_none_or(|lost| lost.0 < lsn) => {
                    wanted.lost = Some((lsn, why));
                }
                Err(_) => {}
            }
        }
        _ => {}
    }
    Ok(())
}

/// Object being restored.
struct StagedRestore {
    restored: RestoredObject,
    batch: Batch,
    bytes: u64,
}

fn restore_all(
    log: &LogReader<'_>,
    put_back: &RestoreContext<'_>,
    wanted: BTreeMap<ObjectName, RestoreCandidate>,
    undeleted: &mut UndeleteReport,
    watch: &mut ProgressCallback<'_>,
) -> Result<()> {
    let total_items = wanted.len() as u64;
    let mut progress = WorkProgress { total_items, ..WorkProgress::default() };
    let bytes_max = RESTORE_BATCH_BYTES_MAX.min(put_back.batch_bytes_max);
    let mut waiting: Vec<StagedRestore> = Vec::new();
    let mut waiting_bytes = 0;
    for (name, wanted) in wanted {
        if watch(progress) == ControlFlow::Break(()) {
            return Err(Error::Cancelled);
        }
        progress.done_items += 1;
        match prepare(log, put_back, &name, wanted)? {
            Ok(returning) => {
                if waiting_bytes + returning.bytes > bytes_max
                    || waiting.len() == RESTORE_BATCH_OBJECTS_MAX
                {
                    commit_batch(put_back, std::mem::take(&mut waiting), undeleted)?;
                    waiting_bytes = 0;
                }
                progress.done_bytes += returning.bytes;
                waiting_bytes += returning.bytes;
                waiting.push(returning);
            }
            Err(why) => undeleted.failed.push((name, why)),
        }
    }
    commit_batch(put_back, waiting, undeleted)
}

/// Reads the chosen version and creates the batch that puts it.
fn prepare(
    log: &LogReader<'_>,
    put_back: &RestoreContext<'_>,
    name: &ObjectName,
    wanted: RestoreCandidate,
) -> Result<Result<StagedRestore, RestoreError>> {
    let Some(entry) = wanted.chosen else { return Ok(Err(wanted.unrecoverable_reason())) };
    let staged = match stage(log, put_back.upload, name, &entry)? {
        Ok(staged) => staged,
        Err(why) => return Ok(Err(why)),
    };
    let options = PutOptions {
        content_type: entry.meta.content_type,
        attributes: entry.meta.attributes,
        derived: entry.meta.flags.derived,
        created_ms: Some(entry.meta.created_ms),
    };
    let unchanged = match wanted.current {
        Some(etag) => Precondition::KeyHasEtag(name.clone(), etag),
        None => Precondition::KeyAbsent(name.clone()),
    };
    let newer = wanted.lost.filter(|lost| lost.0 > entry.lsn).map(|lost| lost.1);
    Ok(Ok(StagedRestore {
        restored: RestoredObject { name: name.clone(), lsn: entry.lsn, newer_unrecoverable: newer },
        bytes: staged.inline_bytes() + HEAD_BYTES_MAX as u64,
        batch: (put_back.along)(name).put(name.clone(), staged, options).require(unchanged),
    }))
}

/// Uploads the body of a version again, if it still exists.
pub(crate) fn stage(
    log: &LogReader<'_>,
    upload: &dyn Fn() -> Upload,
    name: &ObjectName,
    entry: &Entry,
) -> Result<Result<StagedBody, RestoreError>> {
    match copy(log, upload, name, entry) {
        Err(error) => unrecoverable(error).map(Err),
        copied => copied,
    }
}

fn copy(
    log: &LogReader<'_>,
    begin: &dyn Fn() -> Upload,
    name: &ObjectName,
    entry: &Entry,
) -> Result<Result<StagedBody, RestoreError>> {
    let mut upload = begin();
    let copied = open(log, name, entry).and_then(|body| {
        while upload.bytes() < body.bytes() {
            upload.push(&body.read(upload.bytes()..body.bytes())?)?;
        }
        Ok(())
    });
    match copied {
        Ok(()) => {}
        // Its head is damaged, and the footer may have a copy; or its space was reclaimed since.
        Err(Error::Corrupt(corruption)) => match read_by_footer(log, entry)? {
            Some(Ok(body)) => {
                upload = begin();
                upload.push(&body)?;
            }
            Some(Err(why)) => return Ok(Err(why)),
            None => return Err(Error::Corrupt(corruption)),
        },
        Err(other) => return Err(other),
    }
    upload.finish().map(Ok)
}

fn open(log: &LogReader<'_>, name: &ObjectName, entry: &Entry) -> Result<Body> {
    let (id, class) = match entry.content {
        EntryContent::Inline { .. } | EntryContent::Lost { .. } => {
            (entry.record.segment, SegmentClass::Log)
        }
        EntryContent::Big { segment, .. } => (segment, SegmentClass::Big),
    };
    let segment = log.segments.open(id, class, ReadMode::Blocking)?.ok_or(Error::Closed)?;
    let kept = log.segments.body_cache();
    Body::open(segment, name, entry, kept, ReadMode::Blocking)?.ok_or(Error::Closed)
}

/// Returns whether a reader can open it up to the first byte.
fn can_be_opened(log: &LogReader<'_>, name: &ObjectName, entry: &Entry) -> Result<bool> {
    match open(log, name, entry) {
        Ok(_) => Ok(true),
        Err(Error::Corrupt(_)) => Ok(false),
        Err(other) => Err(other),
    }
}

/// Puts some objects in one batch; if one of them can no longer be put, each in a separate batch.
fn commit_batch(
    put_back: &RestoreContext<'_>,
    waiting: Vec<StagedRestore>,
    undeleted: &mut UndeleteReport,
) -> Result<()> {
    let together = waiting.iter().fold(Batch::new(), |mut all, returning| {
        all.operations.extend(returning.batch.operations.iter().cloned());
        all.preconditions.extend(returning.batch.preconditions.iter().cloned());
        all
    });
    match (put_back.commit)(together) {
        Ok(_) => undeleted.restored.extend(waiting.into_iter().map(|it| it.restored)),
        Err(Error::Conflict(_)) => {
            for StagedRestore { restored, batch, .. } in waiting {
                match (put_back.commit)(batch) {
                    Ok(_) => undeleted.restored.push(restored),
                    Err(Error::Conflict(_)) => {
                        undeleted.failed.push((restored.name, RestoreError::Overwritten));
                    }
                    Err(other) => return Err(other),
                }
            }
        }
        Err(other) => return Err(other),
    }
    Ok(())
}

/// Maximum number of objects restored in one batch.
const RESTORE_BATCH_OBJECTS_MAX: usize = 128;
/// Approximate maximum number of bytes restored in one batch.
const RESTORE_BATCH_BYTES_MAX: u64 = 4 << 20;
