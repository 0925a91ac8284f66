//! Requests that the server makes itself, to addresses that somebody else chose: a POST with an event, or a GET of a
//! file (`fetch.rs`). Of a POST:
//!
//! 1. The host is looked up, and of its addresses those are kept that the rules allow; or all, where the operator
//!    allowed this very origin.
//! 2. The connection goes to one of these, without a name in between that could mean something else by then.
//! 3. One request, one answer. No redirect is followed, no proxy asked; of the answer's body a little is read.
//!
//! Promises: all of it within [`limits::WEBHOOK_ANSWER_WAIT`]; no byte leaves for an address that the rules forbid.
//! Never here: what is sent, and when it is sent again.

#[cfg(feature = "acme")]
mod ask;
mod connect;
mod fetch;

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
use rustls::ClientConfig;
use tokio::task::AbortHandle;
use tokio::time::timeout;

#[cfg(feature = "acme")]
pub use self::ask::AskError;
pub use self::fetch::{FetchError, Fetched};
use crate::destination::{Destination, Origin};
use crate::limits;

/// What is sent as `User-Agent`.
const AGENT: &str = concat!("trug/", env!("CARGO_PKG_VERSION"));
/// Largest head of an answer.
const ANSWER_HEAD_BYTES_MAX: usize = 32 * 1_024;

/// What sends.
#[derive(Clone)]
pub struct Outbound {
    allowed: Arc<ArcSwap<Vec<Origin>>>,
    tls: Arc<ClientConfig>,
}

/// A connection that may serve another request to the same origin.
pub struct Line {
    origin: Origin,
    /// It was made because the operator allows the origin.
    is_excepted: bool,
    sender: SendRequest<Full<Bytes>>,
    driver: AbortHandle,
}

/// What a destination answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    pub status: u16,
    /// How long it wants to be left alone.
    pub retry_after: Option<RetryAfter>,
    /// The beginning of its body, as text.
    pub text: String,
}

/// What `Retry-After` says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RetryAfter {
    Wait(Duration),
    /// Milliseconds since 1970.
    Until(u64),
}

/// Why there is no answer.
#[derive(Debug)]
pub enum SendError {
    /// The host name does not resolve, or only to addresses that nothing is sent to. One error for both, so that it
    /// does not reveal which internal names exist.
    Blocked,
    /// No connection was made.
    Connect(io::Error),
    /// It has no certificate that holds for its name, or speaks no TLS.
    Tls(io::Error),
    /// The connection broke, or it is no HTTP.
    Http(hyper::Error),
    TimedOut,
}

impl Outbound {
    /// Sends with these exceptions from the rules for addresses.
    pub fn new(allowed: &[Origin], tls: Arc<ClientConfig>) -> Self {
        Self { allowed: Arc::new(ArcSwap::from_pointee(allowed.to_vec())), tls }
    }

    /// From now on these are the exceptions.
    pub fn allow(&self, allowed: &[Origin]) {
        self.allowed.store(Arc::new(allowed.to_vec()));
    }

    /// Posts a body, over the line that is there if it leads to the same origin. `line` holds afterwards what can be
    /// used again. A line that has been closed meanwhile is replaced, so the request may be sent twice.
    pub async fn post(
        &self,
        line: &mut Option<Line>,
        destination: &Destination,
        headers: &HeaderMap,
        body: Bytes,
    ) -> Result<Answer, SendError> {
        let posted = timeout(limits::WEBHOOK_ANSWER_WAIT, async {
            if let Some(kept) = line.take().filter(|line| self.is_good(line, destination.origin()))
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

    async fn open(&self, origin: &Origin) -> Result<Line, SendError> {
        let is_excepted = self.is_allowed(origin);
        let stream = connect::connect(origin, is_excepted, &self.tls).await?;
        let mut builder = hyper::client::conn::http1::Builder::new();
        builder.max_buf_size(ANSWER_HEAD_BYTES_MAX);
        let (sender, connection) = builder.handshake(stream).await.map_err(SendError::Http)?;
        // What breaks is told to whoever waits for an answer.
        let driver = tokio::spawn(async move { drop(connection.await) }).abort_handle();
        Ok(Line { origin: origin.clone(), is_excepted, sender, driver })
    }

    fn is_allowed(&self, origin: &Origin) -> bool {
        self.allowed.load().contains(origin)
    }

    /// Whether a line leads to this origin, and still may.
    fn is_good(&self, line: &Line, origin: &Origin) -> bool {
        line.origin == *origin && (!line.is_excepted || self.is_allowed(origin))
    }
}

async fn exchange(
    mut line: Line,
    destination: &Destination,
    headers: &HeaderMap,
    body: Bytes,
) -> Result<(Answer, Option<Line>), SendError> {
    line.sender.ready().await.map_err(SendError::Http)?;
    let mut request = Request::new(Full::new(body.clone()));
    *request.method_mut() = Method::POST;
    *request.uri_mut() = destination.path().clone().into();
    *request.headers_mut() = headers.clone();
    let ours = request.headers_mut();
    // An authority of a parsed address is always a value that a header can carry.
    if let Ok(host) = HeaderValue::from_str(destination.authority()) {
        ours.insert(HOST, host);
    }
    ours.insert(USER_AGENT, HeaderValue::from_static(AGENT));
    ours.insert(CONTENT_LENGTH, HeaderValue::from(body.len()));
    let response = line.sender.send_request(request).await.map_err(SendError::Http)?;
    let (head, body) = response.into_parts();
    let retry_after = retry_after(&head.headers);
    let mut beginning = Vec::new();
    let read = timeout(limits::WEBHOOK_ANSWER_BODY_WAIT, read_beginning(body, &mut beginning));
    // A body that is slow or breaks off is no failure: the status came.
    let is_whole = read.await.unwrap_or(false);
    let text = String::from_utf8_lossy(&beginning).into_owned();
    let answer = Answer { status: head.status.as_u16(), retry_after, text };
    Ok((answer, Some(line).filter(|_| is_whole)))
}

/// Reads the beginning of a body; whether that was all of it.
async fn read_beginning(mut body: Incoming, bytes: &mut Vec<u8>) -> bool {
    loop {
        match body.frame().await {
            None => return true,
            Some(Err(_)) => return false,
            Some(Ok(frame)) => {
                let data = frame.data_ref().map_or(&[][..], |data| data);
                let room = limits::WEBHOOK_ANSWER_BYTES_MAX - bytes.len();
                bytes.extend(data.iter().take(room));
                if data.len() > room {
                    return false;
                }
            }
        }
    }
}

/// RFC 9110, 10.2.3: seconds, or a date.
fn retry_after(headers: &HeaderMap) -> Option<RetryAfter> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    if let Ok(seconds) = text.parse() {
        return Some(RetryAfter::Wait(Duration::from_secs(seconds)));
    }
    let time = httpdate::parse_http_date(text).ok()?;
    let since = time.duration_since(std::time::UNIX_EPOCH).ok()?;
    Some(RetryAfter::Until(u64::try_from(since.as_millis()).unwrap_or(u64::MAX)))
}

impl Drop for Line {
    fn drop(&mut self) {
        self.driver.abort();
    }
}

/// Says what happened without naming more than the destination's owner knows.
impl fmt::Display for SendError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Blocked => f.write_str("the host name does not resolve to a public address"),
            Self::Connect(error) => write!(f, "connection failed: {error}"),
            Self::Tls(error) => write!(f, "TLS handshake failed: {error}"),
            Self::Http(error) => write!(f, "HTTP error: {error}"),
            Self::TimedOut => {
                let seconds = limits::WEBHOOK_ANSWER_WAIT.as_secs();
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
        assert_eq!(read("120"), Some(RetryAfter::Wait(Duration::from_secs(120))));
        let date = RetryAfter::Until(784_111_777_000);
        assert_eq!(read("Sun, 06 Nov 1994 08:49:37 GMT"), Some(date));
        for bad in ["", "soon", "-1", "1.5", "99999999999999999999999"] {
            assert_eq!(read(bad), None, "{bad}");
        }
    }
}
