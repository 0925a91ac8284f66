//! Clock trait, system clock and simulated clock.
//!
//! All time in the engine and the server comes from a [`Clock`]; only [`SystemClock`] reads the clock of the machine.
//! Times are in milliseconds unless a name ends in `_us`.

use std::sync::atomic::{AtomicU64, Ordering};

/// Source of time.
pub trait Clock: Send + Sync {
    /// Returns the time in milliseconds since 1970-01-01 UTC. May jump when the clock of the machine is set.
    fn unix_ms(&self) -> u64;

    /// Returns the time in milliseconds since an arbitrary moment. Never decreases; only for durations.
    fn monotonic_ms(&self) -> u64;

    /// Returns the time of [`Clock::monotonic_ms`] in microseconds. Resolution depends on the implementation.
    fn monotonic_us(&self) -> u64 {
        self.monotonic_ms().saturating_mul(1_000)
    }
}

/// Clock of the machine.
#[derive(Debug)]
pub struct SystemClock {
    started: std::time::Instant,
}

impl SystemClock {
    /// Creates a clock whose monotonic time starts now.
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

/// Simulated clock that only advances on request.
#[derive(Debug)]
pub struct SimClock {
    unix_ms: AtomicU64,
    monotonic_ms: AtomicU64,
}

impl SimClock {
    /// Creates a clock that shows `unix_ms`, in milliseconds since 1970.
    pub fn at(unix_ms: u64) -> Self {
        Self { unix_ms: AtomicU64::new(unix_ms), monotonic_ms: AtomicU64::new(0) }
    }

    /// Advances the time by `ms` milliseconds.
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
