//! `/api/organisations`: organisations, and who belongs to them.
//!
//! Promises: an organisation that the caller does not belong to is answered like one that does not exist; so is an
//! account.

use std::sync::Arc;

use axum::extract::State;
use http::Uri;
use serde::Serialize;

use crate::auth::Caller;
use crate::catalog::{
    AccountId, Catalog, CatalogError, MemberRole, Organisation, OrganisationName,
};
use crate::error::ApiError;
use crate::handlers::with_catalog;
use crate::json_body::JsonBody;
use crate::management::{MemberView, OrganisationDeletedView, OrganisationView, organisation_view};
use crate::paging::Page;
use crate::query::Query;
use crate::replies::Json;
use crate::state::AppState;
use crate::target::last_component;

/// One organisation.
#[derive(Serialize)]
pub struct OrganisationReply {
    success: bool,
    organisation: OrganisationView,
}

/// A page of organisations.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct OrganisationsReply {
    success: bool,
    organisations: Vec<OrganisationView>,
    next_cursor: Option<String>,
}

/// Who belongs to an organisation.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct MembersReply {
    success: bool,
    members: Vec<MemberView>,
}

/// An organisation that is gone.
#[derive(Serialize)]
pub struct OrganisationDeletedReply {
    success: bool,
    message: String,
    #[serde(flatten)]
    deleted: OrganisationDeletedView,
}

/// `GET /api/organisations`: those that the account belongs to, by id.
pub async fn list(
    State(app): State<AppState>,
    caller: Caller,
    query: Query,
) -> Result<Json<OrganisationsReply>, ApiError> {
    caller.check_whole_reach()?;
    let page = Page::of(&query)?;
    let own = &caller.account().id;
    let organisations = app.catalog.organisations().into_iter();
    let of_caller = organisations.filter(|organisation| organisation.members.contains_key(own));
    let (page, next_cursor) = page.cut(of_caller, |organisation| organisation.id.as_str());
    let organisations = page.iter().map(|it| organisation_view(&app.catalog, it)).collect();
    Ok(Json(OrganisationsReply { success: true, organisations, next_cursor }))
}

/// `POST /api/organisations`: makes one that the account owns.
pub async fn create(
    State(app): State<AppState>,
    caller: Caller,
    body: JsonBody,
) -> Result<Json<OrganisationReply>, ApiError> {
    caller.check_whole_reach()?;
    let (name, owner) = (name_in(body)?, caller.account().id.clone());
    reply(&app, move |catalog| catalog.create_organisation(name, &owner)).await
}

/// `GET /api/organisations/{id}`.
pub async fn show(
    State(app): State<AppState>,
    caller: Caller,
    uri: Uri,
) -> Result<Json<OrganisationReply>, ApiError> {
    let id = last_component(uri.path())?;
    let organisation = caller.organisation(&app.catalog, &id, MemberRole::Viewer)?;
    let organisation = organisation_view(&app.catalog, &organisation);
    Ok(Json(OrganisationReply { success: true, organisation }))
}

/// `PATCH /api/organisations/{id}`: gives it another name.
pub async fn edit(
    State(app): State<AppState>,
    caller: Caller,
    uri: Uri,
    body: JsonBody,
) -> Result<Json<OrganisationReply>, ApiError> {
    let id = last_component(uri.path())?;
    let id = caller.organisation(&app.catalog, &id, MemberRole::Owner)?.id.clone();
    let name = name_in(body)?;
    reply(&app, move |catalog| catalog.rename_organisation(&id, name)).await
}

/// `DELETE /api/organisations/{id}`: one without buckets.
pub async fn delete(
    State(app): State<AppState>,
    caller: Caller,
    uri: Uri,
) -> Result<Json<OrganisationDeletedReply>, ApiError> {
    let id = last_component(uri.path())?;
    let id = caller.organisation(&app.catalog, &id, MemberRole::Owner)?.id.clone();
    let deleted = OrganisationDeletedView { id: id.to_string() };
    with_catalog(&app, move |catalog| catalog.delete_organisation(&id)).await?;
    let message = format!("Deleted {}", deleted.id);
    Ok(Json(OrganisationDeletedReply { success: true, message, deleted }))
}

/// `GET /api/organisations/{id}/members`.
pub async fn members(
    State(app): State<AppState>,
    caller: Caller,
    uri: Uri,
) -> Result<Json<MembersReply>, ApiError> {
    let organisation = caller.organisation(&app.catalog, &id_above(&uri)?, MemberRole::Viewer)?;
    let members = organisation_view(&app.catalog, &organisation).members;
    Ok(Json(MembersReply { success: true, members }))
}

/// `POST /api/organisations/{id}/members`: an account becomes a member, or gets another role.
pub async fn set_member(
    State(app): State<AppState>,
    caller: Caller,
    uri: Uri,
    mut body: JsonBody,
) -> Result<Json<MembersReply>, ApiError> {
    let organisation = caller.organisation(&app.catalog, &id_above(&uri)?, MemberRole::Owner)?;
    let account: String = body.require("account")?;
    let role: MemberRole = body.require("role")?;
    body.finish()?;
    // By id alone: names could be tried until one is known.
    let account = AccountId::parse(&account).filter(|id| app.catalog.account(id).is_some());
    let account = account.ok_or_else(ApiError::account_not_found)?;
    let id = organisation.id.clone();
    members_reply(&app, move |catalog| catalog.set_member(&id, &account, role)).await
}

/// `DELETE /api/organisations/{id}/members?account=`: an owner takes a member out, or a member leaves.
pub async fn remove_member(
    State(app): State<AppState>,
    caller: Caller,
    uri: Uri,
    query: Query,
) -> Result<Json<MembersReply>, ApiError> {
    let account = query.text(&["account"])?;
    let account = account.ok_or_else(|| ApiError::bad_parameter("account", "is required"))?;
    let leaves = account == caller.account().id.as_str();
    let least = if leaves { MemberRole::Viewer } else { MemberRole::Owner };
    let organisation = caller.organisation(&app.catalog, &id_above(&uri)?, least)?;
    let member = AccountId::parse(&account).filter(|id| organisation.members.contains_key(id));
    let member = member.ok_or_else(ApiError::account_not_found)?;
    let id = organisation.id.clone();
    members_reply(&app, move |catalog| catalog.remove_member(&id, &member)).await
}

async fn reply(
    app: &AppState,
    work: impl FnOnce(&Catalog) -> Result<Arc<Organisation>, CatalogError> + Send + 'static,
) -> Result<Json<OrganisationReply>, ApiError> {
    let organisation = with_catalog(app, work).await?;
    let organisation = organisation_view(&app.catalog, &organisation);
    Ok(Json(OrganisationReply { success: true, organisation }))
}

async fn members_reply(
    app: &AppState,
    work: impl FnOnce(&Catalog) -> Result<Arc<Organisation>, CatalogError> + Send + 'static,
) -> Result<Json<MembersReply>, ApiError> {
    let organisation = with_catalog(app, work).await?;
    let members = organisation_view(&app.catalog, &organisation).members;
    Ok(Json(MembersReply { success: true, members }))
}

fn name_in(mut body: JsonBody) -> Result<OrganisationName, ApiError> {
    let name: String = body.require("name")?;
    body.finish()?;
    OrganisationName::parse(&name)
        .map_err(|error| ApiError::bad_parameter("name", &format!("is refused: {error}")))
}

/// The id in `/api/organisations/{id}/members`.
fn id_above(uri: &Uri) -> Result<String, ApiError> {
    last_component(uri.path().rsplit_once('/').map_or("", |(above, _)| above))
}
