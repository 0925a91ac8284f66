//! Move of a file inside its bucket.
//!
//! 1. The current version is looked up, and its body staged again: a body belongs to its record, to whose position its
//!    checksums are bound.
//! 2. One batch puts it under the new name and deletes the old one, with the preconditions that the old name still has
//!    that version, and that the new one is free, if required.
//! 3. After a conflict the files are looked up again.
//!
//! Guarantees: the bytes exist under exactly one of the names at every moment; memory is bounded by one chunk of the
//! body. Content type, attributes and the creation time are preserved. Non-goals: folders.

use std::ops::ControlFlow;
use std::sync::Arc;

use catalog::claims::Claim;
use catalog::{Bucket, EventKind, ObjectEvent, OnConflict, StoredAmount};
use engine::{
    Batch, Conflict, Error, Object, ObjectKey, ObjectName, Precondition, PutOptions, StagedBody,
};
use protocol::error::ApiError;
use protocol::object_path::check_writable;
use usage::task::blocking;

use super::{CancelCheck, bucket_batch, claim_free_key, commit_moves, find_object};
use crate::Context;
use crate::limits;
use crate::services::StoredFile;
use crate::thumbnail_object::{
    delete_thumbnail, is_thumbnail_of, move_thumbnail, thumbnail_object_name,
};

/// Result of moving several files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct MoveReport {
    pub(crate) files: u64,
    pub(crate) bytes: u64,
    /// Files whose names are in use, or that changed concurrently.
    pub(crate) skipped: u64,
}

/// Version of a file, with copies of its body and thumbnail.
struct CopiedVersion {
    object: Object,
    body: StagedBody,
    /// Thumbnail, as stored.
    thumbnail: Option<(Object, StagedBody)>,
}

/// Batch that moves one file.
struct PlannedMove {
    batch: Batch,
    events: [ObjectEvent; 2],
    renamed: bool,
    /// Held until the batch is decided.
    _claims: Vec<Claim<ObjectName>>,
}

/// Result of an attempt.
enum MoveOutcome {
    Moved(StoredFile),
    /// The name is in use, and not to be replaced.
    NameInUse,
    /// The file has changed, or was deleted.
    Changed,
}

/// Moves a file. If it changes concurrently, its newest version is moved.
pub async fn move_file(
    context: &Arc<Context>,
    bucket: &Bucket,
    from: &ObjectKey,
    to: &ObjectKey,
    on_conflict: OnConflict,
) -> Result<StoredFile, ApiError> {
    let _permit = context.copy_permit().await?;
    let name = ObjectName::new(bucket.name.clone(), from.clone());
    let draining = context.clone();
    let is_stopped: CancelCheck = Arc::new(move || draining.is_draining());
    for _ in 0..limits::MOVE_TRIES_MAX {
        let object = find_object(&context.store, &name).await?;
        let object = object.ok_or_else(ApiError::file_not_found)?;
        if object.is_derived() {
            return Err(ApiError::bad_request(
                "Thumbnails cannot be moved on their own: move the original file",
            ));
        }
        if on_conflict == OnConflict::Refuse && object_exists(context, bucket, to).await? {
            return Err(ApiError::file_exists());
        }
        match move_version(context, bucket, object, to, on_conflict, &is_stopped).await? {
            MoveOutcome::Moved(moved) => return Ok(moved),
            MoveOutcome::NameInUse => return Err(ApiError::file_exists()),
            MoveOutcome::Changed => {}
        }
    }
    Err(ApiError::conflict("The file kept changing: try again"))
}

/// Moves versions of files, in few batches. Skips files that have changed.
pub(crate) async fn move_versions(
    context: &Arc<Context>,
    bucket: &Bucket,
    files: Vec<(Object, ObjectKey)>,
    on_conflict: OnConflict,
    is_stopped: &CancelCheck,
) -> Result<MoveReport, ApiError> {
    let mut report = MoveReport::default();
    let mut pending: Vec<(Object, ObjectKey)> = Vec::new();
    let mut pending_bytes = 0;
    for (object, to) in files {
        if is_stopped() {
            break;
        }
        if check_writable(&to).is_err()
            || (on_conflict == OnConflict::Refuse && object_exists(context, bucket, &to).await?)
        {
            report.skipped += 1;
            continue;
        }
        let bytes = object.bytes();
        let is_full = pending.len() == limits::MOVE_BATCH_FILES_MAX
            || pending_bytes + bytes > limits::MOVE_BATCH_BYTES_MAX;
        if is_full && !pending.is_empty() {
            let files = std::mem::take(&mut pending);
            move_together(context, bucket, files, on_conflict, is_stopped, &mut report).await?;
            pending_bytes = 0;
        }
        pending_bytes += bytes;
        pending.push((object, to));
    }
    if !pending.is_empty() && !is_stopped() {
        move_together(context, bucket, pending, on_conflict, is_stopped, &mut report).await?;
    }
    Ok(report)
}

/// Moves files in one batch, or each on its own after a conflict.
async fn move_together(
    context: &Arc<Context>,
    bucket: &Bucket,
    files: Vec<(Object, ObjectKey)>,
    on_conflict: OnConflict,
    is_stopped: &CancelCheck,
    report: &mut MoveReport,
) -> Result<(), ApiError> {
    let bytes = |files: &[(Object, ObjectKey)]| files.iter().map(|(it, _)| it.bytes()).sum::<u64>();
    if files.len() > 1 {
        match try_together(context, bucket, &files, on_conflict, is_stopped).await? {
            true => {
                report.files += files.len() as u64;
                report.bytes += bytes(&files);
                return Ok(());
            }
            false => tracing::debug!("concurrent changes during move; retrying one file at a time"),
        }
    }
    for (object, to) in files {
        if is_stopped() {
            return Ok(());
        }
        let bytes = object.bytes();
        match move_version(context, bucket, object, &to, on_conflict, is_stopped).await? {
            MoveOutcome::Moved(_) => {
                report.files += 1;
                report.bytes += bytes;
            }
            MoveOutcome::NameInUse | MoveOutcome::Changed => report.skipped += 1,
        }
    }
    Ok(())
}

/// Tries to move all files in one batch. Returns whether they were moved; otherwise none was.
async fn try_together(
    context: &Arc<Context>,
    bucket: &Bucket,
    files: &[(Object, ObjectKey)],
    on_conflict: OnConflict,
    is_stopped: &CancelCheck,
) -> Result<bool, ApiError> {
    let mut batch = bucket_batch(bucket)?;
    let mut events = Vec::new();
    let mut claims = Vec::new();
    let mut moved = StoredAmount::default();
    for (object, to) in files {
        let Some(copied) = copy(context, object.clone(), is_stopped).await? else {
            return Ok(false);
        };
        let Some(proposed) = propose_move(context, bucket, &copied, to, on_conflict).await? else {
            return Ok(false);
        };
        batch = batch.and(proposed.batch);
        events.extend(proposed.events);
        claims.push(proposed._claims);
        moved.objects += 1;
        moved.bytes += object.bytes();
    }
    match commit_moves(context, bucket, batch, events, moved).await? {
        Ok(_) => Ok(true),
        Err(Error::Conflict(Conflict::FactMissing(_))) => Err(ApiError::bucket_not_found()),
        // The copies, or the thumbnails and events with them, are too many for one batch.
        Err(Error::Conflict(_) | Error::TooLarge(_)) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Moves one version of a file.
async fn move_version(
    context: &Arc<Context>,
    bucket: &Bucket,
    object: Object,
    to: &ObjectKey,
    on_conflict: OnConflict,
    is_stopped: &CancelCheck,
) -> Result<MoveOutcome, ApiError> {
    let from = object.name().clone();
    let Some(copied) = copy(context, object, is_stopped).await? else {
        return Ok(MoveOutcome::Changed);
    };
    for _ in 0..catalog::limits::NAME_TRIES_MAX {
        let Some(proposed) = propose_move(context, bucket, &copied, to, on_conflict).await? else {
            return Ok(MoveOutcome::NameInUse);
        };
        let batch = bucket_batch(bucket)?.and(proposed.batch);
        let moved = StoredAmount { objects: 1, bytes: copied.object.bytes() };
        match commit_moves(context, bucket, batch, proposed.events.into(), moved).await? {
            Ok(committed) => {
                // The file comes first among the objects of the batch.
                let object = committed.objects.into_iter().next();
                let object = object.ok_or_else(|| ApiError::internal("a move put nothing"))?;
                return Ok(MoveOutcome::Moved(StoredFile { object, renamed: proposed.renamed }));
            }
            Err(Error::Conflict(Conflict::FactMissing(_))) => {
                return Err(ApiError::bucket_not_found());
            }
            Err(Error::Conflict(Conflict::KeyChanged(changed) | Conflict::KeyMissing(changed)))
                if changed == from =>
            {
                return Ok(MoveOutcome::Changed);
            }
            // The new name, or that of a thumbnail, was used concurrently.
            Err(Error::Conflict(_)) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Err(ApiError::conflict("Too many concurrent operations on this name: try again"))
}

/// Returns whether a file with this key exists.
pub(super) async fn object_exists(
    context: &Arc<Context>,
    bucket: &Bucket,
    key: &ObjectKey,
) -> Result<bool, ApiError> {
    let name = ObjectName::new(bucket.name.clone(), key.clone());
    Ok(find_object(&context.store, &name).await?.is_some())
}

/// Copies the body of a version, and its thumbnail. `None` if the file has changed.
async fn copy(
    context: &Arc<Context>,
    object: Object,
    is_stopped: &CancelCheck,
) -> Result<Option<CopiedVersion>, ApiError> {
    let (store, is_stopped) = (context.store.clone(), is_stopped.clone());
    let copied = blocking(move || {
        let mut watch = |_| match is_stopped() {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        };
        let body = store.stage_copy(&object, &mut watch)?;
        let mut thumbnail = None;
        if let Ok(name) = thumbnail_object_name(object.name())
            && let Some(there) =
                store.get(&name)?.filter(|it| is_thumbnail_of(it, &object.name().key))
        {
            match store.stage_copy(&there, &mut watch) {
                Ok(body) => thumbnail = Some((there, body)),
                // The thumbnail is optional: it was deleted concurrently, or is corrupt.
                Err(Error::Conflict(_) | Error::Corrupt(_)) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(CopiedVersion { object, body, thumbnail })
    });
    match copied.await {
        Ok(copied) => Ok(Some(copied)),
        Err(Error::Conflict(Conflict::KeyChanged(_))) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Builds the batch that moves a file, given the current objects. `None` if the name is in use.
async fn propose_move(
    context: &Arc<Context>,
    bucket: &Bucket,
    copied: &CopiedVersion,
    to: &ObjectKey,
    on_conflict: OnConflict,
) -> Result<Option<PlannedMove>, ApiError> {
    let CopiedVersion { object, body, thumbnail } = copied;
    let (context, bucket, to) = (context.clone(), bucket.name.clone(), to.clone());
    let (object, body, thumbnail) = (object.clone(), body.clone(), thumbnail.clone());
    let decide = move || {
        let (mut key, mut renamed, mut claims) = (to, false, Vec::new());
        match on_conflict {
            OnConflict::Refuse => {
                if context.store.get(&ObjectName::new(bucket.clone(), key.clone()))?.is_some() {
                    return Ok(None);
                }
            }
            OnConflict::Rename => {
                let proposal;
                (proposal, claims) = claim_free_key(&context, &bucket, &key)?;
                (key, renamed) = (proposal.key, proposal.renamed);
            }
            OnConflict::Overwrite => {}
        }
        let (from, name) = (object.name(), ObjectName::new(bucket, key));
        let options = PutOptions {
            content_type: object.content_type().to_owned(),
            attributes: object.attributes().to_vec(),
            derived: false,
            created_ms: Some(object.created_ms()),
        };
        let mut batch = Batch::new().require(Precondition::KeyHasLsn(from.clone(), object.lsn()));
        if on_conflict != OnConflict::Overwrite {
            batch = batch.require(Precondition::KeyAbsent(name.clone()));
        }
        let created = ObjectEvent::created(
            EventKind::CreatedByCopy,
            name.key.clone(),
            object.bytes(),
            object.etag(),
            options.content_type.clone(),
        );
        batch = batch.put(name.clone(), body, options).delete(from.clone());
        batch = match (thumbnail, thumbnail_object_name(&name)) {
            (Some((old, body)), Ok(target)) if is_free_for(&context, &target, &old, &name.key)? => {
                move_thumbnail(batch, &old, &name.key, target, body)
            }
            _ => delete_thumbnail(delete_thumbnail(batch, from), &name),
        };
        let events = [ObjectEvent::removed(from.key.clone()), created];
        Ok(Some(PlannedMove { batch, events, renamed, _claims: claims }))
    };
    blocking(decide).await
}

/// Returns whether a thumbnail may have this name: it is free, or held by the thumbnail to replace.
fn is_free_for(
    context: &Arc<Context>,
    target: &ObjectName,
    old: &Object,
    file: &ObjectKey,
) -> Result<bool, ApiError> {
    let there = context.store.get(target)?;
    Ok(there.is_none_or(|there| is_thumbnail_of(&there, file) || there.lsn() == old.lsn()))
}
