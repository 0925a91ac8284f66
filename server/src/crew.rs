//! Threads of their own for work that keeps processors or disks busy, and a bound on those who wait for it.
//!
//! They let others go first, so that what is in memory goes out as fast beside them.
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

/// Whom the threads let go first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Courtesy {
    /// Everybody: theirs is the time that no other thread wants (`SCHED_IDLE`, sched(7)). Whoever wakes takes the
    /// processor at once; where other programs want all of it, they hardly get on.
    Idle,
    /// Others, by weight: where these want all processors, a seventieth is left for each of the threads (niceness 19).
    /// The processor is taken from them at the next tick as a rule, up to 4 ms later.
    Lowest,
}

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
    pub fn start(
        name: &str,
        threads: NonZero<usize>,
        waiting_max: usize,
        courtesy: Courtesy,
    ) -> io::Result<Self> {
        let (jobs, queue) = mpsc::channel::<Job>();
        let queue = Arc::new(Mutex::new(queue));
        for _ in 0..threads.get() {
            let queue = queue.clone();
            thread::Builder::new().name(name.to_owned()).spawn(move || {
                courtesy.show();
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

    /// Does work whose turn has come on one of the threads: what it returns, or its panic. `turn` is held until then.
    pub async fn work<T: Send + 'static>(
        &self,
        turn: impl Send + 'static,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> thread::Result<T> {
        let answered = self.begin(move || {
            let _turn = turn;
            work()
        });
        answered.await.unwrap_or_else(|_| Err(Box::new("thread pool exhausted")))
    }

    /// Has work done as soon as one of the threads is free: what it returns, or its panic. It is left undone where
    /// nobody listens any more by then. Any number may wait so; whoever calls has a bound.
    pub fn begin<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> oneshot::Receiver<thread::Result<T>> {
        let (answer, answered) = oneshot::channel();
        let job = Box::new(move || {
            if !answer.is_closed() {
                let _ = answer.send(catch_unwind(AssertUnwindSafe(work)));
            }
        });
        // Where no thread is left the job is dropped, and with it the answer.
        let _ = self.jobs.send(job);
        answered
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

impl Courtesy {
    /// This thread keeps to it from now on, and threads that it starts do so, too. Where that is refused the work is
    /// done all the same.
    fn show(self) {
        let policy = match self {
            Self::Idle => NormalThreadSchedulePolicy::Idle,
            Self::Lowest => NormalThreadSchedulePolicy::Other,
        };
        let policy = ThreadSchedulePolicy::Normal(policy);
        let _ = set_thread_priority_and_policy(thread_native_id(), ThreadPriority::Min, policy);
    }
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
        crew_of(waiting_max, Courtesy::Idle)
    }

    fn crew_of(waiting_max: usize, courtesy: Courtesy) -> Crew {
        Crew::start("crew", NonZero::<usize>::MIN, waiting_max, courtesy).unwrap()
    }

    #[tokio::test]
    async fn a_panic_costs_one_piece_of_work_and_no_thread() {
        let crew = crew(1);
        assert!(crew.work((), || panic!("on purpose")).await.is_err());
        assert_eq!(crew.work((), || 7).await.unwrap(), 7);
    }

    #[tokio::test]
    async fn its_threads_let_others_go_first() {
        let niceness = || rustix::process::getpriority_process(None).unwrap();
        let own = niceness();
        // Of a thread of the policy for idle ones the niceness says nothing.
        for (courtesy, wanted, least) in [
            (Courtesy::Idle, NormalThreadSchedulePolicy::Idle, i32::MIN),
            (Courtesy::Lowest, NormalThreadSchedulePolicy::Other, 19),
        ] {
            let crew = crew_of(1, courtesy);
            let policy = crew.work((), thread_schedule_policy).await.unwrap();
            assert_eq!(policy, Ok(ThreadSchedulePolicy::Normal(wanted)));
            assert!(crew.work((), niceness).await.unwrap() >= least, "{courtesy:?}");
        }
        assert_eq!(niceness(), own, "it is the thread's, not the program's");
    }

    #[tokio::test]
    async fn work_that_nobody_waits_for_any_more_is_left_undone() {
        let crew = crew(1);
        let (go, wait) = mpsc::channel::<()>();
        let first = crew.begin(move || wait.recv());
        let given_up = crew.begin(|| unreachable!("nobody wants it"));
        drop(given_up);
        go.send(()).unwrap();
        assert!(first.await.unwrap().unwrap().is_ok());
        assert_eq!(crew.work((), || 7).await.unwrap(), 7);
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
