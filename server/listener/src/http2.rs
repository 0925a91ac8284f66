//! HTTP/2 on one connection (RFC 9113), with limits on everything that many streams make possible.
//!
//! Guarantees: a connection without requests and without reads ends, as does one that answers no `PING`; a stream whose
//! client does not read its response is reset alone; many resets, or many frames without payload (`frames`), end the
//! connection; a request that changes something runs to completion. Memory of a connection is bounded by the windows
//! and buffers of `limits`. Non-goals: the service.

use std::convert::Infallible;
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use hyper::rt::Executor;
use hyper::server::conn::http2;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use protocol::error::ErrorFormat;
use protocol::min_throughput::MinThroughput;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::{Instant, sleep_until};
use usage::task::run_to_completion;

use crate::accept::{EVICTION_PAUSE, Ends, Shutdown};
use crate::http2_frames::FrameMeter;
use crate::incoming_body::IncomingBody;
use crate::limits;
use crate::peer::Peer;
use crate::request_checks::{check_header_count, is_safe_without_body, normalize_authority};
use crate::response_body::ResponseBody;
use crate::timeout_io::{Idleness, Timeouts};

/// Requests of a connection.
struct ConnectionActivity {
    /// Requests whose responses are incomplete.
    open: AtomicUsize,
    begun: AtomicU64,
    idleness: Arc<Idleness>,
}

/// Guard of a request whose response is incomplete.
struct OpenRequest(Arc<ConnectionActivity>);

impl OpenRequest {
    fn begin(activity: &Arc<ConnectionActivity>) -> Self {
        activity.begun.fetch_add(1, Ordering::Relaxed);
        activity.open.fetch_add(1, Ordering::Relaxed);
        activity.idleness.end();
        Self(activity.clone())
    }
}

impl Drop for OpenRequest {
    fn drop(&mut self) {
        if self.0.open.fetch_sub(1, Ordering::Relaxed) == 1 {
            self.0.idleness.begin(Instant::now());
        }
    }
}

/// Minimum of sent bytes that counts as activity: more than the answers to a few `PING`.
const TAKEN_BYTES_MIN: u64 = 4_000;

/// Serves one connection.
pub(crate) async fn serve<I, S, B>(io: I, peer: Peer, service: S, waits: Timeouts, mut ends: Ends)
where
    I: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    S: Service<Request<IncomingBody>, Response = Response<B>, Error = Infallible> + Send + 'static,
    S::Future: Send + 'static,
    B: Body<Data = Bytes> + Unpin + Send + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let (open, begun, idleness) = (AtomicUsize::new(0), AtomicU64::new(0), ends.idleness.clone());
    let activity = Arc::new(ConnectionActivity { open, begun, idleness });
    let written = Arc::new(AtomicU64::new(0));
    let io = TokioIo::new(FrameMeter::new(io, written.clone()));
    let shared = activity.clone();
    let answer = move |request: Request<Incoming>| {
        let mut request = IncomingBody::of_stream(request, peer);
        let open = OpenRequest::begin(&shared);
        let asks_only = is_safe_without_body(&request);
        let answer = match check_header_count(&request)
            .and_then(|()| normalize_authority(&mut request))
        {
            Ok(()) => Ok(service.call(request)),
            Err(refusal) => Err(refusal.response(&ErrorFormat::from_headers(request.headers()))),
        };
        async move {
            let response = match answer {
                // Resetting a request drops its response, in hyper as well.
                Ok(answer) if asks_only => answer.await?.map(ResponseBody::Service),
                Ok(answer) => run_to_completion(answer).await?.map(ResponseBody::Service),
                Err(refusal) => refusal.map(|body| ResponseBody::Listener(Some(body))),
            };
            Ok::<_, Infallible>(response.map(|body| StreamBody { body, rest: None, _open: open }))
        }
    };
    let mut builder = http2::Builder::new(StreamExecutor { wait: waits.answer });
    builder
        .timer(TokioTimer::new())
        .keep_alive_interval(waits.idle / 3)
        .keep_alive_timeout(waits.idle / 3)
        .max_header_list_size(limits::HTTP2_HEAD_BYTES_MAX)
        .header_table_size(limits::HTTP2_HEADER_TABLE_BYTES)
        .max_frame_size(limits::HTTP2_FRAME_BYTES_MAX)
        .max_concurrent_streams(limits::HTTP2_STREAMS_MAX)
        .max_pending_accept_reset_streams(limits::HTTP2_RESETS_PENDING_MAX)
        .max_local_error_reset_streams(limits::HTTP2_ERRORS_MAX)
        .initial_stream_window_size(limits::HTTP2_STREAM_WINDOW_BYTES)
        .initial_connection_window_size(limits::HTTP2_CONNECTION_WINDOW_BYTES)
        .max_send_buf_size(limits::HTTP2_SEND_BYTES_MAX);
    let mut connection = pin!(builder.serve_connection(io, service_fn(answer)));

    let done = || {
        let begun = activity.begun.load(Ordering::Relaxed);
        (begun, written.load(Ordering::Relaxed) / TAKEN_BYTES_MIN)
    };
    let (mut look_at, mut seen, mut is_ending) = (Instant::now() + waits.head, done(), false);
    loop {
        tokio::select! {
            ended = connection.as_mut() => {
                if let Err(error) = ended {
                    tracing::debug!(%error, ?peer, "connection ended");
                }
                return;
            }
            () = ends.ended(), if !is_ending => {
                is_ending = true;
                connection.as_mut().graceful_shutdown();
                if *ends.stop.borrow() == Shutdown::Running {
                    // The connection was evicted.
                    look_at = Instant::now() + EVICTION_PAUSE;
                }
            }
            () = sleep_until(look_at) => {
                let is_busy = activity.open.load(Ordering::Relaxed) > 0 || done() != seen;
                if is_busy {
                    (seen, look_at) = (done(), Instant::now() + waits.idle);
                } else if is_ending {
                    // The connection did not end after its graceful shutdown.
                    return;
                } else {
                    is_ending = true;
                    connection.as_mut().graceful_shutdown();
                    look_at = Instant::now() + waits.linger;
                }
            }
        }
    }
}

/// Executor of response streams, each of which is reset if the client does not read.
#[derive(Clone, Copy)]
struct StreamExecutor {
    wait: Duration,
}

impl<F: Future<Output = ()> + Send + 'static> Executor<F> for StreamExecutor {
    fn execute(&self, stream: F) {
        tokio::spawn(paced(stream, self.wait));
    }
}

/// Transfer state of a stream: whether hyper holds an unsent chunk, and the number of chunks that were sent.
#[derive(Default)]
struct PendingChunk {
    is_waiting: AtomicBool,
    taken: AtomicU64,
}

tokio::task_local! {
    static HANDING: Arc<PendingChunk>;
}

/// Runs a stream, and drops it if the client does not read, which resets the stream. Hyper requests the next chunk when
/// the client's window and the buffer before the socket have room for it.
async fn paced(stream: impl Future<Output = ()>, wait: Duration) {
    let handing = Arc::new(PendingChunk::default());
    let mut stream = pin!(HANDING.scope(handing.clone(), stream));
    let mut pace = MinThroughput::new(wait, 1);
    poll_fn(|cx| {
        if stream.as_mut().poll(cx).is_ready() {
            return Poll::Ready(());
        }
        let taken = handing.taken.swap(0, Ordering::Relaxed);
        let is_waiting = handing.is_waiting.load(Ordering::Relaxed);
        if taken > 0 || !is_waiting {
            pace.record_progress(taken);
        }
        if !is_waiting {
            return Poll::Pending;
        }
        ready!(pace.poll_too_slow(cx));
        tracing::debug!("HTTP/2 stream reset: response write timeout");
        Poll::Ready(())
    })
    .await;
}

/// Response body in chunks small enough to observe the progress of a slow client.
struct StreamBody<B> {
    body: ResponseBody<B>,
    rest: Option<Bytes>,
    _open: OpenRequest,
}

impl<B> StreamBody<B> {
    /// Takes the next chunk of the buffered data.
    fn piece(&mut self) -> Option<Bytes> {
        let mut piece = self.rest.take()?;
        if piece.len() > limits::HTTP2_FRAME_BYTES_MAX as usize {
            self.rest = Some(piece.split_off(limits::HTTP2_FRAME_BYTES_MAX as usize));
        }
        let _ = HANDING.try_with(|handing| handing.is_waiting.store(true, Ordering::Relaxed));
        Some(piece)
    }
}

impl<B: Body<Data = Bytes> + Unpin> Body for StreamBody<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        let _ = HANDING.try_with(|handing| {
            if handing.is_waiting.swap(false, Ordering::Relaxed) {
                handing.taken.fetch_add(1, Ordering::Relaxed);
            }
        });
        if self.rest.is_none() {
            let frame = match ready!(Pin::new(&mut self.body).poll_frame(cx)) {
                Some(Ok(frame)) => frame,
                other => return Poll::Ready(other),
            };
            match frame.into_data() {
                Ok(data) => self.rest = Some(data),
                Err(trailers) => return Poll::Ready(Some(Ok(trailers))),
            }
        }
        Poll::Ready(self.piece().map(|piece| Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_none() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let mut hint = self.body.size_hint();
        let rest = self.rest.as_ref().map_or(0, Bytes::len) as u64;
        let (lower, upper) = (hint.lower(), hint.upper());
        if let Some(upper) = upper {
            hint.set_upper(upper.saturating_add(rest));
        }
        hint.set_lower(lower.saturating_add(rest));
        hint
    }
}
