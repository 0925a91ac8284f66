//! `/-/set-up`: the first account, with the link that the server prints; `/-/invitation` and
//! `/api/accounts/{id}/invitations`: links with which others choose their passwords.
//!
//! Promises: a link works once; its secret comes in a body, so that no log and no history has it.
//! Never here: what belongs to a first set-up.

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::Uri;
use http::request::Parts;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::sessions::{SessionReply, chosen, hashed, visitor, welcome};
use crate::auth::{Caller, unknown_actor};
use crate::catalog::{
    Access, AccountId, AccountName, Actor, Catalog, CatalogError, FirstBucket, SetUp, SetUpDone,
    Standing, new_bucket_name,
};
use crate::error::ApiError;
use crate::handlers::{changing, changing_as};
use crate::json_body::JsonBody;
use crate::management::{
    AccountView, ApiKeyView, BucketView, account_view, api_key_view, bucket_view, invitation_url,
};
use crate::parameters::IdParameter;
use crate::replies::{Json, iso_time};
use crate::set_up_link::Worth;
use crate::state::AppState;
use crate::target::last_component;

/// What the first set-up asks for.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[expect(dead_code, reason = "it is only described: secrets are read one by one")]
pub struct SetUpBody {
    /// What stands behind the `#` of the link.
    #[schema(format = Password)]
    token: String,
    /// Of the account, to sign in with.
    #[schema(max_length = 100)]
    name: String,
    /// At least 10 characters, and at most 128 bytes.
    #[schema(format = Password, min_length = 10, max_length = 128)]
    password: String,
    bucket_name: String,
    #[schema(required = false)]
    access: Access,
}

/// What was set up. The only answer that holds the key.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct SetUpReply {
    bucket: BucketView,
    key: String,
    api_key: ApiKeyView,
    #[serde(flatten)]
    session: SessionReply,
}

/// What an invitation is answered with.
#[derive(Deserialize, ToSchema)]
#[expect(dead_code, reason = "it is only described: secrets are read one by one")]
pub struct InvitationBody {
    /// What stands behind the `#` of the link.
    #[schema(format = Password)]
    token: String,
    /// At least 10 characters, and at most 128 bytes.
    #[schema(format = Password, min_length = 10, max_length = 128)]
    password: String,
}

/// An invitation. The only answer that holds it.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct InvitationReply {
    success: bool,
    account: AccountView,
    url: String,
    expires_at: String,
}

/// Makes the first account, an operator, with a first bucket and a first key, and signs in.
#[utoipa::path(
    post,
    path = "/-/set-up",
    operation_id = "setUp",
    tag = "Sessions",
    security(()),
    request_body = SetUpBody,
    responses(
        (status = OK, body = SetUpReply),
        (status = FORBIDDEN, description = "`cross_site`."),
        (status = NOT_FOUND, description = "`link_not_found`."),
        (status = GONE, description = "`link_expired`; `set_up_done`: there is an account."),
        (status = 421, description = "`wrong_host`."),
    )
)]
pub async fn set_up(
    State(app): State<AppState>,
    head: Parts,
    mut body: JsonBody,
) -> Result<Response, ApiError> {
    let token = body.require_secret("token")?;
    let name: String = body.require("name")?;
    let password = body.require_secret("password")?;
    let bucket: String = body.require("bucketName")?;
    let access: Access = body.take("access")?.unwrap_or_default();
    body.finish()?;
    check_link(&app, &token)?;
    let refused = |setting| {
        move |error: CatalogError| CatalogError::BadSetting { setting, rule: error.to_string() }
    };
    let name = AccountName::parse(&name).map_err(refused("name"))?;
    let bucket = new_bucket_name(&bucket).map_err(refused("bucketName"))?;
    let password = hashed(&app, chosen("password", &password)?).await?;
    let bucket = FirstBucket { name: bucket, access };
    let new = SetUp { name: name.clone(), password, bucket, visitor: visitor(&head) };
    let store = app.store.clone();
    let actor = Actor { name: Some(name.as_str().to_owned()), ..unknown_actor(&head) };
    let done = changing_as(&app, actor, move |catalog| {
        let done = catalog.set_up(new)?;
        let bucket = bucket_view(&store, &done.bucket)?;
        Ok((done, bucket))
    });
    let (SetUpDone { account, key, started, .. }, bucket) = done.await?;
    tracing::info!(account = %account.id, "the first account was made");
    let api_key = api_key_view(&app.catalog, &key.record);
    welcome(&app, &started, |session| {
        Json(SetUpReply { bucket, key: key.text, api_key, session }).into_response()
    })
}

/// Invites the holder of an account to choose its password, for the operator.
#[utoipa::path(
    post,
    path = "/api/accounts/{id}/invitations",
    operation_id = "inviteAccount",
    tag = "Accounts",
    params(IdParameter),
    responses((status = OK, body = InvitationReply))
)]
pub async fn invite(
    State(app): State<AppState>,
    caller: Caller,
    uri: Uri,
) -> Result<Json<InvitationReply>, ApiError> {
    caller.check_operator("sends invitations")?;
    let above = uri.path().rsplit_once('/').map_or("", |(above, _)| above);
    let id = AccountId::parse(&last_component(above)?).ok_or_else(ApiError::account_not_found)?;
    let account = app.catalog.account(&id).ok_or_else(ApiError::account_not_found)?;
    let invited = changing(&app, &caller, move |catalog| catalog.invite(&id)).await?;
    Ok(Json(InvitationReply {
        success: true,
        account: account_view(&app.catalog, &account),
        url: invitation_url(app.public_url.as_str(), &invited.text),
        expires_at: iso_time(invited.expires_ms),
    }))
}

/// Chooses a password with an invitation, and signs in. All other sessions of the account end.
#[utoipa::path(
    post,
    path = "/-/invitation",
    operation_id = "acceptInvitation",
    tag = "Sessions",
    security(()),
    request_body = InvitationBody,
    responses(
        (status = OK, body = SessionReply),
        (status = FORBIDDEN, description = "`account_suspended`, `cross_site`."),
        (status = NOT_FOUND, description = "`link_not_found`."),
        (status = GONE, description = "`link_expired`."),
        (status = 421, description = "`wrong_host`."),
    )
)]
pub async fn accept_invitation(
    State(app): State<AppState>,
    head: Parts,
    mut body: JsonBody,
) -> Result<Response, ApiError> {
    let token = body.require_secret("token")?;
    let password = body.require_secret("password")?;
    body.finish()?;
    let invitation = app.catalog.invitation(&token).ok_or_else(ApiError::link_not_found)?;
    if app.clock.unix_ms() >= invitation.expires_ms {
        return Err(ApiError::link_expired("ask the operator for another one"));
    }
    let account = app.catalog.account(&invitation.account);
    let account = account.filter(|account| account.standing != Standing::Suspended);
    let account = account.ok_or_else(ApiError::account_suspended)?;
    let actor = Actor {
        name: Some(account.name.as_str().to_owned()),
        account: Some(account.id.to_string()),
        ..unknown_actor(&head)
    };
    let hash = hashed(&app, chosen("password", &password)?).await?;
    let visitor = visitor(&head);
    let accept = move |catalog: &Catalog| catalog.accept_invitation(&invitation, hash, visitor);
    let started = changing_as(&app, actor, accept);
    welcome(&app, &started.await?, |reply| Json(reply).into_response())
}

/// Whether a link of the first set-up is good now.
fn check_link(app: &AppState, token: &str) -> Result<(), ApiError> {
    if app.catalog.has_accounts() {
        return Err(ApiError::set_up_done());
    }
    match app.set_up_link.worth(token, app.clock.monotonic_ms()) {
        Worth::Good => Ok(()),
        Worth::Expired => Err(ApiError::link_expired("restart the server, which prints another")),
        Worth::Nothing => Err(ApiError::link_not_found()),
    }
}
