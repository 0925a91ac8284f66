//! `POST /api/buckets/{bucketName}/download-links`: creates a temporary public URL of one file.
//!
//! Guarantees: nothing is stored for a link; it allows GET and HEAD of this one file only, with the current rights of
//! its creator. Non-goals: encoding and signing.

use axum::extract::State;
use catalog::{Access, Grant, Purpose, Scope, TokenId, UploadParams};
use engine::{BucketName, Object};
use jobs::object_operations::find_object;
use protocol::error::ApiError;
use protocol::json_body::JsonBody;
use protocol::object_path::PathInBucket;
use protocol::public_url::public_url;
use protocol::time_format::iso_time;
use serde::{Deserialize, Serialize};
use service::auth::Caller;
use service::limits;
use service::parameters::{BucketNameParameter, FilePathSchema};
use service::replies::Success;
use service::request_context::Path;
use service::state::AppState;
use utoipa::ToSchema;

use super::file_in;

/// Request for a download link.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct DownloadLinkRequest {
    #[schema(value_type = FilePathSchema)]
    path: String,
    /// Lifetime in seconds, 1 to 604800; default 3600.
    #[schema(minimum = 1, maximum = 604_800)]
    #[serde(default)]
    expires_in: Option<u64>,
}

/// Temporary download link.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct DownloadLinkReply {
    url: String,
    expires_at: String,
}

/// Creates a temporary download link for one file of a private bucket.
#[utoipa::path(
    post,
    path = "/api/buckets/{bucketName}/download-links",
    operation_id = "makeDownloadLink",
    tag = "Files",
    params(BucketNameParameter),
    request_body = DownloadLinkRequest,
    responses(
        (status = OK, body = DownloadLinkReply),
        (status = NOT_FOUND, description = "`bucket_not_found`, `file_not_found`."),
        (status = CONFLICT, description = "`conflict`: the bucket is public, so its URLs need no \
            link."),
    )
)]
pub async fn create(
    State(app): State<AppState>,
    caller: Caller,
    Path(name): Path<BucketName>,
    body: JsonBody,
) -> Result<Success<DownloadLinkReply>, ApiError> {
    caller.bucket(&app.catalog, &name, Scope::Presign)?;
    let bucket = caller.bucket(&app.catalog, &name, Scope::Read)?;
    let wish: DownloadLinkRequest = body.deserialize()?;
    let key = file_in(&wish.path)?;
    caller.require_key_access(&key)?;
    let expires_in = wish.expires_in.unwrap_or(limits::PRESIGN_SECONDS_DEFAULT);
    if !(1..=limits::DOWNLOAD_LINK_SECONDS_MAX).contains(&expires_in) {
        return Err(ApiError::bad_parameter("expiresIn", "must be a number from 1 to 604800"));
    }
    if bucket.access == Access::Public {
        return Err(ApiError::conflict("The bucket is public: use the plain URL"));
    }
    let name = engine::ObjectName::new(bucket.name.clone(), key);
    let found = find_object(&app.store, &name).await?;
    let is_current = |it: &Object| !bucket.is_expired(it, || app.clock.unix_ms());
    found.filter(is_current).ok_or_else(ApiError::file_not_found)?;
    let expires_ms = app.clock.unix_ms().saturating_add(1_000 * expires_in);
    let grant = Grant {
        id: TokenId::issue(&*app.rng),
        purpose: Purpose::Read,
        bucket: name.bucket.clone(),
        path: PathInBucket::File(name.key.clone()),
        params: UploadParams::NONE,
        issuer: caller.durable_issuer(),
        expires_ms,
    };
    // Without a signing key, which only happens if the store has never accepted a write.
    let text = app.catalog.tokens().sign(&grant).ok_or_else(|| ApiError::overloaded(60))?;
    let url = format!("{}?token={text}", public_url(app.public_url.as_str(), &name));
    Ok(Success(DownloadLinkReply { url, expires_at: iso_time(expires_ms) }))
}
