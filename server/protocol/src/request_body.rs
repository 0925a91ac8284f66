//! Request body with a size limit and a minimum transfer rate.
//!
//! Every handler reads bodies through [`RequestBody`]. Guarantees: no more than the limit is read, whatever
//! `Content-Length` says; a body that is too slow fails; nothing is buffered. The unread rest of a rejected body is
//! drained by the connection (see `connection.rs`), so a handler just returns its error. Non-goals: forms, JSON, files.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::HeaderMap;
use http::header::CONTENT_LENGTH;
use http_body::{Body, Frame, SizeHint};
use http_body_util::BodyExt;

use crate::error::ApiError;
use crate::limits;
use crate::min_throughput::MinThroughput;

/// Limits of a request body.
#[derive(Clone, Copy, Debug)]
pub struct BodyLimits {
    /// Maximum bytes of the body.
    pub bytes_max: u64,
    /// Window of waiting in which the body must bring `window_bytes_min`.
    pub window: Duration,
    /// Minimum bytes per `window`.
    pub window_bytes_min: u64,
}

impl BodyLimits {
    /// Creates limits with a maximum size and the default transfer rate.
    pub fn new(bytes_max: u64) -> Self {
        let (window, window_bytes_min) =
            (limits::BODY_THROUGHPUT_WINDOW, limits::BODY_WINDOW_BYTES_MIN);
        Self { bytes_max, window, window_bytes_min }
    }
}

/// Body that enforces its limits.
#[derive(Debug)]
pub struct RequestBody<B> {
    body: B,
    bytes_max: u64,
    taken: u64,
    pace: MinThroughput,
}

/// Reason for an incomplete body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BodyError {
    /// The body is larger than this.
    TooLarge(u64),
    /// The body was too slow.
    TooSlow,
    /// The connection broke, or the framing is invalid.
    Disconnected(String),
}

impl<B> RequestBody<B>
where
    B: Body<Data = Bytes> + Unpin,
    B::Error: fmt::Display,
{
    /// Wraps a body. Fails at once if `Content-Length` exceeds the limit.
    pub fn new(headers: &HeaderMap, body: B, limits: BodyLimits) -> Result<Self, ApiError> {
        if declared_bytes(headers).is_some_and(|bytes| bytes > limits.bytes_max) {
            return Err(ApiError::file_too_large(limits.bytes_max));
        }
        let pace = MinThroughput::new(limits.window, limits.window_bytes_min);
        Ok(Self { body, bytes_max: limits.bytes_max, taken: 0, pace })
    }

    /// Returns the next chunk; `None` at the end.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, ApiError> {
        loop {
            match self.frame().await {
                None => return Ok(None),
                Some(Err(failure)) => return Err(failure.into()),
                // Trailers carry no data and are ignored.
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(data) if !data.is_empty() => return Ok(Some(data)),
                    _ => {}
                },
            }
        }
    }

    /// Collects the whole body: for small limits.
    pub async fn collect(mut self) -> Result<Bytes, ApiError> {
        let Some(first) = self.chunk().await? else { return Ok(Bytes::new()) };
        let Some(second) = self.chunk().await? else { return Ok(first) };
        let mut whole = BytesMut::from(&*first);
        whole.extend_from_slice(&second);
        while let Some(more) = self.chunk().await? {
            whole.extend_from_slice(&more);
        }
        Ok(whole.freeze())
    }
}

/// Returns the length that a request declares for its body.
fn declared_bytes(headers: &HeaderMap) -> Option<u64> {
    headers.get(CONTENT_LENGTH)?.to_str().ok()?.trim().parse().ok()
}

impl<B> Body for RequestBody<B>
where
    B: Body<Data = Bytes> + Unpin,
    B::Error: fmt::Display,
{
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let this = &mut *self;
        match Pin::new(&mut this.body).poll_frame(cx) {
            Poll::Pending => {
                std::task::ready!(this.pace.poll_too_slow(cx));
                Poll::Ready(Some(Err(BodyError::TooSlow)))
            }
            Poll::Ready(None) => Poll::Ready(None),
            Poll::Ready(Some(Err(broken))) => {
                Poll::Ready(Some(Err(BodyError::Disconnected(broken.to_string()))))
            }
            Poll::Ready(Some(Ok(frame))) => {
                let bytes = frame.data_ref().map_or(0, |data| data.len() as u64);
                this.pace.record_progress(bytes);
                this.taken += bytes;
                if this.taken > this.bytes_max {
                    return Poll::Ready(Some(Err(BodyError::TooLarge(this.bytes_max))));
                }
                Poll::Ready(Some(Ok(frame)))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl From<BodyError> for ApiError {
    fn from(failure: BodyError) -> Self {
        match failure {
            BodyError::TooLarge(limit) => Self::file_too_large(limit),
            BodyError::TooSlow => Self::too_slow(),
            BodyError::Disconnected(log) => Self::new(
                http::StatusCode::BAD_REQUEST,
                "incomplete_body",
                "The request body is incomplete",
            )
            .with_log(log),
        }
    }
}

impl fmt::Display for BodyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLarge(limit) => write!(f, "the body is larger than {limit} bytes"),
            Self::TooSlow => write!(f, "the body arrived too slowly"),
            Self::Disconnected(why) => write!(f, "the body was interrupted: {why}"),
        }
    }
}

impl std::error::Error for BodyError {}

/// Scripted body for tests.
#[cfg(test)]
pub(crate) mod scripted {
    use super::*;
    use std::collections::VecDeque;

    /// Next action of a scripted body; after the last it ends.
    #[derive(Clone, Debug)]
    pub(crate) enum Step {
        Data(Bytes),
        Stall,
        Break,
    }

    #[derive(Clone, Debug, Default)]
    pub(crate) struct Scripted(pub(crate) VecDeque<Step>);

    impl Scripted {
        /// Splits the bytes into chunks of a size.
        pub(crate) fn pieces(bytes: &[u8], piece_bytes: usize) -> Self {
            Self(
                bytes
                    .chunks(piece_bytes)
                    .map(|it| Step::Data(Bytes::copy_from_slice(it)))
                    .collect(),
            )
        }

        pub(crate) fn then(mut self, step: Step) -> Self {
            self.0.push_back(step);
            self
        }
    }

    impl Body for Scripted {
        type Data = Bytes;
        type Error = &'static str;

        fn poll_frame(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, &'static str>>> {
            match self.0.front() {
                None => Poll::Ready(None),
                Some(Step::Stall) => Poll::Pending,
                Some(Step::Break) => Poll::Ready(Some(Err("gone"))),
                Some(Step::Data(data)) => {
                    let data = data.clone();
                    self.0.pop_front();
                    Poll::Ready(Some(Ok(Frame::data(data))))
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::scripted::{Scripted, Step};
    use super::*;
    use http::HeaderValue;
    use http_body_util::Full;

    fn limits(bytes_max: u64) -> BodyLimits {
        BodyLimits { bytes_max, window: Duration::from_millis(50), window_bytes_min: 4 }
    }

    #[tokio::test]
    async fn oversized_content_length_is_rejected_before_reading() {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_LENGTH, HeaderValue::from_static("11"));
        let refusal = RequestBody::new(&headers, Full::new(Bytes::new()), limits(10)).unwrap_err();
        assert_eq!((refusal.status().as_u16(), refusal.code()), (413, "file_too_large"));
        assert_eq!(refusal.body(&Default::default())["limit"], 10);
    }

    #[tokio::test]
    async fn body_limit_ignores_declared_length() {
        for (bytes, status) in [(10, None), (11, Some(413))] {
            let body = Full::new(Bytes::from(vec![b'x'; bytes]));
            let body = RequestBody::new(&HeaderMap::new(), body, limits(10)).unwrap();
            let taken = body.collect().await;
            assert_eq!(taken.err().map(|refusal| refusal.status().as_u16()), status);
        }
    }

    #[tokio::test]
    async fn stalled_body_times_out() {
        let body = Scripted::pieces(b"abcdef", 6).then(Step::Stall);
        let mut body = RequestBody::new(&HeaderMap::new(), body, limits(10)).unwrap();
        assert_eq!(body.chunk().await.unwrap().as_deref(), Some(&b"abcdef"[..]));
        assert_eq!(body.chunk().await.unwrap_err().status(), 408);
    }

    #[tokio::test]
    async fn broken_body_is_a_client_error() {
        let body = Scripted::pieces(b"abc", 1).then(Step::Break);
        let body = RequestBody::new(&HeaderMap::new(), body, limits(10)).unwrap();
        let refusal = body.collect().await.unwrap_err();
        assert_eq!((refusal.status().as_u16(), refusal.code()), (400, "incomplete_body"));
        assert_eq!(refusal.log(), Some("gone"));
    }
}
