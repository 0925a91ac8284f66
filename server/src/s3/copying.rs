//! Objects copied, whole.
//!
//! Promises: a copy is stored like any upload, and its source is read like any file; memory is one piece.
//! Never here: parts of objects, which `multipart` copies.

use std::ops::ControlFlow;

use engine::{Batch, Error};
use s3s::dto::{
    CopyObjectInput, CopyObjectOutput, CopyObjectResult, CopySource, MetadataDirective,
};
use s3s::{S3ErrorCode, S3Request, S3Result};

use super::access::caller_of;
use super::errors::{refusal, refused};
use super::objects::{attributes, etag_of, file_in, find, manner, strong, time_of};
use crate::auth::Caller;
use crate::bridge::blocking;
use crate::catalog::{EventKind, Scope};
use crate::error::ApiError;
use crate::intake::{KeptAttributes, Received, keep};
use crate::limits::MOVE_TRIES_MAX;
use crate::state::AppState;
use crate::target::check_writable;

/// The object that a request names as its source, if the caller may read it and it is the version that is meant.
pub(super) async fn source_of(
    app: &AppState,
    caller: &Caller,
    source: &CopySource,
    if_match: Option<&s3s::dto::ETagCondition>,
) -> S3Result<engine::Object> {
    let CopySource::Bucket { bucket, key, version_id: None } = source else {
        let message = "A source is a bucket and a key here, without a version";
        return Err(refusal(S3ErrorCode::InvalidArgument, message));
    };
    let ours = |error: ApiError| refused(&error);
    let (bucket, key) = file_in(app, caller, bucket, key, Scope::Read).map_err(ours)?;
    let object = find(app, &bucket, &key).await.map_err(ours)?;
    let object = object.ok_or_else(|| ours(ApiError::file_not_found()))?;
    match if_match.and_then(|condition| condition.as_etag()) {
        Some(etag) if etag.value() != etag_of(&object) => {
            Err(ours(ApiError::precondition_failed()))
        }
        _ => Ok(object),
    }
}

/// Copies an object to another name, or gives it other metadata under its own.
pub(super) async fn copy(
    app: &AppState,
    request: S3Request<CopyObjectInput>,
) -> S3Result<CopyObjectOutput> {
    let caller = caller_of(&request.extensions)?;
    let input = request.input;
    let ours = |error: ApiError| refused(&error);
    let (bucket, key) =
        file_in(app, &caller, &input.bucket, &input.key, Scope::Upload).map_err(ours)?;
    check_writable(&key).map_err(ours)?;
    let is_replacing = input.metadata_directive.as_ref().map(MetadataDirective::as_str)
        == Some(MetadataDirective::REPLACE);
    let _turn = app.copies.acquire().await.map_err(|_| ours(ApiError::overloaded(1)))?;
    for _ in 0..MOVE_TRIES_MAX {
        let condition = input.copy_source_if_match.as_ref();
        let object = source_of(app, &caller, &input.copy_source, condition).await?;
        let is_itself = *object.name() == engine::ObjectName::new(bucket.name.clone(), key.clone());
        if is_itself && !is_replacing {
            let message = "An object is only copied to itself with other metadata";
            return Err(refusal(S3ErrorCode::InvalidRequest, message));
        }
        let kept = KeptAttributes::of(&object);
        let etag = kept.s3.as_ref().and_then(|it| it.etag.clone());
        let declared = kept.declared_type.clone();
        let declared = declared.unwrap_or_else(|| object.content_type().to_owned());
        let (declared, s3) = match is_replacing {
            true => {
                let declared = input.content_type.clone().unwrap_or(declared);
                let s3 = attributes(Some(&declared), input.metadata.clone())?;
                (declared, s3)
            }
            false => (declared, kept.s3.unwrap_or_default()),
        };
        let (store, staging, draining) = (app.store.clone(), object.clone(), app.clone());
        let staged = blocking(move || {
            store.stage_copy(&staging, &mut |_| match draining.is_draining() {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            })
        });
        let staged = match staged.await {
            Ok(staged) => staged,
            Err(Error::Conflict(_)) => continue,
            Err(error) => return Err(ours(error.into())),
        };
        let received = Received::new(None, Some(declared), staged);
        let received = received.with_s3(crate::intake::S3Attributes { etag, ..s3 });
        let manner = manner(EventKind::CreatedByCopy);
        let stored =
            keep(app, &bucket, manner, Batch::new(), vec![received], std::slice::from_ref(&key))
                .await;
        let stored = stored.map_err(ours)?.into_iter().next();
        let stored = stored.ok_or_else(|| ours(ApiError::internal("a copy put nothing")))?;
        let result = CopyObjectResult {
            e_tag: strong(etag_of(&stored.object)),
            last_modified: time_of(stored.object.modified_ms()),
            ..CopyObjectResult::default()
        };
        return Ok(CopyObjectOutput {
            copy_object_result: Some(result),
            ..CopyObjectOutput::default()
        });
    }
    Err(ours(ApiError::conflict("The file changes again and again: try again")))
}
