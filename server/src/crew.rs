//! Threads of their own for work that keeps processors busy, and a bound on those who wait for it.
//!
//! They get the time that no other thread wants, so that files go out as fast beside them.
//! Promises: at most so many wait, and for so long; who goes away while he waits gives his place back; work that panics
//! costs no thread. Never here: what the work is, and how much of it runs at once.

use std::io;
use std::num::NonZero;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread;
use std::time::Duration;

use thread_priority::{
    NormalThreadSchedulePolicy, ThreadPriority, ThreadSchedulePolicy,
    set_thread_priority_and_policy, thread_native_id,
};
use tokio::sync::oneshot;
use tokio::time::timeout;

/// Too many wait already, or the turn did not come in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Busy;

type Job = Box<dyn FnOnce() + Send>;

/// How many processors there are; one where the system does not tell.
pub fn processors() -> NonZero<usize> {
    thread::available_parallelism().unwrap_or(NonZero::<usize>::MIN)
}

/// The threads, and who waits for them.
pub struct Crew {
    jobs: mpsc::Sender<Job>,
    waiting: AtomicUsize,
    waiting_max: usize,
}

impl Crew {
    /// Starts the threads. `waiting_max` is how many may wait for a turn.
    ///
    /// # Errors
    ///
    /// Those of starting a thread.
    pub fn start(name: &str, threads: NonZero<usize>, waiting_max: usize) -> io::Result<Self> {
        let (jobs, queue) = mpsc::channel::<Job>();
        let queue = Arc::new(Mutex::new(queue));
        for _ in 0..threads.get() {
            let queue = queue.clone();
            thread::Builder::new().name(name.to_owned()).spawn(move || {
                give_way();
                loop {
                    let job = queue.lock().unwrap_or_else(PoisonError::into_inner).recv();
                    let Ok(job) = job else { break };
                    job();
                }
            })?;
        }
        Ok(Self { jobs, waiting: AtomicUsize::new(0), waiting_max })
    }

    /// Waits until `turn` comes, at most for `wait`.
    ///
    /// # Errors
    ///
    /// [`Busy`]: at once where too many wait, else in the end.
    pub async fn turn<T>(&self, wait: Duration, turn: impl Future<Output = T>) -> Result<T, Busy> {
        let _place = self.place()?;
        timeout(wait, turn).await.map_err(|_| Busy)
    }

    /// Does work whose turn has come on one of the threads: what it returns, or its panic. `turn` is held by the work
    /// itself, which goes on for a moment when nobody listens any more.
    pub async fn work<T: Send + 'static>(
        &self,
        turn: impl Send + 'static,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> thread::Result<T> {
        let (answer, answered) = oneshot::channel();
        let job = Box::new(move || {
            let done = catch_unwind(AssertUnwindSafe(work));
            drop(turn);
            let _ = answer.send(done);
        });
        // Where no thread is left the job is dropped, and with it the answer.
        let _ = self.jobs.send(job);
        answered.await.unwrap_or_else(|_| Err(Box::new("no thread is left")))
    }

    /// How many wait for their turn.
    pub fn waiting(&self) -> usize {
        self.waiting.load(Ordering::Relaxed)
    }

    fn place(&self) -> Result<Place<'_>, Busy> {
        let place = Place(&self.waiting);
        match self.waiting.fetch_add(1, Ordering::Relaxed) < self.waiting_max {
            true => Ok(place),
            false => Err(Busy),
        }
    }
}

/// Leaves the processor to every other thread that wants it, from now on; threads that this one starts do so, too.
///
/// It is `SCHED_IDLE` (sched(7)): whoever wakes takes the processor at once. From a thread of mere low priority Linux
/// takes it only at the next tick as a rule, up to 4 ms later. Where it is refused the work is done all the same.
fn give_way() {
    let idle = ThreadSchedulePolicy::Normal(NormalThreadSchedulePolicy::Idle);
    let _ = set_thread_priority_and_policy(thread_native_id(), ThreadPriority::Min, idle);
}

/// A place among those who wait.
struct Place<'a>(&'a AtomicUsize);

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use thread_priority::thread_schedule_policy;

    use super::*;

    const WAIT: Duration = Duration::from_millis(50);

    fn crew(waiting_max: usize) -> Crew {
        Crew::start("crew", NonZero::<usize>::MIN, waiting_max).unwrap()
    }

    #[tokio::test]
    async fn a_panic_costs_one_piece_of_work_and_no_thread() {
        let crew = crew(1);
        assert!(crew.work((), || panic!("on purpose")).await.is_err());
        assert_eq!(crew.work((), || 7).await.unwrap(), 7);
    }

    #[tokio::test]
    async fn its_threads_leave_the_processor_to_every_other() {
        let policy = crew(1).work((), thread_schedule_policy).await.unwrap();
        let idle = ThreadSchedulePolicy::Normal(NormalThreadSchedulePolicy::Idle);
        assert_eq!(policy, Ok(idle));
    }

    #[tokio::test]
    async fn no_more_wait_than_there_is_room_for() {
        let crew = crew(1);
        let place = crew.place().unwrap();
        assert_eq!(crew.turn(WAIT, async {}).await, Err(Busy));
        assert_eq!(crew.waiting(), 1);
        drop(place);
        assert_eq!(crew.turn(WAIT, async { 7 }).await, Ok(7));
        assert_eq!(crew.waiting(), 0);
    }

    #[tokio::test]
    async fn a_turn_that_does_not_come_in_time_is_given_up() {
        let crew = crew(1);
        assert_eq!(crew.turn(WAIT, std::future::pending::<()>()).await, Err(Busy));
        assert_eq!(crew.waiting(), 0);
    }
}
