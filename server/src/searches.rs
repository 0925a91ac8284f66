//! Search thread pool: half as many searches at a time as there are processors, with a bounded queue.
//!
//! A search of many names uses two threads, so more at a time would finish none sooner, and take processors from
//! delivery. Non-goals: the search, and cancelling one that runs.

use std::io;
use std::num::NonZero;
use std::panic::resume_unwind;
use std::sync::Arc;

use tokio::sync::Semaphore;

use crate::crew::{Busy, Courtesy, Crew, processors};
use crate::limits::{SEARCH_WAIT, SEARCHES_WAITING_MAX};

/// Search thread pool and its queue.
pub struct Searches {
    crew: Crew,
    turns: Arc<Semaphore>,
}

impl Searches {
    /// Starts the threads.
    ///
    /// # Errors
    ///
    /// The error of starting a thread.
    pub fn start() -> io::Result<Self> {
        let threads = NonZero::new(processors().get() / 2).unwrap_or(NonZero::<usize>::MIN);
        let crew = Crew::start("trug-search", threads, SEARCHES_WAITING_MAX, Courtesy::Idle)?;
        Ok(Self { crew, turns: Arc::new(Semaphore::new(threads.get())) })
    }

    /// Runs work on one of the threads, when its turn comes. A panic in it resumes in the caller.
    ///
    /// # Errors
    ///
    /// [`Busy`], after at most [`SEARCH_WAIT`].
    pub async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Busy> {
        let turn = self.crew.turn(SEARCH_WAIT, self.turns.clone().acquire_owned()).await?;
        Ok(self.crew.work(turn, work).await.unwrap_or_else(|panic| resume_unwind(panic)))
    }

    /// Returns the semaphore of running searches.
    pub fn turns(&self) -> &Arc<Semaphore> {
        &self.turns
    }

    /// Returns the number of waiting searches.
    pub fn waiting(&self) -> usize {
        self.crew.waiting()
    }
}
