//! Peer of a connection.

use std::net::{IpAddr, SocketAddr};

/// Peer of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Peer {
    /// Socket address.
    Address(SocketAddr),
    /// Local process, over a Unix socket.
    Local,
}

impl Peer {
    /// Returns the IP address; an IPv4-mapped IPv6 address counts as IPv4.
    pub fn ip(self) -> Option<IpAddr> {
        match self {
            Self::Address(address) => Some(address.ip().to_canonical()),
            Self::Local => None,
        }
    }
}
