//! Background threads of an open store: committer, checkpoint, segment rollover, index verification, scrub, and
//! compaction.
//!
//! Each is a loop over a step function that tests call directly. The first three end when the queue is closed and
//! empty, the others as soon as the store is closing.

use std::mem;
use std::ops::ControlFlow;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::{self, Builder, JoinHandle};
use std::time::Duration;

use crate::clock::Clock;
use crate::commit::{self, CommitLatency, CommitStep, Committer, HealthState, Queue, Rollover};
use crate::compaction::{CompactionOptions, CompactionRules, Compactor, Throttle};
use crate::error::{Error, Result};
use crate::index::Index;
use crate::limits;
use crate::metrics::Metrics;
use crate::replication::{Replication, ReplicationStep};
use crate::scrub::Scrubber;
use crate::segment::SegmentSet;

/// Threads of an open store.
pub(super) struct Threads {
    running: Mutex<Vec<JoinHandle<()>>>,
    closing: Arc<ShutdownSignal>,
}

/// Dependencies of the threads.
pub(super) struct ThreadContext {
    pub(super) committer: Arc<Mutex<Committer>>,
    pub(super) queue: Arc<Queue>,
    pub(super) rollover: Arc<Rollover>,
    pub(super) index: Arc<Index>,
    pub(super) segments: Arc<SegmentSet>,
    pub(super) health: Arc<HealthState>,
    pub(super) metrics: Arc<Metrics>,
    pub(super) needs_index_verify: bool,
    pub(super) scrubber: Option<Arc<Mutex<Scrubber>>>,
    pub(super) replication: Option<Arc<Replication>>,
    pub(super) compaction: Option<CompactionThreadContext>,
}

/// Dependencies of the compaction thread.
pub(super) struct CompactionThreadContext {
    pub(super) compactor: Arc<Compactor>,
    pub(super) load: Arc<CommitLatency>,
    pub(super) health: Arc<HealthState>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) options: CompactionOptions,
}

impl Threads {
    /// Creates no threads: the owner of the store steps it.
    pub(super) fn none() -> Self {
        Self { running: Mutex::default(), closing: Arc::default() }
    }

    /// Starts all threads.
    pub(super) fn start(work: ThreadContext) -> Result<Self> {
        let ThreadContext { committer, queue, rollover, index, segments, health, metrics, .. } =
            work;
        let closing = Arc::new(ShutdownSignal::default());
        let frozen = Arc::new(CheckpointSignal::default());
        let commits = {
            let (rollover, frozen) = (Arc::clone(&rollover), Arc::clone(&frozen));
            spawn("trug-commit", move || {
                run_committer(&committer, &queue, &frozen);
                frozen.close();
                rollover.stop();
            })?
        };
        let mut running = vec![commits, spawn("trug-segments", move || rollover.run())?];
        if work.needs_index_verify {
            let index = Arc::clone(&index);
            let closing = Arc::clone(&closing);
            running.push(spawn("trug-index-audit", move || {
                let mut is_miscounted = false;
                let view = index.view();
                let audited = view.verify_entries(
                    |_| is_miscounted = true,
                    |key, value| match closing.is_triggered() {
                        true => Err(Error::Closed),
                        false => view.verify_lookup(key, value),
                    },
                );
                if is_miscounted || audited.is_err_and(|error| Index::is_damage(&error)) {
                    index.mark_corrupt();
                }
            })?);
        }
        if let Some(scrubber) = work.scrubber {
            let closing = Arc::clone(&closing);
            running.push(spawn("trug-scrub", move || run_scrubber(&scrubber, &closing))?);
        }
        if let Some(compaction) = work.compaction {
            let closing = Arc::clone(&closing);
            running.push(spawn("trug-compact", move || compaction.run(&closing))?);
        }
        if let Some(replication) = work.replication {
            if replication.acknowledges_remotely() {
                let (waiting, stopped) = (Arc::clone(&replication), Arc::clone(&closing));
                running.push(spawn("trug-ack-expiry", move || {
                    while !stopped.wait_timeout(ACK_EXPIRY_POLL) {
                        waiting.expire_acknowledgements();
                    }
                })?);
            }
            let (shipping, stopped) = (Arc::clone(&replication), Arc::clone(&closing));
            running.push(spawn("trug-ship", move || run_shipping(&shipping, &stopped))?);
            let stopped = Arc::clone(&closing);
            running.push(spawn("trug-upload", move || run_upkeep(&replication, &stopped))?);
        }
        running.push(spawn("trug-checkpoint", move || {
            while frozen.wait() {
                while let Err(Error::NoSpace) =
                    commit::checkpoint(&index, &segments, &health, &metrics)
                {
                    if health.require_writable().is_err() || frozen.wait_retry_delay() {
                        break;
                    }
                }
            }
        })?);
        Ok(Self { running: Mutex::new(running), closing })
    }

    /// Returns whether the threads are ending because the store is closing.
    pub(super) fn are_ending(&self) -> bool {
        self.closing.is_triggered()
    }

    /// Waits until all threads have ended; the queue must be closed. Must not be called by one of them.
    pub(super) fn join(&self) {
        join_all(self.end());
    }

    /// Waits until all threads have ended, and drops `held`; the queue must be closed. If this is one of the threads,
    /// which happens when a callback drops the last handle of the store, another thread waits.
    pub(super) fn join_and_drop(&self, held: impl Send + 'static) {
        let running = self.end();
        let current = thread::current().id();
        let is_one = running.iter().any(|thread| thread.thread().id() == current);
        let wait = move || {
            join_all(running);
            drop(held);
        };
        if is_one {
            // If no thread can be started, `held` is dropped now.
            let _ = spawn("trug-close", wait);
        } else {
            wait();
        }
    }

    /// Signals the threads to end, and returns those that were not returned before.
    fn end(&self) -> Vec<JoinHandle<()>> {
        self.closing.trigger();
        mem::take(&mut *self.running.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

fn join_all(running: Vec<JoinHandle<()>>) {
    for thread in running {
        // A thread that panicked leaves the store as after a crash: the next open replays the log.
        let _ = thread.join();
    }
}

fn run_committer(committer: &Mutex<Committer>, queue: &Queue, frozen: &CheckpointSignal) {
    loop {
        queue.wait(Duration::from_millis(limits::WATERMARK_IDLE_MS));
        let mut committer = committer.lock().unwrap_or_else(PoisonError::into_inner);
        if committer.step() == CommitStep::Closed {
            return;
        }
        if committer.checkpoint_is_due() && committer.freeze() {
            frozen.notify();
        }
    }
}

fn run_scrubber(scrubber: &Mutex<Scrubber>, closing: &ShutdownSignal) {
    let idle = Duration::from_millis(limits::SCRUB_REPORTED_POLL_MS);
    let mut pause = Duration::ZERO;
    while !closing.wait_timeout(pause) {
        let mut scrubber = scrubber.lock().unwrap_or_else(PoisonError::into_inner);
        // A segment that could not be read stays due.
        pause = scrubber.step(&|| closing.is_triggered()).unwrap_or(idle);
    }
}

fn run_shipping(replication: &Replication, closing: &ShutdownSignal) {
    let mut retry_ms = 0;
    let pause = |time: Duration| closing.wait_timeout(time);
    loop {
        let is_ending = match replication.ship_published() {
            Ok(()) => {
                retry_ms = 0;
                replication.wait_to_ship(&pause)
            }
            Err(_) => {
                retry_ms = (2 * retry_ms).clamp(RETRY_MS_MIN, limits::REMOTE_RETRY_MS_MAX);
                pause(Duration::from_millis(retry_ms))
            }
        };
        if is_ending {
            return;
        }
    }
}

fn run_upkeep(replication: &Replication, closing: &ShutdownSignal) {
    let mut pause = Duration::ZERO;
    while !closing.wait_timeout(pause) {
        pause = match replication.step_upkeep() {
            Ok(ReplicationStep::Worked) => Duration::ZERO,
            Ok(ReplicationStep::Idle) => UPKEEP_POLL,
            Err(_) => Duration::from_millis(limits::REMOTE_RETRY_MS_MAX),
        };
    }
}

impl CompactionThreadContext {
    /// Checks periodically for something to compact, and compacts it.
    fn run(self, closing: &Arc<ShutdownSignal>) {
        while !closing.wait_timeout(Duration::from_millis(self.options.poll_ms)) {
            let pause = Arc::clone(closing);
            let throttle = Throttle::new(
                Arc::clone(&self.clock),
                Arc::clone(&self.load),
                Some(self.options.bytes_per_second_max),
                move |time| {
                    pause.wait_timeout(time);
                },
            );
            let rules = match self.health.space().shortage() {
                Some(_) => CompactionRules::LOW_SPACE,
                None => CompactionRules::BACKGROUND,
            };
            // Errors need no action here: a failed write has made the store read-only, and the scrub finds damage.
            let _ = self.compactor.run_in_background(rules, &throttle, &mut |_| match closing
                .is_triggered()
            {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            });
        }
    }
}

/// First pause after a failed call to the remote store, in milliseconds.
const RETRY_MS_MIN: u64 = 100;
/// Interval at which batches are checked that wait for the remote store.
const ACK_EXPIRY_POLL: Duration = Duration::from_millis(500);
/// Interval at which uploads and manifests are checked.
const UPKEEP_POLL: Duration = Duration::from_millis(500);

fn spawn(name: &str, run: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>> {
    let spawned = Builder::new().name(name.to_owned()).spawn(run);
    spawned.map_err(|source| Error::io(format!("starting the thread {name}"), source))
}

/// Signal to idle and long-running threads that the store is closing.
#[derive(Default)]
struct ShutdownSignal {
    has_begun: Mutex<bool>,
    changed: Condvar,
}

impl ShutdownSignal {
    fn trigger(&self) {
        *self.has_begun.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.changed.notify_all();
    }

    fn is_triggered(&self) -> bool {
        *self.has_begun.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for this duration, or until the signal. Returns true after the signal.
    fn wait_timeout(&self, time: Duration) -> bool {
        let has_begun = self.has_begun.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.changed.wait_timeout_while(has_begun, time, |has_begun| !*has_begun);
        *waited.unwrap_or_else(PoisonError::into_inner).0
    }
}

/// Signal to the checkpoint thread that an overlay is frozen, or that the store is closing.
#[derive(Default)]
struct CheckpointSignal {
    state: Mutex<(bool, bool)>,
    changed: Condvar,
}

impl CheckpointSignal {
    fn notify(&self) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).0 = true;
        self.changed.notify_all();
    }

    fn close(&self) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).1 = true;
        self.changed.notify_all();
    }

    /// Waits for [`limits::CHECKPOINT_RETRY_MS`], or until the end. Returns true at the end.
    fn wait_retry_delay(&self) -> bool {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let while_ = Duration::from_millis(limits::CHECKPOINT_RETRY_MS);
        let waited = self.changed.wait_timeout_while(state, while_, |(_, ended)| !*ended);
        waited.unwrap_or_else(PoisonError::into_inner).0.1
    }

    /// Waits for the next raise. Returns false after the end if nothing is raised.
    fn wait(&self) -> bool {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let mut state = self
            .changed
            .wait_while(state, |(raised, ended)| !*raised && !*ended)
            .unwrap_or_else(PoisonError::into_inner);
        mem::take(&mut state.0)
    }
}
