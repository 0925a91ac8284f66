//! A connection's bytes, with an end to waiting: for a request head, for the next request, for a reader who reads
//! nothing.
//!
//! Wraps the socket below hyper, because hyper's own time-out knows only the head. Promises: a read or write that waits
//! too long fails, which ends the connection; at an orderly end what the client still sends is read for a moment, so
//! that it gets to see the last answer instead of a reset; hyper's own answer to a head that it cannot read, which has
//! no body, is replaced by one of ours. Never here: what our answers say.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{Buf, Bytes};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep};

use crate::pace::{Pace, poll_timer, set_timer};

/// How long is waited for what.
#[derive(Clone, Copy, Debug)]
pub struct Waits {
    /// For a complete request head, from its first byte or from the opening of the connection.
    pub head: Duration,
    /// For the next request, after an answer.
    pub idle: Duration,
    /// For the client to take some kilobytes of an answer.
    pub answer: Duration,
    /// For the client to see the last answer.
    pub linger: Duration,
    /// Most bytes that are read while lingering.
    pub linger_bytes_max: u64,
}

/// What a connection is waiting for; shared by its socket and its service.
#[derive(Debug)]
pub(crate) struct Exchange {
    phase: AtomicU8,
    request_count: AtomicU64,
}

/// A request head is being read.
const HEAD: u8 = 0;
/// A request has been read, its answer is not yet complete.
const ANSWER: u8 = 1;
/// An answer is complete, nothing of the next request has come.
const IDLE: u8 = 2;

impl Exchange {
    pub(crate) fn new() -> Self {
        Self { phase: AtomicU8::new(HEAD), request_count: AtomicU64::new(0) }
    }

    /// A request head is complete.
    pub(crate) fn begin(&self) {
        self.phase.store(ANSWER, Ordering::Relaxed);
        self.request_count.fetch_add(1, Ordering::Relaxed);
    }

    /// An answer has been handed over completely.
    pub(crate) fn end(&self) {
        self.phase.store(IDLE, Ordering::Relaxed);
    }

    /// Whether no request has come yet.
    pub(crate) fn is_fresh(&self) -> bool {
        self.request_count() == 0
    }

    fn request_count(&self) -> u64 {
        self.request_count.load(Ordering::Relaxed)
    }

    fn phase(&self) -> u8 {
        self.phase.load(Ordering::Relaxed)
    }
}

/// A socket whose reads and writes do not wait for ever.
pub(crate) struct PacedIo<I> {
    io: I,
    exchange: Arc<Exchange>,
    waits: Waits,
    /// What a read is waiting for, and until when.
    deadline: Option<(u8, Instant)>,
    read_timer: Option<Pin<Box<Sleep>>>,
    answer_pace: Pace,
    /// After so many requests everything that was written had gone out, with the last answer complete.
    all_sent_after: Option<u64>,
    refuse: Refuse,
    /// What is sent instead of hyper's own answer, and has not gone out yet.
    refusal: Option<Bytes>,
    end: End,
}

/// Makes the answer that is sent instead of hyper's own of this status.
pub(crate) type Refuse = fn(u16) -> Bytes;

/// How far the end of the connection has come.
enum End {
    Open,
    Lingering { until: Instant, bytes: u64 },
    Done,
}

/// A window of [`Waits::answer`] must take this much of an answer.
const ANSWER_WINDOW_BYTES_MIN: u64 = 4_000;

impl<I> PacedIo<I> {
    pub(crate) fn new(io: I, exchange: Arc<Exchange>, waits: Waits, refuse: Refuse) -> Self {
        Self {
            io,
            exchange,
            waits,
            deadline: Some((HEAD, Instant::now() + waits.head)),
            read_timer: None,
            answer_pace: Pace::new(waits.answer, ANSWER_WINDOW_BYTES_MIN),
            all_sent_after: Some(0),
            refuse,
            refusal: None,
            end: End::Open,
        }
    }

    /// Whether what is written now comes from hyper and not from the service: since everything had gone out no request
    /// has come through, so it answers a head that hyper could not read.
    fn is_own_answer(&self) -> bool {
        self.all_sent_after == Some(self.exchange.request_count())
    }

    /// Brings the deadline of reads in line with what the connection is waiting for now.
    fn wait_for(&mut self, phase: u8) {
        let wait = match phase {
            HEAD => self.waits.head,
            IDLE => self.waits.idle,
            _ => {
                self.deadline = None;
                return;
            }
        };
        if self.deadline.is_none_or(|(waiting_for, _)| waiting_for != phase) {
            self.deadline = Some((phase, Instant::now() + wait));
        }
    }

    fn poll_read_deadline(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Some((_, deadline)) = self.deadline else { return Poll::Pending };
        set_timer(&mut self.read_timer, deadline);
        poll_timer(&mut self.read_timer, cx)
    }
}

impl<I: AsyncRead + Unpin> AsyncRead for PacedIo<I> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        let phase = this.exchange.phase();
        this.wait_for(phase);
        let filled = buf.filled().len();
        match Pin::new(&mut this.io).poll_read(cx, buf) {
            Poll::Ready(done) => {
                if phase == IDLE && buf.filled().len() > filled {
                    // The first bytes of the next request: from here on its head must come.
                    this.exchange.phase.store(HEAD, Ordering::Relaxed);
                    this.wait_for(HEAD);
                }
                Poll::Ready(done)
            }
            Poll::Pending => {
                ready!(this.poll_read_deadline(cx));
                Poll::Ready(Err(late("the client sent nothing")))
            }
        }
    }
}

impl<I: AsyncWrite + Unpin> PacedIo<I> {
    fn poll_paced(
        &mut self,
        cx: &mut Context<'_>,
        write: impl FnOnce(Pin<&mut I>, &mut Context<'_>) -> Poll<io::Result<usize>>,
    ) -> Poll<io::Result<usize>> {
        match write(Pin::new(&mut self.io), cx) {
            Poll::Ready(done) => {
                self.answer_pace.progress(*done.as_ref().unwrap_or(&0) as u64);
                Poll::Ready(done)
            }
            Poll::Pending => {
                ready!(self.answer_pace.poll_late(cx));
                Poll::Ready(Err(late("the client took nothing")))
            }
        }
    }
}

impl<I: AsyncWrite + Unpin> PacedIo<I> {
    /// Sends our answer instead of hyper's, which is `len` bytes long and starts with `head`.
    fn poll_refuse(
        &mut self,
        cx: &mut Context<'_>,
        head: &[u8],
        len: usize,
    ) -> Poll<io::Result<usize>> {
        let status = head.get("HTTP/1.1 ".len()..).and_then(|rest| rest.get(..3));
        let status = status.and_then(|digits| std::str::from_utf8(digits).ok()?.parse().ok());
        let refuse = self.refuse;
        let mut left = self.refusal.take().unwrap_or_else(|| refuse(status.unwrap_or(400)));
        while left.has_remaining() {
            match self.poll_paced(cx, |io, cx| io.poll_write(cx, &left)) {
                Poll::Ready(Ok(0)) => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                Poll::Ready(Ok(written)) => left.advance(written),
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                Poll::Pending => {
                    self.refusal = Some(left);
                    return Poll::Pending;
                }
            }
        }
        Poll::Ready(Ok(len))
    }
}

impl<I: AsyncRead + AsyncWrite + Unpin> AsyncWrite for PacedIo<I> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        if self.is_own_answer() {
            return self.poll_refuse(cx, buf, buf.len());
        }
        self.poll_paced(cx, |io, cx| io.poll_write(cx, buf))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        if self.is_own_answer() {
            let head = bufs.iter().find(|buf| !buf.is_empty()).map_or(&[][..], |buf| buf);
            return self.poll_refuse(cx, head, bufs.iter().map(|buf| buf.len()).sum());
        }
        self.poll_paced(cx, |io, cx| io.poll_write_vectored(cx, bufs))
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    /// Hyper flushes when it has handed over all that it had to write.
    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(Pin::new(&mut self.io).poll_flush(cx))?;
        let is_answering = self.exchange.phase() == ANSWER;
        self.all_sent_after = (!is_answering).then(|| self.exchange.request_count());
        Poll::Ready(Ok(()))
    }

    /// Says that nothing more comes, then reads over what the client still sends until it ends or the time is up.
    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = &mut *self;
        loop {
            match &mut this.end {
                End::Open => {
                    ready!(Pin::new(&mut this.io).poll_shutdown(cx))?;
                    let until = Instant::now() + this.waits.linger;
                    this.end = End::Lingering { until, bytes: 0 };
                }
                End::Lingering { until, bytes } => {
                    let mut scratch = [0; 16 * 1_024];
                    let mut buf = ReadBuf::new(&mut scratch);
                    match Pin::new(&mut this.io).poll_read(cx, &mut buf) {
                        Poll::Pending => {
                            set_timer(&mut this.read_timer, *until);
                            ready!(poll_timer(&mut this.read_timer, cx));
                            this.end = End::Done;
                        }
                        Poll::Ready(Ok(())) if !buf.filled().is_empty() => {
                            *bytes += buf.filled().len() as u64;
                            if *bytes > this.waits.linger_bytes_max || Instant::now() >= *until {
                                this.end = End::Done;
                            }
                        }
                        Poll::Ready(_) => this.end = End::Done,
                    }
                }
                End::Done => return Poll::Ready(Ok(())),
            }
        }
    }
}

fn late(what: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::TimedOut, what)
}
