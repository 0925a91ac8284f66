//! Copy of one file inside its bucket.
//!
//! Guarantees: a copy is stored like an upload, within the limits and quotas of the bucket; content type, headers,
//! metadata and tags are preserved; memory is bounded by one chunk of the body. Non-goals: folders, other buckets.

use std::ops::ControlFlow;
use std::sync::Arc;

use catalog::{Bucket, EventKind, OnConflict, UploadParams};
use engine::{Batch, Error, ObjectKey, ObjectName, Precondition};
use protocol::error::ApiError;
use protocol::file_name::ConflictRule;
use usage::task::blocking;

use super::MovedFile;
use super::moving::object_exists;
use crate::limits;
use crate::state::AppState;
use crate::upload::{StagedFile, UploadOptions, store_files};

/// Copies a file. A file that changes during the copy is copied in its newest version.
pub async fn copy_file(
    app: &AppState,
    bucket: &Arc<Bucket>,
    from: &ObjectKey,
    to: &ObjectKey,
    on_taken: OnConflict,
) -> Result<MovedFile, ApiError> {
    let _turn = app.copy_permits.acquire().await.map_err(|_| ApiError::overloaded(1))?;
    let name = ObjectName::new(bucket.name.clone(), from.clone());
    let rule = match on_taken {
        // The batch requires that the name is free.
        OnConflict::Overwrite | OnConflict::Refuse => ConflictRule::Overwrite,
        OnConflict::Rename => ConflictRule::Rename,
    };
    let manner =
        UploadOptions::new(UploadParams { rule, ..UploadParams::NONE }, EventKind::CreatedByCopy);
    for _ in 0..limits::MOVE_TRIES_MAX {
        let (store, looked_up) = (app.store.clone(), name.clone());
        let object = blocking(move || store.get(&looked_up)).await?;
        let object = object.ok_or_else(ApiError::file_not_found)?;
        if object.is_derived() {
            return Err(ApiError::bad_request("A thumbnail cannot be copied without its file"));
        }
        let mut along = Batch::new();
        if on_taken == OnConflict::Refuse {
            if object_exists(app, bucket, to).await? {
                return Err(ApiError::file_exists());
            }
            let target = ObjectName::new(bucket.name.clone(), to.clone());
            along = along.require(Precondition::KeyAbsent(target));
        }
        let (store, source, draining) = (app.store.clone(), object.clone(), app.clone());
        let staged = blocking(move || {
            store.stage_copy(&source, &mut |_| match draining.is_draining() {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            })
        });
        let staged = match staged.await {
            Ok(staged) => staged,
            Err(Error::Conflict(_)) => continue,
            Err(error) => return Err(error.into()),
        };
        let files = vec![StagedFile::copy_of(&object, staged)];
        let kept = store_files(app, bucket, manner, along, files, std::slice::from_ref(to)).await?;
        let kept = kept.into_iter().next();
        let kept = kept.ok_or_else(|| ApiError::internal("a copy stored nothing"))?;
        return Ok(MovedFile { object: kept.object, renamed: kept.renamed });
    }
    Err(ApiError::conflict("The file kept changing: try again"))
}
