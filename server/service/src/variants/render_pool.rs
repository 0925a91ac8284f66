//! Render pool: low-priority threads for image processing, with a bounded queue.
//!
//! The threads use only otherwise idle processor time. Short jobs may occupy all processors but one, which remains for
//! delivery while thousands of small images are requested; so may long jobs, on other threads, so that short jobs never
//! wait behind them. While delivery is idle, one more job runs. Guarantees: queue length and waiting time are bounded;
//! the memory of concurrent jobs is bounded; a panic costs one request. Non-goals: the jobs.

use std::io;
use std::num::NonZero;
use std::sync::Arc;
use std::time::Duration;

use engine::metrics::Counter;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::sleep;
use usage::spans::child_span;

use crate::delivery_activity::{DELIVERY_IDLE, DeliveryActivity};
use crate::limits::MIB;
use crate::limits::{IMAGE_JOBS_QUEUED_MAX, IMAGE_LONG_JOB_MS};
use crate::thread_pool::{Priority, QueueFull, ThreadPool};

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
    /// Permit of a job of either kind that begins while delivery is idle.
    spare: Arc<Semaphore>,
    deliveries: Arc<DeliveryActivity>,
    /// Memory permits, one for each MiB.
    memory: Arc<Semaphore>,
    memory_mib: u32,
    wait: Duration,
    thread_count: usize,
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
    /// Starts one thread more than processors. `memory_bytes` limits the memory of all jobs, `wait` the waiting time.
    pub(super) fn start(
        processors: NonZero<usize>,
        memory_bytes: u64,
        wait: Duration,
        deliveries: Arc<DeliveryActivity>,
    ) -> io::Result<Self> {
        let threads = processors.saturating_add(1);
        let pool = ThreadPool::start("trug-image", threads, IMAGE_JOBS_QUEUED_MAX, Priority::Idle)?;
        let memory_mib = u32::try_from(memory_bytes / MIB).unwrap_or(u32::MAX).max(1);
        let all_but_one = processors.get().saturating_sub(1);
        Ok(Self {
            pool,
            threads: Arc::new(Semaphore::new(threads.get())),
            light: Arc::new(Semaphore::new(all_but_one.max(1))),
            heavy: Arc::new(Semaphore::new(all_but_one.max(1))),
            spare: Arc::new(Semaphore::new(all_but_one.min(1))),
            deliveries,
            memory: Arc::new(Semaphore::new(memory_mib as usize)),
            memory_mib,
            wait,
            thread_count: threads.get(),
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
            running: self.thread_count.saturating_sub(self.threads.available_permits()),
            done: self.done.get(),
            busy: self.busy.get(),
            panicked: self.panicked.get(),
            memory_bytes_max,
            memory_bytes: memory_bytes_max.saturating_sub(free_bytes),
        }
    }

    /// Waits until delivery is idle and no other job uses its processor.
    async fn acquire_spare(&self) -> Option<OwnedSemaphorePermit> {
        let permit = self.spare.clone().acquire_owned().await.ok();
        while !self.deliveries.is_idle() {
            sleep(DELIVERY_IDLE).await;
        }
        permit
    }

    /// Returns the permits that a job holds while it runs.
    async fn acquire_permits(&self, cost: RenderCost) -> [Option<OwnedSemaphorePermit>; 3] {
        let mib = u32::try_from(cost.bytes.div_ceil(MIB)).unwrap_or(u32::MAX);
        let kind = if cost.ms > IMAGE_LONG_JOB_MS { &self.heavy } else { &self.light };
        let kind = tokio::select! {
            biased;
            permit = kind.clone().acquire_owned() => permit.ok(),
            permit = self.acquire_spare() => permit,
        };
        // A job that exceeds the memory limit on its own waits until it is the only one.
        let memory = self.memory.clone().acquire_many_owned(mib.min(self.memory_mib)).await.ok();
        let thread = self.threads.clone().acquire_owned().await.ok();
        [kind, memory, thread]
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use engine::clock::SystemClock;

    use super::*;

    const LIGHT: RenderCost = RenderCost { ms: 1, bytes: 1 };
    const HEAVY: RenderCost = RenderCost { ms: IMAGE_LONG_JOB_MS + 1, bytes: 1 };

    fn pool(processors: usize, memory_bytes: u64) -> RenderPool {
        pool_with_wait(processors, memory_bytes, Duration::from_millis(50))
    }

    fn pool_with_wait(processors: usize, memory_bytes: u64, wait: Duration) -> RenderPool {
        let processors = NonZero::new(processors).unwrap();
        let deliveries = Arc::new(DeliveryActivity::start(Arc::new(SystemClock::new())));
        RenderPool::start(processors, memory_bytes, wait, deliveries).unwrap()
    }

    /// Starts a job that runs until the returned sender is dropped.
    fn held(
        pool: &RenderPool,
        cost: RenderCost,
    ) -> (mpsc::Sender<()>, impl Future<Output = Result<(), RenderFailure>> + '_) {
        let (let_go, held) = mpsc::channel::<()>();
        (let_go, pool.run(cost, move || held.recv().unwrap_or_default()))
    }

    #[tokio::test]
    async fn light_work_is_not_behind_heavy_work() {
        // The low-priority threads may be delayed by other load on the machine.
        let pool = pool_with_wait(2, MIB, Duration::from_secs(60));
        let (first, a) = held(&pool, RenderCost { bytes: 0, ..HEAVY });
        let (second, b) = held(&pool, RenderCost { bytes: 0, ..HEAVY });
        let light = async {
            let done = pool.run(RenderCost { bytes: 0, ..LIGHT }, || 7).await;
            drop((first, second));
            done
        };
        assert_eq!(tokio::join!(a, b, light), (Ok(()), Ok(()), Ok(7)));
    }

    #[tokio::test]
    async fn render_pool_leaves_a_cpu_for_delivery() {
        let pool = pool(2, MIB);
        let (let_go, working) = held(&pool, RenderCost { bytes: 0, ..LIGHT });
        let others = async {
            let light = pool.run(RenderCost { bytes: 0, ..LIGHT }, || ()).await;
            let heavy = pool.run(RenderCost { bytes: 0, ..HEAVY }, || 7).await;
            drop(let_go);
            (light, heavy)
        };
        let both = async { tokio::join!(working, others) };
        let delivering = async {
            loop {
                pool.deliveries.record();
                sleep(Duration::from_millis(1)).await;
            }
        };
        let done = tokio::select! { done = both => done, () = delivering => unreachable!() };
        assert_eq!(done, (Ok(()), (Err(RenderFailure::Busy), Ok(7))));
    }

    #[tokio::test]
    async fn render_pool_uses_the_cpu_of_idle_delivery() {
        let pool = pool_with_wait(2, MIB, Duration::from_secs(60));
        let (let_go, working) = held(&pool, RenderCost { bytes: 0, ..LIGHT });
        let other = async {
            let other = pool.run(RenderCost { bytes: 0, ..LIGHT }, || 7).await;
            drop(let_go);
            other
        };
        assert_eq!(tokio::join!(working, other), (Ok(()), Ok(7)));
    }

    #[tokio::test]
    async fn render_queue_timeout_is_busy() {
        let pool = pool(1, MIB);
        let (let_go, working) = held(&pool, LIGHT);
        let late = async {
            let late = pool.run(LIGHT, || ()).await;
            drop(let_go);
            late
        };
        assert_eq!(tokio::join!(working, late), (Ok(()), Err(RenderFailure::Busy)));
        assert_eq!(pool.run(LIGHT, || 7).await, Ok(7));
        let read = pool.read();
        assert_eq!((read.done, read.busy, read.panicked), (2, 1, 0));
        assert_eq!((read.waiting, read.running, read.memory_bytes), (0, 0, 0));
    }

    #[tokio::test]
    async fn render_memory_is_shared_and_largest_runs_alone() {
        let pool = pool(4, 4 * MIB);
        let (let_go, working) = held(&pool, RenderCost { bytes: 3 * MIB, ..LIGHT });
        let others = async {
            let fits = pool.run(RenderCost { bytes: MIB, ..LIGHT }, || ()).await;
            let waits = pool.run(RenderCost { bytes: 2 * MIB, ..LIGHT }, || ()).await;
            drop(let_go);
            (fits, waits)
        };
        let (_, others) = tokio::join!(working, others);
        assert_eq!(others, (Ok(()), Err(RenderFailure::Busy)));
        assert_eq!(pool.run(RenderCost { bytes: 99 * MIB, ..LIGHT }, || ()).await, Ok(()));
    }

    #[tokio::test]
    async fn panicking_render_does_not_kill_the_pool() {
        let pool = pool(1, MIB);
        let panicked = pool.run(LIGHT, || panic!("on purpose")).await;
        assert_eq!(panicked, Err::<(), _>(RenderFailure::Panicked));
        assert_eq!(pool.run(LIGHT, || 7).await, Ok(7));
    }
}
