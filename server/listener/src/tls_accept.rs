//! TLS accept: handshake, and protocol selection by ALPN.
//!
//! Guarantees: a client that speaks HTTP without TLS gets an error response. Non-goals: certificates, and time-outs.

use std::io;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use crate::accept::Listener;
use crate::limits;
use crate::request_checks::plain_http_response;
use crate::tls::{HTTP2, TlsConfigCell};

/// TLS connection, by its protocol.
pub(crate) enum NegotiatedTls<I> {
    Http1(Box<TlsStream<I>>),
    Http2(Box<TlsStream<I>>),
}

/// Type of the first TLS record of a connection: a handshake.
const HANDSHAKE: u8 = 22;

/// Performs the handshake. `None` if the client disconnected, or spoke another protocol and got an error.
pub(crate) async fn accept_tls<L: Listener>(
    mut io: L::Io,
    tls: &TlsConfigCell,
) -> io::Result<Option<NegotiatedTls<L::Io>>> {
    match L::first_byte(&io).await? {
        Some(HANDSHAKE) => {}
        Some(letter) if letter.is_ascii_uppercase() => {
            reject_plain_http(&mut io).await?;
            return Ok(None);
        }
        Some(_) => return Err(io::Error::new(io::ErrorKind::InvalidData, "not a TLS handshake")),
        None => return Ok(None),
    }
    let io = Box::new(TlsAcceptor::from(tls.config()).accept(io).await?);
    let (_, session) = io.get_ref();
    Ok(match session.alpn_protocol() {
        Some(HTTP2) => Some(NegotiatedTls::Http2(io)),
        // A certification authority has verified its ACME challenge.
        #[cfg(feature = "acme")]
        Some(crate::tls::ACME_TLS_ALPN) => None,
        _ => Some(NegotiatedTls::Http1(io)),
    })
}

/// Sends an error response, then reads some of the remaining input, so that the client sees the response instead of a
/// reset.
async fn reject_plain_http<I: AsyncReadExt + AsyncWriteExt + Unpin>(io: &mut I) -> io::Result<()> {
    io.write_all(&plain_http_response()).await?;
    io.shutdown().await?;
    let mut bytes = [0; 1_024];
    let mut left = limits::PLAIN_HTTP_READ_BYTES_MAX;
    while left > 0 {
        match io.read(&mut bytes).await? {
            0 => break,
            count => left = left.saturating_sub(count),
        }
    }
    Ok(())
}
