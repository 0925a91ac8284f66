//! Validation of requests before the service sees them, and the responses to invalid ones.
//!
//! Non-goals: connections.

use std::cell::Cell;

use bytes::Bytes;
use http::header::{EXPECT, HOST, HeaderValue};
use http::uri::{Authority, Scheme};
use http::{Request, StatusCode, Uri, Version};
use http_body::Body;
use protocol::error::{ApiError, ErrorFormat};

use crate::limits;

/// Returns the raw response to a head that hyper cannot parse.
pub(crate) fn parse_error_response(status: u16) -> Bytes {
    let error = match status {
        414 => ApiError::new(StatusCode::URI_TOO_LONG, "uri_too_long", "Request target too long"),
        431 => head_too_large(),
        _ => ApiError::bad_request("Malformed request head"),
    };
    written(&error)
}

/// Returns the raw response to plain HTTP on a TLS port.
pub(crate) fn plain_http_response() -> Bytes {
    let message = "This port requires TLS: use https://";
    written(&ApiError::new(StatusCode::BAD_REQUEST, "tls_required", message))
}

/// Formats an error as an HTTP/1.1 response that closes the connection.
fn written(error: &ApiError) -> Bytes {
    let (head, body) = error.response(&ErrorFormat::default()).into_parts();
    let mut answer = format!("HTTP/1.1 {}\r\n", head.status).into_bytes();
    for (name, value) in &head.headers {
        answer.extend_from_slice(name.as_str().as_bytes());
        answer.extend_from_slice(b": ");
        answer.extend_from_slice(value.as_bytes());
        answer.extend_from_slice(b"\r\n");
    }
    let end = format!("content-length: {}\r\nconnection: close\r\n\r\n", body.len());
    answer.extend_from_slice(end.as_bytes());
    answer.extend_from_slice(&body);
    answer.into()
}

fn head_too_large() -> ApiError {
    ApiError::new(
        StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
        "head_too_large",
        "Request head too large",
    )
}

/// Rejects a request with too many header fields. Hyper's default limit is a hundred; a custom limit would make it
/// allocate memory for that many at each request.
pub(crate) fn check_header_count<B>(request: &Request<B>) -> Result<(), ApiError> {
    match request.headers().len() <= limits::HEADERS_MAX {
        true => Ok(()),
        false => Err(head_too_large()),
    }
}

/// Returns whether a request changes nothing, so that its response is dropped when the client disconnects. A request
/// that changes something runs to completion.
pub(crate) fn is_safe_without_body<B: Body>(request: &Request<B>) -> bool {
    request.method().is_safe() && request.body().is_end_stream()
}

/// Returns whether a response over HTTP/1 is dropped when the client disconnects. HTTP/1.0 has no interim responses
/// with which to detect a disconnect.
pub(crate) fn probes_disconnect<B: Body>(request: &Request<B>) -> bool {
    is_safe_without_body(request) && request.version() == Version::HTTP_11
}

/// Returns whether the client waits for `100 Continue` before it sends the body. RFC 9110 section 10.1.1.
pub(crate) fn expects_continue<B>(request: &Request<B>) -> bool {
    request.version() == Version::HTTP_11
        && request
            .headers()
            .get(EXPECT)
            .is_some_and(|it| it.as_bytes().eq_ignore_ascii_case(b"100-continue"))
}

/// Validates the host of an HTTP/2 request, and converts it to the form of HTTP/1.1: a `Host` header, and a target that
/// is a path.
pub(crate) fn normalize_authority<B>(request: &mut Request<B>) -> Result<(), ApiError> {
    let authority = request.uri().authority();
    if !request.headers().contains_key(HOST)
        && let Some(Ok(host)) = authority.map(|it| HeaderValue::try_from(it.as_str()))
    {
        request.headers_mut().insert(HOST, host);
    }
    check_host(request)?;
    if let Some(path) = request.uri().path_and_query().cloned() {
        *request.uri_mut() = Uri::from(path);
    }
    Ok(())
}

/// Checks the host like [`check_host`]. `last` is the last valid `Host` of the connection: most requests have the same,
/// which needs no parsing.
pub(crate) fn check_host_again<B>(
    request: &Request<B>,
    last: &Cell<Vec<u8>>,
) -> Result<(), ApiError> {
    let mut hosts = request.headers().get_all(HOST).iter();
    let (host, second) = (hosts.next().map_or(&b""[..], HeaderValue::as_bytes), hosts.next());
    let mut known = last.take();
    if host.is_empty() || host != known || second.is_some() || request.uri().authority().is_some() {
        check_host(request)?;
        host.clone_into(&mut known);
    }
    last.set(known);
    Ok(())
}

/// Rejects a request whose `Host` is missing, duplicate, malformed, or not that of its target.
pub(crate) fn check_host<B>(request: &Request<B>) -> Result<(), ApiError> {
    let mut hosts = request.headers().get_all(HOST).iter();
    let (host, second) = (hosts.next(), hosts.next());
    if second.is_some() {
        return Err(ApiError::bad_request("Multiple Host headers"));
    }
    let Some(host) = host else {
        if request.version() == Version::HTTP_10 {
            return Ok(());
        }
        return Err(ApiError::bad_request("Missing Host header"));
    };
    let authority = match host.as_bytes() {
        b"" => None,
        bytes => match Authority::try_from(bytes) {
            Ok(authority) if !authority.as_str().contains('@') => Some(authority),
            _ => return Err(ApiError::bad_request("Invalid Host header")),
        },
    };
    match (request.uri().authority(), authority) {
        (Some(asked), Some(named)) if is_same_host(asked, &named, usual_port(request)) => Ok(()),
        (Some(_), _) => Err(ApiError::bad_request("Request target and Host header differ")),
        (None, _) => Ok(()),
    }
}

/// Returns the default port of a URL without one.
fn usual_port<B>(request: &Request<B>) -> u16 {
    if request.uri().scheme() == Some(&Scheme::HTTPS) { 443 } else { 80 }
}

fn is_same_host(one: &Authority, other: &Authority, usual_port: u16) -> bool {
    let port = |authority: &Authority| authority.port_u16().unwrap_or(usual_port);
    one.host().eq_ignore_ascii_case(other.host()) && port(one) == port(other)
}
