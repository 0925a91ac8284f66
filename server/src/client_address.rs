//! Which address a request comes from: the one place that decides it.
//!
//! It is the other end of the connection. Never here: what is done with it.

use std::net::IpAddr;

use http::Extensions;

use crate::connection::Peer;

/// The address of the client; `None` for one of this machine that has none.
pub fn client_address(extensions: &Extensions) -> Option<IpAddr> {
    extensions.get::<Peer>().and_then(|peer| peer.ip())
}
