//! HTTP/1 on one connection.
//!
//! Guarantees: a response after which the connection is closed says so, and no byte of a following request is taken for
//! the body of the one before.

use std::convert::Infallible;
use std::future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::header::{CONNECTION, HeaderValue};
use http::{Request, Response};
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{HttpService, Service, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use protocol::error::ErrorFormat;
use tokio::io::{AsyncRead, AsyncWrite};

use crate::accept::{Ends, Shutdown};
use crate::incoming_body::IncomingBody;
use crate::limits;
use crate::peer::Peer;
use crate::request_checks::{
    check_header_count, check_host, expects_continue, parse_error_response, probes_disconnect,
};
use crate::response_body::ResponseBody;
use crate::timeout_io::{ExchangeState, TimeoutIo, Timeouts};

/// Drain time of a connection without a request so far, whose first request may be on its way.
const FRESH_WAIT: Duration = Duration::from_millis(500);

/// Socket of a connection, as hyper takes it.
type Io<I> = TokioIo<TimeoutIo<I>>;

/// Serves one HTTP/1 connection.
pub(crate) async fn serve<I, S, B>(io: I, peer: Peer, service: S, waits: Timeouts, mut ends: Ends)
where
    I: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    S: Service<Request<IncomingBody>, Response = Response<B>, Error = Infallible> + Send + 'static,
    S::Future: Send,
    B: Body<Data = Bytes> + Unpin + Send + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let exchange = Arc::new(ExchangeState::new(ends.idleness.clone()));
    let io = TokioIo::new(TimeoutIo::new(io, exchange.clone(), waits, parse_error_response));
    let (shared, stop_seen) = (exchange.clone(), ends.stop.clone());
    let answer = move |request: Request<Incoming>| {
        let is_watched = probes_disconnect(&request);
        shared.start_request(is_watched, !request.body().is_end_stream());
        if !is_watched && expects_continue(&request) && request.body().is_end_stream() {
            // Hyper does not send 100 Continue for an empty body, but aws-cli (botocore before 1.44) waits for it.
            shared.send_continue();
        }
        let mut request = IncomingBody::of_exchange(request, &shared);
        request.extensions_mut().insert(peer);
        let answer = match check_header_count(&request).and_then(|()| check_host(&request)) {
            Ok(()) => Ok(service.call(request)),
            Err(refusal) => Err(refusal.response(&ErrorFormat::from_headers(request.headers()))),
        };
        let (exchange, stop_seen) = (shared.clone(), stop_seen.clone());
        async move {
            let mut response = match answer {
                Ok(answer) => answer.await?.map(ResponseBody::Service),
                Err(refusal) => refusal.map(|body| ResponseBody::Listener(Some(body))),
            };
            if exchange.is_body_unread() || *stop_seen.borrow() != Shutdown::Running {
                response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
            }
            Ok::<_, Infallible>(response.map(|body| Http1Body { body, exchange }))
        }
    };
    let mut builder = http1::Builder::new();
    builder
        .timer(TokioTimer::new())
        // `TimeoutIo` enforces the head time-out, since it can tell a head from an idle connection.
        .header_read_timeout(None)
        .max_header_size(limits::HEAD_BYTES_MAX)
        .max_buf_size(limits::CONNECTION_READ_BYTES_MAX)
        // A client that sends nothing more may still read; `TimeoutIo` detects whether it does.
        .half_close(true);
    let connection = builder.serve_connection(io, service_fn(answer));
    if let Err(error) = drive(&builder, connection, &exchange, &mut ends).await {
        tracing::debug!(%error, ?peer, "connection ended");
    }
}

/// Drives a connection to its end. Recreates its HTTP state, with new buffers, each time that it is idle after a large
/// request.
async fn drive<I, S, B>(
    builder: &http1::Builder,
    mut connection: http1::Connection<Io<I>, S>,
    exchange: &ExchangeState,
    ends: &mut Ends,
) -> hyper::Result<()>
where
    I: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    S: HttpService<Incoming, ResBody = B>,
    S::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    B: Body + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    loop {
        let served = future::poll_fn(|cx| {
            let polled = Pin::new(&mut connection).poll(cx);
            if polled.is_pending() && exchange.is_recreating() {
                // Ends it without a byte, since it is idle, and the socket stays open.
                Pin::new(&mut connection).graceful_shutdown();
                return Pin::new(&mut connection).poll(cx);
            }
            polled
        });
        tokio::select! {
            ended = served => ended?,
            () = ends.ended() => break,
        }
        if !exchange.end_recreation() {
            return Ok(());
        }
        let mut parts = connection.into_parts();
        parts.io.inner_mut().unread(parts.read_buf);
        connection = builder.serve_connection(parts.io, parts.service);
    }
    exchange.end_recreation();
    let is_stopping = *ends.stop.borrow() != Shutdown::Running;
    if !is_stopping && !exchange.is_answering() {
        // The connection was evicted.
        return Ok(());
    }
    let is_awaited = is_stopping && exchange.is_unused();
    let fresh = if is_awaited { FRESH_WAIT } else { Duration::ZERO };
    match tokio::time::timeout(fresh, &mut connection).await {
        Ok(ended) => ended,
        Err(_) => {
            Pin::new(&mut connection).graceful_shutdown();
            connection.await
        }
    }
}

/// Response body of HTTP/1; its end is the end of the exchange.
struct Http1Body<B> {
    body: ResponseBody<B>,
    exchange: Arc<ExchangeState>,
}

impl<B> Drop for Http1Body<B> {
    fn drop(&mut self) {
        self.exchange.finish_response();
    }
}

impl<B: Body<Data = Bytes> + Unpin> Body for Http1Body<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
