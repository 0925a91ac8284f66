//! Idle state of a connection, and its eviction.
//!
//! Non-goals: which connection is evicted.

use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::Notify;
use tokio::time::Instant;

/// Idle state of one connection; idle from the start.
#[derive(Debug)]
pub(crate) struct Idleness {
    /// Start of the accept loop, so that idle times of its connections are comparable.
    origin: Instant,
    /// Milliseconds since `origin`, or [`BUSY`].
    since_ms: AtomicU64,
    evicted: Notify,
}

const BUSY: u64 = u64::MAX;

impl Idleness {
    pub(crate) fn new(origin: Instant) -> Self {
        let this = Self { origin, since_ms: AtomicU64::new(BUSY), evicted: Notify::new() };
        this.begin(Instant::now());
        this
    }

    /// Marks the connection as idle.
    pub(crate) fn begin(&self, now: Instant) {
        let since_ms = now.saturating_duration_since(self.origin).as_millis() as u64;
        self.since_ms.store(since_ms, Ordering::Relaxed);
    }

    /// Marks the connection as busy.
    pub(crate) fn end(&self) {
        self.since_ms.store(BUSY, Ordering::Relaxed);
    }

    /// Returns the start of the idle time, in milliseconds since the origin; `None` while busy.
    pub(crate) fn since_ms(&self) -> Option<u64> {
        Some(self.since_ms.load(Ordering::Relaxed)).filter(|since_ms| *since_ms != BUSY)
    }

    /// Closes the connection, after answering a request that has just started.
    pub(crate) fn evict(&self) {
        // No longer a candidate for eviction.
        self.end();
        self.evicted.notify_one();
    }

    /// Waits until the connection is to be closed.
    pub(crate) async fn evicted(&self) {
        self.evicted.notified().await;
    }
}
