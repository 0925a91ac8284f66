//! Listings of open multipart uploads and of their parts.
//!
//! Guarantees: a caller sees only uploads of its own account. Non-goals: changes of uploads.

use catalog::object_attributes::StoredChecksum;
use catalog::{MultipartUpload, Scope};
use protocol::error::ApiError;
use protocol::object_path::parse_bucket_name;
use s3s::dto::{
    ChecksumAlgorithm, ChecksumType, ListMultipartUploadsInput, ListMultipartUploadsOutput,
    ListPartsInput, ListPartsOutput, MultipartUpload as Open, Part, StorageClass,
};
use s3s::{S3Request, S3Result};
use service::limits;
use service::state::AppState;
use usage::task::blocking;

use super::super::access::caller_of;
use super::super::checksums::{copy_checksums, response_of};
use super::super::errors::to_s3_error;
use super::super::listing::owner_of;
use super::super::objects::{strong_etag, time_of};
use super::{algorithm_of, find_open};

/// Maximum parts, or uploads, per page.
const PAGE_MAX: i32 = 1_000;

/// Implements ListParts: by part number.
pub(crate) async fn list_parts(
    app: &AppState,
    request: S3Request<ListPartsInput>,
) -> S3Result<ListPartsOutput> {
    let caller = caller_of(&request.extensions)?;
    let input = request.input;
    let listed = async {
        let ListPartsInput { bucket, key, upload_id, .. } = &input;
        let (bucket, upload) = find_open(app, &caller, bucket, key, upload_id).await?;
        let owner = owner_of(app, &bucket);
        let (algorithm, checksum) = (algorithm_of(&upload), upload.checksum.clone());
        let after = input.part_number_marker.map_or(0, |it| it.max(0).unsigned_abs());
        let wanted = input.max_parts.unwrap_or(PAGE_MAX).clamp(1, PAGE_MAX);
        let (store, bound) = (app.store.clone(), wanted.unsigned_abs() as usize + 1);
        let mut parts = blocking(move || upload.parts(&store, after, bound)).await?;
        let is_truncated = parts.len() == bound;
        parts.truncate(bound - 1);
        let next = parts.last().filter(|_| is_truncated).map(|part| part.number as i32);
        let named = parts.into_iter().map(|part| {
            let sum = part.checksum.zip(algorithm);
            let sum =
                sum.map(|(value, of)| StoredChecksum { algorithm: of.name().to_owned(), value });
            let sum = response_of(sum.as_ref());
            let mut listed = Part {
                part_number: Some(part.number as i32),
                size: i64::try_from(part.bytes).ok(),
                e_tag: strong_etag(part.etag),
                last_modified: time_of(part.stored_ms),
                ..Part::default()
            };
            copy_checksums!(sum => listed);
            listed
        });
        Ok::<_, ApiError>(ListPartsOutput {
            bucket: Some(input.bucket.clone()),
            key: Some(input.key.clone()),
            upload_id: Some(input.upload_id.clone()),
            part_number_marker: Some(after as i32),
            next_part_number_marker: next,
            max_parts: Some(wanted),
            is_truncated: Some(is_truncated),
            parts: Some(named.collect()),
            checksum_algorithm: algorithm
                .map(|it| ChecksumAlgorithm::from(it.name().to_ascii_uppercase())),
            checksum_type: checksum.map(|it| ChecksumType::from(it.kind)),
            owner: Some(owner),
            storage_class: Some(StorageClass::from_static(StorageClass::STANDARD)),
            ..ListPartsOutput::default()
        })
    };
    listed.await.map_err(|error| to_s3_error(&error))
}

/// Implements ListMultipartUploads: open uploads of the caller's account in a bucket, by key. Always a single page;
/// uploads beyond it appear once the listed ones are completed.
pub(crate) async fn list_multipart_uploads(
    app: &AppState,
    request: S3Request<ListMultipartUploadsInput>,
) -> S3Result<ListMultipartUploadsOutput> {
    let caller = caller_of(&request.extensions)?;
    let input = request.input;
    let listed = async {
        let bucket =
            caller.bucket(&app.catalog, &parse_bucket_name(&input.bucket)?, Scope::List)?;
        let prefix = input.prefix.clone().unwrap_or_default();
        caller.require_prefix_access(&prefix)?;
        let (store, account) = (app.store.clone(), caller.account().id.clone());
        let found = blocking(move || {
            MultipartUpload::list_for_account(&store, &account, limits::TUS_PENDING_MAX)
        });
        let mut open = found.await?;
        open.retain(|upload| {
            let is_here = upload.bucket == bucket.name && upload.done.is_none();
            is_here && upload.key.as_str().starts_with(&prefix)
        });
        open.sort_by(|one, other| (&one.key, one.id).cmp(&(&other.key, other.id)));
        let uploads = open.into_iter().map(|upload| Open {
            key: Some(upload.key.to_string()),
            upload_id: Some(upload.id.simple().to_string()),
            initiated: time_of(upload.started_ms),
            ..Open::default()
        });
        Ok::<_, ApiError>(ListMultipartUploadsOutput {
            bucket: Some(input.bucket.clone()),
            prefix: input.prefix.clone(),
            max_uploads: Some(PAGE_MAX),
            is_truncated: Some(false),
            uploads: Some(uploads.collect()),
            ..ListMultipartUploadsOutput::default()
        })
    };
    listed.await.map_err(|error| to_s3_error(&error))
}
