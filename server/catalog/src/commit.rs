//! Commits of objects, together with their webhook events and the versions that they replace.
//!
//! Guarantees: an event is stored in the same batch as its change (transactional outbox); event numbers are in commit
//! order; each event is passed to the file audit. Without a subscribed webhook and versioning this is a plain commit.
//! Non-goals: delivery.

use std::sync::{Arc, mpsc};

use engine::{Batch, BucketName, CommitInfo, Conflict, Error, Precondition, Store};
use tokio::sync::oneshot;
use usage::spans::child_span;
use usage::task::blocking;

use super::event::{self, ObjectEvent};
use super::expiry::schedule;
use super::record::encode;
use super::{Catalog, Webhook, WebhookId, bucket};
use crate::versions::{Absent, Rules, limits, retain_replaced_versions};

/// Batch of changes in one bucket, with the events of its objects.
#[derive(Clone)]
pub struct ObjectBatch<'a> {
    bucket: &'a BucketName,
    batch: Batch,
    events: &'a [ObjectEvent],
    absent: Absent,
    retains_versions: bool,
}

impl<'a> ObjectBatch<'a> {
    /// Creates a batch that retains the versions it replaces, if the bucket is versioned.
    pub fn new(bucket: &'a BucketName, batch: Batch, events: &'a [ObjectEvent]) -> Self {
        Self { bucket, batch, events, absent: Absent::Ignore, retains_versions: true }
    }

    /// Sets the rule for the deletion of a missing object in a versioned bucket; default [`Absent::Ignore`].
    pub fn absent(self, absent: Absent) -> Self {
        Self { absent, ..self }
    }

    /// Makes the batch retain no versions, also in a versioned bucket.
    pub fn without_versions(self) -> Self {
        Self { retains_versions: false, ..self }
    }
}

/// Commits a batch without events and versions. The result is durable.
pub async fn commit(store: &Store, batch: Batch) -> engine::Result<CommitInfo> {
    let batch = schedule(batch);
    let (answer, answered) = oneshot::channel();
    // The receiver is gone after a client disconnect; the batch is committed or rejected regardless.
    store.submit(batch, move |result| drop(answer.send(result)));
    child_span("store.commit", answered).await.unwrap_or(Err(Error::Closed))
}

impl Catalog {
    /// Commits a batch of objects. The result is durable.
    pub async fn commit(&self, objects: ObjectBatch<'_>) -> engine::Result<CommitInfo> {
        if let Some(rules) = self.version_rules(&objects) {
            return Box::pin(self.commit_with_versions(objects, rules)).await;
        }
        let (answer, answered) = oneshot::channel();
        // The receiver is gone after a client disconnect; the batch is committed or rejected regardless.
        self.submit(objects, move |result| drop(answer.send(result)));
        child_span("store.commit", answered).await.unwrap_or(Err(Error::Closed))
    }

    /// Commits a batch of objects like [`Catalog::commit`], and blocks on the disk.
    pub fn commit_blocking(&self, objects: ObjectBatch<'_>) -> engine::Result<CommitInfo> {
        match self.version_rules(&objects) {
            Some(rules) => self.retain_and_commit(objects, rules),
            None => self.submit_and_wait(objects),
        }
    }

    fn version_rules(&self, objects: &ObjectBatch<'_>) -> Option<Rules> {
        let rules = |()| self.buckets().version_rules(objects.bucket);
        objects.retains_versions.then_some(()).and_then(rules)
    }

    async fn commit_with_versions(
        &self,
        objects: ObjectBatch<'_>,
        rules: Rules,
    ) -> engine::Result<CommitInfo> {
        let _turn = self.state.version_locks.copy().await?;
        let (catalog, bucket) = (self.clone(), objects.bucket.clone());
        let (events, ObjectBatch { batch, absent, .. }) = (objects.events.to_vec(), objects);
        let work = move || {
            let objects = ObjectBatch::new(&bucket, batch, &events).absent(absent);
            catalog.retain_and_commit(objects, rules)
        };
        child_span("store.commit", blocking(work)).await
    }

    /// Commits a batch with copies of the versions that it replaces. Blocks on the disk.
    fn retain_and_commit(
        &self,
        objects: ObjectBatch<'_>,
        rules: Rules,
    ) -> engine::Result<CommitInfo> {
        let fact = bucket::fact(objects.bucket).map_err(|_| Error::Closed)?;
        // A bucket deleted concurrently leaves no versions to a later bucket of the same name.
        let batch = objects.batch.require(Precondition::FactPresent(fact));
        let objects = ObjectBatch { batch, ..objects };
        for _ in 0..limits::TRIES_MAX {
            let ObjectBatch { bucket, batch, absent, .. } = objects.clone();
            let retained =
                match retain_replaced_versions(&self.state.store, bucket, rules, absent, batch) {
                    // The version was replaced while its body was copied.
                    Err(Error::Conflict(Conflict::KeyChanged(_))) => continue,
                    retained => retained?,
                };
            let batch = retained.batch.clone();
            match self.submit_and_wait(ObjectBatch { batch, ..objects.clone() }) {
                Err(error) if retained.is_outdated(objects.batch.preconditions(), &error) => {}
                committed => return committed,
            }
        }
        Err(Error::Busy)
    }

    fn submit_and_wait(&self, objects: ObjectBatch<'_>) -> engine::Result<CommitInfo> {
        let (answer, answered) = mpsc::sync_channel(1);
        self.submit(objects, move |result| drop(answer.send(result)));
        answered.recv().unwrap_or(Err(Error::Closed))
    }

    /// Submits a batch with its webhook events. Its changes are passed to the file audit when they are durable.
    pub(super) fn submit(
        &self,
        objects: ObjectBatch<'_>,
        answer: impl FnOnce(engine::Result<CommitInfo>) + Send + 'static,
    ) {
        let ObjectBatch { bucket, batch, events, .. } = objects;
        let batch = schedule(batch);
        let answer = self.auditing(bucket, events, answer);
        let webhooks = self.webhooks().of_bucket(bucket);
        let is_wanted =
            |it: &ObjectEvent| webhooks.iter().any(|hook| hook.matches(it.kind, &it.key));
        if !events.iter().any(is_wanted) {
            return self.state.store.submit(batch, answer);
        }
        // Batches are submitted, and therefore committed, in the order of their event numbers.
        let mut last = self.state.outbox.lock_sequence();
        let mut queued = Vec::new();
        let now_ms = self.now_ms();
        let batch = self.with_events(batch, &webhooks, events, now_ms, &mut last, &mut queued);
        let catalog = self.clone();
        self.state.store.submit(batch, move |result| {
            match &result {
                Ok(_) => catalog.state.outbox.confirm(&queued, now_ms),
                Err(_) => catalog.state.outbox.release(&queued),
            }
            answer(result);
        });
    }

    /// Wraps the callback of a commit, so that its changes are passed to the file audit before it is called.
    fn auditing(
        &self,
        bucket: &BucketName,
        events: &[ObjectEvent],
        answer: impl FnOnce(engine::Result<CommitInfo>) + Send + 'static,
    ) -> impl FnOnce(engine::Result<CommitInfo>) + Send + 'static {
        let (changes, state) = (self.file_changes(bucket, events), self.state.clone());
        move |result| {
            if let Some(changes) = changes.filter(|_| result.is_ok()) {
                state.file_changes.add(changes);
            }
            answer(result);
        }
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
            let event = happening.event(event::new_event_id(&*self.state.rng), now_ms);
            let wanting = webhooks.iter().filter(|it| it.matches(happening.kind, &happening.key));
            for webhook in wanting {
                if !self.state.outbox.reserve(&webhook.id) {
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
}
