//! Offline consistency check and repair of a store.
//!
//! ```text
//! check     STORE and headers (survey) -> log and compacted segments (log_continuity, groups) -> index against records
//!           (cross_check), with the big segments of its objects (check_big) -> orphans
//! repair    check -> apply remedies -> check
//! ```
//!
//! Guarantees: a check changes nothing, handles any state of a store, and uses bounded memory. A repair applies only
//! the remedies of the findings, and can be interrupted at any point and restarted.
//! Non-goals: open stores; exit codes.

mod check;
mod check_big;
mod check_report;
mod check_state;
mod cross_check;
mod finding;
mod groups;
mod index_check;
mod log_continuity;
mod name_scan;
mod name_state;
mod orphans;
mod parallel_check;
mod pipeline;
mod repair;
mod survey;
mod suspect;
mod walked_names;

pub use self::check::{CheckOptions, check};
pub use self::check_report::Report;
pub use self::finding::{Finding, Remedy, Severity};
pub use self::repair::{RepairOptions, RepairReport, repair};
