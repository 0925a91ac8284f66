//! Events on their way to one webhook, one after the other.
//!
//! [`Catalog::take_turn`] hands out webhooks that have something due; a [`Turn`] gives their events, and is told how
//! each ended. What was given up is a dead letter.
//! Promises: an event goes from the store only when it was delivered or given up: a stop in between sends it again.
//! Never here: the network, and when to try again.

use std::sync::Arc;

use engine::Batch;

use super::dead_letters::millis;
use super::event::{self, DeadLetter, DeliveryState, Event};
use super::outbox::Left;
use super::record::{decode, encode, unreadable};
use super::{Catalog, CatalogError, Standing, Webhook, WebhookId};
use crate::limits;

/// The right to send what is due to one webhook. One at a time; dropped, it is given back.
pub struct Turn {
    catalog: Catalog,
    webhook: WebhookId,
}

/// An event that is due, and where it goes.
pub struct Letter {
    pub webhook: Arc<Webhook>,
    pub event: Event,
    number: u64,
}

/// Why an event was not delivered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// What the destination answered, where it did.
    pub status: Option<u16>,
    pub error: String,
    /// The beginning of the body of its answer.
    pub answer: String,
}

/// What becomes of an event that was not delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NextTry {
    /// Milliseconds since 1970.
    NotBefore(u64),
    Never,
}

impl Catalog {
    /// The turn of the webhook that has waited longest of those that have something due.
    pub fn take_turn(&self) -> Option<Turn> {
        loop {
            let now_ms = self.0.clock.unix_ms();
            let webhook = self.0.outbox.take_turn(now_ms)?;
            let turn = Turn { catalog: self.clone(), webhook };
            if self.may_send(&turn.webhook) {
                return Some(turn);
            }
            self.0.outbox.rest(&turn.webhook, now_ms + millis(limits::WEBHOOK_HELD_WAIT));
        }
    }

    /// Whether the webhook is enabled, its bucket is there, and the bucket's owner is not suspended.
    fn may_send(&self, id: &WebhookId) -> bool {
        let Some(webhook) = self.webhook(id).filter(|webhook| webhook.enabled) else {
            return false;
        };
        let owner = self.bucket(&webhook.bucket).and_then(|bucket| self.account(&bucket.owner));
        owner.is_some_and(|owner| owner.standing != Standing::Suspended)
    }

    /// Whether any event waits for its time.
    pub fn has_events_waiting(&self) -> bool {
        self.0.outbox.is_waiting()
    }

    /// Waits until an event may be due that was not.
    pub async fn events_changed(&self) {
        self.0.outbox.changed().await;
    }

    fn read_event(&self, id: &WebhookId, number: u64) -> Result<Event, CatalogError> {
        let fact = event::event_fact(id, number)?;
        let bytes = self.0.store.fact(&fact)?;
        decode(&fact, &bytes.ok_or_else(|| unreadable(&fact, &"it was deleted"))?)
    }
}

impl Turn {
    /// The oldest event that is due; none once there is none, or nothing may be sent any more. Waits for the index.
    pub fn next(&self) -> Result<Option<Letter>, CatalogError> {
        let (catalog, id) = (&self.catalog, &self.webhook);
        if !catalog.may_send(id) {
            return Ok(None);
        }
        let now_ms = catalog.0.clock.unix_ms();
        let Some(number) = catalog.0.outbox.next(id, now_ms) else { return Ok(None) };
        let Some(webhook) = catalog.webhook(id) else { return Ok(None) };
        match catalog.read_event(id, number) {
            Ok(event) => Ok(Some(Letter { webhook, event, number })),
            Err(error) => {
                // It blocks nobody, and is looked at again.
                let later_ms = now_ms + millis(limits::WEBHOOK_REST_MAX);
                let state = catalog.0.outbox.state(id);
                catalog.0.outbox.left(id, number, 1, &Left::Waits(later_ms), state);
                Err(error)
            }
        }
    }

    /// Notes that the destination took an event. Waits for the disk.
    pub fn delivered(&self, letter: &Letter, status: u16) -> Result<(), CatalogError> {
        let now_ms = self.catalog.0.clock.unix_ms();
        self.catalog.0.outbox.note_success(&self.webhook);
        let state = DeliveryState {
            last_attempt_ms: Some(now_ms),
            last_status: Some(status),
            last_error: None,
            last_delivery_ms: Some(now_ms),
            ..self.catalog.0.outbox.state(&self.webhook)
        };
        let batch = Batch::new().delete_fact(event::event_fact(&self.webhook, letter.number)?);
        self.close(letter, batch, Left::Delivered, state)
    }

    /// Counts a failure of the destination; how many in a row that makes.
    pub fn note_failure(&self) -> u32 {
        self.catalog.0.outbox.note_failure(&self.webhook)
    }

    /// Notes that the destination did not take an event, and what becomes of it. Waits for the disk.
    pub fn failed(
        &self,
        letter: &Letter,
        failure: &Failure,
        next: NextTry,
    ) -> Result<(), CatalogError> {
        let (catalog, id) = (&self.catalog, &self.webhook);
        let now_ms = catalog.0.clock.unix_ms();
        let state = DeliveryState {
            last_attempt_ms: Some(now_ms),
            last_status: failure.status,
            last_error: Some(failure.error.clone()),
            ..catalog.0.outbox.state(id)
        };
        let fact = event::event_fact(id, letter.number)?;
        let attempts = letter.event.attempts.saturating_add(1);
        let event = Event { attempts, ..letter.event.clone() };
        match next {
            NextTry::NotBefore(next_ms) => {
                let value = encode(&fact, &Event { next_ms, ..event })?;
                self.close(letter, Batch::new().put_fact(fact, value), Left::Waits(next_ms), state)
            }
            NextTry::Never => {
                let _changing = catalog.change();
                let Failure { status, error, answer } = failure.clone();
                let dead = DeadLetter { event, died_ms: now_ms, status, error, answer };
                let dead_fact = event::dead_fact(id, letter.number)?;
                let value = encode(&dead_fact, &dead)?;
                let room = limits::WEBHOOK_DEAD_LETTERS_MAX - 1;
                let over = catalog.0.outbox.counts(id).dead.saturating_sub(room);
                let prefix = format!("{}{id}/", event::DEAD_PREFIX);
                let oldest = match over {
                    0 => Vec::new(),
                    _ => catalog.0.store.facts(&prefix, None, over)?,
                };
                let batch = Batch::new().delete_fact(fact).put_fact(dead_fact, value);
                let batch = oldest.iter().fold(batch, |it, (fact, _)| it.delete_fact(fact.clone()));
                self.close(letter, batch, Left::Died, state)?;
                catalog.0.outbox.dead_gone(id, oldest.len());
                Ok(())
            }
        }
    }

    /// Nothing is sent to this webhook before that moment.
    pub fn rest_until(&self, until_ms: u64) {
        self.catalog.0.outbox.rest(&self.webhook, until_ms);
    }

    fn close(
        &self,
        letter: &Letter,
        batch: Batch,
        left: Left,
        state: DeliveryState,
    ) -> Result<(), CatalogError> {
        let (outbox, id) = (&self.catalog.0.outbox, &self.webhook);
        let fact = event::state_fact(id)?;
        let batch = batch.put_fact(fact.clone(), encode(&fact, &state)?);
        let committed = self.catalog.commit_if_there(id, batch);
        let attempts = letter.event.attempts;
        match &committed {
            Ok(()) => outbox.left(id, letter.number, attempts, &left, state),
            Err(_) => {
                // What cannot be noted happens again; not at once, or a store that takes no writes would send for ever.
                let now_ms = self.catalog.0.clock.unix_ms();
                outbox.rest(id, now_ms + millis(limits::WEBHOOK_HELD_WAIT));
            }
        }
        committed
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.catalog.0.outbox.end_turn(&self.webhook, self.catalog.0.clock.unix_ms());
    }
}
