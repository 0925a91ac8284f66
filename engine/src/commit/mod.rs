//! Write path: batches, commit queue, group commit.
//!
//! A batch is acknowledged once it is durable, or rejected. The committer takes the queued batches, checks the
//! preconditions of each against everything before it, writes one group, syncs once, publishes, and only then
//! acknowledges. There is no timer: the next group gathers during the sync.

mod apply;
mod batch;
mod checkpoint;
mod committer;
mod health;
mod held;
mod lately;
mod load;
mod moves;
mod queue;
mod rollover;

pub(crate) use self::batch::Operation;
pub use self::batch::{Batch, CommitInfo, Etag, ObjectChange, Precondition, PutOptions};
pub(crate) use self::checkpoint::{checkpoint, write_checkpoint};
pub use self::committer::CommitStep;
pub(crate) use self::committer::{Committer, CommitterContext};
pub use self::health::Health;
pub(crate) use self::health::HealthState;
pub(crate) use self::lately::RecentNoncurrent;
pub use self::lately::{NoncurrentReason, NoncurrentVersion};
pub(crate) use self::load::CommitLatency;
pub(crate) use self::moves::{is_move, is_same_file, may_be_move};
pub(crate) use self::queue::Queue;
pub(crate) use self::rollover::Rollover;
