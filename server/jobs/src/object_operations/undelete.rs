//! Restoring of deleted and replaced versions.
//!
//! Guarantees: a version of an earlier bucket with the same name is never found; a restored version counts against the
//! quotas, like an upload; an object is replaced only on request, and only in the version that was seen. Non-goals: the
//! search for versions, which the engine does.

use std::sync::Arc;

use catalog::claims::Claim;
use catalog::object_attributes::without_past_expiry;
use catalog::{Bucket, EventKind, ObjectEvent, OnConflict, QuotaDelta};
use engine::history::{LsnRange, RestoreError};
use engine::progress::ProgressCallback;
use engine::{
    Batch, Conflict, Error, Object, ObjectKey, ObjectName, Precondition, PutOptions, StagedBody,
    Store,
};
use protocol::error::ApiError;
use protocol::object_path::check_writable;
use usage::task::blocking;

use super::{CancelCheck, bucket_batch, claim_free_key};
use crate::Context;
use crate::limits;
use crate::log_scan::scan_log;
use crate::thumbnail_object::delete_thumbnail;

/// Requested version.
#[derive(Clone, Debug)]
pub struct UndeleteTarget {
    pub key: ObjectKey,
    /// LSN of the version; the newest intact version if absent.
    pub lsn: Option<u64>,
    pub on_conflict: OnConflict,
}

/// Result of restoring several files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct UndeleteReport {
    pub(crate) files: u64,
    pub(crate) bytes: u64,
    /// Files whose bytes were reclaimed, or whose names are in use by now.
    pub(crate) skipped: u64,
}

/// Returns the log range of a bucket, and the time since which its versions are its own.
pub fn log_span(bucket: &Bucket) -> (LsnRange, u64) {
    match bucket.after_lsn {
        Some(after_lsn) => (LsnRange::after(after_lsn), 0),
        None => (LsnRange::ALL, bucket.created_ms),
    }
}

/// Restores a version: returns the object, the LSN of the original version, and whether its name was in use.
pub async fn undelete(
    context: &Arc<Context>,
    bucket: &Bucket,
    wanted: UndeleteTarget,
) -> Result<(Object, u64, bool), ApiError> {
    check_writable(&wanted.key)?;
    let name = ObjectName::new(bucket.name.clone(), wanted.key.clone());
    if wanted.on_conflict == OnConflict::Refuse {
        // Checked first, to avoid a useless log scan.
        resolve_target(context, &name, wanted.on_conflict).await?;
    }
    let version = find(context, bucket, &name, wanted.lsn).await?;
    let staged = stage(context, version.clone()).await?.map_err(ApiError::version_not_found)?;
    for _ in 0..catalog::limits::NAME_TRIES_MAX {
        let target = resolve_target(context, &name, wanted.on_conflict).await?;
        let mut growth = QuotaDelta::default();
        // In a versioned bucket a replaced object still uses its space.
        let replaces = target.replaces.as_ref().filter(|_| bucket.versioning.is_none());
        growth.count(version.bytes(), replaces);
        let (batch, event) =
            put_version(&version, target.name.clone(), staged.clone(), context.clock.unix_ms());
        let batch = bucket_batch(bucket)?.and(batch).require(target.require.clone());
        let reservation = context.catalog.reserve_quota(bucket, growth.amount(), None).await?;
        let events = event.into_iter().collect();
        match context.catalog.commit_reserved(&bucket.name, batch, events, reservation).await {
            Ok(committed) => {
                let object = committed.objects.into_iter().next();
                let object = object.ok_or_else(|| ApiError::internal("nothing was restored"))?;
                return Ok((object, version.lsn(), target.renamed));
            }
            Err(Error::Conflict(Conflict::FactMissing(_))) => {
                return Err(ApiError::bucket_not_found());
            }
            Err(Error::Conflict(_)) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Err(ApiError::conflict("Too many concurrent operations on this name: try again"))
}

/// Restores versions whose names are free, in few batches. Skips names that are in use by then.
pub(crate) async fn undelete_many(
    context: &Arc<Context>,
    bucket: &Bucket,
    versions: Vec<Object>,
    is_stopped: &CancelCheck,
) -> Result<UndeleteReport, ApiError> {
    let mut report = UndeleteReport::default();
    let mut pending: Vec<(Object, StagedBody)> = Vec::new();
    let mut pending_bytes = 0;
    for version in versions {
        if is_stopped() {
            return Ok(report);
        }
        if check_writable(&version.name().key).is_err() {
            report.skipped += 1;
            continue;
        }
        let Ok(staged) = stage(context, version.clone()).await? else {
            report.skipped += u64::from(!version.is_derived());
            continue;
        };
        let is_full = pending.len() == limits::MOVE_BATCH_FILES_MAX
            || pending_bytes + version.bytes() > limits::MOVE_BATCH_BYTES_MAX;
        if is_full {
            restore_together(context, bucket, std::mem::take(&mut pending), &mut report).await?;
            pending_bytes = 0;
        }
        pending_bytes += version.bytes();
        pending.push((version, staged));
    }
    restore_together(context, bucket, pending, &mut report).await?;
    Ok(report)
}

/// Restores versions in one batch, or each on its own after a conflict.
async fn restore_together(
    context: &Arc<Context>,
    bucket: &Bucket,
    versions: Vec<(Object, StagedBody)>,
    report: &mut UndeleteReport,
) -> Result<(), ApiError> {
    if versions.is_empty() {
        return Ok(());
    }
    match restore_all(context, bucket, &versions).await? {
        BatchOutcome::Restored => report.count(&versions),
        BatchOutcome::NameInUse if versions.len() > 1 => {
            for version in versions {
                match restore_all(context, bucket, std::slice::from_ref(&version)).await? {
                    BatchOutcome::Restored => report.count(&[version]),
                    BatchOutcome::NameInUse => report.skip(&[version]),
                }
            }
        }
        BatchOutcome::NameInUse => report.skip(&versions),
    }
    Ok(())
}

/// Result of restoring several versions together.
enum BatchOutcome {
    Restored,
    /// One of the names is in use: none was restored.
    NameInUse,
}

async fn restore_all(
    context: &Arc<Context>,
    bucket: &Bucket,
    versions: &[(Object, StagedBody)],
) -> Result<BatchOutcome, ApiError> {
    let mut batch = bucket_batch(bucket)?;
    let (mut growth, mut events) = (QuotaDelta::default(), Vec::new());
    for (version, staged) in versions {
        let name = version.name().clone();
        if !version.is_derived() {
            growth.count(version.bytes(), None);
        }
        let (put, event) =
            put_version(version, name.clone(), staged.clone(), context.clock.unix_ms());
        batch = batch.and(put).require(Precondition::KeyAbsent(name));
        events.extend(event);
    }
    let reservation = context.catalog.reserve_quota(bucket, growth.amount(), None).await?;
    match context.catalog.commit_reserved(&bucket.name, batch, events, reservation).await {
        Ok(_) => Ok(BatchOutcome::Restored),
        Err(Error::Conflict(Conflict::FactMissing(_))) => Err(ApiError::bucket_not_found()),
        Err(Error::Conflict(_)) => Ok(BatchOutcome::NameInUse),
        Err(error) => Err(error.into()),
    }
}

/// Returns the batch that stores a version under a name, and its webhook event.
fn put_version(
    version: &Object,
    name: ObjectName,
    staged: StagedBody,
    now_ms: u64,
) -> (Batch, Option<ObjectEvent>) {
    let options = PutOptions {
        content_type: version.content_type().to_owned(),
        attributes: match version.is_derived() {
            true => version.attributes().to_vec(),
            // An expiry time in the past would delete the file again.
            false => without_past_expiry(version.attributes(), now_ms),
        },
        derived: version.is_derived(),
        created_ms: Some(version.created_ms()),
    };
    if version.is_derived() {
        return (Batch::new().put(name, staged, options), None);
    }
    let created = ObjectEvent::created(
        EventKind::CreatedByCopy,
        name.key.clone(),
        version.bytes(),
        version.etag(),
        options.content_type.clone(),
    );
    // The thumbnail of the replaced object would show other content.
    (delete_thumbnail(Batch::new().put(name.clone(), staged, options), &name), Some(created))
}

/// Finds the requested version: among recently deleted ones, or else by a log scan.
async fn find(
    context: &Arc<Context>,
    bucket: &Bucket,
    name: &ObjectName,
    lsn: Option<u64>,
) -> Result<Object, ApiError> {
    let (span, put_since_ms) = log_span(bucket);
    let (store, wanted) = (context.store.clone(), name.clone());
    let recent = blocking(move || store.recent_noncurrent_version(&wanted, lsn, span)).await?;
    let found = match recent {
        Some(version) => Ok(version),
        None => {
            let name = name.clone();
            let search = move |store: &Store, watch: &mut ProgressCallback<'_>| {
                store.noncurrent_version(&name, lsn, span, watch)
            };
            scan_log(context, search).await?
        }
    };
    let found = found.and_then(|version| {
        let belongs = version.modified_ms() >= put_since_ms && !version.is_derived();
        belongs.then_some(version).ok_or(RestoreError::NotFound)
    });
    found.map_err(|why| match why {
        RestoreError::NotDeleted => ApiError::file_exists(),
        why => ApiError::version_not_found(why),
    })
}

async fn stage(
    context: &Arc<Context>,
    version: Object,
) -> Result<Result<StagedBody, RestoreError>, ApiError> {
    let store = context.store.clone();
    Ok(blocking(move || store.stage_noncurrent(&version)).await?)
}

/// Name of a restored version, given the current objects.
struct ResolvedTarget {
    name: ObjectName,
    require: Precondition,
    replaces: Option<Object>,
    renamed: bool,
    /// Held until the batch is decided.
    _claims: Vec<Claim<ObjectName>>,
}

async fn resolve_target(
    context: &Arc<Context>,
    name: &ObjectName,
    on_conflict: OnConflict,
) -> Result<ResolvedTarget, ApiError> {
    let (context, name) = (context.clone(), name.clone());
    let decide = move || {
        let (mut name, mut replaces, mut renamed, mut claims) = (name, None, false, Vec::new());
        match (context.store.get(&name)?, on_conflict) {
            (None, _) => {}
            (Some(_), OnConflict::Refuse) => return Err(ApiError::file_exists()),
            (there, OnConflict::Overwrite) => replaces = there,
            (Some(_), OnConflict::Rename) => {
                let proposal;
                (proposal, claims) = claim_free_key(&context, &name.bucket, &name.key)?;
                (name.key, renamed) = (proposal.key, proposal.renamed);
            }
        }
        let require = match &replaces {
            Some(there) => Precondition::KeyHasLsn(name.clone(), there.lsn()),
            None => Precondition::KeyAbsent(name.clone()),
        };
        Ok(ResolvedTarget { name, require, replaces, renamed, _claims: claims })
    };
    blocking(decide).await
}

impl UndeleteReport {
    fn count(&mut self, versions: &[(Object, StagedBody)]) {
        for (version, _) in versions.iter().filter(|(it, _)| !it.is_derived()) {
            self.files += 1;
            self.bytes += version.bytes();
        }
    }

    fn skip(&mut self, versions: &[(Object, StagedBody)]) {
        self.skipped += versions.iter().filter(|(it, _)| !it.is_derived()).count() as u64;
    }
}
