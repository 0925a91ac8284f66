//! The way in by the front: batches, one queue, one committer.
//!
//! A batch is answered once it is durable, or refused. The committer takes what waits, decides each batch's
//! preconditions against everything before it, writes one group, syncs once, publishes, and only then answers. There is
//! no timer: while one sync runs, the next group gathers.

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
pub use self::batch::{Batch, Committed, Etag, ObjectChange, Precondition, PutOptions};
pub(crate) use self::checkpoint::{checkpoint, write_checkpoint};
pub use self::committer::Progress;
pub(crate) use self::committer::{Committer, Desk};
pub use self::health::Health;
pub(crate) use self::health::HealthState;
pub(crate) use self::lately::Lately;
pub use self::lately::{GoneVersion, VersionEnd};
pub(crate) use self::load::Load;
pub(crate) use self::moves::{is_same_file, is_what_moved, may_be_move};
pub(crate) use self::queue::Queue;
pub(crate) use self::rollover::Rollover;
