//! `/api/buckets/{bucketName}/links` and `/api/links`: shared links, which open pages with files, or request files.
//!
//! Guarantees: a caller can share only what it may read, and request files only where it may upload; it sees its
//! account's own links, and all links of buckets that it manages, as far as its key reaches their paths. Non-goals: the
//! pages (`shared_pages`).

use std::sync::Arc;

use axum::extract::State;
use catalog::{Bucket, LinkKind, LinkState, Scope, SharedLink, SharedLinkChange, SharedLinkId};
use engine::BucketName;
use protocol::error::ApiError;
use protocol::json_body::JsonBody;
use protocol::object_path::PathInBucket;
use protocol::paging::PageRequest;
use protocol::query::Query;
use serde::Serialize;
use serde::de::DeserializeOwned;
use service::auth::Caller;
use service::link_access::{check_link_rights, link_state};
use service::parameters::{BucketNameParameter, IdParameter, PageParameters};
use service::replies::Success;
use service::request_context::Path;
use service::state::AppState;
use usage::task::blocking;
use utoipa::ToSchema;

use super::changing;
use super::sessions::hash_new_password;
use crate::management::{
    LinkLifetime, LinkSettings, LinkView, link_change, link_view, missing_link_file, new_link,
    parse_link_paths,
};

/// Shared link to create.
#[derive(ToSchema)]
#[expect(dead_code, reason = "it is only described: the paths and the settings are read apart")]
pub struct NewLinkRequest {
    /// Kind of the link; fixed after creation.
    #[serde(default)]
    kind: LinkKind,
    /// Files, and folders, which end in `/`; an empty path is the whole bucket. Exactly one folder for an upload link.
    /// Fixed after creation.
    #[schema(min_items = 1, max_items = 500)]
    paths: Vec<String>,
    #[schema(inline)]
    #[serde(flatten)]
    settings: LinkSettings,
}

/// Change of a shared link.
#[derive(ToSchema)]
#[expect(dead_code, reason = "it is only described: the fields are read apart")]
pub struct LinkEditRequest {
    /// `false`, and nothing else, reopens a link that the same account ended less than 60 seconds ago.
    #[schema(nullable = false)]
    ended: Option<bool>,
    #[serde(flatten)]
    settings: LinkSettings,
}

/// One shared link.
#[derive(Serialize, ToSchema)]
pub struct LinkReply {
    link: LinkView,
}

/// Shared links.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct LinksReply {
    /// Links, newest first.
    links: Vec<LinkView>,
    /// Maximum lifetime of new and changed links in days; `null` for no maximum.
    #[schema(required)]
    days_max: Option<u64>,
    next_cursor: Option<String>,
}

/// Creates a link to a page with files and folders, or to one that requests files.
#[utoipa::path(
    post,
    path = "/api/buckets/{bucketName}/links",
    operation_id = "createLink",
    tag = "Links",
    params(BucketNameParameter),
    request_body = NewLinkRequest,
    responses(
        (status = OK, body = LinkReply),
        (status = NOT_FOUND, description = "`bucket_not_found`, `file_not_found`."),
    )
)]
pub async fn create(
    State(app): State<AppState>,
    caller: Caller,
    Path(bucket): Path<BucketName>,
    mut body: JsonBody,
) -> Result<Success<LinkReply>, ApiError> {
    let kind = body.optional("kind")?.unwrap_or_default();
    let places = parse_link_paths(kind, &body.require::<Vec<String>>("paths")?)?;
    let settings = body.deserialize()?;
    let rights = check_link_rights(&app.catalog, &caller, kind, &bucket, &places)?;
    let (store, named, wanted) = (app.store.clone(), bucket.clone(), places.clone());
    let missing = blocking(move || missing_link_file(&store, kind, &named, &wanted)).await?;
    if missing.is_some() {
        return Err(ApiError::file_not_found());
    }
    let change = parse_settings(&app, kind, &rights, settings).await?;
    let lifetime = LinkLifetime::of(&app.config());
    let new = new_link(&app.catalog, &caller, lifetime, (kind, bucket, places), change);
    let link = changing(&app, &caller, move |catalog| catalog.shared_links().create(new)).await?;
    Ok(Success(LinkReply { link: view(&app, &link) }))
}

/// Lists the shared links of a bucket, newest first.
#[utoipa::path(
    get,
    path = "/api/buckets/{bucketName}/links",
    operation_id = "listBucketLinks",
    tag = "Links",
    params(
        BucketNameParameter,
        ("kind" = Option<LinkKind>, Query, description = "Only links of this kind."),
        ("state" = Option<LinkState>, Query, description = "Only links in this state."),
        ("path" = Option<String>, Query, description = "Only links that include this file or folder."),
        ("exact" = Option<bool>, Query, description = "With `path`: only links of just this file or folder."),
        ("own" = Option<bool>, Query, description = "Only links created by this key, or by this account in the dashboard."),
        PageParameters,
    ),
    responses((status = OK, body = LinksReply))
)]
pub async fn list_of_bucket(
    State(app): State<AppState>,
    caller: Caller,
    Path(bucket): Path<BucketName>,
    query: Query,
) -> Result<Success<LinksReply>, ApiError> {
    caller.bucket(&app.catalog, &bucket, Scope::Presign)?;
    page(&app, &caller, &query, Some(&bucket))
}

/// Lists the caller's shared links of all buckets, newest first.
#[utoipa::path(
    get,
    path = "/api/links",
    operation_id = "listLinks",
    tag = "Links",
    params(
        ("kind" = Option<LinkKind>, Query, description = "Only links of this kind."),
        ("state" = Option<LinkState>, Query, description = "Only links in this state."),
        PageParameters,
    ),
    responses((status = OK, body = LinksReply))
)]
pub async fn list(
    State(app): State<AppState>,
    caller: Caller,
    query: Query,
) -> Result<Success<LinksReply>, ApiError> {
    caller.require_scope(Scope::Presign)?;
    page(&app, &caller, &query, None)
}

/// Returns a shared link.
#[utoipa::path(
    get,
    path = "/api/links/{id}",
    operation_id = "showLink",
    tag = "Links",
    params(IdParameter),
    responses(
        (status = OK, body = LinkReply),
        (status = NOT_FOUND, description = "`link_not_found`."),
    )
)]
pub async fn show(
    State(app): State<AppState>,
    caller: Caller,
    Path(id): Path<SharedLinkId>,
) -> Result<Success<LinkReply>, ApiError> {
    let link = visible_link(&app, &caller, &id)?;
    Ok(Success(LinkReply { link: view(&app, &link) }))
}

/// Updates the given settings of a shared link.
#[utoipa::path(
    patch,
    path = "/api/links/{id}",
    operation_id = "editLink",
    tag = "Links",
    params(IdParameter),
    request_body = LinkEditRequest,
    responses(
        (status = OK, body = LinkReply),
        (status = NOT_FOUND, description = "`link_not_found`."),
        (status = CONFLICT, description = "`link_ended`."),
    )
)]
pub async fn edit(
    State(app): State<AppState>,
    caller: Caller,
    Path(id): Path<SharedLinkId>,
    mut body: JsonBody,
) -> Result<Success<LinkReply>, ApiError> {
    let link = visible_link(&app, &caller, &id)?;
    if let Some(ended) = body.optional::<bool>("ended")? {
        body.deny_unknown()?;
        if ended {
            return Err(ApiError::bad_parameter("ended", "must be false: DELETE ends a link"));
        }
        let reopen = move |catalog: &catalog::Catalog| catalog.shared_links().reopen(&id);
        let link = changing(&app, &caller, reopen).await?;
        return Ok(Success(LinkReply { link: view(&app, &link) }));
    }
    let bucket = app.catalog.buckets().get(&link.bucket).ok_or_else(ApiError::bucket_not_found)?;
    let change = parse_settings(&app, link.kind(), &bucket, body.deserialize()?).await?;
    let edit = move |catalog: &catalog::Catalog| catalog.shared_links().edit(&id, change);
    let link = changing(&app, &caller, edit).await?;
    Ok(Success(LinkReply { link: view(&app, &link) }))
}

/// Ends a shared link: everyone who has it loses access at once.
#[utoipa::path(
    delete,
    path = "/api/links/{id}",
    operation_id = "endLink",
    tag = "Links",
    params(IdParameter),
    responses(
        (status = OK, body = LinkReply),
        (status = NOT_FOUND, description = "`link_not_found`."),
        (status = CONFLICT, description = "`link_ended`."),
    )
)]
pub async fn end(
    State(app): State<AppState>,
    caller: Caller,
    Path(id): Path<SharedLinkId>,
) -> Result<Success<LinkReply>, ApiError> {
    visible_link(&app, &caller, &id)?;
    let link = changing(&app, &caller, move |catalog| catalog.shared_links().end(&id)).await?;
    Ok(Success(LinkReply { link: view(&app, &link) }))
}

/// Returns a page of the links that a caller sees.
fn page(
    app: &AppState,
    caller: &Caller,
    query: &Query,
    bucket: Option<&BucketName>,
) -> Result<Success<LinksReply>, ApiError> {
    let request = PageRequest::from_query(query)?;
    let states = "must be active, expired, used_up, ended or blocked";
    let state: Option<LinkState> = choice(query, "state", states)?;
    let kind: Option<LinkKind> = choice(query, "kind", "must be download or upload")?;
    let path = query.string(&["path"])?.map(|path| PathInBucket::parse(&path)).transpose()?;
    let is_exact = query.flag(&["exact"])?.unwrap_or(false);
    let own = query.flag(&["own"])?.unwrap_or(false).then(|| caller.durable_issuer());
    let after = request.after(|cursor| SharedLinkId::parse(cursor).ok_or(()))?;
    let selected = app.catalog.shared_links().select(|link| {
        bucket.is_none_or(|bucket| link.bucket == *bucket)
            && kind.is_none_or(|kind| link.kind() == kind)
            && own.as_ref().is_none_or(|issuer| link.issuer() == *issuer)
            && path.as_ref().is_none_or(|path| match is_exact {
                true => matches!(&link.paths[..], [only] if only == path.as_str()),
                false => link.includes(path),
            })
            && (bucket.is_some() || link.account == caller.account().id)
    });
    let selected = selected.into_iter().filter(|link| {
        state.is_none_or(|state| link_state(&app.catalog, link) == state) && sees(app, caller, link)
    });
    let mut rest: Vec<_> = selected.collect();
    if let Some(after) = after {
        let start = rest.iter().position(|link| link.id == after).map_or(rest.len(), |at| at + 1);
        rest.drain(..start);
    }
    let has_more = rest.len() > request.limit();
    rest.truncate(request.limit());
    let next_cursor = rest.last().filter(|_| has_more).map(|last| last.id.to_string());
    Ok(Success(LinksReply {
        links: rest.iter().map(|link| view(app, link)).collect(),
        days_max: Some(app.config().link_days_max).filter(|days| *days > 0),
        next_cursor,
    }))
}

/// Parses a parameter that is one of some names.
fn choice<T: DeserializeOwned>(
    query: &Query,
    name: &str,
    must: &str,
) -> Result<Option<T>, ApiError> {
    let Some(text) = query.string(&[name])? else { return Ok(None) };
    let parsed = serde_json::from_value(text.into());
    parsed.map(Some).map_err(|_| ApiError::bad_parameter(name, must))
}

fn visible_link(
    app: &AppState,
    caller: &Caller,
    id: &SharedLinkId,
) -> Result<Arc<SharedLink>, ApiError> {
    caller.require_scope(Scope::Presign)?;
    let link = app.catalog.shared_links().get(id).filter(|link| sees(app, caller, link));
    link.ok_or_else(ApiError::shared_link_not_found)
}

/// Returns whether a caller may see and change a link.
fn sees(app: &AppState, caller: &Caller, link: &SharedLink) -> bool {
    let is_own = link.account == caller.account().id && caller.limits().allows_bucket(&link.bucket);
    let reaches = |place| caller.require_path_access(place).is_ok();
    (is_own || caller.bucket(&app.catalog, &link.bucket, Scope::Manage).is_ok())
        && link.places().iter().all(reaches)
}

/// Parses settings, and hashes the password.
async fn parse_settings(
    app: &AppState,
    kind: LinkKind,
    bucket: &Bucket,
    settings: LinkSettings,
) -> Result<SharedLinkChange, ApiError> {
    let lifetime = LinkLifetime::of(&app.config());
    let now_ms = app.clock.unix_ms();
    let (change, password) = link_change(now_ms, lifetime, kind, bucket, settings)?;
    let password = match password {
        Some(Some(password)) => Some(Some(hash_new_password(app, password).await?)),
        other => other.map(|_| None),
    };
    Ok(SharedLinkChange { password, ..change })
}

fn view(app: &AppState, link: &SharedLink) -> LinkView {
    link_view(&app.catalog, app.public_url.as_str(), link)
}
