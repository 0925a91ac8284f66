//! Background threads of an open store: committer, checkpoint, segment rollover, index verification, scrub,
//! compaction, and the name cache of searches.
//!
//! Each is a loop over a step function that tests call directly. The first three end when the queue is closed and
//! empty, the others as soon as the store is closing.

use std::ops::ControlFlow;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use super::open::CompactionOptions;
use crate::clock::Clock;
use crate::commit::{self, Committer, HealthState, Load, Progress, Queue, Rollover};
use crate::compaction::{CompactionRules, Compactor, Throttle};
use crate::error::{Error, Result};
use crate::index::Index;
use crate::limits;
use crate::measures::Measures;
use crate::scrub::Scrubber;
use crate::search::KeptNames;
use crate::segment::SegmentSet;

/// Threads of an open store.
pub(super) struct Threads {
    running: Mutex<Vec<JoinHandle<()>>>,
    closing: Arc<Closing>,
}

/// Dependencies of the threads.
pub(super) struct Work {
    pub(super) committer: Arc<Mutex<Committer>>,
    pub(super) queue: Arc<Queue>,
    pub(super) rollover: Arc<Rollover>,
    pub(super) index: Arc<Index>,
    pub(super) segments: Arc<SegmentSet>,
    pub(super) health: Arc<HealthState>,
    pub(super) measures: Arc<Measures>,
    pub(super) kept_names: Arc<KeptNames>,
    pub(super) index_wants_audit: bool,
    pub(super) scrubber: Option<Arc<Mutex<Scrubber>>>,
    pub(super) compaction: Option<CompactionWork>,
}

/// Dependencies of the compaction thread.
pub(super) struct CompactionWork {
    pub(super) compactor: Arc<Compactor>,
    pub(super) load: Arc<Load>,
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
    pub(super) fn start(work: Work) -> Result<Self> {
        let Work { committer, queue, rollover, index, segments, health, measures, .. } = work;
        let closing = Arc::new(Closing::default());
        let frozen = Arc::new(Frozen::default());
        let commits = {
            let (rollover, frozen) = (Arc::clone(&rollover), Arc::clone(&frozen));
            let kept_names = Arc::clone(&work.kept_names);
            spawn("trug-commit", move || {
                run_committer(&committer, &queue, &frozen);
                frozen.end();
                rollover.stop();
                kept_names.end();
            })?
        };
        let mut running = vec![commits, spawn("trug-segments", move || rollover.run())?];
        {
            let (kept_names, index) = (work.kept_names, Arc::clone(&index));
            running.push(spawn("trug-names", move || {
                while kept_names.wait(Duration::from_millis(limits::FOLLOWED_LOOK_MS)) {
                    kept_names.step(&index);
                }
            })?);
        }
        if work.index_wants_audit {
            let index = Arc::clone(&index);
            let closing = Arc::clone(&closing);
            running.push(spawn("trug-index-audit", move || {
                let mut is_miscounted = false;
                let audited = index.audit(|| closing.has_begun(), |_| is_miscounted = true);
                if is_miscounted || audited.is_err_and(|error| Index::is_damage(&error)) {
                    index.condemn();
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
        running.push(spawn("trug-checkpoint", move || {
            while frozen.wait() {
                while let Err(Error::NoSpace) =
                    commit::checkpoint(&index, &segments, &health, &measures)
                {
                    if health.require_writable().is_err() || frozen.has_ended_within_a_while() {
                        break;
                    }
                }
            }
        })?);
        Ok(Self { running: Mutex::new(running), closing })
    }

    /// Returns whether the threads are ending because the store is closing.
    pub(super) fn are_ending(&self) -> bool {
        self.closing.has_begun()
    }

    /// Waits until all threads have ended; the queue must be closed.
    pub(super) fn join(&self) {
        self.closing.begin();
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        for thread in std::mem::take(&mut *running) {
            // A thread that panicked leaves the store as after a crash: the next open replays the log.
            let _ = thread.join();
        }
    }
}

fn run_committer(committer: &Mutex<Committer>, queue: &Queue, frozen: &Frozen) {
    loop {
        queue.wait(Duration::from_millis(limits::WATERMARK_IDLE_MS));
        let mut committer = committer.lock().unwrap_or_else(PoisonError::into_inner);
        if committer.step() == Progress::Closed {
            return;
        }
        if committer.checkpoint_is_due() && committer.freeze() {
            frozen.raise();
        }
    }
}

fn run_scrubber(scrubber: &Mutex<Scrubber>, closing: &Closing) {
    let idle = Duration::from_millis(limits::SCRUB_IDLE_MS);
    let mut pause = Duration::ZERO;
    while !closing.begins_within(pause) {
        let mut scrubber = scrubber.lock().unwrap_or_else(PoisonError::into_inner);
        // A segment that could not be read stays due.
        pause = scrubber.step(&|| closing.has_begun()).unwrap_or(idle);
    }
}

impl CompactionWork {
    /// Checks periodically for something to compact, and compacts it.
    fn run(self, closing: &Arc<Closing>) {
        while !closing.begins_within(Duration::from_millis(self.options.look_ms)) {
            let pause = Arc::clone(closing);
            let throttle = Throttle::new(
                Arc::clone(&self.clock),
                Arc::clone(&self.load),
                Some(self.options.bytes_per_second_max),
                move |time| {
                    pause.begins_within(time);
                },
            );
            let rules = match self.health.space().shortage() {
                Some(_) => CompactionRules::SHORT_OF_SPACE,
                None => CompactionRules::BACKGROUND,
            };
            // Errors need no action here: a failed write has made the store read-only, and the scrub finds damage.
            let _ = self.compactor.run_by_itself(rules, &throttle, &mut |_| match closing
                .has_begun()
            {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            });
        }
    }
}

fn spawn(name: &str, run: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>> {
    let spawned = Builder::new().name(name.to_owned()).spawn(run);
    spawned.map_err(|source| Error::io(format!("starting the thread {name}"), source))
}

/// Signal to idle and long-running threads that the store is closing.
#[derive(Default)]
struct Closing {
    has_begun: Mutex<bool>,
    told: Condvar,
}

impl Closing {
    fn begin(&self) {
        *self.has_begun.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.told.notify_all();
    }

    fn has_begun(&self) -> bool {
        *self.has_begun.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for this duration, or until the signal. Returns true after the signal.
    fn begins_within(&self, time: Duration) -> bool {
        let has_begun = self.has_begun.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.told.wait_timeout_while(has_begun, time, |has_begun| !*has_begun);
        *waited.unwrap_or_else(PoisonError::into_inner).0
    }
}

/// Signal to the checkpoint thread that an overlay is frozen, or that the store is closing.
#[derive(Default)]
struct Frozen {
    state: Mutex<(bool, bool)>,
    changed: Condvar,
}

impl Frozen {
    fn raise(&self) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).0 = true;
        self.changed.notify_all();
    }

    fn end(&self) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).1 = true;
        self.changed.notify_all();
    }

    /// Waits for [`limits::CHECKPOINT_RETRY_MS`], or until the end. Returns true at the end.
    fn has_ended_within_a_while(&self) -> bool {
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
        std::mem::take(&mut state.0)
    }
}
