//! Detects pauses between deliveries of stored files, in which their processor can be used for other work.
//!
//! Guarantees: a delivery costs one load, and a store if it is the first since the last look. Non-goals: deliveries of
//! variants that were rendered for them, because they would end the pause that their rendering uses.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use engine::clock::Clock;

/// Time without a delivery after which delivery counts as idle.
pub const DELIVERY_IDLE: Duration = Duration::from_millis(20);

/// Deliveries since the last look.
pub struct DeliveryActivity {
    clock: Arc<dyn Clock>,
    has_delivered: AtomicBool,
    /// Time of the last look that saw a delivery, in milliseconds.
    last_seen_ms: AtomicU64,
}

impl DeliveryActivity {
    /// Starts without an idle time.
    pub fn start(clock: Arc<dyn Clock>) -> Self {
        let last_seen_ms = AtomicU64::new(clock.monotonic_ms());
        Self { clock, has_delivered: AtomicBool::new(false), last_seen_ms }
    }

    /// Records that a file, or a piece of one, is delivered now.
    pub fn record(&self) {
        // Usually set already: processors share the cache line as long as nobody writes to it.
        if !self.has_delivered.load(Ordering::Relaxed) {
            self.has_delivered.store(true, Ordering::Relaxed);
        }
    }

    /// Returns whether no delivery was recorded for [`DELIVERY_IDLE`]. A delivery since the last call counts as one of
    /// this moment.
    pub fn is_idle(&self) -> bool {
        let now_ms = self.clock.monotonic_ms();
        if self.has_delivered.swap(false, Ordering::Relaxed) {
            self.last_seen_ms.store(now_ms, Ordering::Relaxed);
        }
        let idle_ms = now_ms.saturating_sub(self.last_seen_ms.load(Ordering::Relaxed));
        Duration::from_millis(idle_ms) >= DELIVERY_IDLE
    }
}

#[cfg(test)]
mod tests {
    use engine::clock::SimClock;

    use super::*;

    #[test]
    fn delivery_is_idle_after_a_pause() {
        let clock = Arc::new(SimClock::at(0));
        let pause_ms = DELIVERY_IDLE.as_millis() as u64;
        let activity = DeliveryActivity::start(Arc::clone(&clock) as _);
        assert!(!activity.is_idle());
        clock.advance(pause_ms);
        assert!(activity.is_idle());
        activity.record();
        clock.advance(pause_ms);
        assert!(!activity.is_idle(), "the delivery may be recent");
        clock.advance(pause_ms);
        assert!(activity.is_idle());
    }
}
