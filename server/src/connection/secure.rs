//! TLS on a fresh connection: from the first byte to a connection of which it is known what is spoken on it.
//!
//! Promises: who speaks HTTP without TLS is told so. Never here: certificates, and how long it may take.

use std::io;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use super::Listener;
use super::checks::refuse_plain;
use crate::limits;
use crate::tls::{CurrentTls, HTTP2};

/// A connection with TLS, by what is spoken on it.
pub(super) enum Secured<I> {
    Http1(Box<TlsStream<I>>),
    Http2(Box<TlsStream<I>>),
}

/// Every connection with TLS begins with a record of this type: a handshake.
const HANDSHAKE: u8 = 22;

/// Agrees on TLS. `None`: there is nobody, or somebody who speaks something else and was told so.
pub(super) async fn secured<L: Listener>(
    mut io: L::Io,
    tls: &CurrentTls,
) -> io::Result<Option<Secured<L::Io>>> {
    match L::first_byte(&io).await? {
        Some(HANDSHAKE) => {}
        Some(letter) if letter.is_ascii_uppercase() => {
            tell_plain(&mut io).await?;
            return Ok(None);
        }
        Some(_) => return Err(io::Error::new(io::ErrorKind::InvalidData, "not a TLS handshake")),
        None => return Ok(None),
    }
    let io = Box::new(TlsAcceptor::from(tls.config()).accept(io).await?);
    let (_, session) = io.get_ref();
    Ok(match session.alpn_protocol() {
        Some(HTTP2) => Some(Secured::Http2(io)),
        // An authority that has seen the proof that it wanted.
        #[cfg(feature = "acme")]
        Some(crate::tls::ACME_PROTOCOL) => None,
        _ => Some(Secured::Http1(io)),
    })
}

/// Answers, and reads some of what is still sent, so that the answer is seen and not a reset.
async fn tell_plain<I: AsyncReadExt + AsyncWriteExt + Unpin>(io: &mut I) -> io::Result<()> {
    io.write_all(&refuse_plain()).await?;
    io.shutdown().await?;
    let mut bytes = [0; 1_024];
    let mut left = limits::PLAIN_BYTES_READ_MAX;
    while left > 0 {
        match io.read(&mut bytes).await? {
            0 => break,
            count => left = left.saturating_sub(count),
        }
    }
    Ok(())
}
