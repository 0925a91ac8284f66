//! Delivery: `GET` and `HEAD` of a file, with ranges and preconditions.
//!
//! 1. Locate (this file): looks the object up, checks access, and selects its representation.
//! 2. Decide (`delivery/decide.rs`): status, headers and ranges, from the index entry alone.
//! 3. Body (this file): opens what is sent. An object that was replaced since step 1 is located again.
//!
//! Guarantees: HEAD has the headers of GET; nothing is read for a response without a body; the error of a private
//! bucket does not depend on its content. Non-goals: parsing of ranges and preconditions.

mod decide;
mod embed_policy;
mod headers;
mod representation;

use std::net::IpAddr;
use std::sync::Arc;

use axum::body::Body;
use axum::response::Response;
use catalog::{Access, Bucket};
use engine::{Object, ObjectName};
use http::header::{self, HeaderValue};
use http::request::Parts;
use http::{HeaderMap, Method, StatusCode};
use protocol::error::ApiError;
use protocol::object_path::ObjectPath;
use protocol::query::Query;
use protocol::response_headers::{Disposition, object_headers};
use usage::task::blocking;

use self::decide::{Decision, decide};
use self::headers::{representation_headers, visibility};
use self::representation::{Representation, RepresentationData};
use crate::auth::authorize_delivery;
use crate::object_body::{self, BodyPart};
use crate::parameters::{ObjectPathParameters, TransformParameters};
use crate::request_context::{RequestContext, RoutedContext};
use crate::state::AppState;
use crate::variants::VariantError;

/// Cache lifetime of a placeholder, whose file may still be uploaded.
const PLACEHOLDER_CACHE: HeaderValue = HeaderValue::from_static("max-age=30");
/// Maximum lookups of an object that is replaced while it is opened.
const LOOKUPS_MAX: usize = 16;

/// Request for a file of a bucket.
struct FileRequest<'a> {
    app: &'a AppState,
    head: &'a Parts,
    query: &'a Query,
    bucket: &'a Arc<Bucket>,
    /// Client address.
    client: Option<IpAddr>,
}

/// Returns a file, compressed where the client accepts it, or an image variant of it.
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
        ("Accept-Encoding" = Option<String>, Header, description = "Accepted content codings: `br`, `zstd`, `gzip`."),
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
    context: &RequestContext,
    head: &Parts,
    target: ObjectPath,
) -> Result<Response, ApiError> {
    embed_policy::reject_active_embeds(&head.headers)?;
    let (query, client) = (&Query::from_uri(&head.uri), context.client);
    let bucket = context.bucket.as_ref().ok_or_else(ApiError::bucket_not_found)?;
    let denied = authorize_delivery(app, bucket, &target, head, client, query).err();
    let Some(name) = target.object() else {
        return Err(denied.unwrap_or_else(ApiError::file_not_found));
    };
    let request = FileRequest { app, head, query, bucket, client };
    let mut found = locate(app, bucket, &name, denied.as_ref())?;
    for _ in 0..LOOKUPS_MAX {
        let delivered = match &found {
            Some(object) => deliver_object(&request, object).await.map(|it| it.0),
            None => Box::pin(deliver_placeholder(&request)).await,
        };
        match delivered {
            Err(Retry::Stale) => found = locate(app, bucket, &name, denied.as_ref())?,
            Err(Retry::Error(error)) => return Err(error),
            Ok(response) => return Ok(response),
        }
    }
    Err(ApiError::overloaded(1))
}

/// Delivers a file to which the caller has given access, such as that of a shared link. Returns also whether the body
/// is the file itself, not a variant of an image.
pub async fn deliver_shared(
    app: &AppState,
    head: &Parts,
    bucket: &Arc<Bucket>,
    name: &ObjectName,
) -> Result<(Response, bool), ApiError> {
    embed_policy::reject_active_embeds(&head.headers)?;
    let (query, client) = (&Query::from_uri(&head.uri), RoutedContext::client_ip(&head.extensions));
    let request = FileRequest { app, head, query, bucket, client };
    for _ in 0..LOOKUPS_MAX {
        let object = locate(app, bucket, name, None)?.ok_or_else(ApiError::file_not_found)?;
        match deliver_object(&request, &object).await {
            Err(Retry::Stale) => {}
            Err(Retry::Error(error)) => return Err(error),
            Ok(delivered) => return Ok(delivered),
        }
    }
    Err(ApiError::overloaded(1))
}

/// Looks up an object. `denied` is the reason why the caller may not read the bucket, which does not apply to an object
/// that is public by its access control list.
fn locate(
    app: &AppState,
    bucket: &Bucket,
    name: &ObjectName,
    denied: Option<&ApiError>,
) -> Result<Option<Object>, ApiError> {
    let found = app.store.get(name)?;
    let found = found.filter(|object| !bucket.is_expired(object, || app.clock.unix_ms()));
    match denied {
        Some(error) if !found.as_ref().is_some_and(|object| bucket.is_public_object(object)) => {
            Err(error.clone())
        }
        _ => Ok(found),
    }
}

/// Object that is delivered.
struct Located<'o> {
    object: &'o Object,
    representation: Representation<'o>,
    /// Value of the parameter `download`.
    download: Option<String>,
}

/// Reason why a lookup yields no response.
enum Retry {
    /// The object was replaced or deleted since the lookup, and its bytes are gone.
    Stale,
    /// The response is this error.
    Error(ApiError),
}

impl From<ApiError> for Retry {
    fn from(error: ApiError) -> Self {
        Self::Error(error)
    }
}

impl From<engine::Error> for Retry {
    fn from(error: engine::Error) -> Self {
        Self::Error(error.into())
    }
}

impl From<VariantError> for Retry {
    fn from(error: VariantError) -> Self {
        match error {
            VariantError::Store(engine::Error::Conflict(_)) => Self::Stale,
            error => Self::Error(error.into()),
        }
    }
}

/// Delivers an object. Returns also whether the body is the file itself.
async fn deliver_object(
    request: &FileRequest<'_>,
    object: &Object,
) -> Result<(Response, bool), Retry> {
    let download = request.query.string_allow_empty(&["download"])?;
    let representation = Representation::select(request, object).await?;
    let located = Located { object, representation, download };
    let Decision { status, headers, parts } = decide(request, &located)?;
    let body = open_body(request, &located.representation, parts).await?;
    Ok((response(status, headers, body), located.representation.is_original()))
}

/// Delivers a missing file: the bucket's placeholder with status 404, or else an error.
async fn deliver_placeholder(request: &FileRequest<'_>) -> Result<Response, Retry> {
    let FileRequest { app, bucket, .. } = request;
    let missing = ApiError::file_not_found;
    let name = bucket.placeholder_object().ok_or_else(missing)?;
    if name.bucket != bucket.name {
        // The bucket may have been deleted since, and created again by another account.
        let other = app.catalog.buckets().get(&name.bucket);
        other.filter(|other| other.owner == bucket.owner).ok_or_else(missing)?;
    }
    let object = app.store.get(&name)?.ok_or_else(missing)?;
    let representation = Representation::select(request, &object).await?;
    let validators = representation.validators(&object);
    let is_public = bucket.access == Access::Public;
    let mut headers = representation_headers(
        bucket,
        visibility(bucket, is_public),
        &representation,
        &validators,
        Disposition::Inline,
        object_headers,
    );
    // These describe the file at this URL, which does not exist.
    for name in [header::ETAG, header::LAST_MODIFIED, header::ACCEPT_RANGES] {
        headers.remove(name);
    }
    if is_public {
        headers.insert(header::CACHE_CONTROL, PLACEHOLDER_CACHE);
    }
    representation.describe_content(&mut headers);
    let parts = vec![BodyPart::Range(0..representation.bytes())];
    let body = open_body(request, &representation, parts).await?;
    Ok(response(StatusCode::NOT_FOUND, headers, body))
}

fn response(status: StatusCode, headers: HeaderMap, body: Body) -> Response {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    *response.headers_mut() = headers;
    response
}

/// Opens what is sent of the content.
async fn open_body(
    request: &FileRequest<'_>,
    representation: &Representation<'_>,
    parts: Vec<BodyPart>,
) -> Result<Body, Retry> {
    // HEAD, and 304.
    if request.head.method == Method::HEAD || parts.is_empty() {
        return Ok(Body::empty());
    }
    match representation.content() {
        RepresentationData::Stored(object) => match read(request.app, object, parts).await {
            Err(engine::Error::Conflict(_)) => Err(Retry::Stale),
            Err(error @ engine::Error::Corrupt(_)) => Err(match representation.variant() {
                Some(variant) => Box::pin(discard(request.app, variant, error)).await,
                None => error.into(),
            }),
            body => Ok(body?),
        },
        RepresentationData::Memory(bytes) => Ok(object_body::body_from_memory(bytes, parts)),
    }
}

async fn read(app: &AppState, object: &Object, parts: Vec<BodyPart>) -> engine::Result<Body> {
    let body = object_body::open_body(&app.store, object).await?;
    object_body::stream_body(body, parts, &app.disk_reads).await
}

/// Removes a corrupt variant, so that the retry renders it again.
async fn discard(app: &AppState, variant: &Object, error: engine::Error) -> Retry {
    tracing::warn!(%error, "cached variant corrupt; rendering again");
    let (variants, variant) = (app.variants.clone(), variant.clone());
    match blocking(move || variants.discard(&variant)).await {
        Ok(()) => Retry::Stale,
        Err(_) => error.into(),
    }
}
