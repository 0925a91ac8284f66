//! Webhook message: a JSON body, and signature headers.
//!
//! Follows Standard Webhooks (github.com/standard-webhooks/standard-webhooks): `type`, `timestamp` and `data` in the
//! body, `webhook-id`, `webhook-timestamp` and `webhook-signature` as headers. The id is that of the event, so that a
//! receiver can deduplicate; the timestamp is that of the attempt, so that it can reject old messages.

use bytes::Bytes;
use catalog::{DueEvent, Webhook};
use engine::{ObjectKey, ObjectName};
use http::header::{CONTENT_TYPE, HeaderName};
use http::{HeaderMap, HeaderValue};
use protocol::public_url::public_url;
use protocol::time_format::iso_time;
use serde::Serialize;

use crate::Context;

const TEST: &str = "webhook.test";

/// Signed message.
pub(super) struct WebhookMessage {
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
}

#[derive(Serialize)]
struct Payload<'a, D> {
    #[serde(rename = "type")]
    kind: &'a str,
    timestamp: String,
    data: D,
}

/// File data of an event.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct FilePayload<'a> {
    bucket_name: &'a str,
    key: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    url: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    size: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    etag: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    content_type: Option<&'a str>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct TestPayload<'a> {
    bucket_name: &'a str,
    webhook_id: &'a str,
}

impl WebhookMessage {
    /// Creates the message of an event.
    pub(super) fn for_event(context: &Context, due: &DueEvent) -> Self {
        let DueEvent { webhook, event, .. } = due;
        let key = ObjectKey::parse(&event.key).ok();
        let name = key.map(|key| ObjectName::new(webhook.bucket.clone(), key));
        let content = event.content.as_ref();
        let data = FilePayload {
            bucket_name: webhook.bucket.as_str(),
            key: &event.key,
            url: name.map(|name| public_url(context.public_url.as_str(), &name)),
            size: content.map(|content| content.bytes),
            etag: content.map(|content| format!("\"{}\"", content.etag)),
            content_type: content.map(|content| &*content.content_type),
        };
        let kind = event.kind.as_str();
        let payload = Payload { kind, timestamp: iso_time(event.at_ms), data };
        Self::signed(context, webhook, &event.id, &payload)
    }

    /// Creates a test message.
    pub(super) fn test(context: &Context, webhook: &Webhook) -> Self {
        let data =
            TestPayload { bucket_name: webhook.bucket.as_str(), webhook_id: webhook.id.as_str() };
        let timestamp = iso_time(context.clock.unix_ms());
        let id = format!("test_{}", context.rng.uuid().simple());
        Self::signed(context, webhook, &id, &Payload { kind: TEST, timestamp, data })
    }

    fn signed(context: &Context, webhook: &Webhook, id: &str, payload: &impl Serialize) -> Self {
        // The server's own types have string keys and no fallible parts, so serialization cannot fail.
        let body = Bytes::from(serde_json::to_vec(payload).unwrap_or_default());
        let seconds = context.clock.unix_ms() / 1_000;
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let mut put = |name: &'static str, value: &str| {
            // All of them are plain ASCII.
            if let Ok(value) = HeaderValue::from_str(value) {
                headers.insert(HeaderName::from_static(name), value);
            }
        };
        put("webhook-id", id);
        put("webhook-timestamp", &seconds.to_string());
        if let Some(signature) = webhook.secret.signature(id, seconds, &body) {
            put("webhook-signature", &signature);
        }
        Self { headers, body }
    }
}
