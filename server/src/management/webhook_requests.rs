//! Management of webhooks.
//!
//! Non-goals: delivery, which only a running server does.

use catalog::{
    Catalog, CatalogError, DeadLetter, EventPattern, NewWebhook, Webhook, WebhookChange, WebhookId,
    parse_event_patterns,
};
use engine::BucketName;
use jobs::webhooks::TestResult;
use protocol::destination::OutboundUrl;
use protocol::object_path::normalize;
use protocol::time_format::iso_time;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa::openapi::schema::{ArrayBuilder, ObjectBuilder, Type};
use utoipa::openapi::{RefOr, Schema};

use super::bucket_name;
use super::reply::AdminResponse;
use super::settings::{present_field, text_or_null, with_setting};

/// Webhook request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum WebhookRequest {
    Create {
        bucket: String,
        settings: WebhookSettings,
    },
    /// Lists the webhooks of a bucket.
    List {
        bucket: String,
    },
    Edit {
        id: String,
        settings: WebhookSettings,
    },
    Delete {
        id: String,
    },
    /// Sends a test message. Requires a running server.
    Test {
        id: String,
    },
    /// Lists dead letters, oldest first.
    DeadLetters {
        id: String,
    },
    /// Retries dead letters: all, or one.
    Retry {
        id: String,
        event: Option<String>,
    },
    /// Deletes dead letters: all, or one.
    Forget {
        id: String,
        event: Option<String>,
    },
}

/// Webhook settings.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct WebhookSettings {
    #[serde(deserialize_with = "present_field", skip_serializing_if = "Option::is_none")]
    #[schema(
        nullable = false,
        pattern = "^https?://[a-z0-9.-]+(:[1-9][0-9]{0,3})?/[!-~]*$",
        max_length = 2048
    )]
    pub url: Option<String>,
    /// S3's names of events.
    #[serde(deserialize_with = "present_field", skip_serializing_if = "Option::is_none")]
    #[schema(schema_with = events_schema)]
    pub events: Option<Vec<String>>,
    #[serde(deserialize_with = "text_or_null", skip_serializing_if = "Option::is_none")]
    pub prefix: Option<String>,
    #[serde(deserialize_with = "present_field", skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub enabled: Option<bool>,
}

fn events_schema() -> RefOr<Schema> {
    let name = ObjectBuilder::new()
        .schema_type(Type::String)
        .enum_values(Some(EventPattern::any().map(|pattern| pattern.to_string())));
    ArrayBuilder::new().items(name).min_items(Some(1)).into()
}

/// Webhook with its delivery statistics, without its secret.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct WebhookView {
    pub id: String,
    pub bucket_name: String,
    pub url: String,
    pub events: Vec<String>,
    pub prefix: String,
    pub enabled: bool,
    /// Reason why the server disabled the webhook.
    pub disabled_reason: Option<String>,
    /// Number of events waiting for delivery.
    pub pending_count: u64,
    /// Number of waiting events that failed at least once.
    pub retrying_count: u64,
    /// Number of failed events (dead letters).
    pub dead_letter_count: u64,
    /// Number of events dropped because the queue was full.
    pub dropped_count: u64,
    pub last_attempt_at: Option<String>,
    /// HTTP status of the last delivery attempt; `null` without a response.
    pub last_status: Option<u16>,
    /// Error of the last delivery attempt; `null` if successful.
    pub last_error: Option<String>,
    pub last_delivery_at: Option<String>,
    pub created_at: String,
    pub updated_at: String,
}

/// New webhook, with its secret, which is returned only once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct WebhookCreatedView {
    pub secret: String,
    pub webhook: WebhookView,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct WebhookDeletedView {
    pub id: String,
}

/// Result of a webhook test.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct WebhookTestedView {
    pub delivered: bool,
    /// HTTP status of the response; `null` without a response.
    pub status: Option<u16>,
    /// Reason why the test message does not count as delivered.
    pub delivery_error: Option<String>,
    /// Beginning of the response body.
    pub answer: String,
    pub duration_ms: u64,
}

/// Failed event (dead letter).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct DeadLetterView {
    pub event_id: String,
    #[serde(rename = "type")]
    pub kind: String,
    pub key: String,
    /// Time of the event.
    pub timestamp: String,
    pub attempt_count: u64,
    pub given_up_at: String,
    /// HTTP status of the last delivery attempt; `null` without a response.
    pub status: Option<u16>,
    pub delivery_error: String,
    /// Beginning of the response body.
    pub answer: String,
}

/// Page of dead letters.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DeadLettersView {
    pub dead_letters: Vec<DeadLetterView>,
}

/// Number of events queued again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct DeadLettersRetriedView {
    pub retried_count: u64,
}

/// Number of deleted dead letters.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct DeadLettersForgottenView {
    pub deleted_count: u64,
}

pub(super) fn execute(
    catalog: &Catalog,
    request: WebhookRequest,
) -> Result<AdminResponse, CatalogError> {
    match request {
        WebhookRequest::Create { bucket, settings } => {
            let new = new_webhook(bucket_name(&bucket)?, settings)?;
            let webhook = catalog.webhooks().create(new)?;
            Ok(AdminResponse::WebhookCreated(Box::new(webhook_created_view(catalog, &webhook))))
        }
        WebhookRequest::List { bucket } => {
            let webhooks =
                catalog.webhooks().of_bucket(&super::existing_bucket(catalog, &bucket)?.name);
            let views = webhooks.iter().map(|webhook| webhook_view(catalog, webhook));
            Ok(AdminResponse::Webhooks(views.collect()))
        }
        WebhookRequest::Edit { id, settings } => {
            let webhook = catalog.webhooks().edit(&webhook_id(&id)?, webhook_change(settings)?)?;
            Ok(AdminResponse::Webhook(Box::new(webhook_view(catalog, &webhook))))
        }
        WebhookRequest::Delete { id } => {
            catalog.webhooks().delete(&webhook_id(&id)?)?;
            Ok(AdminResponse::WebhookDeleted(WebhookDeletedView { id }))
        }
        WebhookRequest::Test { .. } => Err(CatalogError::InvalidRequest(
            "webhooks can only be tested on a running server: start it and retry".into(),
        )),
        WebhookRequest::DeadLetters { id } => {
            let id = existing_webhook(catalog, &id)?;
            let (letters, _) = catalog.deliveries().dead_letters(
                &id,
                None,
                catalog::limits::WEBHOOK_DEAD_LETTERS_MAX,
            )?;
            let dead_letters = letters.iter().map(dead_letter_view).collect();
            Ok(AdminResponse::DeadLetters(DeadLettersView { dead_letters }))
        }
        WebhookRequest::Retry { id, event } => {
            let count = catalog.deliveries().redrive(&webhook_id(&id)?, event.as_deref())?;
            let retried_count = count as u64;
            Ok(AdminResponse::DeadLettersRetried(DeadLettersRetriedView { retried_count }))
        }
        WebhookRequest::Forget { id, event } => {
            let count = catalog.deliveries().purge(&webhook_id(&id)?, event.as_deref())?;
            let deleted_count = count as u64;
            Ok(AdminResponse::DeadLettersForgotten(DeadLettersForgottenView { deleted_count }))
        }
    }
}

/// Validates the settings of a new webhook.
pub fn new_webhook(
    bucket: BucketName,
    settings: WebhookSettings,
) -> Result<NewWebhook, CatalogError> {
    let change = webhook_change(settings)?;
    let required = |setting, what: &str| CatalogError::InvalidSetting {
        setting,
        rule: format!("a webhook needs {what}"),
    };
    Ok(NewWebhook {
        bucket,
        destination: change.destination.ok_or_else(|| required("url", "a url"))?,
        events: change.events.ok_or_else(|| required("events", "events"))?,
        prefix: change.prefix.unwrap_or_default(),
        enabled: change.enabled.unwrap_or(true),
    })
}

/// Validates a change of a webhook.
pub fn webhook_change(settings: WebhookSettings) -> Result<WebhookChange, CatalogError> {
    let WebhookSettings { url, events: patterns, prefix, enabled } = settings;
    let destination = |url: String| {
        OutboundUrl::parse(&url)
            .map_err(|why| CatalogError::InvalidRequest(format!("invalid url: it {why}")))
    };
    Ok(WebhookChange {
        destination: with_setting("url", url.map(destination).transpose())?,
        events: with_setting(
            "events",
            patterns.map(|texts| parse_event_patterns(&texts)).transpose(),
        )?,
        prefix: with_setting("prefix", prefix.map(|prefix| key_prefix(&prefix)).transpose())?,
        enabled,
    })
}

fn key_prefix(text: &str) -> Result<String, CatalogError> {
    let max = engine::limits::KEY_BYTES_MAX;
    let prefix = normalize(text).into_owned();
    if prefix.len() > max || prefix.contains(char::is_control) {
        let rule = format!("a prefix has at most {max} bytes and no control characters");
        return Err(CatalogError::InvalidRequest(rule));
    }
    Ok(prefix)
}

/// Converts a webhook, with its delivery state.
pub fn webhook_view(catalog: &Catalog, webhook: &Webhook) -> WebhookView {
    let (counts, state) = catalog.deliveries().of_webhook(&webhook.id);
    WebhookView {
        id: webhook.id.to_string(),
        bucket_name: webhook.bucket.to_string(),
        url: webhook.destination.as_str().to_owned(),
        events: webhook.events.iter().map(ToString::to_string).collect(),
        prefix: webhook.prefix.clone(),
        enabled: webhook.enabled,
        disabled_reason: webhook.disabled_reason.clone(),
        pending_count: counts.pending as u64,
        retrying_count: counts.retrying as u64,
        dead_letter_count: counts.dead as u64,
        dropped_count: state.dropped,
        last_attempt_at: state.last_attempt_ms.map(iso_time),
        last_status: state.last_status,
        last_error: state.last_error,
        last_delivery_at: state.last_delivery_ms.map(iso_time),
        created_at: iso_time(webhook.created_ms),
        updated_at: iso_time(webhook.updated_ms),
    }
}

/// Converts a new webhook, with its secret.
pub fn webhook_created_view(catalog: &Catalog, webhook: &Webhook) -> WebhookCreatedView {
    let secret = webhook.secret.text();
    WebhookCreatedView { secret, webhook: webhook_view(catalog, webhook) }
}

impl From<TestResult> for WebhookTestedView {
    fn from(tested: TestResult) -> Self {
        let TestResult { status, error, answer, duration_ms } = tested;
        let delivered = error.is_none();
        Self { delivered, status, delivery_error: error, answer, duration_ms }
    }
}

/// Converts a dead letter.
pub fn dead_letter_view(letter: &DeadLetter) -> DeadLetterView {
    let DeadLetter { event, died_ms, status, error, answer } = letter;
    DeadLetterView {
        event_id: event.id.clone(),
        kind: event.kind.as_str().to_owned(),
        key: event.key.clone(),
        timestamp: iso_time(event.at_ms),
        attempt_count: event.attempts.into(),
        given_up_at: iso_time(*died_ms),
        status: *status,
        delivery_error: error.clone(),
        answer: answer.clone(),
    }
}

/// Parses a webhook id; the webhook need not exist.
pub fn webhook_id(id: &str) -> Result<WebhookId, CatalogError> {
    WebhookId::parse(id).ok_or_else(|| CatalogError::NotFound(format!("the webhook {id:?}")))
}

fn existing_webhook(catalog: &Catalog, id: &str) -> Result<WebhookId, CatalogError> {
    let found = catalog.webhooks().get(&webhook_id(id)?).map(|webhook| webhook.id.clone());
    found.ok_or_else(|| CatalogError::NotFound(format!("the webhook {id:?}")))
}
