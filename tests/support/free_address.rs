//! Addresses of servers that must be known before they start, or that restart at the same address.
//!
//! Guarantees: no address is returned twice by a process, and none is in the range of ephemeral ports (`ip(7)`,
//! `ip_local_port_range`), so that neither a connection nor a listener on port 0 takes it before its server starts, or
//! while it is stopped.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::ops::Range;
use std::sync::atomic::{AtomicU32, Ordering};

/// Ports below the ephemeral ones of Linux.
const PORTS: Range<u16> = 21_000..31_000;

/// Distance between the first ports of processes with adjacent ids; coprime with the number of ports.
const PORT_STRIDE: u32 = 127;

/// Returns an address of this machine without a listener.
///
/// # Panics
///
/// If all ports are taken.
pub fn free_address() -> SocketAddr {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let count = u32::from(PORTS.end - PORTS.start);
    for _ in 0..count {
        // Processes that run at the same time, often with adjacent ids, start at distant ports.
        let first = std::process::id().wrapping_mul(PORT_STRIDE);
        let step = first.wrapping_add(NEXT.fetch_add(1, Ordering::Relaxed));
        let port = PORTS.start + (step % count) as u16;
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        if TcpListener::bind(address).is_ok() {
            return address;
        }
    }
    panic!("no port of {PORTS:?} is free");
}

/// Returns the port of [`free_address`].
pub fn free_port() -> u16 {
    free_address().port()
}
