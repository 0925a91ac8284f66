//! What opening a store found and did, for people.

use std::fmt;

use crate::format::{Malformed, SegmentId};
use crate::limits;

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
    /// Damage to acknowledged data, at most [`limits::DAMAGE_LISTED_MAX`] places. The rest of the store works.
    pub damage: Vec<LogDamage>,
    /// Further places of damage that are not listed.
    pub damage_unlisted: u64,
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

impl RecoveryReport {
    /// Adds a place of damage.
    pub(crate) fn add_damage(&mut self, damage: LogDamage) {
        if self.damage.len() < limits::DAMAGE_LISTED_MAX {
            self.damage.push(damage);
        } else {
            self.damage_unlisted += 1;
        }
    }

    /// How many places of damage there are.
    pub fn damage_count(&self) -> u64 {
        self.damage.len() as u64 + self.damage_unlisted
    }
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
            write!(f, ", torn write truncated in segment {segment} at {offset}")?;
        }
        if self.segments_sealed > 0 {
            write!(f, ", segments sealed: {}", self.segments_sealed)?;
        }
        if self.orphans_removed > 0 {
            write!(f, ", orphans removed: {}", self.orphans_removed)?;
        }
        for damage in self.damage.iter().take(DAMAGE_SHOWN_MAX) {
            write!(
                f,
                ", DAMAGE in segment {} at {}: {}",
                damage.segment, damage.offset, damage.reason
            )?;
        }
        let unshown = self.damage_count().saturating_sub(DAMAGE_SHOWN_MAX as u64);
        if unshown > 0 {
            write!(f, ", and DAMAGE in {unshown} more places")?;
        }
        Ok(())
    }
}

/// The line on opening a store shows this many places of damage.
const DAMAGE_SHOWN_MAX: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_on_much_damage_stays_short_and_counts_all_of_it() {
        let mut report = RecoveryReport::default();
        let segment = SegmentId::new(1).unwrap();
        for offset in 0..1_000 {
            let reason = Malformed::Checksum;
            report.add_damage(LogDamage { segment, offset, first_lsn: None, reason });
        }
        assert_eq!(report.damage.len(), limits::DAMAGE_LISTED_MAX);
        assert_eq!(report.damage_count(), 1_000);
        let line = report.to_string();
        assert!(line.len() < 1_000 && line.ends_with(", and DAMAGE in 992 more places"), "{line}");
    }
}
