//! `POST /api/buckets/{bucketName}/move` and `/copy`: moves or copies a file within its bucket.

use axum::extract::State;
use catalog::{OnConflict, Scope};
use engine::{BucketName, ObjectKey};
use jobs::object_operations::{copy_file, move_file};
use jobs::services::StoredFile;
use protocol::error::ApiError;
use protocol::json_body::JsonBody;
use protocol::object_path::check_writable;
use protocol::public_url::public_url;
use serde::{Deserialize, Serialize};
use service::auth::Caller;
use service::parameters::{BucketNameParameter, FilePathSchema};
use service::replies::Success;
use service::request_context::Path;
use service::state::AppState;
use utoipa::ToSchema;

use super::file_in;

/// Request to move or copy a file.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct MoveRequest {
    #[schema(value_type = FilePathSchema)]
    from: String,
    #[schema(value_type = FilePathSchema)]
    to: String,
    #[serde(default)]
    on_conflict: Option<OnConflict>,
}

/// New location of a moved or copied file.
#[derive(Serialize, ToSchema)]
pub struct MovedReply {
    path: String,
    url: String,
    /// Whether the file got a different name because the requested one was in use.
    renamed: bool,
}

/// Moves or renames one file within its bucket, including its thumbnail.
#[utoipa::path(
    post,
    path = "/api/buckets/{bucketName}/move",
    operation_id = "moveFile",
    tag = "Moves and undelete",
    params(BucketNameParameter),
    request_body = MoveRequest,
    responses(
        (status = OK, body = MovedReply),
        (status = NOT_FOUND, description = "`bucket_not_found`, `file_not_found`."),
        (status = CONFLICT, description = "`already_exists`: the new name is in use; `conflict`: the file was \
            changed concurrently."),
    )
)]
pub async fn move_one(
    State(app): State<AppState>,
    caller: Caller,
    Path(name): Path<BucketName>,
    body: JsonBody,
) -> Result<Success<MovedReply>, ApiError> {
    caller.bucket(&app.catalog, &name, Scope::Upload)?;
    let bucket = caller.bucket(&app.catalog, &name, Scope::Delete)?;
    let (from, to, on_taken) = requested(&caller, body)?;
    if from == to {
        return Err(ApiError::bad_parameter("to", "must differ from \"from\""));
    }
    let context = app.jobs.acting_as(caller.actor());
    Ok(reply(&app, &move_file(&context, &bucket, &from, &to, on_taken).await?))
}

/// Copies one file within its bucket. The copy is subject to the limits of an upload.
#[utoipa::path(
    post,
    path = "/api/buckets/{bucketName}/copy",
    operation_id = "copyFile",
    tag = "Moves and undelete",
    params(BucketNameParameter),
    request_body = MoveRequest,
    responses(
        (status = OK, body = MovedReply),
        (status = NOT_FOUND, description = "`bucket_not_found`, `file_not_found`."),
        (status = CONFLICT, description = "`already_exists`: the new name is in use; `conflict`: the file was \
            changed concurrently."),
        (status = INSUFFICIENT_STORAGE, description = "`quota_exceeded`, `no_space`."),
    )
)]
pub async fn copy_one(
    State(app): State<AppState>,
    caller: Caller,
    Path(name): Path<BucketName>,
    body: JsonBody,
) -> Result<Success<MovedReply>, ApiError> {
    caller.bucket(&app.catalog, &name, Scope::Read)?;
    let bucket = caller.bucket(&app.catalog, &name, Scope::Upload)?;
    let (from, to, on_taken) = requested(&caller, body)?;
    if from == to && on_taken != OnConflict::Rename {
        let must = "must differ from \"from\", unless \"onConflict\" is \"rename\"";
        return Err(ApiError::bad_parameter("to", must));
    }
    let actor = caller.actor();
    let copied = copy_file(&app.jobs, &app, actor, &bucket, &from, &to, on_taken).await?;
    Ok(reply(&app, &copied))
}

/// Reads source, destination and conflict rule of a move or copy, and checks that the caller may use both paths.
fn requested(
    caller: &Caller,
    body: JsonBody,
) -> Result<(ObjectKey, ObjectKey, OnConflict), ApiError> {
    let wish: MoveRequest = body.deserialize()?;
    let (from, to) = (file_in(&wish.from)?, file_in(&wish.to)?);
    caller.require_key_access(&from)?;
    caller.require_key_access(&to)?;
    check_writable(&to)?;
    Ok((from, to, wish.on_conflict.unwrap_or_default()))
}

fn reply(app: &AppState, moved: &StoredFile) -> Success<MovedReply> {
    let StoredFile { object, renamed } = moved;
    let url = public_url(app.public_url.as_str(), object.name());
    let path = object.name().key.to_string();
    Success(MovedReply { path, url, renamed: *renamed })
}
