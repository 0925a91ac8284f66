//! Object writes, and how keys are resolved.
//!
//! Guarantees: objects are stored through the same pipeline as every upload, with its limits, quotas, rules and
//! webhooks, and replace the object of the same key. Non-goals: reads, deletions (`deletions`),
//! authentication.

use std::sync::Arc;

use catalog::object_attributes::StoredAttributes;
use catalog::versions;
use catalog::{Bucket, EventKind, Scope, ThumbnailChoice, UploadParams};
use engine::{Object, ObjectKey, ObjectName};
use http::HeaderMap;
use protocol::error::ApiError;
use protocol::file_name::{ConflictRule, Naming};
use protocol::object_path::{PathInBucket, check_writable, parse_bucket_name};
use protocol::request_body::{BodyLimits, RequestBody};
use s3s::dto::{ETag, PutObjectInput, PutObjectOutput, Timestamp, TimestampFormat};
use s3s::{S3Request, S3Result, TrailingHeaders};
use service::auth::Caller;
use service::state::AppState;
use service::upload::{UploadOptions, receive_raw, store_files};

use super::access::caller_of;
use super::acl::is_made_public;
use super::checksums::{Algorithm, copy_checksums, response_of};
use super::conditions::WriteConditions;
use super::errors::to_s3_error;
use super::incoming::{BodyReport, ExpectedBody, VerifiedBody};
use super::lifecycle::sent_expiry;
use super::object_lock::sent_lock;
use super::stored::{StoredParts, described, with_content};
use super::versioning::id_of;

/// MD5 of empty content.
pub(super) const EMPTY_MD5: &str = "d41d8cd98f00b204e9800998ecf8427e";

/// Resolves a bucket and a key in it that the caller has the scope for.
pub(super) fn authorized_object(
    app: &AppState,
    caller: &Caller,
    bucket: &str,
    key: &str,
    scope: Scope,
) -> Result<(Arc<Bucket>, ObjectKey), ApiError> {
    let bucket = caller.bucket(&app.catalog, &parse_bucket_name(bucket)?, scope)?;
    let PathInBucket::File(key) = PathInBucket::parse(key)? else {
        return Err(match scope {
            Scope::Upload => ApiError::bad_path(
                "keys that end in \"/\" are not supported: folders exist through their files",
            ),
            _ => ApiError::file_not_found(),
        });
    };
    caller.require_key_access(&key)?;
    Ok((bucket, key))
}

/// Returns the entity tag of an object for S3 clients: the MD5 if it was uploaded by S3, otherwise a value that cannot
/// be mistaken for one.
pub(super) fn etag_of(object: &Object) -> String {
    etag_in(&StoredAttributes::of(object), object)
}

/// Returns the entity tag of an object whose attributes are parsed already.
pub(super) fn etag_in(attributes: &StoredAttributes, object: &Object) -> String {
    let stored = attributes.s3.as_ref().and_then(|it| it.etag.clone());
    stored.unwrap_or_else(|| format!("{}-1", object.etag()))
}

/// Returns the key of an object as it was sent, in any Unicode normalization form.
pub(super) fn key_of(object: &Object) -> String {
    key_in(&StoredAttributes::of(object), object)
}

/// Returns the original key of an object whose attributes are parsed already.
pub(super) fn key_in(attributes: &StoredAttributes, object: &Object) -> String {
    let sent = attributes.s3.as_ref().and_then(|it| it.key.clone());
    sent.unwrap_or_else(|| versions::key_of(object.name()).as_str().to_owned())
}

/// Returns whether the object was stored under this key, and not under another normalization form of it.
pub(super) fn matches_sent_key(object: &Object, sent_key: &str) -> bool {
    key_of(object) == sent_key
}

pub(super) fn strong_etag(etag: String) -> Option<ETag> {
    Some(ETag::Strong(etag))
}

pub(super) fn time_of(unix_ms: u64) -> Option<Timestamp> {
    let since = std::time::Duration::from_millis(unix_ms);
    Some(Timestamp::from(std::time::UNIX_EPOCH.checked_add(since)?))
}

/// Returns a time in milliseconds since 1970; `None` for an earlier one.
pub(super) fn millis_of(time: &Timestamp) -> Option<u64> {
    let mut text = Vec::new();
    time.format(TimestampFormat::DateTime, &mut text).ok()?;
    parse_millis(std::str::from_utf8(&text).ok()?)
}

/// Parses an ISO 8601 time to milliseconds since 1970.
pub(super) fn parse_millis(text: &str) -> Option<u64> {
    let time: jiff::Timestamp = text.parse().ok()?;
    u64::try_from(time.as_millisecond()).ok()
}

/// Returns the upload options of S3: keep the key, overwrite, no thumbnail unless the bucket creates them by default.
pub(super) fn upload_options(event: EventKind, caller: &Caller) -> UploadOptions {
    let (naming, rule) = (Naming::ClientName, ConflictRule::Overwrite);
    UploadOptions::new(
        UploadParams { naming, rule, thumbnail: ThumbnailChoice::from_flag(None) },
        event,
        caller.actor(),
    )
}

/// Wraps a request body so that its length and checksums are verified and the limits of a request apply.
pub(super) fn limited_body(
    app: &AppState,
    body: Option<s3s::dto::StreamingBlob>,
    headers: &HeaderMap,
    trailers: Option<TrailingHeaders>,
    taken: Option<Algorithm>,
) -> Result<(RequestBody<VerifiedBody>, BodyReport), ApiError> {
    let body = body.map_or_else(s3s::Body::empty, s3s::Body::from);
    let expected = ExpectedBody::from_headers(headers, trailers).taking(taken);
    let (incoming, report) = VerifiedBody::new(body, expected);
    let limits = BodyLimits::new(app.body_bytes_max());
    Ok((RequestBody::new(headers, incoming, limits)?, report))
}

/// Implements PutObject.
pub(super) async fn put_object(
    app: &AppState,
    request: S3Request<PutObjectInput>,
) -> S3Result<PutObjectOutput> {
    let caller = caller_of(&request.extensions)?;
    let S3Request { input, headers, trailing_headers, .. } = request;
    let ours = |error: ApiError| to_s3_error(&error);
    if input.key.ends_with('/') {
        let (body, report) =
            limited_body(app, input.body, &headers, trailing_headers, None).map_err(ours)?;
        let put = put_folder_marker(app, &caller, &input.bucket, &input.key, body).await;
        return put.map_err(|error| report.take_failure().unwrap_or_else(|| to_s3_error(&error)));
    }
    let (bucket, key) =
        authorized_object(app, &caller, &input.bucket, &input.key, Scope::Upload).map_err(ours)?;
    check_writable(&key).map_err(ours)?;
    let described = StoredAttributes {
        lock: sent_lock(&headers, &bucket, app.clock.unix_ms())?,
        is_public: is_made_public(app, &caller, &headers, &bucket)?,
        expires_ms: sent_expiry(&headers, app.clock.unix_ms())?,
        ..described(&headers, input.metadata, &input.key, &key)?
    };
    let name = ObjectName::new(bucket.name.clone(), key.clone());
    let conditions =
        WriteConditions { if_match: input.if_match, if_none_match: input.if_none_match };
    let along = conditions.batch(app, &name, &input.key).await.map_err(ours)?;
    let (body, report) =
        limited_body(app, input.body, &headers, trailing_headers, None).map_err(ours)?;
    let received = receive_raw(app, &bucket, described.declared_type.clone(), body).await;
    let received =
        received.map_err(|error| report.take_failure().unwrap_or_else(|| to_s3_error(&error)))?;
    let etag = report.md5().as_ref().map(hex).unwrap_or_default();
    let checksum = report.checksum();
    let attributes =
        with_content(&described, etag.clone(), checksum.clone(), StoredParts::default());
    let received = received.with_attributes(attributes);
    let options = upload_options(EventKind::CreatedByPut, &caller);
    let stored = store_files(app, &bucket, &options, along, vec![received], &[key]).await;
    let stored = stored.map_err(|error| ours(conditions.explain(error)))?;
    let output = put_output(etag, &response_of(checksum.as_ref()));
    let version_id = stored.first().and_then(|stored| id_of(&bucket, &stored.object));
    Ok(PutObjectOutput { version_id, ..output })
}

/// Implements PutObject for a folder marker: an empty object whose key ends in `/`. Folders exist with their files, so
/// nothing is stored.
async fn put_folder_marker(
    app: &AppState,
    caller: &Caller,
    bucket: &str,
    key: &str,
    mut body: RequestBody<VerifiedBody>,
) -> Result<PutObjectOutput, ApiError> {
    caller.bucket(&app.catalog, &parse_bucket_name(bucket)?, Scope::Upload)?;
    caller.require_path_access(&PathInBucket::parse(key)?)?;
    while let Some(chunk) = body.chunk().await? {
        if !chunk.is_empty() {
            return Err(ApiError::bad_path("it ends in \"/\", which is an empty folder"));
        }
    }
    Ok(put_output(EMPTY_MD5.to_owned(), &response_of(None)))
}

fn put_output(etag: String, checksum: &s3s::dto::Checksum) -> PutObjectOutput {
    let mut output = PutObjectOutput { e_tag: strong_etag(etag), ..PutObjectOutput::default() };
    copy_checksums!(checksum => output);
    output.checksum_type.clone_from(&checksum.checksum_type);
    output
}

/// Formats bytes as lower-case hexadecimal digits.
pub(super) fn hex(bytes: &[u8; 16]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_md5_keeps_leading_zeros() {
        assert_eq!(hex(&[0; 16]), "0".repeat(32));
        assert_eq!(hex(&[0x0f; 16]), "0f".repeat(16));
    }
}
