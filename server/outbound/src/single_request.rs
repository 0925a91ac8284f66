//! Single request with its whole response.
//!
//! Guarantees: redirects are not followed. Non-goals: time-outs.

use std::fmt;

use bytes::Bytes;
use http::header::CONTENT_LENGTH;
use http::{HeaderValue, Request, Response};
use http_body_util::{BodyExt, Full, Limited};
use protocol::destination::OutboundUrl;

use crate::{OutboundClient, SendError, set_destination};

/// Failed request.
#[derive(Debug)]
pub enum RequestError {
    Send(SendError),
    /// The body was interrupted, or is too large.
    Body(Box<dyn std::error::Error + Send + Sync>),
}

impl OutboundClient {
    /// Sends a request to the destination `at`, regardless of the request's own URI.
    pub async fn request(
        &self,
        at: &OutboundUrl,
        request: Request<Bytes>,
        answer_bytes_max: usize,
    ) -> Result<Response<Bytes>, RequestError> {
        let mut line = self.open(at.origin()).await.map_err(RequestError::Send)?;
        let http = |error| RequestError::Send(SendError::Http(error));
        line.sender.ready().await.map_err(http)?;
        let bytes = request.body().len();
        let mut request = request.map(Full::new);
        request.headers_mut().insert(CONTENT_LENGTH, HeaderValue::from(bytes));
        set_destination(&mut request, at);
        let (head, body) = line.sender.send_request(request).await.map_err(http)?.into_parts();
        let body =
            Limited::new(body, answer_bytes_max).collect().await.map_err(RequestError::Body)?;
        Ok(Response::from_parts(head, body.to_bytes()))
    }
}

impl fmt::Display for RequestError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Send(SendError::Blocked) => {
                f.write_str("the host does not resolve to a public address")
            }
            Self::Send(error) => error.fmt(f),
            Self::Body(error) => write!(f, "malformed response: {error}"),
        }
    }
}

impl std::error::Error for RequestError {}
