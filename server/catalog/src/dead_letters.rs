//! Dead letters: listing, retry and deletion of undeliverable events.
//!
//! Guarantees: a webhook retains the newest [`limits::WEBHOOK_DEAD_LETTERS_MAX`], for
//! [`limits::WEBHOOK_DEAD_LETTER_RETENTION`]. Non-goals: authorization.

use std::time::Duration;

use engine::{Batch, FactName};

use super::event::{self, DeadLetter, QueuedEvent};
use super::record::{corrupt_record, decode, encode};
use super::{Catalog, CatalogError, WebhookId};
use crate::limits;

impl Catalog {
    /// Returns a page of dead letters, oldest first, after a position; and the position of the last one if there are
    /// more.
    pub fn dead_letters(
        &self,
        id: &WebhookId,
        after: Option<u64>,
        limit: usize,
    ) -> Result<(Vec<DeadLetter>, Option<u64>), CatalogError> {
        let mut page = self.dead_page(id, after, limit + 1)?;
        let has_more = page.len() > limit;
        page.truncate(limit);
        let last = page.last().map(|(number, _)| *number).filter(|_| has_more);
        Ok((page.into_iter().map(|(_, letter)| letter).collect(), last))
    }

    /// Queues dead letters for delivery: all, or the one with this id. Returns their number; those beyond the queue
    /// limit stay.
    pub fn redrive_dead_letters(
        &self,
        id: &WebhookId,
        only: Option<&str>,
    ) -> Result<usize, CatalogError> {
        let _changing = self.change();
        let now_ms = self.0.clock.unix_ms();
        let chosen = self.chosen(id, only)?;
        let mut count = 0;
        for letters in chosen.chunks(limits::WEBHOOK_BATCH_EVENTS) {
            let (mut batch, mut events) = (Batch::new(), Vec::new());
            for (number, letter) in letters {
                let fact = event::event_fact(id, *number)?;
                let event = QueuedEvent { attempts: 0, next_ms: 0, ..letter.event.clone() };
                let value = encode(&fact, &event)?;
                if self.0.outbox.reserve(id) {
                    batch = batch.delete_fact(event::dead_fact(id, *number)?).put_fact(fact, value);
                    events.push((id.clone(), *number));
                }
            }
            if events.is_empty() {
                break;
            }
            if let Err(error) = self.commit_if_webhook_exists(id, batch) {
                self.0.outbox.release(&events);
                return Err(error);
            }
            self.0.outbox.record_purged(id, events.len());
            self.0.outbox.confirm(&events, now_ms);
            count += events.len();
        }
        self.0.outbox.reset_backoff(id, now_ms);
        Ok(count)
    }

    /// Deletes dead letters: all, or the one with this id. Returns their number.
    pub fn purge_dead_letters(
        &self,
        id: &WebhookId,
        only: Option<&str>,
    ) -> Result<usize, CatalogError> {
        let _changing = self.change();
        let chosen = self.chosen(id, only)?;
        self.forget(id, chosen.iter().map(|(number, _)| *number))
    }

    /// Deletes old dead letters. Returns their number.
    pub fn sweep_dead_letters(&self) -> Result<usize, CatalogError> {
        let now_ms = self.0.clock.unix_ms();
        let ids: Vec<WebhookId> = self.tables().webhooks.keys().cloned().collect();
        let mut count = 0;
        for id in ids.iter().filter(|id| self.0.outbox.counts(id).dead > 0) {
            let _changing = self.change();
            let letters = self.dead_page(id, None, limits::WEBHOOK_DEAD_LETTERS_MAX)?;
            let kept_ms = millis(limits::WEBHOOK_DEAD_LETTER_RETENTION);
            let is_old = |letter: &DeadLetter| now_ms >= letter.died_ms.saturating_add(kept_ms);
            let old = letters.iter().filter(|(_, letter)| is_old(letter));
            count += self.forget(id, old.map(|(number, _)| *number))?;
        }
        Ok(count)
    }

    fn forget(
        &self,
        id: &WebhookId,
        numbers: impl Iterator<Item = u64>,
    ) -> Result<usize, CatalogError> {
        let numbers: Vec<u64> = numbers.collect();
        for numbers in numbers.chunks(limits::WEBHOOK_BATCH_EVENTS) {
            let mut batch = Batch::new();
            for number in numbers {
                batch = batch.delete_fact(event::dead_fact(id, *number)?);
            }
            self.0.store.commit(batch)?;
            self.0.outbox.record_purged(id, numbers.len());
        }
        Ok(numbers.len())
    }

    fn chosen(
        &self,
        id: &WebhookId,
        only: Option<&str>,
    ) -> Result<Vec<(u64, DeadLetter)>, CatalogError> {
        self.require_webhook(id)?;
        let mut letters = self.dead_page(id, None, limits::WEBHOOK_DEAD_LETTERS_MAX)?;
        if let Some(event) = only {
            letters.retain(|(_, letter)| letter.event.id == event);
            if letters.is_empty() {
                return Err(CatalogError::NotFound(format!("the dead letter {event:?}")));
            }
        }
        Ok(letters)
    }

    fn dead_page(
        &self,
        id: &WebhookId,
        after: Option<u64>,
        limit: usize,
    ) -> Result<Vec<(u64, DeadLetter)>, CatalogError> {
        let prefix = format!("{}{id}/", event::DEAD_PREFIX);
        let after = after.map(|number| event::dead_fact(id, number)).transpose()?;
        let read = |(fact, bytes): (FactName, bytes::Bytes)| {
            let number = fact.as_str().strip_prefix(&*prefix).and_then(|it| it.parse().ok());
            let number =
                number.ok_or_else(|| corrupt_record(&fact, &"its name is not an event"))?;
            Ok((number, decode(&fact, &bytes)?))
        };
        let page = self.0.store.facts(&prefix, after.as_ref(), limit)?;
        page.into_iter().map(read).collect()
    }
}

pub(super) fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
