//! `/api/accounts`: what the operator does with accounts.

use axum::extract::State;
use http::Uri;
use serde::Serialize;

use super::account::AccountReply;
use crate::auth::Caller;
use crate::catalog::{Account, AccountId, NewAccount};
use crate::error::ApiError;
use crate::fair_use;
use crate::handlers::with_catalog;
use crate::json_body::JsonBody;
use crate::management::{
    AccountSettings, AccountView, SweptView, account_change, account_view, swept_view,
};
use crate::paging::Page;
use crate::query::Query;
use crate::replies::Json;
use crate::state::AppState;
use crate::target::last_component;

/// A page of accounts.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AccountsReply {
    success: bool,
    accounts: Vec<AccountView>,
    next_cursor: Option<String>,
}

/// What a sweep did.
#[derive(Serialize)]
pub struct SweptReply {
    success: bool,
    #[serde(flatten)]
    swept: SweptView,
}

/// `GET /api/accounts`: all, by id.
pub async fn list(
    State(app): State<AppState>,
    caller: Caller,
    query: Query,
) -> Result<Json<AccountsReply>, ApiError> {
    caller.check_operator()?;
    let page = Page::of(&query)?;
    let (page, next_cursor) = page.cut(app.catalog.accounts(), |account| account.id.as_str());
    let accounts = page.iter().map(|account| account_view(&app.catalog, account)).collect();
    Ok(Json(AccountsReply { success: true, accounts, next_cursor }))
}

/// `POST /api/accounts`.
pub async fn create(
    State(app): State<AppState>,
    caller: Caller,
    body: JsonBody,
) -> Result<Json<AccountReply>, ApiError> {
    caller.check_operator()?;
    let mut settings = account_change(body.settings::<AccountSettings>()?)?;
    let name = settings.name.take();
    let name = name.ok_or_else(|| ApiError::bad_parameter("name", "is required"))?;
    let new = NewAccount { name, settings };
    reply(&app, &*with_catalog(&app, move |catalog| catalog.create_account(new)).await?)
}

/// `GET /api/accounts/{id}`.
pub async fn show(
    State(app): State<AppState>,
    caller: Caller,
    uri: Uri,
) -> Result<Json<AccountReply>, ApiError> {
    caller.check_operator()?;
    let account = app.catalog.account(&id_in(&uri)?);
    reply(&app, &*account.ok_or_else(ApiError::account_not_found)?)
}

/// `PATCH /api/accounts/{id}`: changes what is named.
pub async fn edit(
    State(app): State<AppState>,
    caller: Caller,
    uri: Uri,
    body: JsonBody,
) -> Result<Json<AccountReply>, ApiError> {
    caller.check_operator()?;
    let id = id_in(&uri)?;
    app.catalog.account(&id).ok_or_else(ApiError::account_not_found)?;
    let change = account_change(body.settings::<AccountSettings>()?)?;
    reply(&app, &*with_catalog(&app, move |catalog| catalog.edit_account(&id, change)).await?)
}

/// `POST /api/accounts/sweep`: moves accounts that break fair use one step on.
pub async fn sweep(
    State(app): State<AppState>,
    caller: Caller,
) -> Result<Json<SweptReply>, ApiError> {
    caller.check_operator()?;
    let store = app.store.clone();
    let swept = with_catalog(&app, move |catalog| fair_use::sweep(&store, catalog)).await?;
    Ok(Json(SweptReply { success: true, swept: swept_view(swept) }))
}

fn reply(app: &AppState, account: &Account) -> Result<Json<AccountReply>, ApiError> {
    Ok(Json(AccountReply { success: true, account: account_view(&app.catalog, account) }))
}

fn id_in(uri: &Uri) -> Result<AccountId, ApiError> {
    AccountId::parse(&last_component(uri.path())?).ok_or_else(ApiError::account_not_found)
}
