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

use catalog::claims::Claim;
use catalog::{Bucket, ObjectBatch, ObjectEvent, StoredAmount};
use engine::{Batch, BucketName, Object, ObjectKey, ObjectName, Precondition, Store};
use protocol::error::ApiError;
use protocol::file_name::{ConflictRule, NameProposal};
use usage::task::{blocking, run_to_completion};

use crate::Context;

pub use self::copying::copy_file;
pub(crate) use self::deletion::{DeleteOutcome, delete_versions};
pub use self::moving::move_file;
pub(crate) use self::moving::move_versions;
pub(crate) use self::undelete::undelete_many;
pub use self::undelete::{UndeleteTarget, log_span, undelete};

/// Cancellation check of long operations.
pub(crate) type CancelCheck = Arc<dyn Fn() -> bool + Send + Sync>;

/// Looks an object up on a blocking thread.
pub async fn find_object(store: &Store, name: &ObjectName) -> engine::Result<Option<Object>> {
    let (store, name) = (store.clone(), name.clone());
    blocking(move || store.get(&name)).await
}

/// Creates a batch for a bucket, which requires that the bucket exists.
fn bucket_batch(bucket: &Bucket) -> Result<Batch, ApiError> {
    let fact = bucket.fact().map_err(|why| ApiError::internal(why.to_string()))?;
    Ok(Batch::new().require(Precondition::FactPresent(fact)))
}

/// Claims a free key: the wanted one, or one with a number. Blocks on the index.
fn claim_free_key(
    context: &Context,
    bucket: &BucketName,
    key: &ObjectKey,
) -> Result<(NameProposal, Vec<Claim<ObjectName>>), ApiError> {
    let (rule, wanted) = (ConflictRule::Rename, std::slice::from_ref(key));
    let (proposals, claims) = context.claims.claim_keys(&context.store, bucket, rule, wanted)?;
    let proposal = proposals.into_iter().next();
    Ok((proposal.ok_or_else(|| ApiError::internal("no name is proposed"))?, claims))
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
    run_to_completion(
        async move { catalog.commit(ObjectBatch::new(&bucket, batch, &events)).await },
    )
    .await
}
