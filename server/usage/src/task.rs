//! Blocking work and tasks of a request.
//!
//! Guarantees: no async worker waits for the disk or verifies long data; a panic resumes in the caller.

use std::future::Future;

use tokio::task::{JoinHandle, spawn_blocking};

use crate::spans::with_current_span;

/// Runs blocking work off the async workers. A panic in it resumes in the caller.
pub async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    join(spawn_blocking(work)).await
}

/// Awaits a spawned task. A panic in it resumes in the caller.
pub async fn join<T>(work: JoinHandle<T>) -> T {
    match work.await {
        Ok(done) => done,
        Err(error) => std::panic::resume_unwind(error.into_panic()),
    }
}

/// Runs a future to completion, even when the caller is dropped. A panic in it resumes in the caller.
pub async fn run_to_completion<T: Send + 'static>(
    work: impl Future<Output = T> + Send + 'static,
) -> T {
    join(tokio::spawn(with_current_span(work))).await
}
