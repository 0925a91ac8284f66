//! `GET /api/buckets/{bucketName}/zip`, `POST /api/buckets/{bucketName}/zips` and `GET /-/zip/{token}`: zip archives of
//! folders and selections.
//!
//! Guarantees: an archive has only files that its caller may list and read at the time of the download. Non-goals:
//! entries, and transfer (`service::zip`).

use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::response::Response;
use catalog::{Bucket, Scope};
use engine::BucketName;
use http::Request;
use protocol::error::ApiError;
use protocol::file_name::sanitize;
use protocol::json_body::JsonBody;
use protocol::object_path::PathInBucket;
use protocol::query::Query;
use protocol::reserved_paths;
use protocol::time_format::iso_time;
use serde::{Deserialize, Serialize};
use service::auth::Caller;
use service::limits::{ZIP_BODY_BYTES_MAX, ZIP_DOWNLOAD_LIFETIME, ZIP_PATHS_MAX};
use service::parameters::{BucketNameParameter, EntryPathSchema, FolderPathSchema};
use service::path_params::UrlToken;
use service::replies::Success;
use service::request_context::{Path, RoutedContext};
use service::state::AppState;
use service::zip::{ZipDownload, zip_contents, zip_response};
use utoipa::ToSchema;

const EXTENSION: &str = ".zip";

/// Selection of files for a zip archive.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ZipRequest {
    /// Files, and folders, which end in `/`.
    #[schema(value_type = Vec<EntryPathSchema>, min_items = 1, max_items = 10_000)]
    paths: Vec<String>,
    /// File name of the archive.
    #[serde(default)]
    name: Option<String>,
}

/// Prepared zip archive.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ZipReply {
    /// URL of the archive, which needs no credential.
    url: String,
    /// Number of files.
    files: u64,
    /// Bytes of the files.
    bytes: u64,
    expires_at: String,
}

/// Returns a folder as a zip archive.
#[utoipa::path(
    get,
    path = "/api/buckets/{bucketName}/zip",
    operation_id = "zipFolder",
    tag = "Files",
    params(
        BucketNameParameter,
        ("prefix" = Option<FolderPathSchema>, Query, description = "Folder, such as `2026/`; the whole bucket if \
            absent."),
        ("name" = Option<String>, Query, description = "File name of the archive; the folder's if absent."),
    ),
    responses(
        (status = OK, description = "Zip archive.", content_type = "application/zip"),
        (status = BAD_REQUEST, description = "`bad_path`; `zip_too_large`: more than 200,000 files."),
        (status = NOT_FOUND, description = "`bucket_not_found`; `file_not_found`: the folder has no files."),
        (status = SERVICE_UNAVAILABLE, description = "`overloaded`: too many archives are being downloaded."),
    )
)]
pub async fn folder(
    State(app): State<AppState>,
    caller: Caller,
    Path(name): Path<BucketName>,
    query: Query,
    request: Request<Body>,
) -> Result<Response, ApiError> {
    let prefix = query.string(&["prefix"])?.unwrap_or_default();
    let folder = PathInBucket::parse(&prefix)?;
    if let PathInBucket::File(_) = folder {
        return Err(ApiError::bad_parameter("prefix", "must be a folder, which ends in \"/\""));
    }
    let paths = vec![folder];
    let bucket = readable_bucket(&app, &caller, &name, &paths)?;
    let file_name = archive_name(query.string(&["name"])?, &bucket, &paths);
    let contents = zip_contents(&app, bucket, paths).await?;
    zip_response(&app, request.method(), contents, &file_name).await
}

/// Prepares a zip archive of selected files and folders.
#[utoipa::path(
    post,
    path = "/api/buckets/{bucketName}/zips",
    operation_id = "prepareZip",
    tag = "Files",
    params(BucketNameParameter),
    request_body = ZipRequest,
    responses(
        (status = OK, body = ZipReply),
        (status = NOT_FOUND, description = "`bucket_not_found`; `file_not_found`: no file matches."),
        (status = SERVICE_UNAVAILABLE, description = "`overloaded`: too many archives are prepared."),
    )
)]
pub async fn prepare(
    State(app): State<AppState>,
    caller: Caller,
    Path(name): Path<BucketName>,
    request: Request<Body>,
) -> Result<Success<ZipReply>, ApiError> {
    let selection: ZipRequest =
        JsonBody::receive(request, ZIP_BODY_BYTES_MAX).await?.deserialize()?;
    if selection.paths.is_empty() || selection.paths.len() > ZIP_PATHS_MAX {
        return Err(ApiError::bad_parameter("paths", "must have 1 to 10000 paths"));
    }
    let paths = selection.paths.iter().map(|path| PathInBucket::parse(path));
    let paths = paths.collect::<Result<Vec<_>, _>>()?;
    let bucket = readable_bucket(&app, &caller, &name, &paths)?;
    let file_name = archive_name(selection.name, &bucket, &paths);
    let contents = zip_contents(&app, bucket, paths.clone()).await?;
    let download = ZipDownload {
        account: caller.account().id.clone(),
        issuer: caller.durable_issuer(),
        bucket: name,
        paths,
        file_name,
    };
    let secret = app.zip_downloads.add(download, &*app.rng, app.clock.monotonic_ms());
    let secret = secret.ok_or_else(|| ApiError::overloaded(ZIP_DOWNLOAD_LIFETIME.as_secs()))?;
    let life_ms = 1_000 * ZIP_DOWNLOAD_LIFETIME.as_secs();
    Ok(Success(ZipReply {
        url: format!("{}{}{secret}", app.public_url.as_str(), reserved_paths::ZIP_PATH),
        files: contents.files(),
        bytes: contents.content_bytes(),
        expires_at: iso_time(app.clock.unix_ms().saturating_add(life_ms)),
    }))
}

/// Returns a prepared zip archive.
#[utoipa::path(
    get,
    path = "/-/zip/{token}",
    operation_id = "downloadZip",
    tag = "Files",
    security(()),
    params(("token" = String, Path, description = "Secret of the prepared archive.")),
    responses(
        (status = OK, description = "Zip archive.", content_type = "application/zip"),
        (status = NOT_FOUND, description = "`link_not_found`; `file_not_found`: the files were deleted."),
        (status = GONE, description = "`token_revoked`: the caller who prepared it may no longer read the files."),
        (status = SERVICE_UNAVAILABLE, description = "`overloaded`: too many archives are being downloaded."),
    )
)]
pub async fn download(
    State(app): State<AppState>,
    Path(UrlToken(secret)): Path<UrlToken>,
    request: Request<Body>,
) -> Result<Response, ApiError> {
    let prepared = app.zip_downloads.get(&secret, app.clock.monotonic_ms());
    let prepared = prepared.ok_or_else(ApiError::link_not_found)?;
    let issuer = Caller::from_issuer(&app.catalog, &prepared.issuer);
    let issuer = issuer.ok_or_else(ApiError::token_revoked)?;
    let bucket = readable_bucket(&app, &issuer, &prepared.bucket, &prepared.paths)
        .map_err(|why| ApiError::token_revoked().with_log(why.to_string()))?;
    RoutedContext::attribute(request.extensions(), &bucket, app.clock.unix_ms());
    let contents = zip_contents(&app, bucket, prepared.paths.clone()).await?;
    zip_response(&app, request.method(), contents, &prepared.file_name).await
}

/// Returns the bucket, if the caller may list and read all of the paths.
fn readable_bucket(
    app: &AppState,
    caller: &Caller,
    name: &BucketName,
    paths: &[PathInBucket],
) -> Result<Arc<Bucket>, ApiError> {
    caller.bucket(&app.catalog, name, Scope::List)?;
    let bucket = caller.bucket(&app.catalog, name, Scope::Read)?;
    paths.iter().try_for_each(|path| caller.require_path_access(path))?;
    Ok(bucket)
}

/// Returns the file name of an archive: as requested, or else that of its only file or folder, or of the bucket.
fn archive_name(requested: Option<String>, bucket: &Bucket, paths: &[PathInBucket]) -> String {
    let only = match paths {
        [path] => path.as_str().trim_end_matches('/').rsplit('/').next().and_then(sanitize),
        _ => None,
    };
    let name = requested.as_deref().and_then(sanitize).or(only);
    let name = name.unwrap_or_else(|| bucket.name.to_string());
    match name.to_ascii_lowercase().ends_with(EXTENSION) {
        true => name,
        false => format!("{name}{EXTENSION}"),
    }
}
