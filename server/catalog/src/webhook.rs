//! Webhook: a subscription of an HTTP endpoint to the events of a bucket.
//!
//! Non-goals: events, and their delivery.

use engine::{BucketName, ObjectKey};
use protocol::destination::OutboundUrl;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::CatalogError;
use super::event::{EventKind, EventPattern};
use super::id::WebhookId;
use super::record::Record;
use super::stored_text::text;
use super::webhook_secret::WebhookSecret;

/// Subscription to the events of a bucket.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Webhook {
    #[serde(skip, default = "WebhookId::unnamed")]
    pub id: WebhookId,
    #[serde(with = "text")]
    pub bucket: BucketName,
    #[serde(rename = "url", with = "text")]
    pub destination: OutboundUrl,
    #[serde(with = "text")]
    pub secret: WebhookSecret,
    /// Subscribed events; never empty.
    #[serde(serialize_with = "write_patterns", deserialize_with = "read_patterns")]
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

impl Record for Webhook {
    fn named(self, name: &str) -> Result<Self, String> {
        Ok(Self { id: WebhookId::read(name)?, ..self })
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

fn write_patterns<S: Serializer>(events: &[EventPattern], to: S) -> Result<S::Ok, S::Error> {
    to.collect_seq(events.iter().map(ToString::to_string))
}

fn read_patterns<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<EventPattern>, D::Error> {
    parse_event_patterns(&Vec::deserialize(from)?).map_err(D::Error::custom)
}
