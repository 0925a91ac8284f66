//! Connections to validated addresses.
//!
//! The address rules are applied here and nowhere earlier, to the address that is connected to, so that a changed DNS
//! record cannot bypass them.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_util::rt::TokioIo;
use protocol::destination::{Origin, Scheme, is_globally_routable};
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::{SendError, limits};

/// Connection, with TLS or without.
pub(super) enum Stream {
    Plain(TokioIo<TcpStream>),
    Tls(Box<TokioIo<TlsStream<TcpStream>>>),
}

/// Connects to an origin. An origin that the operator allowed may have any address.
pub(super) async fn connect(
    origin: &Origin,
    is_allowed: bool,
    tls: &Arc<ClientConfig>,
) -> Result<Stream, SendError> {
    let found = addresses(origin).await?;
    let reachable = found.iter().filter(|address| is_allowed || is_globally_routable(address.ip()));
    let mut failed = SendError::Blocked;
    for address in reachable.take(limits::ADDRESSES_PER_HOST_MAX) {
        match TcpStream::connect(address).await {
            Ok(stream) => return secured(stream, origin, tls).await,
            Err(error) => failed = SendError::Connect(error),
        }
    }
    Err(failed)
}

async fn addresses(origin: &Origin) -> Result<Vec<SocketAddr>, SendError> {
    if let Ok(address) = origin.host().parse::<IpAddr>() {
        return Ok(vec![SocketAddr::new(address, origin.port())]);
    }
    let found = tokio::net::lookup_host((origin.host(), origin.port())).await;
    let found: Vec<_> = found.map_err(|_| SendError::Blocked)?.collect();
    if found.is_empty() { Err(SendError::Blocked) } else { Ok(found) }
}

async fn secured(
    stream: TcpStream,
    origin: &Origin,
    tls: &Arc<ClientConfig>,
) -> Result<Stream, SendError> {
    // Small requests, one after the other: Nagle's algorithm would only delay them.
    stream.set_nodelay(true).map_err(SendError::Connect)?;
    if origin.scheme() == Scheme::Http {
        return Ok(Stream::Plain(TokioIo::new(stream)));
    }
    let name = ServerName::try_from(origin.host().to_owned());
    let name = name.map_err(|error| SendError::Tls(io::Error::other(error)))?;
    let connected = TlsConnector::from(tls.clone()).connect(name, stream).await;
    Ok(Stream::Tls(Box::new(TokioIo::new(connected.map_err(SendError::Tls)?))))
}

impl Read for Stream {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_read(context, buffer),
            Self::Tls(stream) => Pin::new(stream).poll_read(context, buffer),
        }
    }
}

impl Write for Stream {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_write(context, bytes),
            Self::Tls(stream) => Pin::new(stream).poll_write(context, bytes),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_flush(context),
            Self::Tls(stream) => Pin::new(stream).poll_flush(context),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_shutdown(context),
            Self::Tls(stream) => Pin::new(stream).poll_shutdown(context),
        }
    }
}
