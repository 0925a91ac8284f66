//! Batch deletion of files by version.
//!
//! Guarantees: a version stored since the listing is not deleted; a thumbnail is deleted with its file, and on its own
//! if it has none. Non-goals: selection of the files.

use std::collections::BTreeSet;
use std::sync::Arc;

use catalog::{Bucket, ObjectEvent};
use engine::{Conflict, Error, Object, ObjectKey, ObjectName, Precondition};
use protocol::error::ApiError;
use usage::task::blocking;

use super::{bucket_batch, commit_detached};
use crate::Context;
use crate::thumbnail_object::delete_thumbnail;

/// Result of a batch deletion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DeleteOutcome {
    /// Number and bytes of the deleted files.
    Files { files: u64, bytes: u64 },
    /// One of the files has changed: nothing was deleted, and they have to be looked up again.
    Changed,
}

/// Deletes these versions, all or none: at most [`DELETE_FILES_MAX`](crate::limits::DELETE_FILES_MAX) with their
/// thumbnails. `event` creates the webhook event of each file.
pub(crate) async fn delete_versions(
    context: &Arc<Context>,
    bucket: &Bucket,
    objects: Vec<Object>,
    event: fn(ObjectKey) -> ObjectEvent,
) -> Result<DeleteOutcome, ApiError> {
    let mut batch = bucket_batch(bucket)?;
    let mut events = Vec::new();
    let (mut files, mut bytes) = (0, 0);
    let mut derived = Vec::new();
    let mut with_files = BTreeSet::new();
    for object in objects {
        let name = object.name();
        if object.is_derived() {
            derived.push(object);
            continue;
        }
        files += 1;
        bytes += object.bytes();
        batch = batch.require(Precondition::KeyHasLsn(name.clone(), object.lsn()));
        batch = delete_thumbnail(batch.delete(name.clone()), name);
        events.push(event(name.key.clone()));
        with_files.insert(name.key.as_str().as_bytes().to_vec());
    }
    derived.retain(|it| !with_files.contains(it.attributes()));
    let orphans = orphans(context, bucket, derived).await?;
    for orphan in orphans {
        batch = batch.delete_derived(orphan.name().clone(), orphan.attributes().to_vec());
    }
    if batch.is_empty() {
        return Ok(DeleteOutcome::Files { files: 0, bytes: 0 });
    }
    match commit_detached(context, bucket, batch, events).await {
        Ok(_) => Ok(DeleteOutcome::Files { files, bytes }),
        Err(Error::Conflict(Conflict::FactMissing(_))) => Err(ApiError::bucket_not_found()),
        Err(Error::Conflict(_)) => Ok(DeleteOutcome::Changed),
        Err(error) => Err(error.into()),
    }
}

/// Returns the thumbnails without a file.
async fn orphans(
    context: &Arc<Context>,
    bucket: &Bucket,
    derived: Vec<Object>,
) -> Result<Vec<Object>, ApiError> {
    if derived.is_empty() {
        return Ok(derived);
    }
    let (store, bucket) = (context.store.clone(), bucket.name.clone());
    let find = move || {
        let mut orphans = Vec::new();
        for object in derived {
            let file = std::str::from_utf8(object.attributes()).ok();
            let file = file.and_then(|key| ObjectKey::parse(key).ok());
            let exists = match file {
                Some(key) => store.get(&ObjectName::new(bucket.clone(), key))?.is_some(),
                None => false,
            };
            if !exists {
                orphans.push(object);
            }
        }
        Ok::<_, Error>(orphans)
    };
    Ok(blocking(find).await?)
}
