//! Request body whose second half is withheld until it is released.

use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::Body;
use bytes::Bytes;
use http_body::Frame;
use tokio::sync::mpsc;

/// Handle of the second half. When it is dropped, the body breaks off.
pub struct Held {
    sender: mpsc::Sender<Bytes>,
    rest: Bytes,
}

struct HeldBody(mpsc::Receiver<Bytes>, u64);

/// Creates a body, and the handle of its withheld half.
pub fn held_body(bytes: Vec<u8>) -> (Held, Body) {
    let mut first = Bytes::from(bytes);
    let length = first.len() as u64;
    let rest = first.split_off(first.len() / 2);
    let (sender, receiver) = mpsc::channel(2);
    sender.try_send(first).expect("there is room");
    (Held { sender, rest }, Body::new(HeldBody(receiver, length)))
}

impl Held {
    /// Waits until the first half was read.
    pub async fn first_is_taken(&self) {
        while self.sender.capacity() < self.sender.max_capacity() {
            tokio::task::yield_now().await;
        }
    }

    /// Releases the rest.
    pub async fn finish(self) {
        // A dropped receiver is no failure here.
        let _ = self.sender.send(self.rest).await;
    }
}

impl http_body::Body for HeldBody {
    type Data = Bytes;
    type Error = &'static str;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, &'static str>>> {
        let received = std::task::ready!(self.0.poll_recv(context));
        Poll::Ready(match received {
            Some(bytes) => {
                self.1 -= bytes.len() as u64;
                Some(Ok(Frame::data(bytes)))
            }
            None if self.1 > 0 => {
                self.1 = 0;
                Some(Err("it broke off"))
            }
            None => None,
        })
    }
}
