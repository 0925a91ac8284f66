//! Deletion of objects and versions.
//!
//! In a versioned bucket, a deletion without a version id creates a delete marker; one with an id permanently deletes
//! that version, and the next one becomes current. Guarantees: deletion of a missing object succeeds; a condition is
//! decided on the version that is deleted. Non-goals: folders.

use std::collections::BTreeSet;

use catalog::object_attributes::StoredAttributes;
use catalog::object_attributes::last_modified_ms;
use catalog::versions::{self, Absent, Promoted, Removal, Version, VersionId};
use catalog::{Bucket, Catalog, EventKind, ObjectBatch, ObjectEvent, Scope};
use engine::{
    Batch, BucketName, Conflict, Error, Etag, Object, ObjectKey, ObjectName, Precondition, Store,
};
use jobs::limits;
use jobs::object_operations::find_object;
use jobs::thumbnail_object::delete_thumbnail;
use protocol::error::ApiError;
use protocol::object_path::{PathInBucket, parse_bucket_name};
use s3s::dto::{
    DeleteObjectInput, DeleteObjectOutput, DeleteObjectsInput, DeleteObjectsOutput, DeletedObject,
    ObjectIdentifier,
};
use s3s::{S3ErrorCode, S3Request, S3Result};
use service::auth::Caller;
use service::state::AppState;
use usage::task::blocking;

use super::access::caller_of;
use super::conditions::{WriteConditions, names};
use super::errors::{s3_error, to_s3_error};
use super::object_lock::may_bypass;
use super::objects::{matches_sent_key, time_of};
use super::versioning::version_id;

/// Result of a deletion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    /// The object was deleted, or did not exist.
    Deleted,
    /// A delete marker with this id was created.
    Marked(VersionId),
    /// The version was deleted permanently.
    Removed { was_marker: bool },
}

/// Requested deletion.
#[derive(Clone, Copy)]
struct Deletion<'a> {
    identifier: &'a ObjectIdentifier,
    conditions: &'a WriteConditions,
    /// Whether governance retention is bypassed.
    bypasses: bool,
}

/// Implements DeleteObject. Succeeds if the object does not exist.
pub(super) async fn delete(
    app: &AppState,
    request: S3Request<DeleteObjectInput>,
) -> S3Result<DeleteObjectOutput> {
    let caller = caller_of(&request.extensions)?;
    let DeleteObjectInput { bucket, key, if_match, version_id: sent_id, .. } = request.input;
    let wanted = ObjectIdentifier {
        key,
        size: request.input.if_match_size,
        last_modified_time: request.input.if_match_last_modified_time,
        version_id: sent_id.clone(),
        ..ObjectIdentifier::default()
    };
    let conditions = WriteConditions { if_match, if_none_match: None };
    let bucket = bucket_to_delete_in(app, &caller, &bucket)?;
    let bypasses = may_bypass(&caller, request.input.bypass_governance_retention);
    let deletion = Deletion { identifier: &wanted, conditions: &conditions, bypasses };
    let catalog = app.catalog.acting_as(caller.actor());
    let deleted = Box::pin(delete_one(app, &catalog, &caller, &bucket, &deletion)).await?;
    Ok(match deleted {
        Outcome::Deleted => DeleteObjectOutput::default(),
        Outcome::Marked(id) => DeleteObjectOutput {
            delete_marker: Some(true),
            version_id: Some(id.to_string()),
            ..DeleteObjectOutput::default()
        },
        Outcome::Removed { was_marker } => DeleteObjectOutput {
            delete_marker: was_marker.then_some(true),
            version_id: bucket.versioning.and(sent_id),
            ..DeleteObjectOutput::default()
        },
    })
}

fn bucket_to_delete_in(
    app: &AppState,
    caller: &Caller,
    bucket: &str,
) -> S3Result<std::sync::Arc<Bucket>> {
    let found = parse_bucket_name(bucket);
    let found = found.and_then(|name| caller.bucket(&app.catalog, &name, Scope::Delete));
    found.map_err(|error| to_s3_error(&error))
}

/// Parses a key to delete; `None` if no object can have it.
fn key_to_delete(caller: &Caller, sent_key: &str) -> Result<Option<ObjectKey>, ApiError> {
    let Ok(PathInBucket::File(key)) = PathInBucket::parse(sent_key) else { return Ok(None) };
    caller.require_key_access(&key)?;
    Ok(Some(key))
}

/// Deletes an object or a version of it if it meets the conditions.
async fn delete_one(
    app: &AppState,
    catalog: &Catalog,
    caller: &Caller,
    bucket: &Bucket,
    deletion: &Deletion<'_>,
) -> S3Result<Outcome> {
    let Deletion { identifier: wanted, conditions, .. } = *deletion;
    let id = version_id(wanted.version_id.as_deref())?;
    let ours = |error: ApiError| to_s3_error(&error);
    let Some(key) = key_to_delete(caller, &wanted.key).map_err(ours)? else {
        return Ok(Outcome::Deleted);
    };
    let name = ObjectName::new(bucket.name.clone(), key);
    let deleted = match (id, bucket.versioning) {
        (Some(id), _) => remove(app, catalog, bucket, &name, id, deletion).await,
        (None, Some(_)) => mark_one(app, catalog, bucket, &name, wanted, conditions).await,
        (None, None) => delete_unversioned(app, catalog, bucket, &name, wanted, conditions).await,
    };
    deleted.map_err(ours)
}

async fn delete_unversioned(
    app: &AppState,
    catalog: &Catalog,
    bucket: &Bucket,
    name: &ObjectName,
    wanted: &ObjectIdentifier,
    conditions: &WriteConditions,
) -> Result<Outcome, ApiError> {
    let there = app.store.get(name)?;
    let Some(there) = there.filter(|there| matches_sent_key(there, &wanted.key)) else {
        return Ok(Outcome::Deleted);
    };
    check_properties(wanted, &there, last_modified_ms(&there))?;
    let along = conditions.batch(app, name, &wanted.key).await?;
    let keys = std::slice::from_ref(&name.key);
    let deleted = delete_keys(catalog, &app.store, &bucket.name, along, keys).await;
    deleted.map_err(|error| conditions.explain(error))?;
    Ok(Outcome::Deleted)
}

/// Fails with 412 if an object is not of the size and time that the request names.
fn check_properties(
    wanted: &ObjectIdentifier,
    object: &Object,
    modified_ms: u64,
) -> Result<(), ApiError> {
    let is_of_size = wanted.size.is_none_or(|size| u64::try_from(size) == Ok(object.bytes()));
    let seconds = time_of(modified_ms / 1_000 * 1_000);
    let is_of_time = wanted.last_modified_time.is_none() || wanted.last_modified_time == seconds;
    match is_of_size && is_of_time {
        true => Ok(()),
        false => Err(ApiError::precondition_failed()),
    }
}

/// Creates a delete marker for a key.
async fn mark_one(
    app: &AppState,
    catalog: &Catalog,
    bucket: &Bucket,
    name: &ObjectName,
    wanted: &ObjectIdentifier,
    conditions: &WriteConditions,
) -> Result<Outcome, ApiError> {
    let there = app.store.get(name)?;
    let is_other = there.as_ref().is_some_and(|there| !matches_sent_key(there, &wanted.key));
    // A key in another normalization form is a different key, under which no object exists.
    if is_other || there.is_none() && wanted.key != name.key.as_str() {
        return Ok(Outcome::Deleted);
    }
    let is_conditional = !conditions.are_none() || !is_unconditional(wanted);
    let along = match &there {
        Some(there) => {
            let known = Version::current(bucket.versioning, there.clone());
            check_properties(wanted, there, known.modified_ms)?;
            conditions.batch(app, name, &wanted.key).await?
        }
        None if is_conditional => {
            match latest(app, bucket, name).await? {
                None => return Ok(Outcome::Deleted),
                Some(marker) => check_marker(wanted, conditions, &marker)?,
            }
            Batch::new()
        }
        None => Batch::new(),
    };
    let marked = mark(catalog, bucket, along, &[(name.clone(), there.is_some())]).await;
    let committed = marked.map_err(|error| conditions.explain(error.into()))?;
    let id = versions::marker_of(&committed, &name.key);
    Ok(id.map_or(Outcome::Deleted, Outcome::Marked))
}

/// Fails with 412 if a delete marker, which has no content, does not meet the conditions.
fn check_marker(
    wanted: &ObjectIdentifier,
    conditions: &WriteConditions,
    marker: &Version,
) -> Result<(), ApiError> {
    let is_met = conditions.if_match.as_ref().is_none_or(|it| it.as_etag().is_none());
    match is_met {
        true => check_properties(wanted, &marker.object, marker.modified_ms),
        false => Err(ApiError::precondition_failed()),
    }
}

async fn latest(
    app: &AppState,
    bucket: &Bucket,
    name: &ObjectName,
) -> Result<Option<Version>, ApiError> {
    let Some(versioning) = bucket.versioning else { return Ok(None) };
    let (store, name) = (app.store.clone(), name.clone());
    Ok(blocking(move || versions::latest(&store, versioning, &name)).await?)
}

/// Commits a batch that creates delete markers for names; the ones that exist cause webhook events.
async fn mark(
    catalog: &Catalog,
    bucket: &Bucket,
    along: Batch,
    marked: &[(ObjectName, bool)],
) -> engine::Result<engine::CommitInfo> {
    let marking = |batch: Batch, (name, _): &(ObjectName, bool)| {
        delete_thumbnail(batch.delete(name.clone()), name)
    };
    let batch = marked.iter().fold(along, marking);
    let there = marked.iter().filter(|(_, is_there)| *is_there);
    let events: Vec<_> = there.map(|(name, _)| ObjectEvent::removed(name.key.clone())).collect();
    let _turn = catalog.lock_current_versions(marked.iter().map(|(name, _)| name)).await;
    catalog.commit(ObjectBatch::new(&bucket.name, batch, &events).absent(Absent::Mark)).await
}

/// Deletes a version permanently.
async fn remove(
    app: &AppState,
    catalog: &Catalog,
    bucket: &Bucket,
    name: &ObjectName,
    id: VersionId,
    deletion: &Deletion<'_>,
) -> Result<Outcome, ApiError> {
    let Deletion { identifier: wanted, conditions, bypasses } = *deletion;
    let _turn = catalog.lock_current_versions(std::iter::once(name)).await;
    for _ in 0..limits::MOVE_TRIES_MAX {
        let (store, versioning, of) = (app.store.clone(), bucket.versioning, name.clone());
        let planned = blocking(move || versions::removal(&store, versioning, &of, id)).await;
        let removal = match planned {
            Err(Error::Conflict(_)) => continue,
            planned => planned?,
        };
        let removal = removal.filter(|it| matches_sent_key(&it.version.object, &wanted.key));
        let Some(Removal { batch, version, promoted }) = removal else {
            return Ok(Outcome::Removed { was_marker: false });
        };
        check_properties(wanted, &version.object, version.modified_ms)?;
        let is_met = conditions.if_match.as_ref();
        if is_met.is_some_and(|condition| !names(condition, &version.object)) {
            return Err(ApiError::precondition_failed());
        }
        let lock = StoredAttributes::of(&version.object).lock;
        if bucket.object_lock.is_some() && lock.forbids_deletion(app.clock.unix_ms(), bypasses) {
            let message = "The version is locked: it has a legal hold or is under retention";
            return Err(ApiError::forbidden(message));
        }
        let fact = bucket.fact().map_err(|why| ApiError::internal(why.to_string()))?;
        let batch = batch.require(Precondition::FactPresent(fact));
        let (batch, events) = with_effects(batch, name, promoted);
        let objects = ObjectBatch::new(&bucket.name, batch, &events).without_versions();
        match catalog.commit(objects).await {
            Err(Error::Conflict(Conflict::FactMissing(_))) => {
                return Err(ApiError::bucket_not_found());
            }
            Err(Error::Conflict(_)) => {}
            removed => {
                removed?;
                return Ok(Outcome::Removed { was_marker: version.is_delete_marker });
            }
        }
    }
    Err(ApiError::conflict("The versions of the object kept changing: try again"))
}

/// Adds the change of the key's thumbnail to the batch, and returns the webhook events.
fn with_effects(batch: Batch, name: &ObjectName, promoted: Promoted) -> (Batch, Vec<ObjectEvent>) {
    match promoted {
        Promoted::Unchanged => (batch, Vec::new()),
        Promoted::Nothing => {
            (delete_thumbnail(batch, name), vec![ObjectEvent::removed(name.key.clone())])
        }
        Promoted::Version(version) => {
            let object = &version.object;
            let (bytes, etag): (u64, Etag) = (object.bytes(), object.etag());
            let created = ObjectEvent::created(
                EventKind::CreatedByCopy,
                name.key.clone(),
                bytes,
                etag,
                object.content_type().to_owned(),
            );
            (delete_thumbnail(batch, name), vec![created])
        }
    }
}

/// Implements DeleteObjects: unconditional deletions of objects and versions share batches.
pub(super) async fn delete_objects(
    app: &AppState,
    request: S3Request<DeleteObjectsInput>,
) -> S3Result<DeleteObjectsOutput> {
    let caller = caller_of(&request.extensions)?;
    let DeleteObjectsInput { bucket, delete: wanted, bypass_governance_retention, .. } =
        request.input;
    let bypasses = may_bypass(&caller, bypass_governance_retention);
    if wanted.objects.len() > engine::limits::LIST_PAGE_MAX {
        let message = "A request deletes at most 1000 objects";
        return Err(s3_error(S3ErrorCode::MalformedXML, message));
    }
    let bucket = bucket_to_delete_in(app, &caller, &bucket)?;
    let catalog = app.catalog.acting_as(caller.actor());
    let (mut together, mut outcomes) = (Vec::new(), Vec::new());
    for object in &wanted.objects {
        let is_plain =
            is_unconditional(object) && object.version_id.as_deref().is_none_or(str::is_empty);
        outcomes.push(if is_plain {
            let key = existing_key(app, &caller, &bucket, &object.key).await;
            let key = key.map(|key| together.extend(key)).map(|()| Outcome::Deleted);
            key.map_err(|error| to_s3_error(&error))
        } else {
            let if_match = object.e_tag.clone().map(s3s::dto::ETagCondition::ETag);
            let conditions = WriteConditions { if_match, if_none_match: None };
            let deletion = Deletion { identifier: object, conditions: &conditions, bypasses };
            Box::pin(delete_one(app, &catalog, &caller, &bucket, &deletion)).await
        });
    }
    let markers = match bucket.versioning {
        None => {
            let deleted =
                delete_keys(&catalog, &app.store, &bucket.name, Batch::new(), &together).await;
            deleted.map_err(|error| to_s3_error(&error))?;
            Vec::new()
        }
        Some(_) => {
            let marked = Box::pin(mark_many(app, &catalog, &bucket, together)).await;
            marked.map_err(|error| to_s3_error(&error))?
        }
    };
    Ok(delete_output(wanted.objects, outcomes, &markers, wanted.quiet.unwrap_or(false)))
}

/// Creates delete markers for keys, in few batches; returns those that were created.
async fn mark_many(
    app: &AppState,
    catalog: &Catalog,
    bucket: &Bucket,
    keys: Vec<ObjectKey>,
) -> Result<Vec<(ObjectKey, VersionId)>, ApiError> {
    let mut markers = Vec::new();
    let keys: Vec<_> = keys.into_iter().collect::<BTreeSet<_>>().into_iter().collect();
    for some in keys.chunks(limits::DELETE_FILES_MAX) {
        let (store, name) = (app.store.clone(), bucket.name.clone());
        let names = some.iter().map(|key| ObjectName::new(name.clone(), key.clone()));
        let names: Vec<_> = names.collect();
        let marked = blocking(move || {
            let looked_up = names.into_iter().map(|name| {
                let is_there = store.get(&name)?.is_some();
                Ok((name, is_there))
            });
            looked_up.collect::<engine::Result<Vec<_>>>()
        });
        let marked = marked.await?;
        let committed = mark(catalog, bucket, Batch::new(), &marked).await?;
        let left = some
            .iter()
            .filter_map(|key| versions::marker_of(&committed, key).map(|id| (key.clone(), id)));
        markers.extend(left);
    }
    Ok(markers)
}

/// Returns the key to delete; `None` if no object can have it, or if the object was stored under another normalization
/// form.
async fn existing_key(
    app: &AppState,
    caller: &Caller,
    bucket: &Bucket,
    sent_key: &str,
) -> Result<Option<ObjectKey>, ApiError> {
    let Some(key) = key_to_delete(caller, sent_key)? else { return Ok(None) };
    if sent_key.is_ascii() {
        return Ok(Some(key));
    }
    let is_marked = bucket.versioning.is_some() && sent_key == key.as_str();
    // On a blocking thread: a request has up to a thousand keys.
    let found = find_object(&app.store, &ObjectName::new(bucket.name.clone(), key.clone())).await?;
    let is_meant = found.map_or(is_marked, |found| matches_sent_key(&found, sent_key));
    Ok(is_meant.then_some(key))
}

fn is_unconditional(object: &ObjectIdentifier) -> bool {
    object.e_tag.is_none() && object.size.is_none() && object.last_modified_time.is_none()
}

fn delete_output(
    objects: Vec<ObjectIdentifier>,
    outcomes: Vec<S3Result<Outcome>>,
    markers: &[(ObjectKey, VersionId)],
    is_quiet: bool,
) -> DeleteObjectsOutput {
    let (mut deleted, mut errors) = (Vec::new(), Vec::new());
    for (ObjectIdentifier { key, version_id, .. }, outcome) in objects.into_iter().zip(outcomes) {
        match outcome {
            Ok(outcome) => deleted.push(deleted_of(key, version_id, outcome, markers)),
            Err(refusal) => {
                let code = Some(refusal.code().as_str().to_owned());
                let message = refusal.message().map(str::to_owned);
                errors.push(s3s::dto::Error { code, key: Some(key), message, version_id });
            }
        }
    }
    DeleteObjectsOutput {
        deleted: (!is_quiet && !deleted.is_empty()).then_some(deleted),
        errors: (!errors.is_empty()).then_some(errors),
        ..DeleteObjectsOutput::default()
    }
}

fn deleted_of(
    key: String,
    version_id: Option<String>,
    outcome: Outcome,
    markers: &[(ObjectKey, VersionId)],
) -> DeletedObject {
    let normal = PathInBucket::parse(&key).ok();
    let marker = match outcome {
        Outcome::Marked(id) => Some(id.to_string()),
        Outcome::Removed { was_marker } => version_id.clone().filter(|_| was_marker),
        Outcome::Deleted => {
            let of_key = |(of, _): &&(ObjectKey, VersionId)| match &normal {
                Some(PathInBucket::File(key)) => of == key,
                _ => false,
            };
            markers.iter().find(of_key).map(|(_, id)| id.to_string())
        }
    };
    DeletedObject {
        key: Some(key),
        version_id,
        delete_marker: marker.is_some().then_some(true),
        delete_marker_version_id: marker,
    }
}

/// Deletes existing files by name, in as few batches as possible, each under the preconditions of `along`.
async fn delete_keys(
    catalog: &Catalog,
    store: &Store,
    bucket: &BucketName,
    along: Batch,
    keys: &[ObjectKey],
) -> Result<(), ApiError> {
    for some in keys.chunks(limits::DELETE_FILES_MAX) {
        let (store, bucket_name, some) = (store.clone(), bucket.clone(), some.to_vec());
        let find = move || {
            let mut found = Vec::new();
            for key in some.into_iter().collect::<BTreeSet<_>>() {
                let name = ObjectName::new(bucket_name.clone(), key);
                if store.get(&name)?.is_some() {
                    found.push(name);
                }
            }
            Ok::<_, Error>(found)
        };
        let found = blocking(find).await?;
        if found.is_empty() {
            continue;
        }
        let deleting =
            |batch: Batch, name: &ObjectName| delete_thumbnail(batch.delete(name.clone()), name);
        let batch = found.iter().fold(along.clone(), deleting);
        let events: Vec<_> =
            found.iter().map(|name| ObjectEvent::removed(name.key.clone())).collect();
        catalog.commit(ObjectBatch::new(bucket, batch, &events)).await?;
    }
    Ok(())
}
