//! `DELETE /{bucket}/{*path}`: deletes one file, or the files in a folder.
//!
//! Guarantees: one request is one atomic batch; thumbnails are deleted with their files and do not count.

use std::collections::BTreeSet;

use axum::extract::State;
use catalog::{Catalog, ObjectBatch, ObjectEvent, Scope};
use engine::{Batch, BucketName, Conflict, Error, FolderKey, ObjectKey, ObjectName, Precondition};
use jobs::limits;
use jobs::thumbnail_object::delete_thumbnail;
use protocol::error::ApiError;
use protocol::object_path::{ObjectPath, PathInBucket};
use service::auth::Caller;
use service::parameters::ObjectPathParameters;
use service::replies::{DeleteReply, Success, Truncation};
use service::request_context::Target;
use service::state::AppState;
use usage::task::blocking;

/// Deletes a file, or up to 100 files of a folder.
#[utoipa::path(
    delete,
    path = "/{bucket}/{path}",
    operation_id = "delete",
    tag = "Files",
    params(ObjectPathParameters),
    responses((status = OK, body = DeleteReply))
)]
pub async fn delete(
    State(app): State<AppState>,
    caller: Caller,
    Target(ObjectPath { bucket, place }): Target,
) -> Result<Success<DeleteReply>, ApiError> {
    caller.bucket(&app.catalog, &bucket, Scope::Delete)?;
    caller.require_path_access(&place)?;
    let catalog = app.catalog.acting_as(caller.actor());
    match place {
        PathInBucket::File(key) => delete_file(&catalog, bucket, key).await,
        PathInBucket::Folder(folder) => delete_folder(&app, &catalog, bucket, folder).await,
    }
}

async fn delete_file(
    catalog: &Catalog,
    bucket: BucketName,
    key: ObjectKey,
) -> Result<Success<DeleteReply>, ApiError> {
    let name = ObjectName::new(bucket, key);
    let batch = Batch::new().require(Precondition::KeyPresent(name.clone())).delete(name.clone());
    let batch = delete_thumbnail(batch, &name);
    let events = [ObjectEvent::removed(name.key.clone())];
    match catalog.commit(ObjectBatch::new(&name.bucket, batch, &events)).await {
        Ok(_) => Ok(Success(DeleteReply::file(name.bucket.as_str(), name.key.as_str()))),
        Err(Error::Conflict(Conflict::KeyMissing(_))) => Err(ApiError::file_not_found()),
        Err(error) => Err(error.into()),
    }
}

async fn delete_folder(
    app: &AppState,
    catalog: &Catalog,
    bucket: BucketName,
    folder: FolderKey,
) -> Result<Success<DeleteReply>, ApiError> {
    if folder.is_root() {
        return Err(ApiError::bad_request(
            "The root of a bucket cannot be deleted: name a file or folder, or use an \
            `emptyBucket` job",
        ));
    }
    let files = {
        let (app, bucket, folder) = (app.clone(), bucket.clone(), folder.clone());
        blocking(move || first_files(&app, &bucket, &folder)).await?
    };
    if files.batch.is_empty() {
        return Err(ApiError::file_not_found());
    }
    let committed = catalog.commit(ObjectBatch::new(&bucket, files.batch, &files.events)).await?;
    let deleted_count = committed.deleted_count;
    let (bucket, folder) = (bucket.as_str(), folder.as_str());
    Ok(Success(DeleteReply::folder(bucket, folder, deleted_count, files.rest)))
}

/// Files that one request deletes.
struct DeletePage {
    batch: Batch,
    events: Vec<ObjectEvent>,
    rest: Truncation,
}

/// Returns the first files of a folder, with their thumbnails. Blocks on the index.
fn first_files(
    app: &AppState,
    bucket: &BucketName,
    folder: &FolderKey,
) -> Result<DeletePage, ApiError> {
    // A thumbnail follows its file in key order, so this many keys contain enough files.
    let limit = 2 * limits::DELETE_FILES_MAX;
    let page = app.store.list_keys(bucket, folder.as_str(), None, limit)?;
    let mut files =
        DeletePage { batch: Batch::new(), events: Vec::new(), rest: Truncation::Complete };
    let mut deleted = BTreeSet::new();
    let mut count = 0;
    for object in &page.objects {
        let name = object.name();
        if object.is_derived() && deleted.contains(object.attributes()) {
            continue;
        }
        if count == limits::DELETE_FILES_MAX {
            files.rest = Truncation::More;
            return Ok(files);
        }
        count += 1;
        if object.is_derived() {
            // A thumbnail without its file.
            let attributes = object.attributes().to_vec();
            files.batch = files.batch.delete_derived(name.clone(), attributes);
            continue;
        }
        deleted.insert(name.key.as_str().as_bytes());
        files.batch = delete_thumbnail(files.batch.delete(name.clone()), name);
        files.events.push(ObjectEvent::removed(name.key.clone()));
    }
    if page.more {
        files.rest = Truncation::More;
    }
    Ok(files)
}
