//! Delivery: `GET` and `HEAD` of a file, with ranges and preconditions.
//!
//! Decides the statuses 200, 206, 304, 404, 412 and 416. Guarantees: HEAD has the headers of GET; nothing is read for a
//! response without a body; the error of a private bucket does not depend on its content. Non-goals: content of the
//! headers, and parsing of ranges and preconditions.

mod gate;
mod shown;

use std::borrow::Cow;
use std::sync::Arc;

use axum::body::Body;
use axum::response::Response;
use catalog::{Access, Bucket, ServeHtml};
use engine::Object;
use http::header::{self, HeaderMap, HeaderValue};
use http::request::Parts;
use http::{Method, StatusCode};
use protocol::conditional::{IfRange, PreconditionResult, Validators, evaluate_preconditions};
use protocol::error::ApiError;
use protocol::object_path::ObjectPath;
use protocol::query::Query;
use protocol::range::{ByteRange, MultipartRanges, content_range, parse_range};
use protocol::response_headers::{
    DeliveryContext, Disposition, HtmlPolicy, Visibility, not_modified_headers, object_headers,
};
use usage::task::blocking;

use self::shown::{Representation, RepresentationData};
use crate::auth::authorize_delivery;
use crate::finish_response::REQUEST_ID;
use crate::object_body::{self, BodyPart};
use crate::parameters::{ObjectPathParameters, TransformParameters};
use crate::state::AppState;
use crate::variants::VariantError;

/// Cache lifetime of a placeholder, whose file may still be uploaded.
const PLACEHOLDER_CACHE: HeaderValue = HeaderValue::from_static("max-age=30");

/// Returns a file, or an image variant of it.
#[utoipa::path(
    method(get, head),
    path = "/{bucket}/{path}",
    operation_id = "read",
    tag = "Files",
    security((), ("bearer" = []), ("header" = []), ("query" = []), ("session" = [])),
    params(
        ObjectPathParameters,
        TransformParameters,
        ("download" = Option<String>, Query, description = "File name of an attachment; empty, `1` or `true` for the \
            name of the file."),
        ("token" = Option<String>, Query, description = "Token of a download link."),
        ("Range" = Option<String>, Header, description = "Byte ranges, at most 8."),
        ("If-None-Match" = Option<String>, Header, description = "ETags of cached responses."),
    ),
    responses(
        (status = OK, description = "File content.", content_type = "*/*"),
        (status = PARTIAL_CONTENT, description = "One byte range, or several as `multipart/byteranges`.", content_type = "*/*"),
        (status = NOT_MODIFIED, description = "Not modified."),
        (status = NOT_FOUND, description = "`bucket_not_found`, `file_not_found`, or the bucket's placeholder.", content_type = "*/*"),
        (status = PRECONDITION_FAILED, description = "`precondition_failed`."),
        (status = UNPROCESSABLE_ENTITY, description = "`undecodable`: the image to transform is \
            corrupt."),
        (status = RANGE_NOT_SATISFIABLE, description = "`range_not_satisfiable`, with `size`."),
    )
)]
pub async fn deliver(
    app: &AppState,
    request: &Parts,
    target: ObjectPath,
    bucket: Option<&Arc<Bucket>>,
) -> Result<Response, ApiError> {
    gate::reject_active_embeds(&request.headers)?;
    let query = Query::from_uri(&request.uri);
    let bucket = bucket.ok_or_else(ApiError::bucket_not_found)?;
    let mut denied = authorize_delivery(app, bucket, &target, request, &query).err();
    let Some(name) = target.object() else {
        return Err(denied.unwrap_or_else(ApiError::file_not_found));
    };
    for lookup in 0..LOOKUPS_MAX {
        let found = app.store.get(&name)?;
        let is_public = || found.as_ref().is_some_and(|object| bucket.is_public_object(object));
        if let Some(error) = denied.take_if(|_| !is_public()) {
            return Err(error);
        }
        if lookup == 0 {
            app.catalog.account_activity().count_request(&bucket.owner);
        }
        let delivered = match found {
            Some(object) => deliver_object(app, request, &query, bucket, &object).await,
            None => Box::pin(deliver_placeholder(app, request, &query, bucket)).await,
        };
        match delivered {
            Err(DeliveryMiss::Stale) => {}
            Err(DeliveryMiss::Refused(error)) => return Err(error),
            Ok(response) => return Ok(response),
        }
    }
    Err(ApiError::overloaded(1))
}

/// Maximum lookups of an object that is replaced while it is opened.
const LOOKUPS_MAX: usize = 16;

/// Reason why a lookup yields no response.
enum DeliveryMiss {
    /// The object was replaced or deleted since the lookup, and its bytes are gone.
    Stale,
    /// The response is this error.
    Refused(ApiError),
}

impl From<ApiError> for DeliveryMiss {
    fn from(error: ApiError) -> Self {
        Self::Refused(error)
    }
}

impl From<engine::Error> for DeliveryMiss {
    fn from(error: engine::Error) -> Self {
        Self::Refused(error.into())
    }
}

impl From<VariantError> for DeliveryMiss {
    fn from(error: VariantError) -> Self {
        match error {
            VariantError::Store(engine::Error::Conflict(_)) => Self::Stale,
            error => Self::Refused(error.into()),
        }
    }
}

async fn deliver_object(
    app: &AppState,
    request: &Parts,
    query: &Query,
    bucket: &Arc<Bucket>,
    object: &Object,
) -> Result<Response, DeliveryMiss> {
    let download = query.string_allow_empty(&["download"])?;
    let shown = Representation::select(app, request, query, bucket, object).await?;
    // Without a query the file itself is served.
    let kept = query.is_empty().then(|| app.header_cache.get(object.lsn(), bucket)).flatten();
    let validators = match &kept {
        Some(kept) => Cow::Borrowed(&kept.validators),
        None => Cow::Owned(validators_of(&shown, object)),
    };
    let download = Disposition::from_param(download.as_deref());
    let headers_by = |make| {
        let audience = audience(bucket, bucket.is_public_object(object));
        headers(bucket, audience, &shown, &validators, download, make)
    };
    let total = shown.bytes();
    let range = match evaluate_preconditions(&request.method, &request.headers, Some(&*validators))
    {
        PreconditionResult::PreconditionFailed => {
            return Err(ApiError::precondition_failed().into());
        }
        PreconditionResult::NotModified => {
            let headers = headers_by(not_modified_headers);
            return Ok(answer(StatusCode::NOT_MODIFIED, headers, Body::empty()));
        }
        PreconditionResult::Proceed { range: IfRange::Matches } => {
            parse_range(&request.headers, total)
        }
        PreconditionResult::Proceed { range: IfRange::Mismatch } => ByteRange::Whole,
    };
    let mut headers = match &kept {
        Some(kept) => kept.headers.clone(),
        None => {
            let mut headers = headers_by(object_headers);
            headers.insert(header::CONTENT_LENGTH, HeaderValue::from(total));
            if query.is_empty() {
                app.header_cache
                    .insert(object.lsn(), bucket, &validators, || with_spare_capacity(&headers));
            }
            headers
        }
    };
    let (status, pieces) = match range {
        ByteRange::Unsatisfiable => return Err(ApiError::range_not_satisfiable(total).into()),
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
            (StatusCode::PARTIAL_CONTENT, pieces(multirange))
        }
    };
    Ok(answer(status, headers, body(app, request, &shown, pieces).await?))
}

/// Copies headers with spare capacity for those that are added to each response.
fn with_spare_capacity(headers: &HeaderMap) -> HeaderMap {
    let mut headers = headers.clone();
    headers.insert(REQUEST_ID, HeaderValue::from_static(""));
    headers
}

/// Delivers a missing file: the bucket's placeholder with status 404, or else an error.
async fn deliver_placeholder(
    app: &AppState,
    request: &Parts,
    query: &Query,
    bucket: &Bucket,
) -> Result<Response, DeliveryMiss> {
    let missing = ApiError::file_not_found;
    let name = bucket.placeholder.as_ref().ok_or_else(missing)?;
    if name.bucket != bucket.name {
        // The bucket may have been deleted since, and created again by another account.
        let other = app.catalog.bucket(&name.bucket);
        other.filter(|other| other.owner == bucket.owner).ok_or_else(missing)?;
    }
    let object = app.store.get(name)?.ok_or_else(missing)?;
    let shown = Representation::select(app, request, query, bucket, &object).await?;
    let validators = validators_of(&shown, &object);
    let is_public = bucket.access == Access::Public;
    let audience = audience(bucket, is_public);
    let mut headers =
        headers(bucket, audience, &shown, &validators, Disposition::Inline, object_headers);
    // These describe the file at this URL, which does not exist.
    for name in [header::ETAG, header::LAST_MODIFIED, header::ACCEPT_RANGES] {
        headers.remove(name);
    }
    if is_public {
        headers.insert(header::CACHE_CONTROL, PLACEHOLDER_CACHE);
    }
    headers.insert(header::CONTENT_LENGTH, HeaderValue::from(shown.bytes()));
    let pieces = vec![BodyPart::Range(0..shown.bytes())];
    let body = body(app, request, &shown, pieces).await?;
    Ok(answer(StatusCode::NOT_FOUND, headers, body))
}

/// Returns the response body, which is empty for HEAD.
async fn body(
    app: &AppState,
    request: &Parts,
    shown: &Representation<'_>,
    pieces: Vec<BodyPart>,
) -> Result<Body, DeliveryMiss> {
    if request.method == Method::HEAD {
        return Ok(Body::empty());
    }
    match shown.content() {
        RepresentationData::Stored(object) => match read(app, object, pieces).await {
            Err(engine::Error::Conflict(_)) => Err(DeliveryMiss::Stale),
            Err(error @ engine::Error::Corrupt(_)) => Err(match shown.variant() {
                Some(variant) => Box::pin(discard(app, variant, error)).await,
                None => error.into(),
            }),
            body => Ok(body?),
        },
        RepresentationData::Memory(bytes) => Ok(object_body::body_from_memory(bytes, pieces)),
    }
}

async fn read(app: &AppState, object: &Object, pieces: Vec<BodyPart>) -> engine::Result<Body> {
    let body = object_body::open_body(&app.store, object).await?;
    object_body::stream_body(body, pieces, &app.disk_reads).await
}

/// Removes a corrupt variant, so that the retry renders it again.
async fn discard(app: &AppState, variant: &Object, error: engine::Error) -> DeliveryMiss {
    tracing::warn!(%error, "cached variant corrupt; rendering again");
    let (variants, variant) = (app.variants.clone(), variant.clone());
    match blocking(move || variants.discard(&variant)).await {
        Ok(()) => DeliveryMiss::Stale,
        Err(_) => error.into(),
    }
}

fn validators_of(shown: &Representation<'_>, object: &Object) -> Validators {
    Validators::of_object(shown.etag(), object.created_ms(), object.modified_ms())
}

fn audience(bucket: &Bucket, is_public: bool) -> Visibility {
    match is_public {
        true if bucket.index => Visibility::Public,
        true => Visibility::PublicUnindexed,
        false => Visibility::Private,
    }
}

/// Returns the response headers of a representation, built by one of the functions for that.
fn headers(
    bucket: &Bucket,
    audience: Visibility,
    shown: &Representation<'_>,
    validators: &Validators,
    download: Disposition<'_>,
    make: fn(&DeliveryContext<'_>) -> HeaderMap,
) -> HeaderMap {
    let stored = shown.stored_headers();
    let mut headers = make(&DeliveryContext {
        file_name: shown.file_name(),
        content_type: shown.content_type(),
        validators,
        audience,
        cache_control: bucket.cache_control.as_ref().map(|value| value.as_str()),
        pages: match bucket.serve_html {
            ServeHtml::AsText => HtmlPolicy::PlainText,
            ServeHtml::AsPages => HtmlPolicy::Sandboxed,
        },
        download,
        stored: stored.as_ref(),
    });
    shown.describe(&mut headers);
    headers
}

fn pieces(multirange: MultipartRanges) -> Vec<BodyPart> {
    let mut pieces = Vec::with_capacity(2 * multirange.parts.len() + 1);
    for (head, range) in multirange.parts {
        pieces.extend([BodyPart::Bytes(head), BodyPart::Range(range)]);
    }
    pieces.push(BodyPart::Bytes(multirange.end));
    pieces
}

fn answer(status: StatusCode, headers: HeaderMap, body: Body) -> Response {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    *response.headers_mut() = headers;
    response
}

fn header_value(text: &str) -> Result<HeaderValue, ApiError> {
    HeaderValue::from_str(text).map_err(|error| ApiError::internal(format!("{text:?}: {error}")))
}
