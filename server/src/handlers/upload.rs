//! `POST /{bucket}/{*path}`: uploads the files of a form, into a folder or to one path.
//!
//! Guarantees: all files of a request are stored, or none.

use axum::body::Body;
use axum::extract::State;
use catalog::{EventKind, Scope, ThumbnailChoice, UploadParams};
use engine::Batch;
use http::Request;
use protocol::error::ApiError;
use protocol::file_name::{ConflictRule, Naming};
use protocol::multipart::FormFiles;
use protocol::object_path::{PathInBucket, check_writable};
use protocol::public_url::public_url;
use protocol::query::Query;
use protocol::request_body::BodyLimits;
use protocol::time_format::iso_time;

use crate::auth::Caller;
use crate::intake::{StoredFile, UploadOptions, UploadTarget, receive, resolve_keys, store_files};
use crate::parameters::{ObjectPathParameters, UploadParameters};
use crate::replies::{Success, UploadReply, UploadedFile};
use crate::request_context::Target;
use crate::state::AppState;

/// Names of the flag that replaces existing files.
pub const OVERWRITE: &[&str] = &["overwrite", "upsert", "replace"];
/// Names of the flag that randomises file names.
pub const RANDOMIZE_NAME: &[&str] = &["randomizeName"];
/// Names of the flag that requests thumbnails.
pub const THUMBNAIL: &[&str] =
    &["thumbnail", "generateThumbnail", "thumb", "createThumbnail", "thumbnails"];

/// Uploads the files of a multipart form to a path, or into a folder if the path ends with `/`.
#[utoipa::path(
    post,
    path = "/{bucket}/{path}",
    operation_id = "upload",
    tag = "Files",
    params(ObjectPathParameters, UploadParameters),
    request_body(content = FormFiles, content_type = "multipart/form-data"),
    responses((status = OK, body = UploadReply))
)]
pub async fn upload(
    State(app): State<AppState>,
    caller: Caller,
    Target(target): Target,
    query: Query,
    request: Request<Body>,
) -> Result<Success<UploadReply>, ApiError> {
    let bucket = caller.bucket(&app.catalog, &target.bucket, Scope::Upload)?;
    let wishes = upload_params(&query)?;
    let destination = UploadTarget::from_path(bucket, target.place);
    check_destination(&caller, &destination)?;
    store_form(&app, &caller, &destination, wishes, Batch::new(), request).await
}

/// Parses the upload options of the query.
pub fn upload_params(query: &Query) -> Result<UploadParams, ApiError> {
    let is_set = |names| Ok::<_, ApiError>(query.flag(names)?.unwrap_or(false));
    Ok(UploadParams {
        naming: if is_set(RANDOMIZE_NAME)? { Naming::Random } else { Naming::ClientName },
        rule: if is_set(OVERWRITE)? { ConflictRule::Overwrite } else { ConflictRule::Rename },
        thumbnail: thumbnail_param(query)?,
    })
}

/// Parses whether the query requests thumbnails.
pub fn thumbnail_param(query: &Query) -> Result<ThumbnailChoice, ApiError> {
    Ok(ThumbnailChoice::from_flag(query.flag(THUMBNAIL)?))
}

/// Receives a form from a caller that may write to its destination, and stores its files in one batch with the changes
/// in `along`.
pub async fn store_form(
    app: &AppState,
    caller: &Caller,
    destination: &UploadTarget,
    wishes: UploadParams,
    along: Batch,
    request: Request<Body>,
) -> Result<Success<UploadReply>, ApiError> {
    let (head, body) = request.into_parts();
    let limits = BodyLimits::new(app.body_bytes_max());
    let form = FormFiles::open(&head.headers, body, limits).await?;
    let files = receive(app, destination, form).await?;
    let keys = resolve_keys(app, destination, wishes.naming, &files)?;
    keys.iter().try_for_each(|key| caller.require_key_access(key))?;
    let manner = UploadOptions::new(wishes, EventKind::CreatedByPost);
    let kept = store_files(app, &destination.bucket, manner, along, files, &keys).await?;
    Ok(Success(reply(app, destination, kept)))
}

/// Returns the response for stored files.
pub fn reply(app: &AppState, destination: &UploadTarget, kept: Vec<StoredFile>) -> UploadReply {
    let files = kept.into_iter().map(|file| uploaded(app, file)).collect();
    UploadReply::new(destination.bucket.name.as_str(), files)
}

/// Checks, before the body is read, what would be rejected after it.
pub fn check_destination(caller: &Caller, destination: &UploadTarget) -> Result<(), ApiError> {
    if let PathInBucket::File(key) = &destination.place {
        check_writable(key)?;
    }
    match destination.lenient_folder() {
        Some(folder) if caller.require_folder_access(&folder).is_ok() => Ok(()),
        _ => caller.require_path_access(&destination.place),
    }
}

fn uploaded(app: &AppState, file: StoredFile) -> UploadedFile {
    let object = &file.object;
    let name = object.name();
    let url = |name| public_url(app.public_url.as_str(), name);
    UploadedFile {
        name: name.key.file_name().to_owned(),
        original_name: file.original_name,
        key: name.key.to_string(),
        url: url(name),
        thumbnail_url: file.thumbnail.as_ref().and_then(|it| it.as_ref().ok()).map(url),
        thumbnail_skipped: file.thumbnail.as_ref().and_then(|it| it.as_ref().err().copied()),
        size: object.bytes(),
        content_type: object.content_type().to_owned(),
        etag: format!("\"{}\"", object.etag()),
        last_modified: iso_time(object.modified_ms()),
        renamed: file.renamed,
    }
}
