//! `/api/account`: the caller's own account.
//!
//! Guarantees: a caller cannot change its own plan, standing, role or quota.

use axum::extract::State;
use catalog::AccountChange;
use protocol::error::ApiError;
use protocol::json_body::JsonBody;
use serde::{Deserialize, Serialize};
use service::auth::Caller;
use service::replies::Success;
use service::state::AppState;
use utoipa::ToSchema;

use crate::handlers::changing;
use crate::management::{AccountSettings, AccountView, account_change, account_view};

/// Account.
#[derive(Serialize, ToSchema)]
pub struct AccountReply {
    pub(super) account: AccountView,
}

/// Settings of the caller's account.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct OwnAccountSettings {
    #[schema(
        max_length = 100,
        pattern = r"^[^\u0000-\u001f\u007f-\u009f]*[^\s\u0000-\u001f\u007f-\u009f][^\u0000-\u001f\u007f-\u009f]*$"
    )]
    name: Option<String>,
}

/// Returns the caller's account.
#[utoipa::path(
    get,
    path = "/api/account",
    operation_id = "showOwnAccount",
    tag = "Accounts",
    responses((status = OK, body = AccountReply))
)]
pub async fn show(
    State(app): State<AppState>,
    caller: Caller,
) -> Result<Success<AccountReply>, ApiError> {
    caller.require_unrestricted()?;
    // Current state; the caller's copy is from the start of the request.
    let account = app.catalog.accounts().get(&caller.account().id);
    let account = account_view(&app.catalog, &*account.ok_or_else(ApiError::account_not_found)?);
    Ok(Success(AccountReply { account }))
}

/// Renames the caller's account.
#[utoipa::path(
    patch,
    path = "/api/account",
    operation_id = "editOwnAccount",
    tag = "Accounts",
    request_body = OwnAccountSettings,
    responses(
        (status = OK, body = AccountReply),
        (status = CONFLICT, description = "`already_exists`: the name is in use."),
    )
)]
pub async fn edit(
    State(app): State<AppState>,
    caller: Caller,
    body: JsonBody,
) -> Result<Success<AccountReply>, ApiError> {
    caller.require_unrestricted()?;
    let OwnAccountSettings { name } = body.deserialize()?;
    let AccountChange { name, .. } =
        account_change(AccountSettings { name, ..AccountSettings::default() })?;
    let (id, change) =
        (caller.account().id.clone(), AccountChange { name, ..AccountChange::default() });
    let account =
        changing(&app, &caller, move |catalog| catalog.accounts().edit(&id, change)).await?;
    Ok(Success(AccountReply { account: account_view(&app.catalog, &account) }))
}
