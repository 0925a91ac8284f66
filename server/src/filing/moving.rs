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

use catalog::claims::Claim;
use catalog::{Bucket, EventKind, ObjectEvent, OnConflict, StoredAmount};
use engine::{
    Batch, Conflict, Error, Object, ObjectKey, ObjectName, Precondition, PutOptions, StagedBody,
};
use jobs::thumbnail_object::{
    delete_thumbnail, is_thumbnail_of, move_thumbnail, thumbnail_object_name,
};
use protocol::error::ApiError;
use protocol::file_name::ConflictRule;
use protocol::object_path::check_writable;
use usage::task::blocking;

use super::{CancelCheck, bucket_batch, commit_moves};
use crate::limits;
use crate::state::AppState;

/// Moved file.
pub struct MovedFile {
    pub object: Object,
    /// Whether the wanted name was taken.
    pub renamed: bool,
}

/// Result of moving several files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MoveReport {
    pub files: u64,
    pub bytes: u64,
    /// Files whose names are taken, or that changed concurrently.
    pub skipped: u64,
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
    happenings: [ObjectEvent; 2],
    renamed: bool,
    /// Held until the batch is decided.
    _claims: Vec<Claim<ObjectName>>,
}

/// Result of an attempt.
enum MoveOutcome {
    Moved(MovedFile),
    /// The name is taken, and not to be replaced.
    Taken,
    /// The file has changed, or was deleted.
    Changed,
}

/// Moves a file. If it changes concurrently, its newest version is moved.
pub async fn move_file(
    app: &AppState,
    bucket: &Bucket,
    from: &ObjectKey,
    to: &ObjectKey,
    on_taken: OnConflict,
) -> Result<MovedFile, ApiError> {
    let _turn = app.copy_permits.acquire().await.map_err(|_| ApiError::overloaded(1))?;
    let name = ObjectName::new(bucket.name.clone(), from.clone());
    let drained = app.clone();
    let is_stopped: CancelCheck = std::sync::Arc::new(move || drained.is_draining());
    for _ in 0..limits::MOVE_TRIES_MAX {
        let (store, looked_up) = (app.store.clone(), name.clone());
        let object = blocking(move || store.get(&looked_up)).await?;
        let object = object.ok_or_else(ApiError::file_not_found)?;
        if object.is_derived() {
            return Err(ApiError::bad_request(
                "Thumbnails cannot be moved on their own: move the original file",
            ));
        }
        if on_taken == OnConflict::Refuse && object_exists(app, bucket, to).await? {
            return Err(ApiError::file_exists());
        }
        match move_version(app, bucket, object, to, on_taken, &is_stopped).await? {
            MoveOutcome::Moved(moved) => return Ok(moved),
            MoveOutcome::Taken => return Err(ApiError::file_exists()),
            MoveOutcome::Changed => {}
        }
    }
    Err(ApiError::conflict("The file kept changing: try again"))
}

/// Moves versions of files, in few batches. Skips files that have changed.
pub async fn move_versions(
    app: &AppState,
    bucket: &Bucket,
    files: Vec<(Object, ObjectKey)>,
    on_taken: OnConflict,
    is_stopped: &CancelCheck,
) -> Result<MoveReport, ApiError> {
    let mut sums = MoveReport::default();
    let mut waiting: Vec<(Object, ObjectKey)> = Vec::new();
    let mut waiting_bytes = 0;
    for (object, to) in files {
        if is_stopped() {
            break;
        }
        if check_writable(&to).is_err()
            || (on_taken == OnConflict::Refuse && object_exists(app, bucket, &to).await?)
        {
            sums.skipped += 1;
            continue;
        }
        let bytes = object.bytes();
        let is_full = waiting.len() == limits::MOVE_BATCH_FILES_MAX
            || waiting_bytes + bytes > limits::MOVE_BATCH_BYTES_MAX;
        if is_full && !waiting.is_empty() {
            let together = std::mem::take(&mut waiting);
            move_together(app, bucket, together, on_taken, is_stopped, &mut sums).await?;
            waiting_bytes = 0;
        }
        waiting_bytes += bytes;
        waiting.push((object, to));
    }
    if !waiting.is_empty() && !is_stopped() {
        move_together(app, bucket, waiting, on_taken, is_stopped, &mut sums).await?;
    }
    Ok(sums)
}

/// Moves files in one batch, or each on its own after a conflict.
async fn move_together(
    app: &AppState,
    bucket: &Bucket,
    files: Vec<(Object, ObjectKey)>,
    on_taken: OnConflict,
    is_stopped: &CancelCheck,
    sums: &mut MoveReport,
) -> Result<(), ApiError> {
    let bytes = |files: &[(Object, ObjectKey)]| files.iter().map(|(it, _)| it.bytes()).sum::<u64>();
    if files.len() > 1 {
        match try_together(app, bucket, &files, on_taken, is_stopped).await? {
            true => {
                sums.files += files.len() as u64;
                sums.bytes += bytes(&files);
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
        match move_version(app, bucket, object, &to, on_taken, is_stopped).await? {
            MoveOutcome::Moved(_) => {
                sums.files += 1;
                sums.bytes += bytes;
            }
            MoveOutcome::Taken | MoveOutcome::Changed => sums.skipped += 1,
        }
    }
    Ok(())
}

/// Tries to move all files in one batch. Returns whether they were moved; otherwise none was.
async fn try_together(
    app: &AppState,
    bucket: &Bucket,
    files: &[(Object, ObjectKey)],
    on_taken: OnConflict,
    is_stopped: &CancelCheck,
) -> Result<bool, ApiError> {
    let mut batch = bucket_batch(bucket)?;
    let mut happenings = Vec::new();
    let mut claims = Vec::new();
    let mut moved = StoredAmount::default();
    for (object, to) in files {
        let Some(copied) = copy(app, object.clone(), is_stopped).await? else { return Ok(false) };
        let Some(proposed) = propose_move(app, bucket, &copied, to, on_taken).await? else {
            return Ok(false);
        };
        batch = batch.and(proposed.batch);
        happenings.extend(proposed.happenings);
        claims.push(proposed._claims);
        moved.objects += 1;
        moved.bytes += object.bytes();
    }
    match commit_moves(app, bucket, batch, happenings, moved).await? {
        Ok(_) => Ok(true),
        Err(Error::Conflict(Conflict::FactMissing(_))) => Err(ApiError::bucket_not_found()),
        // The copies, or the thumbnails and events with them, are too many for one batch.
        Err(Error::Conflict(_) | Error::TooLarge(_)) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Moves one version of a file.
async fn move_version(
    app: &AppState,
    bucket: &Bucket,
    object: Object,
    to: &ObjectKey,
    on_taken: OnConflict,
    is_stopped: &CancelCheck,
) -> Result<MoveOutcome, ApiError> {
    let from = object.name().clone();
    let Some(copied) = copy(app, object, is_stopped).await? else {
        return Ok(MoveOutcome::Changed);
    };
    for _ in 0..limits::NAME_TRIES_MAX {
        let Some(proposed) = propose_move(app, bucket, &copied, to, on_taken).await? else {
            return Ok(MoveOutcome::Taken);
        };
        let batch = bucket_batch(bucket)?.and(proposed.batch);
        let moved = StoredAmount { objects: 1, bytes: copied.object.bytes() };
        match commit_moves(app, bucket, batch, proposed.happenings.into(), moved).await? {
            Ok(committed) => {
                // The file comes first among the objects of the batch.
                let object = committed.objects.into_iter().next();
                let object = object.ok_or_else(|| ApiError::internal("a move put nothing"))?;
                return Ok(MoveOutcome::Moved(MovedFile { object, renamed: proposed.renamed }));
            }
            Err(Error::Conflict(Conflict::FactMissing(_))) => {
                return Err(ApiError::bucket_not_found());
            }
            Err(Error::Conflict(Conflict::KeyChanged(changed) | Conflict::KeyMissing(changed)))
                if changed == from =>
            {
                return Ok(MoveOutcome::Changed);
            }
            // The new name, or that of a thumbnail, was taken concurrently.
            Err(Error::Conflict(_)) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Err(ApiError::conflict("Too many concurrent operations on this name: try again"))
}

/// Returns whether a file with this key exists.
pub(super) async fn object_exists(
    app: &AppState,
    bucket: &Bucket,
    key: &ObjectKey,
) -> Result<bool, ApiError> {
    let (store, name) = (app.store.clone(), ObjectName::new(bucket.name.clone(), key.clone()));
    Ok(blocking(move || store.get(&name)).await?.is_some())
}

/// Copies the body of a version, and its thumbnail. `None` if the file has changed.
async fn copy(
    app: &AppState,
    object: Object,
    is_stopped: &CancelCheck,
) -> Result<Option<CopiedVersion>, ApiError> {
    let (store, is_stopped) = (app.store.clone(), is_stopped.clone());
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
                Ok(picture) => thumbnail = Some((there, picture)),
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

/// Builds the batch that moves a file, given the current objects. `None` if the name is taken.
async fn propose_move(
    app: &AppState,
    bucket: &Bucket,
    copied: &CopiedVersion,
    to: &ObjectKey,
    on_taken: OnConflict,
) -> Result<Option<PlannedMove>, ApiError> {
    let CopiedVersion { object, body, thumbnail } = copied;
    let (app, bucket, to) = (app.clone(), bucket.name.clone(), to.clone());
    let (object, body, thumbnail) = (object.clone(), body.clone(), thumbnail.clone());
    let decide = move || {
        let (mut key, mut renamed, mut claims) = (to, false, Vec::new());
        match on_taken {
            OnConflict::Refuse => {
                if app.store.get(&ObjectName::new(bucket.clone(), key.clone()))?.is_some() {
                    return Ok(None);
                }
            }
            OnConflict::Rename => {
                let wanted = std::slice::from_ref(&key);
                let (proposals, claimed) =
                    app.claims.claim_keys(&app.store, &bucket, ConflictRule::Rename, wanted)?;
                claims = claimed;
                if let Some(proposal) = proposals.into_iter().next() {
                    (key, renamed) = (proposal.key, proposal.renamed);
                }
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
        if on_taken != OnConflict::Overwrite {
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
            (Some((old, picture)), Ok(place)) if is_free_for(&app, &place, &old, &name.key)? => {
                move_thumbnail(batch, &old, &name.key, place, picture)
            }
            _ => delete_thumbnail(delete_thumbnail(batch, from), &name),
        };
        let happenings = [ObjectEvent::removed(from.key.clone()), created];
        Ok(Some(PlannedMove { batch, happenings, renamed, _claims: claims }))
    };
    blocking(decide).await
}

/// Returns whether a thumbnail may have this name: it is free, or held by the thumbnail to replace.
fn is_free_for(
    app: &AppState,
    place: &ObjectName,
    old: &Object,
    file: &ObjectKey,
) -> Result<bool, ApiError> {
    let there = app.store.get(place)?;
    Ok(there.is_none_or(|there| is_thumbnail_of(&there, file) || there.lsn() == old.lsn()))
}
