//! Offline consistency check and repair of a store.
//!
//! ```text
//! check     STORE and headers (ground) -> log and compacted segments (chain, groups) -> index against records
//!           (matching), with the big segments of its objects (big) -> orphans
//! repair    check -> apply remedies -> check
//! ```
//!
//! Guarantees: a check changes nothing, handles any state of a store, and uses bounded memory. A repair applies only
//! the remedies of the findings, and can be interrupted at any point and restarted.
//! Non-goals: open stores; exit codes.

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
pub use self::repair::{RepairOptions, RepairReport, repair};
pub use self::report::Report;
