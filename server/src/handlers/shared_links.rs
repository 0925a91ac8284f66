//! `/api/buckets/{bucketName}/links` and `/api/links`: shared links, which open pages with files.
//!
//! Guarantees: a caller can share only what it may read; it sees its account's own links, and all links of buckets that
//! it manages, as far as its key reaches their paths. Non-goals: the pages (`shared_pages`).

use std::sync::Arc;

use axum::extract::State;
use catalog::limits::SHARED_LINK_PATHS_BYTES_MAX;
use catalog::{
    LinkLayout, LinkState, NewSharedLink, Password, Scope, SharedLink, SharedLinkChange,
    SharedLinkId,
};
use engine::{BucketName, ObjectName};
use jiff::Timestamp;
use protocol::error::ApiError;
use protocol::json_body::JsonBody;
use protocol::object_path::PathInBucket;
use protocol::paging::PageRequest;
use protocol::query::Query;
use protocol::reserved_paths::LINK_PATH;
use protocol::time_format::iso_time;
use serde::{Deserialize, Serialize};
use service::auth::{Caller, Credential};
use service::limits::{LINK_SECONDS_DEFAULT, LINK_SECONDS_MAX, LINK_SECONDS_MIN};
use service::link_access::{check_sharing, link_state};
use service::parameters::{BucketNameParameter, IdParameter, PageParameters};
use service::replies::Success;
use service::request_context::Path;
use service::state::AppState;
use usage::task::blocking;
use utoipa::ToSchema;

use super::changing;
use super::sessions::hash_new_password;
use crate::limits::{
    LINK_DOWNLOADS_MAX, LINK_MESSAGE_CHARS_MAX, LINK_PATHS_MAX, LINK_TITLE_CHARS_MAX,
};
use crate::management::present_field;

/// Minimum and maximum length of the password of a link.
const PASSWORD_CHARS: std::ops::RangeInclusive<usize> = 4..=128;

/// Shared link to create.
#[derive(ToSchema)]
#[expect(dead_code, reason = "it is only described: the paths and the settings are read apart")]
pub struct NewLinkRequest {
    /// Files, and folders, which end in `/`; an empty path is the whole bucket. Fixed after creation.
    #[schema(min_items = 1, max_items = 500)]
    paths: Vec<String>,
    #[schema(inline)]
    #[serde(flatten)]
    settings: LinkSettings,
}

/// Settings of a shared link.
#[derive(Default, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct LinkSettings {
    /// Title of the page; the name of its only file or folder if empty.
    #[serde(deserialize_with = "present_field")]
    #[schema(nullable = false, max_length = 100)]
    title: Option<String>,
    #[serde(deserialize_with = "present_field")]
    #[schema(nullable = false, max_length = 500)]
    message: Option<String>,
    #[serde(deserialize_with = "present_field")]
    #[schema(nullable = false)]
    layout: Option<LinkLayout>,
    /// Whether everything may be downloaded as a zip archive; default `true`.
    #[serde(deserialize_with = "present_field")]
    #[schema(nullable = false)]
    zip: Option<bool>,
    /// Lifetime in seconds from now, 60 to 315,360,000; default 604,800 (7 days). `null` for no expiry.
    #[serde(deserialize_with = "present_field")]
    #[schema(value_type = Option<u64>)]
    expires_in: Option<Option<u64>>,
    /// Expiry instead of `expiresIn`. `null` for no expiry.
    #[serde(deserialize_with = "present_field")]
    #[schema(value_type = Option<String>, format = DateTime)]
    expires_at: Option<Option<String>>,
    /// Password of 4 to 128 characters; `null` for none.
    #[serde(deserialize_with = "present_field")]
    #[schema(value_type = Option<String>, format = Password, min_length = 4, max_length = 128)]
    password: Option<Option<String>>,
    /// Maximum number of downloads, 1 to 1,000,000; `null` for no maximum.
    #[serde(deserialize_with = "present_field")]
    #[schema(value_type = Option<u64>)]
    downloads_max: Option<Option<u64>>,
}

/// Shared link.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct LinkView {
    id: String,
    /// URL of the page, which is secret.
    url: String,
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

/// Creates a link to a page with files and folders.
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
    let places = parse_paths(&body.require::<Vec<String>>("paths")?)?;
    let settings = body.deserialize()?;
    check_sharing(&app, &caller, &bucket, &places)?;
    require_files(&app, &bucket, &places).await?;
    let change = parse_settings(&app, settings).await?;
    let default_ms = app.clock.unix_ms().saturating_add(1_000 * LINK_SECONDS_DEFAULT);
    let new = NewSharedLink {
        bucket,
        paths: places.iter().map(|place| place.as_str().to_owned()).collect(),
        title: change.title.unwrap_or_default(),
        message: change.message.unwrap_or_default(),
        layout: change.layout.unwrap_or_default(),
        zip: change.zip.unwrap_or(true),
        expires_ms: change.expires_ms.unwrap_or(Some(default_ms)),
        password: change.password.flatten(),
        downloads_max: change.downloads_max.flatten(),
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
    visible_link(&app, &caller, &id)?;
    let change = parse_settings(&app, body.deserialize()?).await?;
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
    let state = query.string(&["state"])?;
    let state: Option<LinkState> = match state {
        None => None,
        Some(text) => Some(serde_json::from_value(text.into()).map_err(|_| {
            let must = "must be active, expired, used_up, ended or blocked";
            ApiError::bad_parameter("state", must)
        })?),
    };
    let file = query.string(&["path"])?.map(|path| super::file_in(&path)).transpose()?;
    let after = request.after(|cursor| SharedLinkId::parse(cursor).ok_or(()))?;
    let selected = app.catalog.shared_links().select(|link| {
        bucket.is_none_or(|bucket| link.bucket == *bucket)
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

fn parse_paths(paths: &[String]) -> Result<Vec<PathInBucket>, ApiError> {
    let refuse = |must: &str| Err(ApiError::bad_parameter("paths", must));
    if !(1..=LINK_PATHS_MAX).contains(&paths.len()) {
        return refuse("must have 1 to 500 paths");
    }
    let places = paths.iter().map(|path| PathInBucket::parse(path));
    let mut places = places.collect::<Result<Vec<_>, _>>()?;
    places.sort_by(|one, other| one.as_str().cmp(other.as_str()));
    places.dedup();
    let bytes: usize = places.iter().map(|place| place.as_str().len()).sum();
    if bytes > SHARED_LINK_PATHS_BYTES_MAX {
        return refuse("are longer than 49152 bytes in all: share a folder instead");
    }
    Ok(places)
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

async fn parse_settings(
    app: &AppState,
    settings: LinkSettings,
) -> Result<SharedLinkChange, ApiError> {
    let expires_ms = parse_expiry(app.clock.unix_ms(), settings.expires_in, settings.expires_at)?;
    let downloads = 1..=LINK_DOWNLOADS_MAX;
    if settings.downloads_max.flatten().is_some_and(|max| !downloads.contains(&max)) {
        return Err(ApiError::bad_parameter("downloadsMax", "must be from 1 to 1000000, or null"));
    }
    let password = match settings.password {
        None => None,
        Some(None) => Some(None),
        Some(Some(text)) => {
            let password = Password::parse_presented(&text);
            let password = password.filter(|_| PASSWORD_CHARS.contains(&text.chars().count()));
            let refuse = || ApiError::bad_parameter("password", "must have 4 to 128 characters");
            Some(Some(hash_new_password(app, password.ok_or_else(refuse)?).await?))
        }
    };
    Ok(SharedLinkChange {
        title: parse_text("title", settings.title, LINK_TITLE_CHARS_MAX, "")?,
        message: parse_text("message", settings.message, LINK_MESSAGE_CHARS_MAX, "\n")?,
        layout: settings.layout,
        zip: settings.zip,
        expires_ms,
        password,
        downloads_max: settings.downloads_max,
    })
}

/// Parses a text without control characters, except for some.
fn parse_text(
    name: &str,
    text: Option<String>,
    chars_max: usize,
    allowed: &str,
) -> Result<Option<String>, ApiError> {
    let Some(text) = text else { return Ok(None) };
    let is_invalid = |c: char| c.is_control() && !allowed.contains(c);
    if text.chars().count() > chars_max || text.contains(is_invalid) {
        let must = format!("must have at most {chars_max} characters and no control characters");
        return Err(ApiError::bad_parameter(name, &must));
    }
    Ok(Some(text.trim().to_owned()))
}

fn parse_expiry(
    now_ms: u64,
    expires_in: Option<Option<u64>>,
    expires_at: Option<Option<String>>,
) -> Result<Option<Option<u64>>, ApiError> {
    let must = format!("must be {LINK_SECONDS_MIN} to {LINK_SECONDS_MAX} seconds from now");
    let lifetime_ms = 1_000 * LINK_SECONDS_MIN..=1_000 * LINK_SECONDS_MAX;
    match (expires_in, expires_at) {
        (Some(_), Some(_)) => {
            Err(ApiError::bad_parameter("expiresAt", "cannot be combined with \"expiresIn\""))
        }
        (Some(None), None) | (None, Some(None)) => Ok(Some(None)),
        (None, None) => Ok(None),
        (Some(Some(seconds)), None) => match seconds.checked_mul(1_000) {
            Some(ms) if lifetime_ms.contains(&ms) => Ok(Some(Some(now_ms.saturating_add(ms)))),
            _ => Err(ApiError::bad_parameter("expiresIn", &must)),
        },
        (None, Some(Some(text))) => {
            let time = text.parse::<Timestamp>().ok();
            let at_ms = time.and_then(|time| u64::try_from(time.as_millisecond()).ok());
            let in_range = |at_ms: &u64| lifetime_ms.contains(&at_ms.saturating_sub(now_ms));
            let refuse = || ApiError::bad_parameter("expiresAt", &must);
            at_ms.filter(in_range).map(|at_ms| Some(Some(at_ms))).ok_or_else(refuse)
        }
    }
}

fn view(app: &AppState, link: &SharedLink) -> LinkView {
    let creator = app.catalog.accounts().get(&link.account);
    LinkView {
        id: link.id.to_string(),
        url: format!("{}{LINK_PATH}{}", app.public_url.as_str(), link.secret.text()),
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
        state: link_state(app, link),
        created_by: creator.map(|it| it.name.as_str().to_owned()).unwrap_or_default(),
        created_at: iso_time(link.created_ms),
        updated_at: iso_time(link.updated_ms),
    }
}
