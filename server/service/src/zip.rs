//! Zip archives of folders and of selected files, created while they are sent.
//!
//! ```text
//! contents      entries and length of the archive, before its first byte
//! entry_names   names of the entries
//! encoding      headers and directory
//! archive_body  response body
//! downloads     selections that wait for their download
//! ```
//!
//! Guarantees: no temporary file; files are read once, and memory is bounded by the number of entries; the length is
//! exact, and a file that cannot be read ends the connection before it, so that a truncated archive is never taken for
//! a complete one; an archive has the versions that existed when it was requested. Non-goals: access to the files.

mod archive_body;
mod contents;
mod downloads;
mod encoding;
mod entry_names;

use std::sync::Arc;

use axum::body::Body;
use axum::response::Response;
use catalog::Bucket;
use http::header::{self, HeaderValue};
use http::{HeaderMap, Method};
use protocol::error::ApiError;
use protocol::object_path::PathInBucket;
use protocol::response_headers::attachment_header;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use usage::task::blocking;

use self::archive_body::{ArchiveBody, ArchiveWriter};
pub use self::contents::ZipContents;
pub use self::downloads::{ZipDownload, ZipDownloads};
use crate::limits::{ZIP_ENTRIES_MAX, ZIP_ENTRIES_OPEN_MAX, ZIPS_CONCURRENT_MAX};
use crate::state::AppState;

/// Memory of all archives that are being sent.
pub struct ZipMemory(Arc<Semaphore>);

impl Default for ZipMemory {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(ZIP_ENTRIES_OPEN_MAX)))
    }
}

impl ZipMemory {
    /// Reserves memory for an archive of this many entries; `None` if too many are being sent.
    fn reserve(&self, entries: usize) -> Option<OwnedSemaphorePermit> {
        let share = entries.max(ZIP_ENTRIES_OPEN_MAX / ZIPS_CONCURRENT_MAX);
        self.0.clone().try_acquire_many_owned(u32::try_from(share).ok()?).ok()
    }
}

/// Returns the contents of an archive of files and folders.
///
/// # Errors
///
/// `file_not_found` if there is no file; `zip_too_large` for more than [`ZIP_ENTRIES_MAX`].
pub async fn zip_contents(
    app: &AppState,
    bucket: Arc<Bucket>,
    paths: Vec<PathInBucket>,
) -> Result<ZipContents, ApiError> {
    let (store, now_ms) = (app.store.clone(), app.clock.unix_ms());
    blocking(move || ZipContents::find(&store, &bucket, now_ms, paths)).await
}

/// Returns the response with an archive, saved under this name. An unreadable first file is an error.
pub async fn zip_response(
    app: &AppState,
    method: &Method,
    contents: ZipContents,
    file_name: &str,
) -> Result<Response, ApiError> {
    let bytes = contents.archive_bytes();
    let body = if *method == Method::HEAD {
        Body::empty()
    } else {
        let reserved = app.zip_memory.reserve(contents.entry_count());
        let reserved = reserved.ok_or_else(|| ApiError::overloaded(5))?;
        let writer = ArchiveWriter::new(app.store.clone(), contents);
        let body = ArchiveBody::start(writer, bytes, app.disk_reads.clone(), reserved).await?;
        Body::new(body)
    };
    let mut response = Response::new(body);
    *response.headers_mut() = headers(bytes, file_name);
    Ok(response)
}

fn headers(bytes: u64, file_name: &str) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in [
        (header::CONTENT_TYPE, "application/zip"),
        (header::ACCEPT_RANGES, "none"),
        (header::CACHE_CONTROL, "private, no-store"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::CONTENT_SECURITY_POLICY, "default-src 'none'; sandbox"),
        (header::REFERRER_POLICY, "no-referrer"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    headers.insert(header::CONTENT_LENGTH, HeaderValue::from(bytes));
    headers.extend(attachment_header(file_name).map(|value| (header::CONTENT_DISPOSITION, value)));
    headers
}

const _: () = assert!(ZIP_ENTRIES_MAX <= ZIP_ENTRIES_OPEN_MAX);
