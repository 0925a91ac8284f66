//! `/-/v/{bucket}/{*path}`: page of a public file, with a preview.
//!
//! Guarantees: only files that everyone may read have a page; a private, missing or invalid one gets the same response;
//! the page of a bucket that search engines may not index is not indexed. Non-goals: the file itself, which delivery
//! sends.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use catalog::Bucket;
use engine::Object;
use http::request::Parts;
use protocol::error::ApiError;
use protocol::object_path::ObjectPath;
use protocol::public_url::public_url;
use protocol::reserved_paths::FILE_PAGE_PATH;
use protocol::response_headers::ROBOTS_TAG;
use service::request_context::RoutedContext;
use service::state::AppState;

use super::shared_pages::file_html::{ShownFile, file_page, text_head};
use super::shared_pages::html::{Frame, Notice};

/// Returns the page of a public file.
#[utoipa::path(
    get,
    path = "/-/v/{bucket}/{path}",
    operation_id = "showFilePage",
    tag = "Files",
    security(()),
    params(
        ("bucket" = String, Path, description = "Name of the bucket."),
        ("path" = String, Path, description = "Key of the file."),
    ),
    responses(
        (status = OK, description = "HTML page.", body = String, content_type = "text/html; charset=utf-8"),
        (status = NOT_FOUND, description = "Page of a file that does not exist, or is not public.", body = String, content_type = "text/html; charset=utf-8"),
    )
)]
pub async fn page(State(app): State<AppState>, head: Parts) -> Result<Response, ApiError> {
    let Some((bucket, file)) = public_file(&app, &head)? else {
        return Ok(Notice::FileNotFound.page());
    };
    RoutedContext::attribute(&head.extensions, &bucket, app.clock.unix_ms());
    // Not the path of the request, which has other forms for the same file.
    let url = public_url("", file.name());
    let path = format!("{FILE_PAGE_PATH}{url}");
    let frame = Frame {
        path: &path,
        title: file.name().key.file_name().to_owned(),
        message: "",
        expires_ms: None,
        host: app.public_url.host().unwrap_or_default(),
        preview_base: Some(app.public_url.as_str()),
    };
    let text = text_head(&app, &file).await;
    let shown = ShownFile { file: &file, url, all: None, is_limited: false, text };
    let mut response = file_page(&frame, &shown);
    if bucket.index {
        response.headers_mut().remove(ROBOTS_TAG);
    }
    Ok(response)
}

/// Finds the file of a page, if everyone may read it.
fn public_file(app: &AppState, head: &Parts) -> Result<Option<(Arc<Bucket>, Object)>, ApiError> {
    let path = head.uri.path().strip_prefix(FILE_PAGE_PATH).unwrap_or_default();
    let name = ObjectPath::from_path(path).ok().and_then(|path| path.object());
    let Some(name) = name else { return Ok(None) };
    let Some(bucket) = app.catalog.buckets().get(&name.bucket) else { return Ok(None) };
    let file = app.store.get(&name)?.filter(|file| {
        bucket.is_public_object(file) && !bucket.is_expired(file, || app.clock.unix_ms())
    });
    Ok(file.map(|file| (bucket, file)))
}
