//! What happens in a bucket, as webhooks are told of it, and as it waits for that.
//!
//! The names are S3's. An event is one fact for each webhook that wants it, put in the batch of what it tells of: so it
//! is there if and only if that happened. It goes when it was delivered, or becomes a dead letter.
//! Promises: facts of one webhook are in the order in which things happened. Never here: when to send what.

use std::fmt;

use engine::{Entropy, Etag, FactName, NameError, ObjectKey};
use serde::{Deserialize, Serialize};

use super::base32;
use super::id::WebhookId;
use super::record::Stored;

/// The fact names of events that wait start with this; the webhook and the number follow.
pub(super) const EVENT_PREFIX: &str = "webhook-event/";
/// The same for those that were given up.
pub(super) const DEAD_PREFIX: &str = "webhook-dead/";
/// The fact names of what is known of deliveries start with this; the webhook follows.
pub(super) const STATE_PREFIX: &str = "webhook-state/";

/// A kind of event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum EventKind {
    /// A file came as a raw body.
    #[serde(rename = "ObjectCreated:Put")]
    CreatedByPut,
    /// A file came in a form.
    #[serde(rename = "ObjectCreated:Post")]
    CreatedByPost,
    /// A file came in pieces.
    #[serde(rename = "ObjectCreated:CompleteMultipartUpload")]
    CreatedInPieces,
    /// A file was moved there, or brought back: S3 does both by copying.
    #[serde(rename = "ObjectCreated:Copy")]
    CreatedByCopy,
    /// A file was deleted.
    #[serde(rename = "ObjectRemoved:Delete")]
    Removed,
}

/// Which events are meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum EventPattern {
    EveryCreated,
    EveryRemoved,
    Only(EventKind),
}

/// What happened, and to which file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Happening {
    pub kind: EventKind,
    pub key: ObjectKey,
    /// None for a file that is gone.
    pub content: Option<Content>,
}

/// What is told of the content of a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Content {
    pub bytes: u64,
    /// Without quotes.
    pub etag: String,
    pub content_type: String,
}

/// An event on its way to one webhook.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Event {
    /// The same for all webhooks, and each time it is sent.
    pub id: String,
    pub kind: EventKind,
    pub key: String,
    pub content: Option<Content>,
    /// When it happened.
    pub at_ms: u64,
    /// How many times it was sent in vain.
    pub attempts: u32,
    /// Not before then it is sent; zero for at once, whatever the clock says.
    pub next_ms: u64,
}

/// An event that was given up.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DeadLetter {
    pub event: Event,
    pub died_ms: u64,
    /// What the destination said last, where it did.
    pub status: Option<u16>,
    pub error: String,
    /// The beginning of the body of its last answer.
    pub answer: String,
}

/// What is known of the deliveries of a webhook.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DeliveryState {
    pub last_attempt_ms: Option<u64>,
    /// The answer to it; none when there was none.
    pub last_status: Option<u16>,
    /// Why it failed, when it did.
    pub last_error: Option<String>,
    pub last_delivery_ms: Option<u64>,
    /// Events that found no room.
    pub dropped: u64,
}

impl Stored for Event {
    const VERSION: u32 = 1;
}

impl Stored for DeadLetter {
    const VERSION: u32 = 1;
}

impl Stored for DeliveryState {
    const VERSION: u32 = 1;
}

impl EventKind {
    const ALL: [Self; 5] = [
        Self::CreatedByPut,
        Self::CreatedByPost,
        Self::CreatedInPieces,
        Self::CreatedByCopy,
        Self::Removed,
    ];

    /// S3's name of it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::CreatedByPut => "ObjectCreated:Put",
            Self::CreatedByPost => "ObjectCreated:Post",
            Self::CreatedInPieces => "ObjectCreated:CompleteMultipartUpload",
            Self::CreatedByCopy => "ObjectCreated:Copy",
            Self::Removed => "ObjectRemoved:Delete",
        }
    }
}

impl EventPattern {
    /// What can be named, for people.
    pub const KNOWN: &str = "there are s3:ObjectCreated:*, s3:ObjectCreated:Put, s3:ObjectCreated:Post, \
         s3:ObjectCreated:CompleteMultipartUpload, s3:ObjectCreated:Copy, s3:ObjectRemoved:* and \
         s3:ObjectRemoved:Delete";

    /// Every pattern.
    pub fn all() -> impl Iterator<Item = Self> {
        let groups = [Self::EveryCreated, Self::EveryRemoved];
        groups.into_iter().chain(EventKind::ALL.into_iter().map(Self::Only))
    }

    /// Reads S3's name of it, with `s3:` before it or without.
    pub fn parse(text: &str) -> Option<Self> {
        match text.strip_prefix("s3:").unwrap_or(text) {
            "ObjectCreated:*" => Some(Self::EveryCreated),
            "ObjectRemoved:*" => Some(Self::EveryRemoved),
            name => EventKind::ALL.into_iter().find(|kind| kind.as_str() == name).map(Self::Only),
        }
    }

    pub fn matches(self, kind: EventKind) -> bool {
        match self {
            Self::EveryCreated => kind != EventKind::Removed,
            Self::EveryRemoved => kind == EventKind::Removed,
            Self::Only(only) => only == kind,
        }
    }
}

impl Happening {
    /// A file is there now.
    pub fn created(
        kind: EventKind,
        key: ObjectKey,
        bytes: u64,
        etag: Etag,
        content_type: String,
    ) -> Self {
        Self { kind, key, content: Some(Content { bytes, etag: etag.to_string(), content_type }) }
    }

    /// A file is gone.
    pub fn removed(key: ObjectKey) -> Self {
        Self { kind: EventKind::Removed, key, content: None }
    }

    pub(super) fn event(&self, id: String, now_ms: u64) -> Event {
        Event {
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

/// A new id of an event.
pub(super) fn new_event_id(entropy: &dyn Entropy) -> String {
    let mut bytes = [0; 10];
    entropy.fill(&mut bytes);
    format!("evt_{}", base32::encode(&bytes))
}

/// The fact of an event that waits.
pub(super) fn event_fact(webhook: &WebhookId, number: u64) -> Result<FactName, NameError> {
    FactName::parse(&format!("{EVENT_PREFIX}{webhook}/{number:020}"))
}

/// The fact of an event that was given up.
pub(super) fn dead_fact(webhook: &WebhookId, number: u64) -> Result<FactName, NameError> {
    FactName::parse(&format!("{DEAD_PREFIX}{webhook}/{number:020}"))
}

/// The fact of what is known of deliveries.
pub(super) fn state_fact(webhook: &WebhookId) -> Result<FactName, NameError> {
    FactName::parse(&format!("{STATE_PREFIX}{webhook}"))
}

/// The webhook and the number in the rest of such a name.
pub(super) fn parts_of(rest: &str) -> Option<(WebhookId, u64)> {
    let (webhook, number) = rest.split_once('/')?;
    Some((WebhookId::parse(webhook)?, number.parse().ok()?))
}

impl fmt::Display for EventPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::EveryCreated => f.write_str("s3:ObjectCreated:*"),
            Self::EveryRemoved => f.write_str("s3:ObjectRemoved:*"),
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
            let group = if kind == EventKind::Removed {
                "s3:ObjectRemoved:*"
            } else {
                "s3:ObjectCreated:*"
            };
            assert!(EventPattern::parse(group).unwrap().matches(kind));
            assert_eq!(serde_json::to_value(kind).unwrap(), kind.as_str());
        }
        assert!(!EventPattern::EveryCreated.matches(EventKind::Removed));
        for bad in ["", "*", "s3:*", "s3:ObjectCreated", "objectcreated:put", "s3:ObjectRestore:*"]
        {
            assert_eq!(EventPattern::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn facts_are_in_the_order_of_numbers() {
        let webhook = WebhookId::parse("abcdefghijklmnop").unwrap();
        let name = |number| event_fact(&webhook, number).unwrap();
        assert!(name(9) < name(10) && name(u64::MAX - 1) < name(u64::MAX));
        let rest = name(7).as_str().strip_prefix(EVENT_PREFIX).map(parts_of);
        assert_eq!(rest, Some(Some((webhook, 7))));
    }
}
