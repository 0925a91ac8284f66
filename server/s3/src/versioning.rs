//! Bucket versioning, and lookup of the version that a request names.
//!
//! Guarantees: a read of a key whose current version is a delete marker says so. Non-goals: deletions, listings.

use catalog::versions::{self, Version, VersionId, VersioningState};
use catalog::{Bucket, BucketChange};
use engine::{Object, ObjectName};
use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use protocol::conditional::Validators;
use protocol::error::ApiError;
use s3s::dto::{
    BucketVersioningStatus, GetBucketVersioningInput, GetBucketVersioningOutput, MFADelete,
    PutBucketVersioningInput, PutBucketVersioningOutput,
};
use s3s::{S3Error, S3ErrorCode, S3Request, S3Result};
use service::state::AppState;
use usage::task::blocking;

use super::access::caller_of;
use super::buckets::{change_settings, head_bucket};
use super::errors::{code, s3_error, to_s3_error};
use super::objects::{EMPTY_MD5, matches_sent_key};

const DELETE_MARKER: HeaderName = HeaderName::from_static("x-amz-delete-marker");
pub(super) const VERSION_ID: HeaderName = HeaderName::from_static("x-amz-version-id");

/// Implements GetBucketVersioning.
pub(super) async fn get(
    app: &AppState,
    request: S3Request<GetBucketVersioningInput>,
) -> S3Result<GetBucketVersioningOutput> {
    let caller = caller_of(&request.extensions)?;
    let bucket =
        head_bucket(app, &caller, &request.input.bucket).map_err(|error| to_s3_error(&error))?;
    let status = bucket.versioning.map(|versioning| match versioning.state {
        VersioningState::Enabled => BucketVersioningStatus::ENABLED,
        VersioningState::Suspended => BucketVersioningStatus::SUSPENDED,
    });
    let status = status.map(BucketVersioningStatus::from_static);
    Ok(GetBucketVersioningOutput { status, ..GetBucketVersioningOutput::default() })
}

/// Implements PutBucketVersioning.
pub(super) async fn put(
    app: &AppState,
    request: S3Request<PutBucketVersioningInput>,
) -> S3Result<PutBucketVersioningOutput> {
    let caller = caller_of(&request.extensions)?;
    let wanted = request.input.versioning_configuration;
    if wanted.mfa_delete.is_some_and(|it| it.as_str() != MFADelete::DISABLED) {
        let message = "MFA delete is not supported: MfaDelete must be Disabled";
        return Err(s3_error(S3ErrorCode::NotImplemented, message));
    }
    let state = match wanted.status.as_ref().map(BucketVersioningStatus::as_str) {
        Some(BucketVersioningStatus::ENABLED) => VersioningState::Enabled,
        Some(BucketVersioningStatus::SUSPENDED) => VersioningState::Suspended,
        _ => {
            let message = "The Status of a versioning configuration must be Enabled or Suspended";
            return Err(s3_error(code("IllegalVersioningConfigurationException"), message));
        }
    };
    let bucket =
        head_bucket(app, &caller, &request.input.bucket).map_err(|error| to_s3_error(&error))?;
    if state == VersioningState::Suspended && bucket.object_lock.is_some() {
        let message = "The bucket has object lock, which requires enabled versioning";
        return Err(s3_error(S3ErrorCode::InvalidBucketState, message));
    }
    let change = BucketChange { versioning: Some(state), ..BucketChange::default() };
    let changed = change_settings(app, &caller, &request.input.bucket, change).await;
    changed.map_err(|error| to_s3_error(&error))?;
    Ok(PutBucketVersioningOutput {})
}

/// Parses the version that a request names; `None` for the current one.
pub(super) fn version_id(sent: Option<&str>) -> S3Result<Option<VersionId>> {
    let Some(sent) = sent.filter(|sent| !sent.is_empty()) else { return Ok(None) };
    let message = "Invalid version id: use \"null\" or an id from the server";
    let id = VersionId::parse(sent);
    id.map(Some).ok_or_else(|| s3_error(S3ErrorCode::InvalidArgument, message))
}

/// Returns the id of a version that was just written, for the response: `None` while versioning is suspended (S3 API).
pub(super) fn id_of(bucket: &Bucket, object: &Object) -> Option<String> {
    let id = versions::id_of(bucket.versioning, object)?;
    (id != VersionId::Null).then(|| id.to_string())
}

/// Finds the version of an object that a request names. A delete marker is an error that says so.
pub(super) async fn find_version(
    app: &AppState,
    bucket: &Bucket,
    name: &ObjectName,
    sent_key: &str,
    id: Option<VersionId>,
) -> S3Result<Version> {
    let ours = |error: ApiError| to_s3_error(&error);
    let Some(id) = id else {
        let found = app.store.get(name).map_err(|error| ours(error.into()))?;
        let now_ms = || app.clock.unix_ms();
        let found = found
            .filter(|found| matches_sent_key(found, sent_key) && !bucket.is_expired(found, now_ms));
        return match found {
            Some(object) => Ok(Version::current(bucket.versioning, object)),
            None => Err(missing(app, bucket, name).await?),
        };
    };
    let (store, versioning, of) = (app.store.clone(), bucket.versioning, name.clone());
    let found = blocking(move || versions::find(&store, versioning, &of, id)).await;
    let found = found.map_err(|error| ours(error.into()))?;
    match found.filter(|found| matches_sent_key(&found.object, sent_key)) {
        Some(marker) if marker.is_delete_marker => Err(is_marker(&marker)),
        Some(version) => Ok(version),
        None => Err(s3_error(S3ErrorCode::NoSuchVersion, "The object has no version with this id")),
    }
}

/// Returns the error for a key without a current version: in a versioned bucket it says whether there is a delete
/// marker.
async fn missing(app: &AppState, bucket: &Bucket, name: &ObjectName) -> S3Result<S3Error> {
    let mut error = to_s3_error(&ApiError::file_not_found());
    let Some(versioning) = bucket.versioning else { return Ok(error) };
    let (store, of) = (app.store.clone(), name.clone());
    let latest = blocking(move || versions::latest(&store, versioning, &of)).await;
    let latest = latest.map_err(|error| to_s3_error(&error.into()))?;
    if let Some(marker) = latest.filter(|latest| latest.is_delete_marker) {
        error.set_headers(marker_headers(&marker));
    }
    Ok(error)
}

/// Returns the error for a read of a delete marker.
fn is_marker(marker: &Version) -> S3Error {
    let message = "The version is a delete marker, which has no content";
    let mut error = s3_error(S3ErrorCode::MethodNotAllowed, message);
    let mut headers = marker_headers(marker);
    headers.insert(header::ALLOW, HeaderValue::from_static("DELETE"));
    let time = Validators::new(EMPTY_MD5, marker.modified_ms).last_modified_header();
    headers.extend(time.map(|time| (header::LAST_MODIFIED, time)));
    error.set_headers(headers);
    error
}

fn marker_headers(marker: &Version) -> HeaderMap {
    let mut headers = HeaderMap::from_iter([
        (header::CONTENT_TYPE, HeaderValue::from_static("application/xml")),
        (DELETE_MARKER, HeaderValue::from_static("true")),
    ]);
    let id = HeaderValue::try_from(marker.id.to_string());
    headers.extend(id.map(|id| (VERSION_ID, id)));
    headers
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn version_ids_are_null_or_issued() {
        assert_eq!(version_id(None).unwrap(), None);
        assert_eq!(version_id(Some("")).unwrap(), None);
        assert_eq!(version_id(Some("null")).unwrap(), Some(VersionId::Null));
        let issued = VersionId::Number(77);
        assert_eq!(version_id(Some(&issued.to_string())).unwrap(), Some(issued));
        for wrong in ["abc", "NULL", "0000000000000G00"] {
            let refusal = version_id(Some(wrong)).unwrap_err();
            assert_eq!(refusal.code().as_str(), "InvalidArgument", "{wrong}");
        }
    }
}
