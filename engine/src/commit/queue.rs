//! Bounded commit queue in front of the committer.
//!
//! Guarantees: bounded; FIFO; the callback of every accepted batch is called exactly once, also when the store
//! closes.
//! Non-goals: the content of batches.

use std::collections::VecDeque;
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
    /// Number of batches that the committer waits for; 0 if it does not wait. A notification is a system call even if
    /// nobody waits.
    awaited: usize,
    /// Number of batches that the next group is expected to have; 0 if it is written without waiting for more.
    expected: usize,
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
        let is_enough = state.awaited > 0 && state.waiting.len() >= state.awaited;
        if is_enough {
            state.awaited = 0;
        }
        drop(state);
        if is_enough {
            self.arrived.notify_one();
        }
    }

    /// Waits until the queue is nonempty or closed, at most `patience`. After a small group of several batches, whose
    /// writers are about to commit again, it then waits for as many batches, at most [`limits::GATHER_US`].
    pub(crate) fn wait(&self, patience: Duration) {
        let state = self.wait_for(self.lock(), 1, patience);
        if !state.waiting.is_empty() {
            let expected = state.expected;
            drop(self.wait_for(state, expected, Duration::from_micros(limits::GATHER_US)));
        }
    }

    /// Waits until this number of batches is queued or the queue is closed, at most `patience`.
    fn wait_for<'q>(
        &'q self,
        state: MutexGuard<'q, State>,
        count: usize,
        patience: Duration,
    ) -> MutexGuard<'q, State> {
        let waits = |state: &mut State| {
            let is_short = state.waiting.len() < count && !state.closed;
            state.awaited = if is_short { count } else { 0 };
            is_short
        };
        let waited = self.arrived.wait_timeout_while(state, patience, waits);
        let (mut state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        state.awaited = 0;
        state
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
        let has_several = limits::GATHER_BATCHES.contains(&taken.len());
        let is_gathered = has_several && bytes <= limits::GATHER_BYTES_MAX;
        state.expected = if is_gathered { taken.len() } else { 0 };
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

#[cfg(test)]
mod tests {
    use std::thread;

    use bytes::Bytes;

    use super::*;
    use crate::name::FactName;

    /// Longer than any test.
    const PATIENCE: Duration = Duration::from_secs(600);

    fn push(queue: &Queue, batches: usize, bytes: usize) {
        for _ in 0..batches {
            let name = FactName::parse("fact").unwrap();
            let batch = Batch::new().put_fact(name, Bytes::from(vec![0; bytes]));
            queue.push(batch, Box::new(|_| ()));
        }
    }

    #[test]
    fn wait_ends_when_enough_batches_are_queued() {
        let queue = Queue::default();
        thread::scope(|scope| {
            let waiter = scope.spawn(|| queue.wait_for(queue.lock(), 3, PATIENCE).waiting.len());
            for _ in 0..3 {
                assert!(!waiter.is_finished());
                push(&queue, 1, 1);
            }
            assert_eq!(waiter.join().unwrap(), 3);
            let waiter = scope.spawn(|| queue.wait_for(queue.lock(), 4, PATIENCE).waiting.len());
            queue.close();
            assert_eq!(waiter.join().unwrap(), 3);
        });
    }

    #[test]
    fn only_small_groups_of_several_batches_are_gathered() {
        let expected_after = |batches, bytes| {
            let queue = Queue::default();
            push(&queue, batches, bytes);
            assert!(
                matches!(queue.take(u64::MAX), Dequeued::Batches(taken) if taken.len() == batches)
            );
            queue.lock().expected
        };
        let (first, last) = (*limits::GATHER_BATCHES.start(), *limits::GATHER_BATCHES.end());
        for batches in [first, last] {
            assert_eq!(expected_after(batches, 1), batches);
        }
        for batches in [1, first - 1, last + 1] {
            assert_eq!(expected_after(batches, 1), 0, "{batches}");
        }
        assert_eq!(expected_after(first, limits::GATHER_BYTES_MAX as usize / first), 0);
    }

    #[test]
    fn wait_without_further_batches_is_short() {
        let queue = Queue::default();
        push(&queue, *limits::GATHER_BATCHES.start(), 1);
        assert!(matches!(queue.take(u64::MAX), Dequeued::Batches(_)));
        push(&queue, 1, 1);
        // Returns although no further batch arrives.
        queue.wait(PATIENCE);
        assert!(matches!(queue.take(u64::MAX), Dequeued::Batches(taken) if taken.len() == 1));
        assert_eq!(queue.lock().expected, 0);
    }
}
