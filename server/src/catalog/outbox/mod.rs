//! Which events wait for which webhook, and whose turn it is: the part of the outbox that is in memory.
//!
//! A webhook that has something due and does not rest gets a turn; one turn at a time, so that its events keep their
//! order. Those that wait longest come first; an account has a bounded number of turns, so that destinations that hang
//! take no others' place. Promises: bounded, for a webhook, an account and in all. Never here: the store, the network.

mod queue;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use self::queue::Queue;
use super::event::DeliveryState;
use super::{AccountId, WebhookId};
use crate::limits;

/// All queues.
#[derive(Default)]
pub(super) struct Outbox {
    /// The last number that was given to an event. Held from giving numbers until their batch is submitted, so that
    /// numbers are in the order in which things happened. Taken before `queues`, never inside it.
    numbers: Mutex<u64>,
    queues: Mutex<Queues>,
    /// Events for which there was no room, since the start.
    dropped: AtomicU64,
    changed: Notify,
}

#[derive(Default)]
struct Queues {
    by_webhook: BTreeMap<WebhookId, Queue>,
    /// Those that want a turn: from when on, and which.
    wakes: BTreeSet<(u64, WebhookId)>,
    shares: BTreeMap<AccountId, Share>,
    pending: usize,
    turns: usize,
    /// Webhooks that are gone and may have left something behind in the store.
    leftovers: BTreeSet<WebhookId>,
}

/// What one account has of it.
#[derive(Default)]
struct Share {
    pending: usize,
    turns: usize,
}

/// How many events of a webhook there are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EventCounts {
    /// That wait, or are being sent.
    pub pending: usize,
    /// Of these, those that failed before.
    pub retrying: usize,
    /// That were given up, and are kept.
    pub dead: usize,
}

/// What there is of all webhooks together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OutboxTotals {
    pub webhooks: usize,
    pub events: EventCounts,
    /// Webhooks that are sent to at this moment.
    pub turns: usize,
    /// Events for which there was no room, since the start.
    pub dropped: u64,
}

/// How an event left the queue.
pub(super) enum Left {
    Delivered,
    Died,
    /// It is tried again, not before this moment.
    Waits(u64),
}

impl Outbox {
    pub(super) fn numbers(&self) -> MutexGuard<'_, u64> {
        self.numbers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn queues(&self) -> MutexGuard<'_, Queues> {
        self.queues.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn with<T>(&self, webhook: &WebhookId, work: impl FnOnce(&mut Queue) -> T) -> Option<T> {
        self.queues().by_webhook.get_mut(webhook).map(work)
    }

    /// Begins a queue.
    pub(super) fn begin(&self, webhook: WebhookId, account: AccountId) {
        self.queues().by_webhook.insert(webhook, Queue::new(account));
    }

    /// Ends a queue; what it leaves in the store is to be removed.
    pub(super) fn end(&self, webhook: &WebhookId) {
        let mut queues = self.queues();
        if let Some(queue) = queues.by_webhook.remove(webhook) {
            queues.wakes.retain(|(_, id)| id != webhook);
            queues.count_pending(&queue.account, queue.pending(), 0);
            if queue.is_busy {
                queues.count_turns(&queue.account, 1, 0);
            }
        }
        queues.leftovers.insert(webhook.clone());
    }

    /// Notes a webhook that is not known, and has something in the store.
    pub(super) fn note_leftover(&self, webhook: WebhookId) {
        self.queues().leftovers.insert(webhook);
    }

    /// One of the webhooks that may have left something behind.
    pub(super) fn take_leftover(&self) -> Option<WebhookId> {
        self.queues().leftovers.pop_first()
    }

    /// Puts in what was found in the store.
    pub(super) fn found(&self, webhook: &WebhookId, number: u64, attempts: u32, next_ms: u64) {
        let mut last = self.numbers();
        *last = number.max(*last);
        let mut queues = self.queues();
        let Some(queue) = queues.by_webhook.get_mut(webhook) else {
            queues.leftovers.insert(webhook.clone());
            return;
        };
        // All of it is due later than at the beginning of time.
        queue.add(number, next_ms, 0);
        queue.retrying += usize::from(attempts > 0);
        let account = queue.account.clone();
        queues.count_pending(&account, 0, 1);
        queues.wake(webhook, 0);
    }

    /// Counts a dead letter that was found in the store.
    pub(super) fn found_dead(&self, webhook: &WebhookId, number: u64) {
        let mut last = self.numbers();
        *last = number.max(*last);
        if self.with(webhook, |queue| queue.dead += 1).is_none() {
            self.note_leftover(webhook.clone());
        }
    }

    pub(super) fn found_state(&self, webhook: &WebhookId, state: DeliveryState) {
        if self.with(webhook, |queue| queue.state = state).is_none() {
            self.note_leftover(webhook.clone());
        }
    }

    /// Makes room for an event; without room it is counted as dropped.
    pub(super) fn reserve(&self, webhook: &WebhookId) -> bool {
        let mut queues = self.queues();
        let in_all = queues.pending;
        let Some(queue) = queues.by_webhook.get(webhook) else { return false };
        let of_account = queues.shares.get(&queue.account).map_or(0, |share| share.pending);
        let account = queue.account.clone();
        let has_room = queue.pending() < limits::WEBHOOK_PENDING_MAX
            && of_account < limits::WEBHOOK_PENDING_PER_ACCOUNT_MAX
            && in_all < limits::WEBHOOK_PENDING_IN_ALL_MAX;
        if !has_room {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
        if let Some(queue) = queues.by_webhook.get_mut(webhook) {
            match has_room {
                true => queue.reserved += 1,
                false => queue.state.dropped += 1,
            }
        }
        queues.count_pending(&account, 0, usize::from(has_room));
        has_room
    }

    /// Puts events in for which room was made: they are durable.
    pub(super) fn confirm(&self, events: &[(WebhookId, u64)], now_ms: u64) {
        let mut queues = self.queues();
        for (webhook, number) in events {
            match queues.by_webhook.get_mut(webhook) {
                Some(queue) => {
                    queue.reserved = queue.reserved.saturating_sub(1);
                    queue.add(*number, now_ms, now_ms);
                    queues.wake(webhook, now_ms);
                }
                // It was deleted meanwhile.
                None => drop(queues.leftovers.insert(webhook.clone())),
            }
        }
        drop(queues);
        self.changed.notify_one();
    }

    /// Gives room back: nothing happened.
    pub(super) fn release(&self, events: &[(WebhookId, u64)]) {
        let mut queues = self.queues();
        for (webhook, _) in events {
            let Some(queue) = queues.by_webhook.get_mut(webhook) else { continue };
            queue.reserved = queue.reserved.saturating_sub(1);
            let account = queue.account.clone();
            queues.count_pending(&account, 1, 0);
        }
    }

    /// Gives the turn to whoever has waited longest.
    pub(super) fn take_turn(&self, now_ms: u64) -> Option<WebhookId> {
        let mut queues = self.queues();
        if queues.turns >= limits::WEBHOOK_TURNS_MAX {
            return None;
        }
        let has_turn_left = |webhook: &WebhookId| {
            let account = &queues.by_webhook.get(webhook)?.account;
            let turns = queues.shares.get(account).map_or(0, |share| share.turns);
            (turns < limits::WEBHOOK_TURNS_PER_ACCOUNT_MAX).then_some(())
        };
        let due = queues.wakes.iter().take_while(|(when_ms, _)| *when_ms <= now_ms);
        let (_, webhook) = due.into_iter().find(|(_, webhook)| has_turn_left(webhook).is_some())?;
        let webhook = webhook.clone();
        let queue = queues.by_webhook.get_mut(&webhook)?;
        queue.is_busy = true;
        let account = queue.account.clone();
        queues.count_turns(&account, 0, 1);
        queues.wake(&webhook, now_ms);
        Some(webhook)
    }

    /// Takes the turn back.
    pub(super) fn end_turn(&self, webhook: &WebhookId, now_ms: u64) {
        let mut queues = self.queues();
        let Some(queue) = queues.by_webhook.get_mut(webhook).filter(|queue| queue.is_busy) else {
            return;
        };
        queue.is_busy = false;
        let account = queue.account.clone();
        queues.count_turns(&account, 1, 0);
        queues.wake(webhook, now_ms);
    }

    /// The oldest event that is due.
    pub(super) fn next(&self, webhook: &WebhookId, now_ms: u64) -> Option<u64> {
        self.with(webhook, |queue| queue.next(now_ms)).flatten()
    }

    /// Notes how an event left that had been sent in vain so many times before, and what is known since.
    pub(super) fn left(
        &self,
        webhook: &WebhookId,
        number: u64,
        attempts: u32,
        left: &Left,
        state: DeliveryState,
    ) {
        let mut queues = self.queues();
        let Some(queue) = queues.by_webhook.get_mut(webhook) else { return };
        if !queue.remove(number) {
            return;
        }
        // What was dropped meanwhile is counted here only.
        let dropped = queue.state.dropped;
        queue.state = DeliveryState { dropped, ..state };
        match left {
            Left::Waits(next_ms) => {
                queue.add(number, *next_ms, 0);
                queue.retrying += usize::from(attempts == 0);
            }
            Left::Delivered | Left::Died => {
                queue.retrying -= usize::from(attempts > 0).min(queue.retrying);
                queue.dead += usize::from(matches!(left, Left::Died));
                let account = queue.account.clone();
                queues.count_pending(&account, 1, 0);
            }
        }
    }

    /// Notes that the destination does its part.
    pub(super) fn note_success(&self, webhook: &WebhookId) {
        self.with(webhook, |queue| queue.failures = 0);
    }

    /// Notes that it does not; how many failures in a row that makes.
    pub(super) fn note_failure(&self, webhook: &WebhookId) -> u32 {
        let count = |queue: &mut Queue| {
            queue.failures = queue.failures.saturating_add(1);
            queue.failures
        };
        self.with(webhook, count).unwrap_or(1)
    }

    /// Lets a webhook rest.
    pub(super) fn rest(&self, webhook: &WebhookId, until_ms: u64) {
        self.with(webhook, |queue| queue.rest_until_ms = until_ms.max(queue.rest_until_ms));
    }

    /// Ends its rest: its destination may be another one.
    pub(super) fn stir(&self, webhook: &WebhookId, now_ms: u64) {
        let mut queues = self.queues();
        if let Some(queue) = queues.by_webhook.get_mut(webhook) {
            (queue.rest_until_ms, queue.failures) = (0, 0);
            queues.wake(webhook, now_ms);
        }
        drop(queues);
        self.changed.notify_one();
    }

    /// Notes that so many dead letters are gone.
    pub(super) fn dead_gone(&self, webhook: &WebhookId, gone: usize) {
        self.with(webhook, |queue| queue.dead = queue.dead.saturating_sub(gone));
    }

    pub(super) fn state(&self, webhook: &WebhookId) -> DeliveryState {
        self.with(webhook, |queue| queue.state.clone()).unwrap_or_default()
    }

    pub(super) fn counts(&self, webhook: &WebhookId) -> EventCounts {
        let counts = |queue: &mut Queue| EventCounts {
            pending: queue.pending(),
            retrying: queue.retrying,
            dead: queue.dead,
        };
        self.with(webhook, counts).unwrap_or_default()
    }

    /// The events of all webhooks together.
    pub(super) fn totals(&self) -> OutboxTotals {
        let queues = self.queues();
        let mut events = EventCounts::default();
        for queue in queues.by_webhook.values() {
            events.pending += queue.pending();
            events.retrying += queue.retrying;
            events.dead += queue.dead;
        }
        let webhooks = queues.by_webhook.len();
        let dropped = self.dropped.load(Ordering::Relaxed);
        OutboxTotals { webhooks, events, turns: queues.turns, dropped }
    }

    /// Whether anything waits for its time.
    pub(super) fn is_waiting(&self) -> bool {
        !self.queues().wakes.is_empty()
    }

    /// Waits until something may be due that was not.
    pub(super) async fn changed(&self) {
        self.changed.notified().await;
    }
}

impl Queues {
    /// Puts a webhook where it belongs among those that want a turn.
    fn wake(&mut self, webhook: &WebhookId, now_ms: u64) {
        let Some(queue) = self.by_webhook.get_mut(webhook) else { return };
        let wanted_ms = queue.wants_turn_ms(now_ms);
        // Whoever waits already keeps the place.
        if let (Some(old_ms), Some(new_ms)) = (queue.wake_ms, wanted_ms)
            && old_ms <= new_ms
            && old_ms >= queue.rest_until_ms
        {
            return;
        }
        if let Some(old_ms) = std::mem::replace(&mut queue.wake_ms, wanted_ms) {
            self.wakes.remove(&(old_ms, webhook.clone()));
        }
        self.wakes.extend(wanted_ms.map(|when_ms| (when_ms, webhook.clone())));
    }

    fn count_pending(&mut self, account: &AccountId, fewer: usize, more: usize) {
        self.pending = (self.pending + more).saturating_sub(fewer);
        let share = self.shares.entry(account.clone()).or_default();
        share.pending = (share.pending + more).saturating_sub(fewer);
        self.forget_empty(account);
    }

    fn count_turns(&mut self, account: &AccountId, fewer: usize, more: usize) {
        self.turns = (self.turns + more).saturating_sub(fewer);
        let share = self.shares.entry(account.clone()).or_default();
        share.turns = (share.turns + more).saturating_sub(fewer);
        self.forget_empty(account);
    }

    fn forget_empty(&mut self, account: &AccountId) {
        if self.shares.get(account).is_some_and(|share| share.pending + share.turns == 0) {
            self.shares.remove(account);
        }
    }
}
