//! Searches of names: half as many at a time as there are processors, and a bound on those that wait.
//!
//! One of many names uses two threads, so more at a time would end none sooner, and keep processors from delivery.
//! Never here: what is searched, and when a search that runs is to stop.

use std::io;
use std::num::NonZero;
use std::panic::resume_unwind;
use std::sync::Arc;

use tokio::sync::Semaphore;

use crate::crew::{Busy, Courtesy, Crew, processors};
use crate::limits::{SEARCH_WAIT, SEARCHES_WAITING_MAX};

/// The threads that search, and who may use them.
pub struct Searches {
    crew: Crew,
    turns: Arc<Semaphore>,
}

impl Searches {
    /// Starts the threads.
    ///
    /// # Errors
    ///
    /// Those of starting a thread.
    pub fn start() -> io::Result<Self> {
        let threads = NonZero::new(processors().get() / 2).unwrap_or(NonZero::<usize>::MIN);
        let crew = Crew::start("trug-search", threads, SEARCHES_WAITING_MAX, Courtesy::Idle)?;
        Ok(Self { crew, turns: Arc::new(Semaphore::new(threads.get())) })
    }

    /// Does work on one of the threads, when its turn comes. A panic in it goes on in the caller.
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

    /// The turns: a permit for each search that may begin now.
    pub fn turns(&self) -> &Arc<Semaphore> {
        &self.turns
    }

    /// How many wait for theirs.
    pub fn waiting(&self) -> usize {
        self.crew.waiting()
    }
}
