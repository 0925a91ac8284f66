//! Write path: batches, commit queue, group commit.
//!
//! A batch is acknowledged once it is durable, or rejected. The committer takes the queued batches, checks the
//! preconditions of each against everything before it, writes one group, syncs once, publishes the changes to readers,
//! and only then acknowledges. There is no timer: batches that arrive during a sync form the next group.

mod apply;
mod batch;
mod commit_latency;
mod committer;
mod deferred_callbacks;
mod health;
mod move_detection;
mod queue;
mod recent_noncurrent;
mod rollover;
mod write_checkpoint;

pub(crate) use self::batch::Operation;
pub use self::batch::{Batch, CommitInfo, Etag, ObjectChange, Precondition, PutOptions};
pub(crate) use self::commit_latency::CommitLatency;
pub use self::committer::CommitStep;
pub(crate) use self::committer::{Committer, CommitterContext};
pub use self::health::Health;
pub(crate) use self::health::HealthState;
pub(crate) use self::move_detection::{is_move, is_same_file, may_be_move};
pub(crate) use self::queue::{CommitCallback, Queue};
pub(crate) use self::recent_noncurrent::RecentNoncurrent;
pub use self::recent_noncurrent::{NoncurrentReason, NoncurrentVersion};
pub(crate) use self::rollover::Rollover;
pub(crate) use self::write_checkpoint::{checkpoint, write_checkpoint};
