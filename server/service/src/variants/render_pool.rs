//! Render pool: low-priority threads for image processing, with a bounded queue.
//!
//! As many threads as processors, which use only otherwise idle processor time. Short jobs may occupy all threads but
//! one, which leaves a processor to delivery while thousands of small images are requested. Long jobs may as well, so
//! that short jobs never wait behind them. All threads work only if there are jobs of both kinds. Guarantees: queue
//! length and waiting time are bounded; the memory of concurrent jobs is bounded; a panic costs one request. Non-goals:
//! the jobs.

use std::io;
use std::num::NonZero;
use std::sync::Arc;
use std::time::Duration;

use engine::metrics::Counter;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use usage::spans::child_span;

use crate::crew::{Priority, QueueFull, ThreadPool};
use crate::limits::MIB;
use crate::limits::{IMAGE_JOBS_QUEUED_MAX, IMAGE_LONG_JOB_MS};

/// Estimated cost of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RenderCost {
    /// CPU time in milliseconds.
    pub ms: u64,
    /// Memory in bytes.
    pub bytes: u64,
}

/// Reason why a job was not done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RenderFailure {
    /// The queue is full, or its turn did not come in time.
    Busy,
    /// The job panicked.
    Panicked,
}

/// Render pool and its queue.
pub(super) struct RenderPool {
    pool: ThreadPool,
    threads: Arc<Semaphore>,
    /// Permits of short jobs.
    light: Arc<Semaphore>,
    /// Permits of long jobs.
    heavy: Arc<Semaphore>,
    /// Memory permits, one for each MiB.
    memory: Arc<Semaphore>,
    memory_mib: u32,
    wait: Duration,
    all_threads: usize,
    done: Counter,
    busy: Counter,
    panicked: Counter,
}

/// Metrics of the render pool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RenderPoolStats {
    /// Jobs that wait for their turn.
    pub waiting: usize,
    /// Running jobs.
    pub running: usize,
    /// Completed jobs since the start.
    pub done: u64,
    /// Jobs rejected by the full queue or the time-out since the start.
    pub busy: u64,
    /// Jobs that panicked since the start.
    pub panicked: u64,
    /// Memory limit of all jobs in bytes, and the estimated memory in use.
    pub memory_bytes_max: u64,
    pub memory_bytes: u64,
}

impl RenderPool {
    /// Starts the threads. `memory_bytes` limits the memory of all jobs, `wait` the waiting time.
    pub(super) fn start(
        threads: NonZero<usize>,
        memory_bytes: u64,
        wait: Duration,
    ) -> io::Result<Self> {
        let crew = ThreadPool::start("trug-image", threads, IMAGE_JOBS_QUEUED_MAX, Priority::Idle)?;
        let memory_mib = u32::try_from(memory_bytes / MIB).unwrap_or(u32::MAX).max(1);
        let all_but_one = threads.get().saturating_sub(1).max(1);
        Ok(Self {
            pool: crew,
            threads: Arc::new(Semaphore::new(threads.get())),
            light: Arc::new(Semaphore::new(all_but_one)),
            heavy: Arc::new(Semaphore::new(all_but_one)),
            memory: Arc::new(Semaphore::new(memory_mib as usize)),
            memory_mib,
            wait,
            all_threads: threads.get(),
            done: Counter::default(),
            busy: Counter::default(),
            panicked: Counter::default(),
        })
    }

    /// Runs a job on one of the threads, when its turn comes.
    pub(super) async fn run<T: Send + 'static>(
        &self,
        cost: RenderCost,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, RenderFailure> {
        let turn =
            child_span("image.wait", self.pool.acquire(self.wait, self.acquire_permits(cost)))
                .await;
        let turn = turn.map_err(|QueueFull| {
            self.busy.add(1);
            RenderFailure::Busy
        })?;
        let done = child_span("image.work", self.pool.run(turn, work)).await;
        let done = done.map_err(|_| RenderFailure::Panicked);
        let count = if done.is_ok() { &self.done } else { &self.panicked };
        count.add(1);
        done
    }

    /// Returns the metrics.
    pub(super) fn read(&self) -> RenderPoolStats {
        let memory_bytes_max = u64::from(self.memory_mib) * MIB;
        let free_bytes = self.memory.available_permits() as u64 * MIB;
        RenderPoolStats {
            waiting: self.pool.waiting(),
            running: self.all_threads.saturating_sub(self.threads.available_permits()),
            done: self.done.get(),
            busy: self.busy.get(),
            panicked: self.panicked.get(),
            memory_bytes_max,
            memory_bytes: memory_bytes_max.saturating_sub(free_bytes),
        }
    }

    /// Returns the permits that a job holds while it runs.
    async fn acquire_permits(&self, cost: RenderCost) -> [Option<OwnedSemaphorePermit>; 3] {
        let mib = u32::try_from(cost.bytes.div_ceil(MIB)).unwrap_or(u32::MAX);
        let kind = if cost.ms > IMAGE_LONG_JOB_MS { &self.heavy } else { &self.light };
        let kind = kind.clone().acquire_owned().await.ok();
        // A job that exceeds the memory limit on its own waits until it is the only one.
        let memory = self.memory.clone().acquire_many_owned(mib.min(self.memory_mib)).await.ok();
        let thread = self.threads.clone().acquire_owned().await.ok();
        [kind, memory, thread]
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    const LIGHT: RenderCost = RenderCost { ms: 1, bytes: 1 };
    const HEAVY: RenderCost = RenderCost { ms: IMAGE_LONG_JOB_MS + 1, bytes: 1 };

    fn workshop(threads: usize, memory_bytes: u64) -> RenderPool {
        waiting(threads, memory_bytes, Duration::from_millis(50))
    }

    fn waiting(threads: usize, memory_bytes: u64, wait: Duration) -> RenderPool {
        RenderPool::start(NonZero::new(threads).unwrap(), memory_bytes, wait).unwrap()
    }

    /// Starts a job that runs until the returned sender is dropped.
    fn held(
        workshop: &RenderPool,
        cost: RenderCost,
    ) -> (mpsc::Sender<()>, impl Future<Output = Result<(), RenderFailure>> + '_) {
        let (let_go, held) = mpsc::channel::<()>();
        (let_go, workshop.run(cost, move || held.recv().unwrap_or_default()))
    }

    #[tokio::test]
    async fn light_work_is_not_behind_heavy_work() {
        // The low-priority threads may be delayed by other load on the machine.
        let workshop = waiting(2, MIB, Duration::from_secs(60));
        let (first, a) = held(&workshop, RenderCost { bytes: 0, ..HEAVY });
        let (second, b) = held(&workshop, RenderCost { bytes: 0, ..HEAVY });
        let light = async {
            let done = workshop.run(RenderCost { bytes: 0, ..LIGHT }, || 7).await;
            drop((first, second));
            done
        };
        assert_eq!(tokio::join!(a, b, light), (Ok(()), Ok(()), Ok(7)));
    }

    #[tokio::test]
    async fn render_pool_leaves_a_cpu_for_delivery() {
        let workshop = workshop(2, MIB);
        let (let_go, working) = held(&workshop, RenderCost { bytes: 0, ..LIGHT });
        let others = async {
            let light = workshop.run(RenderCost { bytes: 0, ..LIGHT }, || ()).await;
            let heavy = workshop.run(RenderCost { bytes: 0, ..HEAVY }, || 7).await;
            drop(let_go);
            (light, heavy)
        };
        assert_eq!(tokio::join!(working, others), (Ok(()), (Err(RenderFailure::Busy), Ok(7))));
    }

    #[tokio::test]
    async fn render_queue_timeout_is_busy() {
        let workshop = workshop(1, MIB);
        let (let_go, working) = held(&workshop, LIGHT);
        let late = async {
            let late = workshop.run(LIGHT, || ()).await;
            drop(let_go);
            late
        };
        assert_eq!(tokio::join!(working, late), (Ok(()), Err(RenderFailure::Busy)));
        assert_eq!(workshop.run(LIGHT, || 7).await, Ok(7));
        let read = workshop.read();
        assert_eq!((read.done, read.busy, read.panicked), (2, 1, 0));
        assert_eq!((read.waiting, read.running, read.memory_bytes), (0, 0, 0));
    }

    #[tokio::test]
    async fn render_memory_is_shared_and_largest_runs_alone() {
        let workshop = workshop(4, 4 * MIB);
        let (let_go, working) = held(&workshop, RenderCost { bytes: 3 * MIB, ..LIGHT });
        let others = async {
            let fits = workshop.run(RenderCost { bytes: MIB, ..LIGHT }, || ()).await;
            let waits = workshop.run(RenderCost { bytes: 2 * MIB, ..LIGHT }, || ()).await;
            drop(let_go);
            (fits, waits)
        };
        let (_, others) = tokio::join!(working, others);
        assert_eq!(others, (Ok(()), Err(RenderFailure::Busy)));
        assert_eq!(workshop.run(RenderCost { bytes: 99 * MIB, ..LIGHT }, || ()).await, Ok(()));
    }

    #[tokio::test]
    async fn panicking_render_does_not_kill_the_pool() {
        let workshop = workshop(1, MIB);
        let panicked = workshop.run(LIGHT, || panic!("on purpose")).await;
        assert_eq!(panicked, Err::<(), _>(RenderFailure::Panicked));
        assert_eq!(workshop.run(LIGHT, || 7).await, Ok(7));
    }
}
