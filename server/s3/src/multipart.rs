//! Multipart uploads.
//!
//! Parts arrive in any order and concurrently, each into a body of the engine that outlives the process, like those of
//! resumable uploads. On completion they are assembled, in order, into one upload like any other: a large one in a big
//! segment of its own. Guarantees: an acknowledged part is durable; parts are assembled exactly once, even if the
//! client disconnects, and a retry gets the same result; memory is bounded by one chunk of a part. Non-goals: expiry of
//! uploads, which their sweep implements.

mod claims;
mod joining;
mod listed;

use std::ops::Range;
use std::sync::Arc;

use catalog::commit::commit;
use catalog::object_attributes::{StoredAttributes, StoredChecksum};
use catalog::{Bucket, MultipartUpload, Scope, UploadChecksum, UploadedPart};
use engine::upload::{ResumableUpload, ResumePoint};
use engine::{Batch, Conflict, Error};
use protocol::error::ApiError;
use protocol::object_path::check_writable;
use s3s::crypto::{Checksum as _, Md5};
use s3s::dto::{
    AbortMultipartUploadInput, AbortMultipartUploadOutput, ChecksumAlgorithm, ChecksumType,
    CopyPartResult, CreateMultipartUploadInput, CreateMultipartUploadOutput, UploadPartCopyInput,
    UploadPartCopyOutput, UploadPartInput, UploadPartOutput,
};
use s3s::{S3Error, S3ErrorCode, S3Request, S3Result};
use service::auth::Caller;
use service::limits;
use service::object_body;
use service::state::AppState;
use usage::task::blocking;
use uuid::Uuid;

use self::claims::PartClaim;
pub(super) use self::joining::complete_multipart_upload;
pub(super) use self::listed::{list_multipart_uploads, list_parts};
use super::access::caller_of;
use super::acl::is_made_public;
use super::checksums::{Algorithm, RunningChecksum, copy_checksums, response_of};
use super::copying::{Source, copy_source};
use super::errors::{s3_error, to_s3_error};
use super::incoming::ExpectedBody;
use super::lifecycle::sent_expiry;
use super::object_lock::sent_lock;
use super::objects::{authorized_object, hex, limited_body, strong_etag, time_of};
use super::stored::described;

/// Creates an upload.
pub(super) async fn create_multipart_upload(
    app: &AppState,
    request: S3Request<CreateMultipartUploadInput>,
) -> S3Result<CreateMultipartUploadOutput> {
    let caller = caller_of(&request.extensions)?;
    let S3Request { input, headers, .. } = request;
    let ours = |error: ApiError| to_s3_error(&error);
    let (bucket, key) =
        authorized_object(app, &caller, &input.bucket, &input.key, Scope::Upload).map_err(ours)?;
    check_writable(&key).map_err(ours)?;
    let attributes = StoredAttributes {
        lock: sent_lock(&headers, &bucket, app.clock.unix_ms())?,
        is_public: is_made_public(app, &caller, &headers, &bucket)?,
        expires_ms: sent_expiry(&headers, app.clock.unix_ms())?,
        ..described(&headers, input.metadata, &input.key, &key)?
    };
    let checksum = checksum_of(input.checksum_algorithm.as_ref(), input.checksum_type.as_ref())?;
    let upload = MultipartUpload {
        id: app.rng.uuid(),
        account: caller.account().id.clone(),
        bucket: bucket.name.clone(),
        key,
        attributes,
        checksum: checksum.clone(),
        started_ms: app.clock.unix_ms(),
        done: None,
        done_checksum: None,
    };
    let (store, begun) = (app.store.clone(), upload.clone());
    let begin = move || {
        let bound = limits::TUS_PENDING_MAX;
        if MultipartUpload::list_for_account(&store, &begun.account, bound)?.len() >= bound {
            return Err(ApiError::too_many_uploads(bound));
        }
        let (fact, value) = begun.fact()?;
        store.commit(Batch::new().put_fact(fact, value))?;
        Ok(())
    };
    claims::count_upload(app, &bucket, &upload).await.map_err(ours)?;
    if let Err(error) = blocking(begin).await {
        app.catalog.staging().remove(upload.id);
        return Err(ours(error));
    }
    Ok(CreateMultipartUploadOutput {
        bucket: Some(input.bucket),
        key: Some(input.key),
        upload_id: Some(upload.id.simple().to_string()),
        checksum_algorithm: input.checksum_algorithm,
        checksum_type: checksum.map(|it| ChecksumType::from(it.kind)),
        ..CreateMultipartUploadOutput::default()
    })
}

/// Returns the checksum options that an upload is created with.
fn checksum_of(
    algorithm: Option<&ChecksumAlgorithm>,
    kind: Option<&ChecksumType>,
) -> S3Result<Option<UploadChecksum>> {
    let Some(algorithm) = algorithm else { return Ok(None) };
    let message = "Unknown checksum algorithm";
    let algorithm = Algorithm::of_name(algorithm.as_str());
    let algorithm = algorithm.ok_or_else(|| s3_error(S3ErrorCode::InvalidRequest, message))?;
    let kind = kind.map_or(algorithm.default_kind(), ChecksumType::as_str);
    algorithm.check_kind(kind)?;
    Ok(Some(UploadChecksum { algorithm: algorithm.name().to_owned(), kind: kind.to_owned() }))
}

/// Returns the checksum algorithm of an upload's parts.
fn algorithm_of(upload: &MultipartUpload) -> Option<Algorithm> {
    upload.checksum.as_ref().and_then(|it| Algorithm::of_name(&it.algorithm))
}

/// Returns an upload of the caller, if it is for this object and the caller may still store that.
async fn find(
    app: &AppState,
    caller: &Caller,
    bucket: &str,
    sent_key: &str,
    id: &str,
) -> Result<(Arc<Bucket>, MultipartUpload), ApiError> {
    let (bucket, key) = authorized_object(app, caller, bucket, sent_key, Scope::Upload)?;
    let id = Uuid::parse_str(id).map_err(|_| ApiError::upload_not_found())?;
    let (store, account) = (app.store.clone(), caller.account().id.clone());
    let found = blocking(move || MultipartUpload::find(&store, &account, id)).await?;
    let is_named = |upload: &MultipartUpload| {
        upload.bucket == bucket.name && upload.sent_key() == sent_key && upload.key == key
    };
    let found = found.filter(is_named);
    Ok((bucket, found.ok_or_else(ApiError::upload_not_found)?))
}

/// Returns an upload of the caller that is neither completed nor evicted.
async fn find_open(
    app: &AppState,
    caller: &Caller,
    bucket: &str,
    key: &str,
    id: &str,
) -> Result<(Arc<Bucket>, MultipartUpload), ApiError> {
    let (bucket, upload) = find(app, caller, bucket, key, id).await?;
    // Completed, or evicted for other uploads.
    if upload.done.is_some() || !app.catalog.staging().contains(upload.id) {
        return Err(ApiError::upload_not_found());
    }
    Ok((bucket, upload))
}

fn number_of(part_number: i32) -> S3Result<u32> {
    let number = u32::try_from(part_number).ok();
    let number = number.filter(|number| (1..=crate::limits::S3_PARTS_MAX).contains(number));
    let message = "Part numbers are 1 to 10000";
    number.ok_or_else(|| s3_error(S3ErrorCode::InvalidArgument, message))
}

/// Implements UploadPart.
pub(super) async fn upload_part(
    app: &AppState,
    request: S3Request<UploadPartInput>,
) -> S3Result<UploadPartOutput> {
    let caller = caller_of(&request.extensions)?;
    let S3Request { input, headers, trailing_headers, .. } = request;
    let ours = |error: ApiError| to_s3_error(&error);
    let UploadPartInput { bucket, key, upload_id, .. } = &input;
    let (bucket, upload) = find_open(app, &caller, bucket, key, upload_id).await.map_err(ours)?;
    let number = number_of(input.part_number)?;
    let algorithm = algorithm_of(&upload);
    let watched = limited_body(app, input.body, &headers, trailing_headers, algorithm);
    let (mut body, report) = watched.map_err(ours)?;
    let declared = ExpectedBody::from_headers(&headers, None).bytes();
    let declared = declared.ok_or_else(|| S3Error::new(S3ErrorCode::MissingContentLength))?;
    let part = PartWriter::begin(app, &bucket, &upload, number, declared).await.map_err(ours)?;
    let taken = async {
        let (mut part, mut bytes) = (part, 0);
        while let Some(chunk) = body.chunk().await? {
            bytes += chunk.len() as u64;
            if bytes > declared {
                return Err(ApiError::bad_request("The part has more bytes than were declared"));
            }
            part = part.push(chunk).await?;
        }
        Ok(part)
    };
    let part = taken.await;
    let part =
        part.map_err(|error| report.take_failure().unwrap_or_else(|| to_s3_error(&error)))?;
    let etag = report.md5().as_ref().map(hex).unwrap_or_default();
    let checksum = report.checksum();
    let of_upload = checksum.clone().filter(|_| algorithm.is_some()).map(|it| it.value);
    part.end(etag.clone(), of_upload).await.map_err(ours)?;
    let checksum = response_of(checksum.as_ref());
    let mut output = UploadPartOutput { e_tag: strong_etag(etag), ..UploadPartOutput::default() };
    copy_checksums!(checksum => output);
    Ok(output)
}

/// Implements UploadPartCopy.
pub(super) async fn upload_part_copy(
    app: &AppState,
    request: S3Request<UploadPartCopyInput>,
) -> S3Result<UploadPartCopyOutput> {
    let caller = caller_of(&request.extensions)?;
    let S3Request { input, headers, .. } = request;
    let ours = |error: ApiError| to_s3_error(&error);
    let UploadPartCopyInput { bucket, key, upload_id, .. } = &input;
    let (bucket, upload) = find_open(app, &caller, bucket, key, upload_id).await.map_err(ours)?;
    let number = number_of(input.part_number)?;
    let _turn = app.jobs.copy_permit().await.map_err(ours)?;
    let Source { object, version_id } =
        copy_source(app, &caller, &input.copy_source, &headers).await?;
    let range = range_of(input.copy_source_range.as_deref(), object.bytes())?;
    let algorithm = algorithm_of(&upload);
    let copied = async {
        let body = object_body::open_body(&app.store, &object).await?;
        let bytes = range.end - range.start;
        let part = PartWriter::begin(app, &bucket, &upload, number, bytes).await?;
        let PartWriter { app, upload, number, claim, open, _turn } = part;
        let copy = move || {
            let (mut open, mut md5) = (open, Md5::new());
            let mut checksum = RunningChecksum::new(algorithm);
            for stretch in engine::Body::read_ranges(range.end - range.start) {
                let read = body.read(range.start + stretch.start..range.start + stretch.end)?;
                md5.update(&read);
                checksum.update(&read);
                open.push(&read)?;
            }
            Ok::<_, Error>((open, hex(&md5.finalize()), checksum.finish()))
        };
        let (open, etag, sum) = blocking(copy).await?;
        let part = PartWriter { app, upload, number, claim, open, _turn };
        part.end(etag, sum).await
    };
    let part = copied.await.map_err(ours)?;
    let sum = part.checksum.zip(algorithm);
    let sum = sum.map(|(value, of)| StoredChecksum { algorithm: of.name().to_owned(), value });
    let checksum = response_of(sum.as_ref());
    let mut result = CopyPartResult {
        e_tag: strong_etag(part.etag),
        last_modified: time_of(part.stored_ms),
        ..CopyPartResult::default()
    };
    copy_checksums!(checksum => result);
    Ok(UploadPartCopyOutput {
        copy_part_result: Some(result),
        copy_source_version_id: version_id,
        ..UploadPartCopyOutput::default()
    })
}

/// Parses the range of a source: `bytes=first-last`, both inclusive. A range of a read may be open or extend past the
/// end, one of a copy may not (S3 API, UploadPartCopy).
fn range_of(asked: Option<&str>, total: u64) -> S3Result<Range<u64>> {
    let Some(asked) = asked else { return Ok(0..total) };
    let number = |text: &str| match text.bytes().all(|byte| byte.is_ascii_digit()) {
        true => text.parse::<u64>().ok(),
        false => None,
    };
    let bounds = asked.strip_prefix("bytes=").and_then(|it| it.split_once('-'));
    let bounds = bounds.and_then(|(first, last)| Some((number(first)?, number(last)?)));
    match bounds {
        Some((first, last)) if first <= last && last < total => Ok(first..last + 1),
        Some((first, last)) if first <= last => {
            Err(s3_error(S3ErrorCode::InvalidRange, "The source does not have this range"))
        }
        _ => Err(s3_error(
            S3ErrorCode::InvalidArgument,
            "The range of a source must be bytes=first-last",
        )),
    }
}

/// Part that is being received.
struct PartWriter {
    app: AppState,
    upload: MultipartUpload,
    number: u32,
    claim: PartClaim,
    open: ResumableUpload,
    /// Protects the body from the sweep while it is held.
    _turn: catalog::open_uploads::UploadLock,
}

impl PartWriter {
    async fn begin(
        app: &AppState,
        bucket: &Bucket,
        upload: &MultipartUpload,
        number: u32,
        bytes: u64,
    ) -> Result<Self, ApiError> {
        let file = app.rng.uuid();
        let turn = app.upload_locks.acquire(file).await.ok_or_else(ApiError::upload_locked)?;
        let claim = PartClaim::of(app, bucket, upload, number, file, bytes).await?;
        let store = app.store.clone();
        let open = blocking(move || store.begin_upload(file)).await?;
        let (app, upload) = (app.clone(), upload.clone());
        Ok(Self { app, upload, number, claim, open, _turn: turn })
    }

    async fn push(mut self, bytes: bytes::Bytes) -> Result<Self, ApiError> {
        if !self.open.push_in_memory(&bytes) {
            let mut open = self.open;
            self.open = blocking(move || open.push(&bytes).map(|()| open)).await?;
        }
        Ok(self)
    }

    /// Makes the part durable, records it, and deletes the one that it replaces.
    async fn end(self, etag: String, checksum: Option<String>) -> Result<UploadedPart, ApiError> {
        let Self { app, upload, number, claim, mut open, _turn } = self;
        let file = claim.body();
        let (store, looked_up) = (app.store.clone(), upload.clone());
        let synced = blocking(move || {
            let received = open.sync()?;
            Ok::<_, ApiError>((received, looked_up.part(&store, number)?))
        });
        let (ResumePoint { bytes, hash }, before) = synced.await?;
        let stored_ms = app.clock.unix_ms();
        let part = UploadedPart { number, file, bytes, hash, etag, checksum, stored_ms };
        match commit(&app.store, upload.record_part(&part)?).await {
            Ok(_) => {}
            Err(Error::Conflict(Conflict::FactMissing(_))) => {
                return Err(ApiError::upload_not_found());
            }
            Err(error) => return Err(error.into()),
        }
        claim.keep(bytes);
        if let Some(before) = before {
            app.catalog.staging().remove_part(upload.id, before.file, before.bytes);
            let store = app.store.clone();
            blocking(move || store.remove_upload(before.file)).await?;
        }
        Ok(part)
    }
}

/// Aborts an upload, and deletes its parts.
pub(super) async fn abort_multipart_upload(
    app: &AppState,
    request: S3Request<AbortMultipartUploadInput>,
) -> S3Result<AbortMultipartUploadOutput> {
    let caller = caller_of(&request.extensions)?;
    let AbortMultipartUploadInput { bucket, key, upload_id, .. } = &request.input;
    let aborted = async {
        let (_, upload) = find(app, &caller, bucket, key, upload_id).await?;
        let _turn =
            app.upload_locks.acquire(upload.id).await.ok_or_else(ApiError::upload_locked)?;
        let (fact, _) = upload.fact()?;
        commit(&app.store, Batch::new().delete_fact(fact)).await?;
        app.catalog.staging().remove(upload.id);
        let store = app.store.clone();
        Ok::<_, ApiError>(blocking(move || upload.remove_parts(&store)).await?)
    };
    aborted.await.map_err(|error| to_s3_error(&error))?;
    Ok(AbortMultipartUploadOutput::default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copy_source_range_must_fit_the_source() {
        assert_eq!(range_of(None, 10).unwrap(), 0..10);
        assert_eq!(range_of(Some("bytes=2-5"), 10).unwrap(), 2..6);
        assert_eq!(range_of(Some("bytes=9-9"), 10).unwrap(), 9..10);
        for (asked, code) in [
            ("bytes=10-12", "InvalidRange"),
            ("bytes=0-21", "InvalidRange"),
            ("bytes=0-10", "InvalidRange"),
            ("bytes=5-4", "InvalidArgument"),
            ("bytes=-5", "InvalidArgument"),
            ("bytes=3-", "InvalidArgument"),
            ("bytes=0-2,3-5", "InvalidArgument"),
            ("bytes=+1-2", "InvalidArgument"),
            ("0-2", "InvalidArgument"),
            ("bytes=0-1,3-4", "InvalidArgument"),
            ("lines=1-2", "InvalidArgument"),
        ] {
            assert_eq!(range_of(Some(asked), 10).unwrap_err().code().as_str(), code, "{asked}");
        }
    }

    #[test]
    fn part_numbers_follow_s3_limits() {
        assert_eq!((number_of(1).unwrap(), number_of(10_000).unwrap()), (1, 10_000));
        for wrong in [0, -1, 10_001, i32::MIN] {
            assert!(number_of(wrong).is_err(), "{wrong}");
        }
    }
}
