//! Socket wrapper with time-outs: for a request head, for the next request, for a client that does not read.
//!
//! Wraps the socket below hyper, because hyper's own time-out covers only the head. Guarantees: a read or write that
//! waits too long fails, which ends the connection; at an orderly end remaining input is read for a moment, so that the
//! client sees the last response instead of a reset; hyper's own response to a head that it cannot parse, which has no
//! body, is replaced by an error body; a client that disconnects while its response is produced is noticed
//! (`presence`); a connection that is idle for long is suspended (`http1`), and no input is lost by it. Non-goals: the
//! content of responses.

mod disconnect_probe;
mod idleness;

use std::cell::Cell;
use std::future;
use std::io;
use std::mem::MaybeUninit;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{Buf, Bytes};
use protocol::min_throughput::{MinThroughput, poll_timer, set_timer};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep};

use self::disconnect_probe::DisconnectProbe;
pub(crate) use self::idleness::Idleness;

/// Time-outs of a connection.
#[derive(Clone, Copy, Debug)]
pub struct Timeouts {
    /// For a complete request head, from its first byte or from the opening of the connection; and for the TLS
    /// handshake before that.
    pub head: Duration,
    /// For the next request, after a response.
    pub idle: Duration,
    /// For the next request, until the connection is suspended.
    pub suspend: Duration,
    /// For the client to read some kilobytes of a response.
    pub answer: Duration,
    /// Interval of checking whether a client that has shut down its sending side is still connected.
    pub presence: Duration,
    /// For the client to read the last response.
    pub linger: Duration,
    /// Maximum bytes that are read while lingering.
    pub linger_bytes_max: u64,
}

/// State of a connection, shared by its socket and its service.
#[derive(Debug)]
pub(crate) struct ExchangeState {
    phase: AtomicU8,
    request_count: AtomicU64,
    is_watched: AtomicBool,
    /// Whether the request body was not read to its end.
    is_body_unread: AtomicBool,
    /// Whether `100 Continue` is to be sent before the response.
    sends_continue: AtomicBool,
    idleness: Arc<Idleness>,
}

/// A request head is being read.
const HEAD: u8 = 0;
/// A request has been read, and its response is incomplete.
const ANSWER: u8 = 1;
/// A response is complete, and nothing of the next request has arrived.
const IDLE: u8 = 2;
/// The same, for so long that the connection needs no buffers.
const SUSPENDED: u8 = 3;

impl ExchangeState {
    pub(crate) fn new(idleness: Arc<Idleness>) -> Self {
        Self {
            phase: AtomicU8::new(HEAD),
            request_count: AtomicU64::new(0),
            is_watched: AtomicBool::new(false),
            is_body_unread: AtomicBool::new(false),
            sends_continue: AtomicBool::new(false),
            idleness,
        }
    }

    /// Records a complete request head. `is_watched`: the response is dropped when its client disconnects.
    pub(crate) fn start_request(&self, is_watched: bool, has_body: bool) {
        self.idleness.end();
        self.phase.store(ANSWER, Ordering::Relaxed);
        self.is_watched.store(is_watched, Ordering::Relaxed);
        self.is_body_unread.store(has_body, Ordering::Relaxed);
        self.request_count.fetch_add(1, Ordering::Relaxed);
    }

    /// Records that the request body was read to its end.
    pub(crate) fn end_body(&self) {
        self.is_body_unread.store(false, Ordering::Relaxed);
    }

    /// Returns whether the request body was not read to its end: then no other request can follow it.
    pub(crate) fn is_body_unread(&self) -> bool {
        self.is_body_unread.load(Ordering::Relaxed)
    }

    /// Requests `100 Continue` before the response.
    pub(crate) fn send_continue(&self) {
        self.sends_continue.store(true, Ordering::Relaxed);
    }

    /// Returns whether the connection has been idle for so long that it needs no buffers.
    pub(crate) fn is_suspended(&self) -> bool {
        self.phase() == SUSPENDED
    }

    /// Ends the suspension of a connection.
    pub(crate) fn resume(&self) {
        if self.is_suspended() {
            self.phase.store(IDLE, Ordering::Relaxed);
        }
    }

    /// Returns the number of the request whose response is dropped when its client disconnects.
    fn watched(&self) -> Option<u64> {
        let is_watched = self.phase() == ANSWER && self.is_watched.load(Ordering::Relaxed);
        is_watched.then(|| self.request_count())
    }

    /// Records that a response has been handed over completely.
    pub(crate) fn finish_response(&self) {
        self.phase.store(IDLE, Ordering::Relaxed);
    }

    /// Returns whether no request has arrived yet.
    pub(crate) fn is_unused(&self) -> bool {
        self.request_count() == 0
    }

    /// Returns whether a request has been read whose response is not complete.
    pub(crate) fn is_answering(&self) -> bool {
        self.phase() == ANSWER
    }

    fn request_count(&self) -> u64 {
        self.request_count.load(Ordering::Relaxed)
    }

    fn phase(&self) -> u8 {
        self.phase.load(Ordering::Relaxed)
    }
}

/// Socket whose reads and writes have time-outs.
pub(crate) struct TimeoutIo<I> {
    io: I,
    exchange: Arc<ExchangeState>,
    waits: Timeouts,
    /// Phase and deadline of the current read.
    deadline: Option<(u8, Instant)>,
    read_timer: Option<Pin<Box<Sleep>>>,
    answer_pace: MinThroughput,
    presence: DisconnectProbe,
    /// Input that was read and given back.
    unread: Bytes,
    /// Number of requests after which all output was flushed, including the last response.
    all_sent_after: Option<u64>,
    refuse: ErrorResponder,
    /// Unsent rest of the response that replaces hyper's own.
    refusal: Option<Bytes>,
    /// Unsent rest of `100 Continue`.
    interim: &'static [u8],
    end: ClosePhase,
}

/// Constructor of the response that replaces hyper's own with this status.
pub(crate) type ErrorResponder = fn(u16) -> Bytes;

/// Progress of the connection's end.
enum ClosePhase {
    Open,
    Lingering { until: Instant, bytes: u64 },
    Done,
}

/// Maximum bytes of the read that ends a suspension: mostly all of the next head.
const RESUMING_READ_BYTES: usize = 1_024;
const CONTINUE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";
/// Slices of up to this many bytes together are copied into one: that costs less than a vectored write.
const FLAT_BYTES_MAX: usize = 8 * 1_024;

thread_local! {
    /// Buffer of such a copy. It stays in the processor's cache, which a new allocation for each response does not.
    static FLAT: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// Minimum of response bytes that a window of [`Timeouts::answer`] must transfer.
const ANSWER_WINDOW_BYTES_MIN: u64 = 4_000;

impl<I> TimeoutIo<I> {
    pub(crate) fn new(
        io: I,
        exchange: Arc<ExchangeState>,
        waits: Timeouts,
        refuse: ErrorResponder,
    ) -> Self {
        Self {
            io,
            exchange,
            waits,
            deadline: Some((HEAD, Instant::now() + waits.head)),
            read_timer: None,
            answer_pace: MinThroughput::new(waits.answer, ANSWER_WINDOW_BYTES_MIN),
            presence: DisconnectProbe::new(waits.presence),
            unread: Bytes::new(),
            all_sent_after: Some(0),
            refuse,
            refusal: None,
            interim: b"",
            end: ClosePhase::Open,
        }
    }

    /// Gives back input, which is read again before what follows it.
    pub(crate) fn unread(&mut self, bytes: Bytes) {
        debug_assert!(self.unread.is_empty(), "input is given back only once everything was read");
        self.unread = bytes;
    }

    /// Reads input that was given back. Returns false if there is none.
    fn take_unread(&mut self, buf: &mut ReadBuf<'_>) -> bool {
        if self.unread.is_empty() {
            return false;
        }
        let bytes = self.unread.len().min(buf.remaining());
        buf.put_slice(&self.unread.split_to(bytes));
        true
    }

    /// Returns whether the current output comes from hyper and not from the service: no request has arrived since
    /// everything was flushed, so it answers a head that hyper could not parse.
    fn is_hyper_response(&self) -> bool {
        self.all_sent_after == Some(self.exchange.request_count())
    }

    /// Updates the read deadline for the phase of the connection.
    fn wait_for(&mut self, phase: u8) {
        let wait = match phase {
            HEAD => self.waits.head,
            IDLE => self.waits.suspend.min(self.waits.idle),
            SUSPENDED => self.waits.idle.saturating_sub(self.waits.suspend),
            _ => {
                self.deadline = None;
                return;
            }
        };
        if self.deadline.is_none_or(|(waiting_for, _)| waiting_for != phase) {
            let now = Instant::now();
            self.deadline = Some((phase, now + wait));
            if phase == IDLE {
                self.exchange.idleness.begin(now);
            }
        }
    }

    /// Polls the read deadline. A timer that is due before the deadline is not moved until it fires: most deadlines are
    /// never reached, and the next one is mostly later.
    fn poll_read_deadline(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Some((_, deadline)) = self.deadline else { return Poll::Pending };
        if self.read_timer.as_ref().is_none_or(|timer| timer.deadline() > deadline) {
            set_timer(&mut self.read_timer, deadline);
        }
        ready!(poll_timer(&mut self.read_timer, cx));
        set_timer(&mut self.read_timer, deadline);
        poll_timer(&mut self.read_timer, cx)
    }
}

impl<I: AsyncRead + Unpin> AsyncRead for TimeoutIo<I> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        let phase = this.exchange.phase();
        this.wait_for(phase);
        let filled = buf.filled().len();
        let read = match this.take_unread(buf) || this.presence.take_buffered(buf) {
            true => Poll::Ready(Ok(())),
            false => Pin::new(&mut this.io).poll_read(cx, buf),
        };
        match read {
            Poll::Ready(done) => {
                if matches!(phase, IDLE | SUSPENDED) && buf.filled().len() > filled {
                    // First bytes of the next request: its head must now arrive. Its time-out starts at the next wait,
                    // since mostly all of it is already there.
                    this.exchange.phase.store(HEAD, Ordering::Relaxed);
                    this.exchange.idleness.end();
                    this.deadline = None;
                }
                Poll::Ready(done)
            }
            Poll::Pending => {
                ready!(this.poll_read_deadline(cx));
                if phase == IDLE {
                    this.exchange.phase.store(SUSPENDED, Ordering::Relaxed);
                    return Poll::Pending;
                }
                Poll::Ready(Err(late("read timeout")))
            }
        }
    }
}

impl<I: AsyncRead + Unpin> TimeoutIo<I> {
    /// Waits for input, or its end, while the connection is suspended. The input is given back.
    ///
    /// # Errors
    ///
    /// The connection broke, or was idle for too long.
    pub(crate) async fn wait_for_input(&mut self) -> io::Result<()> {
        if !self.unread.is_empty() {
            return Ok(());
        }
        future::poll_fn(|cx| {
            let mut start = [MaybeUninit::uninit(); RESUMING_READ_BYTES];
            let mut buf = ReadBuf::uninit(&mut start);
            ready!(Pin::new(&mut *self).poll_read(cx, &mut buf))?;
            self.unread = Bytes::copy_from_slice(buf.filled());
            Poll::Ready(Ok(()))
        })
        .await
    }
}

impl<I: AsyncWrite + Unpin> TimeoutIo<I> {
    fn poll_paced(
        &mut self,
        cx: &mut Context<'_>,
        write: impl FnOnce(Pin<&mut I>, &mut Context<'_>) -> Poll<io::Result<usize>>,
    ) -> Poll<io::Result<usize>> {
        match write(Pin::new(&mut self.io), cx) {
            Poll::Ready(done) => {
                self.answer_pace.record_progress(*done.as_ref().unwrap_or(&0) as u64);
                Poll::Ready(done)
            }
            Poll::Pending => {
                ready!(self.answer_pace.poll_too_slow(cx));
                Poll::Ready(Err(late("write timeout")))
            }
        }
    }
}

impl<I: AsyncWrite + Unpin> TimeoutIo<I> {
    /// Sends the replacement of hyper's response, which is `len` bytes long and starts with `head`.
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

impl<I: AsyncRead + AsyncWrite + Unpin> TimeoutIo<I> {
    /// Records that a response begins or continues: from now on writing shows whether the client is connected.
    fn poll_answer(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.presence.poll_end(&mut self.io, self.exchange.request_count(), cx))?;
        if self.exchange.sends_continue.load(Ordering::Relaxed) {
            self.exchange.sends_continue.store(false, Ordering::Relaxed);
            self.interim = CONTINUE;
        }
        while !self.interim.is_empty() {
            let interim = self.interim;
            match ready!(self.poll_paced(cx, |io, cx| io.poll_write(cx, interim)))? {
                0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                written => self.interim = interim.get(written..).unwrap_or(b""),
            }
        }
        Poll::Ready(Ok(()))
    }
}

impl<I: AsyncRead + AsyncWrite + Unpin> AsyncWrite for TimeoutIo<I> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        if self.is_hyper_response() {
            return self.poll_refuse(cx, buf, buf.len());
        }
        ready!(self.poll_answer(cx))?;
        self.poll_paced(cx, |io, cx| io.poll_write(cx, buf))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        if self.is_hyper_response() {
            let head = bufs.iter().find(|buf| !buf.is_empty()).map_or(&[][..], |buf| buf);
            return self.poll_refuse(cx, head, bufs.iter().map(|buf| buf.len()).sum());
        }
        ready!(self.poll_answer(cx))?;
        let bytes: usize = bufs.iter().map(|buf| buf.len()).sum();
        if bytes <= FLAT_BYTES_MAX && bufs.len() > 1 {
            let mut flat = FLAT.take();
            flat.clear();
            bufs.iter().for_each(|buf| flat.extend_from_slice(buf));
            let written = self.poll_paced(cx, |io, cx| io.poll_write(cx, &flat));
            FLAT.set(flat);
            return written;
        }
        self.poll_paced(cx, |io, cx| io.poll_write_vectored(cx, bufs))
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    /// Flushes the socket. Hyper flushes after handing over all output, even if there is none.
    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = &mut *self;
        if let Some(request) = this.exchange.watched() {
            this.presence.poll_disconnect(&mut this.io, request, cx)?;
        }
        ready!(Pin::new(&mut self.io).poll_flush(cx))?;
        let is_answering = self.exchange.is_answering();
        self.all_sent_after = (!is_answering).then(|| self.exchange.request_count());
        Poll::Ready(Ok(()))
    }

    /// Shuts down the sending side, then discards the client's input until it ends or the time is up. Does nothing if
    /// the connection is suspended.
    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.exchange.is_suspended() {
            return Poll::Ready(Ok(()));
        }
        let this = &mut *self;
        loop {
            match &mut this.end {
                ClosePhase::Open => {
                    ready!(Pin::new(&mut this.io).poll_shutdown(cx))?;
                    let until = Instant::now() + this.waits.linger;
                    this.end = ClosePhase::Lingering { until, bytes: 0 };
                }
                ClosePhase::Lingering { until, bytes } => {
                    let mut scratch = [0; 16 * 1_024];
                    let mut buf = ReadBuf::new(&mut scratch);
                    match Pin::new(&mut this.io).poll_read(cx, &mut buf) {
                        Poll::Pending => {
                            set_timer(&mut this.read_timer, *until);
                            ready!(poll_timer(&mut this.read_timer, cx));
                            this.end = ClosePhase::Done;
                        }
                        Poll::Ready(Ok(())) if !buf.filled().is_empty() => {
                            *bytes += buf.filled().len() as u64;
                            if *bytes > this.waits.linger_bytes_max || Instant::now() >= *until {
                                this.end = ClosePhase::Done;
                            }
                        }
                        Poll::Ready(_) => this.end = ClosePhase::Done,
                    }
                }
                ClosePhase::Done => return Poll::Ready(Ok(())),
            }
        }
    }
}

fn late(what: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::TimedOut, what)
}
