//! Idle state of a connection, and its eviction.
//!
//! Non-goals: which connection is evicted.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use tokio::sync::Notify;
use tokio::time::Instant;

/// Idle state of one connection; idle from the start.
#[derive(Debug)]
pub(crate) struct Idleness {
    /// Start of the accept loop, so that idle times of its connections are comparable.
    origin: Instant,
    /// Milliseconds since `origin`, or [`BUSY`].
    since_ms: AtomicU64,
    is_evicted: AtomicBool,
    evicted: Notify,
}

const BUSY: u64 = u64::MAX;

impl Idleness {
    pub(crate) fn new(origin: Instant) -> Self {
        let (since_ms, is_evicted) = (AtomicU64::new(BUSY), AtomicBool::new(false));
        let this = Self { origin, since_ms, is_evicted, evicted: Notify::new() };
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
        self.is_evicted.store(true, Ordering::Release);
        self.evicted.notify_one();
    }

    /// Returns whether the connection is to be closed.
    pub(crate) fn is_evicted(&self) -> bool {
        self.is_evicted.load(Ordering::Acquire)
    }

    /// Waits until the connection is to be closed.
    pub(crate) async fn evicted(&self) {
        self.evicted.notified().await;
    }
}
