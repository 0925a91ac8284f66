//! CopyObject.
//!
//! Guarantees: a copy is stored like any upload, and its source is read like any file; memory is bounded by one chunk.
//! Non-goals: copies of parts (`multipart`).

use std::ops::ControlFlow;

use catalog::object_attributes::{S3Attributes, StoredAttributes, last_modified_ms};
use catalog::{EventKind, Scope};
use engine::{Error, ObjectName};
use http::HeaderMap;
use jobs::limits::MOVE_TRIES_MAX;
use protocol::error::ApiError;
use protocol::object_path::check_writable;
use s3s::dto::{
    CopyObjectInput, CopyObjectOutput, CopyObjectResult, CopySource, MetadataDirective,
    TaggingDirective,
};
use s3s::{S3ErrorCode, S3Request, S3Result};
use service::auth::Caller;
use service::state::AppState;
use service::upload::{StagedFile, store_files};
use usage::task::blocking;

use super::access::caller_of;
use super::acl::is_made_public;
use super::checksums::{copy_checksums, response_of};
use super::conditions::{WriteConditions, check_source};
use super::errors::{s3_error, to_s3_error};
use super::lifecycle::sent_expiry;
use super::object_lock::sent_lock;
use super::objects::{authorized_object, etag_in, strong_etag, time_of, upload_options};
use super::stored::{StoredParts, described, with_content};
use super::tagging::{check_directive, copied_tags};
use super::versioning::{find_version, id_of, version_id};

/// Returns the source object of a request, if the caller may read it and it matches the requested version and
/// conditions.
pub(super) async fn copy_source(
    app: &AppState,
    caller: &Caller,
    source: &CopySource,
    headers: &HeaderMap,
) -> S3Result<Source> {
    let message = "x-amz-copy-source must be BUCKET/KEY, optionally with ?versionId=ID";
    let wrong = || s3_error(S3ErrorCode::InvalidArgument, message);
    let CopySource::Bucket { bucket, key, version_id: sent_id } = source else {
        return Err(wrong());
    };
    let id = version_id(sent_id.as_deref())?;
    let ours = |error: ApiError| to_s3_error(&error);
    let (bucket, parsed) =
        authorized_object(app, caller, bucket, key, Scope::Read).map_err(ours)?;
    let name = ObjectName::new(bucket.name.clone(), parsed);
    let found = find_version(app, &bucket, &name, key, id).await;
    let version = found.map_err(|error| match error.code() {
        // As on AWS: a delete marker is not a valid source.
        S3ErrorCode::MethodNotAllowed => {
            s3_error(S3ErrorCode::InvalidRequest, "The source is a delete marker")
        }
        _ => error,
    })?;
    check_source(headers, &version.object).map_err(ours)?;
    let version_id = bucket.versioning.map(|_| version.id.to_string());
    Ok(Source { object: version.object, version_id })
}

/// Source of a copy.
pub(super) struct Source {
    pub(super) object: engine::Object,
    /// Version id, in a versioned bucket.
    pub(super) version_id: Option<String>,
}

/// Copies an object to another name, or replaces its metadata under its own name.
pub(super) async fn copy_object(
    app: &AppState,
    request: S3Request<CopyObjectInput>,
) -> S3Result<CopyObjectOutput> {
    let caller = caller_of(&request.extensions)?;
    let S3Request { input, headers, .. } = request;
    let ours = |error: ApiError| to_s3_error(&error);
    let (bucket, key) =
        authorized_object(app, &caller, &input.bucket, &input.key, Scope::Upload).map_err(ours)?;
    check_writable(&key).map_err(ours)?;
    let name = ObjectName::new(bucket.name.clone(), key.clone());
    let conditions = WriteConditions::of(&headers).map_err(ours)?;
    let sent = StoredAttributes {
        lock: sent_lock(&headers, &bucket, app.clock.unix_ms())?,
        is_public: is_made_public(app, &caller, &headers, &bucket)?,
        expires_ms: sent_expiry(&headers, app.clock.unix_ms())?,
        ..described(&headers, input.metadata, &input.key, &key)?
    };
    let tagging = input.tagging_directive.as_ref();
    check_directive(tagging, &sent.tags)?;
    let is_replacing = input.metadata_directive.as_ref().map(MetadataDirective::as_str)
        == Some(MetadataDirective::REPLACE);
    let _turn = app.jobs.copy_permit().await.map_err(ours)?;
    for _ in 0..MOVE_TRIES_MAX {
        let along = conditions.batch(app, &name, &input.key).await.map_err(ours)?;
        let Source { object, version_id } =
            copy_source(app, &caller, &input.copy_source, &headers).await?;
        let is_itself = *object.name() == name;
        if is_itself && !is_replacing {
            let message = "An object can be copied to itself only with changed metadata";
            return Err(s3_error(S3ErrorCode::InvalidRequest, message));
        }
        let attributes = copied(&object, &sent, is_replacing, tagging);
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
        let received = StagedFile::new(None, attributes.declared_type.clone(), staged)
            .with_attributes(attributes);
        let options = upload_options(EventKind::CreatedByCopy, &caller);
        let (files, keys) = (vec![received], std::slice::from_ref(&key));
        let stored = store_files(app, &bucket, &options, along, files, keys).await;
        let stored = stored.map_err(|error| ours(conditions.explain(error)))?.into_iter().next();
        let stored = stored.ok_or_else(|| ours(ApiError::internal("a copy put nothing")))?;
        let result = result_of(&stored.object);
        return Ok(CopyObjectOutput {
            copy_object_result: Some(result),
            copy_source_version_id: version_id,
            version_id: id_of(&bucket, &stored.object),
            ..CopyObjectOutput::default()
        });
    }
    Err(ours(ApiError::conflict("The file kept changing: try again")))
}

/// Returns the attributes of a copy: those of its source, or those in the request.
fn copied(
    source: &engine::Object,
    sent: &StoredAttributes,
    is_replacing: bool,
    tagging: Option<&TaggingDirective>,
) -> StoredAttributes {
    let of_source = StoredAttributes::of(source);
    let etag = etag_in(&of_source, source);
    let tags = copied_tags(tagging, &sent.tags, &of_source.tags);
    let s3 = of_source.s3.unwrap_or_default();
    let parts = StoredParts { sizes: s3.parts, checksums: s3.part_checksums };
    let type_of_source = of_source.declared_type;
    let type_of_source = type_of_source.unwrap_or_else(|| source.content_type().to_owned());
    let described = match is_replacing {
        true => StoredAttributes {
            declared_type: sent.declared_type.clone().or(Some(type_of_source)),
            tags,
            ..sent.clone()
        },
        false => StoredAttributes {
            declared_type: Some(type_of_source),
            headers: of_source.headers,
            s3: sent.s3.clone().map(|sent| S3Attributes { metadata: s3.metadata, ..sent }),
            tags,
            ..sent.clone()
        },
    };
    with_content(&described, etag, s3.checksum, parts)
}

fn result_of(stored: &engine::Object) -> CopyObjectResult {
    let attributes = StoredAttributes::of(stored);
    let checksum = attributes.s3.as_ref().and_then(|s3| s3.checksum.as_ref());
    let checksum = response_of(checksum);
    let mut result = CopyObjectResult {
        e_tag: strong_etag(etag_in(&attributes, stored)),
        last_modified: time_of(last_modified_ms(stored)),
        ..CopyObjectResult::default()
    };
    copy_checksums!(checksum => result);
    result.checksum_type = checksum.checksum_type;
    result
}
