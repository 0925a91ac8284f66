//! The queue before the committer.
//!
//! Promises: bounded; in order; every batch that was taken is answered exactly once, also when the store closes.
//! Never here: what a batch does.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::batch::{Batch, Committed};
use crate::error::{Error, Result};
use crate::limits;

/// Called once, on the committer's thread, with how a batch ended.
pub(crate) type Answer = Box<dyn FnOnce(Result<Committed>) + Send>;

/// A batch that waits, and whom to tell.
pub(crate) struct Waiting {
    pub(crate) batch: Batch,
    pub(crate) answer: Answer,
}

/// Batches on their way to the committer.
#[derive(Default)]
pub(crate) struct Queue {
    state: Mutex<State>,
    arrived: Condvar,
}

#[derive(Default)]
struct State {
    waiting: VecDeque<Waiting>,
    closed: bool,
}

/// What [`Queue::take`] found.
pub(crate) enum Taken {
    /// Batches for one group.
    Batches(Vec<Waiting>),
    /// Nothing.
    Nothing,
    /// Nothing, and nothing will come.
    Closed,
}

impl Queue {
    /// Adds a batch, or answers at once why it cannot wait here.
    pub(crate) fn push(&self, batch: Batch, answer: Answer) {
        let refused = {
            let mut state = self.lock();
            if state.closed {
                Some((Error::Closed, answer))
            } else if state.waiting.len() >= limits::QUEUE_BATCHES_MAX {
                Some((Error::Busy, answer))
            } else {
                state.waiting.push_back(Waiting { batch, answer });
                None
            }
        };
        match refused {
            Some((error, answer)) => answer(Err(error)),
            None => self.arrived.notify_one(),
        }
    }

    /// Waits until something waits here, or the queue is closed, at most this long.
    pub(crate) fn wait(&self, patience: Duration) {
        let state = self.lock();
        let _state = self
            .arrived
            .wait_timeout_while(state, patience, |state| state.waiting.is_empty() && !state.closed)
            .unwrap_or_else(PoisonError::into_inner);
    }

    /// Takes what makes one group: at least one batch, at most [`limits::GROUP_RECORDS_MAX`] records or `bytes_max`
    /// bytes unless a single batch is larger. Does not wait.
    pub(crate) fn take(&self, bytes_max: u64) -> Taken {
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
            (false, _) => Taken::Batches(taken),
            (true, true) => Taken::Closed,
            (true, false) => Taken::Nothing,
        }
    }

    /// Refuses what comes from now on; what waits is still taken.
    pub(crate) fn close(&self) {
        self.lock().closed = true;
        self.arrived.notify_all();
    }

    /// How many batches wait.
    pub(crate) fn len(&self) -> usize {
        self.lock().waiting.len()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
