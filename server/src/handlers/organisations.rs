//! `/api/organisations`: organisations and their members.
//!
//! Guarantees: an organisation that the caller does not belong to gives the same response as one that does not exist;
//! so does an account.

use std::sync::Arc;

use axum::extract::State;
use catalog::{
    AccountId, Catalog, CatalogError, MemberRole, Organisation, OrganisationId, OrganisationName,
};
use protocol::error::ApiError;
use protocol::json_body::JsonBody;
use protocol::name_filter::NameFilter;
use protocol::paging::PageRequest;
use protocol::query::Query;
use serde::{Deserialize, Serialize};
use service::auth::Caller;
use service::parameters::{IdParameter, NameFilterParameter, PageParameters};
use service::replies::Success;
use service::request_context::Path;
use service::state::AppState;
use utoipa::ToSchema;

use crate::handlers::changing;
use crate::management::{
    InvitedMemberView, MemberView, MembershipInvitationView, OrganisationDeletedView,
    OrganisationView, organisation_view,
};

/// Organisation.
#[derive(Serialize, ToSchema)]
pub struct OrganisationReply {
    organisation: OrganisationView,
}

/// Page of organisations.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct OrganisationsReply {
    organisations: Vec<OrganisationView>,
    /// All pending invitations of the account.
    invitations: Vec<MembershipInvitationView>,
    #[schema(required)]
    next_cursor: Option<String>,
}

/// Members and invited accounts of an organisation.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct MembersReply {
    members: Vec<MemberView>,
    invited: Vec<InvitedMemberView>,
}

/// Deleted organisation.
#[derive(Serialize, ToSchema)]
pub struct OrganisationDeletedReply {
    message: String,
    #[serde(flatten)]
    deleted: OrganisationDeletedView,
}

/// Response to a declined invitation.
#[derive(Serialize, ToSchema)]
pub struct OrganisationDeclinedReply {}

/// Organisation settings.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct OrganisationSettings {
    #[schema(
        max_length = 200,
        pattern = r"^[^\u0000-\u001f\u007f-\u009f]*[^\s\u0000-\u001f\u007f-\u009f][^\u0000-\u001f\u007f-\u009f]*$"
    )]
    name: String,
}

/// Request to invite an account, or to change the role of a member.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct MemberSettings {
    account: String,
    role: MemberRole,
}

/// Lists the account's organisations; `q` filters by name or id.
#[utoipa::path(
    get,
    path = "/api/organisations",
    operation_id = "listOrganisations",
    tag = "Organisations",
    params(PageParameters, NameFilterParameter),
    responses((status = OK, body = OrganisationsReply))
)]
pub async fn list(
    State(app): State<AppState>,
    caller: Caller,
    query: Query,
) -> Result<Success<OrganisationsReply>, ApiError> {
    caller.require_unrestricted()?;
    let (page, called) = (PageRequest::from_query(&query)?, NameFilter::from_query(&query)?);
    let own = &caller.account().id;
    let organisations = app.catalog.organisations().all().into_iter();
    let of_caller = organisations.filter(|organisation| organisation.members.contains_key(own));
    let meant = of_caller.filter(|it| called.matches(it.id.as_str(), [it.name.as_str()]));
    let (page, next_cursor) = page.paginate(meant, |organisation| organisation.id.as_str());
    let organisations = page.iter().map(|it| organisation_view(&app.catalog, it)).collect();
    let invitations = app.catalog.organisations().invitations_of(own);
    let invitations = invitations.iter().filter_map(|it| {
        let (id, name) = (it.id.to_string(), it.name.as_str().to_owned());
        Some(MembershipInvitationView { id, name, role: *it.invited.get(own)? })
    });
    let invitations = invitations.collect();
    Ok(Success(OrganisationsReply { organisations, invitations, next_cursor }))
}

/// Creates an organisation owned by the account.
#[utoipa::path(
    post,
    path = "/api/organisations",
    operation_id = "createOrganisation",
    tag = "Organisations",
    request_body = OrganisationSettings,
    responses((status = OK, body = OrganisationReply))
)]
pub async fn create(
    State(app): State<AppState>,
    caller: Caller,
    body: JsonBody,
) -> Result<Success<OrganisationReply>, ApiError> {
    caller.require_unrestricted()?;
    let (name, owner) = (name_in(body)?, caller.account().id.clone());
    reply(&app, &caller, move |catalog| catalog.organisations().create(name, &owner)).await
}

/// Returns an organisation.
#[utoipa::path(
    get,
    path = "/api/organisations/{id}",
    operation_id = "showOrganisation",
    tag = "Organisations",
    params(IdParameter),
    responses((status = OK, body = OrganisationReply))
)]
pub async fn show(
    State(app): State<AppState>,
    caller: Caller,
    Path(id): Path<OrganisationId>,
) -> Result<Success<OrganisationReply>, ApiError> {
    let organisation = caller.organisation(&app.catalog, &id, MemberRole::Viewer)?;
    let organisation = organisation_view(&app.catalog, &organisation);
    Ok(Success(OrganisationReply { organisation }))
}

/// Renames an organisation.
#[utoipa::path(
    patch,
    path = "/api/organisations/{id}",
    operation_id = "renameOrganisation",
    tag = "Organisations",
    params(IdParameter),
    request_body = OrganisationSettings,
    responses((status = OK, body = OrganisationReply))
)]
pub async fn edit(
    State(app): State<AppState>,
    caller: Caller,
    Path(id): Path<OrganisationId>,
    body: JsonBody,
) -> Result<Success<OrganisationReply>, ApiError> {
    let id = caller.organisation(&app.catalog, &id, MemberRole::Owner)?.id.clone();
    let name = name_in(body)?;
    reply(&app, &caller, move |catalog| catalog.organisations().rename(&id, name)).await
}

/// Deletes an organisation that owns no buckets.
#[utoipa::path(
    delete,
    path = "/api/organisations/{id}",
    operation_id = "deleteOrganisation",
    tag = "Organisations",
    params(IdParameter),
    responses(
        (status = OK, body = OrganisationDeletedReply),
        (status = CONFLICT, description = "`organisation_not_empty`: the organisation owns buckets."),
    )
)]
pub async fn delete(
    State(app): State<AppState>,
    caller: Caller,
    Path(id): Path<OrganisationId>,
) -> Result<Success<OrganisationDeletedReply>, ApiError> {
    let id = caller.organisation(&app.catalog, &id, MemberRole::Owner)?.id.clone();
    let deleted = OrganisationDeletedView { id: id.to_string() };
    changing(&app, &caller, move |catalog| catalog.organisations().delete(&id)).await?;
    let message = format!("Deleted {}", deleted.id);
    Ok(Success(OrganisationDeletedReply { message, deleted }))
}

/// Lists the members of an organisation.
#[utoipa::path(
    get,
    path = "/api/organisations/{id}/members",
    operation_id = "listMembers",
    tag = "Organisations",
    params(IdParameter),
    responses((status = OK, body = MembersReply))
)]
pub async fn members(
    State(app): State<AppState>,
    caller: Caller,
    Path(id): Path<OrganisationId>,
) -> Result<Success<MembersReply>, ApiError> {
    let organisation = caller.organisation(&app.catalog, &id, MemberRole::Viewer)?;
    Ok(members_of(&app, &organisation))
}

/// Invites an account to an organisation, or changes the role of a member.
#[utoipa::path(
    post,
    path = "/api/organisations/{id}/members",
    operation_id = "setMember",
    tag = "Organisations",
    params(IdParameter),
    request_body = MemberSettings,
    responses(
        (status = OK, body = MembersReply),
        (status = CONFLICT, description = "`last_owner`: the role of the owning account cannot be changed."),
    )
)]
pub async fn set_member(
    State(app): State<AppState>,
    caller: Caller,
    Path(id): Path<OrganisationId>,
    body: JsonBody,
) -> Result<Success<MembersReply>, ApiError> {
    let organisation = caller.organisation(&app.catalog, &id, MemberRole::Owner)?;
    let MemberSettings { account, role } = body.deserialize()?;
    // By id alone: names could be guessed.
    let account = AccountId::parse(&account).filter(|id| app.catalog.accounts().get(id).is_some());
    let account = account.ok_or_else(ApiError::account_not_found)?;
    let id = organisation.id.clone();
    members_reply(&app, &caller, move |catalog| catalog.organisations().invite(&id, &account, role))
        .await
}

/// Accepts an invitation to an organisation.
#[utoipa::path(
    post,
    path = "/api/organisations/{id}/membership",
    operation_id = "acceptMembership",
    tag = "Organisations",
    params(IdParameter),
    responses((status = OK, body = OrganisationReply))
)]
pub async fn accept_membership(
    State(app): State<AppState>,
    caller: Caller,
    Path(id): Path<OrganisationId>,
) -> Result<Success<OrganisationReply>, ApiError> {
    let (id, account) = invitation_in(&app, &caller, &id)?;
    reply(&app, &caller, move |catalog| catalog.organisations().accept(&id, &account)).await
}

/// Declines an invitation to an organisation.
#[utoipa::path(
    delete,
    path = "/api/organisations/{id}/membership",
    operation_id = "declineMembership",
    tag = "Organisations",
    params(IdParameter),
    responses((status = OK, body = OrganisationDeclinedReply))
)]
pub async fn decline_membership(
    State(app): State<AppState>,
    caller: Caller,
    Path(id): Path<OrganisationId>,
) -> Result<Success<OrganisationDeclinedReply>, ApiError> {
    let (id, account) = invitation_in(&app, &caller, &id)?;
    changing(&app, &caller, move |catalog| catalog.organisations().remove_member(&id, &account))
        .await?;
    Ok(Success(OrganisationDeclinedReply {}))
}

/// Returns the ids of the organisation and of the caller, if the caller is invited.
fn invitation_in(
    app: &AppState,
    caller: &Caller,
    id: &OrganisationId,
) -> Result<(OrganisationId, AccountId), ApiError> {
    caller.require_unrestricted()?;
    let own = caller.account().id.clone();
    let found = app.catalog.organisations().get(id);
    let found = found.filter(|organisation| organisation.invited.contains_key(&own));
    let organisation = found.ok_or_else(ApiError::organisation_not_found)?;
    Ok((organisation.id.clone(), own))
}

/// Removes a member, leaves the organisation, or withdraws an invitation.
#[utoipa::path(
    delete,
    path = "/api/organisations/{id}/members",
    operation_id = "removeMember",
    tag = "Organisations",
    params(IdParameter, ("account" = String, Query, description = "Account id of the member.", min_length = 1)),
    responses(
        (status = OK, body = MembersReply),
        (status = CONFLICT, description = "`last_owner`: the owning account cannot leave."),
    )
)]
pub async fn remove_member(
    State(app): State<AppState>,
    caller: Caller,
    Path(id): Path<OrganisationId>,
    query: Query,
) -> Result<Success<MembersReply>, ApiError> {
    let account = query.string(&["account"])?;
    let account = account.ok_or_else(|| ApiError::bad_parameter("account", "is required"))?;
    let leaves = account == caller.account().id.as_str();
    let least = if leaves { MemberRole::Viewer } else { MemberRole::Owner };
    let organisation = caller.organisation(&app.catalog, &id, least)?;
    let is_of_it = |id: &AccountId| {
        organisation.members.contains_key(id) || organisation.invited.contains_key(id)
    };
    let member = AccountId::parse(&account).filter(is_of_it);
    let member = member.ok_or_else(ApiError::account_not_found)?;
    let id = organisation.id.clone();
    members_reply(&app, &caller, move |catalog| catalog.organisations().remove_member(&id, &member))
        .await
}

async fn reply(
    app: &AppState,
    caller: &Caller,
    work: impl FnOnce(&Catalog) -> Result<Arc<Organisation>, CatalogError> + Send + 'static,
) -> Result<Success<OrganisationReply>, ApiError> {
    let organisation = changing(app, caller, work).await?;
    let organisation = organisation_view(&app.catalog, &organisation);
    Ok(Success(OrganisationReply { organisation }))
}

async fn members_reply(
    app: &AppState,
    caller: &Caller,
    work: impl FnOnce(&Catalog) -> Result<Arc<Organisation>, CatalogError> + Send + 'static,
) -> Result<Success<MembersReply>, ApiError> {
    Ok(members_of(app, &*changing(app, caller, work).await?))
}

fn members_of(app: &AppState, organisation: &Organisation) -> Success<MembersReply> {
    let OrganisationView { members, invited, .. } = organisation_view(&app.catalog, organisation);
    Success(MembersReply { members, invited })
}

fn name_in(body: JsonBody) -> Result<OrganisationName, ApiError> {
    let OrganisationSettings { name } = body.deserialize()?;
    OrganisationName::parse(&name)
        .map_err(|error| ApiError::bad_parameter("name", &format!("is refused: {error}")))
}
