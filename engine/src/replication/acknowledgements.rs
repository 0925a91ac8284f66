//! Batches that wait until the remote store has them.
//!
//! Guarantees: every callback is called once: with success after the chunk that covers its LSN was created, or with an
//! error after a time-out or when the process is fenced.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::error::{Error, Result};
use crate::limits;

type Callback = Box<dyn FnOnce(Result<()>) + Send>;

/// Waiting batches, in the order of their LSNs.
#[derive(Default)]
pub(super) struct Acknowledgements {
    state: Mutex<State>,
    arrived: Condvar,
}

#[derive(Default)]
struct State {
    waiting: VecDeque<Waiting>,
    shipped_lsn: u64,
    ended: Option<Error>,
}

struct Waiting {
    lsn: u64,
    since_ms: u64,
    callback: Callback,
}

impl Acknowledgements {
    /// Calls `callback` once the remote store has this LSN, or it is known that it will not.
    pub(super) fn add(&self, lsn: u64, now_ms: u64, callback: Callback) {
        let mut state = self.lock();
        let decided = match &state.ended {
            _ if lsn <= state.shipped_lsn => Some(Ok(())),
            Some(error) => Some(Err(error.clone())),
            None => None,
        };
        if let Some(decided) = decided {
            drop(state);
            return callback(decided);
        }
        state.waiting.push_back(Waiting { lsn, since_ms: now_ms, callback });
        drop(state);
        self.arrived.notify_all();
    }

    /// Acknowledges all batches up to this LSN.
    pub(super) fn shipped(&self, lsn: u64) {
        let mut state = self.lock();
        state.shipped_lsn = state.shipped_lsn.max(lsn);
        let count = state.waiting.partition_point(|it| it.lsn <= lsn);
        let due: Vec<_> = state.waiting.drain(..count).collect();
        drop(state);
        due.into_iter().for_each(|it| (it.callback)(Ok(())));
    }

    /// Fails the batches that have waited for too long. Returns whether there were any.
    pub(super) fn fail_expired(&self, now_ms: u64, error: &Error) -> bool {
        self.fail(error, |it| it.since_ms.saturating_add(limits::REMOTE_ACK_MS) <= now_ms)
    }

    fn fail(&self, error: &Error, is_due: impl Fn(&Waiting) -> bool) -> bool {
        let mut state = self.lock();
        let count = state.waiting.partition_point(is_due);
        let due: Vec<_> = state.waiting.drain(..count).collect();
        drop(state);
        let is_any = !due.is_empty();
        due.into_iter().for_each(|it| (it.callback)(Err(error.clone())));
        is_any
    }

    /// Fails all batches, also those that are added later.
    pub(super) fn fail_all(&self, error: &Error) {
        self.lock().ended = Some(error.clone());
        self.fail(error, |_| true);
    }

    /// Waits until a batch waits, at most `patience`.
    pub(super) fn wait(&self, patience: Duration) {
        let state = self.lock();
        let waited = self.arrived.wait_timeout_while(state, patience, |state| {
            state.waiting.is_empty() && state.ended.is_none()
        });
        drop(waited.unwrap_or_else(PoisonError::into_inner));
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
