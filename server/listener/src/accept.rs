//! Accept loop: from a listening socket to connections.
//!
//! Guarantees: there are never more connections than allowed, in all and from one address or network; when all are
//! taken, the one that is idle longest is closed for a new one; shutdown drains requests in flight within a time limit.

use std::convert::Infallible;
use std::future::{Future, poll_fn};
use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Poll, Waker};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body::Body;
use hyper::service::Service;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpSocket, UnixListener};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::JoinSet;

use crate::idle_connections::Seats;
use crate::incoming_body::IncomingBody;
use crate::options::ConnectionOptions;
use crate::peer::Peer;
use crate::per_ip_limit::ConnectionsPerIp;
use crate::timeout_io::{Idleness, Timeouts};
use crate::tls::TlsConfigCell;
use crate::tls_accept::{NegotiatedTls, accept_tls};
use crate::{http1, http2, limits};

/// State of an accept loop, sent through a `watch` channel. A dropped sender means [`Shutdown::Drain`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shutdown {
    /// The loop accepts connections.
    Running,
    /// The loop accepts no new connections and drains requests in flight.
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

/// Opens a listening socket.
pub fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = match address {
        SocketAddr::V4(_) => TcpSocket::new_v4()?,
        SocketAddr::V6(_) => TcpSocket::new_v6()?,
    };
    // Otherwise a restart fails while connections of the process before are in TIME_WAIT.
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(limits::ACCEPT_QUEUE_MAX)
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
                http1::serve(io, peer, service, waits, ends).await;
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
pub(crate) struct Ends {
    pub(crate) stop: watch::Receiver<Shutdown>,
    pub(crate) idleness: Arc<Idleness>,
}

impl Ends {
    /// Waits until the connection is to end: when the loop is stopped, or when it is evicted for a new one.
    pub(crate) async fn ended(&mut self) {
        let (changes, idleness) = (self.stop.clone(), &self.idleness);
        let mut ended = pin!(async {
            tokio::select! {
                _ = self.stop.wait_for(|it| *it != Shutdown::Running) => {}
                () = idleness.evicted() => {}
            }
        });
        let mut registered: Option<Waker> = None;
        // Every request polls this. Without a signal the waker stays registered, and no lock has to be taken.
        poll_fn(|cx| {
            let is_registered = registered.as_ref().is_some_and(|it| it.will_wake(cx.waker()));
            if is_registered && !changes.has_changed().unwrap_or(true) && !idleness.is_evicted() {
                return Poll::Pending;
            }
            registered = Some(cx.waker().clone());
            ended.as_mut().poll(cx)
        })
        .await;
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
pub(crate) const EVICTION_PAUSE: Duration = Duration::from_millis(50);
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
        Ok(Ok(Some(NegotiatedTls::Http1(io)))) => {
            http1::serve(io, peer, service, waits, ends).await
        }
        Ok(Ok(Some(NegotiatedTls::Http2(io)))) => {
            http2::serve(io, peer, service, waits, ends).await
        }
        Ok(Ok(None)) => {}
        Ok(Err(error)) => tracing::debug!(%error, ?peer, "TLS handshake failed"),
        Err(_) => tracing::debug!(?peer, "TLS handshake timed out"),
    }
}

#[cfg(test)]
mod tests;
