//! `/api/account`: the caller's own account.
//!
//! Promises: nobody gives themselves a plan, a standing, a role or a quota.

use axum::extract::State;
use serde::Serialize;

use crate::auth::Caller;
use crate::catalog::AccountChange;
use crate::error::ApiError;
use crate::handlers::with_catalog;
use crate::json_body::JsonBody;
use crate::management::{AccountSettings, AccountView, account_change, account_view};
use crate::replies::Json;
use crate::state::AppState;

/// One account.
#[derive(Serialize)]
pub struct AccountReply {
    pub(super) success: bool,
    pub(super) account: AccountView,
}

/// `GET /api/account`.
pub async fn show(
    State(app): State<AppState>,
    caller: Caller,
) -> Result<Json<AccountReply>, ApiError> {
    caller.check_whole_reach()?;
    // As it is now; the caller's is as it was when the request came.
    let account = app.catalog.account(&caller.account().id);
    let account = account_view(&app.catalog, &*account.ok_or_else(ApiError::account_not_found)?);
    Ok(Json(AccountReply { success: true, account }))
}

/// `PATCH /api/account`: its name, and nothing else.
pub async fn edit(
    State(app): State<AppState>,
    caller: Caller,
    mut body: JsonBody,
) -> Result<Json<AccountReply>, ApiError> {
    caller.check_whole_reach()?;
    let name = body.take::<String>("name")?;
    body.finish()?;
    let AccountChange { name, .. } =
        account_change(AccountSettings { name, ..AccountSettings::default() })?;
    let (id, change) =
        (caller.account().id.clone(), AccountChange { name, ..AccountChange::default() });
    let account = with_catalog(&app, move |catalog| catalog.edit_account(&id, change)).await?;
    Ok(Json(AccountReply { success: true, account: account_view(&app.catalog, &account) }))
}
