//! Restoring of deleted and replaced versions.
//!
//! Guarantees: a version of an earlier bucket with the same name is never found; a restored version counts against the
//! quotas, like an upload; an object is replaced only on request, and only in the version that was seen. Non-goals: the
//! search for versions, which the engine does.

use catalog::claims::Claim;
use catalog::{Bucket, EventKind, ObjectEvent, OnConflict, QuotaDelta};
use engine::history::{LsnRange, RestoreError};
use engine::progress::ProgressCallback;
use engine::{
    Batch, Conflict, Error, Object, ObjectKey, ObjectName, Precondition, PutOptions, StagedBody,
    Store,
};
use jobs::thumbnail_object::delete_thumbnail;
use protocol::error::ApiError;
use protocol::file_name::ConflictRule;
use protocol::object_path::check_writable;
use usage::task::blocking;

use super::{CancelCheck, bucket_batch, scan_log};
use crate::limits;
use crate::state::AppState;

/// Requested version.
#[derive(Clone, Debug)]
pub struct UndeleteTarget {
    pub key: ObjectKey,
    /// LSN of the version; the newest intact version if absent.
    pub lsn: Option<u64>,
    pub on_taken: OnConflict,
}

/// Result of restoring several files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UndeleteReport {
    pub files: u64,
    pub bytes: u64,
    /// Files whose bytes are gone, or whose names were taken in the meantime.
    pub skipped: u64,
}

/// Returns the log range of a bucket, and the time since which its versions are its own.
pub fn log_span(bucket: &Bucket) -> (LsnRange, u64) {
    match bucket.after_lsn {
        Some(after_lsn) => (LsnRange::after(after_lsn), 0),
        None => (LsnRange::ALL, bucket.created_ms),
    }
}

/// Restores a version: returns the object, the LSN of the original version, and whether its name was taken.
pub async fn undelete(
    app: &AppState,
    bucket: &Bucket,
    wanted: UndeleteTarget,
) -> Result<(Object, u64, bool), ApiError> {
    check_writable(&wanted.key)?;
    let name = ObjectName::new(bucket.name.clone(), wanted.key.clone());
    if wanted.on_taken == OnConflict::Refuse {
        // Checked first, to avoid a useless log scan.
        resolve_target(app, &name, wanted.on_taken).await?;
    }
    let version = find(app, bucket, &name, wanted.lsn).await?;
    let staged = stage(app, version.clone()).await?.map_err(ApiError::version_not_found)?;
    for _ in 0..limits::NAME_TRIES_MAX {
        let placed = resolve_target(app, &name, wanted.on_taken).await?;
        let mut growth = QuotaDelta::default();
        // In a versioned bucket a replaced object still uses its space.
        let replaces = placed.replaces.as_ref().filter(|_| bucket.versioning.is_none());
        growth.count(version.bytes(), replaces);
        let (batch, happening) = putting(&version, placed.name.clone(), staged.clone());
        let batch = bucket_batch(bucket)?.and(batch).require(placed.require.clone());
        let room = app.catalog.reserve_quota(bucket, growth.amount(), None).await?;
        match app
            .catalog
            .commit_reserved(&bucket.name, batch, happening.into_iter().collect(), room)
            .await
        {
            Ok(committed) => {
                let object = committed.objects.into_iter().next();
                let object = object.ok_or_else(|| ApiError::internal("nothing was put back"))?;
                return Ok((object, version.lsn(), placed.renamed));
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

/// Restores versions whose names are free, in few batches. Skips names that are taken by then.
pub async fn undelete_many(
    app: &AppState,
    bucket: &Bucket,
    versions: Vec<Object>,
    is_stopped: &CancelCheck,
) -> Result<UndeleteReport, ApiError> {
    let mut sums = UndeleteReport::default();
    let mut waiting: Vec<(Object, StagedBody)> = Vec::new();
    let mut waiting_bytes = 0;
    for version in versions {
        if is_stopped() {
            return Ok(sums);
        }
        if check_writable(&version.name().key).is_err() {
            sums.skipped += 1;
            continue;
        }
        let Ok(staged) = stage(app, version.clone()).await? else {
            sums.skipped += u64::from(!version.is_derived());
            continue;
        };
        let is_full = waiting.len() == limits::MOVE_BATCH_FILES_MAX
            || waiting_bytes + version.bytes() > limits::MOVE_BATCH_BYTES_MAX;
        if is_full {
            restore_together(app, bucket, std::mem::take(&mut waiting), &mut sums).await?;
            waiting_bytes = 0;
        }
        waiting_bytes += version.bytes();
        waiting.push((version, staged));
    }
    restore_together(app, bucket, waiting, &mut sums).await?;
    Ok(sums)
}

/// Restores versions in one batch, or each on its own after a conflict.
async fn restore_together(
    app: &AppState,
    bucket: &Bucket,
    versions: Vec<(Object, StagedBody)>,
    sums: &mut UndeleteReport,
) -> Result<(), ApiError> {
    if versions.is_empty() {
        return Ok(());
    }
    match restore_all(app, bucket, &versions).await? {
        BatchOutcome::Restored => sums.count(&versions),
        BatchOutcome::Taken if versions.len() > 1 => {
            for version in versions {
                match restore_all(app, bucket, std::slice::from_ref(&version)).await? {
                    BatchOutcome::Restored => sums.count(&[version]),
                    BatchOutcome::Taken => sums.skip(&[version]),
                }
            }
        }
        BatchOutcome::Taken => sums.skip(&versions),
    }
    Ok(())
}

/// Result of restoring several versions together.
enum BatchOutcome {
    Restored,
    /// One of the names is taken: none was restored.
    Taken,
}

async fn restore_all(
    app: &AppState,
    bucket: &Bucket,
    versions: &[(Object, StagedBody)],
) -> Result<BatchOutcome, ApiError> {
    let mut batch = bucket_batch(bucket)?;
    let (mut growth, mut happenings) = (QuotaDelta::default(), Vec::new());
    for (version, staged) in versions {
        let name = version.name().clone();
        if !version.is_derived() {
            growth.count(version.bytes(), None);
        }
        let (put, happening) = putting(version, name.clone(), staged.clone());
        batch = batch.and(put).require(Precondition::KeyAbsent(name));
        happenings.extend(happening);
    }
    let room = app.catalog.reserve_quota(bucket, growth.amount(), None).await?;
    match app.catalog.commit_reserved(&bucket.name, batch, happenings, room).await {
        Ok(_) => Ok(BatchOutcome::Restored),
        Err(Error::Conflict(Conflict::FactMissing(_))) => Err(ApiError::bucket_not_found()),
        Err(Error::Conflict(_)) => Ok(BatchOutcome::Taken),
        Err(error) => Err(error.into()),
    }
}

/// Returns the batch that stores a version under a name, and its webhook event.
fn putting(version: &Object, name: ObjectName, staged: StagedBody) -> (Batch, Option<ObjectEvent>) {
    let options = PutOptions {
        content_type: version.content_type().to_owned(),
        attributes: version.attributes().to_vec(),
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
    app: &AppState,
    bucket: &Bucket,
    name: &ObjectName,
    lsn: Option<u64>,
) -> Result<Object, ApiError> {
    let (span, put_since_ms) = log_span(bucket);
    let (store, looked_for) = (app.store.clone(), name.clone());
    let lately = blocking(move || store.recent_noncurrent_version(&looked_for, lsn, span)).await?;
    let found = match lately {
        Some(version) => Ok(version),
        None => {
            let name = name.clone();
            let look = move |store: &Store, watch: &mut ProgressCallback<'_>| {
                store.noncurrent_version(&name, lsn, span, watch)
            };
            scan_log(app, look).await?
        }
    };
    let found = found.and_then(|version| {
        let is_ours = version.modified_ms() >= put_since_ms && !version.is_derived();
        is_ours.then_some(version).ok_or(RestoreError::NotFound)
    });
    found.map_err(|why| match why {
        RestoreError::NotDeleted => ApiError::file_exists(),
        why => ApiError::version_not_found(why),
    })
}

async fn stage(
    app: &AppState,
    version: Object,
) -> Result<Result<StagedBody, RestoreError>, ApiError> {
    let store = app.store.clone();
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
    app: &AppState,
    name: &ObjectName,
    on_taken: OnConflict,
) -> Result<ResolvedTarget, ApiError> {
    let (app, name) = (app.clone(), name.clone());
    let decide = move || {
        let there = app.store.get(&name)?;
        let absent = |name: &ObjectName| Precondition::KeyAbsent(name.clone());
        match (there, on_taken) {
            (None, _) => {
                let require = absent(&name);
                Ok(ResolvedTarget {
                    name,
                    require,
                    replaces: None,
                    renamed: false,
                    _claims: Vec::new(),
                })
            }
            (Some(_), OnConflict::Refuse) => Err(ApiError::file_exists()),
            (Some(there), OnConflict::Overwrite) => {
                let require = Precondition::KeyHasLsn(name.clone(), there.lsn());
                let replaces = Some(there);
                Ok(ResolvedTarget { name, require, replaces, renamed: false, _claims: Vec::new() })
            }
            (Some(_), OnConflict::Rename) => {
                let wanted = [name.key.clone()];
                let (proposals, claims) = app.claims.claim_keys(
                    &app.store,
                    &name.bucket,
                    ConflictRule::Rename,
                    &wanted,
                )?;
                let proposal = proposals.into_iter().next();
                let proposal = proposal.ok_or_else(|| ApiError::internal("no name is proposed"))?;
                let name = ObjectName::new(name.bucket, proposal.key);
                let (require, renamed) = (absent(&name), proposal.renamed);
                Ok(ResolvedTarget { name, require, replaces: None, renamed, _claims: claims })
            }
        }
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
