//! `/api/buckets/{bucketName}/links` and `/api/links`: shared links, which open pages with files, or request files.
//!
//! Guarantees: a caller can share only what it may read, and request files only where it may upload; it sees its
//! account's own links, and all links of buckets that it manages, as far as its key reaches their paths. Non-goals: the
//! pages (`shared_pages`).

use std::sync::Arc;

use axum::extract::State;
use catalog::{
    AskName, Bucket, LinkKind, LinkLayout, LinkState, NewSharedLink, Scope, SharedLink,
    SharedLinkChange, SharedLinkId, StoredAmount,
};
use engine::{BucketName, ObjectName};
use protocol::error::ApiError;
use protocol::json_body::JsonBody;
use protocol::object_path::PathInBucket;
use protocol::paging::PageRequest;
use protocol::query::Query;
use protocol::reserved_paths::LINK_PATH;
use protocol::time_format::iso_time;
use serde::Serialize;
use serde::de::DeserializeOwned;
use service::auth::{Caller, Credential};
use service::limits::LINK_SECONDS_DEFAULT;
use service::link_access::{check_requesting, check_sharing, link_state};
use service::parameters::{BucketNameParameter, IdParameter, PageParameters};
use service::replies::Success;
use service::request_context::Path;
use service::state::AppState;
use usage::task::blocking;
use utoipa::ToSchema;

use super::changing;
use super::sessions::hash_new_password;
use crate::management::{LinkSettings, default_upload_rules, link_change, parse_link_paths};

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

/// Shared link.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct LinkView {
    id: String,
    /// URL of the page, which is secret.
    url: String,
    kind: LinkKind,
    bucket_name: String,
    paths: Vec<String>,
    title: String,
    message: String,
    layout: LinkLayout,
    zip: bool,
    expires_at: Option<String>,
    has_password: bool,
    downloads_max: Option<u64>,
    /// Number of downloads of a file or archive.
    download_count: u64,
    /// Maximum number of uploaded files; `null` for a download link, like the other limits of uploads.
    files_max: Option<u64>,
    /// Maximum bytes of an uploaded file, if it is less than that of the bucket.
    file_bytes_max: Option<u64>,
    /// Maximum bytes of all uploaded files together.
    bytes_max: Option<u64>,
    /// Media types that may be uploaded; empty for the types of the bucket.
    allowed_types: Option<Vec<String>>,
    /// Whether the page asks for the name of the person who uploads.
    ask_name: Option<AskName>,
    /// Number of uploaded files.
    uploaded_files: u64,
    /// Bytes of the uploaded files.
    uploaded_bytes: u64,
    state: LinkState,
    /// Name of the account that created the link.
    created_by: String,
    created_at: String,
    updated_at: String,
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
    let rights = match kind {
        LinkKind::Download => check_sharing(&app, &caller, &bucket, &places)?,
        LinkKind::Upload => check_requesting(&app, &caller, &bucket, &places)?,
    };
    if kind == LinkKind::Download {
        require_files(&app, &bucket, &places).await?;
    }
    let change = parse_settings(&app, kind, &rights, settings).await?;
    let upload = (kind == LinkKind::Upload).then(|| {
        let mut rules = default_upload_rules();
        rules.apply(change.upload);
        rules
    });
    let default_ms = app.clock.unix_ms().saturating_add(1_000 * LINK_SECONDS_DEFAULT);
    let new = NewSharedLink {
        bucket,
        paths: places.iter().map(|place| place.as_str().to_owned()).collect(),
        title: change.title.unwrap_or_default(),
        message: change.message.unwrap_or_default(),
        layout: change.layout.unwrap_or_default(),
        zip: change.zip.unwrap_or(kind == LinkKind::Download),
        expires_ms: change.expires_ms.unwrap_or(Some(default_ms)),
        password: change.password.flatten(),
        downloads_max: change.downloads_max.flatten(),
        upload,
        account: caller.account().id.clone(),
        api_key: match caller.credential() {
            Credential::Key(api_key) => Some(api_key.id.clone()),
            Credential::Session(_) | Credential::Detached => None,
        },
    };
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
        ("path" = Option<String>, Query, description = "Only links that include this file."),
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
    request_body = LinkSettings,
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
    body: JsonBody,
) -> Result<Success<LinkReply>, ApiError> {
    let link = visible_link(&app, &caller, &id)?;
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
    let file = query.string(&["path"])?.map(|path| super::file_in(&path)).transpose()?;
    let after = request.after(|cursor| SharedLinkId::parse(cursor).ok_or(()))?;
    let selected = app.catalog.shared_links().select(|link| {
        bucket.is_none_or(|bucket| link.bucket == *bucket)
            && kind.is_none_or(|kind| link.kind() == kind)
            && file.as_ref().is_none_or(|key| link.contains(key))
            && (bucket.is_some() || link.account == caller.account().id)
    });
    let selected = selected.into_iter().filter(|link| {
        state.is_none_or(|state| link_state(app, link) == state) && sees(app, caller, link)
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

/// Checks that each path names a file, or a folder with files.
async fn require_files(
    app: &AppState,
    bucket: &BucketName,
    places: &[PathInBucket],
) -> Result<(), ApiError> {
    let (store, bucket, places) = (app.store.clone(), bucket.clone(), places.to_vec());
    blocking(move || {
        for place in places {
            let exists = match place {
                PathInBucket::File(key) => {
                    store.get(&ObjectName::new(bucket.clone(), key))?.is_some()
                }
                PathInBucket::Folder(folder) => {
                    !store.list_keys(&bucket, folder.as_str(), None, 1)?.objects.is_empty()
                }
            };
            if !exists {
                return Err(ApiError::file_not_found());
            }
        }
        Ok(())
    })
    .await
}

/// Parses settings, and hashes the password.
async fn parse_settings(
    app: &AppState,
    kind: LinkKind,
    bucket: &Bucket,
    settings: LinkSettings,
) -> Result<SharedLinkChange, ApiError> {
    let (change, password) = link_change(app.clock.unix_ms(), kind, bucket, settings)?;
    let password = match password {
        Some(Some(password)) => Some(Some(hash_new_password(app, password).await?)),
        other => other.map(|_| None),
    };
    Ok(SharedLinkChange { password, ..change })
}

fn view(app: &AppState, link: &SharedLink) -> LinkView {
    let rules = link.upload.as_ref();
    let StoredAmount { objects: uploaded_files, bytes: uploaded_bytes } = link.uploads.stored();
    let creator = app.catalog.accounts().get(&link.account);
    LinkView {
        id: link.id.to_string(),
        url: format!("{}{LINK_PATH}{}", app.public_url.as_str(), link.secret.text()),
        kind: link.kind(),
        bucket_name: link.bucket.to_string(),
        paths: link.paths.clone(),
        title: link.title.clone(),
        message: link.message.clone(),
        layout: link.layout,
        zip: link.zip,
        expires_at: link.expires_ms.map(iso_time),
        has_password: link.password.is_some(),
        downloads_max: link.downloads_max,
        download_count: link.downloads.get(),
        files_max: rules.map(|rules| rules.files_max),
        file_bytes_max: rules.and_then(|rules| rules.file_bytes_max),
        bytes_max: rules.map(|rules| rules.bytes_max),
        allowed_types: rules.map(|rules| rules.allowed_types.to_list()),
        ask_name: rules.map(|rules| rules.ask_name),
        uploaded_files,
        uploaded_bytes,
        state: link_state(app, link),
        created_by: creator.map(|it| it.name.as_str().to_owned()).unwrap_or_default(),
        created_at: iso_time(link.created_ms),
        updated_at: iso_time(link.updated_ms),
    }
}
