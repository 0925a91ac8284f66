//! What opening a store found and did, for people.

use std::fmt;

use crate::format::{Malformed, SegmentId};

/// What opening a store found and did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecoveryReport {
    /// LSN of the last record in the store.
    pub last_lsn: u64,
    /// Records that were applied to the index again.
    pub replayed_records: u64,
    /// Whether the index was filled from the start of the log.
    pub index_rebuilt: bool,
    /// Why an index that was there could not be used.
    pub index_fault: Option<String>,
    /// Where a write that was never acknowledged was cut off: segment and offset.
    pub torn_tail: Option<(SegmentId, u64)>,
    /// Segments that got their footer now.
    pub segments_sealed: u64,
    /// Files removed that no record names.
    pub orphans_removed: u64,
    /// Damage to acknowledged data. The rest of the store works.
    pub damage: Vec<LogDamage>,
}

/// A place in the log where acknowledged bytes are not what was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogDamage {
    /// The segment.
    pub segment: SegmentId,
    /// The offset in it.
    pub offset: u64,
    /// The first LSN that is affected, when that is known.
    pub first_lsn: Option<u64>,
    /// What is wrong.
    pub reason: Malformed,
}

impl fmt::Display for RecoveryReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "opened at record {}", self.last_lsn)?;
        if self.index_rebuilt {
            write!(f, ", index rebuilt from {} records", self.replayed_records)?;
            if let Some(why) = &self.index_fault {
                write!(f, " ({why})")?;
            }
        } else {
            write!(f, ", replayed: {}", self.replayed_records)?;
        }
        if let Some((segment, offset)) = self.torn_tail {
            write!(f, ", unfinished write cut off segment {segment} at {offset}")?;
        }
        if self.segments_sealed > 0 {
            write!(f, ", segments sealed: {}", self.segments_sealed)?;
        }
        if self.orphans_removed > 0 {
            write!(f, ", orphans removed: {}", self.orphans_removed)?;
        }
        for damage in &self.damage {
            write!(
                f,
                ", DAMAGE in segment {} at {}: {}",
                damage.segment, damage.offset, damage.reason
            )?;
        }
        Ok(())
    }
}
