//! The store's own threads: the committer, the checkpoint, the one that prepares and seals segments, and the audit of a
//! large index.
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
use crate::segment::SegmentSet;

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
                while let Err(Error::NoSpace) = checkpoint(&index, &segments, &health) {
                    if health.require_writable().is_err() || frozen.has_ended_within_a_while() {
                        break;
                    }
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

/// Writes what is frozen to the index. Without room for that it stays frozen and nothing is lost: redb is never begun
/// with, because it gives up for good when a write of its own fails, and so must the store then.
pub(super) fn checkpoint(index: &Index, segments: &SegmentSet, health: &HealthState) -> Result<()> {
    let entries = index.view().frozen.as_ref().map_or(0, |frozen| frozen.len());
    let room_bytes = limits::CHECKPOINT_ENTRY_ROOM_BYTES * entries as u64;
    health.space().require_bytes(limits::CHECKPOINT_ROOM_BYTES + room_bytes)?;
    recovery::checkpoint(index, segments).inspect_err(|error| health.fail(error))
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
