//! Restoring of deleted and replaced versions.
//!
//! Guarantees: a version of an earlier bucket with the same name is never found; a restored version counts against the
//! quotas, like an upload; an object is replaced only on request, and only in the version that was seen. Non-goals: the
//! search for versions, which the engine does.

use engine::{
    Batch, Conflict, Error, LogSpan, Object, ObjectKey, ObjectName, Precondition, PutOptions,
    Staged, Store, Unrecoverable, Watch,
};

use super::{IsStopped, batch_in, look_through_log};
use crate::bridge::blocking;
use crate::catalog::{Bucket, EventKind, Happening, OnTaken};
use crate::claims::Claim;
use crate::error::ApiError;
use crate::intake::{Growth, commit_in, make_room, propose};
use crate::limits;
use crate::object_name::NameRule;
use crate::state::AppState;
use crate::target::check_writable;
use crate::thumbnails::delete_thumbnail;

/// Requested version.
#[derive(Clone, Debug)]
pub struct Wanted {
    pub key: ObjectKey,
    /// LSN of the version; the newest intact version if absent.
    pub lsn: Option<u64>,
    pub on_taken: OnTaken,
}

/// Result of restoring several files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RestoredMany {
    pub files: u64,
    pub bytes: u64,
    /// Files whose bytes are gone, or whose names were taken in the meantime.
    pub skipped: u64,
}

/// Returns the log range of a bucket, and the time since which its versions are its own.
pub fn span_of(bucket: &Bucket) -> (LogSpan, u64) {
    match bucket.after_lsn {
        Some(after_lsn) => (LogSpan::after(after_lsn), 0),
        None => (LogSpan::ALL, bucket.created_ms),
    }
}

/// Restores a version: returns the object, the LSN of the original version, and whether its name was taken.
pub async fn put_back(
    app: &AppState,
    bucket: &Bucket,
    wanted: Wanted,
) -> Result<(Object, u64, bool), ApiError> {
    check_writable(&wanted.key)?;
    let name = ObjectName::new(bucket.name.clone(), wanted.key.clone());
    if wanted.on_taken == OnTaken::Refuse {
        // Checked first, to avoid a useless log scan.
        place(app, &name, wanted.on_taken).await?;
    }
    let version = find(app, bucket, &name, wanted.lsn).await?;
    let staged = stage(app, version.clone()).await?.map_err(ApiError::version_not_found)?;
    for _ in 0..limits::NAME_TRIES_MAX {
        let placed = place(app, &name, wanted.on_taken).await?;
        let mut growth = Growth::default();
        // In a versioned bucket a replaced object still uses its space.
        let replaces = placed.replaces.as_ref().filter(|_| bucket.versioning.is_none());
        growth.count(version.bytes(), replaces);
        let (batch, happening) = putting(&version, placed.name.clone(), staged.clone());
        let batch = batch_in(bucket)?.and(batch).require(placed.require.clone());
        let room = make_room(app, bucket, growth.amount(), None).await?;
        match commit_in(app, &bucket.name, batch, happening.into_iter().collect(), room).await {
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
pub async fn restore_many(
    app: &AppState,
    bucket: &Bucket,
    versions: Vec<Object>,
    is_stopped: &IsStopped,
) -> Result<RestoredMany, ApiError> {
    let mut sums = RestoredMany::default();
    let mut waiting: Vec<(Object, Staged)> = Vec::new();
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
        let is_full = waiting.len() == limits::MOVED_TOGETHER_MAX
            || waiting_bytes + version.bytes() > limits::MOVED_TOGETHER_BYTES_MAX;
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
    versions: Vec<(Object, Staged)>,
    sums: &mut RestoredMany,
) -> Result<(), ApiError> {
    if versions.is_empty() {
        return Ok(());
    }
    match restore_all(app, bucket, &versions).await? {
        All::Restored => sums.count(&versions),
        All::Taken if versions.len() > 1 => {
            for version in versions {
                match restore_all(app, bucket, std::slice::from_ref(&version)).await? {
                    All::Restored => sums.count(&[version]),
                    All::Taken => sums.skip(&[version]),
                }
            }
        }
        All::Taken => sums.skip(&versions),
    }
    Ok(())
}

/// Result of restoring several versions together.
enum All {
    Restored,
    /// One of the names is taken: none was restored.
    Taken,
}

async fn restore_all(
    app: &AppState,
    bucket: &Bucket,
    versions: &[(Object, Staged)],
) -> Result<All, ApiError> {
    let mut batch = batch_in(bucket)?;
    let (mut growth, mut happenings) = (Growth::default(), Vec::new());
    for (version, staged) in versions {
        let name = version.name().clone();
        if !version.is_derived() {
            growth.count(version.bytes(), None);
        }
        let (put, happening) = putting(version, name.clone(), staged.clone());
        batch = batch.and(put).require(Precondition::KeyAbsent(name));
        happenings.extend(happening);
    }
    let room = make_room(app, bucket, growth.amount(), None).await?;
    match commit_in(app, &bucket.name, batch, happenings, room).await {
        Ok(_) => Ok(All::Restored),
        Err(Error::Conflict(Conflict::FactMissing(_))) => Err(ApiError::bucket_not_found()),
        Err(Error::Conflict(_)) => Ok(All::Taken),
        Err(error) => Err(error.into()),
    }
}

/// Returns the batch that stores a version under a name, and its webhook event.
fn putting(version: &Object, name: ObjectName, staged: Staged) -> (Batch, Option<Happening>) {
    let options = PutOptions {
        content_type: version.content_type().to_owned(),
        attributes: version.attributes().to_vec(),
        derived: version.is_derived(),
        created_ms: Some(version.created_ms()),
    };
    if version.is_derived() {
        return (Batch::new().put(name, staged, options), None);
    }
    let created = Happening::created(
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
    let (span, put_since_ms) = span_of(bucket);
    let (store, looked_for) = (app.store.clone(), name.clone());
    let lately = blocking(move || store.gone_lately_of(&looked_for, lsn, span)).await?;
    let found = match lately {
        Some(version) => Ok(version),
        None => {
            let name = name.clone();
            let look = move |store: &Store, watch: &mut Watch<'_>| {
                store.gone_version(&name, lsn, span, watch)
            };
            look_through_log(app, look).await?
        }
    };
    let found = found.and_then(|version| {
        let is_ours = version.modified_ms() >= put_since_ms && !version.is_derived();
        is_ours.then_some(version).ok_or(Unrecoverable::Unknown)
    });
    found.map_err(|why| match why {
        Unrecoverable::Present => ApiError::file_exists(),
        why => ApiError::version_not_found(why),
    })
}

async fn stage(app: &AppState, version: Object) -> Result<Result<Staged, Unrecoverable>, ApiError> {
    let store = app.store.clone();
    Ok(blocking(move || store.stage_gone(&version)).await?)
}

/// Name of a restored version, given the current objects.
struct Placed {
    name: ObjectName,
    require: Precondition,
    replaces: Option<Object>,
    renamed: bool,
    /// Held until the batch is decided.
    _claims: Vec<Claim<ObjectName>>,
}

async fn place(app: &AppState, name: &ObjectName, on_taken: OnTaken) -> Result<Placed, ApiError> {
    let (app, name) = (app.clone(), name.clone());
    let decide = move || {
        let there = app.store.get(&name)?;
        let absent = |name: &ObjectName| Precondition::KeyAbsent(name.clone());
        match (there, on_taken) {
            (None, _) => {
                let require = absent(&name);
                Ok(Placed { name, require, replaces: None, renamed: false, _claims: Vec::new() })
            }
            (Some(_), OnTaken::Refuse) => Err(ApiError::file_exists()),
            (Some(there), OnTaken::Overwrite) => {
                let require = Precondition::KeyVersion(name.clone(), there.lsn());
                let replaces = Some(there);
                Ok(Placed { name, require, replaces, renamed: false, _claims: Vec::new() })
            }
            (Some(_), OnTaken::Rename) => {
                let wanted = [name.key.clone()];
                let (proposals, claims) = propose(&app, &name.bucket, NameRule::Suffix, &wanted)?;
                let proposal = proposals.into_iter().next();
                let proposal = proposal.ok_or_else(|| ApiError::internal("no name is proposed"))?;
                let name = ObjectName::new(name.bucket, proposal.key);
                let (require, renamed) = (absent(&name), proposal.renamed);
                Ok(Placed { name, require, replaces: None, renamed, _claims: claims })
            }
        }
    };
    blocking(decide).await
}

impl RestoredMany {
    fn count(&mut self, versions: &[(Object, Staged)]) {
        for (version, _) in versions.iter().filter(|(it, _)| !it.is_derived()) {
            self.files += 1;
            self.bytes += version.bytes();
        }
    }

    fn skip(&mut self, versions: &[(Object, Staged)]) {
        self.skipped += versions.iter().filter(|(it, _)| !it.is_derived()).count() as u64;
    }
}
