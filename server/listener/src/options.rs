//! Limits and time-outs of an accept loop.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use usage::registry::ConnectionCounts;

use crate::limits;
use crate::timeout_io::Timeouts;
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
                suspend: limits::SUSPEND_TIMEOUT,
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

/// Drain time of requests in flight, which may be changed until it is needed. Clones share the value.
#[derive(Clone, Debug)]
pub struct DrainTimeout(Arc<AtomicU64>);

impl DrainTimeout {
    pub fn set(&self, wait: Duration) {
        self.0.store(u64::try_from(wait.as_millis()).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    pub(crate) fn get(&self) -> Duration {
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
