//! Lock for log scans: one at a time, with a bounded queue.
//!
//! Guarantees: a request scans the log for a bounded time, and waits at most as long for its turn. Non-goals: the scan.

use std::ops::ControlFlow;
use std::sync::Arc;

use engine::progress::ProgressCallback;
use engine::{Error, Store};
use protocol::error::ApiError;
use tokio::time::timeout;
use usage::task::blocking;

use crate::Context;
use crate::limits::LOG_SCAN_TIMEOUT;

/// Scans the log for a request.
///
/// # Errors
///
/// `overloaded` if the queue is full; `log_too_large` if [`LOG_SCAN_TIMEOUT`] is exceeded.
pub async fn scan_log<T: Send + 'static>(
    context: &Arc<Context>,
    scan: impl FnOnce(&Store, &mut ProgressCallback<'_>) -> engine::Result<T> + Send + 'static,
) -> Result<T, ApiError> {
    let queued = context.log_scan_queue.try_acquire();
    let _queued = queued.map_err(|_| ApiError::overloaded(5))?;
    let permit = timeout(LOG_SCAN_TIMEOUT, context.log_scan_permit()).await;
    let permit = permit.ok().and_then(Result::ok).ok_or_else(|| ApiError::overloaded(5))?;
    // Dropped with the request, which cancels the scan.
    let request = Arc::new(());
    let waiting = Arc::downgrade(&request);
    let context = context.clone();
    let began_ms = context.clock.monotonic_ms();
    let scanned = blocking(move || {
        let _permit = permit;
        let mut is_late = false;
        let scanned = scan(&context.store, &mut |_| {
            let passed_ms = context.clock.monotonic_ms().saturating_sub(began_ms);
            is_late |= passed_ms > LOG_SCAN_TIMEOUT.as_millis() as u64;
            match is_late || waiting.strong_count() == 0 || context.is_draining() {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            }
        });
        (scanned, is_late)
    });
    let scanned = scanned.await;
    drop(request);
    match scanned {
        (Err(Error::Cancelled), true) => Err(ApiError::log_too_large()),
        (scanned, _) => Ok(scanned?),
    }
}
