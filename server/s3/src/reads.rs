//! Object reads: whole, a byte range, one part of a multipart upload, or attributes only.
//!
//! Guarantees: responses carry the same sandbox headers as delivery; presigned URLs, which a browser may open, never
//! render as a page. Non-goals: authentication.

use std::ops::Range;

use axum::body::Body;
use catalog::Scope;
use catalog::object_attributes::{S3Attributes, StoredAttributes, StoredChecksum};
use catalog::versions::{self, Version, VersionId};
use engine::{Error, Object, ObjectName};
use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use http::{Method, StatusCode};
use protocol::conditional::{IfRange, PreconditionResult, Validators, evaluate_preconditions};
use protocol::content_type::{ActiveContent, active_content};
use protocol::error::ApiError;
use protocol::object_path::{PathInBucket, parse_bucket_name};
use protocol::range::{ByteRange, content_range, parse_range};
use protocol::response_headers::{
    DeliveryContext, Disposition, HtmlPolicy, Visibility, object_headers,
};
use s3s::dto::{
    GetObjectAttributesInput, GetObjectAttributesOutput, GetObjectAttributesParts, GetObjectInput,
    GetObjectOutput, HeadObjectInput, HeadObjectOutput, Metadata, ObjectAttributes, ObjectPart,
    StorageClass, StreamingBlob,
};
use s3s::{S3ErrorCode, S3Request, S3Response, S3Result};
use service::object_body::{self, BodyPart};
use service::state::AppState;

use super::access::caller_of;
use super::checksums::{copy_checksums, response_of};
use super::conditions::quoted;
use super::errors::{s3_error, to_s3_error};
use super::lifecycle::{EXPIRATION, expiration_header};
use super::object_lock;
use super::objects::{EMPTY_MD5, authorized_object, etag_in, strong_etag, time_of};
use super::signed::is_signed_address;
use super::versioning::{VERSION_ID, find_version, version_id};

/// Maximum lookups of an object that is replaced while it is opened.
const LOOKUPS_MAX: usize = 16;
/// Maximum parts per page of GetObjectAttributes.
const PARTS_PAGE_MAX: usize = 1_000;
const TAGGING_COUNT: HeaderName = HeaderName::from_static("x-amz-tagging-count");

/// Status of a response, as a response extension: `s3s` 0.14 ignores the status field of named operations
/// (s3s-project/s3s, `ops/mod.rs`).
#[derive(Clone, Copy)]
pub(super) struct Status(pub(super) StatusCode);

/// Marker for a response whose `ETag` element has no quotes, which only GetObjectAttributes has (S3 API). `s3s` writes
/// the quotes of every entity tag.
#[derive(Clone, Copy)]
pub(super) struct UnquotedEtag;

/// Response to a read.
struct GetResponse {
    status: StatusCode,
    headers: HeaderMap,
    metadata: Metadata,
    parts_count: Option<i32>,
    body: Option<Body>,
}

/// Options of a read.
struct ReadOptions<'a> {
    method: &'a Method,
    /// Request headers, with quotes around entity tags.
    headers: HeaderMap,
    part: Option<i32>,
    version: Option<VersionId>,
    /// Values of the `response-*` query parameters.
    overrides: HeaderMap,
    pages: HtmlPolicy,
}

/// Collects the `response-*` parameters of a read as headers.
macro_rules! overrides_of {
    ($input:expr) => {
        overrides([
            &$input.response_content_type,
            &$input.response_cache_control,
            &$input.response_content_disposition,
            &$input.response_content_encoding,
            &$input.response_content_language,
        ])
    };
}

/// Implements GetObject.
pub(super) async fn get(
    app: &AppState,
    request: S3Request<GetObjectInput>,
) -> S3Result<S3Response<GetObjectOutput>> {
    let input = &request.input;
    let overrides = overrides_of!(input)?;
    let version = version_id(input.version_id.as_deref())?;
    let wanted = ReadOptions { version, ..read_options(&request, input.part_number, overrides) };
    let read = get_object(app, &request, &input.bucket, &input.key, wanted).await?;
    let body = read.body.map(|body| StreamingBlob::from(s3s::Body::http_body_unsync(body)));
    let (metadata, parts_count) = (Some(read.metadata), read.parts_count);
    let output = GetObjectOutput { body, metadata, parts_count, ..GetObjectOutput::default() };
    Ok(response(output, read.status, read.headers))
}

/// Implements HeadObject.
pub(super) async fn head(
    app: &AppState,
    request: S3Request<HeadObjectInput>,
) -> S3Result<S3Response<HeadObjectOutput>> {
    let input = &request.input;
    let overrides = overrides_of!(input)?;
    let version = version_id(input.version_id.as_deref())?;
    let wanted = ReadOptions { version, ..read_options(&request, input.part_number, overrides) };
    let read = get_object(app, &request, &input.bucket, &input.key, wanted).await?;
    let (metadata, parts_count) = (Some(read.metadata), read.parts_count);
    let output = HeadObjectOutput { metadata, parts_count, ..HeadObjectOutput::default() };
    Ok(response(output, read.status, read.headers))
}

fn response<T>(output: T, status: StatusCode, headers: HeaderMap) -> S3Response<T> {
    let mut response = S3Response::with_headers(output, headers);
    response.extensions.insert(Status(status));
    response
}

/// Headers that `response-*` parameters replace, in the order of the values of [`overrides`].
const OVERRIDDEN: [header::HeaderName; 5] = [
    header::CONTENT_TYPE,
    header::CACHE_CONTROL,
    header::CONTENT_DISPOSITION,
    header::CONTENT_ENCODING,
    header::CONTENT_LANGUAGE,
];

fn overrides(values: [&Option<String>; 5]) -> S3Result<HeaderMap> {
    let mut headers = HeaderMap::new();
    for (name, value) in OVERRIDDEN.into_iter().zip(values) {
        let Some(value) = value else { continue };
        let value = HeaderValue::try_from(value).map_err(|_| {
            s3_error(S3ErrorCode::InvalidArgument, "Invalid header value in a response-* parameter")
        })?;
        headers.insert(name, value);
    }
    Ok(headers)
}

fn read_options<T>(
    request: &S3Request<T>,
    part: Option<i32>,
    overrides: HeaderMap,
) -> ReadOptions<'_> {
    let pages =
        if is_signed_address(&request.uri) { HtmlPolicy::PlainText } else { HtmlPolicy::Sandboxed };
    let headers = quoted(&request.headers);
    ReadOptions { method: &request.method, headers, part, version: None, overrides, pages }
}

async fn get_object<T>(
    app: &AppState,
    request: &S3Request<T>,
    bucket: &str,
    key: &str,
    wanted: ReadOptions<'_>,
) -> S3Result<GetResponse> {
    let caller = caller_of(&request.extensions)?;
    let ours = |error: ApiError| to_s3_error(&error);
    if key.ends_with('/') {
        return read_folder(app, &caller, bucket, key).await.map_err(ours);
    }
    let (bucket, parsed) =
        authorized_object(app, &caller, bucket, key, Scope::Read).map_err(ours)?;
    let name = ObjectName::new(bucket.name.clone(), parsed);
    for _ in 0..LOOKUPS_MAX {
        let version = find_version(app, &bucket, &name, key, wanted.version).await?;
        let mut read = match read_object(app, &version, &wanted).await? {
            Err(Error::Conflict(_)) => continue,
            read => read.map_err(|error| ours(error.into()))?,
        };
        if bucket.versioning.is_some() {
            let lock = StoredAttributes::of(&version.object).lock;
            object_lock::add_headers(&mut read.headers, &bucket, lock);
            let id = HeaderValue::try_from(version.id.to_string());
            read.headers.extend(id.map(|id| (VERSION_ID, id)));
        }
        if version.is_latest
            && let Some((at_ms, rule)) = bucket.expiry(&version.object)
        {
            let value = expiration_header(at_ms, rule);
            read.headers.extend(value.map(|value| (EXPIRATION, value)));
        }
        return Ok(read);
    }
    Err(ours(ApiError::overloaded(1)))
}

/// Reads a folder marker: an empty object as long as the folder has files.
async fn read_folder(
    app: &AppState,
    caller: &service::auth::Caller,
    bucket: &str,
    key: &str,
) -> Result<GetResponse, ApiError> {
    let bucket = caller.bucket(&app.catalog, &parse_bucket_name(bucket)?, Scope::Read)?;
    let place = PathInBucket::parse(key)?;
    caller.require_path_access(&place)?;
    let (store, name) = (app.store.clone(), bucket.name.clone());
    let prefix = place.as_str().to_owned();
    let page = usage::task::blocking(move || store.list_keys(&name, &prefix, None, 1)).await?;
    let first = page.objects.first().ok_or_else(ApiError::file_not_found)?;
    let validators = Validators::new(EMPTY_MD5, first.created_ms());
    let mut headers = validator_headers(&validators);
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/x-directory"));
    headers.insert(header::CONTENT_LENGTH, HeaderValue::from(0));
    let (metadata, body) = (Metadata::default(), Some(Body::empty()));
    Ok(GetResponse { status: StatusCode::OK, headers, metadata, parts_count: None, body })
}

async fn read_object(
    app: &AppState,
    version: &Version,
    wanted: &ReadOptions<'_>,
) -> S3Result<engine::Result<GetResponse>> {
    let ours = |error: ApiError| to_s3_error(&error);
    let object = &version.object;
    let attributes = StoredAttributes::of(object);
    let (created_ms, modified_ms) = (object.created_ms(), version.modified_ms);
    let etag = etag_in(&attributes, object);
    let validators = Validators::of_object(etag, created_ms, modified_ms);
    let total = object.bytes();
    let is_range_held =
        match evaluate_preconditions(wanted.method, &wanted.headers, Some(&validators)) {
            PreconditionResult::PreconditionFailed => {
                return Err(ours(ApiError::precondition_failed()));
            }
            PreconditionResult::NotModified => return Ok(Ok(not_modified(&validators))),
            PreconditionResult::Proceed { range } => range == IfRange::Matches,
        };
    let mut headers = headers_of(object, &attributes, &validators, wanted);
    if !attributes.tags.is_empty() {
        headers.insert(TAGGING_COUNT, HeaderValue::from(attributes.tags.len()));
    }
    let s3 = attributes.s3.unwrap_or_default();
    let (range, parts_count) = match wanted.part {
        Some(_) if wanted.headers.contains_key(header::RANGE) => {
            let message = "A request cannot have both Range and partNumber";
            return Err(s3_error(S3ErrorCode::InvalidRequest, message));
        }
        Some(number) => part_of(&s3, number, total)?,
        None if is_range_held => (parse_range(&wanted.headers, total), None),
        None => (ByteRange::Whole, None),
    };
    let (status, slice) = match range {
        ByteRange::Unsatisfiable => return Err(ours(ApiError::range_not_satisfiable(total))),
        ByteRange::Single(range) => {
            let value = HeaderValue::try_from(content_range(&range, total));
            headers.extend(value.map(|value| (header::CONTENT_RANGE, value)));
            (StatusCode::PARTIAL_CONTENT, range)
        }
        // S3 supports a single range.
        ByteRange::Whole | ByteRange::Multiple(_) => (StatusCode::OK, 0..total),
    };
    headers.insert(header::CONTENT_LENGTH, HeaderValue::from(slice.end - slice.start));
    if wanted.headers.contains_key("x-amz-checksum-mode") {
        let of_part = wanted.part.and_then(|number| part_checksum(&s3, number));
        match status {
            StatusCode::OK => add_checksum(&mut headers, &s3, None),
            _ => of_part.into_iter().for_each(|it| add_checksum(&mut headers, &s3, Some(it))),
        }
    }
    let body = match *wanted.method {
        Method::HEAD => None,
        _ => match body_of(app, object, slice).await {
            Ok(body) => Some(body),
            Err(error) => return Ok(Err(error)),
        },
    };
    let metadata = s3.metadata.into_iter().collect();
    Ok(Ok(GetResponse { status, headers, metadata, parts_count, body }))
}

fn validator_headers(validators: &Validators) -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.extend(validators.etag_header().map(|etag| (header::ETAG, etag)));
    headers.extend(validators.last_modified_header().map(|it| (header::LAST_MODIFIED, it)));
    headers
}

fn not_modified(validators: &Validators) -> GetResponse {
    let headers = validator_headers(validators);
    let (status, metadata) = (StatusCode::NOT_MODIFIED, Metadata::default());
    GetResponse { status, headers, metadata, parts_count: None, body: None }
}

/// Returns the headers of delivery, overridden by those stored with the object and by `response-*` parameters.
fn headers_of(
    object: &Object,
    attributes: &StoredAttributes,
    validators: &Validators,
    wanted: &ReadOptions<'_>,
) -> HeaderMap {
    let sent = attributes.s3.as_ref().and(attributes.declared_type.as_deref());
    let content_type = wanted.overrides.get(header::CONTENT_TYPE).and_then(|it| it.to_str().ok());
    let content_type = content_type.or(sent).unwrap_or(object.content_type());
    let key = versions::key_of(object.name());
    let mut headers = object_headers(&DeliveryContext {
        file_name: key.file_name(),
        content_type,
        validators,
        audience: Visibility::Private,
        cache_control: None,
        pages: wanted.pages,
        download: Disposition::Inline,
        stored: Some(&attributes.headers),
    });
    // A presigned URL may be opened by a browser, whose cache must not store a private object.
    if wanted.pages == HtmlPolicy::Sandboxed {
        headers.remove(header::CACHE_CONTROL);
    }
    attributes.headers.describe_caching(&mut headers);
    for (name, value) in &wanted.overrides {
        if name != header::CONTENT_TYPE {
            headers.insert(name, value.clone());
        }
    }
    // Verbatim, without an added character set.
    let is_shown_as_sent = wanted.pages == HtmlPolicy::Sandboxed
        || active_content(content_type) != ActiveContent::Page;
    if is_shown_as_sent && let Ok(value) = HeaderValue::from_str(content_type) {
        headers.insert(header::CONTENT_TYPE, value);
    }
    headers
}

/// Returns the byte range of a part and the number of parts. An object that was not uploaded in parts has one part.
fn part_of(s3: &S3Attributes, number: i32, total: u64) -> S3Result<(ByteRange, Option<i32>)> {
    let missing = || s3_error(S3ErrorCode::InvalidPart, "The object has no part with this number");
    let wanted = u32::try_from(number).ok().filter(|number| *number > 0).ok_or_else(missing)?;
    if s3.parts.is_empty() {
        let range = if total == 0 { ByteRange::Whole } else { ByteRange::Single(0..total) };
        return (wanted == 1).then_some((range, None)).ok_or_else(missing);
    }
    let (mut start, mut before) = (0, 0);
    let mut found = None;
    for (count, bytes) in &s3.parts {
        if found.is_none() && wanted <= before + count {
            let from = start + u64::from(wanted - before - 1) * bytes;
            found = Some(from..(from + bytes).min(total));
        }
        start += u64::from(*count) * bytes;
        before += count;
    }
    let range: Range<u64> = found.ok_or_else(missing)?;
    let range = if range.is_empty() { ByteRange::Whole } else { ByteRange::Single(range) };
    Ok((range, i32::try_from(before).ok()))
}

/// Returns the checksum of a part, in base64.
fn part_checksum(s3: &S3Attributes, number: i32) -> Option<&str> {
    let index = usize::try_from(number).ok()?.checked_sub(1)?;
    s3.part_checksums.get(index).map(String::as_str)
}

/// Adds the checksum of the object, or of a part, whose type is that of the object's checksum.
fn add_checksum(headers: &mut HeaderMap, s3: &S3Attributes, of_part: Option<&str>) {
    let Some(checksum) = &s3.checksum else { return };
    let name = format!("x-amz-checksum-{}", checksum.algorithm);
    let name = header::HeaderName::try_from(name);
    if let (Ok(name), Ok(value)) = (name, HeaderValue::try_from(of_part.unwrap_or(&checksum.value)))
    {
        headers.insert(name, value);
    }
    let kind = response_of(Some(checksum)).checksum_type;
    if let Some(Ok(kind)) = kind.map(|kind| HeaderValue::from_str(kind.as_str())) {
        headers.insert("x-amz-checksum-type", kind);
    }
}

async fn body_of(app: &AppState, object: &Object, slice: Range<u64>) -> engine::Result<Body> {
    let body = object_body::open_body(&app.store, object).await?;
    object_body::stream_body(body, vec![BodyPart::Range(slice)], &app.disk_reads).await
}

/// Implements GetObjectAttributes.
pub(super) async fn attributes(
    app: &AppState,
    request: S3Request<GetObjectAttributesInput>,
) -> S3Result<S3Response<GetObjectAttributesOutput>> {
    let caller = caller_of(&request.extensions)?;
    let input = request.input;
    let ours = |error: ApiError| to_s3_error(&error);
    let (bucket, key) =
        authorized_object(app, &caller, &input.bucket, &input.key, Scope::Read).map_err(ours)?;
    let (name, id) = (ObjectName::new(bucket.name.clone(), key), input.version_id.as_deref());
    let version = find_version(app, &bucket, &name, &input.key, version_id(id)?).await?;
    let object = &version.object;
    // One header may name several attributes.
    let named = || input.object_attributes.iter().flat_map(|it| it.as_str().split(','));
    let has = |name: &str| named().any(|it| it.trim() == name);
    let attributes = StoredAttributes::of(object);
    let etag = etag_in(&attributes, object);
    let s3 = attributes.s3.unwrap_or_default();
    let checksum = s3.checksum.as_ref().map(|checksum| response_of(Some(checksum)));
    let after = input.part_number_marker.unwrap_or_default();
    let bound = input.max_parts.map_or(PARTS_PAGE_MAX, |it| it.clamp(0, 1_000) as usize);
    let storage_class = has(ObjectAttributes::STORAGE_CLASS);
    let standard = StorageClass::from_static(StorageClass::STANDARD);
    let output = GetObjectAttributesOutput {
        e_tag: strong_etag(etag).filter(|_| has(ObjectAttributes::ETAG)),
        last_modified: time_of(version.modified_ms),
        version_id: bucket.versioning.map(|_| version.id.to_string()),
        object_size: i64::try_from(object.bytes())
            .ok()
            .filter(|_| has(ObjectAttributes::OBJECT_SIZE)),
        storage_class: storage_class.then_some(standard),
        checksum: checksum.filter(|_| has(ObjectAttributes::CHECKSUM)),
        object_parts: has(ObjectAttributes::OBJECT_PARTS)
            .then(|| parts_of(&s3, after, bound))
            .flatten(),
        ..GetObjectAttributesOutput::default()
    };
    let mut response = S3Response::new(output);
    response.extensions.insert(UnquotedEtag);
    Ok(response)
}

/// Returns a page of the parts of a multipart upload.
fn parts_of(s3: &S3Attributes, after: i32, bound: usize) -> Option<GetObjectAttributesParts> {
    let sizes = s3.parts.iter().flat_map(|(count, bytes)| (0..*count).map(|_| *bytes));
    let parts: Vec<_> = (1..).zip(sizes).filter(|(number, _)| *number > after).collect();
    let total: u32 = s3.parts.iter().map(|(count, _)| count).sum();
    let page: Vec<_> = parts.iter().take(bound).collect();
    let last = page.last().map(|(number, _)| *number);
    let listed = page.iter().map(|(number, bytes)| {
        let mut part = ObjectPart {
            part_number: Some(*number),
            size: i64::try_from(*bytes).ok(),
            ..ObjectPart::default()
        };
        let algorithm = s3.checksum.as_ref().map(|checksum| checksum.algorithm.clone());
        let checksum = algorithm.zip(part_checksum(s3, *number).map(str::to_owned));
        let checksum = checksum.map(|(algorithm, value)| StoredChecksum { algorithm, value });
        let checksum = response_of(checksum.as_ref());
        copy_checksums!(checksum => part);
        part
    });
    (total > 0).then(|| GetObjectAttributesParts {
        is_truncated: Some(parts.len() > bound),
        max_parts: i32::try_from(bound).ok(),
        next_part_number_marker: last,
        part_number_marker: Some(after),
        parts: Some(listed.collect()),
        total_parts_count: i32::try_from(total).ok(),
    })
}

#[cfg(test)]
mod tests {
    use s3s::S3Error;

    use super::*;

    fn of_parts(parts: &[(u32, u64)]) -> S3Attributes {
        S3Attributes { parts: parts.to_vec(), ..S3Attributes::default() }
    }

    fn code(outcome: S3Result<(ByteRange, Option<i32>)>) -> String {
        let error: S3Error = outcome.unwrap_err();
        error.code().as_str().to_owned()
    }

    #[test]
    fn part_number_returns_the_uploaded_part() {
        let s3 = of_parts(&[(3, 10), (1, 4)]);
        for (number, range) in [(1, 0..10), (2, 10..20), (3, 20..30), (4, 30..34)] {
            let found = part_of(&s3, number, 34).unwrap();
            assert_eq!(found, (ByteRange::Single(range), Some(4)), "{number}");
        }
        for number in [0, -1, 5, i32::MAX] {
            assert_eq!(code(part_of(&s3, number, 34)), "InvalidPart", "{number}");
        }
    }

    #[test]
    fn single_put_object_has_one_part() {
        let s3 = S3Attributes::default();
        assert_eq!(part_of(&s3, 1, 34).unwrap(), (ByteRange::Single(0..34), None));
        assert_eq!(part_of(&s3, 1, 0).unwrap(), (ByteRange::Whole, None));
        assert_eq!(code(part_of(&s3, 2, 34)), "InvalidPart");
    }

    #[test]
    fn parts_are_listed_in_pages() {
        let page = parts_of(&of_parts(&[(3, 10), (1, 4)]), 1, 2).unwrap();
        let sizes: Vec<_> = page.parts.unwrap().into_iter().map(|part| part.size).collect();
        assert_eq!(sizes, [Some(10), Some(10)]);
        assert_eq!((page.is_truncated, page.total_parts_count), (Some(true), Some(4)));
        assert_eq!(page.next_part_number_marker, Some(3));
        assert_eq!(parts_of(&S3Attributes::default(), 0, 10), None);
    }
}
