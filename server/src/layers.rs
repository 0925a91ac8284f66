//! What every answer gets on its way out, wherever it was made.
//!
//! 1. An error is written again, now that the request is known: with its id, in the form that the client asked for.
//!    What the client is not told goes to the log.
//! 2. The request's id, so that a person can find the line of the log.
//! 3. No body where only the head was asked for.
//!
//! Never here: a query string or a token in a log.

use axum::body::Body;
use http::header::{self, HeaderName, HeaderValue};
use http::request::Parts;
use http::{Method, Response, StatusCode, Uri};
use http_body::Body as _;

use crate::error::{ApiError, Asked, complete};
use crate::reserved::TOKEN_PATH;

/// The id of the request that is answered.
pub(crate) const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// What of a request is needed when its answer goes out.
pub(crate) struct Outgoing {
    method: Method,
    uri: Uri,
    asked: Asked,
}

impl Outgoing {
    pub(crate) fn of(request: &Parts, request_id: String) -> Self {
        Self {
            method: request.method.clone(),
            uri: request.uri.clone(),
            asked: Asked::of(&request.headers, request_id),
        }
    }

    /// The id of the request.
    pub(crate) fn request_id(&self) -> &str {
        &self.asked.request_id
    }

    /// Finishes the answer.
    pub(crate) fn finish(self, response: Response<Body>) -> Response<Body> {
        if let Some(error) = response.extensions().get::<ApiError>() {
            self.log(error);
        }
        let mut response = complete(response, &self.asked);
        if let Ok(id) = HeaderValue::try_from(self.asked.request_id) {
            response.headers_mut().insert(REQUEST_ID, id);
        }
        if self.method == Method::HEAD { without_body(response) } else { response }
    }
}

/// What lies with the server is an error, what lies with the client is worth a line to those who look for it.
impl Outgoing {
    fn log(&self, error: &ApiError) {
        // The path alone: keys may stand in the query. And of that no token.
        let (id, method) = (&self.asked.request_id, &self.method);
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

/// The head alone, which still says how long the body would be. A 304 has no body, and says nothing of the length: that
/// would have to be the length of the 200 (RFC 9110, 8.6).
fn without_body(response: Response<Body>) -> Response<Body> {
    let (mut parts, body) = response.into_parts();
    if parts.status == StatusCode::NOT_MODIFIED {
        parts.headers.remove(header::CONTENT_LENGTH);
    } else if let Some(length) = body.size_hint().exact() {
        parts.headers.entry(header::CONTENT_LENGTH).or_insert(HeaderValue::from(length));
    }
    Response::from_parts(parts, Body::empty())
}
