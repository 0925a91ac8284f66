//! Compaction: the space of dead records comes back, while the store is in use.
//!
//! A step copies what is still wanted of some segments (`rewrite`), chosen beforehand (`selection`), into new ones, and
//! makes these durable; commits that by one record in the log; points the index to the copies, a few hundred at a time,
//! each only if nothing newer has taken its place; writes a checkpoint; and removes the originals. Cut off before the
//! record, the copies are orphans. Cut off after it, opening points to them.
//!
//! Where there is no room for the copies, dead bodies are punched out of the segments instead (`punch`).
//!
//! Promises: whoever reads meanwhile reads on; an original is removed only when nothing points to it any more, durably;
//! steps go one at a time, so no segment is ever replaced twice at once.
//! Never here: when to compact by itself (`store/threads.rs`).

mod compactor;
mod punch;
mod rewrite;
mod selection;
mod throttle;

pub use self::compactor::CompactionReport;
use self::compactor::Tally;
pub(crate) use self::compactor::{Compactor, CompactorDesk};
pub use self::selection::{CompactionInput, CompactionRules, CompactionStep, Selection};
pub(crate) use self::throttle::Throttle;
