//! `PUT /{bucket}/{*path}?token=`: uploads one file as a raw body to its presigned URL.
//!
//! Guarantees: the file gets the key that the URL was issued for, and replaces an existing file; nothing else can be
//! uploaded. Non-goals: issuing URLs.

use axum::body::Body;
use axum::extract::State;
use axum::response::IntoResponse;
use catalog::{EventKind, Purpose};
use engine::{Batch, ObjectKey, ObjectName};
use http::header::{CONTENT_TYPE, ETAG, HeaderValue};
use http::{Request, Response};
use protocol::error::ApiError;
use protocol::object_path::PathInBucket;
use protocol::query::Query;
use protocol::request_body::{BodyLimits, RequestBody};
use service::admission::{charge, with_rate_limit_headers};
use service::object_options::ObjectOptions;
use service::parameters::ObjectPathParameters;
use service::rate_limit::RateClass;
use service::replies::{Success, UploadReply};
use service::request_context::Target;
use service::state::AppState;
use service::upload::reply;
use service::upload::{UploadOptions, UploadTarget, receive_raw, store_files};

use crate::handlers::presign::{issuer_and_destination, verify_grant};

/// Methods of a path in a bucket; GET and HEAD never get here. PUT requires a presigned URL.
pub const OBJECT_METHODS: &str = "GET, HEAD, POST, DELETE, OPTIONS";

const TOKEN: &[&str] = &["token"];

/// Uploads one file to a presigned URL.
#[utoipa::path(
    put,
    path = "/{bucket}/{path}",
    operation_id = "putPresigned",
    tag = "Presigned uploads",
    security(()),
    params(ObjectPathParameters, ("token" = String, Query, min_length = 1, description = "Token of the presigned URL.")),
    request_body(content_type = "*/*"),
    responses(
        (status = OK, body = UploadReply),
        (status = NOT_FOUND, description = "`token_not_found`."),
        (status = METHOD_NOT_ALLOWED, description = "`method_not_allowed`: the `token` is missing."),
        (status = GONE, description = "`token_expired`, `token_revoked`."),
    )
)]
pub async fn put_presigned(
    State(app): State<AppState>,
    query: Query,
    target: Result<Target, ApiError>,
    request: Request<Body>,
) -> Result<Response<Body>, ApiError> {
    let no_token = || ApiError::put_needs_token(OBJECT_METHODS);
    let text = query.string(TOKEN)?.ok_or_else(no_token)?;
    let grant = verify_grant(&app, &text, Purpose::Raw)?;
    let name = target?.0.object();
    let ObjectName { bucket, key } = name.ok_or_else(ApiError::token_not_found)?;
    if bucket != grant.bucket || PathInBucket::File(key.clone()) != grant.path {
        return Err(ApiError::token_not_found());
    }
    let (issuer, destination) = issuer_and_destination(&app, &grant)?;
    let taken = charge(&app, RateClass::Upload, &issuer)?;
    let options = ObjectOptions::from_query(&query, app.clock.unix_ms())?;
    let actor = issuer.with_request(request.extensions()).actor();
    let options = (UploadOptions::new(grant.params, EventKind::CreatedByPut, actor), options);
    let stored = store_body(&app, &destination, options, key, request).await;
    Ok(with_rate_limit_headers(&taken, stored))
}

async fn store_body(
    app: &AppState,
    destination: &UploadTarget,
    (upload, options): (UploadOptions, ObjectOptions),
    key: ObjectKey,
    request: Request<Body>,
) -> Result<Response<Body>, ApiError> {
    let (head, body) = request.into_parts();
    let declared_type = head.headers.get(CONTENT_TYPE).map(HeaderValue::as_bytes);
    let declared_type = declared_type.map(|it| String::from_utf8_lossy(it).into_owned());
    let body = RequestBody::new(&head.headers, body, BodyLimits::new(app.body_bytes_max()))?;
    let mut file = receive_raw(app, &destination.bucket, declared_type, body).await?;
    file.describe(&options)?;
    let stored =
        store_files(app, &destination.bucket, &upload, Batch::new(), vec![file], &[key]).await?;
    let reply = reply(app, destination, stored);
    let etag = HeaderValue::try_from(reply.etag());
    let mut response = Success(reply).into_response();
    response.headers_mut().extend(etag.map(|etag| (ETAG, etag)));
    Ok(response)
}
