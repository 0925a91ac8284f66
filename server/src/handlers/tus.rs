//! `/api/tus/`: resumable uploads, tus 1.0.
//!
//! | request | what |
//! | ------- | ---- |
//! | `POST /api/tus/` | creates an upload, optionally with its first bytes: 201 and its location |
//! | `HEAD /api/tus/{id}` | returns the current offset |
//! | `PATCH /api/tus/{id}` | appends bytes: 204; the last ones store the file |
//! | `DELETE /api/tus/{id}` | terminates the upload: 204 |
//!
//! The pages of links that request files have the same requests below their own paths (`upload_pages`).
//!
//! Guarantees: a reported offset is durable, and a client may resume from there, even after a crash of the server; a
//! file is stored exactly once, in one batch with the record that its upload is complete; a new request for an upload
//! takes over from the current one. The full offset is reported only for a stored file; a complete upload that cannot
//! be stored for now is retained, and stored by the next request for which that is possible. Non-goals: names,
//! destinations and quotas, which are those of any upload.

mod params;
mod sweep;
mod upload_step;

use axum::body::Body;
use axum::extract::State;
use axum::response::Response;
use catalog::SharedLink;
use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use http::{Request, StatusCode};
use protocol::error::ApiError;
use protocol::query::Query;
use protocol::response_headers::allow_any_origin;
use protocol::tus_headers::{check_version, insert_version_header, number};
use service::auth::Caller;
use service::parameters::{Chunk, Flag, TusUploadParameters, TusVersionParameter};
use service::request_context::Path;
use service::state::AppState;
use utoipa::ToSchema;

use self::params::CreateUploadParams;
pub use self::sweep::{expire_uploads, run_expiry_loop};
pub(super) use self::upload_step::Uploader;
use self::upload_step::{UploadSession, is_transient};

const UPLOAD_OFFSET: HeaderName = HeaderName::from_static("upload-offset");
const UPLOAD_LENGTH: HeaderName = HeaderName::from_static("upload-length");
const UPLOAD_METADATA: HeaderName = HeaderName::from_static("upload-metadata");
const UPLOAD_EXPIRES: HeaderName = HeaderName::from_static("upload-expires");
const OBJECT_URL: HeaderName = HeaderName::from_static("x-object-url");
const THUMBNAIL_URL: HeaderName = HeaderName::from_static("x-thumbnail-url");
const CHUNK_TYPE: &str = "application/offset+octet-stream";

/// Methods accepted in `X-HTTP-Method-Override`.
#[derive(ToSchema)]
#[schema(rename_all = "UPPERCASE")]
#[expect(dead_code, reason = "it describes what `overridden` reads")]
enum OverriddenMethod {
    Head,
    Patch,
    Delete,
}

/// Creates a resumable upload, optionally with its first bytes.
#[utoipa::path(
    post,
    path = "/api/tus/",
    operation_id = "tusCreate",
    tag = "Resumable uploads",
    params(
        TusVersionParameter,
        ("Upload-Length" = u64, Header, description = "Total size of the file in bytes.", maximum = 68_719_476_736_i64),
        ("Upload-Metadata" = Option<String>, Header, description = "Comma-separated pairs of a name, such as \
            `bucketName`, `path` or `filename`, and a base64 value."),
        ("bucketName" = Option<String>, Query, description = "Bucket name, if not in `Upload-Metadata`."),
        ("path" = Option<String>, Query, description = "Folder (with a trailing slash) or file; default: the root \
            folder."),
        ("overwrite" = Option<Flag>, Query, description = "Whether to replace an existing file; otherwise the new \
            file gets an unused name."),
        ("randomizeName" = Option<Flag>, Query, description = "Whether to name the file by a random UUID, with its \
            extension."),
        ("thumbnail" = Option<Flag>, Query, description = "Whether to create thumbnails of images; default: the \
            setting of the bucket."),
    ),
    request_body(content = Option<Chunk>, content_type = "application/offset+octet-stream"),
    responses(
        (status = CREATED, description = "Upload created.", headers(
            ("Location" = String, description = "URL of the upload, relative to the request URL."),
            ("Upload-Offset" = Option<u64>, description = "Received bytes; only if the request had a body."),
            ("Upload-Expires" = Option<String>, description = "Expiry time of the upload."),
            ("X-Object-Url" = Option<String>, description = "URL of the file, once the upload is \
                complete."),
            ("X-Thumbnail-Url" = Option<String>, description = "URL of the thumbnail, if the file has one."),
        )),
        (status = NOT_FOUND, description = "`bucket_not_found`."),
        (status = PRECONDITION_FAILED, description = "`tus_version`."),
        (status = 460, description = "`checksum_mismatch`."),
    )
)]
pub async fn create(
    State(app): State<AppState>,
    caller: Caller,
    query: Query,
    request: Request<Body>,
) -> Result<Response, ApiError> {
    check_version(request.headers())?;
    let params = CreateUploadParams::from_request(request.headers(), &query, app.clock.unix_ms())?;
    created(&app, &Uploader::from(caller), params, request).await
}

/// Creates an upload to a link.
pub(super) async fn create_for_link(
    app: &AppState,
    uploader: &Uploader,
    link: &SharedLink,
    request: Request<Body>,
) -> Result<Response, ApiError> {
    check_version(request.headers())?;
    let params = CreateUploadParams::to_link(request.headers(), link)?;
    created(app, uploader, params, request).await
}

async fn created(
    app: &AppState,
    uploader: &Uploader,
    params: CreateUploadParams,
    request: Request<Body>,
) -> Result<Response, ApiError> {
    let (head, body) = request.into_parts();
    let mut work = UploadSession::create(app, uploader, params).await?;
    let mut response = answer(StatusCode::CREATED);
    // Relative, so that it is valid for any host and path under which the client reaches the server.
    let id = work.upload.id;
    let is_folder = head.uri.path().ends_with('/');
    let location = if is_folder { id.to_string() } else { format!("tus/{id}") };
    put(&mut response, header::LOCATION, &location);
    if is_chunk(&head.headers) || work.upload.length == 0 {
        let body = if is_chunk(&head.headers) { body } else { Body::empty() };
        work = work.receive(&head.headers, body).await?;
        put(&mut response, UPLOAD_OFFSET, &work.upload.received_bytes.to_string());
    }
    insert_upload_headers(&work, &mut response).await?;
    Ok(response)
}

/// Returns the offset of a resumable upload.
#[utoipa::path(
    head,
    path = "/api/tus/{id}",
    operation_id = "tusState",
    tag = "Resumable uploads",
    params(TusUploadParameters),
    responses(
        (status = OK, description = "Upload offset and metadata.", headers(
            ("Upload-Offset" = u64, description = "Received bytes."),
            ("Upload-Length" = u64, description = "Total size of the file in bytes."),
            ("Upload-Metadata" = Option<String>, description = "Metadata as sent at creation."),
            ("X-Object-Url" = Option<String>, description = "URL of the file, once the upload is \
                complete."),
            ("X-Thumbnail-Url" = Option<String>, description = "URL of the thumbnail, if the file has one."),
        )),
        (status = GONE, description = "`upload_expired`: start the upload again."),
        (status = PRECONDITION_FAILED, description = "`tus_version`."),
        (status = LOCKED, description = "`upload_locked`: the upload is in use, or complete and waiting to be \
            committed."),
    )
)]
pub async fn state(
    State(app): State<AppState>,
    caller: Caller,
    Path(id): Path<String>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    state_of(&app, &caller.into(), &id, &headers).await
}

/// Returns the offset of an upload.
pub(super) async fn state_of(
    app: &AppState,
    uploader: &Uploader,
    id: &str,
    headers: &HeaderMap,
) -> Result<Response, ApiError> {
    check_version(headers)?;
    let work = UploadSession::find(app, uploader, id).await?;
    // Any other error makes clients restart the upload from its first byte.
    let locked =
        |why: ApiError| if is_transient(&why) { ApiError::upload_waits(&why) } else { why };
    let work = work.finish_pending().await.map_err(locked)?;
    let mut response = answer(StatusCode::OK);
    put(&mut response, UPLOAD_OFFSET, &work.upload.received_bytes.to_string());
    put(&mut response, UPLOAD_LENGTH, &work.upload.length.to_string());
    if !work.upload.metadata.is_empty() {
        put(&mut response, UPLOAD_METADATA, &work.upload.metadata);
    }
    insert_upload_headers(&work, &mut response).await?;
    Ok(response)
}

/// Appends bytes to a resumable upload, and commits the file once it is complete.
#[utoipa::path(
    patch,
    path = "/api/tus/{id}",
    operation_id = "tusAppend",
    tag = "Resumable uploads",
    params(
        TusUploadParameters,
        ("Upload-Offset" = u64, Header, description = "Offset of the body in the file, in bytes."),
        ("Upload-Checksum" = Option<String>, Header, description = "Checksum of the body: `sha1` or `sha256`, a \
            space, and the hash in base64."),
    ),
    request_body(content = Chunk, content_type = "application/offset+octet-stream"),
    responses(
        (status = NO_CONTENT, description = "Bytes stored durably.", headers(
            ("Upload-Offset" = u64, description = "Received bytes."),
            ("X-Object-Url" = Option<String>, description = "URL of the file, once the upload is \
                complete."),
            ("X-Thumbnail-Url" = Option<String>, description = "URL of the thumbnail, if the file has one."),
        )),
        (status = CONFLICT, description = "`wrong_offset`, with `offset`; `conflict`."),
        (status = GONE, description = "`upload_expired`: start the upload again."),
        (status = PRECONDITION_FAILED, description = "`tus_version`."),
        (status = LOCKED, description = "`upload_locked`."),
        (status = 460, description = "`checksum_mismatch`: the body was discarded."),
    )
)]
pub async fn append(
    State(app): State<AppState>,
    caller: Caller,
    Path(id): Path<String>,
    request: Request<Body>,
) -> Result<Response, ApiError> {
    append_to(&app, &caller.into(), &id, request).await
}

/// Appends bytes to an upload.
pub(super) async fn append_to(
    app: &AppState,
    uploader: &Uploader,
    id: &str,
    request: Request<Body>,
) -> Result<Response, ApiError> {
    let (head, body) = request.into_parts();
    check_version(&head.headers)?;
    if !is_chunk(&head.headers) {
        return Err(ApiError::not_a_chunk(CHUNK_TYPE));
    }
    let offset = number(&head.headers, "upload-offset")?
        .ok_or_else(|| ApiError::bad_header("Upload-Offset", "is missing"))?;
    let mut work = UploadSession::find(app, uploader, id).await?.finish_pending().await?;
    if offset != work.upload.received_bytes {
        return Err(ApiError::wrong_offset(work.upload.received_bytes));
    }
    if !work.upload.is_stored {
        work = work.receive(&head.headers, body).await?;
    }
    let mut response = answer(StatusCode::NO_CONTENT);
    put(&mut response, UPLOAD_OFFSET, &work.upload.received_bytes.to_string());
    insert_upload_headers(&work, &mut response).await?;
    Ok(response)
}

/// Terminates a resumable upload.
#[utoipa::path(
    delete,
    path = "/api/tus/{id}",
    operation_id = "tusTerminate",
    tag = "Resumable uploads",
    params(TusUploadParameters),
    responses(
        (status = NO_CONTENT, description = "Upload deleted."),
        (status = GONE, description = "`upload_expired`: start the upload again."),
        (status = PRECONDITION_FAILED, description = "`tus_version`."),
        (status = LOCKED, description = "`upload_locked`."),
    )
)]
pub async fn terminate(
    State(app): State<AppState>,
    caller: Caller,
    Path(id): Path<String>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    end(&app, &caller.into(), &id, &headers).await
}

/// Terminates an upload.
pub(super) async fn end(
    app: &AppState,
    uploader: &Uploader,
    id: &str,
    headers: &HeaderMap,
) -> Result<Response, ApiError> {
    check_version(headers)?;
    let work = UploadSession::find(app, uploader, id).await?;
    work.terminate().await?;
    Ok(answer(StatusCode::NO_CONTENT))
}

/// Performs the method named by `X-HTTP-Method-Override`.
#[utoipa::path(
    post,
    path = "/api/tus/{id}",
    operation_id = "tusOverridden",
    tag = "Resumable uploads",
    params(
        TusUploadParameters,
        ("X-HTTP-Method-Override" = inline(OverriddenMethod), Header, description = "Method to perform, with the \
            headers of that method."),
    ),
    request_body(content = Option<Chunk>, content_type = "application/offset+octet-stream"),
    responses(
        (status = OK, description = "Response of HEAD."),
        (status = NO_CONTENT, description = "Response of PATCH or DELETE."),
        (status = CONFLICT, description = "`wrong_offset`, with `offset`; `conflict`."),
        (status = GONE, description = "`upload_expired`: start the upload again."),
        (status = PRECONDITION_FAILED, description = "`tus_version`."),
        (status = LOCKED, description = "`upload_locked`."),
        (status = 460, description = "`checksum_mismatch`: the body was discarded."),
    )
)]
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
        _ => Err(ApiError::bad_header("X-HTTP-Method-Override", "must be HEAD, PATCH or DELETE")),
    }
}

fn is_chunk(headers: &HeaderMap) -> bool {
    headers.get(header::CONTENT_TYPE).is_some_and(|it| it == CHUNK_TYPE)
}

/// Adds the headers of every response about an upload: its expiry, or the URL of its file.
async fn insert_upload_headers(
    work: &UploadSession,
    response: &mut Response,
) -> Result<(), ApiError> {
    // The pages of links reveal no paths.
    if work.upload.is_stored && work.upload.link.is_some() {
        return Ok(());
    }
    if work.upload.is_stored {
        let (file, thumbnail) = work.file_urls().await?;
        for (name, url) in [(OBJECT_URL, file), (THUMBNAIL_URL, thumbnail)] {
            if let Some(url) = url {
                put(response, name, &url);
            }
        }
        return Ok(());
    }
    let expires = std::time::UNIX_EPOCH + std::time::Duration::from_millis(work.upload.expires_ms);
    put(response, UPLOAD_EXPIRES, &httpdate::fmt_http_date(expires));
    Ok(())
}

fn answer(status: StatusCode) -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = status;
    let headers = response.headers_mut();
    allow_any_origin(headers);
    insert_version_header(headers);
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

fn put(response: &mut Response, name: HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        response.headers_mut().insert(name, value);
    }
}
