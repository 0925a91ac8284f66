//! Damaged bodies whose records may be superseded later in the log.
//!
//! The body of a superseded record is unreachable, and it may have been punched, so that it reads as zeros. Which
//! records are superseded is known at the end of the log.
//!
//! Guarantees: the newest record of a name is always reported; memory is bounded: bodies beyond the bound are
//! reported as damage.
//! Non-goals: reading bodies.

use std::collections::BTreeMap;

use crate::format::{Record, RecordName, SegmentId};
use crate::limits;
use crate::segment::CursorFault;

/// Corrupt bodies of records that are the newest of their names so far.
#[derive(Default)]
pub(super) struct SuspectBodies {
    by_name: BTreeMap<RecordName, (SegmentId, CursorFault)>,
    /// First corrupt bodies beyond the bound, without their names.
    beyond: Vec<(SegmentId, CursorFault)>,
    /// Number of further ones.
    unlisted: u64,
}

impl SuspectBodies {
    /// Adds the corrupt body of this record, the newest of its name so far.
    pub(super) fn add(&mut self, record: &Record, segment: SegmentId, fault: CursorFault) {
        let Some(name) = RecordName::of(record) else { return };
        let is_remembered = self.by_name.contains_key(&name);
        if is_remembered || self.by_name.len() < limits::REPLAY_SUSPECTS_MAX {
            self.by_name.insert(name, (segment, fault));
        } else if self.beyond.len() < limits::DAMAGE_LISTED_MAX {
            self.beyond.push((segment, fault));
        } else {
            self.unlisted += 1;
        }
    }

    /// Drops the corrupt bodies that this record supersedes.
    pub(super) fn replaced_by(&mut self, record: &Record) {
        if self.by_name.is_empty() {
            return;
        }
        if let Some(name) = RecordName::of(record) {
            self.by_name.remove(&name);
        }
    }

    /// Returns the remaining ones as damage, at the end of the log: some locations in disk order, and the number of
    /// further ones.
    pub(super) fn into_faults(self) -> (Vec<(SegmentId, CursorFault)>, u64) {
        let mut faults: Vec<_> = self.by_name.into_values().chain(self.beyond).collect();
        faults.sort_by_key(|(segment, fault)| (*segment, fault.offset));
        (faults, self.unlisted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::{Checksum, Malformed, RecordOp};
    use crate::name::FactName;

    fn fact(at: u64, lsn: u64) -> Record {
        let name = FactName::parse(&format!("fact/{at}")).unwrap();
        Record { lsn, op: RecordOp::PutFact { name, bytes: 1, check: Checksum::of(b"1") } }
    }

    fn add(suspects: &mut SuspectBodies, record: &Record) {
        let fault = CursorFault {
            offset: record.lsn * 100,
            first_lsn: record.lsn,
            reason: Malformed::Checksum,
        };
        suspects.add(record, SegmentId::new(1).unwrap(), fault);
    }

    fn lsns(suspects: SuspectBodies) -> Vec<u64> {
        suspects.into_faults().0.iter().map(|(_, fault)| fault.first_lsn).collect()
    }

    #[test]
    fn damaged_body_is_damage_unless_overwritten() {
        let mut suspects = SuspectBodies::default();
        for (at, lsn) in [(7, 1), (3, 2), (5, 3)] {
            add(&mut suspects, &fact(at, lsn));
        }
        suspects.replaced_by(&fact(3, 4));
        add(&mut suspects, &fact(5, 5));
        assert_eq!(lsns(suspects), [1, 5]);
    }

    #[test]
    fn suspect_overflow_is_still_reported() {
        let mut suspects = SuspectBodies::default();
        let (remembered, listed) =
            (limits::REPLAY_SUSPECTS_MAX as u64, limits::DAMAGE_LISTED_MAX as u64);
        for at in 0..remembered + listed + 10 {
            add(&mut suspects, &fact(at, at + 1));
        }
        for at in 0..remembered + listed + 10 {
            suspects.replaced_by(&fact(at, 1 << 40));
        }
        let (faults, unlisted) = suspects.into_faults();
        assert_eq!((faults.len() as u64, unlisted), (listed, 10));
    }
}
