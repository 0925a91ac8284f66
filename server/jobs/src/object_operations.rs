//! Object operations: moving, copying, batch deletion and restoring of files.
//!
//! ```text
//! copying     copy of a file, stored like an upload
//! moving      move of a file: its body copied, then put and deleted in one batch
//! deletion    batch deletion of files, by version
//! undelete    a deleted version, stored again
//! ```
//!
//! Guarantees: each batch requires the versions that were read, so no concurrent write is lost or undone; thumbnails
//! follow their files; webhooks get the events; nothing is written to a bucket that is deleted concurrently. Non-goals:
//! authorization, jobs, the response.

mod copying;
mod deletion;
mod moving;
mod undelete;

use std::sync::Arc;

use catalog::{Bucket, ObjectEvent, StoredAmount};
use engine::{Batch, Precondition};
use protocol::error::ApiError;
use usage::task::run_to_completion;

use crate::Context;

pub use self::copying::copy_file;
pub use self::deletion::{DeleteOutcome, delete_versions};
pub use self::moving::{MoveReport, move_file, move_versions};
pub use self::undelete::{UndeleteReport, UndeleteTarget, log_span, undelete, undelete_many};

/// Cancellation check of long operations.
pub type CancelCheck = Arc<dyn Fn() -> bool + Send + Sync>;

/// Creates a batch for a bucket, which requires that the bucket exists.
fn bucket_batch(bucket: &Bucket) -> Result<Batch, ApiError> {
    let fact = bucket.fact().map_err(|why| ApiError::internal(why.to_string()))?;
    Ok(Batch::new().require(Precondition::FactPresent(fact)))
}

/// Commits a batch of moves, with a quota reservation for a versioned bucket, where the moved version remains as a
/// noncurrent version.
async fn commit_moves(
    context: &Arc<Context>,
    bucket: &Bucket,
    batch: Batch,
    events: Vec<ObjectEvent>,
    moved: StoredAmount,
) -> Result<engine::Result<engine::CommitInfo>, ApiError> {
    if bucket.versioning.is_none() {
        return Ok(commit_detached(context, bucket, batch, events).await);
    }
    let reservation = context.catalog.reserve_quota(bucket, moved, None).await?;
    Ok(context.catalog.commit_reserved(&bucket.name, batch, events, reservation).await)
}

/// Commits a batch that needs no quota, even if its caller is dropped.
async fn commit_detached(
    context: &Arc<Context>,
    bucket: &Bucket,
    batch: Batch,
    events: Vec<ObjectEvent>,
) -> engine::Result<engine::CommitInfo> {
    let (catalog, bucket) = (context.catalog.clone(), bucket.name.clone());
    run_to_completion(async move { catalog.commit_with_events(&bucket, batch, &events).await })
        .await
}
