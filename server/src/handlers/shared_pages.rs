//! `/-/s/{token}`: pages of shared links, for clients without an account.
//!
//! Guarantees: requests ignore API keys and sessions; an unknown link and one that was deleted get the same response;
//! of a link that cannot be opened nothing is shown; a file is served only if the link names it, or a folder above it;
//! a link with a maximum of downloads sends at most that many files. Non-goals: creation of links.
//!
//! A download is a GET of a file or an archive, without a range or with one from the first byte. Of a limited link
//! every GET of a file is one, so that ranges have no effect; previews of images are not downloads.

pub(super) mod html;

use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::response::Response;
use catalog::{
    Bucket, LinkKind, LinkLayout, LinkSecret, LinkState, Password, SharedLink, SharedLinkId,
};
use engine::{FolderKey, Object, ObjectKey, ObjectName, Store};
use http::header::{self, HeaderName, HeaderValue};
use http::request::Parts;
use http::{Method, Request, StatusCode, Uri};
use listener::trusted_proxies::client_ip;
use protocol::error::ApiError;
use protocol::file_name::sanitize;
use protocol::object_path::PathInBucket;
use protocol::paging::{folder_cursor_text, parse_folder_cursor};
use protocol::query::Query;
use protocol::request_body::{BodyLimits, RequestBody};
use protocol::reserved_paths::LINK_PATH;
use protocol::response_headers::ROBOTS_TAG;
use service::delivery::deliver_shared;
use service::link_access::{is_unlocked, shared_bucket, unlock_cookie};
use service::path_params::{FilePath, UrlToken};
use service::request_context::{Path, RoutedContext};
use service::state::AppState;
use service::transform_params::transform_params;
use service::zip::{zip_contents, zip_response};
use usage::task::blocking;

use self::html::{Frame, Listing, Notice, file_page, is_image, listing_page, locked_page};
use super::upload_pages;
use crate::limits::LINK_PAGE_ENTRIES;

const SEC_PURPOSE: HeaderName = HeaderName::from_static("sec-purpose");
/// Maximum side of previews of a link with a maximum of downloads, in pixels.
const LIMITED_PREVIEW_SIDE_MAX: u32 = 1_024;
/// Largest form with a password.
const UNLOCK_BODY_BYTES_MAX: u64 = 4_096;

/// Link that may be opened.
pub(super) struct OpenLink {
    pub(super) link: Arc<SharedLink>,
    pub(super) bucket: Arc<Bucket>,
    /// Path of the page.
    pub(super) path: String,
}

/// Page in place of the requested one.
pub(super) enum Refusal {
    Page(Box<Response>),
    Error(ApiError),
}

impl From<ApiError> for Refusal {
    fn from(error: ApiError) -> Self {
        Self::Error(error)
    }
}

impl From<Notice> for Refusal {
    fn from(notice: Notice) -> Self {
        Self::Page(Box::new(notice.page()))
    }
}

/// Returns the response, or the page of a file that does not exist instead of its error.
pub(super) fn finished(result: Result<Response, Refusal>) -> Result<Response, ApiError> {
    match result {
        Ok(response) => Ok(response),
        Err(Refusal::Page(page)) => Ok(*page),
        Err(Refusal::Error(error)) if error.status() == StatusCode::NOT_FOUND => {
            Ok(Notice::FileNotFound.page())
        }
        Err(Refusal::Error(error)) => Err(error),
    }
}

/// Returns the page of a link, of one of its folders or of one of its files.
#[utoipa::path(
    get,
    path = "/-/s/{token}",
    operation_id = "showLinkPage",
    tag = "Links",
    security(()),
    params(
        ("token" = String, Path, description = "Secret of the link."),
        ("path" = Option<String>, Query, description = "Folder of the link."),
        ("after" = Option<String>, Query, description = "Cursor of the next page of a folder."),
        ("file" = Option<String>, Query, description = "File of the link."),
    ),
    responses(
        (status = OK, description = "HTML page.", body = String, content_type = "text/html; charset=utf-8"),
        (status = UNAUTHORIZED, description = "Page that asks for the password.", body = String, content_type = "text/html; charset=utf-8"),
        (status = NOT_FOUND, description = "Unknown link or file.", body = String, content_type = "text/html; charset=utf-8"),
        (status = GONE, description = "The link expired, was ended or is used up.", body = String, content_type = "text/html; charset=utf-8"),
    )
)]
pub async fn page(
    State(app): State<AppState>,
    Path(UrlToken(secret)): Path<UrlToken>,
    query: Query,
    head: Parts,
) -> Result<Response, ApiError> {
    finished(page_of(&app, &secret, &query, &head).await)
}

async fn page_of(
    app: &AppState,
    secret: &str,
    query: &Query,
    head: &Parts,
) -> Result<Response, Refusal> {
    let open = open(app, secret, head)?;
    if open.link.kind() == LinkKind::Upload {
        return Ok(upload_pages::form_page(app, &open));
    }
    let places = open.link.places();
    let only_file = match &places[..] {
        [PathInBucket::File(key)] => Some(key.clone()),
        _ => None,
    };
    let requested = query.string(&["file"])?.map(|path| super::file_in(&path)).transpose()?;
    if let Some(key) = requested.or(only_file.clone()) {
        let name = open.name_of(key)?;
        let found = app.store.get(&name).map_err(ApiError::from)?;
        let is_current = |it: &Object| !open.bucket.is_expired(it, || app.clock.unix_ms());
        let file = found.filter(is_current).ok_or(Notice::FileNotFound)?;
        let title = match only_file.is_some() && !open.link.title.is_empty() {
            true => open.link.title.clone(),
            false => name.key.file_name().to_owned(),
        };
        let frame = open.frame(app, title);
        let is_limited = open.link.downloads_max.is_some();
        return Ok(file_page(&frame, &file, only_file.is_some(), is_limited));
    }
    let folder = query.string(&["path"])?;
    let after = query.string(&["after"])?;
    let entries = open.entries(app, folder.as_deref(), after).await?;
    let images = entries.files.iter().filter(|file| is_image(file)).count();
    let is_gallery = match open.link.layout {
        LinkLayout::Auto => images > 0 && 2 * images >= entries.files.len(),
        LinkLayout::Gallery => true,
        LinkLayout::List => false,
    };
    let frame = open.frame(app, open.title());
    Ok(listing_page(
        &frame,
        &Listing {
            folder: folder.as_deref(),
            folders: &entries.folders,
            files: &entries.files,
            missing: entries.missing,
            is_gallery,
            may_zip: open.link.zip,
            next: entries.next.as_deref(),
        },
    ))
}

/// Returns a file of a link, by delivery.
#[utoipa::path(
    get,
    path = "/-/s/{token}/f/{path}",
    operation_id = "downloadLinkFile",
    tag = "Links",
    security(()),
    params(
        ("token" = String, Path, description = "Secret of the link."),
        ("path" = String, Path, description = "Key of the file."),
    ),
    responses(
        (status = OK, description = "File content.", content_type = "*/*"),
        (status = PARTIAL_CONTENT, description = "Byte ranges.", content_type = "*/*"),
        (status = NOT_MODIFIED, description = "Not modified."),
        (status = UNAUTHORIZED, description = "Page that asks for the password.", body = String, content_type = "text/html; charset=utf-8"),
        (status = FORBIDDEN, description = "`forbidden`: a prefetch of a link with a maximum of downloads."),
        (status = NOT_FOUND, description = "Unknown link or file.", body = String, content_type = "text/html; charset=utf-8"),
        (status = GONE, description = "The link expired, was ended or is used up.", body = String, content_type = "text/html; charset=utf-8"),
    )
)]
pub async fn file(
    State(app): State<AppState>,
    Path((UrlToken(secret), FilePath(key))): Path<(UrlToken, FilePath)>,
    mut head: Parts,
) -> Result<Response, ApiError> {
    finished(file_of(&app, &secret, key, &mut head).await)
}

async fn file_of(
    app: &AppState,
    secret: &str,
    key: ObjectKey,
    head: &mut Parts,
) -> Result<Response, Refusal> {
    let open = open_download(app, secret, head)?;
    let name = open.name_of(key)?;
    open.attribute(app, head);
    let is_limited = open.link.downloads_max.is_some();
    let is_preview = is_limited && is_small_preview(head)?;
    if is_limited {
        if head.headers.contains_key(SEC_PURPOSE) && !is_preview {
            return Err(ApiError::forbidden("The link counts downloads: no prefetch").into());
        }
        head.headers.remove(header::RANGE);
    }
    let delivered = Box::pin(deliver_shared(app, head, &open.bucket, &name)).await;
    let (mut response, is_original) = delivered?;
    if is_preview && is_original {
        // There is no smaller version of it.
        return Err(Notice::FileNotFound.into());
    }
    let is_counted = head.method == Method::GET
        && is_whole_or_start(&response)
        && match is_limited {
            true => !is_preview,
            false => is_original && !head.headers.contains_key(SEC_PURPOSE),
        };
    if is_counted {
        count(app, &open.link.id).await?;
    }
    let headers = response.headers_mut();
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("private, no-store"));
    headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    headers.insert(ROBOTS_TAG, HeaderValue::from_static("noindex"));
    Ok(response)
}

/// Returns all files of a link as a zip archive.
#[utoipa::path(
    get,
    path = "/-/s/{token}/zip",
    operation_id = "downloadLinkZip",
    tag = "Links",
    security(()),
    params(("token" = String, Path, description = "Secret of the link.")),
    responses(
        (status = OK, description = "Zip archive.", content_type = "application/zip"),
        (status = UNAUTHORIZED, description = "Page that asks for the password.", body = String, content_type = "text/html; charset=utf-8"),
        (status = NOT_FOUND, description = "Unknown link, or one without an archive.", body = String, content_type = "text/html; charset=utf-8"),
        (status = GONE, description = "The link expired, was ended or is used up.", body = String, content_type = "text/html; charset=utf-8"),
    )
)]
pub async fn zip(
    State(app): State<AppState>,
    Path(UrlToken(secret)): Path<UrlToken>,
    head: Parts,
) -> Result<Response, ApiError> {
    finished(zip_of(&app, &secret, &head).await)
}

async fn zip_of(app: &AppState, secret: &str, head: &Parts) -> Result<Response, Refusal> {
    let open = open_download(app, secret, head)?;
    if !open.link.zip {
        return Err(Notice::FileNotFound.into());
    }
    open.attribute(app, head);
    let contents = zip_contents(app, open.bucket.clone(), open.link.places()).await?;
    let name = sanitize(&open.title()).unwrap_or_else(|| open.bucket.name.to_string());
    let mut response = zip_response(app, &head.method, contents, &format!("{name}.zip")).await?;
    if head.method == Method::GET {
        count(app, &open.link.id).await?;
    }
    response.headers_mut().insert(ROBOTS_TAG, HeaderValue::from_static("noindex"));
    Ok(response)
}

/// Checks the password of a link, and unlocks it for the browser.
#[utoipa::path(
    post,
    path = "/-/s/{token}/unlock",
    operation_id = "unlockLink",
    tag = "Links",
    security(()),
    params(("token" = String, Path, description = "Secret of the link.")),
    request_body(content = String, content_type = "application/x-www-form-urlencoded", description = "`password`."),
    responses(
        (status = SEE_OTHER, description = "Unlocked, with a cookie; to the page."),
        (status = UNAUTHORIZED, description = "Wrong password.", body = String, content_type = "text/html; charset=utf-8"),
        (status = NOT_FOUND, description = "Unknown link.", body = String, content_type = "text/html; charset=utf-8"),
        (status = GONE, description = "The link expired, was ended or is used up.", body = String, content_type = "text/html; charset=utf-8"),
        (status = TOO_MANY_REQUESTS, description = "Too many attempts.", body = String, content_type = "text/html; charset=utf-8"),
    )
)]
pub async fn unlock(
    State(app): State<AppState>,
    Path(UrlToken(secret)): Path<UrlToken>,
    request: Request<Body>,
) -> Result<Response, ApiError> {
    let (head, body) = request.into_parts();
    finished(unlock_of(&app, &secret, &head, body).await)
}

async fn unlock_of(
    app: &AppState,
    secret: &str,
    head: &Parts,
    body: Body,
) -> Result<Response, Refusal> {
    let link = active_link(app, secret, head)?;
    let limits = BodyLimits::new(UNLOCK_BODY_BYTES_MAX);
    let form = RequestBody::new(&head.headers, body, limits)?.collect().await?;
    let form = String::from_utf8(form.to_vec()).unwrap_or_default();
    let form: Uri = format!("/?{form}").parse().unwrap_or_default();
    let presented = Query::from_uri(&form).string(&["password"])?.unwrap_or_default();
    let path = link_path(&link);
    if let Some(password) = &link.password {
        let limiter = &app.rate_limiter;
        let name = format!("link {}", link.id);
        let attempt = limiter.charge_login_attempt(client_ip(&head.extensions), &name, None);
        let attempt =
            attempt.map_err(|refused| Notice::TooManyAttempts(refused.retry_after_seconds()))?;
        let hash = Some(Arc::new(password.clone()));
        match app.passwords.check(hash, Password::parse_presented(&presented)).await {
            Ok(true) => limiter.refund_login_attempt(attempt),
            Ok(false) => return Ok(locked_page(&path, true)),
            Err(_) => {
                limiter.refund_login_attempt(attempt);
                return Err(ApiError::overloaded(1).into());
            }
        }
    }
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::SEE_OTHER;
    let headers = response.headers_mut();
    headers.extend(HeaderValue::try_from(path).ok().map(|path| (header::LOCATION, path)));
    headers.extend(unlock_cookie(app, &link).map(|cookie| (header::SET_COOKIE, cookie)));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Ok(response)
}

/// Finds a link by its secret, in a state in which it may be opened.
fn active_link(app: &AppState, secret: &str, head: &Parts) -> Result<Arc<SharedLink>, Refusal> {
    let link = found_link(app, secret, head)?;
    match link.state(app.clock.unix_ms()) {
        LinkState::Active => {}
        LinkState::Expired => return Err(Notice::Expired.into()),
        LinkState::UsedUp if link.kind() == LinkKind::Upload => return Err(Notice::Full.into()),
        LinkState::UsedUp => return Err(Notice::UsedUp.into()),
        LinkState::Ended | LinkState::Blocked => return Err(Notice::NoLongerAvailable.into()),
    }
    match shared_bucket(&app.catalog, &link) {
        Ok(_) => Ok(link),
        Err(_) => Err(Notice::NoLongerAvailable.into()),
    }
}

/// Finds a link by its secret, in any state. An unknown secret counts as a failed authentication.
fn found_link(app: &AppState, secret: &str, head: &Parts) -> Result<Arc<SharedLink>, Refusal> {
    let secret = LinkSecret::parse(secret);
    let found = secret.and_then(|secret| app.catalog.shared_links().with_secret(&secret));
    if found.is_none()
        && let Some(address) = client_ip(&head.extensions)
    {
        app.rate_limiter.take_failure(address).map_err(ApiError::from)?;
    }
    found.ok_or_else(|| Notice::Unknown.into())
}

/// Opens a link whose password, if any, was entered.
fn open(app: &AppState, secret: &str, head: &Parts) -> Result<OpenLink, Refusal> {
    unlocked(app, active_link(app, secret, head)?, head)
}

fn unlocked(app: &AppState, link: Arc<SharedLink>, head: &Parts) -> Result<OpenLink, Refusal> {
    let path = link_path(&link);
    if !is_unlocked(app, &link, &head.headers) {
        return Err(Refusal::Page(Box::new(locked_page(&path, false))));
    }
    let bucket = shared_bucket(&app.catalog, &link).map_err(|_| Notice::NoLongerAvailable)?;
    Ok(OpenLink { link, bucket, path })
}

/// Opens a link with files.
fn open_download(app: &AppState, secret: &str, head: &Parts) -> Result<OpenLink, Refusal> {
    let open = open(app, secret, head)?;
    match open.link.kind() {
        LinkKind::Download => Ok(open),
        LinkKind::Upload => Err(Notice::FileNotFound.into()),
    }
}

/// Opens a link that requests files; one that is full only for an upload that was begun before.
pub(super) fn open_upload(
    app: &AppState,
    secret: &str,
    head: &Parts,
    is_begun: bool,
) -> Result<OpenLink, Refusal> {
    let link = found_link(app, secret, head)?;
    let is_full = link.state(app.clock.unix_ms()) == LinkState::UsedUp;
    let open = match is_begun && is_full && shared_bucket(&app.catalog, &link).is_ok() {
        true => unlocked(app, link, head)?,
        false => unlocked(app, active_link(app, secret, head)?, head)?,
    };
    match open.link.kind() {
        LinkKind::Upload => Ok(open),
        LinkKind::Download => Err(Notice::FileNotFound.into()),
    }
}

fn link_path(link: &SharedLink) -> String {
    format!("{LINK_PATH}{}", link.secret.text())
}

/// Counts a download, or refuses it.
async fn count(app: &AppState, id: &SharedLinkId) -> Result<(), Refusal> {
    let (catalog, id) = (app.catalog.clone(), id.clone());
    let counted = blocking(move || catalog.shared_links().count_download(&id)).await;
    match counted.map_err(ApiError::from)? {
        true => Ok(()),
        false => Err(Notice::UsedUp.into()),
    }
}

/// Returns whether a request is for a small version of an image.
fn is_small_preview(head: &Parts) -> Result<bool, ApiError> {
    let options = transform_params(&Query::from_uri(&head.uri), &head.headers)?;
    let is_small = |side: Option<u32>| side.is_none_or(|side| side <= LIMITED_PREVIEW_SIDE_MAX);
    let is_bounded = options.width.is_some() || options.height.is_some();
    Ok(is_bounded && is_small(options.width) && is_small(options.height))
}

/// Returns whether a response has the whole file, or its first byte.
fn is_whole_or_start(response: &Response) -> bool {
    let range = response.headers().get(header::CONTENT_RANGE).map(HeaderValue::as_bytes);
    match response.status() {
        StatusCode::OK => true,
        // Several ranges have no such header.
        StatusCode::PARTIAL_CONTENT => range.is_none_or(|range| range.starts_with(b"bytes 0-")),
        _ => false,
    }
}

/// Entries of a page.
#[derive(Default)]
struct Entries {
    folders: Vec<(String, String)>,
    files: Vec<Object>,
    missing: usize,
    next: Option<String>,
}

impl OpenLink {
    /// Returns the object of a key, if the link includes it.
    fn name_of(&self, key: ObjectKey) -> Result<ObjectName, Notice> {
        match self.link.contains(&key) {
            true => Ok(ObjectName::new(self.bucket.name.clone(), key)),
            false => Err(Notice::FileNotFound),
        }
    }

    /// Counts the request for the bucket.
    pub(super) fn attribute(&self, app: &AppState, head: &Parts) {
        if let Some(context) = RoutedContext::find(&head.extensions) {
            context.meter().attribute_to(&self.bucket.traffic, app.clock.unix_ms());
        }
    }

    pub(super) fn frame(&self, app: &AppState, title: String) -> Frame<'_> {
        Frame {
            path: &self.path,
            title,
            message: &self.link.message,
            expires_ms: self.link.expires_ms,
            host: app.public_url.host().unwrap_or_default(),
        }
    }

    /// Returns the title of the link: by default, the name of its only file or folder.
    fn title(&self) -> String {
        let link = &self.link;
        let name = |path: &str| {
            let name = path.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
            if name.is_empty() { self.bucket.name.to_string() } else { name.to_owned() }
        };
        match &link.paths[..] {
            _ if !link.title.is_empty() => link.title.clone(),
            [only] => name(only),
            several => format!("{} items", several.len()),
        }
    }

    /// Returns the entries of a folder of the link, or those that the link names.
    async fn entries(
        &self,
        app: &AppState,
        folder: Option<&str>,
        after: Option<String>,
    ) -> Result<Entries, Refusal> {
        let (store, bucket) = (app.store.clone(), self.bucket.clone());
        let places = self.link.places();
        let folder = match (folder, &places[..]) {
            (Some(folder), _) => Some(self.folder_within(folder)?),
            (None, [PathInBucket::Folder(only)]) => Some(only.clone()),
            (None, _) => None,
        };
        let now_ms = app.clock.unix_ms();
        let entries = blocking(move || {
            let mut entries = match folder {
                Some(folder) => folder_entries(&store, &bucket.name, &folder, after.as_deref()),
                None => named_entries(&store, &bucket.name, places),
            }?;
            entries.files.retain(|file| !bucket.is_expired(file, || now_ms));
            Ok::<_, ApiError>(entries)
        });
        Ok(entries.await?)
    }

    /// Parses a folder that is in the link.
    fn folder_within(&self, folder: &str) -> Result<FolderKey, Refusal> {
        let PathInBucket::Folder(folder) = PathInBucket::parse(folder)? else {
            return Err(Notice::FileNotFound.into());
        };
        let is_above = |path: &&String| path.is_empty() || path.ends_with('/');
        let mut above = self.link.paths.iter().filter(is_above);
        match above.any(|path| folder.as_str().starts_with(path.as_str())) {
            true => Ok(folder),
            false => Err(Notice::FileNotFound.into()),
        }
    }
}

/// Returns a page of the entries of a folder. Blocks on the index.
fn folder_entries(
    store: &Store,
    bucket: &engine::BucketName,
    folder: &FolderKey,
    after: Option<&str>,
) -> Result<Entries, ApiError> {
    let after = after.map(parse_folder_cursor).transpose().map_err(ApiError::bad_path)?;
    let page = store.list_folder(bucket, folder, after.as_ref(), LINK_PAGE_ENTRIES)?;
    let next = page.next.as_ref().map(folder_cursor_text);
    let folders = page.folders.iter().map(|it| (it.last_segment().to_owned(), it.to_string()));
    let is_shown = |file: &Object| !file.is_derived() && !file.name().key.is_folder_marker();
    Ok(Entries {
        folders: folders.collect(),
        files: page.files.into_iter().filter(is_shown).collect(),
        missing: 0,
        next,
    })
}

/// Returns the files and folders that a link names. Blocks on the index.
fn named_entries(
    store: &Store,
    bucket: &engine::BucketName,
    places: Vec<PathInBucket>,
) -> Result<Entries, ApiError> {
    let mut entries = Entries::default();
    for place in places {
        match place {
            PathInBucket::Folder(folder) => {
                entries.folders.push((folder.last_segment().to_owned(), folder.to_string()));
            }
            PathInBucket::File(key) => match store.get(&ObjectName::new(bucket.clone(), key))? {
                Some(file) => entries.files.push(file),
                None => entries.missing += 1,
            },
        }
    }
    Ok(entries)
}
