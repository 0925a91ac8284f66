//! `/api/keys`: creation, listing and revocation of API keys.
//!
//! Guarantees: a key cannot create one with more rights than its own, nor see or revoke one whose reach exceeds its
//! own; the key's secret is returned only once.

use axum::extract::State;
use catalog::{ApiKey, ApiKeyId, NewApiKey, Scope};
use engine::BucketName;
use protocol::error::ApiError;
use protocol::json_body::JsonBody;
use protocol::name_filter::NameFilter;
use protocol::paging::PageRequest;
use protocol::query::Query;
use serde::Serialize;
use service::auth::Caller;
use service::parameters::{IdParameter, NameFilterParameter, PageParameters};
use service::replies::Success;
use service::request_context::Path;
use service::state::AppState;
use utoipa::ToSchema;

use crate::handlers::{changing, with_catalog};
use crate::management::{
    ApiKeySettings, ApiKeyView, S3CredentialsView, api_key_view, new_api_key, s3_credentials,
};

/// New API key. No other response contains the key.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ApiKeyIssuedReply {
    key: String,
    api_key: ApiKeyView,
    /// S3 credentials; absent if the server is built without the S3 gateway.
    #[serde(skip_serializing_if = "Option::is_none")]
    s3: Option<S3CredentialsView>,
}

/// API key without its secret.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ApiKeyReply {
    api_key: ApiKeyView,
}

/// Page of API keys.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ApiKeysReply {
    api_keys: Vec<ApiKeyView>,
    #[schema(required)]
    next_cursor: Option<String>,
}

/// Lists the account's API keys, including revoked ones; `q` filters by name or id.
#[utoipa::path(
    get,
    path = "/api/keys",
    operation_id = "listKeys",
    tag = "API keys",
    params(PageParameters, NameFilterParameter),
    responses((status = OK, body = ApiKeysReply))
)]
pub async fn list(
    State(app): State<AppState>,
    caller: Caller,
    query: Query,
) -> Result<Success<ApiKeysReply>, ApiError> {
    caller.require_scope(Scope::Manage)?;
    let (page, called) = (PageRequest::from_query(&query)?, NameFilter::from_query(&query)?);
    let visible = app.catalog.api_keys().all().into_iter().filter(|api_key| {
        let bucket = api_key.limits.bucket.as_ref().map(BucketName::as_str);
        let names = [api_key.name.as_str()].into_iter().chain(bucket);
        sees(&caller, api_key) && called.matches(api_key.id.as_str(), names)
    });
    let (page, next_cursor) = page.paginate(visible, |api_key| api_key.id.as_str());
    let api_keys = page.iter().map(|api_key| api_key_view(&app.catalog, api_key)).collect();
    Ok(Success(ApiKeysReply { api_keys, next_cursor }))
}

/// Creates an API key. The key is returned only once.
#[utoipa::path(
    post,
    path = "/api/keys",
    operation_id = "createKey",
    tag = "API keys",
    request_body = ApiKeySettings,
    responses(
        (status = OK, body = ApiKeyIssuedReply),
        (status = NOT_FOUND, description = "`bucket_not_found`: the bucket does not exist."),
    )
)]
pub async fn create(
    State(app): State<AppState>,
    caller: Caller,
    body: JsonBody,
) -> Result<Success<ApiKeyIssuedReply>, ApiError> {
    caller.require_scope(Scope::Manage)?;
    let settings = body.deserialize::<ApiKeySettings>()?;
    let new = new_api_key(caller.account().id.clone(), settings)?;
    if new.scopes.is_empty() {
        return Err(ApiError::bad_parameter("scopes", "must name at least one scope"));
    }
    check_no_wider(&caller, &new)?;
    let issued = changing(&app, &caller, move |catalog| catalog.api_keys().issue(new)).await?;
    let api_key = api_key_view(&app.catalog, &issued.record);
    let id = issued.record.id.clone();
    let s3 = with_catalog(&app, move |catalog| s3_credentials(catalog, &id)).await?;
    Ok(Success(ApiKeyIssuedReply { key: issued.text, api_key, s3 }))
}

/// Revokes an API key with immediate effect.
#[utoipa::path(
    delete,
    path = "/api/keys/{id}",
    operation_id = "revokeKey",
    tag = "API keys",
    params(IdParameter),
    responses((status = OK, body = ApiKeyReply))
)]
pub async fn revoke(
    State(app): State<AppState>,
    caller: Caller,
    Path(id): Path<ApiKeyId>,
) -> Result<Success<ApiKeyReply>, ApiError> {
    caller.require_scope(Scope::Manage)?;
    let found = app.catalog.api_keys().get(&id);
    let found = found.filter(|api_key| sees(&caller, api_key));
    let id = found.ok_or_else(ApiError::api_key_not_found)?.id.clone();
    let revoked = changing(&app, &caller, move |catalog| catalog.api_keys().revoke(&id)).await?;
    Ok(Success(ApiKeyReply { api_key: api_key_view(&app.catalog, &revoked) }))
}

fn sees(caller: &Caller, api_key: &ApiKey) -> bool {
    api_key.account == caller.account().id && caller.limits().covers_paths(&api_key.limits)
}

fn check_no_wider(caller: &Caller, new: &NewApiKey) -> Result<(), ApiError> {
    if let Some(scope) = new.scopes.iter().find(|scope| !caller.has_scope(**scope)) {
        let message = format!("The API key cannot grant scope \"{}\"", scope.as_str());
        return Err(ApiError::forbidden(message));
    }
    if !caller.limits().is_superset_of(&new.limits) {
        let message =
            "An API key cannot create a key with more access or a later expiry than its own";
        return Err(ApiError::forbidden(message));
    }
    Ok(())
}
