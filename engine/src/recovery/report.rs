//! Recovery report: replayed records, torn tail, damage.

use std::fmt;

use crate::format::{Malformed, SegmentId};
use crate::limits;

/// Report of the recovery that opened a store.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecoveryReport {
    /// LSN of the last record in the store; 0 for an empty store.
    pub last_lsn: u64,
    /// Number of records replayed into the index.
    pub replayed_records: u64,
    /// Whether the index was rebuilt from the whole log.
    pub index_rebuilt: bool,
    /// Reason why the existing index was not used.
    pub index_fault: Option<String>,
    /// Segment and offset at which a write that was never acknowledged was cut off, if there was one.
    pub torn_tail: Option<(SegmentId, u64)>,
    /// Number of segments sealed during recovery.
    pub segments_sealed: u64,
    /// Number of unreferenced files removed.
    pub orphans_removed: u64,
    /// Damage to acknowledged data: at most [`limits::DAMAGE_LISTED_MAX`] locations. All other data is available.
    pub damage: Vec<LogDamage>,
    /// Number of corrupt locations that are not listed.
    pub damage_unlisted: u64,
}

/// Location of damaged acknowledged data in the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogDamage {
    /// Id of the segment.
    pub segment: SegmentId,
    /// Offset in the segment in bytes.
    pub offset: u64,
    /// First affected LSN, if known.
    pub first_lsn: Option<u64>,
    /// Reason why the bytes were rejected.
    pub reason: Malformed,
}

impl RecoveryReport {
    /// Adds a corrupt location, or only counts it.
    pub(crate) fn add_damage(&mut self, damage: LogDamage) {
        if self.damage.len() < limits::DAMAGE_LISTED_MAX {
            self.damage.push(damage);
        } else {
            self.damage_unlisted += 1;
        }
    }

    /// Returns the number of all corrupt locations, listed or not.
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

/// Number of corrupt locations shown in the log line of recovery.
const DAMAGE_SHOWN_MAX: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recovery_report_is_bounded_and_counts_all_damage() {
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
