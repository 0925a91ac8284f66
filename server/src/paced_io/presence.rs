//! Whether the client is still there while its answer is made.
//!
//! A client that goes away ends what it sends, but so does one that only says that nothing more comes and goes on
//! listening. They are told apart by asking: an interim answer, `102 Processing`, which every client of HTTP/1.1 passes
//! over (RFC 9110, 15.2), goes out now and then. Where nobody listens any more the system refuses it, and the next
//! write fails.
//! Promises: nobody is asked who has not ended what he sends, nor once the answer has begun; of what comes meanwhile,
//! one byte is read, and given back.
//! Never here: which answers are made only for somebody who is there.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep};

use crate::pace::{poll_timer, set_timer};

const QUESTION: &[u8] = b"HTTP/1.1 102 Processing\r\n\r\n";

/// What is known of the client of one request after the other.
pub(super) struct Presence {
    wait: Duration,
    /// The request whose answer has begun.
    answered: u64,
    /// A byte of what the client sends next.
    read: Option<u8>,
    /// It sends nothing more.
    has_ended: bool,
    /// How much of the question is out.
    asked: usize,
    next: Option<Instant>,
    timer: Option<Pin<Box<Sleep>>>,
}

impl Presence {
    pub(super) fn new(wait: Duration) -> Self {
        Self { wait, answered: 0, read: None, has_ended: false, asked: 0, next: None, timer: None }
    }

    /// Gives back what was read of the client's next request. False: nothing was.
    pub(super) fn give_back(&mut self, buf: &mut ReadBuf<'_>) -> bool {
        let read = self.read.take_if(|_| buf.remaining() > 0);
        buf.put_slice(read.as_slice());
        read.is_some()
    }

    /// Looks whether the client of a request is there, and wakes the task when to look again.
    ///
    /// # Errors
    ///
    /// It is not.
    pub(super) fn look<I: AsyncRead + AsyncWrite + Unpin>(
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
            match self.poll_ask(io, cx) {
                Poll::Pending => return Ok(()),
                Poll::Ready(done) => done?,
            }
            self.next = Some(Instant::now() + self.wait);
        }
        Ok(())
    }

    /// The answer to a request begins, or goes on: what was begun of a question goes out before it.
    pub(super) fn poll_end<I: AsyncWrite + Unpin>(
        &mut self,
        io: &mut I,
        request: u64,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
        if self.asked > 0 {
            ready!(self.poll_ask(io, cx))?;
        }
        self.answered = request;
        Poll::Ready(Ok(()))
    }

    fn poll_ask<I: AsyncWrite + Unpin>(
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
