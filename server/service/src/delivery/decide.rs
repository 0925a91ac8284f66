//! Status, headers and byte ranges of the response with a file.
//!
//! Decides 200, 206, 304, 412 and 416 (RFC 9110, sections 13 and 14) from the index entry: no segment is read.
//! Guarantees: the headers of a whole file that is requested repeatedly without a query are taken from the
//! response-header cache. Non-goals: access, and the body.

use std::borrow::Cow;

use http::StatusCode;
use http::header::{self, HeaderMap, HeaderValue};
use protocol::conditional::{IfRange, PreconditionResult, evaluate_preconditions};
use protocol::error::ApiError;
use protocol::range::{ByteRange, MultipartRanges, content_range, parse_range};
use protocol::response_headers::{Disposition, not_modified_headers, object_headers};

use super::headers::{representation_headers, visibility};
use super::{FileRequest, Located};
use crate::finish_response::REQUEST_ID;
use crate::object_body::BodyPart;
use crate::state::AppState;

/// Response without its body.
pub(super) struct Decision {
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    /// Parts of the body of a GET; none for 304.
    pub(super) parts: Vec<BodyPart>,
}

/// Decides the response with a representation of an object.
///
/// # Errors
///
/// `precondition_failed` and `range_not_satisfiable`.
pub(super) fn decide(
    request: &FileRequest<'_>,
    located: &Located<'_>,
) -> Result<Decision, ApiError> {
    let FileRequest { app, head, query, bucket, .. } = request;
    let Located { object, representation, download } = located;
    // Without a query the file itself is served, or its compressed form.
    let cache_key = if query.is_empty() { representation.lsn() } else { None };
    let cached = cache_key.and_then(|lsn| app.header_cache.get(lsn, bucket));
    let validators = match &cached {
        Some(cached) => Cow::Borrowed(&cached.validators),
        None => Cow::Owned(representation.validators(object)),
    };
    let headers_by = |make| {
        let visibility = visibility(bucket, bucket.is_public_object(object));
        let disposition = Disposition::from_param(download.as_deref());
        representation_headers(bucket, visibility, representation, &validators, disposition, make)
    };
    let total = representation.bytes();
    let range = match evaluate_preconditions(&head.method, &head.headers, Some(&*validators)) {
        PreconditionResult::PreconditionFailed => return Err(ApiError::precondition_failed()),
        PreconditionResult::NotModified => {
            let headers = headers_by(not_modified_headers);
            return Ok(Decision { status: StatusCode::NOT_MODIFIED, headers, parts: Vec::new() });
        }
        PreconditionResult::Proceed { range: IfRange::Matches } => {
            parse_range(&head.headers, total)
        }
        PreconditionResult::Proceed { range: IfRange::Mismatch } => ByteRange::Whole,
    };
    let headers = match &cached {
        Some(cached) => cached.headers.clone(),
        None => {
            let mut headers = headers_by(object_headers);
            representation.describe_content(&mut headers);
            if let Some(lsn) = cache_key {
                app.header_cache.insert(lsn, bucket, &validators, || with_spare_capacity(&headers));
            }
            headers
        }
    };
    select_range(app, range, total, headers)
}

/// Selects the parts of the body, and describes them in the headers of the whole file.
fn select_range(
    app: &AppState,
    range: ByteRange,
    total: u64,
    mut headers: HeaderMap,
) -> Result<Decision, ApiError> {
    let (status, parts) = match range {
        ByteRange::Unsatisfiable => return Err(ApiError::range_not_satisfiable(total)),
        ByteRange::Whole => (StatusCode::OK, vec![BodyPart::Range(0..total)]),
        ByteRange::Single(range) => {
            headers.insert(header::CONTENT_RANGE, header_value(&content_range(&range, total))?);
            headers.insert(header::CONTENT_LENGTH, HeaderValue::from(range.end - range.start));
            (StatusCode::PARTIAL_CONTENT, vec![BodyPart::Range(range)])
        }
        ByteRange::Multiple(ranges) => {
            let content_type = headers.get(header::CONTENT_TYPE).and_then(|it| it.to_str().ok());
            let boundary = app.rng.uuid().simple().to_string();
            let multirange =
                MultipartRanges::new(&ranges, total, content_type.unwrap_or_default(), &boundary);
            headers.insert(header::CONTENT_TYPE, header_value(&multirange.content_type)?);
            headers.insert(header::CONTENT_LENGTH, HeaderValue::from(multirange.content_length));
            (StatusCode::PARTIAL_CONTENT, multipart_body(multirange))
        }
    };
    Ok(Decision { status, headers, parts })
}

/// Returns the body of `multipart/byteranges`.
fn multipart_body(multirange: MultipartRanges) -> Vec<BodyPart> {
    let mut parts = Vec::with_capacity(2 * multirange.parts.len() + 1);
    for (head, range) in multirange.parts {
        parts.extend([BodyPart::Bytes(head), BodyPart::Range(range)]);
    }
    parts.push(BodyPart::Bytes(multirange.end));
    parts
}

/// Copies headers with spare capacity for those that are added to each response.
fn with_spare_capacity(headers: &HeaderMap) -> HeaderMap {
    let mut headers = headers.clone();
    headers.insert(REQUEST_ID, HeaderValue::from_static(""));
    headers
}

fn header_value(text: &str) -> Result<HeaderValue, ApiError> {
    HeaderValue::from_str(text).map_err(|error| ApiError::internal(format!("{text:?}: {error}")))
}
