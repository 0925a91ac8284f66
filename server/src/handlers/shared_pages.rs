//! `/-/s/{token}`: pages of shared links, for clients without an account.
//!
//! Guarantees: requests ignore API keys and sessions; an unknown link and one that was deleted get the same response;
//! of a link that cannot be opened nothing is shown; a file is served only if the link names it, or a folder above it;
//! a link with a maximum of downloads sends at most that many files. Non-goals: creation of links.
//!
//! A download is a GET of a file or an archive, without a range or with one from the first byte. Of a limited link
//! every GET of a file is one, so that ranges have no effect; previews of images are not downloads.

mod counting;
pub(super) mod file_html;
pub(super) mod html;
pub mod link_entries;

use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::response::Response;
use catalog::{
    Bucket, LinkEvent, LinkKind, LinkLayout, LinkSecret, LinkState, Password, SharedLink,
};
use engine::{Object, ObjectKey, ObjectName};
use http::header::{self, HeaderValue};
use http::request::Parts;
use http::{Method, Request, StatusCode, Uri};
use protocol::error::ApiError;
use protocol::file_name::sanitize;
use protocol::object_path::PathInBucket;
use protocol::query::Query;
use protocol::request_body::{BodyLimits, RequestBody};
use protocol::reserved_paths::LINK_PATH;
use protocol::response_headers::ROBOTS_TAG;
use service::delivery::deliver_shared;
use service::link_access::{is_unlocked, link_state, shared_bucket, unlock_cookie};
use service::link_body::link_body;
use service::parameters::FilePathSchema;
use service::path_params::{FilePath, UrlToken};
use service::request_context::{Path, RoutedContext};
use service::state::AppState;
use service::zip::{zip_contents, zip_response};

use self::counting::{SEC_PURPOSE, count, is_small_preview, is_whole_or_start, record};
use self::file_html::{ShownFile, file_page, text_head};
use self::html::{Frame, Listing, Notice, file_url, is_image, listing_page, locked_page};
use super::upload_pages;

/// Largest form with a password.
const UNLOCK_BODY_BYTES_MAX: u64 = 4_096;

/// Link that may be opened.
pub(super) struct OpenLink {
    pub(super) link: Arc<SharedLink>,
    pub(super) bucket: Arc<Bucket>,
    /// Path of the page.
    pub(super) path: String,
}

/// Reason why a link or its file is not shown.
pub(super) enum Refusal {
    Notice(Notice),
    /// The password was not entered, or was wrong.
    Locked {
        /// Path of the page.
        path: String,
        is_wrong: bool,
    },
    Error(ApiError),
}

impl From<ApiError> for Refusal {
    fn from(error: ApiError) -> Self {
        Self::Error(error)
    }
}

impl From<Notice> for Refusal {
    fn from(notice: Notice) -> Self {
        Self::Notice(notice)
    }
}

impl Refusal {
    /// Returns the error for a client that is not a browser.
    pub(super) fn into_error(self) -> ApiError {
        match self {
            Self::Error(error) => error,
            Self::Locked { .. } => ApiError::link_locked(),
            Self::Notice(Notice::Full) => ApiError::link_full(),
            Self::Notice(Notice::FileNotFound) => ApiError::file_not_found(),
            Self::Notice(Notice::Expired | Notice::NoLongerAvailable | Notice::UsedUp) => {
                ApiError::link_expired("ask the person who sent it for a new one")
            }
            Self::Notice(_) => ApiError::shared_link_not_found(),
        }
    }
}

/// Returns the response, or the page in place of it. The error of a missing file is a page, too.
pub(super) fn finished(result: Result<Response, Refusal>) -> Result<Response, ApiError> {
    match result {
        Err(Refusal::Notice(notice)) => Ok(notice.page()),
        Err(Refusal::Locked { path, is_wrong }) => Ok(locked_page(&path, is_wrong)),
        Err(Refusal::Error(error)) if error.status() == StatusCode::NOT_FOUND => {
            Ok(Notice::FileNotFound.page())
        }
        Err(Refusal::Error(error)) => Err(error),
        Ok(response) => Ok(response),
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
    let response = opened_page(app, &open, query).await?;
    let is_view = head.method == Method::GET && !head.headers.contains_key(SEC_PURPOSE);
    if is_view && response.status() == StatusCode::OK {
        app.catalog.shared_links().record_view(&open.link);
    }
    Ok(response)
}

async fn opened_page(app: &AppState, open: &OpenLink, query: &Query) -> Result<Response, Refusal> {
    if open.link.kind() == LinkKind::Upload {
        return Ok(upload_pages::form_page(app, open));
    }
    let only_file = match &open.link.places()[..] {
        [PathInBucket::File(key)] => Some(key.clone()),
        _ => None,
    };
    let requested = query.string(&["file"])?.map(|path| super::file_in(&path)).transpose()?;
    let is_only = only_file.is_some();
    if let Some(key) = requested.or(only_file) {
        return page_of_file(app, open, key, is_only).await;
    }
    let folder = query.string(&["path"])?;
    let entries = open.entries(app, folder.as_deref(), query.string(&["after"])?).await?;
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
            is_limited: open.link.downloads_max.is_some(),
            may_zip: open.link.zip,
            next: entries.next.as_deref(),
            nonce: app.rng.uuid().simple().to_string(),
        },
    ))
}

async fn page_of_file(
    app: &AppState,
    open: &OpenLink,
    key: ObjectKey,
    is_only: bool,
) -> Result<Response, Refusal> {
    let name = open.name_of(key)?;
    let found = app.store.get(&name).map_err(ApiError::from)?;
    let is_current = |it: &Object| !open.bucket.is_expired(it, || app.clock.unix_ms());
    let file = found.filter(is_current).ok_or(Notice::FileNotFound)?;
    let title = match is_only && !open.link.title.is_empty() {
        true => open.link.title.clone(),
        false => name.key.file_name().to_owned(),
    };
    let is_limited = open.link.downloads_max.is_some();
    let text = if is_limited { None } else { text_head(app, &file).await };
    let url = file_url(&open.path, &file);
    let all = (!is_only).then_some(&*open.path);
    let shown = ShownFile { file: &file, url, all, is_limited, text };
    Ok(file_page(&open.frame(app, title), &shown))
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
        ("path" = FilePathSchema, Path, description = "Key of the file."),
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
    let (response, is_original) = delivered?;
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
        count(app, &open.link, LinkEvent::FileDownload, head).await?;
    }
    let mut response = response.map(|body| link_body(&app.catalog, &open.link.id, body));
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
    let response = zip_response(app, &head.method, contents, &format!("{name}.zip")).await?;
    if head.method == Method::GET {
        count(app, &open.link, LinkEvent::ArchiveDownload, head).await?;
    }
    let mut response = response.map(|body| link_body(&app.catalog, &open.link.id, body));
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
        let attempt =
            limiter.charge_login_attempt(RoutedContext::client_ip(&head.extensions), &name, None);
        let attempt = attempt.map_err(|refused| {
            record(app, &link, LinkEvent::TooManyAttempts, head);
            Notice::TooManyAttempts(refused.retry_after_seconds())
        })?;
        let hash = Some(Arc::new(password.clone()));
        match app.passwords.check(hash, Password::parse_presented(&presented)).await {
            Ok(true) => limiter.refund_login_attempt(attempt),
            Ok(false) => {
                record(app, &link, LinkEvent::WrongPassword, head);
                return Err(Refusal::Locked { path, is_wrong: true });
            }
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
    let (event, notice) = match link_state(&app.catalog, &link) {
        LinkState::Active => return Ok(link),
        LinkState::Expired => (LinkEvent::Expired, Notice::Expired),
        LinkState::UsedUp if link.kind() == LinkKind::Upload => {
            (LinkEvent::LimitReached, Notice::Full)
        }
        LinkState::UsedUp => (LinkEvent::LimitReached, Notice::UsedUp),
        LinkState::Ended => (LinkEvent::Ended, Notice::NoLongerAvailable),
        LinkState::Blocked => (LinkEvent::Blocked, Notice::NoLongerAvailable),
    };
    record(app, &link, event, head);
    Err(notice.into())
}

/// Finds a link by its secret, in any state. An unknown secret counts as a failed authentication.
fn found_link(app: &AppState, secret: &str, head: &Parts) -> Result<Arc<SharedLink>, Refusal> {
    let secret = LinkSecret::parse(secret);
    let found = secret.and_then(|secret| app.catalog.shared_links().with_secret(&secret));
    if found.is_none()
        && let Some(address) = RoutedContext::client_ip(&head.extensions)
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
        return Err(Refusal::Locked { path, is_wrong: false });
    }
    let bucket = shared_bucket(&app.catalog, &link).map_err(|_| Notice::NoLongerAvailable)?;
    Ok(OpenLink { link, bucket, path })
}

/// Opens a link with files.
fn open_download(app: &AppState, secret: &str, head: &Parts) -> Result<OpenLink, Refusal> {
    let open = open(app, secret, head)?;
    match open.link.kind() {
        LinkKind::Download => Ok(open),
        LinkKind::Upload => Err(ApiError::shared_link_not_found().into()),
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
        LinkKind::Download => Err(ApiError::shared_link_not_found().into()),
    }
}

fn link_path(link: &SharedLink) -> String {
    format!("{LINK_PATH}{}", link.secret.text())
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
        RoutedContext::attribute(&head.extensions, &self.bucket, app.clock.unix_ms());
    }

    pub(super) fn frame<'a>(&'a self, app: &'a AppState, title: String) -> Frame<'a> {
        Frame {
            path: &self.path,
            title,
            message: &self.link.message,
            expires_ms: self.link.expires_ms,
            host: app.public_url.host().unwrap_or_default(),
            preview_base: self.may_be_previewed().then_some(app.public_url.as_str()),
        }
    }

    /// Returns whether other sites may show a preview of the page: everybody who knows the link may open it, any number
    /// of times.
    pub(super) fn may_be_previewed(&self) -> bool {
        self.link.password.is_none() && self.link.downloads_max.is_none()
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
}
