//! HTTP client for URLs that users or the operator supply: webhooks, imports, ACME, span export and remote stores.
//!
//! ```text
//! lib               POST with reuse of connections
//! fetch             download with redirects
//! single_request    one request with its whole response
//! pooled            client of the operator's own endpoints, with a connection pool
//! connect           connection to a validated address
//! trust_anchors     certification authorities
//! limits            time-outs and sizes
//! ```
//!
//! Steps of a POST:
//!
//! 1. The host is looked up, and its addresses are filtered by the rules, unless the operator allowed this very origin.
//! 2. The connection goes to one of these addresses, without another lookup that could return a different one.
//! 3. One request, one response. Redirects are not followed, proxies not used; only the start of the response body is
//!    read.
//!
//! Guarantees: all of it ends within [`limits::POST_TIMEOUT`]; nothing is sent to a forbidden address.
//! Non-goals: content of requests, and retries.

mod connect;
mod fetch;
pub mod limits;
pub mod pooled;
mod single_request;
pub mod trust_anchors;

use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use bytes::Bytes;
use http::header::{CONTENT_LENGTH, HOST, RETRY_AFTER, USER_AGENT};
use http::{HeaderMap, HeaderValue, Method, Request};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1::SendRequest;
use protocol::destination::{Origin, OutboundUrl};
use rustls::ClientConfig;
use tokio::task::AbortHandle;
use tokio::time::timeout;

pub use self::fetch::{FetchError, FetchedFile};
pub use self::single_request::RequestError;

/// Value of `User-Agent`.
const AGENT: &str = concat!("trug/", env!("CARGO_PKG_VERSION"));
/// Largest response head.
const ANSWER_HEAD_BYTES_MAX: usize = 32 * 1_024;

/// Outbound HTTP client.
#[derive(Clone)]
pub struct OutboundClient {
    allowed: Arc<ArcSwap<Vec<Origin>>>,
    tls: Arc<ClientConfig>,
}

/// Connection that may serve another request to the same origin.
pub struct KeepAlive {
    origin: Origin,
    /// Whether it was permitted because the operator allows the origin.
    is_excepted: bool,
    sender: SendRequest<Full<Bytes>>,
    driver: AbortHandle,
}

/// Response of a destination.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpReply {
    pub status: u16,
    /// `Retry-After`, if any.
    pub retry_after: Option<RetryAfter>,
    /// Start of its body, as text.
    pub text: String,
}

/// Value of `Retry-After`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RetryAfter {
    Delay(Duration),
    /// Milliseconds since 1970.
    Date(u64),
}

/// Failed request.
#[derive(Debug)]
pub enum SendError {
    /// The host name does not resolve, or only to forbidden addresses. One error for both, so that it does not reveal
    /// which internal names exist.
    Blocked,
    /// No connection could be established.
    Connect(io::Error),
    /// The certificate is not valid for the name, or the peer does not support TLS.
    Tls(io::Error),
    /// The connection broke, or the response is not HTTP.
    Http(hyper::Error),
    TimedOut,
}

impl OutboundClient {
    /// Creates a client with these exceptions from the address rules.
    pub fn new(allowed: &[Origin], tls: Arc<ClientConfig>) -> Self {
        Self { allowed: Arc::new(ArcSwap::from_pointee(allowed.to_vec())), tls }
    }

    /// Replaces the exceptions.
    pub fn set_allowed_origins(&self, allowed: &[Origin]) {
        self.allowed.store(Arc::new(allowed.to_vec()));
    }

    /// Posts a body, over the existing connection if it leads to the same origin. Afterwards `line` holds the reusable
    /// connection. A connection that was closed in the meantime is replaced, so the request may be sent twice.
    pub async fn post(
        &self,
        line: &mut Option<KeepAlive>,
        destination: &OutboundUrl,
        headers: &HeaderMap,
        body: Bytes,
    ) -> Result<HttpReply, SendError> {
        let posted = timeout(limits::POST_TIMEOUT, async {
            if let Some(kept) =
                line.take().filter(|line| self.is_reusable(line, destination.origin()))
            {
                match exchange(kept, destination, headers, body.clone()).await {
                    Err(SendError::Http(_)) => {}
                    exchanged => return exchanged,
                }
            }
            let fresh = self.open(destination.origin()).await?;
            exchange(fresh, destination, headers, body).await
        });
        let (answer, kept) = posted.await.map_err(|_| SendError::TimedOut)??;
        *line = kept;
        Ok(answer)
    }

    async fn open(&self, origin: &Origin) -> Result<KeepAlive, SendError> {
        let is_excepted = self.is_allowed(origin);
        let stream = connect::connect(origin, is_excepted, &self.tls).await?;
        let mut builder = hyper::client::conn::http1::Builder::new();
        builder.max_buf_size(ANSWER_HEAD_BYTES_MAX);
        let (sender, connection) = builder.handshake(stream).await.map_err(SendError::Http)?;
        // Connection errors are reported by the pending request.
        let driver = tokio::spawn(async move { drop(connection.await) }).abort_handle();
        Ok(KeepAlive { origin: origin.clone(), is_excepted, sender, driver })
    }

    fn is_allowed(&self, origin: &Origin) -> bool {
        self.allowed.load().contains(origin)
    }

    /// Returns whether a connection leads to this origin, and is still permitted.
    fn is_reusable(&self, line: &KeepAlive, origin: &Origin) -> bool {
        line.origin == *origin && (!line.is_excepted || self.is_allowed(origin))
    }
}

async fn exchange(
    mut line: KeepAlive,
    destination: &OutboundUrl,
    headers: &HeaderMap,
    body: Bytes,
) -> Result<(HttpReply, Option<KeepAlive>), SendError> {
    line.sender.ready().await.map_err(SendError::Http)?;
    let mut request = Request::new(Full::new(body.clone()));
    *request.method_mut() = Method::POST;
    *request.headers_mut() = headers.clone();
    request.headers_mut().insert(CONTENT_LENGTH, HeaderValue::from(body.len()));
    set_destination(&mut request, destination);
    let response = line.sender.send_request(request).await.map_err(SendError::Http)?;
    let (head, body) = response.into_parts();
    let retry_after = retry_after(&head.headers);
    let mut beginning = Vec::new();
    let read = timeout(limits::POST_RESPONSE_BODY_TIMEOUT, read_beginning(body, &mut beginning));
    // A slow or interrupted body is no failure: the status arrived.
    let is_whole = read.await.unwrap_or(false);
    let text = String::from_utf8_lossy(&beginning).into_owned();
    let answer = HttpReply { status: head.status.as_u16(), retry_after, text };
    Ok((answer, Some(line).filter(|_| is_whole)))
}

/// Sets path, `Host` and `User-Agent` of a request.
fn set_destination(request: &mut Request<Full<Bytes>>, destination: &OutboundUrl) {
    *request.uri_mut() = destination.path().clone().into();
    let headers = request.headers_mut();
    // The authority of a parsed URL is always a valid header value.
    if let Ok(host) = HeaderValue::from_str(destination.authority()) {
        headers.insert(HOST, host);
    }
    headers.insert(USER_AGENT, HeaderValue::from_static(AGENT));
}

/// Reads the start of a body; returns whether it is complete.
async fn read_beginning(mut body: Incoming, bytes: &mut Vec<u8>) -> bool {
    loop {
        match body.frame().await {
            None => return true,
            Some(Err(_)) => return false,
            Some(Ok(frame)) => {
                let data = frame.data_ref().map_or(&[][..], |data| data);
                let room = limits::POST_RESPONSE_BYTES_MAX - bytes.len();
                bytes.extend(data.iter().take(room));
                if data.len() > room {
                    return false;
                }
            }
        }
    }
}

/// Parses `Retry-After` (RFC 9110 section 10.2.3): seconds, or a date.
fn retry_after(headers: &HeaderMap) -> Option<RetryAfter> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    if let Ok(seconds) = text.parse() {
        return Some(RetryAfter::Delay(Duration::from_secs(seconds)));
    }
    let time = httpdate::parse_http_date(text).ok()?;
    let since = time.duration_since(std::time::UNIX_EPOCH).ok()?;
    Some(RetryAfter::Date(u64::try_from(since.as_millis()).unwrap_or(u64::MAX)))
}

impl Drop for KeepAlive {
    fn drop(&mut self) {
        self.driver.abort();
    }
}

/// Describes the error without revealing more than the destination's owner knows.
impl fmt::Display for SendError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Blocked => f.write_str("the host name does not resolve to a public address"),
            Self::Connect(error) => write!(f, "connection failed: {error}"),
            Self::Tls(error) => write!(f, "TLS handshake failed: {error}"),
            Self::Http(error) => write!(f, "HTTP error: {error}"),
            Self::TimedOut => {
                let seconds = limits::POST_TIMEOUT.as_secs();
                write!(f, "no response within {seconds} s")
            }
        }
    }
}

impl std::error::Error for SendError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retry_after_is_seconds_or_a_date() {
        let read =
            |text: &str| retry_after(&HeaderMap::from_iter([(RETRY_AFTER, text.parse().unwrap())]));
        assert_eq!(read("120"), Some(RetryAfter::Delay(Duration::from_secs(120))));
        let date = RetryAfter::Date(784_111_777_000);
        assert_eq!(read("Sun, 06 Nov 1994 08:49:37 GMT"), Some(date));
        for bad in ["", "soon", "-1", "1.5", "99999999999999999999999"] {
            assert_eq!(read(bad), None, "{bad}");
        }
    }
}
