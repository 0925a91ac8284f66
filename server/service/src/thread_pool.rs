//! Thread pool for work that keeps processors or disks busy, with a bounded queue.
//!
//! The threads run at low priority, so that data in memory is delivered as fast while they work. Guarantees: the queue
//! length and the waiting time are bounded; a cancelled waiter frees its slot; a panic costs no thread. Non-goals: the
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
pub struct QueueFull;

type Job = Box<dyn FnOnce() + Send>;

/// Scheduling priority of the threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Priority {
    /// Only otherwise idle processor time (`SCHED_IDLE`, sched(7)): on a machine busy with other programs they hardly
    /// progress.
    Idle,
    /// Niceness 10 above the server's: on a machine busy with other programs each of the threads gets about a tenth of
    /// a processor.
    Nice,
}

/// Returns the number of processors; one where the system does not report it.
pub fn cpu_count() -> NonZero<usize> {
    thread::available_parallelism().unwrap_or(NonZero::<usize>::MIN)
}

/// Thread pool and its queue.
pub struct ThreadPool {
    jobs: mpsc::Sender<Job>,
    waiting: AtomicUsize,
    waiting_max: usize,
}

impl ThreadPool {
    /// Starts the threads. `waiting_max` is the maximum number of waiters.
    ///
    /// # Errors
    ///
    /// The error of starting a thread.
    pub fn start(
        name: &str,
        threads: NonZero<usize>,
        waiting_max: usize,
        priority: Priority,
    ) -> io::Result<Self> {
        let (jobs, queue) = mpsc::channel::<Job>();
        let queue = Arc::new(Mutex::new(queue));
        for _ in 0..threads.get() {
            let queue = queue.clone();
            thread::Builder::new().name(name.to_owned()).spawn(move || {
                priority.apply();
                loop {
                    let job = queue.lock().unwrap_or_else(PoisonError::into_inner).recv();
                    let Ok(job) = job else { break };
                    job();
                    // Threads that woke up during the job would otherwise wait while jobs are queued: Linux since 6.6
                    // (EEVDF) does not preempt even a thread of low priority for one that has had more than its share.
                    thread::yield_now();
                }
            })?;
        }
        Ok(Self { jobs, waiting: AtomicUsize::new(0), waiting_max })
    }

    /// Waits until `turn` resolves, at most for `wait`.
    ///
    /// # Errors
    ///
    /// [`QueueFull`]: immediately if the queue is full, else after `wait`.
    pub async fn acquire<T>(
        &self,
        wait: Duration,
        turn: impl Future<Output = T>,
    ) -> Result<T, QueueFull> {
        let _slot = self.enqueue()?;
        timeout(wait, turn).await.map_err(|_| QueueFull)
    }

    /// Runs work whose turn has come on one of the threads, and returns its result or resumes its panic. `turn` is held
    /// until then.
    pub async fn run<T: Send + 'static>(
        &self,
        turn: impl Send + 'static,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> thread::Result<T> {
        let answered = self.submit(move || {
            let _turn = turn;
            work()
        });
        answered.await.unwrap_or_else(|_| Err(Box::new("thread pool exhausted")))
    }

    /// Queues work for the next free thread, and returns its result or its panic. Work whose receiver was dropped is
    /// skipped. The queue is unbounded; the caller bounds it.
    pub fn submit<T: Send + 'static>(
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

    fn enqueue(&self) -> Result<QueueSlot<'_>, QueueFull> {
        let slot = QueueSlot(&self.waiting);
        match self.waiting.fetch_add(1, Ordering::Relaxed) < self.waiting_max {
            true => Ok(slot),
            false => Err(QueueFull),
        }
    }
}

impl Priority {
    /// Applies the priority to the current thread and to threads that it starts. Ignores errors: the work is then done
    /// at normal priority.
    fn apply(self) {
        match self {
            Self::Idle => {
                let policy = ThreadSchedulePolicy::Normal(NormalThreadSchedulePolicy::Idle);
                let thread = thread_native_id();
                let _ = set_thread_priority_and_policy(thread, ThreadPriority::Min, policy);
            }
            Self::Nice => {
                let _ = rustix::process::nice(10);
            }
        }
    }
}

/// Slot in the queue.
struct QueueSlot<'a>(&'a AtomicUsize);

impl Drop for QueueSlot<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use thread_priority::thread_schedule_policy;

    use super::*;

    const WAIT: Duration = Duration::from_millis(50);

    fn pool(waiting_max: usize) -> ThreadPool {
        pool_of(waiting_max, Priority::Idle)
    }

    fn pool_of(waiting_max: usize, priority: Priority) -> ThreadPool {
        ThreadPool::start("test-pool", NonZero::<usize>::MIN, waiting_max, priority).unwrap()
    }

    #[tokio::test]
    async fn panicking_task_does_not_kill_its_thread() {
        let pool = pool(1);
        assert!(pool.run((), || panic!("on purpose")).await.is_err());
        assert_eq!(pool.run((), || 7).await.unwrap(), 7);
    }

    #[tokio::test]
    async fn pool_threads_run_at_low_priority() {
        let niceness = || rustix::process::getpriority_process(None).unwrap();
        let own = niceness();
        // The niceness of a `SCHED_IDLE` thread is meaningless.
        for (priority, wanted, least) in [
            (Priority::Idle, NormalThreadSchedulePolicy::Idle, i32::MIN),
            (Priority::Nice, NormalThreadSchedulePolicy::Other, (own + 10).min(19)),
        ] {
            let pool = pool_of(1, priority);
            let policy = pool.run((), thread_schedule_policy).await.unwrap();
            assert_eq!(policy, Ok(ThreadSchedulePolicy::Normal(wanted)));
            assert!(pool.run((), niceness).await.unwrap() >= least, "{priority:?}");
        }
        assert_eq!(niceness(), own, "other threads are not changed");
    }

    #[tokio::test]
    async fn abandoned_tasks_are_not_run() {
        let pool = pool(1);
        let (go, wait) = mpsc::channel::<()>();
        let first = pool.submit(move || wait.recv());
        drop(pool.submit(|| unreachable!("its receiver is dropped")));
        go.send(()).unwrap();
        assert!(first.await.unwrap().unwrap().is_ok());
        assert_eq!(pool.run((), || 7).await.unwrap(), 7);
    }

    #[tokio::test]
    async fn thread_pool_queue_is_bounded() {
        let pool = pool(1);
        let slot = pool.enqueue().unwrap();
        assert_eq!(pool.acquire(WAIT, async {}).await, Err(QueueFull));
        assert_eq!(pool.waiting(), 1);
        drop(slot);
        assert_eq!(pool.acquire(WAIT, async { 7 }).await, Ok(7));
        assert_eq!(pool.waiting(), 0);
    }

    #[tokio::test]
    async fn thread_pool_queue_wait_times_out() {
        let pool = pool(1);
        assert_eq!(pool.acquire(WAIT, std::future::pending::<()>()).await, Err(QueueFull));
        assert_eq!(pool.waiting(), 0);
    }

    #[tokio::test]
    async fn queued_jobs_are_run_before_the_threads_end() {
        let pool = pool(1);
        let (go, wait) = mpsc::channel::<()>();
        let first = pool.submit(move || wait.recv());
        let queued = [pool.submit(|| 1), pool.submit(|| 2)];
        drop(pool);
        go.send(()).unwrap();
        assert!(first.await.unwrap().unwrap().is_ok());
        for (result, expected) in queued.into_iter().zip([1, 2]) {
            assert_eq!(result.await.unwrap().unwrap(), expected);
        }
    }
}
