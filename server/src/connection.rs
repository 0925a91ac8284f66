//! The accept loop: from a listening socket to requests, with a bound on everything that a client can make us hold.
//!
//! `axum::serve` waits for ever for the head of a request; this does not. Promises: silent, half-sent and trickling
//! connections end within their time-outs; there are never more connections than allowed, in all and from one address;
//! a request with no `Host`, two, or one that its address contradicts never reaches the service; what cannot be read as
//! HTTP is answered in JSON as well; every request carries its [`Peer`] as an extension; what answers a GET or HEAD is
//! dropped when its client goes away, but not when that only ends what it sends; stopping lets requests in flight end,
//! for a while. Never here: what is served.

use std::collections::HashMap;
use std::convert::Infallible;
use std::fmt;
use std::future::Future;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::header::{CONNECTION, HOST, HeaderValue};
use http::uri::Authority;
use http::{Request, Response, StatusCode, Version};
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, UnixListener};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;

use crate::address::AddressKey;
use crate::error::{ApiError, Asked};
use crate::limits;
use crate::measures::ConnectionCounts;
use crate::paced_io::{Exchange, PacedIo, Waits};

/// The bounds of an accept loop.
#[derive(Clone)]
pub struct ConnectionOptions {
    /// How long is waited for what.
    pub waits: Waits,
    /// Connections at once.
    pub connections_max: usize,
    /// Connections at once from one address, or one /64 of IPv6.
    pub per_address_max: usize,
    /// Addresses to which the bound above does not apply.
    pub exempt: Arc<dyn Fn(IpAddr) -> bool + Send + Sync>,
    /// How long requests in flight get when the loop is stopped.
    pub drain: Duration,
    /// Where connections are counted.
    pub counts: Arc<ConnectionCounts>,
}

impl ConnectionOptions {
    /// The bounds of `limits.rs`; the machine itself may open any number of connections.
    pub fn new() -> Self {
        Self {
            waits: Waits {
                head: limits::HEAD_WAIT,
                idle: limits::IDLE_WAIT,
                answer: limits::ANSWER_WAIT,
                presence: limits::PRESENCE_WAIT,
                linger: limits::LINGER_WAIT,
                linger_bytes_max: limits::LINGER_BYTES_MAX,
            },
            connections_max: limits::CONNECTIONS_MAX,
            per_address_max: limits::CONNECTIONS_PER_ADDRESS_MAX,
            exempt: Arc::new(|address| address.is_loopback()),
            drain: limits::DRAIN_WAIT,
            counts: Arc::default(),
        }
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

/// Whether an accept loop goes on; sent through a `watch` channel. A dropped sender means [`Stop::Drain`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// It does.
    Running,
    /// It accepts nothing more and lets requests in flight end.
    Drain,
    /// It ends at once.
    Now,
}

/// How an accept loop ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Drained {
    /// Connections that were cut off.
    pub cut_off: usize,
}

/// The other end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Peer {
    /// A socket address.
    Address(SocketAddr),
    /// A process of this machine, over a socket in the file system.
    Local,
}

impl Peer {
    /// The IP address; an IPv4 address that came in as IPv6 is an IPv4 address.
    pub fn ip(self) -> Option<IpAddr> {
        match self {
            Self::Address(address) => Some(address.ip().to_canonical()),
            Self::Local => None,
        }
    }
}

/// What connections come from.
pub trait Listener: Send {
    /// A connection.
    type Io: AsyncRead + AsyncWrite + Unpin + Send + 'static;

    /// Waits for the next connection.
    fn accept(&mut self) -> impl Future<Output = io::Result<(Self::Io, Peer)>> + Send;
}

impl Listener for TcpListener {
    type Io = tokio::net::TcpStream;

    async fn accept(&mut self) -> io::Result<(Self::Io, Peer)> {
        let (stream, address) = TcpListener::accept(self).await?;
        // Answers are written whole; waiting for more would only delay them.
        let _ = stream.set_nodelay(true);
        Ok((stream, Peer::Address(address)))
    }
}

impl Listener for UnixListener {
    type Io = tokio::net::UnixStream;

    async fn accept(&mut self) -> io::Result<(Self::Io, Peer)> {
        let (stream, _) = UnixListener::accept(self).await?;
        Ok((stream, Peer::Local))
    }
}

/// Serves a listener until it is stopped.
pub async fn accept<L, S, B>(
    mut listener: L,
    service: S,
    options: ConnectionOptions,
    mut stop: watch::Receiver<Stop>,
) -> Drained
where
    L: Listener,
    S: Service<Request<Incoming>, Response = Response<B>, Error = Infallible>
        + Clone
        + Send
        + 'static,
    S::Future: Send,
    B: Body<Data = Bytes> + Unpin + Send + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let permits = Arc::new(Semaphore::new(options.connections_max));
    let addresses = Arc::new(Addresses::default());
    let mut connections = JoinSet::new();
    let mut stopping = stop.clone();
    let mut stopping = pin!(async move {
        let _ = stopping.wait_for(|it| *it != Stop::Running).await;
    });

    loop {
        let permit = tokio::select! {
            biased;
            () = &mut stopping => break,
            Some(ended) = connections.join_next() => {
                note_panic(ended);
                continue;
            }
            permit = permits.clone().acquire_owned() => permit,
        };
        let accepted = tokio::select! {
            biased;
            () = &mut stopping => break,
            accepted = listener.accept() => accepted,
        };
        let (io, peer) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                pause_after(&error).await;
                continue;
            }
        };
        let Some(place) = Addresses::enter(&addresses, peer, &options) else {
            options.counts.refused.add(1);
            continue;
        };
        let open = options.counts.let_in();
        let connection = serve(io, peer, service.clone(), options.waits, stop.clone());
        connections.spawn(async move {
            connection.await;
            drop((permit, place, open));
        });
    }

    drop(listener);
    let all_ended = async {
        while let Some(ended) = connections.join_next().await {
            note_panic(ended);
        }
    };
    let now = async {
        if stop.wait_for(|it| *it == Stop::Now).await.is_err() {
            std::future::pending().await
        }
    };
    tokio::select! {
        () = all_ended => {}
        () = tokio::time::sleep(options.drain) => {}
        () = now => {}
    }
    let cut_off = connections.len();
    connections.shutdown().await;
    Drained { cut_off }
}

fn note_panic(ended: Result<(), tokio::task::JoinError>) {
    if let Err(error) = ended
        && error.is_panic()
    {
        tracing::error!(%error, "a request ended its connection by a panic");
    }
}

/// A connection that broke before it was accepted is no reason to wait; no more file descriptors are.
async fn pause_after(error: &io::Error) {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset, Interrupted};
    if !matches!(
        error.kind(),
        ConnectionAborted | ConnectionRefused | ConnectionReset | Interrupted
    ) {
        tracing::warn!(%error, "cannot accept a connection");
        tokio::time::sleep(ACCEPT_PAUSE).await;
    }
}

const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// A connection without a request yet gets this long to send one when the loop is stopped: it may be on its way.
const FRESH_WAIT: Duration = Duration::from_millis(500);

/// One connection, from its first byte to its last.
async fn serve<I, S, B>(
    io: I,
    peer: Peer,
    service: S,
    waits: Waits,
    mut stop: watch::Receiver<Stop>,
) where
    I: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    S: Service<Request<Incoming>, Response = Response<B>, Error = Infallible> + Send + 'static,
    S::Future: Send,
    B: Body<Data = Bytes> + Unpin + Send + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let exchange = Arc::new(Exchange::new());
    let io = TokioIo::new(PacedIo::new(io, exchange.clone(), waits, refuse));
    let (shared, stop_seen) = (exchange.clone(), stop.clone());
    let answer = move |mut request: Request<Incoming>| {
        shared.begin(is_watched(&request));
        request.extensions_mut().insert(peer);
        let answer = match check_count(&request).and_then(|()| check_host(&request)) {
            Ok(()) => Ok(service.call(request)),
            Err(refusal) => Err(refusal.response(&Asked::of(request.headers(), ""))),
        };
        let (exchange, stop_seen) = (shared.clone(), stop_seen.clone());
        async move {
            let mut response = match answer {
                Ok(answer) => answer.await?.map(AnswerBody::Service),
                Err(refusal) => refusal.map(|body| AnswerBody::Own(Some(body))),
            };
            if *stop_seen.borrow() != Stop::Running {
                response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
            }
            Ok::<_, Infallible>(response.map(|body| Answer { body, exchange }))
        }
    };
    let mut builder = http1::Builder::new();
    builder
        .timer(TokioTimer::new())
        // The head's time-out is kept by `PacedIo`, which can tell a head from an idle connection.
        .header_read_timeout(None)
        .max_header_size(limits::HEAD_BYTES_MAX)
        .max_buf_size(limits::CONNECTION_READ_BYTES_MAX)
        // A client that sends nothing more may still listen; `PacedIo` finds out.
        .half_close(true);
    let mut connection = pin!(builder.serve_connection(io, service_fn(answer)));

    let ended = tokio::select! {
        ended = connection.as_mut() => Some(ended),
        _ = stop.wait_for(|it| *it != Stop::Running) => None,
    };
    let ended = match ended {
        Some(ended) => ended,
        None => {
            let fresh = if exchange.is_fresh() { FRESH_WAIT } else { Duration::ZERO };
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

/// The whole answer to a head that hyper cannot read, as it goes out.
fn refuse(status: u16) -> Bytes {
    let error = match status {
        414 => ApiError::new(StatusCode::URI_TOO_LONG, "uri_too_long", "The address is too long"),
        431 => head_too_large(),
        _ => ApiError::bad_request("The request's head cannot be read"),
    };
    let (head, body) = error.response(&Asked::default()).into_parts();
    let mut answer = format!("HTTP/1.1 {}\r\n", head.status).into_bytes();
    for (name, value) in &head.headers {
        answer.extend_from_slice(name.as_str().as_bytes());
        answer.extend_from_slice(b": ");
        answer.extend_from_slice(value.as_bytes());
        answer.extend_from_slice(b"\r\n");
    }
    let end = format!("content-length: {}\r\nconnection: close\r\n\r\n", body.len());
    answer.extend_from_slice(end.as_bytes());
    answer.extend_from_slice(&body);
    answer.into()
}

fn head_too_large() -> ApiError {
    ApiError::new(
        StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
        "head_too_large",
        "The request's head is too large",
    )
}

/// Refuses a request with too many header fields. Hyper itself refuses more than a hundred; it could be told of our
/// bound, but then takes memory for so many at each request.
fn check_count<B>(request: &Request<B>) -> Result<(), ApiError> {
    match request.headers().len() <= limits::HEADERS_MAX {
        true => Ok(()),
        false => Err(head_too_large()),
    }
}

/// Whether a request is only answered for as long as its client is there. What changes something is done to its end;
/// HTTP/1.0 has no interim answers to find out by.
fn is_watched<B: Body>(request: &Request<B>) -> bool {
    let asks_only = request.method().is_safe() && request.body().is_end_stream();
    asks_only && request.version() == Version::HTTP_11
}

/// Refuses a request whose `Host` is missing, doubled, no host at all, or not that of its address.
fn check_host<B>(request: &Request<B>) -> Result<(), ApiError> {
    let mut hosts = request.headers().get_all(HOST).iter();
    let (host, second) = (hosts.next(), hosts.next());
    if second.is_some() {
        return Err(ApiError::bad_request("The request has more than one Host header"));
    }
    let Some(host) = host else {
        if request.version() == Version::HTTP_10 {
            return Ok(());
        }
        return Err(ApiError::bad_request("The request has no Host header"));
    };
    let authority = match host.as_bytes() {
        b"" => None,
        bytes => match Authority::try_from(bytes) {
            Ok(authority) if !authority.as_str().contains('@') => Some(authority),
            _ => return Err(ApiError::bad_request("The Host header names no host")),
        },
    };
    match (request.uri().authority(), authority) {
        (Some(asked), Some(named)) if is_same_host(asked, &named) => Ok(()),
        (Some(_), _) => {
            Err(ApiError::bad_request("The request's address and its Host header differ"))
        }
        (None, _) => Ok(()),
    }
}

fn is_same_host(one: &Authority, other: &Authority) -> bool {
    one.host().eq_ignore_ascii_case(other.host())
        && one.port_u16().unwrap_or(80) == other.port_u16().unwrap_or(80)
}

/// How many connections each address has.
#[derive(Default)]
struct Addresses(Mutex<HashMap<AddressKey, usize>>);

/// A connection's place among those of its address, given back when it is dropped.
struct AddressPlace(Option<(Arc<Addresses>, AddressKey)>);

impl Addresses {
    /// A place for one more connection; `None` when the address has its share.
    fn enter(this: &Arc<Self>, peer: Peer, options: &ConnectionOptions) -> Option<AddressPlace> {
        let Some(ip) = peer.ip().filter(|ip| !(options.exempt)(*ip)) else {
            return Some(AddressPlace(None));
        };
        let key = AddressKey::of(ip);
        let mut counts = this.0.lock().unwrap_or_else(PoisonError::into_inner);
        let count = counts.entry(key).or_insert(0);
        if *count >= options.per_address_max {
            return None;
        }
        *count += 1;
        Some(AddressPlace(Some((this.clone(), key))))
    }
}

impl Drop for AddressPlace {
    fn drop(&mut self) {
        let Some((addresses, key)) = &self.0 else { return };
        let mut counts = addresses.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = counts.get_mut(key) {
            *count -= 1;
            if *count == 0 {
                counts.remove(key);
            }
        }
    }
}

/// The body of an answer; its end is the end of the exchange.
struct Answer<B> {
    body: AnswerBody<B>,
    exchange: Arc<Exchange>,
}

enum AnswerBody<B> {
    Service(B),
    Own(Option<Bytes>),
}

impl<B> Drop for Answer<B> {
    fn drop(&mut self) {
        self.exchange.end();
    }
}

impl<B: Body<Data = Bytes> + Unpin> Body for Answer<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        match &mut self.body {
            AnswerBody::Service(body) => Pin::new(body).poll_frame(cx),
            AnswerBody::Own(body) => Poll::Ready(body.take().map(|data| Ok(Frame::data(data)))),
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.body {
            AnswerBody::Service(body) => body.is_end_stream(),
            AnswerBody::Own(body) => body.is_none(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.body {
            AnswerBody::Service(body) => body.size_hint(),
            AnswerBody::Own(body) => {
                SizeHint::with_exact(body.as_ref().map_or(0, |data| data.len() as u64))
            }
        }
    }
}

#[cfg(test)]
mod tests;
