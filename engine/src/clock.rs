//! Time as a parameter.
//!
//! Everything in the engine and the server that asks for the time is handed a [`Clock`]; only [`SystemClock`] asks the
//! machine. Times are milliseconds.

use std::sync::atomic::{AtomicU64, Ordering};

/// Where time comes from.
pub trait Clock: Send + Sync {
    /// Milliseconds since 1970-01-01 UTC. May jump when the machine's clock is set.
    fn unix_ms(&self) -> u64;

    /// Milliseconds since some moment in the past; never goes back. For durations only.
    fn monotonic_ms(&self) -> u64;

    /// The same in microseconds.
    fn monotonic_us(&self) -> u64 {
        self.monotonic_ms().saturating_mul(1_000)
    }
}

/// The machine's clock.
#[derive(Debug)]
pub struct SystemClock {
    started: std::time::Instant,
}

impl SystemClock {
    /// A clock whose monotonic time starts now.
    #[allow(clippy::disallowed_methods, reason = "this is the one place that asks the machine")]
    pub fn new() -> Self {
        Self { started: std::time::Instant::now() }
    }
}

impl Default for SystemClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for SystemClock {
    #[allow(clippy::disallowed_methods, reason = "this is the one place that asks the machine")]
    fn unix_ms(&self) -> u64 {
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        since.map_or(0, |passed| u64::try_from(passed.as_millis()).unwrap_or(u64::MAX))
    }

    fn monotonic_ms(&self) -> u64 {
        self.monotonic_us() / 1_000
    }

    fn monotonic_us(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_micros()).unwrap_or(u64::MAX)
    }
}

/// A clock that stands still until it is told to move.
#[derive(Debug)]
pub struct SimClock {
    unix_ms: AtomicU64,
    monotonic_ms: AtomicU64,
}

impl SimClock {
    /// A clock that shows the given time.
    pub fn at(unix_ms: u64) -> Self {
        Self { unix_ms: AtomicU64::new(unix_ms), monotonic_ms: AtomicU64::new(0) }
    }

    /// Lets time pass.
    pub fn advance(&self, ms: u64) {
        self.unix_ms.fetch_add(ms, Ordering::SeqCst);
        self.monotonic_ms.fetch_add(ms, Ordering::SeqCst);
    }
}

impl Clock for SimClock {
    fn unix_ms(&self) -> u64 {
        self.unix_ms.load(Ordering::SeqCst)
    }

    fn monotonic_ms(&self) -> u64 {
        self.monotonic_ms.load(Ordering::SeqCst)
    }
}
