//! Response body: that of the service, or a generated one if the service was not called.
//!
//! Non-goals: handling of its end.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};

/// Response body.
pub(crate) enum ResponseBody<B> {
    Service(B),
    Listener(Option<Bytes>),
}

impl<B: Body<Data = Bytes> + Unpin> Body for ResponseBody<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        match &mut *self {
            Self::Service(body) => Pin::new(body).poll_frame(cx),
            Self::Listener(body) => Poll::Ready(body.take().map(|data| Ok(Frame::data(data)))),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Service(body) => body.is_end_stream(),
            Self::Listener(body) => body.is_none(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Service(body) => body.size_hint(),
            Self::Listener(body) => {
                SizeHint::with_exact(body.as_ref().map_or(0, |data| data.len() as u64))
            }
        }
    }
}
