//! Online compaction: reclaims the space of dead records.
//!
//! A step copies the live records of the selected segments (`plan`) into new segments (`rewrite`) and syncs them;
//! commits the copies by one log record; repoints the index to the copies in small batches, each entry only if no newer
//! record exists; writes a checkpoint; and removes the originals. After a crash before the log record, the copies are
//! orphans. After a later crash, recovery finishes the step.
//!
//! If there is no space for the copies, dead bodies are punched instead (`hole_punching`).
//!
//! Guarantees: readers are not interrupted; an original is removed only when the index durably no longer refers to it;
//! steps are sequential, so no segment is replaced twice concurrently.
//! Non-goals: the schedule of background compaction (`store/background_threads.rs`).

mod compactor;
mod hole_punching;
mod plan;
mod rewrite;
mod throttle;

use self::compactor::CompactionProgress;
pub use self::compactor::CompactionReport;
pub(crate) use self::compactor::{Compactor, CompactorContext};
pub use self::plan::{CompactionInput, CompactionPlan, CompactionRules, CompactionStep};
pub(crate) use self::throttle::Throttle;

/// Options of background compaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CompactionOptions {
    /// Maximum copy rate in bytes per second. The rate is reduced while commits are slower than usual.
    pub bytes_per_second_max: u64,
    /// Interval between checks for work, in milliseconds.
    pub poll_ms: u64,
}
