//! Final processing of every response, whatever produced it.
//!
//! 1. Rewrites an error with the request's id, in the form that the client accepts. Details that the client does not
//!    get are logged.
//! 2. Adds the request's id, so that a user's report can be matched to a log line.
//! 3. Drops the body of a response to HEAD.
//!
//! Guarantees: no query string and no token is logged.

use axum::body::Body;
use http::header::{self, HeaderName, HeaderValue};
use http::{Method, Response, StatusCode};
use http_body::Body as _;

use protocol::error::{ApiError, ErrorFormat, ErrorMediaType, render_error};
use protocol::request_id::RequestId;
use protocol::reserved_paths::{LINK_PATH, TOKEN_PATH, ZIP_PATH};

/// Header with the id of the request.
pub const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// Finishes the response to a request with this method, path and id, with an error in the form that the client accepts.
pub fn finish_response(
    method: &Method,
    path: &str,
    request_id: RequestId,
    media_type: impl FnOnce() -> ErrorMediaType,
    mut response: Response<Body>,
) -> Response<Body> {
    if let Some(error) = response.extensions().get::<ApiError>() {
        log(error, request_id, method, path);
        let format = ErrorFormat { request_id: Some(request_id), media_type: media_type() };
        response = render_error(response, &format);
    }
    response.headers_mut().insert(REQUEST_ID, request_id.to_header_value());
    if method == Method::HEAD { without_body(response) } else { response }
}

/// Logs server errors at level error, client errors at level debug. Tokens in the path are cut off.
#[cold]
fn log(error: &ApiError, request_id: RequestId, method: &Method, path: &str) {
    let path = [TOKEN_PATH, LINK_PATH, ZIP_PATH]
        .into_iter()
        .find(|it| path.starts_with(it))
        .unwrap_or(path);
    let line = error.log().unwrap_or_else(|| error.message());
    if error.is_failure() {
        tracing::error!(request = %request_id, %method, path, "{line}");
    } else {
        tracing::debug!(request = %request_id, %method, path, "{line}");
    }
}

/// Drops the body but keeps its length header. A 304 has no body and no length: that would have to be the length of the
/// 200 (RFC 9110 section 8.6).
fn without_body(response: Response<Body>) -> Response<Body> {
    let (mut parts, body) = response.into_parts();
    if parts.status == StatusCode::NOT_MODIFIED {
        parts.headers.remove(header::CONTENT_LENGTH);
    } else if let Some(length) = body.size_hint().exact() {
        parts.headers.entry(header::CONTENT_LENGTH).or_insert(HeaderValue::from(length));
    }
    Response::from_parts(parts, Body::empty())
}
