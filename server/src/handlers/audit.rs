//! `GET /api/audit` and `/api/audit/files`: audit logs, newest first.
//!
//! Guarantees: an operator sees all entries; other callers see their own changes, and changes of their accounts, keys
//! and buckets, and of the organisations that they administer. Non-goals: content of the entries.

use axum::extract::State;
use catalog::{AccountId, AuditEntry, Catalog, MemberRole, OrganisationId, Role, Scope};
use protocol::error::ApiError;
use protocol::query::Query;
use service::auth::Caller;
use service::replies::Success;
use service::state::AppState;

use crate::handlers::with_catalog;
use crate::limits::{AUDIT_PAGE_DEFAULT, AUDIT_PAGE_MAX};
use crate::management::{AuditLog, AuditQuery, AuditView, AuditVisibility, audit};

/// Lists audit log entries, newest first.
#[utoipa::path(
    get,
    path = "/api/audit",
    operation_id = "showAudit",
    tag = "Accounts",
    params(
        ("bucketName" = Option<String>, Query, description = "Only entries about this bucket."),
        ("action" = Option<String>, Query, description = "Only actions with this prefix, such as \
            `bucket.`."),
        ("actor" = Option<String>, Query, description = "Only actions of this key, session or account, given by id, \
            or by name of the key or account."),
        ("before" = Option<String>, Query, description = "`nextCursor` of the previous page."),
        ("limit" = Option<u64>, Query, description = "Entries per page, 1 to 500; default 100.", minimum = 1, maximum = 500),
    ),
    responses((status = OK, body = AuditView))
)]
pub async fn show(
    State(app): State<AppState>,
    caller: Caller,
    query: Query,
) -> Result<Success<AuditView>, ApiError> {
    show_log(&app, caller, AuditQuery::default(), &query).await
}

/// Lists uploads, copies and deletions of files, newest first.
#[utoipa::path(
    get,
    path = "/api/audit/files",
    operation_id = "showFileAudit",
    tag = "Accounts",
    params(
        ("bucketName" = Option<String>, Query, description = "Only files of this bucket."),
        ("path" = Option<String>, Query, description = "Only this file, or the files below this folder if it ends \
            with `/`."),
        ("name" = Option<String>, Query, description = "Only files whose path contains this text, regardless of case."),
        ("action" = Option<String>, Query, description = "Only actions with this prefix: `file.upload`, `file.copy`, \
            `file.delete` or `file.expire`."),
        ("actor" = Option<String>, Query, description = "Only actions of this key, session or account, given by id, \
            or by name of the key or account."),
        ("before" = Option<String>, Query, description = "`nextCursor` of the previous page."),
        ("limit" = Option<u64>, Query, description = "Entries per page, 1 to 500; default 100.", minimum = 1, maximum = 500),
    ),
    responses((status = OK, body = AuditView))
)]
pub async fn show_files(
    State(app): State<AppState>,
    caller: Caller,
    query: Query,
) -> Result<Success<AuditView>, ApiError> {
    let (path, name) = (query.string(&["path"])?, query.string(&["name"])?);
    let asked = AuditQuery { log: AuditLog::Files, path, name, ..AuditQuery::default() };
    show_log(&app, caller, asked, &query).await
}

/// Lists the entries of a log, with the filters that both logs have.
async fn show_log(
    app: &AppState,
    caller: Caller,
    asked: AuditQuery,
    query: &Query,
) -> Result<Success<AuditView>, ApiError> {
    caller.require_scope(Scope::Manage)?;
    caller.require_prefix_access("")?;
    let limit = match query.number(&["limit"])? {
        None => AUDIT_PAGE_DEFAULT as u64,
        Some(limit) if (1..=AUDIT_PAGE_MAX as u64).contains(&limit) => limit,
        Some(_) => {
            let must = format!("must be a number from 1 to {AUDIT_PAGE_MAX}");
            return Err(ApiError::bad_parameter("limit", &must));
        }
    };
    let asked = AuditQuery {
        bucket: query.string(&["bucketName"])?,
        action: query.string(&["action"])?,
        actor: query.string(&["actor"])?,
        before: query.string(&["before"])?,
        limit,
        ..asked
    };
    let find = move |catalog: &Catalog| {
        audit(catalog, &asked, |entry| visibility(catalog, &caller, entry))
    };
    Ok(Success(with_catalog(app, find).await?))
}

fn visibility(catalog: &Catalog, caller: &Caller, entry: &AuditEntry) -> AuditVisibility {
    let bucket = caller.limits().bucket.as_ref().map(|bucket| bucket.as_str());
    if bucket.is_some() && entry.bucket.as_deref() != bucket {
        return AuditVisibility::Nothing;
    }
    let id = &caller.account().id;
    if caller.account().role == Role::Operator
        || entry.actor.account.as_deref() == Some(id.as_str())
    {
        return AuditVisibility::All;
    }
    if !concerns(catalog, id, entry) {
        return AuditVisibility::Nothing;
    }
    // The addresses of operators are not disclosed.
    let actor = entry.actor.account.as_deref().and_then(AccountId::parse);
    let actor = actor.and_then(|actor| catalog.accounts().get(&actor));
    match actor.is_some_and(|actor| actor.role == Role::Operator) {
        true => AuditVisibility::WithoutOrigin,
        false => AuditVisibility::All,
    }
}

/// Returns whether an entry concerns an account, its keys or buckets, or an organisation that it currently administers.
fn concerns(catalog: &Catalog, account: &AccountId, entry: &AuditEntry) -> bool {
    let organisation = entry.organisation.as_deref().and_then(OrganisationId::parse);
    let organisation = organisation.and_then(|id| catalog.organisations().get(&id));
    let role = organisation.and_then(|it| it.members.get(account).copied());
    entry.accounts.iter().any(|concerned| concerned == account.as_str())
        || role.is_some_and(|role| role >= MemberRole::Admin)
}
