//! `/api/buckets/{bucketName}/webhooks`: webhooks of a bucket, and their delivery status.
//!
//! Guarantees: only callers that manage the bucket see or create webhooks; a key restricted to a folder sees and
//! creates only webhooks with such a restriction; the secret is returned only once.

use std::sync::Arc;

use axum::extract::State;
use catalog::{Catalog, Scope, Webhook, WebhookId};
use engine::BucketName;
use jobs::webhooks;
use protocol::destination::OutboundUrl;
use protocol::error::ApiError;
use protocol::json_body::JsonBody;
use protocol::paging::PageRequest;
use protocol::query::Query;
use serde::Serialize;
use service::auth::Caller;
use service::parameters::{BucketNameParameter, IdParameter, PageParameters};
use service::replies::Success;
use service::request_context::Path;
use service::state::AppState;
use utoipa::ToSchema;

use crate::handlers::{changing, with_catalog};
use crate::management::{
    DeadLetterView, DeadLettersForgottenView, DeadLettersRetriedView, WebhookCreatedView,
    WebhookDeletedView, WebhookSettings, WebhookTestedView, WebhookView, dead_letter_view,
    new_webhook, webhook_change, webhook_created_view, webhook_view,
};

const EVENT_ID: &[&str] = &["eventId"];

/// Webhook.
#[derive(Serialize, ToSchema)]
pub struct WebhookReply {
    webhook: WebhookView,
}

/// Webhooks of a bucket.
#[derive(Serialize, ToSchema)]
pub struct WebhooksReply {
    webhooks: Vec<WebhookView>,
}

/// Deleted webhook.
#[derive(Serialize, ToSchema)]
pub struct WebhookDeletedReply {
    message: String,
    #[serde(flatten)]
    deleted: WebhookDeletedView,
}

/// Page of dead letters.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct DeadLettersReply {
    dead_letters: Vec<DeadLetterView>,
    next_cursor: Option<String>,
}

/// Lists the webhooks of a bucket by id.
#[utoipa::path(
    get,
    path = "/api/buckets/{bucketName}/webhooks",
    operation_id = "listWebhooks",
    tag = "Webhooks",
    params(BucketNameParameter),
    responses((status = OK, body = WebhooksReply))
)]
pub async fn list(
    State(app): State<AppState>,
    caller: Caller,
    Path(name): Path<BucketName>,
) -> Result<Success<WebhooksReply>, ApiError> {
    let bucket = caller.bucket(&app.catalog, &name, Scope::Manage)?;
    let webhooks = app.catalog.webhooks().of_bucket(&bucket.name);
    let visible = webhooks.iter().filter(|webhook| sees(&caller, webhook));
    let webhooks = visible.map(|webhook| webhook_view(&app.catalog, webhook)).collect();
    Ok(Success(WebhooksReply { webhooks }))
}

/// Creates a webhook. The secret is returned only once.
#[utoipa::path(
    post,
    path = "/api/buckets/{bucketName}/webhooks",
    operation_id = "createWebhook",
    tag = "Webhooks",
    params(BucketNameParameter),
    request_body = WebhookSettings,
    responses((status = OK, body = WebhookCreatedView))
)]
pub async fn create(
    State(app): State<AppState>,
    caller: Caller,
    Path(name): Path<BucketName>,
    body: JsonBody,
) -> Result<Success<WebhookCreatedView>, ApiError> {
    let bucket = caller.bucket(&app.catalog, &name, Scope::Manage)?;
    let new = new_webhook(bucket.name.clone(), body.deserialize::<WebhookSettings>()?)?;
    caller.require_prefix_access(&new.prefix)?;
    check_target(&app, &new.destination)?;
    let webhook = changing(&app, &caller, move |catalog| catalog.webhooks().create(new)).await?;
    let created = webhook_created_view(&app.catalog, &webhook);
    Ok(Success(created))
}

/// Returns a webhook with its delivery statistics.
#[utoipa::path(
    get,
    path = "/api/buckets/{bucketName}/webhooks/{id}",
    operation_id = "showWebhook",
    tag = "Webhooks",
    params(BucketNameParameter, IdParameter),
    responses(
        (status = OK, body = WebhookReply),
        (status = NOT_FOUND, description = "`bucket_not_found`, `webhook_not_found`."),
    )
)]
pub async fn show(
    State(app): State<AppState>,
    caller: Caller,
    Path(ids): Path<WebhookPath>,
) -> Result<Success<WebhookReply>, ApiError> {
    let webhook = webhook(&app, &caller, &ids)?;
    Ok(Success(WebhookReply { webhook: webhook_view(&app.catalog, &webhook) }))
}

/// Updates the given settings of a webhook.
#[utoipa::path(
    patch,
    path = "/api/buckets/{bucketName}/webhooks/{id}",
    operation_id = "editWebhook",
    tag = "Webhooks",
    params(BucketNameParameter, IdParameter),
    request_body = WebhookSettings,
    responses(
        (status = OK, body = WebhookReply),
        (status = NOT_FOUND, description = "`bucket_not_found`, `webhook_not_found`."),
    )
)]
pub async fn edit(
    State(app): State<AppState>,
    caller: Caller,
    Path(ids): Path<WebhookPath>,
    body: JsonBody,
) -> Result<Success<WebhookReply>, ApiError> {
    let webhook = webhook(&app, &caller, &ids)?;
    let change = webhook_change(body.deserialize::<WebhookSettings>()?)?;
    if let Some(prefix) = &change.prefix {
        caller.require_prefix_access(prefix)?;
    }
    if let Some(destination) = &change.destination {
        check_target(&app, destination)?;
    }
    let edit = move |catalog: &Catalog| catalog.webhooks().edit(&webhook.id, change);
    let webhook = changing(&app, &caller, edit).await?;
    Ok(Success(WebhookReply { webhook: webhook_view(&app.catalog, &webhook) }))
}

/// Deletes a webhook and its queued events.
#[utoipa::path(
    delete,
    path = "/api/buckets/{bucketName}/webhooks/{id}",
    operation_id = "deleteWebhook",
    tag = "Webhooks",
    params(BucketNameParameter, IdParameter),
    responses(
        (status = OK, body = WebhookDeletedReply),
        (status = NOT_FOUND, description = "`bucket_not_found`, `webhook_not_found`."),
    )
)]
pub async fn delete(
    State(app): State<AppState>,
    caller: Caller,
    Path(ids): Path<WebhookPath>,
) -> Result<Success<WebhookDeletedReply>, ApiError> {
    let id = webhook(&app, &caller, &ids)?.id.clone();
    let deleted = WebhookDeletedView { id: id.to_string() };
    changing(&app, &caller, move |catalog| catalog.webhooks().delete(&id)).await?;
    let message = format!("Deleted the webhook {}", deleted.id);
    Ok(Success(WebhookDeletedReply { message, deleted }))
}

/// Sends a test event and returns the receiver's response.
#[utoipa::path(
    post,
    path = "/api/buckets/{bucketName}/webhooks/{id}/test",
    operation_id = "testWebhook",
    tag = "Webhooks",
    params(BucketNameParameter, IdParameter),
    responses(
        (status = OK, body = WebhookTestedView),
        (status = NOT_FOUND, description = "`bucket_not_found`, `webhook_not_found`."),
    )
)]
pub async fn test(
    State(app): State<AppState>,
    caller: Caller,
    Path(ids): Path<WebhookPath>,
) -> Result<Success<WebhookTestedView>, ApiError> {
    let webhook = webhook(&app, &caller, &ids)?;
    let tested =
        webhooks::test(&app.jobs, &webhook).await.ok_or_else(|| ApiError::overloaded(1))?;
    Ok(Success(tested.into()))
}

/// Lists dead letters, oldest first.
#[utoipa::path(
    get,
    path = "/api/buckets/{bucketName}/webhooks/{id}/dead-letters",
    operation_id = "listDeadLetters",
    tag = "Webhooks",
    params(BucketNameParameter, IdParameter, PageParameters),
    responses(
        (status = OK, body = DeadLettersReply),
        (status = NOT_FOUND, description = "`bucket_not_found`, `webhook_not_found`."),
    )
)]
pub async fn dead_letters(
    State(app): State<AppState>,
    caller: Caller,
    Path(ids): Path<WebhookPath>,
    query: Query,
) -> Result<Success<DeadLettersReply>, ApiError> {
    let id = webhook(&app, &caller, &ids)?.id.clone();
    let page = PageRequest::from_query(&query)?;
    let after = page.after(str::parse)?;
    let limit = page.limit();
    let find = move |catalog: &Catalog| catalog.deliveries().dead_letters(&id, after, limit);
    let (letters, last) = with_catalog(&app, find).await?;
    Ok(Success(DeadLettersReply {
        dead_letters: letters.iter().map(dead_letter_view).collect(),
        next_cursor: last.map(|number| number.to_string()),
    }))
}

/// Redelivers all dead letters, or one.
#[utoipa::path(
    post,
    path = "/api/buckets/{bucketName}/webhooks/{id}/dead-letters/retry",
    operation_id = "retryDeadLetters",
    tag = "Webhooks",
    params(
        BucketNameParameter,
        IdParameter,
        ("eventId" = Option<String>, Query, description = "Id of the only affected event; default: all events."),
    ),
    responses(
        (status = OK, body = DeadLettersRetriedView),
        (status = NOT_FOUND, description = "`bucket_not_found`, `webhook_not_found`."),
    )
)]
pub async fn retry_dead_letters(
    State(app): State<AppState>,
    caller: Caller,
    Path(ids): Path<WebhookPath>,
    query: Query,
) -> Result<Success<DeadLettersRetriedView>, ApiError> {
    let id = webhook(&app, &caller, &ids)?.id.clone();
    let event = query.string(EVENT_ID)?;
    let retry = move |catalog: &Catalog| catalog.deliveries().redrive(&id, event.as_deref());
    let retried_count = with_catalog(&app, retry).await? as u64;
    let retried = DeadLettersRetriedView { retried_count };
    Ok(Success(retried))
}

/// Deletes all dead letters, or one.
#[utoipa::path(
    delete,
    path = "/api/buckets/{bucketName}/webhooks/{id}/dead-letters",
    operation_id = "forgetDeadLetters",
    tag = "Webhooks",
    params(
        BucketNameParameter,
        IdParameter,
        ("eventId" = Option<String>, Query, description = "Id of the only affected event; default: all events."),
    ),
    responses(
        (status = OK, body = DeadLettersForgottenView),
        (status = NOT_FOUND, description = "`bucket_not_found`, `webhook_not_found`."),
    )
)]
pub async fn forget_dead_letters(
    State(app): State<AppState>,
    caller: Caller,
    Path(ids): Path<WebhookPath>,
    query: Query,
) -> Result<Success<DeadLettersForgottenView>, ApiError> {
    let id = webhook(&app, &caller, &ids)?.id.clone();
    let event = query.string(EVENT_ID)?;
    let forget = move |catalog: &Catalog| catalog.deliveries().purge(&id, event.as_deref());
    let deleted_count = with_catalog(&app, forget).await? as u64;
    let forgotten = DeadLettersForgottenView { deleted_count };
    Ok(Success(forgotten))
}

/// Bucket and webhook in a path.
type WebhookPath = (BucketName, WebhookId);

/// Returns the webhook in the path, if the caller manages it.
fn webhook(
    app: &AppState,
    caller: &Caller,
    (bucket, id): &WebhookPath,
) -> Result<Arc<Webhook>, ApiError> {
    let bucket = caller.bucket(&app.catalog, bucket, Scope::Manage)?;
    let found = app.catalog.webhooks().get(id);
    let found = found.filter(|it| it.bucket == bucket.name && sees(caller, it));
    found.ok_or_else(ApiError::webhook_not_found)
}

fn sees(caller: &Caller, webhook: &Webhook) -> bool {
    caller.require_prefix_access(&webhook.prefix).is_ok()
}

fn check_target(app: &AppState, destination: &OutboundUrl) -> Result<(), ApiError> {
    let checked = destination.check_ip_literal(&app.config().webhook_allow);
    checked.map_err(|why| ApiError::bad_parameter("url", &why.to_string()))
}
