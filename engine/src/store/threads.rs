//! The store's own threads: the committer, the checkpoint, the one that prepares and seals segments, and the audit of a
//! large index.
//!
//! Each is a loop over a `step()` that tests call themselves. They end when the queue is closed.

use std::ops::ControlFlow;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use crate::clock::Clock;
use crate::commit::{self, Committer, HealthState, Load, Progress, Queue, Rollover};
use crate::compaction::{CompactionRules, Compactor, Throttle};
use crate::error::{Error, Result};
use crate::index::Index;
use crate::limits;
use crate::segment::SegmentSet;

/// The threads of an open store.
pub(super) struct Threads {
    running: Mutex<Vec<JoinHandle<()>>>,
    /// Told when those that do long work, or rest, are to end.
    ending: Arc<Ending>,
}

/// What the compaction thread works with.
pub(super) struct CompactionThread {
    pub(super) compactor: Arc<Compactor>,
    pub(super) load: Arc<Load>,
    pub(super) health: Arc<HealthState>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) bytes_per_second_max: u64,
}

impl Threads {
    /// No threads: whoever opened the store steps it.
    pub(super) fn none() -> Self {
        Self { running: Mutex::default(), ending: Arc::default() }
    }

    /// Starts all of them.
    pub(super) fn start(
        compaction: Option<CompactionThread>,
        committer: Arc<Mutex<Committer>>,
        queue: Arc<Queue>,
        rollover: Arc<Rollover>,
        index: Arc<Index>,
        segments: Arc<SegmentSet>,
        health: Arc<HealthState>,
        index_wants_audit: bool,
    ) -> Result<Self> {
        let frozen = Arc::new(Signal::default());
        let commits = {
            let (rollover, frozen) = (Arc::clone(&rollover), Arc::clone(&frozen));
            spawn("trug-commit", move || {
                run_committer(&committer, &queue, &frozen);
                frozen.end();
                rollover.stop();
            })?
        };
        let mut threads = vec![commits, spawn("trug-segments", move || rollover.run())?];
        if index_wants_audit {
            let (index, segments) = (Arc::clone(&index), Arc::clone(&segments));
            let frozen = Arc::clone(&frozen);
            threads.push(spawn("trug-index-audit", move || {
                if index.audit(|| frozen.has_ended()).is_err_and(|error| Index::is_damage(&error)) {
                    index.condemn(segments.disk());
                }
            })?);
        }
        threads.push(spawn("trug-checkpoint", move || {
            while frozen.wait() {
                while let Err(Error::NoSpace) = commit::checkpoint(&index, &segments, &health) {
                    if health.require_writable().is_err() || frozen.has_ended_within_a_while() {
                        break;
                    }
                }
            }
        })?);
        let ending = Arc::new(Ending::default());
        if let Some(compaction) = compaction {
            let ending = Arc::clone(&ending);
            threads.push(spawn("trug-compact", move || compaction.run(&ending))?);
        }
        Ok(Self { running: Mutex::new(threads), ending })
    }

    /// Waits until all have ended; the queue must be closed.
    pub(super) fn join(&self) {
        self.ending.end();
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        let threads = std::mem::take(&mut *running);
        for thread in threads {
            // A thread that panicked left the store as a crash would: the next opening replays the log.
            let _ = thread.join();
        }
    }
}

fn run_committer(committer: &Mutex<Committer>, queue: &Queue, frozen: &Signal) {
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

impl CompactionThread {
    /// Looks now and then whether there is something to compact, and does it.
    fn run(self, ending: &Arc<Ending>) {
        while !ending.wait(Duration::from_millis(limits::COMPACTION_LOOK_MS)) {
            let pause = Arc::clone(ending);
            let throttle = Throttle::new(
                Arc::clone(&self.clock),
                Arc::clone(&self.load),
                Some(self.bytes_per_second_max),
                move |time| {
                    pause.wait(time);
                },
            );
            let rules = match self.health.space().shortage() {
                Some(_) => CompactionRules::SHORT_OF_SPACE,
                None => CompactionRules::BACKGROUND,
            };
            // What fails is left as it is: a failed write has told the store's health, and damage is the scrub's to
            // find.
            let _ = self.compactor.run_by_itself(rules, &throttle, &mut |_| {
                if ending.has_come() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            });
        }
    }
}

fn spawn(name: &str, run: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>> {
    let spawned = Builder::new().name(name.to_owned()).spawn(run);
    spawned.map_err(|source| Error::io(format!("starting the thread {name}"), source))
}

/// Tells threads that rest, or do long work, that the store is closing.
#[derive(Default)]
pub(super) struct Ending {
    has_come: Mutex<bool>,
    told: Condvar,
}

impl Ending {
    fn end(&self) {
        *self.has_come.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.told.notify_all();
    }

    fn has_come(&self) -> bool {
        *self.has_come.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits this long, or until the end. True at the end.
    fn wait(&self, time: Duration) -> bool {
        let has_come = self.has_come.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.told.wait_timeout_while(has_come, time, |has_come| !*has_come);
        *waited.unwrap_or_else(PoisonError::into_inner).0
    }
}

/// Tells the checkpoint that an overlay is frozen.
#[derive(Default)]
struct Signal {
    state: Mutex<(bool, bool)>,
    changed: Condvar,
}

impl Signal {
    fn raise(&self) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).0 = true;
        self.changed.notify_all();
    }

    fn end(&self) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).1 = true;
        self.changed.notify_all();
    }

    fn has_ended(&self) -> bool {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).1
    }

    /// As [`Signal::has_ended`], after [`limits::CHECKPOINT_RETRY_MS`] or as soon as it has.
    fn has_ended_within_a_while(&self) -> bool {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let while_ = Duration::from_millis(limits::CHECKPOINT_RETRY_MS);
        let waited = self.changed.wait_timeout_while(state, while_, |(_, ended)| !*ended);
        waited.unwrap_or_else(PoisonError::into_inner).0.1
    }

    /// Waits for the next raise. False once it has ended and nothing is raised.
    fn wait(&self) -> bool {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let mut state = self
            .changed
            .wait_while(state, |(raised, ended)| !*raised && !*ended)
            .unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut state.0)
    }
}
