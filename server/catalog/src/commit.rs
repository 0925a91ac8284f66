//! Transactional outbox: commits changes of objects together with their webhook events.
//!
//! Guarantees: an event is stored in the same batch as its change; event numbers are in commit order. Without a
//! subscribed webhook nothing is written. Non-goals: delivery.

use std::sync::{Arc, mpsc};

use engine::{Batch, BucketName, CommitInfo, Conflict, Error, FactName, Precondition, Store};
use tokio::sync::oneshot;
use usage::spans::child_span;
use usage::task::blocking;

use super::event::{self, DeliveryState, ObjectEvent, QueuedEvent};
use super::outbox::{EventCounts, Outbox, OutboxTotals};
use super::record::{corrupt_record, decode, encode};
use super::{Catalog, CatalogError, Tables, Webhook, WebhookId, bucket, each_fact};
use crate::versions::{Absent, Rules, retain_replaced_versions};

/// Commits a batch. The result is durable.
pub async fn commit(store: &Store, batch: Batch) -> engine::Result<CommitInfo> {
    let (answer, answered) = oneshot::channel();
    store.submit(batch, move |result| {
        // The receiver is gone after a client disconnect; the batch is committed or rejected regardless.
        let _ = answer.send(result);
    });
    await_commit(answered).await
}

/// Awaits the result of a submitted batch.
pub async fn await_commit(
    answered: oneshot::Receiver<engine::Result<CommitInfo>>,
) -> engine::Result<CommitInfo> {
    child_span("store.commit", answered).await.unwrap_or(Err(engine::Error::Closed))
}

/// Loads the pending events from the store.
pub(super) fn load_outbox(store: &Store, tables: &Tables) -> Result<Outbox, CatalogError> {
    let outbox = Outbox::default();
    for webhook in tables.webhooks.values() {
        // A bucket that is being deleted has no owner; its webhooks are deleted with it.
        let owner = tables.buckets.get(&webhook.bucket).map(|bucket| bucket.owner.clone());
        if let Some(owner) = owner.or_else(|| tables.removed_owner(&webhook.bucket)) {
            outbox.add_queue(webhook.id.clone(), owner);
        }
    }
    let number_of = |fact: &FactName, rest: &str| {
        event::parse_event_name(rest)
            .ok_or_else(|| corrupt_record(fact, &"its name is not an event"))
    };
    each_fact(store, event::EVENT_PREFIX, |fact, rest, bytes| {
        let (webhook, number) = number_of(fact, rest)?;
        let event: QueuedEvent = decode(fact, bytes)?;
        outbox.load_event(&webhook, number, event.attempts, event.next_ms);
        Ok(())
    })?;
    each_fact(store, event::DEAD_PREFIX, |fact, rest, _| {
        let (webhook, number) = number_of(fact, rest)?;
        outbox.load_dead_letter(&webhook, number);
        Ok(())
    })?;
    each_fact(store, event::STATE_PREFIX, |fact, rest, bytes| {
        let webhook = WebhookId::parse(rest)
            .ok_or_else(|| corrupt_record(fact, &"its name is not a webhook"))?;
        outbox.load_state(&webhook, decode(fact, bytes)?);
        Ok(())
    })?;
    Ok(outbox)
}

impl Catalog {
    /// Returns whether a bucket has webhooks.
    pub fn has_webhooks(&self, bucket: &BucketName) -> bool {
        self.tables().bucket_webhooks.contains_key(bucket)
    }

    /// Commits a batch with the webhook events of the bucket, and with the versions that it replaces in a versioned
    /// bucket. The result is durable. Without webhooks and versioning this is a plain commit.
    pub async fn commit_with_events(
        &self,
        bucket: &BucketName,
        batch: Batch,
        happenings: &[ObjectEvent],
    ) -> engine::Result<CommitInfo> {
        self.commit_changing(bucket, batch, happenings, Absent::Ignore).await
    }

    /// Commits like [`Catalog::commit_with_events`], with a rule for the deletion of a missing object in a versioned
    /// bucket.
    pub async fn commit_changing(
        &self,
        bucket: &BucketName,
        batch: Batch,
        happenings: &[ObjectEvent],
        absent: Absent,
    ) -> engine::Result<CommitInfo> {
        match self.version_rules(bucket) {
            None => self.commit_as_is(bucket, batch, happenings).await,
            Some(rules) => {
                Box::pin(self.commit_with_versions(bucket, rules, batch, happenings, absent)).await
            }
        }
    }

    /// Returns the rules for new versions of a bucket; `None` if it was never versioned.
    pub fn version_rules(&self, bucket: &BucketName) -> Option<Rules> {
        let bucket = self.bucket(bucket)?;
        let retention = bucket.object_lock.and_then(|lock| lock.default_retention);
        let retention = retention.map(|it| it.starting_at(self.0.clock.unix_ms()));
        Some(Rules { versioning: bucket.versioning?, retention })
    }

    /// Commits a batch with records of the versions that it replaces.
    async fn commit_with_versions(
        &self,
        bucket: &BucketName,
        rules: Rules,
        batch: Batch,
        happenings: &[ObjectEvent],
        absent: Absent,
    ) -> engine::Result<CommitInfo> {
        let fact = bucket::fact(bucket).map_err(|_| Error::Closed)?;
        // A bucket deleted concurrently leaves no versions to a later bucket of the same name.
        let batch = batch.require(Precondition::FactPresent(fact));
        let _turn = self.0.version_locks.copy().await?;
        for _ in 0..crate::versions::limits::TRIES_MAX {
            let (store, of, plain) = (self.0.store.clone(), bucket.clone(), batch.clone());
            let kept =
                blocking(move || retain_replaced_versions(&store, &of, rules, absent, plain)).await;
            let kept = match kept {
                // The version was replaced while its body was copied.
                Err(Error::Conflict(Conflict::KeyChanged(_))) => continue,
                kept => kept?,
            };
            let committed = self.commit_as_is(bucket, kept.batch.clone(), happenings).await;
            match committed {
                Err(error) if kept.is_outdated(batch.preconditions(), &error) => {}
                committed => return committed,
            }
        }
        Err(Error::Busy)
    }

    /// Commits a batch that retains no versions, with its webhook events.
    pub async fn commit_as_is(
        &self,
        bucket: &BucketName,
        batch: Batch,
        happenings: &[ObjectEvent],
    ) -> engine::Result<CommitInfo> {
        let (answer, answered) = oneshot::channel();
        self.submit_as_is(bucket, batch, happenings, move |result| {
            // The receiver is gone after a client disconnect; the batch is committed or rejected regardless.
            let _ = answer.send(result);
        });
        await_commit(answered).await
    }

    /// Commits like [`Catalog::commit_with_events`], for callers that may block.
    pub fn commit_with_events_blocking(
        &self,
        bucket: &BucketName,
        batch: Batch,
        happenings: &[ObjectEvent],
    ) -> engine::Result<CommitInfo> {
        let Some(rules) = self.version_rules(bucket) else {
            return self.commit_as_is_blocking(bucket, batch, happenings);
        };
        let fact = bucket::fact(bucket).map_err(|_| Error::Closed)?;
        let batch = batch.require(Precondition::FactPresent(fact));
        for _ in 0..crate::versions::limits::TRIES_MAX {
            let kept = retain_replaced_versions(
                &self.0.store,
                bucket,
                rules,
                Absent::Ignore,
                batch.clone(),
            );
            let kept = match kept {
                Err(Error::Conflict(Conflict::KeyChanged(_))) => continue,
                kept => kept?,
            };
            match self.commit_as_is_blocking(bucket, kept.batch.clone(), happenings) {
                Err(error) if kept.is_outdated(batch.preconditions(), &error) => {}
                committed => return committed,
            }
        }
        Err(Error::Busy)
    }

    fn commit_as_is_blocking(
        &self,
        bucket: &BucketName,
        batch: Batch,
        happenings: &[ObjectEvent],
    ) -> engine::Result<CommitInfo> {
        let (answer, answered) = mpsc::sync_channel(1);
        self.submit_as_is(bucket, batch, happenings, move |result| {
            let _ = answer.send(result);
        });
        answered.recv().unwrap_or(Err(Error::Closed))
    }

    fn submit_as_is(
        &self,
        bucket: &BucketName,
        batch: Batch,
        happenings: &[ObjectEvent],
        answer: impl FnOnce(engine::Result<CommitInfo>) + Send + 'static,
    ) {
        let webhooks = self.webhooks_of(bucket);
        let is_wanted =
            |it: &ObjectEvent| webhooks.iter().any(|hook| hook.matches(it.kind, &it.key));
        if !happenings.iter().any(is_wanted) {
            return self.0.store.submit(batch, answer);
        }
        // Batches are submitted, and therefore committed, in the order of their event numbers.
        let mut last = self.0.outbox.lock_sequence();
        let mut events = Vec::new();
        let now_ms = self.0.clock.unix_ms();
        let batch = self.with_events(batch, &webhooks, happenings, now_ms, &mut last, &mut events);
        let catalog = self.clone();
        self.0.store.submit(batch, move |result| {
            match &result {
                Ok(_) => catalog.0.outbox.confirm(&events, now_ms),
                Err(_) => catalog.0.outbox.release(&events),
            }
            answer(result);
        });
    }

    fn with_events(
        &self,
        mut batch: Batch,
        webhooks: &[Arc<Webhook>],
        happenings: &[ObjectEvent],
        now_ms: u64,
        last: &mut u64,
        events: &mut Vec<(WebhookId, u64)>,
    ) -> Batch {
        for happening in happenings {
            let event = happening.event(event::new_event_id(&*self.0.rng), now_ms);
            let wanting = webhooks.iter().filter(|it| it.matches(happening.kind, &happening.key));
            for webhook in wanting {
                if !self.0.outbox.reserve(&webhook.id) {
                    continue;
                }
                *last += 1;
                events.push((webhook.id.clone(), *last));
                // Names and values of the server's own facts are always valid.
                if let Ok(fact) = event::event_fact(&webhook.id, *last)
                    && let Ok(value) = encode(&fact, &event)
                {
                    batch = batch.put_fact(fact, value);
                }
            }
        }
        batch
    }

    /// Returns the totals of all webhooks.
    pub fn outbox_totals(&self) -> OutboxTotals {
        self.0.outbox.totals()
    }

    /// Returns the delivery state of a webhook.
    pub fn deliveries(&self, id: &WebhookId) -> (EventCounts, DeliveryState) {
        (self.0.outbox.counts(id), self.0.outbox.state(id))
    }
}
