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
use http::request::Parts;
use http::{Method, Response, StatusCode, Uri};
use http_body::Body as _;

use protocol::error::{ApiError, ErrorFormat, render_error};
use protocol::reserved_paths::TOKEN_PATH;

/// Header with the id of the request.
pub(crate) const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// Request data that its response needs.
pub(crate) struct ResponseContext {
    method: Method,
    uri: Uri,
    error_format: ErrorFormat,
}

impl ResponseContext {
    pub(crate) fn from_request(request: &Parts, request_id: String) -> Self {
        Self {
            method: request.method.clone(),
            uri: request.uri.clone(),
            error_format: ErrorFormat::from_headers(&request.headers, request_id),
        }
    }

    /// Returns the id of the request.
    pub(crate) fn request_id(&self) -> &str {
        &self.error_format.request_id
    }

    /// Finishes the response.
    pub(crate) fn finish(self, response: Response<Body>) -> Response<Body> {
        if let Some(error) = response.extensions().get::<ApiError>() {
            self.log(error);
        }
        let mut response = render_error(response, &self.error_format);
        if let Ok(id) = HeaderValue::try_from(self.error_format.request_id) {
            response.headers_mut().insert(REQUEST_ID, id);
        }
        if self.method == Method::HEAD { without_body(response) } else { response }
    }
}

/// Server errors are logged at level error, client errors at level debug.
impl ResponseContext {
    fn log(&self, error: &ApiError) {
        // Logs the path alone: the query may contain keys. Tokens in the path are cut off.
        let (id, method) = (&self.error_format.request_id, &self.method);
        let path = self.uri.path();
        let path = if path.starts_with(TOKEN_PATH) { TOKEN_PATH } else { path };
        let line = error.log().unwrap_or_else(|| error.message());
        if error.is_failure() {
            tracing::error!(request = %id, %method, path, "{line}");
        } else {
            tracing::debug!(request = %id, %method, path, "{line}");
        }
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
