//! `DELETE /{bucket}/{*path}`: one file, or what lies in a folder.
//!
//! Promises: one request is one batch, all of it or nothing.

use axum::extract::State;
use engine::{Batch, BucketName, Conflict, Error, FolderKey, ObjectKey, ObjectName, Precondition};
use http::Uri;

use crate::auth::Caller;
use crate::bridge::blocking;
use crate::catalog::{Happening, Scope};
use crate::error::ApiError;
use crate::limits;
use crate::parameters::PlaceParameters;
use crate::replies::{DeleteReply, Remainder};
use crate::state::AppState;
use crate::target::{Place, Target};

/// Deletes a file, or up to 100 files of a folder.
#[utoipa::path(
    delete,
    path = "/{bucket}/{path}",
    operation_id = "delete",
    tag = "Files",
    params(PlaceParameters),
    responses((status = OK, body = DeleteReply))
)]
pub async fn delete(
    State(app): State<AppState>,
    caller: Caller,
    uri: Uri,
) -> Result<DeleteReply, ApiError> {
    let Target { bucket, place } = Target::from_path(uri.path())?;
    caller.bucket(&app.catalog, &bucket, Scope::Delete)?;
    caller.check_place(&place)?;
    match place {
        Place::File(key) => delete_file(&app, bucket, key).await,
        Place::Folder(folder) => delete_folder(&app, bucket, folder).await,
    }
}

async fn delete_file(
    app: &AppState,
    bucket: BucketName,
    key: ObjectKey,
) -> Result<DeleteReply, ApiError> {
    let name = ObjectName::new(bucket, key);
    let batch = Batch::new().require(Precondition::KeyPresent(name.clone())).delete(name.clone());
    let happenings = [Happening::removed(name.key.clone())];
    match app.catalog.commit_telling(&name.bucket, batch, &happenings).await {
        Ok(_) => Ok(DeleteReply::file(name.bucket.as_str(), name.key.as_str())),
        Err(Error::Conflict(Conflict::KeyMissing(_))) => Err(ApiError::file_not_found()),
        Err(error) => Err(error.into()),
    }
}

async fn delete_folder(
    app: &AppState,
    bucket: BucketName,
    folder: FolderKey,
) -> Result<DeleteReply, ApiError> {
    if folder.is_root() {
        return Err(ApiError::bad_request(
            "A bucket's root is not deleted: name a file or a folder",
        ));
    }
    let page = {
        let (store, bucket, folder) = (app.store.clone(), bucket.clone(), folder.clone());
        let list =
            move || store.list_keys(&bucket, folder.as_str(), None, limits::DELETE_FILES_MAX);
        blocking(list).await?
    };
    let delete = |batch: Batch, object: &engine::Object| batch.delete(object.name().clone());
    let batch = page.objects.iter().fold(Batch::new(), delete);
    if batch.is_empty() {
        return Err(ApiError::file_not_found());
    }
    let removed = |object: &engine::Object| Happening::removed(object.name().key.clone());
    let happenings: Vec<_> = page.objects.iter().map(removed).collect();
    let committed = app.catalog.commit_telling(&bucket, batch, &happenings).await?;
    let deleted_count = committed.deleted_count;
    let rest = if page.more { Remainder::More } else { Remainder::Nothing };
    Ok(DeleteReply::folder(bucket.as_str(), folder.as_str(), deleted_count, rest))
}
