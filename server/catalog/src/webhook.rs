//! Webhook: a subscription of an HTTP endpoint to the events of a bucket.
//!
//! Non-goals: events, and their delivery.

use engine::{BucketName, ObjectKey};
use protocol::destination::OutboundUrl;
use serde::{Deserialize, Serialize};

use super::CatalogError;
use super::event::{EventKind, EventPattern};
use super::id::WebhookId;
use super::record::{CatalogRecord, Record};
use super::webhook_secret::WebhookSecret;

/// Subscription to the events of a bucket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Webhook {
    pub id: WebhookId,
    pub bucket: BucketName,
    pub destination: OutboundUrl,
    pub secret: WebhookSecret,
    /// Subscribed events; never empty.
    pub events: Vec<EventPattern>,
    /// Prefix of the keys whose events are sent.
    pub prefix: String,
    /// Whether events are queued and sent.
    pub enabled: bool,
    /// Reason why the server disabled it.
    pub disabled_reason: Option<String>,
    pub created_ms: u64,
    pub updated_ms: u64,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct StoredWebhook {
    bucket: String,
    url: String,
    secret: String,
    events: Vec<String>,
    prefix: String,
    enabled: bool,
    disabled_reason: Option<String>,
    created_ms: u64,
    updated_ms: u64,
}

impl CatalogRecord for StoredWebhook {}

impl Record for Webhook {
    type Stored = StoredWebhook;

    fn stored(&self) -> StoredWebhook {
        StoredWebhook {
            bucket: self.bucket.to_string(),
            url: self.destination.as_str().to_owned(),
            secret: self.secret.text(),
            events: self.events.iter().map(ToString::to_string).collect(),
            prefix: self.prefix.clone(),
            enabled: self.enabled,
            disabled_reason: self.disabled_reason.clone(),
            created_ms: self.created_ms,
            updated_ms: self.updated_ms,
        }
    }

    fn from_stored(id: &str, stored: StoredWebhook) -> Result<Self, String> {
        let say = |why: &dyn std::fmt::Display| why.to_string();
        Ok(Self {
            id: WebhookId::parse(id).ok_or("its id is not a webhook id")?,
            bucket: BucketName::parse(&stored.bucket).map_err(|why| say(&why))?,
            destination: OutboundUrl::parse(&stored.url).map_err(|why| say(&why))?,
            secret: WebhookSecret::parse(&stored.secret).ok_or("invalid secret")?,
            events: parse_event_patterns(&stored.events).map_err(|why| say(&why))?,
            prefix: stored.prefix,
            enabled: stored.enabled,
            disabled_reason: stored.disabled_reason,
            created_ms: stored.created_ms,
            updated_ms: stored.updated_ms,
        })
    }
}

impl Webhook {
    /// Returns whether an event is subscribed.
    pub fn matches(&self, kind: EventKind, key: &ObjectKey) -> bool {
        self.enabled
            && key.as_str().starts_with(&self.prefix)
            && self.events.iter().any(|pattern| pattern.matches(kind))
    }
}

/// Parses the subscribed events: at least one pattern, deduplicated and sorted.
pub fn parse_event_patterns(texts: &[String]) -> Result<Vec<EventPattern>, CatalogError> {
    let read = |text: &String| {
        let unknown = || {
            CatalogError::InvalidRequest(format!(
                "unknown event {text:?}; known events: {}",
                EventPattern::KNOWN
            ))
        };
        EventPattern::parse(text).ok_or_else(unknown)
    };
    let mut patterns = texts.iter().map(read).collect::<Result<Vec<_>, _>>()?;
    patterns.sort_unstable();
    patterns.dedup();
    match patterns.is_empty() {
        true => Err(CatalogError::InvalidRequest("a webhook needs at least one event".into())),
        false => Ok(patterns),
    }
}
