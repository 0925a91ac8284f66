//! Webhooks: lookup, creation, editing, and deletion with their pending events.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use engine::{Batch, BucketName, Conflict, Error, FactName, Precondition};
use protocol::destination::OutboundUrl;

use super::audit_entry::{AuditRecord, changed_settings};
use super::change::{Table, check_count, split};
use super::event::{self, EventPattern};
use super::id::{IdKind, OfWebhook};
use super::record::decode;
use super::{AuditAction, CatalogError, Webhook, WebhookId, WebhookSecret, Webhooks};
use crate::limits;

/// Parameters of a new webhook.
pub struct NewWebhook {
    pub bucket: BucketName,
    pub destination: OutboundUrl,
    /// Not empty.
    pub events: Vec<EventPattern>,
    pub prefix: String,
    pub enabled: bool,
}

/// Change of a webhook; `None` leaves a field unchanged.
#[derive(Clone, Debug, Default)]
pub struct WebhookChange {
    pub destination: Option<OutboundUrl>,
    /// Not empty.
    pub events: Option<Vec<EventPattern>>,
    pub prefix: Option<String>,
    pub enabled: Option<bool>,
}

/// All webhooks.
#[derive(Debug, Default)]
pub(super) struct WebhookTable {
    webhooks: BTreeMap<WebhookId, Arc<Webhook>>,
    by_bucket: BTreeMap<BucketName, BTreeSet<WebhookId>>,
}

impl Table for WebhookTable {
    const PREFIXES: &'static [&'static str] = &[OfWebhook::PREFIX];

    fn apply(&mut self, fact: &FactName, value: Option<&[u8]>) -> Result<(), CatalogError> {
        match value {
            Some(value) => self.put(decode(fact, value)?),
            None => {
                let id = WebhookId::parse(split(fact).1);
                id.into_iter().for_each(|id| self.remove(&id));
            }
        }
        Ok(())
    }
}

impl WebhookTable {
    fn put(&mut self, webhook: Webhook) {
        if self.webhooks.get(&webhook.id).is_none_or(|known| **known != webhook) {
            let of_bucket = self.by_bucket.entry(webhook.bucket.clone()).or_default();
            of_bucket.insert(webhook.id.clone());
            self.webhooks.insert(webhook.id.clone(), Arc::new(webhook));
        }
    }

    fn remove(&mut self, id: &WebhookId) {
        let Some(webhook) = self.webhooks.remove(id) else { return };
        if let Some(ids) = self.by_bucket.get_mut(&webhook.bucket) {
            ids.remove(id);
            if ids.is_empty() {
                self.by_bucket.remove(&webhook.bucket);
            }
        }
    }

    pub(super) fn all(&self) -> impl Iterator<Item = &Arc<Webhook>> {
        self.webhooks.values()
    }

    fn of_bucket(&self, bucket: &BucketName) -> impl Iterator<Item = &Arc<Webhook>> {
        let ids = self.by_bucket.get(bucket);
        ids.into_iter().flatten().filter_map(|id| self.webhooks.get(id))
    }
}

/// Lookup.
impl Webhooks<'_> {
    /// Returns the webhook with this id.
    pub fn get(&self, id: &WebhookId) -> Option<Arc<Webhook>> {
        self.0.state.webhooks.read().webhooks.get(id).cloned()
    }

    /// Returns the webhooks of a bucket, by id; most buckets have none.
    pub fn of_bucket(&self, bucket: &BucketName) -> Vec<Arc<Webhook>> {
        self.0.state.webhooks.read().of_bucket(bucket).cloned().collect()
    }

    /// Returns whether a bucket has webhooks.
    pub fn has_any(&self, bucket: &BucketName) -> bool {
        self.0.state.webhooks.read().by_bucket.contains_key(bucket)
    }
}

/// Changes.
impl Webhooks<'_> {
    /// Creates a webhook. Later events of its bucket are queued for it.
    pub fn create(&self, new: NewWebhook) -> Result<Arc<Webhook>, CatalogError> {
        let mut change = self.0.begin();
        let bucket = self.0.buckets().require(&new.bucket)?;
        let owned = self.0.buckets().names_of(&bucket.owner);
        {
            let table = self.0.state.webhooks.read();
            let of_bucket = table.of_bucket(&bucket.name).count();
            check_count(of_bucket, limits::WEBHOOKS_PER_BUCKET_MAX, "webhooks of the bucket")?;
            let of_account = owned.iter().map(|name| table.of_bucket(name).count()).sum();
            check_count(of_account, limits::WEBHOOKS_PER_ACCOUNT_MAX, "webhooks of the account")?;
            check_count(table.webhooks.len(), limits::WEBHOOKS_MAX, "webhooks")?;
        }
        let now_ms = self.0.now_ms();
        let webhook = Webhook {
            id: WebhookId::issue(&*self.0.state.rng),
            bucket: new.bucket,
            destination: new.destination,
            secret: WebhookSecret::issue(&*self.0.state.rng),
            events: new.events,
            prefix: new.prefix,
            enabled: new.enabled,
            disabled_reason: None,
            created_ms: now_ms,
            updated_ms: now_ms,
        };
        let entry = AuditRecord::new(AuditAction::WebhookCreate).bucket(&bucket);
        change.audit(entry.target(&webhook.id));
        change.add(webhook.id.fact()?, &webhook)?;
        // Before the webhook is visible: an event without a queue would be dropped.
        self.0.state.outbox.add_queue(webhook.id.clone(), bucket.owner.clone());
        change.commit().inspect_err(|_| self.0.state.outbox.remove_queue(&webhook.id))?;
        self.require(&webhook.id)
    }

    /// Edits a webhook. Pending events are sent to the new destination, without the remaining back-off.
    pub fn edit(
        &self,
        id: &WebhookId,
        change: WebhookChange,
    ) -> Result<Arc<Webhook>, CatalogError> {
        let edited = self.change(id, |webhook| {
            let WebhookChange { destination, events, prefix, enabled } = change;
            webhook.destination = destination.unwrap_or_else(|| webhook.destination.clone());
            webhook.events = events.unwrap_or_else(|| std::mem::take(&mut webhook.events));
            webhook.prefix = prefix.unwrap_or_else(|| std::mem::take(&mut webhook.prefix));
            if let Some(enabled) = enabled {
                (webhook.enabled, webhook.disabled_reason) = (enabled, None);
            }
        })?;
        self.0.state.outbox.reset_backoff(id, self.0.now_ms());
        Ok(edited)
    }

    /// Disables a webhook whose destination rejects further events.
    pub fn disable(&self, id: &WebhookId, reason: &str) -> Result<(), CatalogError> {
        let disable = |webhook: &mut Webhook| {
            (webhook.enabled, webhook.disabled_reason) = (false, Some(reason.to_owned()));
        };
        self.change(id, disable).map(drop)
    }

    fn change(
        &self,
        id: &WebhookId,
        edit: impl FnOnce(&mut Webhook),
    ) -> Result<Arc<Webhook>, CatalogError> {
        let mut change = self.0.begin();
        let before = self.require(id)?;
        let mut webhook = Webhook::clone(&before);
        edit(&mut webhook);
        webhook.updated_ms = self.0.now_ms();
        // Webhook URLs may contain secrets of the receivers.
        let detail = changed_settings(&*before, &webhook, &["url", "secret"]);
        let entry = self.audit_record(AuditAction::WebhookChange, &webhook);
        change.audit(entry.detail(detail));
        change.put(id.fact()?, &webhook)?;
        change.commit()?;
        self.require(id)
    }

    /// Deletes a webhook and its pending events.
    pub fn delete(&self, id: &WebhookId) -> Result<Arc<Webhook>, CatalogError> {
        let webhook = {
            let mut change = self.0.begin();
            let webhook = self.require(id)?;
            change.delete(id.fact()?);
            change.delete(id.fact_at(event::STATE_PREFIX)?);
            change.audit(self.audit_record(AuditAction::WebhookDelete, &webhook));
            change.commit()?;
            self.0.state.outbox.remove_queue(id);
            webhook
        };
        self.remove_leftovers()?;
        Ok(webhook)
    }

    /// Deletes the webhooks of a deleted bucket.
    pub(super) fn delete_all_of(&self, bucket: &BucketName) -> Result<(), CatalogError> {
        for webhook in self.of_bucket(bucket) {
            self.delete(&webhook.id)?;
        }
        Ok(())
    }

    /// Removes leftovers of deleted webhooks from the store: events that were being committed when the webhook was
    /// deleted, or whose removal was interrupted.
    pub fn remove_leftovers(&self) -> Result<(), CatalogError> {
        while let Some(id) = self.0.state.outbox.take_orphan() {
            if let Err(error) = self.remove_leftovers_of(&id) {
                self.0.state.outbox.record_orphan(id);
                return Err(error);
            }
        }
        Ok(())
    }

    fn remove_leftovers_of(&self, id: &WebhookId) -> Result<(), CatalogError> {
        let store = &self.0.state.store;
        for prefix in [event::EVENT_PREFIX, event::DEAD_PREFIX] {
            loop {
                let prefix = format!("{prefix}{id}/");
                let page = store.facts(&prefix, None, limits::WEBHOOK_BATCH_EVENTS)?;
                if page.is_empty() {
                    break;
                }
                let delete = |batch: Batch, (fact, _): (FactName, _)| batch.delete_fact(fact);
                store.commit(page.into_iter().fold(Batch::new(), delete))?;
            }
        }
        let state = id.fact_at(event::STATE_PREFIX)?;
        if store.fact(&state)?.is_some() {
            store.commit(Batch::new().delete_fact(state))?;
        }
        Ok(())
    }

    fn audit_record(&self, action: AuditAction, webhook: &Webhook) -> AuditRecord {
        AuditRecord::new(action).target(&webhook.id).bucket_named(&webhook.bucket, self.0)
    }

    pub(super) fn require(&self, id: &WebhookId) -> Result<Arc<Webhook>, CatalogError> {
        self.get(id).ok_or_else(|| CatalogError::NotFound(format!("the webhook {id}")))
    }

    /// Commits a batch if the webhook exists; otherwise does nothing.
    pub(super) fn commit_if_present(
        &self,
        id: &WebhookId,
        batch: Batch,
    ) -> Result<(), CatalogError> {
        match self.0.state.store.commit(batch.require(Precondition::FactPresent(id.fact()?))) {
            Ok(_) | Err(Error::Conflict(Conflict::FactMissing(_))) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}
