//! Accept loop: from a listening socket to requests, with a bound on every resource that a client can hold.
//!
//! ```text
//! connection  accept loop, and HTTP/1 on one connection
//! secure      TLS accept; ALPN selects HTTP/1.1 or HTTP/2
//! http2       HTTP/2 on one connection, its frames counted by `frames`
//! checks      validation of requests
//! incoming    request body, which records whether it was read to its end
//! places      per-address connection limit
//! seats       idle connections
//! ```
//!
//! `axum::serve` waits without a limit for the head of a request; this loop does not. Guarantees: silent, half-sent and
//! trickling connections end within their time-outs; there are never more connections than allowed, in all and from one
//! address or network; when all are taken, the one that is idle longest is closed for a new one; a request with no
//! `Host`, with two, or with one that contradicts its target never reaches the service; input that is not HTTP is
//! answered in JSON as well; an HTTP/1 response after which the connection is closed says so, and no byte of a
//! following request is taken for the body of the one before; every request carries its [`Peer`] as an extension; the
//! response to a GET or HEAD is dropped when its client disconnects, but not when the client only shuts down its
//! sending side; shutdown drains requests in flight within a time limit. Non-goals: the service.

mod answer;
mod checks;
mod frames;
mod http2;
mod incoming;
mod places;
mod seats;
mod secure;

use std::convert::Infallible;
use std::fmt;
use std::future::Future;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::header::{CONNECTION, HeaderValue};
use http::{Request, Response};
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use protocol::error::ErrorFormat;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, UnixListener};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::JoinSet;

use self::answer::ResponseBody;
use self::checks::{
    check_header_count, check_host, expects_continue, parse_error_response, probes_disconnect,
};
pub use self::incoming::IncomingBody;
use self::places::ConnectionsPerIp;
use self::seats::Seats;
use self::secure::{NegotiatedTls, accept_tls};
use crate::limits;
use crate::measures::ConnectionCounts;
use crate::paced_io::{ExchangeState, Idleness, TimeoutIo, Timeouts};
use crate::tls::TlsConfigCell;

/// Limits of an accept loop.
#[derive(Clone)]
pub struct ConnectionOptions {
    /// Time-outs.
    pub waits: Timeouts,
    /// Maximum number of connections.
    pub connections_max: usize,
    /// Maximum number of connections from one address, or one IPv6 /64.
    pub per_address_max: usize,
    /// Addresses exempt from the per-address limit.
    pub exempt: Arc<dyn Fn(IpAddr) -> bool + Send + Sync>,
    /// Time that requests in flight get during graceful shutdown.
    pub drain: DrainTimeout,
    /// TLS certificate and key. `None`: plain HTTP.
    pub tls: Option<Arc<TlsConfigCell>>,
    /// Counters of connections.
    pub counts: Arc<ConnectionCounts>,
}

impl ConnectionOptions {
    /// Returns the defaults of `limits.rs`; loopback may open any number of connections.
    pub fn new() -> Self {
        Self {
            waits: Timeouts {
                head: limits::HEADER_READ_TIMEOUT,
                idle: limits::KEEP_ALIVE_TIMEOUT,
                answer: limits::RESPONSE_WRITE_TIMEOUT,
                presence: limits::DISCONNECT_PROBE_INTERVAL,
                linger: limits::LINGERING_CLOSE_TIMEOUT,
                linger_bytes_max: limits::LINGERING_CLOSE_BYTES_MAX,
            },
            connections_max: limits::CONNECTIONS_MAX,
            per_address_max: limits::CONNECTIONS_PER_ADDRESS_MAX,
            exempt: Arc::new(|address| address.is_loopback()),
            drain: limits::DRAIN_TIMEOUT.into(),
            tls: None,
            counts: Arc::default(),
        }
    }
}

/// Drain time of requests in flight, which may be changed until it is needed. Clones share the value.
#[derive(Clone, Debug)]
pub struct DrainTimeout(Arc<AtomicU64>);

impl DrainTimeout {
    pub fn set(&self, wait: Duration) {
        self.0.store(u64::try_from(wait.as_millis()).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    fn get(&self) -> Duration {
        Duration::from_millis(self.0.load(Ordering::Relaxed))
    }
}

impl From<Duration> for DrainTimeout {
    fn from(wait: Duration) -> Self {
        let this = Self(Arc::default());
        this.set(wait);
        this
    }
}

impl Default for ConnectionOptions {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for ConnectionOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConnectionOptions").field("waits", &self.waits).finish_non_exhaustive()
    }
}

/// State of an accept loop, sent through a `watch` channel. A dropped sender means [`Shutdown::Drain`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shutdown {
    /// The loop accepts connections.
    Running,
    /// The loop accepts no more connections and drains requests in flight.
    Drain,
    /// The loop ends immediately.
    Immediate,
}

/// Result of a stopped accept loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DrainReport {
    /// Number of connections that were cut off.
    pub cut_off: usize,
}

/// Peer of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Peer {
    /// Socket address.
    Address(SocketAddr),
    /// Client address reported by a trusted proxy.
    Forwarded(IpAddr),
    /// Local process, over a Unix socket.
    Local,
}

impl Peer {
    /// Returns the IP address; an IPv4-mapped IPv6 address counts as IPv4.
    pub fn ip(self) -> Option<IpAddr> {
        match self {
            Self::Address(address) => Some(address.ip().to_canonical()),
            Self::Forwarded(address) => Some(address),
            Self::Local => None,
        }
    }
}

/// Source of connections.
pub trait Listener: Send {
    /// Type of a connection.
    type Io: AsyncRead + AsyncWrite + Unpin + Send + Sync + 'static;

    /// Waits for the next connection.
    fn accept(&mut self) -> impl Future<Output = io::Result<(Self::Io, Peer)>> + Send;

    /// Waits for the first byte of a connection without consuming it. `None` at end of stream.
    fn first_byte(io: &Self::Io) -> impl Future<Output = io::Result<Option<u8>>> + Send;
}

impl Listener for TcpListener {
    type Io = tokio::net::TcpStream;

    async fn accept(&mut self) -> io::Result<(Self::Io, Peer)> {
        let (stream, address) = TcpListener::accept(self).await?;
        // Responses are written whole; Nagle's algorithm would only delay them.
        let _ = stream.set_nodelay(true);
        Ok((stream, Peer::Address(address)))
    }

    async fn first_byte(io: &Self::Io) -> io::Result<Option<u8>> {
        let mut byte = [0];
        let count = io.peek(&mut byte).await?;
        Ok(byte.first().copied().filter(|_| count > 0))
    }
}

impl Listener for UnixListener {
    type Io = tokio::net::UnixStream;

    async fn accept(&mut self) -> io::Result<(Self::Io, Peer)> {
        let (stream, _) = UnixListener::accept(self).await?;
        Ok((stream, Peer::Local))
    }

    /// Waits for nothing: Unix sockets do not use TLS.
    async fn first_byte(_: &Self::Io) -> io::Result<Option<u8>> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

/// Serves a listener until it is stopped.
pub async fn accept<L, S, B>(
    mut listener: L,
    service: S,
    options: ConnectionOptions,
    mut stop: watch::Receiver<Shutdown>,
) -> DrainReport
where
    L: Listener,
    S: Service<Request<IncomingBody>, Response = Response<B>, Error = Infallible>
        + Clone
        + Send
        + 'static,
    S::Future: Send + 'static,
    B: Body<Data = Bytes> + Unpin + Send + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let permits = Arc::new(Semaphore::new(options.connections_max));
    let addresses = Arc::new(ConnectionsPerIp::default());
    let seats = Seats::new();
    let mut connections = JoinSet::new();
    let mut stopping = stop.clone();
    let mut stopping = pin!(async move {
        let _ = stopping.wait_for(|it| *it != Shutdown::Running).await;
    });

    loop {
        let accepted = tokio::select! {
            biased;
            () = &mut stopping => break,
            Some(ended) = connections.join_next() => {
                log_panic(ended);
                continue;
            }
            accepted = listener.accept() => accepted,
        };
        let (io, peer) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                pause_after(&error).await;
                continue;
            }
        };
        let Some(place) = ConnectionsPerIp::try_acquire(&addresses, peer, &options) else {
            options.counts.refused.add(1);
            continue;
        };
        let permit = tokio::select! {
            biased;
            () = &mut stopping => break,
            permit = free_permit(&permits, &seats) => permit,
        };
        let seat = seats.enter();
        let ends = Ends { stop: stop.clone(), idleness: seat.idleness().clone() };
        let held = (permit, place, seat, options.counts.track_connection());
        let (service, waits) = (service.clone(), options.waits);
        match options.tls.clone() {
            None => connections.spawn(async move {
                serve(io, peer, service, waits, ends).await;
                drop(held);
            }),
            Some(tls) => connections.spawn(async move {
                serve_secured::<L, S, B>(io, &tls, peer, service, waits, ends).await;
                drop(held);
            }),
        };
    }

    drop(listener);
    let all_ended = async {
        while let Some(ended) = connections.join_next().await {
            log_panic(ended);
        }
    };
    let now = async {
        if stop.wait_for(|it| *it == Shutdown::Immediate).await.is_err() {
            std::future::pending().await
        }
    };
    tokio::select! {
        () = all_ended => {}
        () = tokio::time::sleep(options.drain.get()) => {}
        () = now => {}
    }
    let cut_off = connections.len();
    connections.shutdown().await;
    DrainReport { cut_off }
}

/// Waits for a free connection permit, closing idle connections while there is none.
async fn free_permit(permits: &Arc<Semaphore>, seats: &Seats) -> Option<OwnedSemaphorePermit> {
    if let Ok(permit) = permits.clone().try_acquire_owned() {
        return Some(permit);
    }
    loop {
        seats.evict_idle();
        let freed = tokio::time::timeout(EVICTION_PAUSE, permits.clone().acquire_owned());
        if let Ok(permit) = freed.await {
            return permit.ok();
        }
    }
}

/// Signals that end a connection from outside.
struct Ends {
    stop: watch::Receiver<Shutdown>,
    idleness: Arc<Idleness>,
}

impl Ends {
    /// Waits until the connection is to end: when the loop is stopped, or when it is evicted for a new one.
    async fn ended(&mut self) {
        tokio::select! {
            _ = self.stop.wait_for(|it| *it != Shutdown::Running) => {}
            () = self.idleness.evicted() => {}
        }
    }
}

fn log_panic(ended: Result<(), tokio::task::JoinError>) {
    if let Err(error) = ended
        && error.is_panic()
    {
        tracing::error!(%error, "panic in request handler");
    }
}

/// Pauses after an accept error that persists, such as exhausted file descriptors; a connection that broke before it
/// was accepted needs no pause.
async fn pause_after(error: &io::Error) {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset, Interrupted};
    if !matches!(
        error.kind(),
        ConnectionAborted | ConnectionRefused | ConnectionReset | Interrupted
    ) {
        tracing::warn!(%error, "accept failed");
        tokio::time::sleep(ACCEPT_PAUSE).await;
    }
}

const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// Interval at which a waiting connection evicts idle ones.
const EVICTION_PAUSE: Duration = Duration::from_millis(50);
/// Drain time of a connection without a request so far, whose first request may be on its way.
const FRESH_WAIT: Duration = Duration::from_millis(500);

/// Serves one TLS connection. The handshake has the same time-out as a request head. A connection still in the
/// handshake is dropped when the loop is stopped.
async fn serve_secured<L, S, B>(
    io: L::Io,
    tls: &TlsConfigCell,
    peer: Peer,
    service: S,
    waits: Timeouts,
    mut ends: Ends,
) where
    L: Listener,
    S: Service<Request<IncomingBody>, Response = Response<B>, Error = Infallible> + Send + 'static,
    S::Future: Send + 'static,
    B: Body<Data = Bytes> + Unpin + Send + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let agreed = tokio::select! {
        biased;
        agreed = tokio::time::timeout(waits.head, accept_tls::<L>(io, tls)) => agreed,
        () = ends.ended() => return,
    };
    match agreed {
        Ok(Ok(Some(NegotiatedTls::Http1(io)))) => serve(io, peer, service, waits, ends).await,
        Ok(Ok(Some(NegotiatedTls::Http2(io)))) => {
            http2::serve(io, peer, service, waits, ends).await
        }
        Ok(Ok(None)) => {}
        Ok(Err(error)) => tracing::debug!(%error, ?peer, "TLS handshake failed"),
        Err(_) => tracing::debug!(?peer, "TLS handshake timed out"),
    }
}

/// Serves one HTTP/1 connection.
async fn serve<I, S, B>(io: I, peer: Peer, service: S, waits: Timeouts, mut ends: Ends)
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
            Err(refusal) => {
                Err(refusal.response(&ErrorFormat::from_headers(request.headers(), "")))
            }
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
    let mut connection = pin!(builder.serve_connection(io, service_fn(answer)));

    let ended = tokio::select! {
        ended = connection.as_mut() => Some(ended),
        () = ends.ended() => None,
    };
    let ended = match ended {
        Some(ended) => ended,
        None => {
            let is_stopping = *ends.stop.borrow() != Shutdown::Running;
            if !is_stopping && !exchange.is_answering() {
                // The connection was evicted.
                return;
            }
            let is_awaited = is_stopping && exchange.is_unused();
            let fresh = if is_awaited { FRESH_WAIT } else { Duration::ZERO };
            match tokio::time::timeout(fresh, connection.as_mut()).await {
                Ok(ended) => ended,
                Err(_) => {
                    connection.as_mut().graceful_shutdown();
                    connection.await
                }
            }
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, ?peer, "connection ended");
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

#[cfg(test)]
mod tests;
