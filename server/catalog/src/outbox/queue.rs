//! Queue of the pending events of one webhook, by number; their content is in the store.
//!
//! Guarantees: the oldest due event comes first. Non-goals: other webhooks, and locks.

use std::collections::BTreeSet;

use super::super::AccountId;
use super::super::event::DeliveryState;

/// Queue of a webhook.
pub(super) struct Queue {
    /// Account that the queue counts for.
    pub(super) account: AccountId,
    /// Due events.
    ready: BTreeSet<u64>,
    /// Events that are due later: due time and number.
    waiting: BTreeSet<(u64, u64)>,
    /// Reservations of batches that are not decided yet.
    pub(super) reserved: usize,
    /// Number of pending events that failed before.
    pub(super) retrying: usize,
    pub(super) dead: usize,
    /// Consecutive failures.
    pub(super) failures: u32,
    /// End of the back-off.
    pub(super) rest_until_ms: u64,
    /// Whether a turn is in progress.
    pub(super) is_busy: bool,
    /// Position among the webhooks that want a turn.
    pub(super) wake_ms: Option<u64>,
    pub(super) state: DeliveryState,
}

impl Queue {
    pub(super) fn new(account: AccountId) -> Self {
        Self {
            account,
            ready: BTreeSet::new(),
            waiting: BTreeSet::new(),
            reserved: 0,
            retrying: 0,
            dead: 0,
            failures: 0,
            rest_until_ms: 0,
            is_busy: false,
            wake_ms: None,
            state: DeliveryState::default(),
        }
    }

    /// Returns the number of pending and reserved events.
    pub(super) fn pending(&self) -> usize {
        self.ready.len() + self.waiting.len() + self.reserved
    }

    pub(super) fn add(&mut self, number: u64, next_ms: u64, now_ms: u64) {
        if next_ms <= now_ms {
            self.ready.insert(number);
        } else {
            self.waiting.insert((next_ms, number));
        }
    }

    /// Returns the oldest due event, which stays until it is removed.
    pub(super) fn next(&mut self, now_ms: u64) -> Option<u64> {
        while let Some((due_ms, number)) = self.waiting.first().copied()
            && due_ms <= now_ms
        {
            self.waiting.pop_first();
            self.ready.insert(number);
        }
        self.ready.first().copied()
    }

    /// Removes a due event; returns whether it was present.
    pub(super) fn remove(&mut self, number: u64) -> bool {
        self.ready.remove(&number)
    }

    /// Returns when the queue wants a turn; a time in the past counts as now.
    pub(super) fn due_at_ms(&self, now_ms: u64) -> Option<u64> {
        if self.is_busy {
            return None;
        }
        let due_ms = match self.ready.is_empty() {
            false => now_ms,
            true => self.waiting.first()?.0.max(now_ms),
        };
        Some(due_ms.max(self.rest_until_ms))
    }
}
