//! Threads of their own for searches, and a bound on those that wait.
//!
//! A search of many names keeps processors busy, so as many run as there are processors, at a lower priority than the
//! rest of the server: files go out as fast beside them.
//! Promises: at most so many wait, and for so long; who goes away while he waits gives his place back.
//! Never here: what is searched, and when a search that runs is to stop.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread;

use tokio::sync::{Semaphore, oneshot};
use tokio::time::timeout;

use crate::limits::{SEARCH_NICENESS, SEARCH_WAIT, SEARCHES_WAITING_MAX};

/// Too many wait already, or the turn did not come in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Busy;

type Job = Box<dyn FnOnce() + Send>;

/// The threads, and who may use them.
pub struct Searches {
    jobs: mpsc::Sender<Job>,
    turns: Arc<Semaphore>,
    waiting: AtomicUsize,
}

impl Searches {
    /// Starts the threads.
    pub fn start() -> io::Result<Self> {
        let threads = thread::available_parallelism().map_or(1, |count| count.get());
        let (jobs, queue) = mpsc::channel::<Job>();
        let queue = Arc::new(Mutex::new(queue));
        for _ in 0..threads {
            let queue = queue.clone();
            thread::Builder::new().name("trug-search".to_owned()).spawn(move || {
                // On Linux this is the thread's alone, and that of those that it starts. Where it is refused the work
                // is done all the same.
                let _ = rustix::process::nice(SEARCH_NICENESS);
                loop {
                    let job = queue.lock().unwrap_or_else(PoisonError::into_inner).recv();
                    let Ok(job) = job else { break };
                    job();
                }
            })?;
        }
        let turns = Arc::new(Semaphore::new(threads));
        Ok(Self { jobs, turns, waiting: AtomicUsize::new(0) })
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
        let turn = {
            let _place = Place::take(&self.waiting)?;
            let turn = timeout(SEARCH_WAIT, self.turns.clone().acquire_owned()).await;
            turn.ok().and_then(Result::ok).ok_or(Busy)?
        };
        let (answer, answered) = oneshot::channel();
        let job = Box::new(move || {
            let done = catch_unwind(AssertUnwindSafe(work));
            // Held by the work itself: it goes on for a moment when nobody listens any more.
            drop(turn);
            let _ = answer.send(done);
        });
        self.jobs.send(job).map_err(|_| Busy)?;
        answered.await.map_err(|_| Busy)?.map_err(|panic| resume_unwind(panic))
    }

    /// The turns: a permit for each search that may begin now.
    pub fn turns(&self) -> &Arc<Semaphore> {
        &self.turns
    }

    /// How many wait for theirs.
    pub fn waiting(&self) -> usize {
        self.waiting.load(Ordering::Relaxed)
    }
}

/// A place among those who wait.
struct Place<'a>(&'a AtomicUsize);

impl<'a> Place<'a> {
    fn take(waiting: &'a AtomicUsize) -> Result<Self, Busy> {
        let place = Self(waiting);
        match waiting.fetch_add(1, Ordering::Relaxed) {
            SEARCHES_WAITING_MAX.. => Err(Busy),
            _ => Ok(place),
        }
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_panic_costs_one_search_and_no_thread() {
        let searches = Arc::new(Searches::start().unwrap());
        let count = searches.turns().available_permits();
        for _ in 0..=count {
            let searches = Arc::clone(&searches);
            let panicked = tokio::spawn(async move { searches.run(|| panic!("as asked")).await });
            let panicked: Result<Result<(), Busy>, _> = panicked.await;
            assert!(panicked.unwrap_err().is_panic());
        }
        assert_eq!(searches.run(|| 7).await, Ok(7));
        assert_eq!((searches.turns().available_permits(), searches.waiting()), (count, 0));
    }
}
