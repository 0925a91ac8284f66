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

use crate::limits::LOG_SCAN_TIMEOUT;
use crate::state::AppState;

/// Scans the log for a request.
///
/// # Errors
///
/// `overloaded` if the queue is full; `log_too_large` if [`LOG_SCAN_TIMEOUT`] is exceeded.
pub async fn scan_log<T: Send + 'static>(
    app: &AppState,
    look: impl FnOnce(&Store, &mut ProgressCallback<'_>) -> engine::Result<T> + Send + 'static,
) -> Result<T, ApiError> {
    let place = app.log_scan_queue.clone().try_acquire_owned();
    let _place = place.map_err(|_| ApiError::overloaded(5))?;
    let turn = timeout(LOG_SCAN_TIMEOUT, app.log_scan_lock.clone().acquire_owned()).await;
    let turn = turn.ok().and_then(Result::ok).ok_or_else(|| ApiError::overloaded(5))?;
    // Dropped with the request, which cancels the scan.
    let asking = Arc::new(());
    let asked = Arc::downgrade(&asking);
    let app = app.clone();
    let began_ms = app.clock.monotonic_ms();
    let looked = blocking(move || {
        let _turn = turn;
        let mut is_late = false;
        let looked = look(&app.store, &mut |_| {
            let passed_ms = app.clock.monotonic_ms().saturating_sub(began_ms);
            is_late |= passed_ms > LOG_SCAN_TIMEOUT.as_millis() as u64;
            match is_late || asked.strong_count() == 0 || app.is_draining() {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            }
        });
        (looked, is_late)
    });
    let looked = looked.await;
    drop(asking);
    match looked {
        (Err(Error::Cancelled), true) => Err(ApiError::log_too_large()),
        (looked, _) => Ok(looked?),
    }
}
