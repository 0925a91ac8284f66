//! Delivery turns: the events of one webhook, in order.
//!
//! [`Deliveries::lease`] returns a webhook with due events; a [`DeliveryLease`] yields these events, and records
//! the outcome of each. An undeliverable event becomes a dead letter. Guarantees: an event is removed from the store
//! only when it was delivered or has become a dead letter: an interruption causes a redelivery. Non-goals: the network,
//! and the retry schedule.

use std::sync::Arc;

use engine::Batch;

use super::event::{self, DeadLetter, DeliveryState, QueuedEvent};
use super::outbox::{EventCounts, EventOutcome, OutboxTotals};
use super::record::{corrupt_record, decode, encode};
use super::{Catalog, CatalogError, Deliveries, FairUseStanding, Webhook, WebhookId};
use crate::limits::{self, millis};

/// Exclusive right to send the due events of a webhook, released when dropped.
pub struct DeliveryLease {
    catalog: Catalog,
    webhook: WebhookId,
}

/// Due event and its destination.
pub struct DueEvent {
    pub webhook: Arc<Webhook>,
    pub event: QueuedEvent,
    number: u64,
}

/// Failed delivery.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeliveryFailure {
    /// Status of the response, if any.
    pub status: Option<u16>,
    pub error: String,
    /// Start of the response body.
    pub answer: String,
}

/// Next step after a failed delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NextAttempt {
    /// Retry not before this time, in milliseconds since 1970.
    NotBefore(u64),
    DeadLetter,
}

impl Deliveries<'_> {
    /// Takes the turn of the longest waiting webhook with due events.
    pub fn lease(&self) -> Option<DeliveryLease> {
        loop {
            let now_ms = self.0.now_ms();
            let webhook = self.0.state.outbox.lease_webhook(now_ms)?;
            let turn = DeliveryLease { catalog: self.0.clone(), webhook };
            if self.may_send(&turn.webhook) {
                return Some(turn);
            }
            self.0.state.outbox.back_off(
                &turn.webhook,
                now_ms + millis(limits::WEBHOOK_SUSPENDED_RECHECK_INTERVAL),
            );
        }
    }

    /// Returns whether the webhook is enabled, its bucket exists, and the bucket's owner is not suspended.
    fn may_send(&self, id: &WebhookId) -> bool {
        let Some(webhook) = self.0.webhooks().get(id).filter(|webhook| webhook.enabled) else {
            return false;
        };
        let owner = self
            .0
            .buckets()
            .get(&webhook.bucket)
            .and_then(|bucket| self.0.accounts().get(&bucket.owner));
        owner.is_some_and(|owner| owner.standing != FairUseStanding::Suspended)
    }

    /// Returns the totals of all webhooks.
    pub fn totals(&self) -> OutboxTotals {
        self.0.state.outbox.totals()
    }

    /// Returns the delivery state of a webhook.
    pub fn of_webhook(&self, id: &WebhookId) -> (EventCounts, DeliveryState) {
        (self.0.state.outbox.counts(id), self.0.state.outbox.state(id))
    }

    /// Returns whether any event waits for its due time.
    pub fn has_waiting(&self) -> bool {
        self.0.state.outbox.is_waiting()
    }

    /// Waits until an event may have become due.
    pub async fn changed(self) {
        self.0.state.outbox.changed().await;
    }

    fn read_event(&self, id: &WebhookId, number: u64) -> Result<QueuedEvent, CatalogError> {
        let fact = event::event_fact(id, number)?;
        let bytes = self.0.state.store.fact(&fact)?;
        decode(&fact, &bytes.ok_or_else(|| corrupt_record(&fact, &"it was deleted"))?)
    }
}

impl DeliveryLease {
    /// Returns the oldest due event; `None` if there is none, or sending is not allowed. Blocks on the index.
    pub fn next(&self) -> Result<Option<DueEvent>, CatalogError> {
        let (catalog, id) = (&self.catalog, &self.webhook);
        if !catalog.deliveries().may_send(id) {
            return Ok(None);
        }
        let now_ms = catalog.now_ms();
        let Some(number) = catalog.state.outbox.next(id, now_ms) else { return Ok(None) };
        let Some(webhook) = catalog.webhooks().get(id) else { return Ok(None) };
        match catalog.deliveries().read_event(id, number) {
            Ok(event) => Ok(Some(DueEvent { webhook, event, number })),
            Err(error) => {
                // The unreadable event does not block others, and is retried later.
                let later_ms = now_ms + millis(limits::WEBHOOK_BACKOFF_MAX);
                let state = catalog.state.outbox.state(id);
                catalog.state.outbox.record_outcome(
                    id,
                    number,
                    1,
                    &EventOutcome::Retry(later_ms),
                    state,
                );
                Err(error)
            }
        }
    }

    /// Records a successful delivery. Blocks on the disk.
    pub fn record_delivered(&self, letter: &DueEvent, status: u16) -> Result<(), CatalogError> {
        let now_ms = self.catalog.now_ms();
        self.catalog.state.outbox.record_success(&self.webhook);
        let state = DeliveryState {
            last_attempt_ms: Some(now_ms),
            last_status: Some(status),
            last_error: None,
            last_delivery_ms: Some(now_ms),
            ..self.catalog.state.outbox.state(&self.webhook)
        };
        let batch = Batch::new().delete_fact(event::event_fact(&self.webhook, letter.number)?);
        self.close(letter, batch, EventOutcome::Delivered, state)
    }

    /// Counts a failure of the destination; returns the number of consecutive ones.
    pub fn record_failure(&self) -> u32 {
        self.catalog.state.outbox.record_failure(&self.webhook)
    }

    /// Records a failed delivery and its next step. Blocks on the disk.
    pub fn record_failed(
        &self,
        letter: &DueEvent,
        failure: &DeliveryFailure,
        next: NextAttempt,
    ) -> Result<(), CatalogError> {
        let (catalog, id) = (&self.catalog, &self.webhook);
        let now_ms = catalog.now_ms();
        let state = DeliveryState {
            last_attempt_ms: Some(now_ms),
            last_status: failure.status,
            last_error: Some(failure.error.clone()),
            ..catalog.state.outbox.state(id)
        };
        let fact = event::event_fact(id, letter.number)?;
        let attempts = letter.event.attempts.saturating_add(1);
        let event = QueuedEvent { attempts, ..letter.event.clone() };
        match next {
            NextAttempt::NotBefore(next_ms) => {
                let value = encode(&fact, &QueuedEvent { next_ms, ..event })?;
                self.close(
                    letter,
                    Batch::new().put_fact(fact, value),
                    EventOutcome::Retry(next_ms),
                    state,
                )
            }
            NextAttempt::DeadLetter => {
                let _change = catalog.begin();
                let DeliveryFailure { status, error, answer } = failure.clone();
                let dead = DeadLetter { event, died_ms: now_ms, status, error, answer };
                let dead_fact = event::dead_fact(id, letter.number)?;
                let value = encode(&dead_fact, &dead)?;
                let room = limits::WEBHOOK_DEAD_LETTERS_MAX - 1;
                let over = catalog.state.outbox.counts(id).dead.saturating_sub(room);
                let prefix = format!("{}{id}/", event::DEAD_PREFIX);
                let oldest = match over {
                    0 => Vec::new(),
                    _ => catalog.state.store.facts(&prefix, None, over)?,
                };
                let batch = Batch::new().delete_fact(fact).put_fact(dead_fact, value);
                let batch = oldest.iter().fold(batch, |it, (fact, _)| it.delete_fact(fact.clone()));
                self.close(letter, batch, EventOutcome::DeadLettered, state)?;
                catalog.state.outbox.record_purged(id, oldest.len());
                Ok(())
            }
        }
    }

    /// Pauses the webhook until this time.
    pub fn back_off_until(&self, until_ms: u64) {
        self.catalog.state.outbox.back_off(&self.webhook, until_ms);
    }

    fn close(
        &self,
        letter: &DueEvent,
        batch: Batch,
        left: EventOutcome,
        state: DeliveryState,
    ) -> Result<(), CatalogError> {
        let (outbox, id) = (&self.catalog.state.outbox, &self.webhook);
        let fact = id.fact_at(event::STATE_PREFIX)?;
        let batch = batch.put_fact(fact.clone(), encode(&fact, &state)?);
        let committed = self.catalog.webhooks().commit_if_present(id, batch);
        let attempts = letter.event.attempts;
        match &committed {
            Ok(()) => outbox.record_outcome(id, letter.number, attempts, &left, state),
            Err(_) => {
                // An unrecorded outcome is retried; with a pause, or a store that rejects writes would cause an endless
                // loop.
                let now_ms = self.catalog.now_ms();
                outbox.back_off(id, now_ms + millis(limits::WEBHOOK_SUSPENDED_RECHECK_INTERVAL));
            }
        }
        committed
    }
}

impl Drop for DeliveryLease {
    fn drop(&mut self) {
        self.catalog.state.outbox.release_webhook(&self.webhook, self.catalog.now_ms());
    }
}
