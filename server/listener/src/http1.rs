//! HTTP/1 on one connection.
//!
//! Guarantees: a response after which the connection is closed says so, and no byte of a following request is taken for
//! the body of the one before.

use std::cell::Cell;
use std::convert::Infallible;
use std::future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::{Either, TryFutureExt};
use http::header::{CONNECTION, HeaderValue};
use http::{Request, Response};
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{HttpService, Service, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use protocol::error::ErrorFormat;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::watch;

use crate::accept::{Ends, Shutdown};
use crate::incoming_body::IncomingBody;
use crate::limits;
use crate::peer::Peer;
use crate::request_checks::{
    check_header_count, check_host_again, expects_continue, parse_error_response, probes_disconnect,
};
use crate::response_body::ResponseBody;
use crate::timeout_io::{ExchangeState, TimeoutIo, Timeouts};

/// Drain time of a connection without a request so far, whose first request may be on its way.
const FRESH_WAIT: Duration = Duration::from_millis(500);

type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// Serves one HTTP/1 connection. While it is suspended there is no connection of hyper, which has 16 KiB of buffers,
/// and 64 KiB more after an upload.
pub(crate) async fn serve<I, S, B>(io: I, peer: Peer, service: S, waits: Timeouts, mut ends: Ends)
where
    I: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    S: Service<Request<IncomingBody>, Response = Response<B>, Error = Infallible> + Send + 'static,
    S::Future: Send,
    B: Body<Data = Bytes> + Unpin + Send + 'static,
    B::Error: Into<BoxError>,
{
    let exchange = Arc::new(ExchangeState::new(ends.idleness.clone()));
    let io = TokioIo::new(TimeoutIo::new(io, exchange.clone(), waits, parse_error_response));
    let service = exchange_service(service, peer, exchange.clone(), ends.stop.clone());
    let builder = builder();
    let mut connection = builder.serve_connection(io, service);
    let ended: Result<(), BoxError> = loop {
        let served = future::poll_fn(|cx| {
            let polled = Pin::new(&mut connection).poll(cx);
            if polled.is_pending() && exchange.is_suspended() {
                // Ends it without a byte, since it is idle, and `TimeoutIo` leaves the socket open.
                Pin::new(&mut connection).graceful_shutdown();
                return Pin::new(&mut connection).poll(cx);
            }
            polled
        });
        let ended = tokio::select! {
            ended = served => ended,
            () = ends.ended() => break drain(&mut connection, &exchange, &ends).await,
        };
        if ended.is_err() || !exchange.is_suspended() {
            break ended.map_err(BoxError::from);
        }
        let http1::Parts { mut io, read_buf, service, .. } = connection.into_parts();
        io.inner_mut().unread(read_buf);
        let waited = tokio::select! {
            waited = io.inner_mut().wait_for_input() => Some(waited),
            () = ends.ended() => None,
        };
        if let Some(Err(error)) = waited {
            break Err(error.into());
        }
        exchange.resume();
        connection = builder.serve_connection(io, service);
        if waited.is_none() {
            break drain(&mut connection, &exchange, &ends).await;
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, ?peer, "connection ended");
    }
}

/// Returns the service of a connection, which records its requests and responses.
fn exchange_service<S, B>(
    service: S,
    peer: Peer,
    shared: Arc<ExchangeState>,
    stop_seen: watch::Receiver<Shutdown>,
) -> impl Service<Request<Incoming>, Response = Response<Http1Body<B>>, Error = Infallible, Future: Send>
+ Send
where
    S: Service<Request<IncomingBody>, Response = Response<B>, Error = Infallible> + Send,
    S::Future: Send,
    B: Body<Data = Bytes> + Unpin + Send + 'static,
    B::Error: Into<BoxError>,
{
    let last_host = Cell::default();
    service_fn(move |request: Request<Incoming>| {
        let is_watched = probes_disconnect(&request);
        shared.start_request(is_watched, !request.body().is_end_stream());
        if !is_watched && expects_continue(&request) && request.body().is_end_stream() {
            // Hyper does not send 100 Continue for an empty body, but aws-cli (botocore before 1.44) waits for it.
            shared.send_continue();
        }
        let request = IncomingBody::of_exchange(request, peer, &shared);
        let checked =
            check_header_count(&request).and_then(|()| check_host_again(&request, &last_host));
        // Hyper moves this future twice. An async block would be twice as large as the service's future.
        let answer = match checked {
            Ok(()) => {
                let answer = service.call(request);
                Either::Left(answer.map_ok(|response| response.map(ResponseBody::Service)))
            }
            Err(refusal) => {
                let refusal = refusal.response(&ErrorFormat::from_headers(request.headers()));
                let refusal = refusal.map(|body| ResponseBody::Listener(Some(body)));
                Either::Right(future::ready(Ok(refusal)))
            }
        };
        let (exchange, stop_seen) = (shared.clone(), stop_seen.clone());
        answer.map_ok(move |mut response| {
            if exchange.is_body_unread() || *stop_seen.borrow() != Shutdown::Running {
                response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
            }
            response.map(|body| Http1Body { body, exchange })
        })
    })
}

fn builder() -> http1::Builder {
    let mut builder = http1::Builder::new();
    builder
        .timer(TokioTimer::new())
        // `TimeoutIo` enforces the head time-out, since it can tell a head from an idle connection.
        .header_read_timeout(None)
        .max_header_size(limits::HEAD_BYTES_MAX)
        .max_buf_size(limits::CONNECTION_READ_BYTES_MAX)
        // A client that sends nothing more may still read; `TimeoutIo` detects whether it does.
        .half_close(true);
    builder
}

/// Ends a connection that was evicted, or after its response if the server stops.
async fn drain<I, S, B>(
    connection: &mut http1::Connection<TokioIo<TimeoutIo<I>>, S>,
    exchange: &ExchangeState,
    ends: &Ends,
) -> Result<(), BoxError>
where
    I: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    S: HttpService<Incoming, ResBody = B, Error = Infallible>,
    B: Body + 'static,
    B::Error: Into<BoxError>,
{
    exchange.resume();
    let is_stopping = *ends.stop.borrow() != Shutdown::Running;
    if !is_stopping && !exchange.is_answering() {
        return Ok(());
    }
    let is_awaited = is_stopping && exchange.is_unused();
    let fresh = if is_awaited { FRESH_WAIT } else { Duration::ZERO };
    if let Ok(ended) = tokio::time::timeout(fresh, &mut *connection).await {
        return Ok(ended?);
    }
    Pin::new(&mut *connection).graceful_shutdown();
    Ok(connection.await?)
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
