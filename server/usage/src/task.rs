//! Blocking work and tasks of a request.
//!
//! Guarantees: no async worker waits for the disk or verifies long data; a panic resumes in the caller.

use std::future::Future;
use std::panic::resume_unwind;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::task::{JoinHandle, spawn_blocking};

use crate::spans::with_current_span;

/// Runs blocking work off the async workers. A panic in it resumes in the caller.
pub async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    let (result, shared) = SharedResult::empty();
    let work: Box<dyn FnOnce() + Send> = Box::new(move || shared.set(work()));
    result.after(spawn_blocking(work)).await
}

/// Runs a future to completion, even when the caller is dropped. A panic in it resumes in the caller.
pub async fn run_to_completion<T: Send + 'static>(
    work: impl Future<Output = T> + Send + 'static,
) -> T {
    let (result, shared) = SharedResult::empty();
    let work: Pin<Box<dyn Future<Output = ()> + Send>> =
        Box::pin(async move { shared.set(work.await) });
    result.after(tokio::spawn(with_current_span(work))).await
}

/// Awaits a spawned task. A panic in it resumes in the caller.
pub async fn join<T>(work: JoinHandle<T>) -> T {
    match work.await {
        Ok(done) => done,
        Err(error) => resume_unwind(error.into_panic()),
    }
}

/// Result of a task, which returns nothing by itself: the runtime's code for tasks is compiled once for each type of
/// task, and one type for each caller would make it an eighth of the server's code.
struct SharedResult<T>(Arc<Mutex<Option<T>>>);

impl<T> SharedResult<T> {
    fn empty() -> (Self, Self) {
        let result = Arc::new(Mutex::new(None));
        (Self(result.clone()), Self(result))
    }

    fn set(&self, result: T) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(result);
    }

    /// Waits for the task. A panic in it resumes in the caller.
    async fn after(self, task: JoinHandle<()>) -> T {
        join(task).await;
        let result = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        result.expect("a task sets its result, or panics")
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::oneshot;

    use super::*;

    #[tokio::test]
    async fn panic_of_a_task_resumes_in_the_caller() {
        let panicked = tokio::spawn(blocking(|| -> u8 { panic!("of work") })).await.unwrap_err();
        assert_eq!(*panicked.into_panic().downcast::<&str>().unwrap(), "of work");
        let work = run_to_completion(async { panic!("of a future") });
        let panicked = tokio::spawn(work).await.unwrap_err();
        assert_eq!(*panicked.into_panic().downcast::<&str>().unwrap(), "of a future");
    }

    #[tokio::test]
    async fn future_runs_to_completion_after_its_caller_is_dropped() {
        let (start, started) = oneshot::channel::<()>();
        let (finish, finished) = oneshot::channel();
        let caller = tokio::spawn(run_to_completion(async move {
            started.await.unwrap();
            finish.send(7).unwrap();
        }));
        tokio::task::yield_now().await;
        caller.abort();
        assert!(caller.await.unwrap_err().is_cancelled());
        start.send(()).unwrap();
        assert_eq!(finished.await.unwrap(), 7);
    }
}
