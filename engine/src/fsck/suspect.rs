//! Damaged records.
//!
//! Non-goals: finding them, and whether they are live.

use super::name_state::NameHash;
use crate::name::{FactName, ObjectName};

/// Damaged record.
pub(super) struct Suspect {
    pub(super) of: RecordSubject,
    pub(super) hash: NameHash,
    pub(super) lsn: u64,
    /// Start of the damage.
    pub(super) offset: u64,
    pub(super) what: RecordDamage,
}

/// Object or fact that a record refers to.
pub(super) enum RecordSubject {
    Object(ObjectName),
    Fact(FactName),
}

/// Kind of damage of a record.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum RecordDamage {
    /// Head only readable in the footer, body intact.
    Head,
    /// Head only readable in the footer, body also damaged.
    All,
    /// Blocks of the body fail their checksums; the others are readable.
    Blocks,
    /// All blocks match, but the content hash does not.
    Hash,
}
