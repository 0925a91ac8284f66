//! Thread pool for work that keeps processors or disks busy, with a bounded queue.
//!
//! The threads run at low priority, so that data in memory is delivered as fast while they work. Guarantees: the queue
//! length and the waiting time are bounded; a cancelled waiter frees its place; a panic costs no thread. Non-goals: the
//! work, and how much of it runs at once.

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

/// Error of a full queue, or of a turn that did not come in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Busy;

type Job = Box<dyn FnOnce() + Send>;

/// Scheduling priority of the threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Courtesy {
    /// Only otherwise idle processor time (`SCHED_IDLE`, sched(7)): any thread that wakes up preempts them, and on a
    /// machine busy with other programs they hardly progress.
    Idle,
    /// Lowest weight (niceness 19): on a busy machine each of the threads gets about a seventieth of a processor. A
    /// waking thread preempts them at the next tick as a rule, up to 4 ms later.
    Lowest,
}

/// Returns the number of processors; one where the system does not report it.
pub fn processors() -> NonZero<usize> {
    thread::available_parallelism().unwrap_or(NonZero::<usize>::MIN)
}

/// Thread pool and its queue.
pub struct Crew {
    jobs: mpsc::Sender<Job>,
    waiting: AtomicUsize,
    waiting_max: usize,
}

impl Crew {
    /// Starts the threads. `waiting_max` is the maximum number of waiters.
    ///
    /// # Errors
    ///
    /// The error of starting a thread.
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

    /// Waits until `turn` resolves, at most for `wait`.
    ///
    /// # Errors
    ///
    /// [`Busy`]: immediately if the queue is full, else after `wait`.
    pub async fn turn<T>(&self, wait: Duration, turn: impl Future<Output = T>) -> Result<T, Busy> {
        let _place = self.place()?;
        timeout(wait, turn).await.map_err(|_| Busy)
    }

    /// Runs work whose turn has come on one of the threads, and returns its result or resumes its panic. `turn` is held
    /// until then.
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

    /// Queues work for the next free thread, and returns its result or its panic. Work whose receiver was dropped is
    /// skipped. The queue is unbounded; the caller bounds it.
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
        // Without a thread the job is dropped, and its sender with it.
        let _ = self.jobs.send(job);
        answered
    }

    /// Returns the number of waiters.
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
    /// Applies the priority to the current thread and to threads that it starts. Ignores errors: the work is then done
    /// at normal priority.
    fn show(self) {
        let policy = match self {
            Self::Idle => NormalThreadSchedulePolicy::Idle,
            Self::Lowest => NormalThreadSchedulePolicy::Other,
        };
        let policy = ThreadSchedulePolicy::Normal(policy);
        let _ = set_thread_priority_and_policy(thread_native_id(), ThreadPriority::Min, policy);
    }
}

/// Place in the queue.
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
        // The niceness of a `SCHED_IDLE` thread is meaningless.
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
