//! `/api/accounts`: account management by the operator.

use axum::extract::State;
use catalog::{Account, AccountId, NewAccount};
use jobs::fair_use;
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

use super::account::AccountReply;
use crate::handlers::changing;
use crate::management::{
    AccountSettings, AccountView, NewAccountSettings, SweepReportView, account_change,
    account_view, swept_view,
};

/// Description of the operation for authorization errors.
const MANAGES: &str = "manages accounts";

/// Page of accounts.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct AccountsReply {
    accounts: Vec<AccountView>,
    #[schema(required)]
    next_cursor: Option<String>,
}

/// Lists accounts; `q` filters by name or id. Operators only.
#[utoipa::path(
    get,
    path = "/api/accounts",
    operation_id = "listAccounts",
    tag = "Accounts",
    params(PageParameters, NameFilterParameter),
    responses((status = OK, body = AccountsReply))
)]
pub async fn list(
    State(app): State<AppState>,
    caller: Caller,
    query: Query,
) -> Result<Success<AccountsReply>, ApiError> {
    caller.require_operator(MANAGES)?;
    let (page, called) = (PageRequest::from_query(&query)?, NameFilter::from_query(&query)?);
    let accounts = app.catalog.accounts().all().into_iter();
    let meant = accounts.filter(|it| called.matches(it.id.as_str(), [it.name.as_str()]));
    let (page, next_cursor) = page.paginate(meant, |account| account.id.as_str());
    let accounts = page.iter().map(|account| account_view(&app.catalog, account)).collect();
    Ok(Success(AccountsReply { accounts, next_cursor }))
}

/// Creates an account. Operators only.
#[utoipa::path(
    post,
    path = "/api/accounts",
    operation_id = "createAccount",
    tag = "Accounts",
    request_body = NewAccountSettings,
    responses(
        (status = OK, body = AccountReply),
        (status = CONFLICT, description = "`already_exists`: the name is in use."),
    )
)]
pub async fn create(
    State(app): State<AppState>,
    caller: Caller,
    body: JsonBody,
) -> Result<Success<AccountReply>, ApiError> {
    caller.require_operator(MANAGES)?;
    let mut settings = account_change(body.deserialize::<AccountSettings>()?)?;
    let name = settings.name.take();
    let name = name.ok_or_else(|| ApiError::bad_parameter("name", "is required"))?;
    let new = NewAccount { name, settings };
    reply(&app, &*changing(&app, &caller, move |catalog| catalog.accounts().create(new)).await?)
}

/// Returns an account. Operators only.
#[utoipa::path(
    get,
    path = "/api/accounts/{id}",
    operation_id = "showAccount",
    tag = "Accounts",
    params(IdParameter),
    responses((status = OK, body = AccountReply))
)]
pub async fn show(
    State(app): State<AppState>,
    caller: Caller,
    Path(id): Path<AccountId>,
) -> Result<Success<AccountReply>, ApiError> {
    caller.require_operator(MANAGES)?;
    let account = app.catalog.accounts().get(&id);
    reply(&app, &*account.ok_or_else(ApiError::account_not_found)?)
}

/// Updates the given settings of an account. Operators only.
#[utoipa::path(
    patch,
    path = "/api/accounts/{id}",
    operation_id = "editAccount",
    tag = "Accounts",
    params(IdParameter),
    request_body = AccountSettings,
    responses(
        (status = OK, body = AccountReply),
        (status = CONFLICT, description = "`already_exists`: the name is in use."),
    )
)]
pub async fn edit(
    State(app): State<AppState>,
    caller: Caller,
    Path(id): Path<AccountId>,
    body: JsonBody,
) -> Result<Success<AccountReply>, ApiError> {
    caller.require_operator(MANAGES)?;
    app.catalog.accounts().get(&id).ok_or_else(ApiError::account_not_found)?;
    let change = account_change(body.deserialize::<AccountSettings>()?)?;
    reply(
        &app,
        &*changing(&app, &caller, move |catalog| catalog.accounts().edit(&id, change)).await?,
    )
}

/// Runs the fair-use sweep. Operators only.
#[utoipa::path(
    post,
    path = "/api/accounts/sweep",
    operation_id = "sweepAccounts",
    tag = "Accounts",
    responses((status = OK, body = SweepReportView))
)]
pub async fn sweep(
    State(app): State<AppState>,
    caller: Caller,
) -> Result<Success<SweepReportView>, ApiError> {
    caller.require_operator(MANAGES)?;
    let swept = changing(&app, &caller, fair_use::sweep).await?;
    Ok(Success(swept_view(swept)))
}

fn reply(app: &AppState, account: &Account) -> Result<Success<AccountReply>, ApiError> {
    Ok(Success(AccountReply { account: account_view(&app.catalog, account) }))
}
