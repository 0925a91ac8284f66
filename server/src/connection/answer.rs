//! Response body: that of the service, or a generated one if the service was not called.
//!
//! Non-goals: handling of its end.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};

/// Response body.
pub(super) enum AnswerBody<B> {
    Service(B),
    Own(Option<Bytes>),
}

impl<B: Body<Data = Bytes> + Unpin> Body for AnswerBody<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        match &mut *self {
            Self::Service(body) => Pin::new(body).poll_frame(cx),
            Self::Own(body) => Poll::Ready(body.take().map(|data| Ok(Frame::data(data)))),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Service(body) => body.is_end_stream(),
            Self::Own(body) => body.is_none(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Service(body) => body.size_hint(),
            Self::Own(body) => {
                SizeHint::with_exact(body.as_ref().map_or(0, |data| data.len() as u64))
            }
        }
    }
}
