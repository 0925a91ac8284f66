//! Response body whose chunks come from another task.
//!
//! Non-goals: its length, which is unknown.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::Frame;
use tokio::sync::mpsc::Receiver;

/// Streaming body. It ends when the sender is dropped, and fails with the error that the sender sends.
pub(super) struct StreamBody<E>(pub(super) Receiver<Result<Bytes, E>>);

impl<E> http_body::Body for StreamBody<E> {
    type Data = Bytes;
    type Error = E;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, E>>> {
        self.0.poll_recv(context).map(|piece| piece.map(|piece| piece.map(Frame::data)))
    }
}
