//! `/-/session` and `/-/sessions`: current session, sign-in and sign-out; `/-/password`: password change.
//!
//! Guarantees: each sign-in creates a new session, whatever cookie the request carries; a wrong password and an unknown
//! name are indistinguishable by response and timing. Non-goals: rights of a session.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use catalog::{
    Actor, Catalog, CatalogError, ClientInfo, Password, PasswordHash, Session, SessionId,
    SessionInfo, StartedSession,
};
use http::StatusCode;
use http::header::{CACHE_CONTROL, HeaderValue, SET_COOKIE, USER_AGENT};
use http::request::Parts;
use protocol::error::{ApiError, SESSION_ENDED};
use protocol::json_body::JsonBody;
use protocol::time_format::iso_time;
use serde::{Deserialize, Serialize};
use service::auth::{Caller, PresentedCredentials, anonymous_actor};
use service::parameters::IdParameter;
use service::replies::Success;
use service::request_context::{Path, RoutedContext};
use service::state::AppState;
use utoipa::ToSchema;

use crate::handlers::{changing, changing_as};
use crate::management::{AccountView, account_view};

/// Current session and its account, if signed in.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct SessionReply {
    signed_in: bool,
    /// Whether no operator has a password yet; only without a session.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    set_up_needed: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    account: Option<AccountView>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    session: Option<OwnSessionView>,
}

/// Current session.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct OwnSessionView {
    id: String,
    created_at: String,
    /// Expiry time, extended by use of the session.
    expires_at: String,
}

/// Sessions of an account.
#[derive(Serialize, ToSchema)]
pub struct SessionsReply {
    /// Sessions, most recently used first.
    sessions: Vec<SessionView>,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct SessionView {
    id: String,
    /// Whether the session is the current one.
    current: bool,
    created_at: String,
    /// Time of the last request, to the hour.
    last_seen_at: String,
    expires_at: String,
    /// Client IP address at sign-in; empty if unknown.
    address: String,
    /// `User-Agent` of the browser at sign-in.
    agent: String,
}

/// Sign-in credentials.
#[derive(Deserialize, ToSchema)]
#[expect(dead_code, reason = "it is only described: secrets are read one by one")]
pub struct SignInRequest {
    /// Account name.
    name: String,
    #[schema(format = Password)]
    password: String,
}

/// Current and new password.
#[derive(Deserialize, ToSchema)]
#[expect(dead_code, reason = "it is only described: secrets are read one by one")]
pub struct ChangePasswordRequest {
    #[schema(format = Password)]
    current: String,
    /// New password, at least 10 characters and at most 128 bytes.
    #[schema(format = Password, min_length = 10, max_length = 128)]
    new: String,
}

/// Returns the current session.
#[utoipa::path(
    get,
    path = "/-/session",
    operation_id = "showSession",
    tag = "Sessions",
    security((), ("session" = [])),
    responses(
        (status = OK, body = SessionReply),
        (status = FORBIDDEN, description = "`cross_site`."),
        (status = 421, description = "`wrong_host`."),
    )
)]
pub async fn show(State(app): State<AppState>, head: Parts) -> Result<Response, ApiError> {
    match Caller::from_session_cookie(&app, PresentedCredentials::from_request(&head)) {
        Ok(Some(caller)) => {
            let state = app.catalog.sessions().get(&caller.session()?.id);
            let state = state.ok_or_else(ApiError::session_ended)?;
            Ok(Success(signed_in(&app, &state)).into_response())
        }
        Ok(None) => Ok(Success(signed_out_reply(&app)).into_response()),
        Err(error) if error.code() == SESSION_ENDED => {
            Ok(with_cookie(Success(signed_out_reply(&app)), app.session_cookie.clear()))
        }
        Err(error) => Err(error),
    }
}

/// Signs in with a password and sets the session cookie.
#[utoipa::path(
    post,
    path = "/-/session",
    operation_id = "signIn",
    tag = "Sessions",
    security(()),
    request_body = SignInRequest,
    responses(
        (status = OK, body = SessionReply),
        (status = UNAUTHORIZED, description = "`wrong_password`: wrong name or password."),
        (status = FORBIDDEN, description = "`account_suspended`, `cross_site`."),
        (status = 421, description = "`wrong_host`."),
    )
)]
pub async fn sign_in(
    State(app): State<AppState>,
    head: Parts,
    mut body: JsonBody,
) -> Result<Response, ApiError> {
    let name: String = body.require("name")?;
    let presented = Password::parse_presented(&body.require_secret("password")?);
    body.deny_unknown()?;
    let (account, hash) = app.catalog.sessions().find_account(&name).unzip();
    let hash = hash.flatten();
    // For an unknown account the entered name is rate-limited.
    let counted = account.as_ref().map_or(name.trim(), |account| account.name.as_str());
    let device = account.as_ref().and_then(|account| {
        let token = app.device_cookie.read(&head.headers)?;
        app.catalog.tokens().known_device(&token, &account.id)
    });
    let tried = SignIn { name: counted, device: device.as_deref() };
    check_password(&app, &head, tried, hash.clone(), presented).await?;
    let (Some(account), Some(hash)) = (account, hash) else {
        return Err(ApiError::internal("a dummy password hash matched"));
    };
    let before = session_before(&app, &head);
    let visitor = client_info(&head);
    let actor = Actor {
        name: Some(account.name.as_str().to_owned()),
        account: Some(account.id.to_string()),
        ..anonymous_actor(&head)
    };
    let started = changing_as(&app, actor, move |catalog| {
        catalog.sessions().sign_in(&account.id, &hash, visitor, before.as_ref())
    });
    session_response(&app, &started.await?, |reply| Success(reply).into_response())
}

/// Signs out and clears the session cookie.
#[utoipa::path(
    delete,
    path = "/-/session",
    operation_id = "signOut",
    tag = "Sessions",
    security((), ("session" = [])),
    responses(
        (status = NO_CONTENT, description = "Signed out."),
        (status = FORBIDDEN, description = "`cross_site`."),
        (status = 421, description = "`wrong_host`."),
    )
)]
pub async fn sign_out(State(app): State<AppState>, head: Parts) -> Result<Response, ApiError> {
    match Caller::from_session_cookie(&app, PresentedCredentials::from_request(&head)) {
        Ok(Some(caller)) => {
            let id = caller.session()?.id.clone();
            changing(&app, &caller, move |catalog| catalog.sessions().end(&id)).await?;
        }
        Ok(None) => {}
        Err(error) if error.code() == SESSION_ENDED => {}
        Err(error) => return Err(error),
    }
    Ok(with_cookie(no_content(), app.session_cookie.clear()))
}

/// Lists the sessions of the account.
#[utoipa::path(
    get,
    path = "/-/sessions",
    operation_id = "listSessions",
    tag = "Sessions",
    security(("session" = [])),
    responses(
        (status = OK, body = SessionsReply),
        (status = FORBIDDEN, description = "`forbidden`: a session is required, not an API key; \
            `cross_site`."),
        (status = 421, description = "`wrong_host`."),
    )
)]
pub async fn list(
    State(app): State<AppState>,
    caller: Caller,
) -> Result<Success<SessionsReply>, ApiError> {
    let current = caller.session()?;
    let sessions = app.catalog.sessions().of_account(&caller.account().id);
    let sessions = sessions.iter().map(|state| view(state, current)).collect();
    Ok(Success(SessionsReply { sessions }))
}

/// Ends one session of the account; ending the current one signs out.
#[utoipa::path(
    delete,
    path = "/-/sessions/{id}",
    operation_id = "endSession",
    tag = "Sessions",
    security(("session" = [])),
    params(IdParameter),
    responses(
        (status = NO_CONTENT, description = "Session ended."),
        (status = NOT_FOUND, description = "`session_not_found`."),
        (status = FORBIDDEN, description = "`forbidden`: a session is required, not an API key; \
            `cross_site`."),
        (status = 421, description = "`wrong_host`."),
    )
)]
pub async fn end(
    State(app): State<AppState>,
    caller: Caller,
    Path(id): Path<SessionId>,
) -> Result<Response, ApiError> {
    let current = caller.session()?;
    let found = app.catalog.sessions().get(&id);
    let found = found.filter(|state| state.session.account == caller.account().id);
    let id = found.ok_or_else(ApiError::session_not_found)?.session.id.clone();
    let is_current = id == current.id;
    changing(&app, &caller, move |catalog| catalog.sessions().end(&id)).await?;
    if is_current {
        return Ok(with_cookie(no_content(), app.session_cookie.clear()));
    }
    Ok(no_content())
}

/// Ends all sessions of the account, including the current one.
#[utoipa::path(
    delete,
    path = "/-/sessions",
    operation_id = "endSessions",
    tag = "Sessions",
    security(("session" = [])),
    responses(
        (status = NO_CONTENT, description = "Sessions ended."),
        (status = FORBIDDEN, description = "`forbidden`: a session is required, not an API key; \
            `cross_site`."),
        (status = 421, description = "`wrong_host`."),
    )
)]
pub async fn end_all(State(app): State<AppState>, caller: Caller) -> Result<Response, ApiError> {
    let account = caller.session()?.account.clone();
    changing(&app, &caller, move |catalog| catalog.sessions().end_all(&account)).await?;
    Ok(with_cookie(no_content(), app.session_cookie.clear()))
}

/// Changes the password and ends all other sessions.
#[utoipa::path(
    put,
    path = "/-/password",
    operation_id = "changePassword",
    tag = "Sessions",
    security(("session" = [])),
    request_body = ChangePasswordRequest,
    responses(
        (status = NO_CONTENT, description = "Password changed."),
        (status = UNAUTHORIZED, description = "`wrong_password`: the current password is wrong."),
        (status = FORBIDDEN, description = "`forbidden`: a session is required, not an API key; \
            `cross_site`."),
        (status = 421, description = "`wrong_host`."),
    )
)]
pub async fn change_password(
    State(app): State<AppState>,
    caller: Caller,
    head: Parts,
    mut body: JsonBody,
) -> Result<Response, ApiError> {
    let session = caller.session()?.id.clone();
    let current = Password::parse_presented(&body.require_secret("current")?);
    let new = parse_new_password("new", &body.require_secret("new")?)?;
    body.deny_unknown()?;
    let account = caller.account().id.clone();
    let checked = app.catalog.sessions().password_hash(&account);
    // The session counts as a known device.
    let device = format!("session {session}");
    let tried = SignIn { name: caller.account().name.as_str(), device: Some(&device) };
    check_password(&app, &head, tried, checked.clone(), current).await?;
    let hash = hash_new_password(&app, new).await?;
    changing(&app, &caller, move |catalog| {
        catalog.sessions().set_password(&account, checked.as_ref(), hash, Some(&session))
    })
    .await?;
    Ok(no_content())
}

/// Validates a new password, with the name of its field in the error.
pub(super) fn parse_new_password(field: &'static str, text: &str) -> Result<Password, ApiError> {
    Password::new_checked(text).map_err(|error| match error {
        CatalogError::InvalidRequest(rule) => {
            CatalogError::InvalidSetting { setting: field, rule }.into()
        }
        other => other.into(),
    })
}

/// Hashes a new password for storage.
pub(super) async fn hash_new_password(
    app: &AppState,
    password: Password,
) -> Result<PasswordHash, ApiError> {
    let hashed = app.passwords.hash(password, app.rng.clone()).await;
    Ok(hashed.map_err(|_| ApiError::overloaded(1))??)
}

/// Returns the client data that a session records.
pub(super) fn client_info(head: &Parts) -> ClientInfo {
    let agent = head.headers.get(USER_AGENT).map(HeaderValue::as_bytes).unwrap_or_default();
    ClientInfo::new(RoutedContext::client_ip(&head.extensions), &String::from_utf8_lossy(agent))
}

/// Returns the response that starts a new session, with its cookies.
pub(super) fn session_response(
    app: &AppState,
    started: &StartedSession,
    answer: impl FnOnce(SessionReply) -> Response,
) -> Result<Response, ApiError> {
    let state =
        app.catalog.sessions().get(&started.session.id).ok_or_else(ApiError::session_ended)?;
    let cookie = app.session_cookie.set(&started.secret);
    let mut response = with_cookie(answer(signed_in(app, &state)), cookie);
    let device = app.catalog.tokens().device_token(&started.session.account, app.rng.uuid());
    if let Some(device) = device {
        response.headers_mut().append(SET_COOKIE, app.device_cookie.set(&device));
    }
    Ok(response)
}

/// Sign-in attempt, as the rate limits count it.
struct SignIn<'a> {
    name: &'a str,
    /// Id of a known device of the account.
    device: Option<&'a str>,
}

async fn check_password(
    app: &AppState,
    head: &Parts,
    SignIn { name, device }: SignIn<'_>,
    hash: Option<Arc<PasswordHash>>,
    presented: Option<Password>,
) -> Result<(), ApiError> {
    let limiter = &app.rate_limiter;
    let tried =
        limiter.charge_login_attempt(RoutedContext::client_ip(&head.extensions), name, device)?;
    match app.passwords.check(hash, presented).await {
        Ok(false) => {
            record_failed_sign_in(app, head, name).await;
            Err(ApiError::wrong_password())
        }
        Ok(true) => {
            limiter.refund_login_attempt(tried);
            Ok(())
        }
        Err(_) => {
            limiter.refund_login_attempt(tried);
            Err(ApiError::overloaded(1))
        }
    }
}

/// Records a rejected sign-in, with the name only if the account exists: the entered text may be a password.
async fn record_failed_sign_in(app: &AppState, head: &Parts, name: &str) {
    let account = app.catalog.sessions().find_account(name).map(|(account, _)| account);
    let name = account.as_ref().map(|account| account.name.as_str().to_owned());
    let actor = Actor { name, ..anonymous_actor(head) };
    let note = move |catalog: &Catalog| {
        catalog.audit().record_failed_sign_in(account.as_ref().map(|account| &account.id))
    };
    if let Err(error) = changing_as(app, actor, note).await {
        tracing::warn!(%error, "failed to audit a rejected sign-in");
    }
}

/// Returns the current session of the browser, which ends when a new one replaces its cookie.
fn session_before(app: &AppState, head: &Parts) -> Option<SessionId> {
    let caller =
        Caller::from_session_cookie(app, PresentedCredentials::from_request(head)).ok()??;
    caller.session().ok().map(|session| session.id.clone())
}

fn signed_in(app: &AppState, state: &SessionInfo) -> SessionReply {
    let account = app.catalog.accounts().get(&state.session.account);
    SessionReply {
        signed_in: true,
        set_up_needed: None,
        account: account.map(|account| account_view(&app.catalog, &account)),
        session: Some(OwnSessionView {
            id: state.session.id.to_string(),
            created_at: iso_time(state.session.created_ms),
            expires_at: iso_time(state.ends_ms),
        }),
    }
}

fn signed_out_reply(app: &AppState) -> SessionReply {
    let set_up_needed = Some(app.catalog.needs_set_up());
    SessionReply { signed_in: false, set_up_needed, account: None, session: None }
}

fn view(state: &SessionInfo, current: &Session) -> SessionView {
    let Session { id, created_ms, visitor, .. } = &*state.session;
    SessionView {
        id: id.to_string(),
        current: *id == current.id,
        created_at: iso_time(*created_ms),
        last_seen_at: iso_time(state.last_seen_ms),
        expires_at: iso_time(state.ends_ms),
        address: visitor.address.clone(),
        agent: visitor.agent.clone(),
    }
}

fn no_content() -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::NO_CONTENT;
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

fn with_cookie(answer: impl IntoResponse, cookie: HeaderValue) -> Response {
    let mut response = answer.into_response();
    response.headers_mut().insert(SET_COOKIE, cookie);
    response
}
