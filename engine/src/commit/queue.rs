//! Bounded commit queue in front of the committer.
//!
//! Guarantees: bounded; FIFO; the callback of every accepted batch is called exactly once, also when the store
//! closes.
//! Non-goals: the content of batches.

use std::collections::VecDeque;
use std::mem;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::batch::{Batch, CommitInfo};
use crate::error::{Error, Result};
use crate::limits;

/// Callback with the result of a batch, called once on the committer thread.
pub(crate) type CommitCallback = Box<dyn FnOnce(Result<CommitInfo>) + Send>;

/// Queued batch with its callback.
pub(crate) struct PendingBatch {
    pub(crate) batch: Batch,
    pub(crate) callback: CommitCallback,
}

/// Queue of batches for the committer.
#[derive(Default)]
pub(crate) struct Queue {
    state: Mutex<State>,
    arrived: Condvar,
}

#[derive(Default)]
struct State {
    waiting: VecDeque<PendingBatch>,
    closed: bool,
    /// Whether the committer waits. A notification is a system call even if nobody waits.
    is_awaited: bool,
}

/// Result of [`Queue::take`].
pub(crate) enum Dequeued {
    /// Batches for one group.
    Batches(Vec<PendingBatch>),
    /// The queue is empty.
    Empty,
    /// The queue is empty and closed.
    Closed,
}

impl Queue {
    /// Queues a batch, or calls the callback with an error if it cannot be queued.
    pub(crate) fn push(&self, batch: Batch, answer: CommitCallback) {
        let mut state = self.lock();
        if state.closed || state.waiting.len() >= limits::QUEUE_BATCHES_MAX {
            let refusal = if state.closed { Error::Closed } else { Error::Busy };
            drop(state);
            return answer(Err(refusal));
        }
        state.waiting.push_back(PendingBatch { batch, callback: answer });
        let is_awaited = mem::take(&mut state.is_awaited);
        drop(state);
        if is_awaited {
            self.arrived.notify_one();
        }
    }

    /// Waits until the queue is nonempty or closed, at most `patience`.
    pub(crate) fn wait(&self, patience: Duration) {
        let waits = |state: &mut State| {
            state.is_awaited = state.waiting.is_empty() && !state.closed;
            state.is_awaited
        };
        let waited = self.arrived.wait_timeout_while(self.lock(), patience, waits);
        waited.unwrap_or_else(PoisonError::into_inner).0.is_awaited = false;
    }

    /// Takes the batches of one group without waiting: at least one batch, at most [`limits::GROUP_RECORDS_MAX`]
    /// records or `bytes_max` bytes unless a single batch is larger.
    pub(crate) fn take(&self, bytes_max: u64) -> Dequeued {
        let mut state = self.lock();
        let mut taken = Vec::new();
        let (mut records, mut bytes) = (0, 0);
        while let Some(next) = state.waiting.front() {
            records += next.batch.operations.len();
            bytes += next.batch.bytes();
            let full = records > limits::GROUP_RECORDS_MAX || bytes > bytes_max;
            if full && !taken.is_empty() {
                break;
            }
            taken.extend(state.waiting.pop_front());
        }
        match (taken.is_empty(), state.closed) {
            (false, _) => Dequeued::Batches(taken),
            (true, true) => Dequeued::Closed,
            (true, false) => Dequeued::Empty,
        }
    }

    /// Rejects new batches; queued ones can still be taken.
    pub(crate) fn close(&self) {
        self.lock().closed = true;
        self.arrived.notify_all();
    }

    /// Returns the number of queued batches.
    pub(crate) fn len(&self) -> usize {
        self.lock().waiting.len()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
