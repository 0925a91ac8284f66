//! Registry of idle connections, of which the longest idle is closed for a new one when all are taken.
//!
//! Guarantees: a connection is evicted only while no request is in progress on it; the registry is scanned only when no
//! connection is free, and then several are evicted at once. Non-goals: the connection limit.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::time::Instant;

use crate::limits;
use crate::timeout_io::Idleness;

/// Open connections of an accept loop.
pub(crate) struct Seats {
    opened: Instant,
    seats: Mutex<HashMap<u64, Arc<Idleness>>>,
    next: AtomicU64,
}

/// Entry of an open connection, removed when dropped.
pub(crate) struct ConnectionEntry {
    seats: Arc<Seats>,
    number: u64,
    idleness: Arc<Idleness>,
}

/// Milliseconds after which an idle connection may be closed.
const SETTLED_MS: u64 = 100;

impl Seats {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self { opened: Instant::now(), seats: Mutex::default(), next: AtomicU64::new(0) })
    }

    /// Adds an entry for a new connection, which is idle until its first request.
    pub(crate) fn enter(self: &Arc<Self>) -> ConnectionEntry {
        let idleness = Arc::new(Idleness::new(self.opened));
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        self.seats().insert(number, Arc::clone(&idleness));
        ConnectionEntry { seats: Arc::clone(self), number, idleness }
    }

    /// Asks the longest idle connections to close, up to a maximum.
    pub(crate) fn evict_idle(&self) {
        let now_ms = self.opened.elapsed().as_millis() as u64;
        // The first request of a new connection may have arrived and not been read yet.
        let is_settled = |since_ms: &u64| now_ms.saturating_sub(*since_ms) >= SETTLED_MS;
        let mut idle: Vec<_> = {
            let seats = self.seats();
            let since = |seat: &Arc<Idleness>| seat.since_ms().filter(is_settled);
            seats.values().filter_map(|seat| Some((since(seat)?, Arc::clone(seat)))).collect()
        };
        let count = limits::CONNECTIONS_EVICTED.min(idle.len().div_ceil(8));
        if count > 0 {
            idle.select_nth_unstable_by_key(count - 1, |(since_ms, _)| *since_ms);
        }
        idle.iter().take(count).for_each(|(_, seat)| seat.evict());
    }

    fn seats(&self) -> MutexGuard<'_, HashMap<u64, Arc<Idleness>>> {
        self.seats.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ConnectionEntry {
    pub(crate) fn idleness(&self) -> &Arc<Idleness> {
        &self.idleness
    }
}

impl Drop for ConnectionEntry {
    fn drop(&mut self) {
        self.seats.seats().remove(&self.number);
    }
}
