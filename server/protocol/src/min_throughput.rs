//! Minimum transfer rate of a connection's peer.
//!
//! Counts only time spent waiting: while the server itself is busy, the clock of the peer stands still. Guarantees: one
//! timer for each pace, created at the first wait. Non-goals: the consequence of a time-out.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::time::{Instant, Sleep};

/// Minimum transfer rate: bytes per window of waiting.
#[derive(Debug)]
pub struct MinThroughput {
    window: Duration,
    window_bytes_min: u64,
    left: Duration,
    window_bytes: u64,
    waiting_since: Option<Instant>,
    timer: Option<Pin<Box<Sleep>>>,
}

impl MinThroughput {
    /// Creates a pace of at least `window_bytes_min` (at least 1) in each `window` of waiting.
    pub fn new(window: Duration, window_bytes_min: u64) -> Self {
        Self {
            window,
            window_bytes_min: window_bytes_min.max(1),
            left: window,
            window_bytes: 0,
            waiting_since: None,
            timer: None,
        }
    }

    /// Records progress of the peer.
    pub fn record_progress(&mut self, bytes: u64) {
        if let Some(since) = self.waiting_since.take() {
            self.left = self.left.saturating_sub(since.elapsed());
        }
        self.window_bytes += bytes;
        if self.window_bytes >= self.window_bytes_min {
            self.window_bytes = 0;
            self.left = self.window;
        }
    }

    /// Polls the time-out; ready when the peer is too slow. Must be called each time the peer has nothing ready.
    pub fn poll_too_slow(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if self.waiting_since.is_none() {
            let now = Instant::now();
            self.waiting_since = Some(now);
            set_timer(&mut self.timer, now + self.left);
        }
        poll_timer(&mut self.timer, cx)
    }
}

/// Sets a timer, creating it at the first use.
pub fn set_timer(timer: &mut Option<Pin<Box<Sleep>>>, deadline: Instant) {
    match timer {
        Some(timer) if timer.deadline() == deadline => {}
        Some(timer) => timer.as_mut().reset(deadline),
        None => *timer = Some(Box::pin(tokio::time::sleep_until(deadline))),
    }
}

/// Polls a timer; one that was never set stays pending.
pub fn poll_timer(timer: &mut Option<Pin<Box<Sleep>>>, cx: &mut Context<'_>) -> Poll<()> {
    match timer {
        Some(timer) => timer.as_mut().poll(cx),
        None => Poll::Pending,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::poll_fn;

    const WINDOW: Duration = Duration::from_millis(40);

    #[tokio::test]
    async fn idle_transfer_is_too_slow_after_one_window() {
        let mut pace = MinThroughput::new(WINDOW, 10);
        let began = Instant::now();
        poll_fn(|cx| pace.poll_too_slow(cx)).await;
        assert!(began.elapsed() >= WINDOW);
    }

    #[tokio::test]
    async fn doing_too_little_is_late_and_doing_enough_is_not() {
        let mut pace = MinThroughput::new(WINDOW, 10);
        for bytes in [1, 1, 1] {
            let step = tokio::time::timeout(WINDOW / 2, poll_fn(|cx| pace.poll_too_slow(cx)));
            let is_late = step.await.is_ok();
            pace.record_progress(bytes);
            if is_late {
                break;
            }
        }
        assert_eq!(pace.left, Duration::ZERO, "three bytes in three half windows are too few");
        pace.record_progress(10);
        assert_eq!(pace.left, WINDOW);
    }

    #[tokio::test]
    async fn our_own_time_does_not_count() {
        let mut pace = MinThroughput::new(WINDOW, 10);
        pace.record_progress(1);
        tokio::time::sleep(2 * WINDOW).await;
        let waited = tokio::time::timeout(WINDOW / 4, poll_fn(|cx| pace.poll_too_slow(cx)));
        assert!(waited.await.is_err(), "it has a whole window left");
    }
}
