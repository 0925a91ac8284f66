//! Checking a store that is closed, and repairing it.
//!
//! ```text
//! check     STORE and headers (ground) -> log and compacted segments (chain, groups) -> index against records
//!           (matching), with the big segments that they name (big) -> what nothing names (orphans)
//! repair    check -> apply remedies -> check
//! ```
//!
//! Promises: a check changes no byte, opens whatever there is, and holds a bounded part of it in memory. A repair does
//! what the findings' remedies say and nothing else, and may be cut off anywhere and begun again.
//! Never here: stores that are open; exit codes.

mod beside;
mod big;
mod chain;
mod check;
mod finding;
mod ground;
mod groups;
mod index;
mod known;
mod matching;
mod names;
mod orphans;
mod repair;
mod report;
mod turns;

pub use self::check::{CheckOptions, check};
pub use self::finding::{Finding, Remedy, Severity};
pub use self::repair::{RepairOptions, Repaired, repair};
pub use self::report::Report;
