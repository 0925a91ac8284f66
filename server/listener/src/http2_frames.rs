//! Frame accounting of an HTTP/2 connection: incoming frames, and outgoing bytes.
//!
//! `h2` processes every frame, be it a request or a `PING`; a client that sends only such frames keeps a processor busy
//! for nothing. Frames without payload are therefore rate-limited by a token bucket, which outgoing bytes refill
//! further. Guarantees: bytes are forwarded unchanged; a client over the limit is disconnected. Non-goals: meaning of
//! the frames.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Instant;

use crate::limits;

/// Connection whose frames are counted.
pub(crate) struct FrameMeter<I> {
    io: I,
    frames: Frames,
    empty_frame_budget: EmptyFrameBudget,
    written: Arc<AtomicU64>,
}

/// Parser position in the incoming bytes (RFC 9113 sections 3.4 and 4.1).
struct Frames {
    /// Bytes to skip: first the preface, then frame payloads.
    skip_bytes: usize,
    head: [u8; HEAD_BYTES],
    head_bytes: usize,
}

/// Token bucket of frames without payload.
struct EmptyFrameBudget {
    remaining: u64,
    counted_at: Instant,
    written: u64,
}

const PREFACE_BYTES: usize = 24;
const HEAD_BYTES: usize = 9;
/// Frame type.
const DATA: u8 = 0;
const HEADERS: u8 = 1;
/// Flag of the last frame of a stream.
const END_STREAM: u8 = 1;

impl<I> FrameMeter<I> {
    /// Wraps a connection. Counts outgoing bytes in `written`.
    pub(crate) fn new(io: I, written: Arc<AtomicU64>) -> Self {
        let frames = Frames { skip_bytes: PREFACE_BYTES, head: [0; HEAD_BYTES], head_bytes: 0 };
        let left = limits::HTTP2_EMPTY_FRAMES_BURST;
        let allowance =
            EmptyFrameBudget { remaining: left, counted_at: Instant::now(), written: 0 };
        Self { io, frames, empty_frame_budget: allowance, written }
    }

    fn count_written(&self, written: &Poll<io::Result<usize>>) {
        if let Poll::Ready(Ok(bytes)) = written {
            self.written.fetch_add(*bytes as u64, Ordering::Relaxed);
        }
    }
}

impl Frames {
    /// Advances the parser; returns the number of frames without payload.
    fn empty_in(&mut self, mut bytes: &[u8]) -> u64 {
        let mut count = 0;
        while !bytes.is_empty() {
            if self.skip_bytes > 0 {
                let (_, rest) = bytes.split_at(self.skip_bytes.min(bytes.len()));
                self.skip_bytes -= bytes.len() - rest.len();
                bytes = rest;
                continue;
            }
            let (came, rest) = bytes.split_at((HEAD_BYTES - self.head_bytes).min(bytes.len()));
            let places = self.head.iter_mut().skip(self.head_bytes);
            places.zip(came).for_each(|(place, byte)| *place = *byte);
            self.head_bytes += came.len();
            bytes = rest;
            if self.head_bytes == HEAD_BYTES {
                self.head_bytes = 0;
                let [high, middle, low, kind, flags, ..] = self.head;
                let length = [high, middle, low].into_iter();
                self.skip_bytes = length.fold(0, |sum, byte| sum << 8 | usize::from(byte));
                let carries = match kind {
                    DATA => self.skip_bytes > 0 || flags & END_STREAM != 0,
                    kind => kind == HEADERS,
                };
                count += u64::from(!carries);
            }
        }
        count
    }
}

impl EmptyFrameBudget {
    /// Takes tokens. Returns false if there are not enough.
    fn take(&mut self, count: u64, written: u64) -> bool {
        let now = Instant::now();
        let passed_ms = now.duration_since(self.counted_at).as_millis() as u64;
        // A fraction of a token carries over to the next call.
        let by_time = passed_ms.saturating_mul(limits::HTTP2_EMPTY_FRAMES_PER_SECOND) / 1_000;
        if by_time > 0 {
            self.counted_at = now;
        }
        let by_bytes = (written - self.written) / limits::HTTP2_BYTES_PER_EMPTY_FRAME;
        self.written += by_bytes * limits::HTTP2_BYTES_PER_EMPTY_FRAME;
        let more = self.remaining.saturating_add(by_time).saturating_add(by_bytes);
        self.remaining = more.min(limits::HTTP2_EMPTY_FRAMES_BURST);
        match self.remaining.checked_sub(count) {
            Some(left) => {
                self.remaining = left;
                true
            }
            None => false,
        }
    }
}

impl<I: AsyncRead + Unpin> AsyncRead for FrameMeter<I> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        let before = buf.filled().len();
        ready!(Pin::new(&mut this.io).poll_read(cx, buf))?;
        let came = buf.filled().get(before..).unwrap_or_default();
        let count = this.frames.empty_in(came);
        if count > 0 && !this.empty_frame_budget.take(count, this.written.load(Ordering::Relaxed)) {
            let why = "HTTP/2 frame flood";
            return Poll::Ready(Err(io::Error::new(io::ErrorKind::ConnectionAborted, why)));
        }
        Poll::Ready(Ok(()))
    }
}

impl<I: AsyncWrite + Unpin> AsyncWrite for FrameMeter<I> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.io).poll_write(cx, buf);
        self.count_written(&written);
        written
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.io).poll_write_vectored(cx, bufs);
        self.count_written(&written);
        written
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(kind: u8, flags: u8, payload: usize) -> Vec<u8> {
        let length = [payload >> 16, payload >> 8, payload].map(|part| part as u8);
        let head = [length[0], length[1], length[2], kind, flags, 0, 0, 0, 1];
        [head.as_slice(), &vec![b'x'; payload]].concat()
    }

    #[tokio::test]
    async fn empty_frames_are_counted_across_split_reads() {
        let carrying = [frame(DATA, 0, 70_000), frame(DATA, END_STREAM, 0), frame(HEADERS, 4, 30)];
        let empty = [frame(DATA, 0, 0), frame(6, 0, 8), frame(4, 0, 18), frame(9, 4, 100)];
        let all = [vec![b'P'; PREFACE_BYTES], carrying.concat(), empty.concat()].concat();
        for piece in [1, 3, 9, 24, 1_000, all.len()] {
            let written = Arc::new(AtomicU64::new(0));
            let mut frames = FrameMeter::new(tokio::io::empty(), written).frames;
            let counted: u64 = all.chunks(piece).map(|bytes| frames.empty_in(bytes)).sum();
            assert_eq!(counted, 4, "in pieces of {piece}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn empty_frame_budget_refills_by_time_and_bytes() {
        let written = Arc::new(AtomicU64::new(0));
        let mut allowance = FrameMeter::new(tokio::io::empty(), written).empty_frame_budget;
        let (burst, rate) =
            (limits::HTTP2_EMPTY_FRAMES_BURST, limits::HTTP2_EMPTY_FRAMES_PER_SECOND);
        assert!(allowance.take(burst, 0));
        assert!(!allowance.take(1, 0));
        tokio::time::advance(std::time::Duration::from_secs(1)).await;
        assert!(allowance.take(rate, 0));
        assert!(!allowance.take(1, 0));
        let bytes = 10 * limits::HTTP2_BYTES_PER_EMPTY_FRAME + 1;
        assert!(allowance.take(10, bytes));
        assert!(!allowance.take(1, bytes));
        tokio::time::advance(std::time::Duration::from_secs(3_600)).await;
        assert!(!allowance.take(burst + 1, bytes), "no more is saved up than the first");
        assert!(allowance.take(burst, bytes));
    }
}
