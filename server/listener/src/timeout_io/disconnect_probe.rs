//! Detection of a client that disconnects while its response is produced.
//!
//! A client that disconnects ends its sending side, but so does one that only half-closes the connection and still
//! reads. Sending an interim response distinguishes them: `102 Processing`, which every HTTP/1.1 client ignores (RFC
//! 9110 section 15.2), is sent periodically. If the client is gone, the system rejects it, and the next write fails.
//! Guarantees: interim responses are sent only after the end of the client's sending side, and before the response
//! begins; one byte of further input is read, and given back. Non-goals: which responses depend on the client's
//! presence.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep};

use protocol::min_throughput::{poll_timer, set_timer};

const QUESTION: &[u8] = b"HTTP/1.1 102 Processing\r\n\r\n";

/// Presence of the client, for consecutive requests.
pub(super) struct DisconnectProbe {
    wait: Duration,
    /// Number of the request whose response has begun.
    answered: u64,
    /// First byte of the client's next request.
    read: Option<u8>,
    /// Whether the client has ended its sending side.
    has_ended: bool,
    /// Sent bytes of the current interim response.
    asked: usize,
    next: Option<Instant>,
    timer: Option<Pin<Box<Sleep>>>,
}

impl DisconnectProbe {
    pub(super) fn new(wait: Duration) -> Self {
        Self { wait, answered: 0, read: None, has_ended: false, asked: 0, next: None, timer: None }
    }

    /// Returns the byte that was read of the client's next request. Returns false if there is none.
    pub(super) fn take_buffered(&mut self, buf: &mut ReadBuf<'_>) -> bool {
        let read = self.read.take_if(|_| buf.remaining() > 0);
        buf.put_slice(read.as_slice());
        read.is_some()
    }

    /// Checks whether the client of a request is connected, and schedules the next check.
    ///
    /// # Errors
    ///
    /// The client has disconnected.
    pub(super) fn poll_disconnect<I: AsyncRead + AsyncWrite + Unpin>(
        &mut self,
        io: &mut I,
        request: u64,
        cx: &mut Context<'_>,
    ) -> io::Result<()> {
        if self.answered == request || self.read.is_some() {
            return Ok(());
        }
        if !self.has_ended {
            let mut byte = [0];
            let mut buf = ReadBuf::new(&mut byte);
            match Pin::new(&mut *io).poll_read(cx, &mut buf) {
                Poll::Pending => return Ok(()),
                Poll::Ready(done) => done?,
            }
            self.read = buf.filled().first().copied();
            self.has_ended = self.read.is_none();
        }
        while self.has_ended {
            if let Some(next) = self.next {
                set_timer(&mut self.timer, next);
                if poll_timer(&mut self.timer, cx).is_pending() {
                    return Ok(());
                }
                self.next = None;
            }
            match self.poll_send_probe(io, cx) {
                Poll::Pending => return Ok(()),
                Poll::Ready(done) => done?,
            }
            self.next = Some(Instant::now() + self.wait);
        }
        Ok(())
    }

    /// Completes a partly sent interim response before the response itself.
    pub(super) fn poll_end<I: AsyncWrite + Unpin>(
        &mut self,
        io: &mut I,
        request: u64,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
        if self.asked > 0 {
            ready!(self.poll_send_probe(io, cx))?;
        }
        self.answered = request;
        Poll::Ready(Ok(()))
    }

    fn poll_send_probe<I: AsyncWrite + Unpin>(
        &mut self,
        io: &mut I,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
        while let Some(rest) = QUESTION.get(self.asked..).filter(|rest| !rest.is_empty()) {
            match ready!(Pin::new(&mut *io).poll_write(cx, rest))? {
                0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                written => self.asked += written,
            }
        }
        self.asked = 0;
        Poll::Ready(Ok(()))
    }
}
