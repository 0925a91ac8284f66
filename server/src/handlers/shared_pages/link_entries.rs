//! Entries of a shared link or of one of its folders, and `/-/s/{token}/list`, which lists them for programs.
//!
//! Guarantees: a folder is listed only if the link includes it; derived, expired and deleted files are not listed.
//! Non-goals: HTML.

use axum::extract::State;
use catalog::object_attributes::last_modified_ms;
use engine::{FolderKey, Object, ObjectName, Store};
use http::header::{self, HeaderName, HeaderValue};
use http::request::Parts;
use protocol::error::ApiError;
use protocol::object_path::PathInBucket;
use protocol::paging::{folder_cursor_text, parse_folder_cursor};
use protocol::query::Query;
use protocol::response_headers::ROBOTS_TAG;
use protocol::time_format::iso_time;
use serde::Serialize;
use service::path_params::UrlToken;
use service::replies::Success;
use service::request_context::Path;
use service::state::AppState;
use usage::task::blocking;
use utoipa::ToSchema;

use super::html::{Notice, file_url};
use super::{OpenLink, Refusal, open_download};
use crate::limits::LINK_PAGE_ENTRIES;

/// Entries of a page.
#[derive(Default)]
pub(super) struct Entries {
    /// Name and path of each subfolder.
    pub folders: Vec<(String, String)>,
    pub files: Vec<Object>,
    /// Number of files that the link names, and that no longer exist.
    pub missing: usize,
    /// Cursor of the next page.
    pub next: Option<String>,
}

/// Files and folders of a shared link.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct LinkEntriesReply {
    title: String,
    folders: Vec<LinkFolderView>,
    files: Vec<LinkFileView>,
    /// Number of files that the link names, and that no longer exist.
    missing_files: usize,
    #[schema(required)]
    next_cursor: Option<String>,
}

#[derive(Serialize, ToSchema)]
struct LinkFolderView {
    name: String,
    /// Value of the parameter `path`.
    path: String,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct LinkFileView {
    name: String,
    path: String,
    url: String,
    size: u64,
    content_type: String,
    modified_at: String,
}

/// Lists the files and folders of a link, or of one of its folders.
#[utoipa::path(
    get,
    path = "/-/s/{token}/list",
    operation_id = "listLinkFiles",
    tag = "Links",
    security(()),
    params(
        ("token" = String, Path, description = "Secret of the link."),
        ("path" = Option<String>, Query, description = "Folder of the link."),
        ("cursor" = Option<String>, Query, description = "`nextCursor` of the previous page of a folder."),
    ),
    responses(
        (status = OK, body = LinkEntriesReply),
        (status = UNAUTHORIZED, description = "`link_locked`: the password was not entered."),
        (status = NOT_FOUND, description = "`link_not_found`; `file_not_found`: the folder is not in the link."),
        (status = GONE, description = "`link_expired`: the link expired, was ended or is used up."),
    )
)]
pub async fn list(
    State(app): State<AppState>,
    Path(UrlToken(secret)): Path<UrlToken>,
    query: Query,
    head: Parts,
) -> Result<([(HeaderName, HeaderValue); 2], Success<LinkEntriesReply>), ApiError> {
    let open = open_download(&app, &secret, &head).map_err(Refusal::into_error)?;
    let (folder, cursor) = (query.string(&["path"])?, query.string(&["cursor"])?);
    let entries = open.entries(&app, folder.as_deref(), cursor).await;
    let entries = entries.map_err(Refusal::into_error)?;
    let reply = LinkEntriesReply {
        title: open.title(),
        folders: entries
            .folders
            .into_iter()
            .map(|(name, path)| LinkFolderView { name, path })
            .collect(),
        files: entries.files.iter().map(|file| open.view_of(&app, file)).collect(),
        missing_files: entries.missing,
        next_cursor: entries.next,
    };
    let headers = [
        (header::CACHE_CONTROL, HeaderValue::from_static("private, no-store")),
        (ROBOTS_TAG, HeaderValue::from_static("noindex")),
    ];
    Ok((headers, Success(reply)))
}

impl OpenLink {
    fn view_of(&self, app: &AppState, file: &Object) -> LinkFileView {
        let key = &file.name().key;
        LinkFileView {
            name: key.file_name().to_owned(),
            path: key.to_string(),
            url: format!("{}{}", app.public_url.as_str(), file_url(&self.path, file)),
            size: file.bytes(),
            content_type: file.content_type().to_owned(),
            modified_at: iso_time(last_modified_ms(file)),
        }
    }

    /// Returns the entries of a folder of the link, or those that the link names.
    pub(super) async fn entries(
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
            let is_current = |file: &Object| !bucket.is_expired(file, || now_ms);
            match folder {
                Some(folder) => {
                    let mut entries =
                        folder_entries(&store, &bucket.name, &folder, after.as_deref())?;
                    entries.files.retain(is_current);
                    Ok(entries)
                }
                None => named_entries(&store, &bucket.name, places, is_current),
            }
        });
        Ok(entries.await?)
    }

    /// Parses a folder that is in the link.
    fn folder_within(&self, folder: &str) -> Result<FolderKey, Refusal> {
        let place = PathInBucket::parse(folder)?;
        match (self.link.includes(&place), place) {
            (true, PathInBucket::Folder(folder)) => Ok(folder),
            _ => Err(Notice::FileNotFound.into()),
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
    is_current: impl Fn(&Object) -> bool,
) -> Result<Entries, ApiError> {
    let mut entries = Entries::default();
    for place in places {
        match place {
            PathInBucket::Folder(folder) => {
                entries.folders.push((folder.last_segment().to_owned(), folder.to_string()));
            }
            PathInBucket::File(key) => {
                match store.get(&ObjectName::new(bucket.clone(), key))?.filter(&is_current) {
                    Some(file) => entries.files.push(file),
                    None => entries.missing += 1,
                }
            }
        }
    }
    Ok(entries)
}
