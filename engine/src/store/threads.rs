//! The store's own threads: the committer, the checkpoint, the one that prepares and seals segments, the audit of a
//! large index, and the scrub.
//!
//! Each is a loop over a `step()` that tests call themselves. They end when the queue is closed.

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use crate::commit::{Committer, HealthState, Progress, Queue, Rollover};
use crate::error::{Error, Result};
use crate::index::Index;
use crate::limits;
use crate::recovery;
use crate::scrub::Scrubber;
use crate::segment::SegmentSet;

/// What reads a store beside its use.
pub(super) struct Beside {
    pub(super) index_wants_audit: bool,
    pub(super) scrubber: Option<Arc<Mutex<Scrubber>>>,
}

/// The threads of an open store.
pub(super) struct Threads(Mutex<Vec<JoinHandle<()>>>);

impl Threads {
    /// No threads: whoever opened the store steps it.
    pub(super) fn none() -> Self {
        Self(Mutex::default())
    }

    /// Starts all of them.
    pub(super) fn start(
        committer: Arc<Mutex<Committer>>,
        queue: Arc<Queue>,
        rollover: Arc<Rollover>,
        index: Arc<Index>,
        segments: Arc<SegmentSet>,
        health: Arc<HealthState>,
        beside: Beside,
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
        if beside.index_wants_audit {
            let (index, segments) = (Arc::clone(&index), Arc::clone(&segments));
            let frozen = Arc::clone(&frozen);
            threads.push(spawn("trug-index-audit", move || {
                if index.audit(|| frozen.has_ended()).is_err_and(|error| Index::is_damage(&error)) {
                    index.condemn(segments.disk());
                }
            })?);
        }
        if let Some(scrubber) = beside.scrubber {
            let frozen = Arc::clone(&frozen);
            threads.push(spawn("trug-scrub", move || run_scrubber(&scrubber, &frozen))?);
        }
        threads.push(spawn("trug-checkpoint", move || {
            while frozen.wait() {
                if let Err(error) = recovery::checkpoint(&index, &segments) {
                    health.fail(&error);
                }
            }
        })?);
        Ok(Self(Mutex::new(threads)))
    }

    /// Waits until all have ended; the queue must be closed.
    pub(super) fn join(&self) {
        let threads = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
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

fn run_scrubber(scrubber: &Mutex<Scrubber>, frozen: &Signal) {
    let idle = Duration::from_millis(limits::SCRUB_IDLE_MS);
    let mut pause = Duration::ZERO;
    while !frozen.ends_within(pause) {
        let mut scrubber = scrubber.lock().unwrap_or_else(PoisonError::into_inner);
        // What could not be read is not forgotten: it stays due.
        pause = scrubber.step(&|| frozen.has_ended()).unwrap_or(idle);
    }
}

fn spawn(name: &str, run: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>> {
    let spawned = Builder::new().name(name.to_owned()).spawn(run);
    spawned.map_err(|source| Error::io(format!("starting the thread {name}"), source))
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

    /// Waits for the end, at most this long.
    fn ends_within(&self, patience: Duration) -> bool {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.changed.wait_timeout_while(state, patience, |(_, ended)| !*ended);
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
