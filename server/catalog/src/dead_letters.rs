//! Dead letters: listing, retry and deletion of undeliverable events.
//!
//! Guarantees: a webhook retains the newest [`limits::WEBHOOK_DEAD_LETTERS_MAX`], for
//! [`limits::WEBHOOK_DEAD_LETTER_RETENTION`]. Non-goals: authorization.

use engine::{Batch, FactName};

use super::change::Change;
use super::event::{self, DeadLetter, QueuedEvent};
use super::record::{corrupt_record, decode, encode};
use super::{CatalogError, Deliveries, WebhookId};
use crate::limits::{self, millis};

impl Deliveries<'_> {
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
    pub fn redrive(&self, id: &WebhookId, only: Option<&str>) -> Result<usize, CatalogError> {
        let _change = self.0.begin();
        let now_ms = self.0.now_ms();
        let chosen = self.chosen(id, only)?;
        let mut count = 0;
        for letters in chosen.chunks(limits::WEBHOOK_BATCH_EVENTS) {
            let (mut batch, mut events) = (Batch::new(), Vec::new());
            for (number, letter) in letters {
                let fact = event::event_fact(id, *number)?;
                let event = QueuedEvent { attempts: 0, next_ms: 0, ..letter.event.clone() };
                let value = encode(&fact, &event)?;
                if self.0.state.outbox.reserve(id) {
                    batch = batch.delete_fact(event::dead_fact(id, *number)?).put_fact(fact, value);
                    events.push((id.clone(), *number));
                }
            }
            if events.is_empty() {
                break;
            }
            if let Err(error) = self.0.webhooks().commit_if_present(id, batch) {
                self.0.state.outbox.release(&events);
                return Err(error);
            }
            self.0.state.outbox.record_purged(id, events.len());
            self.0.state.outbox.confirm(&events, now_ms);
            count += events.len();
        }
        self.0.state.outbox.reset_backoff(id, now_ms);
        Ok(count)
    }

    /// Deletes dead letters: all, or the one with this id. Returns their number.
    pub fn purge(&self, id: &WebhookId, only: Option<&str>) -> Result<usize, CatalogError> {
        let mut change = self.0.begin();
        let chosen = self.chosen(id, only)?;
        self.forget(&mut change, id, chosen.iter().map(|(number, _)| *number))
    }

    /// Deletes old dead letters. Returns their number.
    pub fn sweep(&self) -> Result<usize, CatalogError> {
        let now_ms = self.0.now_ms();
        let webhooks: Vec<_> = self.0.state.webhooks.read().all().cloned().collect();
        let mut count = 0;
        let ids = webhooks.iter().map(|webhook| &webhook.id);
        for id in ids.filter(|id| self.0.state.outbox.counts(id).dead > 0) {
            let mut change = self.0.begin();
            let letters = self.dead_page(id, None, limits::WEBHOOK_DEAD_LETTERS_MAX)?;
            let kept_ms = millis(limits::WEBHOOK_DEAD_LETTER_RETENTION);
            let is_old = |letter: &DeadLetter| now_ms >= letter.died_ms.saturating_add(kept_ms);
            let old = letters.iter().filter(|(_, letter)| is_old(letter));
            count += self.forget(&mut change, id, old.map(|(number, _)| *number))?;
        }
        Ok(count)
    }

    fn forget(
        &self,
        change: &mut Change<'_>,
        id: &WebhookId,
        numbers: impl Iterator<Item = u64>,
    ) -> Result<usize, CatalogError> {
        let numbers: Vec<u64> = numbers.collect();
        for numbers in numbers.chunks(limits::WEBHOOK_BATCH_EVENTS) {
            for number in numbers {
                change.delete(event::dead_fact(id, *number)?);
            }
            change.commit()?;
            self.0.state.outbox.record_purged(id, numbers.len());
        }
        Ok(numbers.len())
    }

    fn chosen(
        &self,
        id: &WebhookId,
        only: Option<&str>,
    ) -> Result<Vec<(u64, DeadLetter)>, CatalogError> {
        self.0.webhooks().require(id)?;
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
        let page = self.0.state.store.facts(&prefix, after.as_ref(), limit)?;
        page.into_iter().map(read).collect()
    }
}
