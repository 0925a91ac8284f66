//! Bucket events, as they are queued for webhooks.
//!
//! The names are S3's. An event is one fact for each subscribed webhook, in the same batch as the change it reports: it
//! exists if and only if the change was made. It is deleted after delivery, or becomes a dead letter. Guarantees: the
//! events of a webhook are in commit order. Non-goals: delivery schedule.

use std::fmt;

use engine::name::NameError;
use engine::rng::Rng;
use engine::{Etag, FactName, ObjectKey};
use serde::{Deserialize, Serialize};

use super::base32;
use super::id::WebhookId;
use super::record::Record;

/// Prefix of the fact names of pending events; the webhook and the number follow.
pub(super) const EVENT_PREFIX: &str = "webhook-event/";
/// Prefix of the fact names of dead letters; the webhook and the number follow.
pub(super) const DEAD_PREFIX: &str = "webhook-dead/";
/// Prefix of the fact names of delivery states; the webhook follows.
pub(super) const STATE_PREFIX: &str = "webhook-state/";

/// Kind of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum EventKind {
    /// Upload of a raw body.
    #[serde(rename = "ObjectCreated:Put")]
    CreatedByPut,
    /// Upload by a form.
    #[serde(rename = "ObjectCreated:Post")]
    CreatedByPost,
    /// Multipart or resumable upload.
    #[serde(rename = "ObjectCreated:CompleteMultipartUpload")]
    CreatedByMultipart,
    /// Moved or restored file: S3 does both by copying.
    #[serde(rename = "ObjectCreated:Copy")]
    CreatedByCopy,
    /// Deletion of a file.
    #[serde(rename = "ObjectRemoved:Delete")]
    Removed,
    /// Deletion of an expired file.
    #[serde(rename = "LifecycleExpiration:Delete")]
    Expired,
}

/// Selection of events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum EventPattern {
    AllCreated,
    AllRemoved,
    AllExpired,
    Only(EventKind),
}

/// Event and its file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectEvent {
    pub kind: EventKind,
    pub key: ObjectKey,
    /// `None` for a deleted file.
    pub content: Option<EventContent>,
}

/// Content data of an event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EventContent {
    pub bytes: u64,
    /// Entity tag without quotes.
    pub etag: String,
    pub content_type: String,
}

/// Event that is queued for one webhook.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QueuedEvent {
    /// Event id, the same for all webhooks and delivery attempts.
    pub id: String,
    pub kind: EventKind,
    pub key: String,
    pub content: Option<EventContent>,
    /// Time of the event.
    pub at_ms: u64,
    /// Number of failed delivery attempts.
    pub attempts: u32,
    /// Earliest time of the next attempt; zero for immediately, whatever the clock says.
    pub next_ms: u64,
}

/// Undeliverable event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DeadLetter {
    pub event: QueuedEvent,
    pub died_ms: u64,
    /// Status of the last response, if any.
    pub status: Option<u16>,
    pub error: String,
    /// Start of the body of the last response.
    pub answer: String,
}

/// Delivery state of a webhook.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DeliveryState {
    pub last_attempt_ms: Option<u64>,
    /// Status of the response to it; `None` without a response.
    pub last_status: Option<u16>,
    /// Error of the attempt, if it failed.
    pub last_error: Option<String>,
    pub last_delivery_ms: Option<u64>,
    /// Number of events dropped at the queue limit.
    pub dropped: u64,
}

impl Record for QueuedEvent {}

impl Record for DeadLetter {}

impl Record for DeliveryState {}

impl EventKind {
    const ALL: [Self; 6] = [
        Self::CreatedByPut,
        Self::CreatedByPost,
        Self::CreatedByMultipart,
        Self::CreatedByCopy,
        Self::Removed,
        Self::Expired,
    ];

    /// Returns the S3 name of the event.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::CreatedByPut => "ObjectCreated:Put",
            Self::CreatedByPost => "ObjectCreated:Post",
            Self::CreatedByMultipart => "ObjectCreated:CompleteMultipartUpload",
            Self::CreatedByCopy => "ObjectCreated:Copy",
            Self::Removed => "ObjectRemoved:Delete",
            Self::Expired => "LifecycleExpiration:Delete",
        }
    }
}

impl EventPattern {
    /// Lists the valid names, for error messages.
    pub const KNOWN: &str = "there are s3:ObjectCreated:*, s3:ObjectCreated:Put, s3:ObjectCreated:Post, \
         s3:ObjectCreated:CompleteMultipartUpload, s3:ObjectCreated:Copy, s3:ObjectRemoved:*, \
         s3:ObjectRemoved:Delete, s3:LifecycleExpiration:* and s3:LifecycleExpiration:Delete";

    /// Returns every pattern.
    pub fn any() -> impl Iterator<Item = Self> {
        let groups = [Self::AllCreated, Self::AllRemoved, Self::AllExpired];
        groups.into_iter().chain(EventKind::ALL.into_iter().map(Self::Only))
    }

    /// Parses an S3 event name, with or without `s3:`.
    pub fn parse(text: &str) -> Option<Self> {
        match text.strip_prefix("s3:").unwrap_or(text) {
            "ObjectCreated:*" => Some(Self::AllCreated),
            "ObjectRemoved:*" => Some(Self::AllRemoved),
            "LifecycleExpiration:*" => Some(Self::AllExpired),
            name => EventKind::ALL.into_iter().find(|kind| kind.as_str() == name).map(Self::Only),
        }
    }

    pub fn matches(self, kind: EventKind) -> bool {
        match self {
            Self::AllCreated => !matches!(kind, EventKind::Removed | EventKind::Expired),
            Self::AllRemoved => kind == EventKind::Removed,
            Self::AllExpired => kind == EventKind::Expired,
            Self::Only(only) => only == kind,
        }
    }
}

impl ObjectEvent {
    /// Creates the event of a stored file.
    pub fn created(
        kind: EventKind,
        key: ObjectKey,
        bytes: u64,
        etag: Etag,
        content_type: String,
    ) -> Self {
        Self {
            kind,
            key,
            content: Some(EventContent { bytes, etag: etag.to_string(), content_type }),
        }
    }

    /// Creates the event of a deleted file.
    pub fn removed(key: ObjectKey) -> Self {
        Self { kind: EventKind::Removed, key, content: None }
    }

    /// Creates the event of a file that was deleted because it expired.
    pub fn expired(key: ObjectKey) -> Self {
        Self { kind: EventKind::Expired, key, content: None }
    }

    pub(super) fn event(&self, id: String, now_ms: u64) -> QueuedEvent {
        QueuedEvent {
            id,
            kind: self.kind,
            key: self.key.to_string(),
            content: self.content.clone(),
            at_ms: now_ms,
            attempts: 0,
            next_ms: 0,
        }
    }
}

/// Generates an event id.
pub(super) fn new_event_id(rng: &dyn Rng) -> String {
    let mut bytes = [0; 10];
    rng.fill(&mut bytes);
    format!("evt_{}", base32::encode(&bytes))
}

/// Returns the fact of a pending event.
pub(super) fn event_fact(webhook: &WebhookId, number: u64) -> Result<FactName, NameError> {
    FactName::parse(&format!("{EVENT_PREFIX}{webhook}/{number:020}"))
}

/// Returns the fact of a dead letter.
pub(super) fn dead_fact(webhook: &WebhookId, number: u64) -> Result<FactName, NameError> {
    FactName::parse(&format!("{DEAD_PREFIX}{webhook}/{number:020}"))
}

/// Parses the webhook and the number from the rest of such a name.
pub(super) fn parse_event_name(rest: &str) -> Option<(WebhookId, u64)> {
    let (webhook, number) = rest.split_once('/')?;
    Some((WebhookId::parse(webhook)?, number.parse().ok()?))
}

impl fmt::Display for EventPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AllCreated => f.write_str("s3:ObjectCreated:*"),
            Self::AllRemoved => f.write_str("s3:ObjectRemoved:*"),
            Self::AllExpired => f.write_str("s3:LifecycleExpiration:*"),
            Self::Only(kind) => write!(f, "s3:{}", kind.as_str()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_are_s3s_names() {
        for kind in EventKind::ALL {
            let only = EventPattern::parse(kind.as_str()).unwrap();
            assert_eq!(EventPattern::parse(&format!("s3:{}", kind.as_str())), Some(only));
            assert_eq!(EventPattern::parse(&only.to_string()), Some(only));
            assert!(EventPattern::KNOWN.contains(&only.to_string()));
            assert!(EventKind::ALL.iter().all(|other| only.matches(*other) == (*other == kind)));
            let group = match kind {
                EventKind::Removed => "s3:ObjectRemoved:*",
                EventKind::Expired => "s3:LifecycleExpiration:*",
                _ => "s3:ObjectCreated:*",
            };
            assert!(EventPattern::parse(group).unwrap().matches(kind));
            assert_eq!(serde_json::to_value(kind).unwrap(), kind.as_str());
        }
        assert!(!EventPattern::AllCreated.matches(EventKind::Removed));
        for bad in ["", "*", "s3:*", "s3:ObjectCreated", "objectcreated:put", "s3:ObjectRestore:*"]
        {
            assert_eq!(EventPattern::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn event_records_sort_by_sequence_number() {
        let webhook = WebhookId::parse("abcdefghijklmnop").unwrap();
        let name = |number| event_fact(&webhook, number).unwrap();
        assert!(name(9) < name(10) && name(u64::MAX - 1) < name(u64::MAX));
        let rest = name(7).as_str().strip_prefix(EVENT_PREFIX).map(parse_event_name);
        assert_eq!(rest, Some(Some((webhook, 7))));
    }
}
