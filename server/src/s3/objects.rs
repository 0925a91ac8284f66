//! Object writes and deletions, and how keys are resolved.
//!
//! Guarantees: objects are stored through the same pipeline as every upload, with its limits, quotas, rules and
//! webhooks, and replace the object of the same key. Non-goals: reads, authentication.

use std::sync::Arc;

use engine::{Batch, Object, ObjectKey, ObjectName};
use http::HeaderMap;
use s3s::dto::{
    DeleteObjectInput, DeleteObjectOutput, DeleteObjectsInput, DeleteObjectsOutput, DeletedObject,
    ETag, ObjectIdentifier, PutObjectInput, PutObjectOutput, Timestamp,
};
use s3s::{S3ErrorCode, S3Request, S3Result, TrailingHeaders};

use super::access::caller_of;
use super::checksums::{Algorithm, copy_checksums, response_of};
use super::conditions::WriteConditions;
use super::errors::{refusal, refused};
use super::incoming::{Expected, Incoming, Report};
use super::stored::{Described, StoredParts};
use crate::auth::Caller;
use crate::bridge::blocking;
use crate::catalog::{Bucket, EventKind, Scope, Thumbnail, Wishes};
use crate::error::ApiError;
use crate::handlers::delete::delete_named;
use crate::intake::{Manner, keep, receive_raw};
use crate::object_attributes::StoredAttributes;
use crate::object_name::{NameRule, Naming};
use crate::request_body::{BodyLimits, RequestBody};
use crate::state::AppState;
use crate::target::{Place, bucket_of, check_writable};

/// The MD5 of nothing.
pub(super) const EMPTY_MD5: &str = "d41d8cd98f00b204e9800998ecf8427e";

/// Resolves a bucket and a key in it that the caller has the scope for.
pub(super) fn file_in(
    app: &AppState,
    caller: &Caller,
    bucket: &str,
    key: &str,
    scope: Scope,
) -> Result<(Arc<Bucket>, ObjectKey), ApiError> {
    let bucket = caller.bucket(&app.catalog, &bucket_of(bucket)?, scope)?;
    let Place::File(key) = Place::parse(key)? else {
        return Err(match scope {
            Scope::Upload => ApiError::bad_path("it ends in \"/\": folders come with their files"),
            _ => ApiError::file_not_found(),
        });
    };
    caller.check_file(&key)?;
    Ok((bucket, key))
}

/// Entity tag of an object for S3 clients: the MD5 if it was uploaded by S3, otherwise a value that cannot be mistaken
/// for one.
pub(super) fn etag_of(object: &Object) -> String {
    etag_in(&StoredAttributes::of(object), object)
}

/// Entity tag of an object whose attributes are parsed already.
pub(super) fn etag_in(attributes: &StoredAttributes, object: &Object) -> String {
    let stored = attributes.s3.as_ref().and_then(|it| it.etag.clone());
    stored.unwrap_or_else(|| format!("{}-1", object.etag()))
}

/// Key of an object as it was sent, in any Unicode normalization form.
pub(super) fn key_of(object: &Object) -> String {
    key_in(&StoredAttributes::of(object), object)
}

/// Key of an object whose attributes are parsed already.
pub(super) fn key_in(attributes: &StoredAttributes, object: &Object) -> String {
    let sent = attributes.s3.as_ref().and_then(|it| it.key.clone());
    sent.unwrap_or_else(|| object.name().key.as_str().to_owned())
}

/// Whether the object was stored under this key, and not under another normalization form of it.
pub(super) fn is_named(object: &Object, sent_key: &str) -> bool {
    key_of(object) == sent_key
}

pub(super) fn strong(etag: String) -> Option<ETag> {
    Some(ETag::Strong(etag))
}

pub(super) fn time_of(unix_ms: u64) -> Option<Timestamp> {
    let since = std::time::Duration::from_millis(unix_ms);
    Some(Timestamp::from(std::time::UNIX_EPOCH.checked_add(since)?))
}

/// The object of that name, if there is one.
pub(super) async fn find(app: &AppState, name: &ObjectName) -> Result<Option<Object>, ApiError> {
    let (store, name) = (app.store.clone(), name.clone());
    Ok(blocking(move || store.get(&name)).await?)
}

/// Upload options of S3: keep the key, overwrite, no thumbnail unless the bucket asks for one.
pub(super) fn manner(event: EventKind) -> Manner {
    let (naming, rule) = (Naming::Kept, NameRule::Overwrite);
    Manner::new(Wishes { naming, rule, thumbnail: Thumbnail::of_flag(None) }, event)
}

/// Wraps a request body so that its length and checksums are verified and the limits of a request apply.
pub(super) fn watched(
    app: &AppState,
    body: Option<s3s::dto::StreamingBlob>,
    headers: &HeaderMap,
    trailers: Option<TrailingHeaders>,
    taken: Option<Algorithm>,
) -> Result<(RequestBody<Incoming>, Report), ApiError> {
    let body = body.map_or_else(s3s::Body::empty, s3s::Body::from);
    let expected = Expected::of(headers, trailers).taking(taken);
    let (incoming, report) = Incoming::new(body, expected);
    let limits = BodyLimits::new(app.body_bytes_max());
    Ok((RequestBody::new(headers, incoming, limits)?, report))
}

/// PutObject.
pub(super) async fn put(
    app: &AppState,
    request: S3Request<PutObjectInput>,
) -> S3Result<PutObjectOutput> {
    let caller = caller_of(&request.extensions)?;
    let S3Request { input, headers, trailing_headers, .. } = request;
    let ours = |error: ApiError| refused(&error);
    if input.key.ends_with('/') {
        let (body, report) =
            watched(app, input.body, &headers, trailing_headers, None).map_err(ours)?;
        let put = put_folder_marker(app, &caller, &input.bucket, &input.key, body).await;
        return put.map_err(|error| report.take_failure().unwrap_or_else(|| refused(&error)));
    }
    let (bucket, key) =
        file_in(app, &caller, &input.bucket, &input.key, Scope::Upload).map_err(ours)?;
    check_writable(&key).map_err(ours)?;
    let described = Described::of(&headers, input.metadata, &input.key, &key)?;
    let name = ObjectName::new(bucket.name.clone(), key.clone());
    let conditions =
        WriteConditions { if_match: input.if_match, if_none_match: input.if_none_match };
    let along = conditions.batch(app, &name, &input.key).await.map_err(ours)?;
    let (body, report) =
        watched(app, input.body, &headers, trailing_headers, None).map_err(ours)?;
    let received = receive_raw(app, &bucket, described.content_type.clone(), body).await;
    let received =
        received.map_err(|error| report.take_failure().unwrap_or_else(|| refused(&error)))?;
    let etag = report.md5().as_ref().map(hex).unwrap_or_default();
    let checksum = report.checksum();
    let attributes = described.attributes(etag.clone(), checksum.clone(), StoredParts::default());
    let received = received.with_s3(described.headers, attributes, described.tags);
    let manner = manner(EventKind::CreatedByPut);
    let kept = keep(app, &bucket, manner, along, vec![received], &[key]).await;
    kept.map_err(|error| ours(conditions.explain(error)))?;
    Ok(put_output(etag, &response_of(checksum.as_ref())))
}

/// PutObject of a folder marker: an empty object whose key ends in `/`. Folders exist with their files, so nothing is
/// stored.
async fn put_folder_marker(
    app: &AppState,
    caller: &Caller,
    bucket: &str,
    key: &str,
    mut body: RequestBody<Incoming>,
) -> Result<PutObjectOutput, ApiError> {
    caller.bucket(&app.catalog, &bucket_of(bucket)?, Scope::Upload)?;
    caller.check_place(&Place::parse(key)?)?;
    while let Some(chunk) = body.chunk().await? {
        if !chunk.is_empty() {
            return Err(ApiError::bad_path("it ends in \"/\", which stands for an empty folder"));
        }
    }
    Ok(put_output(EMPTY_MD5.to_owned(), &response_of(None)))
}

fn put_output(etag: String, checksum: &s3s::dto::Checksum) -> PutObjectOutput {
    let mut output = PutObjectOutput { e_tag: strong(etag), ..PutObjectOutput::default() };
    copy_checksums!(checksum => output);
    output.checksum_type.clone_from(&checksum.checksum_type);
    output
}

/// DeleteObject. Succeeds if the object does not exist.
pub(super) async fn delete(
    app: &AppState,
    request: S3Request<DeleteObjectInput>,
) -> S3Result<DeleteObjectOutput> {
    let caller = caller_of(&request.extensions)?;
    let DeleteObjectInput { bucket, key, if_match, .. } = request.input;
    let wanted = ObjectIdentifier {
        key,
        size: request.input.if_match_size,
        last_modified_time: request.input.if_match_last_modified_time,
        ..ObjectIdentifier::default()
    };
    let conditions = WriteConditions { if_match, if_none_match: None };
    let bucket = bucket_to_delete_in(app, &caller, &bucket)?;
    let deleted = delete_one(app, &caller, &bucket, &wanted, &conditions).await;
    deleted.map_err(|error| refused(&error))?;
    Ok(DeleteObjectOutput::default())
}

fn bucket_to_delete_in(app: &AppState, caller: &Caller, bucket: &str) -> S3Result<Arc<Bucket>> {
    let found = bucket_of(bucket);
    let found = found.and_then(|name| caller.bucket(&app.catalog, &name, Scope::Delete));
    found.map_err(|error| refused(&error))
}

/// Parses a key to delete; `None` if no object can have it.
fn key_to_delete(caller: &Caller, sent_key: &str) -> Result<Option<ObjectKey>, ApiError> {
    let Ok(Place::File(key)) = Place::parse(sent_key) else { return Ok(None) };
    caller.check_file(&key)?;
    Ok(Some(key))
}

/// Deletes an object if it meets the conditions.
async fn delete_one(
    app: &AppState,
    caller: &Caller,
    bucket: &Bucket,
    wanted: &ObjectIdentifier,
    conditions: &WriteConditions,
) -> Result<(), ApiError> {
    let Some(key) = key_to_delete(caller, &wanted.key)? else { return Ok(()) };
    let name = ObjectName::new(bucket.name.clone(), key.clone());
    let there = find(app, &name).await?;
    let Some(there) = there.filter(|there| is_named(there, &wanted.key)) else { return Ok(()) };
    let is_of_size = wanted.size.is_none_or(|size| u64::try_from(size) == Ok(there.bytes()));
    let seconds = time_of(there.modified_ms() / 1_000 * 1_000);
    let is_of_time = wanted.last_modified_time.is_none() || wanted.last_modified_time == seconds;
    if !is_of_size || !is_of_time {
        return Err(ApiError::precondition_failed());
    }
    let along = conditions.batch(app, &name, &wanted.key).await?;
    let deleted = delete_named(app, &bucket.name, along, &[key]).await;
    deleted.map_err(|error| conditions.explain(error))
}

/// DeleteObjects: objects without conditions share batches.
pub(super) async fn delete_many(
    app: &AppState,
    request: S3Request<DeleteObjectsInput>,
) -> S3Result<DeleteObjectsOutput> {
    let caller = caller_of(&request.extensions)?;
    let DeleteObjectsInput { bucket, delete: wanted, .. } = request.input;
    if wanted.objects.len() > engine::limits::LIST_PAGE_MAX {
        let message = "A request deletes at most 1000 objects";
        return Err(refusal(S3ErrorCode::MalformedXML, message));
    }
    let bucket = bucket_to_delete_in(app, &caller, &bucket)?;
    let (mut together, mut outcomes) = (Vec::new(), Vec::new());
    for object in &wanted.objects {
        outcomes.push(match version_of(object) {
            Ok(()) if is_unconditional(object) => {
                let key = existing_key(app, &caller, &bucket, &object.key).await;
                key.map(|key| together.extend(key))
            }
            Ok(()) => {
                let if_match = object.e_tag.clone().map(s3s::dto::ETagCondition::ETag);
                let conditions = WriteConditions { if_match, if_none_match: None };
                delete_one(app, &caller, &bucket, object, &conditions).await
            }
            Err(refusal) => Err(refusal),
        });
    }
    let deleted = delete_named(app, &bucket.name, Batch::new(), &together).await;
    deleted.map_err(|error| refused(&error))?;
    Ok(delete_output(wanted.objects, outcomes, wanted.quiet.unwrap_or(false)))
}

/// The key to delete; `None` where no object can have it, or where an object has it in another normalization form.
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
    let found = find(app, &ObjectName::new(bucket.name.clone(), key.clone())).await?;
    Ok(found.filter(|found| is_named(found, sent_key)).map(|_| key))
}

fn is_unconditional(object: &ObjectIdentifier) -> bool {
    object.e_tag.is_none() && object.size.is_none() && object.last_modified_time.is_none()
}

/// Rejects versions other than `null`, the only one of an object.
fn version_of(object: &ObjectIdentifier) -> Result<(), ApiError> {
    match object.version_id.as_deref() {
        None | Some("null" | "") => Ok(()),
        Some(_) => Err(ApiError::bad_request("The only version of an object is \"null\"")),
    }
}

fn delete_output(
    objects: Vec<ObjectIdentifier>,
    outcomes: Vec<Result<(), ApiError>>,
    is_quiet: bool,
) -> DeleteObjectsOutput {
    let (mut deleted, mut errors) = (Vec::new(), Vec::new());
    for (ObjectIdentifier { key, version_id, .. }, outcome) in objects.into_iter().zip(outcomes) {
        let key = Some(key);
        match outcome {
            Ok(()) => deleted.push(DeletedObject { key, version_id, ..DeletedObject::default() }),
            Err(refusal) => {
                let said = refused(&refusal);
                let code = Some(said.code().as_str().to_owned());
                let message = said.message().map(str::to_owned);
                errors.push(s3s::dto::Error { code, key, message, version_id });
            }
        }
    }
    DeleteObjectsOutput {
        deleted: (!is_quiet && !deleted.is_empty()).then_some(deleted),
        errors: (!errors.is_empty()).then_some(errors),
        ..DeleteObjectsOutput::default()
    }
}

/// Bytes as lower-case hexadecimal digits.
pub(super) fn hex(bytes: &[u8; 16]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_md5_is_written_with_its_zeros() {
        assert_eq!(hex(&[0; 16]), "0".repeat(32));
        assert_eq!(hex(&[0x0f; 16]), "0f".repeat(16));
    }
}
