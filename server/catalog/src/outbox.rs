//! In-memory part of the webhook outbox: queues of pending events, and scheduling of webhooks.
//!
//! A webhook with due events that is not in back-off gets a turn, and at most one at a time, so that its events stay in
//! order. The longest waiting webhook comes first; an account has a bounded number of turns, so that unresponsive
//! destinations do not starve others. Guarantees: queues are bounded, per webhook, per account and in total. Non-goals:
//! the store, the network.

mod queue;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use engine::{FactName, Store};
use tokio::sync::Notify;

use self::queue::Queue;
use super::buckets::BucketTable;
use super::change::{each_fact, split};
use super::event::{self, DeliveryState, QueuedEvent};
use super::record::{corrupt_record, decode};
use super::webhooks::WebhookTable;
use super::{AccountId, CatalogError, WebhookId};
use crate::limits;

/// All queues.
#[derive(Default)]
pub(super) struct Outbox {
    /// Last event number. Held from numbering events until their batch is submitted, so that numbers are in commit
    /// order. Taken before `queues`, never inside it.
    numbers: Mutex<u64>,
    queues: Mutex<Queues>,
    /// Events dropped at a limit since the start.
    dropped: AtomicU64,
    changed: Notify,
}

#[derive(Default)]
struct Queues {
    by_webhook: BTreeMap<WebhookId, Queue>,
    /// Webhooks that want a turn, by the time of it.
    wakes: BTreeSet<(u64, WebhookId)>,
    shares: BTreeMap<AccountId, AccountUsage>,
    pending: usize,
    leases: usize,
    /// Deleted webhooks that may have leftovers in the store.
    leftovers: BTreeSet<WebhookId>,
}

/// Share of one account in the outbox.
#[derive(Default)]
struct AccountUsage {
    pending: usize,
    leases: usize,
}

/// Event counts of a webhook.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EventCounts {
    /// Pending events, including those being sent.
    pub pending: usize,
    /// Pending events that failed before.
    pub retrying: usize,
    /// Retained dead letters.
    pub dead: usize,
}

/// Totals of all webhooks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OutboxTotals {
    pub webhooks: usize,
    pub events: EventCounts,
    /// Webhooks that are being sent to.
    pub leases: usize,
    /// Events dropped at a limit since the start.
    pub dropped: u64,
}

/// Outcome of a delivery attempt.
pub(super) enum EventOutcome {
    Delivered,
    DeadLettered,
    /// Retried, not before this time.
    Retry(u64),
}

impl Outbox {
    /// Loads the pending events from the store. A bucket that is being deleted has no owner; its webhooks are deleted
    /// with it.
    pub(super) fn load(
        store: &Store,
        webhooks: &WebhookTable,
        buckets: &BucketTable,
    ) -> Result<Self, CatalogError> {
        let outbox = Self::default();
        for webhook in webhooks.all() {
            if let Some(owner) = buckets.owner_of(&webhook.bucket) {
                outbox.add_queue(webhook.id.clone(), owner);
            }
        }
        for prefix in [event::EVENT_PREFIX, event::DEAD_PREFIX, event::STATE_PREFIX] {
            each_fact(store, prefix, |fact, value| outbox.load_fact(fact, value))?;
        }
        Ok(outbox)
    }

    /// Loads a fact of a webhook. Those of an unknown webhook are leftovers, which are deleted unread.
    fn load_fact(&self, fact: &FactName, value: &[u8]) -> Result<(), CatalogError> {
        let (prefix, name) = split(fact);
        let (webhook, number) = match prefix {
            event::STATE_PREFIX => (WebhookId::parse(name), 0),
            _ => event::parse_event_name(name).map_or((None, 0), |(id, it)| (Some(id), it)),
        };
        let webhook =
            webhook.ok_or_else(|| corrupt_record(fact, &"its name is not that of a webhook"))?;
        let mut last = self.lock_sequence();
        *last = number.max(*last);
        let mut queues = self.queues();
        let Some(queue) = queues.by_webhook.get_mut(&webhook) else {
            queues.leftovers.insert(webhook);
            return Ok(());
        };
        match prefix {
            event::STATE_PREFIX => queue.state = decode(fact, value)?,
            event::DEAD_PREFIX => queue.dead += 1,
            _ => {
                let event: QueuedEvent = decode(fact, value)?;
                // At time zero every event with a due time is still waiting.
                queue.add(number, event.next_ms, 0);
                queue.retrying += usize::from(event.attempts > 0);
                let account = queue.account.clone();
                queues.count_pending(&account, 0, 1);
                queues.wake(&webhook, 0);
            }
        }
        Ok(())
    }

    pub(super) fn lock_sequence(&self) -> MutexGuard<'_, u64> {
        self.numbers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn queues(&self) -> MutexGuard<'_, Queues> {
        self.queues.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn with<T>(&self, webhook: &WebhookId, work: impl FnOnce(&mut Queue) -> T) -> Option<T> {
        self.queues().by_webhook.get_mut(webhook).map(work)
    }

    /// Creates a queue.
    pub(super) fn add_queue(&self, webhook: WebhookId, account: AccountId) {
        self.queues().by_webhook.insert(webhook, Queue::new(account));
    }

    /// Removes a queue; its leftovers in the store are to be removed.
    pub(super) fn remove_queue(&self, webhook: &WebhookId) {
        let mut queues = self.queues();
        if let Some(queue) = queues.by_webhook.remove(webhook) {
            queues.wakes.retain(|(_, id)| id != webhook);
            queues.count_pending(&queue.account, queue.pending(), 0);
            if queue.is_busy {
                queues.adjust_lease_count(&queue.account, 1, 0);
            }
        }
        queues.leftovers.insert(webhook.clone());
    }

    /// Records an unknown webhook with leftovers in the store.
    pub(super) fn record_orphan(&self, webhook: WebhookId) {
        self.queues().leftovers.insert(webhook);
    }

    /// Takes one of the webhooks that may have leftovers.
    pub(super) fn take_orphan(&self) -> Option<WebhookId> {
        self.queues().leftovers.pop_first()
    }

    /// Reserves room for an event; counts it as dropped if there is none.
    pub(super) fn reserve(&self, webhook: &WebhookId) -> bool {
        let mut queues = self.queues();
        let in_all = queues.pending;
        let Some(queue) = queues.by_webhook.get(webhook) else { return false };
        let of_account = queues.shares.get(&queue.account).map_or(0, |share| share.pending);
        let account = queue.account.clone();
        let has_room = queue.pending() < limits::WEBHOOK_PENDING_MAX
            && of_account < limits::WEBHOOK_PENDING_PER_ACCOUNT_MAX
            && in_all < limits::WEBHOOK_PENDING_TOTAL_MAX;
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

    /// Queues events with a reservation, once they are durable.
    pub(super) fn confirm(&self, events: &[(WebhookId, u64)], now_ms: u64) {
        let mut queues = self.queues();
        for (webhook, number) in events {
            match queues.by_webhook.get_mut(webhook) {
                Some(queue) => {
                    queue.reserved = queue.reserved.saturating_sub(1);
                    queue.add(*number, now_ms, now_ms);
                    queues.wake(webhook, now_ms);
                }
                // The webhook was deleted in the meantime.
                None => drop(queues.leftovers.insert(webhook.clone())),
            }
        }
        drop(queues);
        self.changed.notify_one();
    }

    /// Releases reservations after a failed batch.
    pub(super) fn release(&self, events: &[(WebhookId, u64)]) {
        let mut queues = self.queues();
        for (webhook, _) in events {
            let Some(queue) = queues.by_webhook.get_mut(webhook) else { continue };
            queue.reserved = queue.reserved.saturating_sub(1);
            let account = queue.account.clone();
            queues.count_pending(&account, 1, 0);
        }
    }

    /// Takes the turn of the longest waiting webhook.
    pub(super) fn lease_webhook(&self, now_ms: u64) -> Option<WebhookId> {
        let mut queues = self.queues();
        if queues.leases >= limits::WEBHOOK_DELIVERIES_MAX {
            return None;
        }
        let has_turn_left = |webhook: &WebhookId| {
            let account = &queues.by_webhook.get(webhook)?.account;
            let turns = queues.shares.get(account).map_or(0, |share| share.leases);
            (turns < limits::WEBHOOK_DELIVERIES_PER_ACCOUNT_MAX).then_some(())
        };
        let due = queues.wakes.iter().take_while(|(when_ms, _)| *when_ms <= now_ms);
        let (_, webhook) = due.into_iter().find(|(_, webhook)| has_turn_left(webhook).is_some())?;
        let webhook = webhook.clone();
        let queue = queues.by_webhook.get_mut(&webhook)?;
        queue.is_busy = true;
        let account = queue.account.clone();
        queues.adjust_lease_count(&account, 0, 1);
        queues.wake(&webhook, now_ms);
        Some(webhook)
    }

    /// Ends a turn.
    pub(super) fn release_webhook(&self, webhook: &WebhookId, now_ms: u64) {
        let mut queues = self.queues();
        let Some(queue) = queues.by_webhook.get_mut(webhook).filter(|queue| queue.is_busy) else {
            return;
        };
        queue.is_busy = false;
        let account = queue.account.clone();
        queues.adjust_lease_count(&account, 1, 0);
        queues.wake(webhook, now_ms);
    }

    /// Returns the oldest due event.
    pub(super) fn next(&self, webhook: &WebhookId, now_ms: u64) -> Option<u64> {
        self.with(webhook, |queue| queue.next(now_ms)).flatten()
    }

    /// Records the outcome of an event with a number of earlier failed attempts, and the new delivery state.
    pub(super) fn record_outcome(
        &self,
        webhook: &WebhookId,
        number: u64,
        attempts: u32,
        left: &EventOutcome,
        state: DeliveryState,
    ) {
        let mut queues = self.queues();
        let Some(queue) = queues.by_webhook.get_mut(webhook) else { return };
        if !queue.remove(number) {
            return;
        }
        // Events dropped in the meantime are counted here only.
        let dropped = queue.state.dropped;
        queue.state = DeliveryState { dropped, ..state };
        match left {
            EventOutcome::Retry(next_ms) => {
                queue.add(number, *next_ms, 0);
                queue.retrying += usize::from(attempts == 0);
            }
            EventOutcome::Delivered | EventOutcome::DeadLettered => {
                queue.retrying -= usize::from(attempts > 0).min(queue.retrying);
                queue.dead += usize::from(matches!(left, EventOutcome::DeadLettered));
                let account = queue.account.clone();
                queues.count_pending(&account, 1, 0);
            }
        }
    }

    /// Resets the consecutive failures after a success.
    pub(super) fn record_success(&self, webhook: &WebhookId) {
        self.with(webhook, |queue| queue.failures = 0);
    }

    /// Counts a failure; returns the number of consecutive ones.
    pub(super) fn record_failure(&self, webhook: &WebhookId) -> u32 {
        let count = |queue: &mut Queue| {
            queue.failures = queue.failures.saturating_add(1);
            queue.failures
        };
        self.with(webhook, count).unwrap_or(1)
    }

    /// Puts a webhook in back-off.
    pub(super) fn back_off(&self, webhook: &WebhookId, until_ms: u64) {
        self.with(webhook, |queue| queue.rest_until_ms = until_ms.max(queue.rest_until_ms));
    }

    /// Ends the back-off, since the destination may have changed.
    pub(super) fn reset_backoff(&self, webhook: &WebhookId, now_ms: u64) {
        let mut queues = self.queues();
        if let Some(queue) = queues.by_webhook.get_mut(webhook) {
            (queue.rest_until_ms, queue.failures) = (0, 0);
            queues.wake(webhook, now_ms);
        }
        drop(queues);
        self.changed.notify_one();
    }

    /// Subtracts deleted dead letters.
    pub(super) fn record_purged(&self, webhook: &WebhookId, gone: usize) {
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

    /// Returns the totals of all webhooks.
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
        OutboxTotals { webhooks, events, leases: queues.leases, dropped }
    }

    /// Returns whether any event waits for its due time.
    pub(super) fn is_waiting(&self) -> bool {
        !self.queues().wakes.is_empty()
    }

    /// Waits until an event may have become due.
    pub(super) async fn changed(&self) {
        self.changed.notified().await;
    }
}

impl Queues {
    /// Inserts a webhook at its position among those that want a turn.
    fn wake(&mut self, webhook: &WebhookId, now_ms: u64) {
        let Some(queue) = self.by_webhook.get_mut(webhook) else { return };
        let wanted_ms = queue.due_at_ms(now_ms);
        // A waiting webhook retains its position.
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

    fn adjust_lease_count(&mut self, account: &AccountId, fewer: usize, more: usize) {
        self.leases = (self.leases + more).saturating_sub(fewer);
        let share = self.shares.entry(account.clone()).or_default();
        share.leases = (share.leases + more).saturating_sub(fewer);
        self.forget_empty(account);
    }

    fn forget_empty(&mut self, account: &AccountId) {
        if self.shares.get(account).is_some_and(|share| share.pending + share.leases == 0) {
            self.shares.remove(account);
        }
    }
}
