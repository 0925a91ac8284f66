//! Objects read, stored and deleted.
//!
//! Promises: what is stored goes the way of every upload, with its limits, quotas, rules and webhooks, and replaces
//! what is there; what is read says the same as delivery about what it is, so that no file becomes a page of ours by
//! being asked for in another way. Never here: who signed.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::body::Body;
use engine::{Batch, Error, Object, ObjectKey, ObjectName, Precondition};
use http::header::{self, HeaderMap, HeaderValue};
use http::{Method, StatusCode};
use s3s::dto::{
    DeleteObjectsInput, DeleteObjectsOutput, DeletedObject, ETag, ETagCondition, Metadata,
    PutObjectInput, PutObjectOutput, Timestamp,
};
use s3s::{S3Error, S3ErrorCode, S3Request, S3Result, TrailingHeaders};

use super::access::caller_of;
use super::errors::{refusal, refused};
use super::incoming::{Expected, Incoming, Report};
use crate::auth::Caller;
use crate::bridge::{self, Piece, blocking};
use crate::catalog::{Bucket, EventKind, Scope, Thumbnail, Wishes};
use crate::conditional::{Outcome, RangeRule, Validators, evaluate};
use crate::delivery_headers::{Audience, Delivery, Download, Pages, object_headers};
use crate::error::ApiError;
use crate::handlers::delete::delete_named;
use crate::intake::{KeptAttributes, Manner, S3Attributes, keep, receive_raw};
use crate::object_name::{NameRule, Naming};
use crate::range::{ByteRange, content_range, parse_range};
use crate::request_body::{BodyLimits, RequestBody};
use crate::state::AppState;
use crate::target::{Place, bucket_of, check_writable};

/// How often an object that is replaced while it is opened is looked up again.
const LOOKUPS_MAX: usize = 16;

/// What is answered to who reads an object.
pub(super) struct Read {
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    pub(super) metadata: Metadata,
    pub(super) body: Option<Body>,
}

/// A bucket, and a file in it, that a caller may do this with.
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

/// The entity tag of an object as clients of S3 know it: an MD5 where it is one. Ours has a form that nobody takes for
/// one.
pub(super) fn etag_of(object: &Object) -> String {
    let kept = KeptAttributes::of(object).s3.and_then(|it| it.etag);
    kept.unwrap_or_else(|| format!("{}-1", object.etag()))
}

pub(super) fn strong(etag: String) -> Option<ETag> {
    Some(ETag::Strong(etag))
}

pub(super) fn time_of(unix_ms: u64) -> Option<Timestamp> {
    let since = std::time::Duration::from_millis(unix_ms);
    Some(Timestamp::from(std::time::UNIX_EPOCH.checked_add(since)?))
}

/// The object of that name, if there is one.
pub(super) async fn find(
    app: &AppState,
    bucket: &Bucket,
    key: &ObjectKey,
) -> Result<Option<Object>, ApiError> {
    let (store, name) = (app.store.clone(), ObjectName::new(bucket.name.clone(), key.clone()));
    Ok(blocking(move || store.get(&name)).await?)
}

/// Reads an object, or a range of it.
pub(super) async fn read(
    app: &AppState,
    caller: &Caller,
    bucket: &str,
    key: &str,
    method: Method,
    headers: &HeaderMap,
) -> Result<Read, ApiError> {
    let (bucket, key) = file_in(app, caller, bucket, key, Scope::Read)?;
    app.catalog.conduct().note_request(&bucket.owner);
    for _ in 0..LOOKUPS_MAX {
        let object = find(app, &bucket, &key).await?.ok_or_else(ApiError::file_not_found)?;
        match read_object(app, &object, &method, headers).await {
            Ok(Err(Error::Conflict(_))) => {}
            Ok(read) => return Ok(read?),
            Err(refusal) => return Err(refusal),
        }
    }
    Err(ApiError::overloaded(1))
}

async fn read_object(
    app: &AppState,
    object: &Object,
    method: &Method,
    asked: &HeaderMap,
) -> Result<engine::Result<Read>, ApiError> {
    let validators = Validators::new(etag_of(object), object.modified_ms());
    let total = object.bytes();
    let range = match evaluate(method, asked, Some(&validators)) {
        Outcome::PreconditionFailed => return Err(ApiError::precondition_failed()),
        Outcome::NotModified => {
            let mut headers = HeaderMap::new();
            headers.extend(validators.etag_header().map(|etag| (header::ETAG, etag)));
            let status = StatusCode::NOT_MODIFIED;
            return Ok(Ok(Read { status, headers, metadata: Metadata::default(), body: None }));
        }
        Outcome::Proceed { range: RangeRule::Holds } => parse_range(asked, total),
        Outcome::Proceed { range: RangeRule::Ignored } => ByteRange::Whole,
    };
    let mut headers = object_headers(&Delivery {
        file_name: object.name().key.file_name(),
        content_type: object.content_type(),
        validators: &validators,
        audience: Audience::Private,
        cache_control: None,
        pages: Pages::AsText,
        download: Download::No,
    });
    let (status, slice) = match range {
        ByteRange::Unsatisfiable => return Err(ApiError::range_not_satisfiable(total)),
        ByteRange::One(range) => {
            let value = HeaderValue::try_from(content_range(&range, total));
            headers.extend(value.map(|value| (header::CONTENT_RANGE, value)));
            (StatusCode::PARTIAL_CONTENT, range)
        }
        // S3 sends one range.
        ByteRange::Whole | ByteRange::Several(_) => (StatusCode::OK, 0..total),
    };
    headers.insert(header::CONTENT_LENGTH, HeaderValue::from(slice.end - slice.start));
    let body = match *method {
        Method::HEAD => None,
        _ => match body_of(app, object, slice).await {
            Ok(body) => Some(body),
            Err(error) => return Ok(Err(error)),
        },
    };
    let metadata = KeptAttributes::of(object).s3.unwrap_or_default().metadata;
    Ok(Ok(Read { status, headers, metadata: metadata.into_iter().collect(), body }))
}

async fn body_of(
    app: &AppState,
    object: &Object,
    slice: std::ops::Range<u64>,
) -> engine::Result<Body> {
    let body = bridge::open(&app.store, object).await?;
    bridge::body_of(body, vec![Piece::Slice(slice)]).await
}

/// What a client says about a file, as it is kept.
pub(super) fn attributes(
    declared_type: Option<&str>,
    metadata: Option<Metadata>,
) -> Result<S3Attributes, S3Error> {
    let metadata: BTreeMap<String, String> = metadata.unwrap_or_default().into_iter().collect();
    // As long as any that it will get.
    let etag = Some("0".repeat(38));
    let kept = KeptAttributes {
        declared_type: declared_type.map(str::to_owned),
        s3: Some(S3Attributes { etag, metadata: metadata.clone() }),
    };
    if !kept.fit() {
        let message = "The metadata take more than 2 KB";
        return Err(refusal(S3ErrorCode::MetadataTooLarge, message));
    }
    Ok(S3Attributes { etag: None, metadata })
}

/// What the conditions of a request make of a batch that stores under this name.
async fn conditions(
    app: &AppState,
    name: &ObjectName,
    if_match: Option<&ETagCondition>,
    if_none_match: Option<&ETagCondition>,
) -> Result<Batch, ApiError> {
    let mut batch = Batch::new();
    if if_match.is_none() && if_none_match.is_none() {
        return Ok(batch);
    }
    let (store, looked_up) = (app.store.clone(), name.clone());
    let there = blocking(move || store.get(&looked_up)).await?;
    let is_it = |condition: &ETagCondition, there: &Object| match condition.as_etag() {
        Some(etag) => etag.value() == etag_of(there),
        None => true,
    };
    if let Some(condition) = if_match {
        match &there {
            None => return Err(ApiError::file_not_found()),
            Some(there) if !is_it(condition, there) => {
                return Err(ApiError::precondition_failed());
            }
            Some(there) => {
                batch = batch.require(Precondition::KeyVersion(name.clone(), there.lsn()));
            }
        }
    }
    if let Some(condition) = if_none_match {
        match &there {
            None => batch = batch.require(Precondition::KeyAbsent(name.clone())),
            Some(there) if is_it(condition, there) => return Err(ApiError::precondition_failed()),
            Some(_) => {}
        }
    }
    Ok(batch)
}

/// How files of S3 are stored.
pub(super) fn manner(event: EventKind) -> Manner {
    let (naming, rule) = (Naming::Kept, NameRule::Overwrite);
    Manner::new(Wishes { naming, rule, thumbnail: Thumbnail::of_flag(None) }, event)
}

/// A body, watched, and within the limits of a request.
pub(super) fn watched(
    app: &AppState,
    body: Option<s3s::dto::StreamingBlob>,
    headers: &HeaderMap,
    trailers: Option<TrailingHeaders>,
) -> Result<(RequestBody<Incoming>, Report), ApiError> {
    let body = body.map_or_else(s3s::Body::empty, s3s::Body::from);
    let (incoming, report) = Incoming::new(body, Expected::of(headers, trailers));
    let limits = BodyLimits::new(app.body_bytes_max());
    Ok((RequestBody::new(headers, incoming, limits)?, report))
}

/// Stores a body under its name, in place of what is there.
pub(super) async fn put(
    app: &AppState,
    request: S3Request<PutObjectInput>,
) -> S3Result<PutObjectOutput> {
    let caller = caller_of(&request.extensions)?;
    let S3Request { input, headers, trailing_headers, .. } = request;
    let ours = |error: ApiError| refused(&error);
    let (bucket, key) =
        file_in(app, &caller, &input.bucket, &input.key, Scope::Upload).map_err(ours)?;
    check_writable(&key).map_err(ours)?;
    let s3 = attributes(input.content_type.as_deref(), input.metadata)?;
    let name = ObjectName::new(bucket.name.clone(), key.clone());
    let conditions = conditions(app, &name, input.if_match.as_ref(), input.if_none_match.as_ref());
    let along = conditions.await.map_err(ours)?;
    let is_conditional = !along.is_empty() || input.if_match.is_some();
    let (body, report) = watched(app, input.body, &headers, trailing_headers).map_err(ours)?;
    let received = receive_raw(app, &bucket, input.content_type, body).await;
    let received =
        received.map_err(|error| report.take_failure().unwrap_or_else(|| refused(&error)))?;
    let etag = report.md5().as_ref().map(hex).unwrap_or_default();
    let received = received.with_s3(S3Attributes { etag: Some(etag.clone()), ..s3 });
    let manner = manner(EventKind::CreatedByPut);
    match keep(app, &bucket, manner, along, vec![received], &[key]).await {
        Ok(_) => Ok(PutObjectOutput { e_tag: strong(etag), ..PutObjectOutput::default() }),
        Err(error) if is_conditional && error.status() == StatusCode::CONFLICT => {
            Err(refused(&ApiError::precondition_failed()))
        }
        Err(error) => Err(refused(&error)),
    }
}

/// Deletes files, one or many. What is not there is gone.
pub(super) async fn delete(
    app: &AppState,
    caller: &Caller,
    bucket: &str,
    keys: &[&str],
) -> Result<Vec<Option<ApiError>>, ApiError> {
    let bucket = caller.bucket(&app.catalog, &bucket_of(bucket)?, Scope::Delete)?;
    let (mut outcomes, mut found) = (Vec::new(), Vec::new());
    for key in keys {
        outcomes.push(match Place::parse(key) {
            // There is nothing of such a name.
            Err(_) | Ok(Place::Folder(_)) => None,
            Ok(Place::File(key)) => match caller.check_file(&key) {
                Err(refusal) => Some(refusal),
                Ok(()) => {
                    found.push(key);
                    None
                }
            },
        });
    }
    delete_named(app, &bucket.name, &found).await?;
    Ok(outcomes)
}

/// Deletes many.
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
    let keys: Vec<&str> = wanted.objects.iter().map(|it| it.key.as_str()).collect();
    let outcomes = delete(app, &caller, &bucket, &keys).await.map_err(|error| refused(&error))?;
    let (mut deleted, mut errors) = (Vec::new(), Vec::new());
    for (key, outcome) in keys.into_iter().zip(outcomes) {
        let key = Some(key.to_owned());
        match outcome {
            None => deleted.push(DeletedObject { key, ..DeletedObject::default() }),
            Some(refusal) => {
                let said = refused(&refusal);
                let code = Some(said.code().as_str().to_owned());
                let message = said.message().map(str::to_owned);
                errors.push(s3s::dto::Error { code, key, message, ..s3s::dto::Error::default() });
            }
        }
    }
    let is_quiet = wanted.quiet.unwrap_or(false);
    Ok(DeleteObjectsOutput {
        deleted: (!is_quiet && !deleted.is_empty()).then_some(deleted),
        errors: (!errors.is_empty()).then_some(errors),
        ..DeleteObjectsOutput::default()
    })
}

/// Bytes as lower-case hexadecimal digits.
pub(super) fn hex(bytes: &[u8; 16]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metadata_that_cannot_be_kept_are_refused_before_the_body() {
        let metadata = |length: usize| Some(Metadata::from([("a".into(), "x".repeat(length))]));
        assert!(attributes(Some("image/png"), metadata(1_900)).is_ok());
        let refusal = attributes(Some("image/png"), metadata(2_048)).unwrap_err();
        assert_eq!(refusal.code().as_str(), "MetadataTooLarge");
    }

    #[test]
    fn an_md5_is_written_with_its_zeros() {
        assert_eq!(hex(&[0; 16]), "0".repeat(32));
        assert_eq!(hex(&[0x0f; 16]), "0f".repeat(16));
    }
}
