//! Copy of one file inside its bucket.
//!
//! Guarantees: a copy is stored like an upload, within the limits and quotas of the bucket; content type, headers,
//! metadata and tags are preserved; memory is bounded by one chunk of the body. Non-goals: folders, other buckets.

use std::ops::ControlFlow;
use std::sync::Arc;

use catalog::{Actor, Bucket, OnConflict};
use engine::{Batch, Error, ObjectKey, ObjectName};
use protocol::error::ApiError;
use protocol::object_path::PathInBucket;
use usage::task::blocking;

use super::find_object;
use super::moving::object_exists;
use crate::Context;
use crate::limits;
use crate::services::{NewFile, Services, StoredFile};

/// Copies a file. A file that changes during the copy is copied in its newest version.
pub async fn copy_file(
    context: &Arc<Context>,
    services: &dyn Services,
    actor: Actor,
    bucket: &Arc<Bucket>,
    from: &ObjectKey,
    to: &ObjectKey,
    on_conflict: OnConflict,
) -> Result<StoredFile, ApiError> {
    let _permit = context.copy_permit().await?;
    let name = ObjectName::new(bucket.name.clone(), from.clone());
    for _ in 0..limits::MOVE_TRIES_MAX {
        let object = find_object(&context.store, &name).await?;
        let object = object.ok_or_else(ApiError::file_not_found)?;
        if object.is_derived() {
            return Err(ApiError::bad_request("A thumbnail cannot be copied without its file"));
        }
        if on_conflict == OnConflict::Refuse && object_exists(context, bucket, to).await? {
            return Err(ApiError::file_exists());
        }
        let (context, source) = (context.clone(), object.clone());
        let staged = blocking(move || {
            context.store.stage_copy(&source, &mut |_| match context.is_draining() {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            })
        });
        let body = match staged.await {
            Ok(body) => body,
            Err(Error::Conflict(_)) => continue,
            Err(error) => return Err(error.into()),
        };
        let (place, file) = (PathInBucket::File(to.clone()), NewFile::Copy { body, of: object });
        return services.store(actor, bucket, place, file, on_conflict, Batch::new()).await;
    }
    Err(ApiError::conflict("The file kept changing: try again"))
}
