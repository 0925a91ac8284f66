//! Files that are put elsewhere in their bucket, deleted many at once, or brought back.
//!
//! ```text
//! copying     a file to another name, stored like an upload
//! moving      a file to another name: its body copied, then put and deleted in one batch
//! deleting    many files, of versions that were seen
//! restoring   a version that is gone, put again
//! log_look    whose turn it is to read the log
//! ```
//!
//! Promises: each batch requires the versions that were read, so nothing that is written meanwhile is lost or undone;
//! thumbnails go with their files; webhooks are told; a bucket that is deleted meanwhile gets nothing more.
//! Never here: who may do it, jobs, what the answer looks like.

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

/// Says that work is to stop.
pub type IsStopped = std::sync::Arc<dyn Fn() -> bool + Send + Sync>;

/// An empty batch for a bucket: it requires that the bucket is there.
fn batch_in(bucket: &Bucket) -> Result<Batch, ApiError> {
    let fact = bucket.fact().map_err(|why| ApiError::internal(why.to_string()))?;
    Ok(Batch::new().require(Precondition::FactPresent(fact)))
}

/// Commits a batch that moves so much. In a bucket with versions what is moved stays where it was, as a noncurrent
/// version, which needs room.
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

/// Commits a batch that needs no room, also when whoever asked for it goes away.
async fn commit_telling(
    app: &AppState,
    bucket: &Bucket,
    batch: Batch,
    happenings: Vec<Happening>,
) -> engine::Result<engine::Committed> {
    let (catalog, bucket) = (app.catalog.clone(), bucket.name.clone());
    to_its_end(async move { catalog.commit_telling(&bucket, batch, &happenings).await }).await
}
