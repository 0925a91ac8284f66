//! The events that wait for one webhook, by number; what they are lies in the store.
//!
//! Promises: of those that are due the oldest comes first. Never here: other webhooks, and locks.

use std::collections::BTreeSet;

use super::super::AccountId;
use super::super::event::DeliveryState;

/// A webhook's queue.
pub(super) struct Queue {
    /// Whose it counts as.
    pub(super) account: AccountId,
    /// Due.
    ready: BTreeSet<u64>,
    /// Due later: when, and the number.
    waiting: BTreeSet<(u64, u64)>,
    /// Room for events whose batches are not decided yet.
    pub(super) reserved: usize,
    /// How many of those that wait have failed before.
    pub(super) retrying: usize,
    pub(super) dead: usize,
    /// Failures in a row.
    pub(super) failures: u32,
    /// Nothing is sent before.
    pub(super) rest_until_ms: u64,
    /// Whether somebody is sending.
    pub(super) is_busy: bool,
    /// Where it stands among those that wait for a turn.
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

    /// How many events there are, or will be.
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

    /// The oldest that is due. It stays until it is removed.
    pub(super) fn next(&mut self, now_ms: u64) -> Option<u64> {
        while let Some((due_ms, number)) = self.waiting.first().copied()
            && due_ms <= now_ms
        {
            self.waiting.pop_first();
            self.ready.insert(number);
        }
        self.ready.first().copied()
    }

    /// Takes away one that was due; whether it was there.
    pub(super) fn remove(&mut self, number: u64) -> bool {
        self.ready.remove(&number)
    }

    /// When it wants a turn; a moment that has passed counts as now.
    pub(super) fn wants_turn_ms(&self, now_ms: u64) -> Option<u64> {
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
