//! `/api/tus/`: an upload in as many requests as it takes, tus 1.0.
//!
//! | request | what |
//! | ------- | ---- |
//! | `POST /api/tus/` | begins an upload, perhaps with its first bytes: 201 and where it is |
//! | `HEAD /api/tus/{id}` | how much has come |
//! | `PATCH /api/tus/{id}` | the next bytes: 204; the last ones store the file |
//! | `DELETE /api/tus/{id}` | gives the upload up: 204 |
//!
//! Promises: an offset that was told is durable, and a client that comes back may go on from there, after a crash of
//! the server too; a file is stored exactly once, in one batch with the note that its upload is done; who comes for an
//! upload that somebody is working on gets it. That everything has come is only told of a file that is stored.
//! Never here: names, places and quotas, which are those of any upload.

mod sweep;
mod wish;
mod work;

use axum::body::Body;
use axum::extract::{Path, State};
use axum::response::Response;
use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use http::{Request, StatusCode};

pub use self::sweep::{sweep, sweep_now_and_then};
use self::wish::Wish;
use self::work::Work;
use crate::auth::Caller;
use crate::delivery_headers::allow_every_origin;
use crate::error::ApiError;
use crate::query::Query;
use crate::state::AppState;
use crate::tus::{check_version, number, state_version};

const UPLOAD_OFFSET: HeaderName = HeaderName::from_static("upload-offset");
const UPLOAD_LENGTH: HeaderName = HeaderName::from_static("upload-length");
const UPLOAD_METADATA: HeaderName = HeaderName::from_static("upload-metadata");
const UPLOAD_EXPIRES: HeaderName = HeaderName::from_static("upload-expires");
const OBJECT_URL: HeaderName = HeaderName::from_static("x-object-url");
const CHUNK_TYPE: &str = "application/offset+octet-stream";

/// Begins an upload.
pub async fn create(
    State(app): State<AppState>,
    caller: Caller,
    query: Query,
    request: Request<Body>,
) -> Result<Response, ApiError> {
    let (head, body) = request.into_parts();
    check_version(&head.headers)?;
    let wish = Wish::of(&head.headers, &query)?;
    let mut work = Work::begin(&app, &caller, wish).await?;
    let mut response = answer(StatusCode::CREATED);
    // Relative, so that it holds whatever name and path the client knows the server by.
    let id = work.upload.id;
    let is_folder = head.uri.path().ends_with('/');
    let location = if is_folder { id.to_string() } else { format!("tus/{id}") };
    put(&mut response, header::LOCATION, &location);
    if is_chunk(&head.headers) || work.upload.length == 0 {
        let body = if is_chunk(&head.headers) { body } else { Body::empty() };
        work = work.receive(&head.headers, body).await?;
        put(&mut response, UPLOAD_OFFSET, &work.upload.received.bytes.to_string());
    }
    tell(&work, &mut response);
    Ok(response)
}

/// Tells how much has come.
pub async fn state(
    State(app): State<AppState>,
    caller: Caller,
    Path(id): Path<String>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    check_version(&headers)?;
    let work = Work::find(&app, &caller, &id).await?.completed().await?;
    let mut response = answer(StatusCode::OK);
    put(&mut response, UPLOAD_OFFSET, &work.upload.received.bytes.to_string());
    put(&mut response, UPLOAD_LENGTH, &work.upload.length.to_string());
    if !work.upload.metadata.is_empty() {
        put(&mut response, UPLOAD_METADATA, &work.upload.metadata);
    }
    tell(&work, &mut response);
    Ok(response)
}

/// Takes the next bytes.
pub async fn append(
    State(app): State<AppState>,
    caller: Caller,
    Path(id): Path<String>,
    request: Request<Body>,
) -> Result<Response, ApiError> {
    let (head, body) = request.into_parts();
    check_version(&head.headers)?;
    if !is_chunk(&head.headers) {
        return Err(ApiError::not_a_chunk(CHUNK_TYPE));
    }
    let offset = number(&head.headers, "upload-offset")?
        .ok_or_else(|| ApiError::bad_header("Upload-Offset", "is missing"))?;
    let mut work = Work::find(&app, &caller, &id).await?.completed().await?;
    if offset != work.upload.received.bytes {
        return Err(ApiError::wrong_offset(work.upload.received.bytes));
    }
    if !work.upload.is_stored {
        work = work.receive(&head.headers, body).await?;
    }
    let mut response = answer(StatusCode::NO_CONTENT);
    put(&mut response, UPLOAD_OFFSET, &work.upload.received.bytes.to_string());
    tell(&work, &mut response);
    Ok(response)
}

/// Gives an upload up.
pub async fn terminate(
    State(app): State<AppState>,
    caller: Caller,
    Path(id): Path<String>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    check_version(&headers)?;
    let work = Work::find(&app, &caller, &id).await?;
    work.terminate().await?;
    Ok(answer(StatusCode::NO_CONTENT))
}

/// A method in a header, for clients that may only send POST.
pub async fn overridden(
    State(app): State<AppState>,
    caller: Caller,
    Path(id): Path<String>,
    request: Request<Body>,
) -> Result<Response, ApiError> {
    let headers = request.headers().clone();
    match headers.get("x-http-method-override").map(HeaderValue::as_bytes) {
        Some(b"PATCH") => append(State(app), caller, Path(id), request).await,
        Some(b"HEAD") => state(State(app), caller, Path(id), headers).await,
        Some(b"DELETE") => terminate(State(app), caller, Path(id), headers).await,
        _ => Err(ApiError::method_not_allowed("HEAD, PATCH, DELETE, OPTIONS")),
    }
}

fn is_chunk(headers: &HeaderMap) -> bool {
    headers.get(header::CONTENT_TYPE).is_some_and(|it| it == CHUNK_TYPE)
}

/// What every answer about an upload says: until when it is kept, or where its file is.
fn tell(work: &Work, response: &mut Response) {
    if work.upload.is_stored {
        if let Some(url) = work.object_url() {
            put(response, OBJECT_URL, &url);
        }
        return;
    }
    let expires = std::time::UNIX_EPOCH + std::time::Duration::from_millis(work.upload.expires_ms);
    put(response, UPLOAD_EXPIRES, &httpdate::fmt_http_date(expires));
}

fn answer(status: StatusCode) -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = status;
    let headers = response.headers_mut();
    allow_every_origin(headers);
    state_version(headers);
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

fn put(response: &mut Response, name: HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        response.headers_mut().insert(name, value);
    }
}
