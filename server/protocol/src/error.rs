//! API errors: status, code, message, and additional fields.
//!
//! The only file, besides the delivery handler, that knows status codes. The message for the client and the line for
//! the log are separate fields: system errors about disks and files are only logged. Guarantees: the body is JSON with
//! `success: false` and `error` as a plain string, for every error; texts are truncated and free of terminal control
//! characters, regardless of the request; errors are readable across origins and never cached.

mod constructors;
mod schema;

use std::borrow::Cow;
use std::fmt;

use axum::body::Body;
use axum::response::IntoResponse;
use bytes::Bytes;
use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use http::{Response, StatusCode};
use serde_json::{Map, Value, json};

use crate::file_name::is_bidi_control;
use crate::limits;
use crate::preferences::names;
use crate::request_id::RequestId;
use crate::response_headers::allow_any_origin;

use self::constructors::{BUCKET_NOT_FOUND, FILE_NOT_FOUND, QUOTA_EXCEEDED};
pub use self::constructors::{INVALID_API_KEY, LOG_TOO_LARGE, SESSION_ENDED};

/// Error response to a client.
#[derive(Clone)]
pub struct ApiError(Box<Inner>);

#[derive(Clone)]
struct Inner {
    status: StatusCode,
    code: &'static str,
    message: Cow<'static, str>,
    extra: Vec<(&'static str, Value)>,
    /// Fields that only `application/problem+json` has, in addition to the common ones.
    problem: Vec<(&'static str, Value)>,
    headers: Vec<(HeaderName, HeaderValue)>,
    /// Rate limit that was exceeded.
    policy: Option<&'static str>,
    log: Option<String>,
}

/// Request data that determines the form of an error.
#[derive(Clone, Copy, Debug, Default)]
pub struct ErrorFormat {
    /// Request id, echoed in the body.
    pub request_id: Option<RequestId>,
    pub media_type: ErrorMediaType,
}

/// Form of the body of an error.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ErrorMediaType {
    #[default]
    Json,
    /// `application/problem+json`, RFC 9457.
    ProblemJson,
    /// HTML page if a file is missing, otherwise JSON.
    Html,
}

impl ErrorFormat {
    /// Reads the headers of a request without an id.
    pub fn from_headers(headers: &HeaderMap) -> Self {
        Self { request_id: None, media_type: ErrorMediaType::for_api(headers) }
    }
}

impl ErrorMediaType {
    /// Selects the form for the client of an API.
    pub fn for_api(headers: &HeaderMap) -> Self {
        match names(headers, header::ACCEPT, PROBLEM_JSON) {
            true => Self::ProblemJson,
            false => Self::Json,
        }
    }

    /// Selects the form for the client of a file, which may be a browser that shows it.
    pub fn for_file(headers: &HeaderMap) -> Self {
        match Self::for_api(headers) {
            Self::Json if names(headers, header::ACCEPT, "text/html") => Self::Html,
            media_type => media_type,
        }
    }
}

/// HTML page for a missing file.
const MISSING_FILE_PAGE: &str = include_str!("error/missing_file.html");
/// Content security policy of the page, which allows only its style.
const MISSING_FILE_POLICY: &str = "default-src 'none'; style-src 'sha256-AKlH6ZciEJcUpZwKZ4xjeuuWSh2EMEwm2SuwlDcmOhs='; \
    base-uri 'none'; form-action 'none'; frame-ancestors 'self'";

const PROBLEM_JSON: &str = "application/problem+json";

/// Sanitizes a text that may contain parts of a request: escapes the given characters, and truncates it.
fn sanitized(text: Cow<'static, str>, is_wild: fn(char) -> bool) -> Cow<'static, str> {
    if text.len() <= limits::ERROR_TEXT_CHARS_MAX && !text.contains(is_wild) {
        return text;
    }
    let mut chars = text.chars();
    let mut tamed = String::new();
    for c in chars.by_ref().take(limits::ERROR_TEXT_CHARS_MAX) {
        if is_wild(c) { tamed.extend(c.escape_unicode()) } else { tamed.push(c) }
    }
    if chars.next().is_some() {
        tamed.push('…');
    }
    tamed.into()
}

/// Returns whether a character can control a terminal, or reverse the direction of text.
fn needs_escape(c: char) -> bool {
    c.is_control() || is_bidi_control(c)
}

/// Construction of errors.
impl ApiError {
    /// Creates an error with a status, a code for programs and a message for users.
    pub fn new(
        status: StatusCode,
        code: &'static str,
        message: impl Into<Cow<'static, str>>,
    ) -> Self {
        let message = sanitized(message.into(), needs_escape);
        let (extra, problem, headers) = (Vec::new(), Vec::new(), Vec::new());
        let (policy, log) = (None, None);
        Self(Box::new(Inner { status, code, message, extra, problem, headers, policy, log }))
    }

    /// Adds a field to the body.
    pub fn with(mut self, name: &'static str, value: impl Into<Value>) -> Self {
        let value = match value.into() {
            // A key may contain characters that reverse text, and is returned verbatim.
            Value::String(text) => sanitized(text.into(), char::is_control).into(),
            other => other,
        };
        self.0.extra.push((name, value));
        self
    }

    /// Adds a field that only `application/problem+json` has.
    pub fn with_problem(mut self, name: &'static str, value: impl Into<Value>) -> Self {
        self.0.problem.push((name, value.into()));
        self
    }

    /// Adds a header. Skips an invalid header value.
    pub fn with_header(mut self, name: HeaderName, value: impl AsRef<str>) -> Self {
        if let Ok(value) = HeaderValue::from_str(value.as_ref()) {
            self.0.headers.push((name, value));
        }
        self
    }

    /// Sets the rate limit that was exceeded.
    pub fn with_rate_limit_policy(mut self, name: &'static str) -> Self {
        self.0.policy = Some(name);
        self
    }

    /// Sets the log line.
    pub fn with_log(mut self, line: impl Into<String>) -> Self {
        self.0.log = Some(line.into());
        self
    }
}

impl From<engine::Error> for ApiError {
    fn from(error: engine::Error) -> Self {
        let log = error.to_string();
        let refusal = match error {
            engine::Error::Corrupt(corruption) => {
                let status = StatusCode::INTERNAL_SERVER_ERROR;
                let Some(object) = corruption.object else {
                    return Self::new(status, "damaged", "Stored data is corrupt").with_log(log);
                };
                let message =
                    format!("The stored file {object} is corrupt: restore it from a backup");
                Self::new(status, "damaged", message)
                    .with("bucketName", object.bucket.as_str())
                    .with("key", object.key.as_str())
            }
            engine::Error::NoSpace => Self::new(
                StatusCode::INSUFFICIENT_STORAGE,
                "no_space",
                "Insufficient storage: the disk is full",
            ),
            engine::Error::ReadOnly(_) => {
                Self::new(StatusCode::SERVICE_UNAVAILABLE, "read_only", "The store is read-only")
            }
            engine::Error::Busy => Self::overloaded(1),
            engine::Error::RemoteUnavailable(_) => Self::new(
                StatusCode::SERVICE_UNAVAILABLE,
                "remote_unavailable",
                "The remote store did not confirm the write; it may have been stored: retry later",
            )
            .with_header(header::RETRY_AFTER, "5"),
            engine::Error::Closed => Self::new(
                StatusCode::SERVICE_UNAVAILABLE,
                "shutting_down",
                "The server is shutting down",
            )
            .with_header(header::RETRY_AFTER, "5"),
            engine::Error::TooLarge(_) => Self::new(
                StatusCode::PAYLOAD_TOO_LARGE,
                "too_large",
                "The request exceeds the store's batch limit",
            ),
            engine::Error::Cancelled => Self::new(
                StatusCode::SERVICE_UNAVAILABLE,
                "cancelled",
                "The operation was cancelled",
            ),
            engine::Error::Conflict(_) => {
                Self::conflict("Conflict: the file was changed concurrently; retry")
            }
            _ => Self::internal(""),
        };
        refusal.with_log(log)
    }
}

/// Inspection and conversion of errors.
impl ApiError {
    /// Returns the status.
    pub fn status(&self) -> StatusCode {
        self.0.status
    }

    /// Returns the code for programs.
    pub fn code(&self) -> &'static str {
        self.0.code
    }

    /// Returns the rate limit that was exceeded, if any.
    pub fn policy(&self) -> Option<&'static str> {
        self.0.policy
    }

    /// Returns the message for users.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// Returns whether the error is a server failure that needs attention. An exceeded quota is none.
    pub fn is_failure(&self) -> bool {
        self.0.status.is_server_error() && self.0.code != QUOTA_EXCEEDED
    }

    /// Returns whether a file is missing, or its bucket.
    fn is_missing_file(&self) -> bool {
        matches!(self.0.code, FILE_NOT_FOUND | BUCKET_NOT_FOUND)
    }

    /// Returns the log line, if there is more to log than the message.
    pub fn log(&self) -> Option<&str> {
        self.0.log.as_deref()
    }

    /// Converts the error to a response.
    pub fn response(&self, asked: &ErrorFormat) -> Response<Bytes> {
        let media_type = match asked.media_type {
            ErrorMediaType::Html if !self.is_missing_file() => ErrorMediaType::Json,
            media_type => media_type,
        };
        let json = || Bytes::from(self.body(asked).to_string());
        let (content_type, body) = match media_type {
            ErrorMediaType::Json => ("application/json", json()),
            ErrorMediaType::ProblemJson => (PROBLEM_JSON, json()),
            ErrorMediaType::Html => {
                ("text/html; charset=utf-8", Bytes::from_static(MISSING_FILE_PAGE.as_bytes()))
            }
        };
        let mut response = Response::new(body);
        *response.status_mut() = self.0.status;
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
        if media_type == ErrorMediaType::Html {
            let policy = HeaderValue::from_static(MISSING_FILE_POLICY);
            headers.insert(header::CONTENT_SECURITY_POLICY, policy);
        }
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
        allow_any_origin(headers);
        for (name, value) in &self.0.headers {
            headers.insert(name, value.clone());
        }
        response
    }

    /// Returns the JSON body.
    pub fn body(&self, asked: &ErrorFormat) -> Value {
        let mut body = Map::new();
        let mut put = |name: &str, value: Value| body.insert(name.to_owned(), value);
        put("success", json!(false));
        put("error", json!(self.0.message));
        put("message", json!(self.0.message));
        put("code", json!(self.0.code));
        put("status", json!(self.0.status.as_u16()));
        if let Some(request_id) = asked.request_id {
            put("requestId", json!(request_id.to_string()));
        }
        if asked.media_type == ErrorMediaType::ProblemJson {
            put("type", json!("about:blank"));
            put("title", json!(self.0.status.canonical_reason().unwrap_or("Error")));
            put("detail", json!(self.0.message));
            for (name, value) in &self.0.problem {
                put(name, value.clone());
            }
        }
        for (name, value) in &self.0.extra {
            put(name, value.clone());
        }
        Value::Object(body)
    }
}

/// Renders an error response again, in the form that the request asks for.
///
/// A handler returns an [`ApiError`] without knowing the request; its response carries the error as an extension.
/// Headers that were added to the response are preserved.
pub fn render_error(response: Response<Body>, asked: &ErrorFormat) -> Response<Body> {
    let Some(error) = response.extensions().get::<ApiError>().cloned() else { return response };
    let (mut parts, _) = response.into_parts();
    let (ours, body) = error.response(asked).into_parts();
    parts.headers.extend(ours.headers);
    parts.headers.remove(header::CONTENT_LENGTH);
    Response::from_parts(parts, Body::from(body))
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response<Body> {
        let mut response = self.response(&ErrorFormat::default()).map(Body::from);
        response.extensions_mut().insert(self);
        response
    }
}

impl fmt::Display for ApiError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}: {}", self.0.status.as_u16(), self.0.code, self.0.message)?;
        match &self.0.log {
            Some(line) => write!(f, " ({line})"),
            None => Ok(()),
        }
    }
}

impl fmt::Debug for ApiError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for ApiError {}

#[cfg(test)]
mod tests {
    use super::*;
    use engine::{BucketName, ObjectKey, ObjectName};

    const REQUEST_ID: RequestId = RequestId::new(0xa1);

    #[test]
    fn quota_exceeded_is_not_a_server_error() {
        assert!(!ApiError::quota_exceeded("bucket", "files", 1, 1).is_failure());
        assert!(ApiError::from(engine::Error::NoSpace).is_failure());
        assert!(!ApiError::not_found().is_failure());
    }

    #[test]
    fn error_body_has_success_false_and_error() {
        let asked = ErrorFormat { request_id: Some(REQUEST_ID), media_type: ErrorMediaType::Json };
        let response = ApiError::file_not_found().response(&asked);
        assert_eq!(response.status(), 404);
        let headers = response.headers();
        for (name, value) in [
            ("content-type", "application/json"),
            ("cache-control", "no-store"),
            ("access-control-allow-origin", "*"),
            ("x-content-type-options", "nosniff"),
        ] {
            assert_eq!(headers[name], value, "{name}");
        }
        let body: Value = serde_json::from_slice(response.body()).unwrap();
        assert_eq!(
            body,
            json!({"success": false, "error": "File not found", "message": "File not found",
                "code": "file_not_found", "status": 404, "requestId": "00000000000000a1"})
        );
    }

    #[test]
    fn problem_json_is_negotiated_by_accept() {
        let mut headers = HeaderMap::new();
        let accept = HeaderValue::from_static("text/html, Application/Problem+JSON;q=0.5");
        headers.insert(header::ACCEPT, accept);
        let asked = ErrorFormat::from_headers(&headers);
        let response = ApiError::overloaded(0).response(&asked);
        assert_eq!(response.headers()["content-type"], PROBLEM_JSON);
        assert_eq!(response.headers()["retry-after"], "1");
        let body: Value = serde_json::from_slice(response.body()).unwrap();
        assert_eq!(body["type"], "about:blank");
        assert_eq!(body["success"], false);
        assert!(body["error"].is_string() && body["retryAfter"] == 1);
    }

    #[test]
    fn error_responses_carry_their_headers() {
        let header_of = |error: ApiError, name: &str| {
            error.response(&ErrorFormat::default()).headers()[name].to_str().unwrap().to_owned()
        };
        assert_eq!(header_of(ApiError::missing_api_key(), "www-authenticate"), "Bearer");
        assert!(header_of(ApiError::invalid_api_key(), "www-authenticate").starts_with("Bearer"));
        assert_eq!(header_of(ApiError::method_not_allowed("GET, HEAD"), "allow"), "GET, HEAD");
        assert_eq!(header_of(ApiError::range_not_satisfiable(9), "content-range"), "bytes */9");
        assert_eq!(header_of(ApiError::overloaded(7), "retry-after"), "7");
    }

    #[test]
    fn internal_errors_do_not_leak_details() {
        let read_only = engine::Error::ReadOnly("fsync of /var/lib/x failed".into());
        for (failure, status, code) in [
            (engine::Error::NoSpace, 507, "no_space"),
            (read_only, 503, "read_only"),
            (engine::Error::Busy, 503, "overloaded"),
            (engine::Error::RemoteUnavailable("/var/lib/x".into()), 503, "remote_unavailable"),
            (engine::Error::Closed, 503, "shutting_down"),
            (engine::Error::TooLarge("batch"), 413, "too_large"),
            (engine::Error::NotAStore("/var/lib/x".into()), 500, "internal"),
            (engine::Error::InUse(Some(7)), 500, "internal"),
        ] {
            let shown = failure.to_string();
            let error = ApiError::from(failure);
            assert_eq!((error.status().as_u16(), error.code()), (status, code), "{shown}");
            assert_eq!(error.log(), Some(&*shown));
            assert!(
                !error.body(&ErrorFormat::default()).to_string().contains("/var/lib"),
                "{shown}"
            );
        }
        let busy = ApiError::from(engine::Error::Busy).response(&ErrorFormat::default());
        assert!(busy.headers().contains_key("retry-after"));
        let name =
            ObjectName::new(BucketName::parse("abc").unwrap(), ObjectKey::parse("a.png").unwrap());
        let conflict = engine::Error::Conflict(engine::Conflict::KeyPresent(name));
        assert_eq!(ApiError::from(conflict).status(), 409);
    }

    #[tokio::test]
    async fn error_includes_request_id_and_format() {
        let mut response = ApiError::no_file().into_response();
        response.headers_mut().insert("x-request-id", REQUEST_ID.to_header_value());
        let asked =
            ErrorFormat { request_id: Some(REQUEST_ID), media_type: ErrorMediaType::ProblemJson };
        let response = render_error(response, &asked);
        assert_eq!(response.headers()["x-request-id"], "00000000000000a1");
        assert_eq!(response.headers()["content-type"], PROBLEM_JSON);
        assert_eq!(response.headers().get_all("content-type").iter().count(), 1);
        let body = axum::body::to_bytes(response.into_body(), 10_000).await.unwrap();
        let body: Value = serde_json::from_slice(&body).unwrap();
        assert_eq!(body["requestId"], "00000000000000a1");

        let fine = render_error(Response::new(Body::from("fine")), &asked);
        assert_eq!(axum::body::to_bytes(fine.into_body(), 10).await.unwrap(), "fine");
    }
}
