//! Threads of their own for work on pictures, with a bound on everything that waits.
//!
//! As many threads as processors, at a lower priority than the rest of the server: pictures get the time that nobody
//! else wants. Work that takes long may hold all of them but one, so that small work is never behind it.
//! Promises: at most so much waits, and for so long; the memory of what runs at once has a bound; work that panics
//! costs one request. Never here: what the work is.

use std::io;
use std::num::NonZero;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};
use tokio::time::timeout;

use crate::limits::{IMAGE_HEAVY_MS, IMAGE_JOBS_WAITING_MAX, IMAGE_NICENESS, MIB};

/// What a piece of work costs, as far as it is known before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cost {
    /// Milliseconds of a processor.
    pub ms: u64,
    /// Bytes of memory.
    pub bytes: u64,
}

/// Why work was not done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Undone {
    /// Too much waits already, or its turn did not come in time.
    Busy,
    /// It panicked.
    Panicked,
}

type Job = Box<dyn FnOnce() + Send>;

/// The threads, and who may use them.
pub(super) struct Workshop {
    jobs: mpsc::Sender<Job>,
    threads: Arc<Semaphore>,
    /// Turns for what takes long.
    heavy: Arc<Semaphore>,
    /// A permit for each MiB.
    memory: Arc<Semaphore>,
    memory_mib: u32,
    waiting: AtomicUsize,
    wait: Duration,
}

impl Workshop {
    /// Starts the threads. `memory_bytes` is what all work together may take, `wait` how long it waits for its turn.
    pub(super) fn start(
        threads: NonZero<usize>,
        memory_bytes: u64,
        wait: Duration,
    ) -> io::Result<Self> {
        let (jobs, queue) = mpsc::channel::<Job>();
        let queue = Arc::new(Mutex::new(queue));
        for _ in 0..threads.get() {
            let queue = queue.clone();
            thread::Builder::new().name("trug-image".to_owned()).spawn(move || {
                // On Linux this is the thread's alone. Where it is refused the work is done all the same.
                let _ = rustix::process::nice(IMAGE_NICENESS);
                loop {
                    let job = queue.lock().unwrap_or_else(PoisonError::into_inner).recv();
                    let Ok(job) = job else { break };
                    job();
                }
            })?;
        }
        let memory_mib = u32::try_from(memory_bytes / MIB).unwrap_or(u32::MAX).max(1);
        let heavy = threads.get().saturating_sub(1).max(1);
        Ok(Self {
            jobs,
            threads: Arc::new(Semaphore::new(threads.get())),
            heavy: Arc::new(Semaphore::new(heavy)),
            memory: Arc::new(Semaphore::new(memory_mib as usize)),
            memory_mib,
            waiting: AtomicUsize::new(0),
            wait,
        })
    }

    /// Does work on one of the threads, when its turn comes.
    pub(super) async fn run<T: Send + 'static>(
        &self,
        cost: Cost,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Undone> {
        let turn = self.turn(cost).await?;
        let (answer, answered) = oneshot::channel();
        let job = Box::new(move || {
            let done = catch_unwind(AssertUnwindSafe(work));
            drop(turn);
            let _ = answer.send(done.map_err(|_| Undone::Panicked));
        });
        self.jobs.send(job).map_err(|_| Undone::Busy)?;
        answered.await.unwrap_or(Err(Undone::Panicked))
    }

    /// What one piece of work holds while it runs.
    async fn turn(&self, cost: Cost) -> Result<[Option<OwnedSemaphorePermit>; 3], Undone> {
        let _place = Place::take(&self.waiting)?;
        let mib = u32::try_from(cost.bytes.div_ceil(MIB)).unwrap_or(u32::MAX);
        let turn = async {
            let heavy = match cost.ms > IMAGE_HEAVY_MS {
                true => self.heavy.clone().acquire_owned().await.ok(),
                false => None,
            };
            // What alone takes more than there is for all waits until it is alone.
            let memory = self.memory.clone().acquire_many_owned(mib.min(self.memory_mib));
            let memory = memory.await.ok();
            let thread = self.threads.clone().acquire_owned().await.ok();
            [heavy, memory, thread]
        };
        timeout(self.wait, turn).await.map_err(|_| Undone::Busy)
    }
}

/// A place among those who wait.
struct Place<'a>(&'a AtomicUsize);

impl<'a> Place<'a> {
    fn take(waiting: &'a AtomicUsize) -> Result<Self, Undone> {
        let place = Self(waiting);
        match waiting.fetch_add(1, Ordering::Relaxed) {
            IMAGE_JOBS_WAITING_MAX.. => Err(Undone::Busy),
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

    const LIGHT: Cost = Cost { ms: 1, bytes: 1 };
    const HEAVY: Cost = Cost { ms: IMAGE_HEAVY_MS + 1, bytes: 1 };

    fn workshop(threads: usize, memory_bytes: u64) -> Workshop {
        let wait = Duration::from_millis(50);
        Workshop::start(NonZero::new(threads).unwrap(), memory_bytes, wait).unwrap()
    }

    /// Work that goes on until the returned sender is dropped.
    fn held(
        workshop: &Workshop,
        cost: Cost,
    ) -> (mpsc::Sender<()>, impl Future<Output = Result<(), Undone>> + '_) {
        let (let_go, held) = mpsc::channel::<()>();
        (let_go, workshop.run(cost, move || held.recv().unwrap_or_default()))
    }

    #[tokio::test]
    async fn light_work_is_not_behind_heavy_work() {
        let workshop = workshop(2, MIB);
        let (first, a) = held(&workshop, Cost { bytes: 0, ..HEAVY });
        let (second, b) = held(&workshop, Cost { bytes: 0, ..HEAVY });
        let light = async {
            let done = workshop.run(Cost { bytes: 0, ..LIGHT }, || 7).await;
            drop((first, second));
            done
        };
        assert_eq!(tokio::join!(a, b, light), (Ok(()), Ok(()), Ok(7)));
    }

    #[tokio::test]
    async fn what_does_not_get_its_turn_in_time_is_told_so() {
        let workshop = workshop(1, MIB);
        let (let_go, working) = held(&workshop, LIGHT);
        let late = async {
            let late = workshop.run(LIGHT, || ()).await;
            drop(let_go);
            late
        };
        assert_eq!(tokio::join!(working, late), (Ok(()), Err(Undone::Busy)));
        assert_eq!(workshop.run(LIGHT, || 7).await, Ok(7));
    }

    #[tokio::test]
    async fn memory_is_shared_and_the_largest_work_runs_alone() {
        let workshop = workshop(4, 4 * MIB);
        let (let_go, working) = held(&workshop, Cost { bytes: 3 * MIB, ..LIGHT });
        let others = async {
            let fits = workshop.run(Cost { bytes: MIB, ..LIGHT }, || ()).await;
            let waits = workshop.run(Cost { bytes: 2 * MIB, ..LIGHT }, || ()).await;
            drop(let_go);
            (fits, waits)
        };
        let (_, others) = tokio::join!(working, others);
        assert_eq!(others, (Ok(()), Err(Undone::Busy)));
        assert_eq!(workshop.run(Cost { bytes: 99 * MIB, ..LIGHT }, || ()).await, Ok(()));
    }

    #[tokio::test]
    async fn a_panic_costs_one_piece_of_work() {
        let workshop = workshop(1, MIB);
        let panicked = workshop.run(LIGHT, || panic!("on purpose")).await;
        assert_eq!(panicked, Err::<(), _>(Undone::Panicked));
        assert_eq!(workshop.run(LIGHT, || 7).await, Ok(7));
    }

    #[tokio::test]
    async fn no_more_waits_than_there_is_room_for() {
        let workshop = workshop(1, MIB);
        workshop.waiting.store(IMAGE_JOBS_WAITING_MAX, Ordering::Relaxed);
        assert_eq!(workshop.run(LIGHT, || ()).await, Err(Undone::Busy));
        workshop.waiting.store(IMAGE_JOBS_WAITING_MAX - 1, Ordering::Relaxed);
        assert_eq!(workshop.run(LIGHT, || ()).await, Ok(()));
    }
}
