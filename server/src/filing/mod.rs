//! Object operations: moving, copying, batch deletion and restoring of files.
//!
//! ```text
//! copying     copy of a file, stored like an upload
//! moving      move of a file: its body copied, then put and deleted in one batch
//! deleting    batch deletion of files, by version
//! restoring   a deleted version, stored again
//! log_look    lock for log scans
//! ```
//!
//! Guarantees: each batch requires the versions that were read, so no concurrent write is lost or undone; thumbnails
//! follow their files; webhooks get the events; nothing is written to a bucket that is deleted concurrently. Non-goals:
//! authorization, jobs, the response.

mod copying;
mod deleting;
mod log_look;
mod moving;
mod restoring;

use engine::{Batch, Precondition};

use crate::bridge::to_its_end;
use crate::catalog::{Amount, Bucket, Happening};
use crate::error::ApiError;
use crate::intake::{commit_in, make_room};
use crate::state::AppState;

pub use self::copying::copy_file;
pub use self::deleting::{Deleted, delete_seen};
pub use self::log_look::look_through_log;
pub use self::moving::{Moved, MovedMany, move_file, move_many};
pub use self::restoring::{RestoredMany, Wanted, put_back, restore_many, span_of};

/// Cancellation check of long operations.
pub type IsStopped = std::sync::Arc<dyn Fn() -> bool + Send + Sync>;

/// Creates a batch for a bucket, which requires that the bucket exists.
fn batch_in(bucket: &Bucket) -> Result<Batch, ApiError> {
    let fact = bucket.fact().map_err(|why| ApiError::internal(why.to_string()))?;
    Ok(Batch::new().require(Precondition::FactPresent(fact)))
}

/// Commits a batch of moves, with a quota reservation for a versioned bucket, where the moved version remains as a
/// noncurrent version.
async fn commit_moves(
    app: &AppState,
    bucket: &Bucket,
    batch: Batch,
    happenings: Vec<Happening>,
    moved: Amount,
) -> Result<engine::Result<engine::Committed>, ApiError> {
    if bucket.versioning.is_none() {
        return Ok(commit_telling(app, bucket, batch, happenings).await);
    }
    let room = make_room(app, bucket, moved, None).await?;
    Ok(commit_in(app, &bucket.name, batch, happenings, room).await)
}

/// Commits a batch that needs no quota, even if its caller is dropped.
async fn commit_telling(
    app: &AppState,
    bucket: &Bucket,
    batch: Batch,
    happenings: Vec<Happening>,
) -> engine::Result<engine::Committed> {
    let (catalog, bucket) = (app.catalog.clone(), bucket.name.clone());
    to_its_end(async move { catalog.commit_telling(&bucket, batch, &happenings).await }).await
}
