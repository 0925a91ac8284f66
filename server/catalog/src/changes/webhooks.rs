//! Creation, editing and deletion of webhooks, with their pending events.

use std::sync::Arc;

use engine::{Batch, BucketName, Conflict, Error, FactName, Precondition};
use protocol::destination::OutboundUrl;

use super::super::audit_entry::{AuditRecord, changed_settings};
use super::super::event::{self, EventPattern};
use super::super::{AuditAction, Catalog, CatalogError, Webhook, WebhookId, WebhookSecret};
use super::check_count;
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

impl Catalog {
    /// Creates a webhook. Later events of its bucket are queued for it.
    pub fn create_webhook(&self, new: NewWebhook) -> Result<Arc<Webhook>, CatalogError> {
        let _changing = self.change();
        let bucket = self.require_bucket(&new.bucket)?;
        {
            let tables = self.tables();
            let of_bucket = tables.webhooks_of(&bucket.name).count();
            check_count(of_bucket, limits::WEBHOOKS_PER_BUCKET_MAX, "webhooks of the bucket")?;
            let owned = tables.owned.get(&bucket.owner).into_iter().flatten();
            let of_account = owned.map(|name| tables.webhooks_of(name).count()).sum();
            check_count(of_account, limits::WEBHOOKS_PER_ACCOUNT_MAX, "webhooks of the account")?;
            check_count(tables.webhooks.len(), limits::WEBHOOKS_MAX, "webhooks")?;
        }
        let now_ms = self.0.clock.unix_ms();
        let webhook = Arc::new(Webhook {
            id: WebhookId::issue(&*self.0.rng),
            bucket: new.bucket,
            destination: new.destination,
            secret: WebhookSecret::issue(&*self.0.rng),
            events: new.events,
            prefix: new.prefix,
            enabled: new.enabled,
            disabled_reason: None,
            created_ms: now_ms,
            updated_ms: now_ms,
        });
        let entry =
            AuditRecord::new(AuditAction::WebhookCreate).bucket(&bucket).target(&webhook.id);
        self.add_record(webhook.id.fact()?, &webhook.stored(), entry)?;
        self.0.outbox.add_queue(webhook.id.clone(), bucket.owner.clone());
        self.publish(|tables| tables.insert_webhook(webhook.clone()));
        Ok(webhook)
    }

    /// Edits a webhook. Pending events are sent to the new destination, without the remaining back-off.
    pub fn edit_webhook(
        &self,
        id: &WebhookId,
        change: WebhookChange,
    ) -> Result<Arc<Webhook>, CatalogError> {
        let edited = self.change_webhook(id, |webhook| {
            let WebhookChange { destination, events, prefix, enabled } = change;
            webhook.destination = destination.unwrap_or_else(|| webhook.destination.clone());
            webhook.events = events.unwrap_or_else(|| std::mem::take(&mut webhook.events));
            webhook.prefix = prefix.unwrap_or_else(|| std::mem::take(&mut webhook.prefix));
            if let Some(enabled) = enabled {
                (webhook.enabled, webhook.disabled_reason) = (enabled, None);
            }
        })?;
        self.0.outbox.reset_backoff(id, self.0.clock.unix_ms());
        Ok(edited)
    }

    /// Disables a webhook whose destination rejects further events.
    pub fn disable_webhook(&self, id: &WebhookId, reason: &str) -> Result<(), CatalogError> {
        let disable = |webhook: &mut Webhook| {
            (webhook.enabled, webhook.disabled_reason) = (false, Some(reason.to_owned()));
        };
        self.change_webhook(id, disable).map(drop)
    }

    fn change_webhook(
        &self,
        id: &WebhookId,
        change: impl FnOnce(&mut Webhook),
    ) -> Result<Arc<Webhook>, CatalogError> {
        let _changing = self.change();
        let before = self.require_webhook(id)?;
        let mut webhook = Webhook::clone(&before);
        change(&mut webhook);
        webhook.updated_ms = self.0.clock.unix_ms();
        // Webhook URLs may contain secrets of the receivers.
        let detail = changed_settings(&before.stored(), &webhook.stored(), &["url", "secret"]);
        let entry = self.webhook_audit_record(AuditAction::WebhookChange, &webhook).detail(detail);
        self.put_record(id.fact()?, &webhook.stored(), entry)?;
        let webhook = Arc::new(webhook);
        self.publish(|tables| tables.insert_webhook(webhook.clone()));
        Ok(webhook)
    }

    /// Deletes a webhook and its pending events.
    pub fn delete_webhook(&self, id: &WebhookId) -> Result<Arc<Webhook>, CatalogError> {
        let webhook = {
            let _changing = self.change();
            let webhook = self.require_webhook(id)?;
            let batch = Batch::new().delete_fact(id.fact()?).delete_fact(event::state_fact(id)?);
            let entry = self.webhook_audit_record(AuditAction::WebhookDelete, &webhook);
            self.0.store.commit(self.append_audit(batch, entry)?)?;
            self.publish(|tables| tables.remove_webhook(id));
            self.0.outbox.remove_queue(id);
            webhook
        };
        self.remove_webhook_leftovers()?;
        Ok(webhook)
    }

    /// Deletes the webhooks of a deleted bucket.
    pub(in super::super) fn delete_webhooks_of(
        &self,
        bucket: &BucketName,
    ) -> Result<(), CatalogError> {
        for webhook in self.webhooks_of(bucket) {
            self.delete_webhook(&webhook.id)?;
        }
        Ok(())
    }

    /// Removes leftovers of deleted webhooks from the store: events that were being committed when the webhook was
    /// deleted, or whose removal was interrupted.
    pub fn remove_webhook_leftovers(&self) -> Result<(), CatalogError> {
        while let Some(id) = self.0.outbox.take_orphan() {
            if let Err(error) = self.remove_leftovers_of(&id) {
                self.0.outbox.record_orphan(id);
                return Err(error);
            }
        }
        Ok(())
    }

    fn remove_leftovers_of(&self, id: &WebhookId) -> Result<(), CatalogError> {
        let store = &self.0.store;
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
        let state = event::state_fact(id)?;
        if store.fact(&state)?.is_some() {
            store.commit(Batch::new().delete_fact(state))?;
        }
        Ok(())
    }

    fn webhook_audit_record(&self, action: AuditAction, webhook: &Webhook) -> AuditRecord {
        let entry = AuditRecord::new(action).target(&webhook.id);
        match self.bucket(&webhook.bucket) {
            Some(bucket) => entry.bucket(&bucket),
            None => entry.deleted_bucket(&webhook.bucket),
        }
    }

    pub(in super::super) fn require_webhook(
        &self,
        id: &WebhookId,
    ) -> Result<Arc<Webhook>, CatalogError> {
        self.webhook(id).ok_or_else(|| CatalogError::NotFound(format!("the webhook {id}")))
    }

    /// Commits a batch if the webhook exists; otherwise does nothing.
    pub(in super::super) fn commit_if_webhook_exists(
        &self,
        id: &WebhookId,
        batch: Batch,
    ) -> Result<(), CatalogError> {
        match self.0.store.commit(batch.require(Precondition::FactPresent(id.fact()?))) {
            Ok(_) | Err(Error::Conflict(Conflict::FactMissing(_))) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}
