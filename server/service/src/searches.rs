//! Search thread pool: half as many searches at a time as there are processors, with a bounded queue.
//!
//! A search of many names uses two threads, so more at a time would finish none sooner, and take processors from
//! delivery. Non-goals: the search, and cancelling one that runs.

use std::io;
use std::num::NonZero;
use std::panic::resume_unwind;
use std::sync::Arc;

use tokio::sync::Semaphore;

use crate::limits::{SEARCH_QUEUE_TIMEOUT, SEARCHES_QUEUED_MAX};
use crate::thread_pool::{Priority, QueueFull, ThreadPool, cpu_count};

/// Search thread pool and its queue.
pub struct SearchPool {
    pool: ThreadPool,
    permits: Arc<Semaphore>,
}

impl SearchPool {
    /// Starts the threads.
    ///
    /// # Errors
    ///
    /// The error of starting a thread.
    pub fn start() -> io::Result<Self> {
        let threads = NonZero::new(cpu_count().get() / 2).unwrap_or(NonZero::<usize>::MIN);
        let pool = ThreadPool::start("trug-search", threads, SEARCHES_QUEUED_MAX, Priority::Idle)?;
        Ok(Self { pool, permits: Arc::new(Semaphore::new(threads.get())) })
    }

    /// Runs work on one of the threads, when its turn comes. A panic in it resumes in the caller.
    ///
    /// # Errors
    ///
    /// [`QueueFull`], after at most [`SEARCH_QUEUE_TIMEOUT`].
    pub async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, QueueFull> {
        let turn =
            self.pool.acquire(SEARCH_QUEUE_TIMEOUT, self.permits.clone().acquire_owned()).await?;
        Ok(self.pool.run(turn, work).await.unwrap_or_else(|panic| resume_unwind(panic)))
    }

    /// Returns the semaphore of running searches.
    pub fn permits(&self) -> &Arc<Semaphore> {
        &self.permits
    }

    /// Returns the number of waiting searches.
    pub fn waiting(&self) -> usize {
        self.pool.waiting()
    }
}
