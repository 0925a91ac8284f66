//! `/-/set-up`: creates the first operator, with the link that the server prints; `/-/invitation` and
//! `/api/accounts/{id}/invitations`: links for setting the password of an account.
//!
//! Guarantees: a link works once; its secret is sent in a request body, so that it is in no log and no history.
//! Non-goals: what a set-up creates, which the catalog decides.

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use catalog::{
    Access, AccountId, AccountName, Actor, Catalog, CatalogError, FairUseStanding, FirstBucket,
    NewSetup, SetupResult, new_bucket_name,
};
use http::request::Parts;
use protocol::error::ApiError;
use protocol::json_body::JsonBody;
use protocol::time_format::iso_time;
use serde::{Deserialize, Serialize};
use service::auth::{Caller, anonymous_actor};
use service::parameters::IdParameter;
use service::replies::Success;
use service::request_context::{Path, RoutedContext};
use service::set_up_link::LinkState;
use service::state::AppState;
use utoipa::ToSchema;

use super::sessions::{
    SessionReply, client_info, hash_new_password, parse_new_password, session_response,
};
use crate::handlers::{changing, changing_as};
use crate::limits;
use crate::management::{
    AccountView, ApiKeyView, BucketView, S3CredentialsView, account_view, api_key_view,
    bucket_view, invitation_url, s3_credentials,
};

/// Set-up request. With `check`, the token is checked and nothing changes.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[expect(dead_code, reason = "it is only described: secrets are read one by one")]
pub struct SetupRequest {
    /// Set-up token, the part of the link after `#`.
    #[schema(format = Password)]
    token: String,
    /// Whether to only check the token.
    #[schema(required = false)]
    check: bool,
    /// Account name. An existing account of that name becomes an operator; its buckets and keys do not change.
    #[schema(required = false, max_length = 100)]
    name: String,
    /// Password, at least 10 characters and at most 128 bytes.
    #[schema(required = false, format = Password, min_length = 10, max_length = 128)]
    password: String,
    /// Name of the first bucket. Optional for an account that owns a bucket.
    #[schema(required = false)]
    bucket_name: String,
    #[schema(required = false)]
    access: Access,
}

/// Valid set-up link.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct SetupCheckReply {
    /// Existing accounts, at most 20.
    accounts: Vec<SetupAccount>,
}

/// Account that a set-up can make an operator.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct SetupAccount {
    name: String,
    /// Whether the account owns a bucket, which makes `bucketName` optional.
    has_bucket: bool,
}

/// Result of a set-up or, with `check`, of checking its token.
#[derive(Serialize, ToSchema)]
#[serde(untagged)]
pub enum SetupOutcome {
    Done(Box<SetupReply>),
    Check(SetupCheckReply),
}

/// Result of a set-up. The only response that contains the key.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct SetupReply {
    /// First bucket; absent if none was created.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    bucket: Option<BucketView>,
    key: String,
    api_key: ApiKeyView,
    /// S3 credentials of the key; absent without the S3 API.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    s3: Option<S3CredentialsView>,
    #[serde(flatten)]
    session: SessionReply,
}

/// Request to accept or check an invitation.
#[derive(Deserialize, ToSchema)]
#[expect(dead_code, reason = "it is only described: secrets are read one by one")]
pub struct AcceptInvitationRequest {
    /// Invitation token, the part of the link after `#`.
    #[schema(format = Password)]
    token: String,
    /// New password, at least 10 characters and at most 128 bytes; absent with `check`.
    #[schema(format = Password, min_length = 10, max_length = 128)]
    password: Option<String>,
    /// Whether to only check the token and return the name of the account.
    check: Option<bool>,
}

/// Result of accepting an invitation or, with `check`, of checking it.
#[derive(Serialize, ToSchema)]
#[serde(untagged)]
pub enum InvitationOutcome {
    Accepted(SessionReply),
    Check(InvitationCheckReply),
}

/// Account of a valid invitation.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct InvitationCheckReply {
    /// Account name for signing in.
    name: String,
    expires_at: String,
}

/// New invitation. No other response contains its link.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct InvitationReply {
    account: AccountView,
    url: String,
    expires_at: String,
}

/// Creates the first operator with a bucket and an API key, and signs in.
///
/// Available until an operator has a password. Requires the link that the server prints at startup.
#[utoipa::path(
    post,
    path = "/-/set-up",
    operation_id = "setUp",
    tag = "Sessions",
    security(()),
    request_body = SetupRequest,
    responses(
        (status = OK, body = SetupOutcome),
        (status = FORBIDDEN, description = "`cross_site`."),
        (status = NOT_FOUND, description = "`link_not_found`."),
        (status = GONE, description = "`link_expired`; `set_up_done`: an operator has a password."),
        (status = 421, description = "`wrong_host`."),
    )
)]
pub async fn set_up(
    State(app): State<AppState>,
    head: Parts,
    mut body: JsonBody,
) -> Result<Response, ApiError> {
    let token = body.require_secret("token")?;
    if body.optional("check")?.unwrap_or(false) {
        body.deny_unknown()?;
        check_link(&app, &head, &token)?;
        return Ok(Success(SetupOutcome::Check(check_reply(&app))).into_response());
    }
    let name: String = body.require("name")?;
    let password = body.require_secret("password")?;
    let bucket: Option<String> = body.optional("bucketName")?;
    let access: Access = body.optional("access")?.unwrap_or_default();
    body.deny_unknown()?;
    check_link(&app, &head, &token)?;
    let refused = |setting| {
        move |error: CatalogError| CatalogError::InvalidSetting { setting, rule: error.to_string() }
    };
    let name = AccountName::parse(&name).map_err(refused("name"))?;
    let bucket = bucket.map(|bucket| new_bucket_name(&bucket).map_err(refused("bucketName")));
    let bucket = bucket.transpose()?.map(|name| FirstBucket { name, access });
    let password = hash_new_password(&app, parse_new_password("password", &password)?).await?;
    let new = NewSetup { name: name.clone(), password, bucket, visitor: client_info(&head) };
    let store = app.store.clone();
    let actor = Actor { name: Some(name.as_str().to_owned()), ..anonymous_actor(&head) };
    let done = changing_as(&app, actor, move |catalog| {
        let done = catalog.set_up(new)?;
        let bucket = done.bucket.as_ref().map(|bucket| bucket_view(&store, bucket)).transpose()?;
        let s3 = s3_credentials(catalog, &done.key.record.id)?;
        Ok((done, bucket, s3))
    });
    let (SetupResult { account, key, started, .. }, bucket, s3) = done.await?;
    tracing::info!(account = %account.id, "set-up completed");
    let api_key = api_key_view(&app.catalog, &key.record);
    session_response(&app, &started, |session| {
        let reply = SetupReply { bucket, key: key.text, api_key, s3, session };
        Success(SetupOutcome::Done(Box::new(reply))).into_response()
    })
}

fn check_reply(app: &AppState) -> SetupCheckReply {
    let accounts = app.catalog.accounts().all();
    let accounts = accounts.iter().take(limits::SET_UP_ACCOUNTS_MAX).map(|account| SetupAccount {
        name: account.name.as_str().to_owned(),
        has_bucket: !app.catalog.buckets().names_of(&account.id).is_empty(),
    });
    SetupCheckReply { accounts: accounts.collect() }
}

/// Creates an invitation link for setting the account's password. Operators only.
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
    Path(id): Path<AccountId>,
) -> Result<Success<InvitationReply>, ApiError> {
    caller.require_operator("sends invitations")?;
    let account = app.catalog.accounts().get(&id).ok_or_else(ApiError::account_not_found)?;
    let invited = changing(&app, &caller, move |catalog| catalog.sessions().invite(&id)).await?;
    Ok(Success(InvitationReply {
        account: account_view(&app.catalog, &account),
        url: invitation_url(app.public_url.as_str(), &invited.text),
        expires_at: iso_time(invited.expires_ms),
    }))
}

/// Sets a password with an invitation, signs in and ends all other sessions.
#[utoipa::path(
    post,
    path = "/-/invitation",
    operation_id = "acceptInvitation",
    tag = "Sessions",
    security(()),
    request_body = AcceptInvitationRequest,
    responses(
        (status = OK, body = InvitationOutcome),
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
    let is_check = body.optional("check")?.unwrap_or(false);
    let password = match is_check {
        true => None,
        false => Some(body.require_secret("password")?),
    };
    body.deny_unknown()?;
    let invitation =
        app.catalog.sessions().invitation(&token).ok_or_else(ApiError::link_not_found)?;
    if app.clock.unix_ms() >= invitation.expires_ms {
        return Err(ApiError::link_expired("ask the operator for a new one"));
    }
    let account = app.catalog.accounts().get(&invitation.account);
    let account = account.filter(|account| account.standing != FairUseStanding::Suspended);
    let account = account.ok_or_else(ApiError::account_suspended)?;
    let Some(password) = password else {
        let (name, expires_ms) = (account.name.as_str().to_owned(), invitation.expires_ms);
        let expires_at = iso_time(expires_ms);
        let reply = InvitationCheckReply { name, expires_at };
        return Ok(Success(InvitationOutcome::Check(reply)).into_response());
    };
    let actor = Actor {
        name: Some(account.name.as_str().to_owned()),
        account: Some(account.id.to_string()),
        ..anonymous_actor(&head)
    };
    let hash = hash_new_password(&app, parse_new_password("password", &password)?).await?;
    let visitor = client_info(&head);
    let accept =
        move |catalog: &Catalog| catalog.sessions().accept_invitation(&invitation, hash, visitor);
    let started = changing_as(&app, actor, accept);
    let accepted = |reply| Success(InvitationOutcome::Accepted(reply)).into_response();
    session_response(&app, &started.await?, accepted)
}

/// Checks the secret of a set-up link. A wrong one counts as a failed authentication.
fn check_link(app: &AppState, head: &Parts, token: &str) -> Result<(), ApiError> {
    if !app.catalog.needs_set_up() {
        return Err(ApiError::set_up_done());
    }
    match app.set_up_link.check(token, app.clock.monotonic_ms()) {
        LinkState::Valid => Ok(()),
        LinkState::Expired => Err(ApiError::link_expired("restart the server to get a new one")),
        LinkState::Unknown => {
            if let Some(address) = RoutedContext::client_ip(&head.extensions) {
                app.rate_limiter.take_failure(address)?;
            }
            Err(ApiError::link_not_found())
        }
    }
}
