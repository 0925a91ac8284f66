//! Since when no request is in progress on a connection, and whether it has to give way to another.
//!
//! Non-goals: which connection gives way.

use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::Notify;
use tokio::time::Instant;

/// The idleness of one connection; idle from the start.
#[derive(Debug)]
pub(crate) struct Idleness {
    /// When the accept loop began: idle times of one loop are compared with one another.
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

    /// No request is in progress from now on.
    pub(crate) fn begin(&self, now: Instant) {
        let since_ms = now.saturating_duration_since(self.origin).as_millis() as u64;
        self.since_ms.store(since_ms, Ordering::Relaxed);
    }

    /// A request is in progress from now on.
    pub(crate) fn end(&self) {
        self.since_ms.store(BUSY, Ordering::Relaxed);
    }

    /// Since when it is idle, in milliseconds since the origin; `None` while it is not.
    pub(crate) fn since_ms(&self) -> Option<u64> {
        Some(self.since_ms.load(Ordering::Relaxed)).filter(|since_ms| *since_ms != BUSY)
    }

    /// Has the connection closed, once a request that has just begun is answered.
    pub(crate) fn evict(&self) {
        // It is no candidate any more.
        self.end();
        self.evicted.notify_one();
    }

    /// Waits until the connection is to be closed.
    pub(crate) async fn evicted(&self) {
        self.evicted.notified().await;
    }
}
