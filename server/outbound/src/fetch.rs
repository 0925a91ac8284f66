//! Downloads from user-supplied URLs.
//!
//! Guarantees: each redirect is validated like the first URL: its text is parsed by the same rules, its host looked up,
//! and only permitted addresses are connected to; the number of redirects is bounded; none leads from https to http.
//! Non-goals: processing of the file, its size limit, and retries.

use std::fmt;

use bytes::Bytes;
use http::header::{ACCEPT, ACCEPT_ENCODING, CONTENT_ENCODING, LOCATION};
use http::{HeaderMap, HeaderValue, Request, Response, StatusCode};
use http_body::Body;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use protocol::destination::{InvalidUrl, OutboundUrl, Scheme};
use tokio::time::timeout;

use crate::{
    KeepAlive, OutboundClient, RetryAfter, SendError, limits, retry_after, set_destination,
};

/// File being downloaded.
pub struct FetchedFile {
    pub headers: HeaderMap,
    pub body: Incoming,
    /// Connection of the body.
    line: KeepAlive,
}

/// Failed download.
#[derive(Debug)]
pub enum FetchError {
    Send(SendError),
    TimedOut,
    /// A status other than 200, with its `Retry-After`.
    Status(StatusCode, Option<RetryAfter>),
    /// A redirect to an invalid or forbidden URL.
    Redirect(InvalidUrl),
    Downgrade,
    TooManyRedirects,
    /// A content encoding, although none was requested.
    UnexpectedEncoding,
}

impl OutboundClient {
    /// Downloads a URL.
    pub async fn fetch(&self, first: &OutboundUrl) -> Result<FetchedFile, FetchError> {
        let mut at = first.clone();
        for _ in 0..=limits::REDIRECTS_MAX {
            let answered = self.answered(&at, HeaderMap::new()).await?;
            let (line, answer) = answered;
            let (head, body) = answer.into_parts();
            match head.status {
                StatusCode::OK => {
                    let encoding = head.headers.get(CONTENT_ENCODING);
                    return match encoding.is_none_or(|it| it == "identity") {
                        true => Ok(FetchedFile { headers: head.headers, body, line }),
                        false => Err(FetchError::UnexpectedEncoding),
                    };
                }
                StatusCode::MOVED_PERMANENTLY
                | StatusCode::FOUND
                | StatusCode::SEE_OTHER
                | StatusCode::TEMPORARY_REDIRECT
                | StatusCode::PERMANENT_REDIRECT
                    if head.headers.contains_key(LOCATION) =>
                {
                    at = redirected(&at, &head.headers)?;
                }
                other => {
                    return Err(FetchError::Status(other, retry_after(&head.headers)));
                }
            }
        }
        Err(FetchError::TooManyRedirects)
    }

    /// Sends one GET request with these headers in addition to the default ones. Redirects are not followed, so that
    /// the headers are sent to no other host. Returns any response, with its `Retry-After`.
    pub async fn fetch_once(
        &self,
        at: &OutboundUrl,
        headers: HeaderMap,
    ) -> Result<(StatusCode, Option<RetryAfter>, FetchedFile), FetchError> {
        let (line, answer) = self.answered(at, headers).await?;
        let (head, body) = answer.into_parts();
        let retry_after = retry_after(&head.headers);
        Ok((head.status, retry_after, FetchedFile { headers: head.headers, body, line }))
    }

    async fn answered(
        &self,
        at: &OutboundUrl,
        headers: HeaderMap,
    ) -> Result<(KeepAlive, Response<Incoming>), FetchError> {
        let answered = timeout(limits::RESPONSE_HEAD_TIMEOUT, self.get(at, headers)).await;
        answered.map_err(|_| FetchError::TimedOut)?.map_err(FetchError::Send)
    }

    async fn get(
        &self,
        at: &OutboundUrl,
        with: HeaderMap,
    ) -> Result<(KeepAlive, Response<Incoming>), SendError> {
        let mut line = self.open(at.origin()).await?;
        line.sender.ready().await.map_err(SendError::Http)?;
        let mut request = Request::new(Full::new(Bytes::new()));
        *request.headers_mut() = with;
        set_destination(&mut request, at);
        let headers = request.headers_mut();
        headers.insert(ACCEPT, HeaderValue::from_static("*/*"));
        headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        let answer = line.sender.send_request(request).await.map_err(SendError::Http)?;
        Ok((line, answer))
    }
}

impl FetchedFile {
    /// Returns the head, and the body with its connection.
    pub fn into_parts(
        self,
    ) -> (HeaderMap, impl Body<Data = Bytes, Error = hyper::Error> + Send + Unpin) {
        let Self { headers, body, line } = self;
        let body = body.map_frame(move |frame| {
            // Holds the connection open as long as the body.
            let _ = &line;
            frame
        });
        (headers, body)
    }
}

impl FetchError {
    /// Returns whether the error may be transient.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Send(SendError::Blocked | SendError::Tls(_)) => false,
            Self::Send(_) | Self::TimedOut => true,
            Self::Status(status, _) => {
                let waits = [StatusCode::REQUEST_TIMEOUT, StatusCode::TOO_MANY_REQUESTS];
                status.is_server_error() || waits.contains(status)
            }
            Self::Redirect(_)
            | Self::Downgrade
            | Self::TooManyRedirects
            | Self::UnexpectedEncoding => false,
        }
    }

    /// Returns the `Retry-After` of the response.
    pub fn retry_after(&self) -> Option<RetryAfter> {
        match self {
            Self::Status(_, retry_after) => *retry_after,
            _ => None,
        }
    }
}

/// Returns the target of a redirect. RFC 9110 section 10.2.2.
fn redirected(from: &OutboundUrl, headers: &HeaderMap) -> Result<OutboundUrl, FetchError> {
    let text = headers.get(LOCATION).and_then(|it| it.to_str().ok()).unwrap_or_default().trim();
    let text = text.split('#').next().unwrap_or_default();
    let scheme = from.origin().scheme().name();
    let (authority, path) = (from.authority(), from.path().path());
    let has_scheme = text.split(['/', '?']).next().is_some_and(|it| it.contains(':'));
    let whole = if has_scheme {
        text.to_owned()
    } else if text.starts_with("//") {
        format!("{scheme}:{text}")
    } else if text.starts_with('?') {
        format!("{scheme}://{authority}{path}{text}")
    } else if text.starts_with('/') {
        format!("{scheme}://{authority}{text}")
    } else {
        let above = |path: &'_ str| path.rfind('/').unwrap_or_default();
        let (mut folder, mut rest) = (&path[..above(path)], text);
        loop {
            if let Some(behind) = rest.strip_prefix("./") {
                rest = behind;
            } else if let Some(behind) = rest.strip_prefix("../") {
                (folder, rest) = (&folder[..above(folder)], behind);
            } else {
                break;
            }
        }
        format!("{scheme}://{authority}{folder}/{rest}")
    };
    let to = OutboundUrl::parse(&whole).map_err(FetchError::Redirect)?;
    match (from.origin().scheme(), to.origin().scheme()) {
        (Scheme::Https, Scheme::Http) => Err(FetchError::Downgrade),
        _ => Ok(to),
    }
}

impl fmt::Display for FetchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Send(SendError::Blocked) => {
                f.write_str("the host does not resolve to a public address")
            }
            Self::Send(error) => error.fmt(f),
            Self::TimedOut => {
                write!(f, "no response within {} s", limits::RESPONSE_HEAD_TIMEOUT.as_secs())
            }
            Self::Status(status, _) => write!(f, "the response status is {}", status.as_u16()),
            Self::Redirect(why) => write!(f, "it redirects to a URL that {why}"),
            Self::Downgrade => f.write_str("it redirects from https to http"),
            Self::TooManyRedirects => f.write_str("too many redirects"),
            Self::UnexpectedEncoding => f.write_str("the response has a content encoding"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn leads(from: &str, to: &str) -> Result<String, FetchError> {
        let headers = HeaderMap::from_iter([(LOCATION, to.parse().unwrap())]);
        redirected(&OutboundUrl::parse(from).unwrap(), &headers).map(|it| it.as_str().to_owned())
    }

    #[test]
    fn redirect_location_is_resolved_like_browsers() {
        for (from, to, expected) in [
            ("http://a/b/c?d", "/x?y", "http://a/x?y"),
            ("http://a:81/b/c?d", "x", "http://a:81/b/x"),
            ("http://a", "x", "http://a/x"),
            ("http://a/b/c/d", "./../x:y", "http://a/b/x:y"),
            ("http://a/b", "../../x", "http://a/x"),
            ("http://a/b?c", "?d", "http://a/b?d"),
            ("https://a/b", "//c:8443/x#y", "https://c:8443/x"),
            ("http://a/b", "HTTPS://c/x", "HTTPS://c/x"),
        ] {
            assert_eq!(leads(from, to).unwrap(), expected, "{from} {to}");
        }
        assert!(matches!(leads("https://a/", "http://a/x"), Err(FetchError::Downgrade)));
        for bad in ["ftp://a/", "http://u@a/", "http://", "http:x", "file:///x", "data:,x", "/a b"]
        {
            assert!(matches!(leads("http://a/b/", bad), Err(FetchError::Redirect(_))), "{bad}");
        }
    }
}
