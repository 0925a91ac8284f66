//! Per-name state collected from the log, and LSN gaps that cannot be read.
//!
//! Guarantees: memory is bounded; beyond the bound, gaps are merged to larger ones, never dropped.
//! Non-goals: reading.

use std::collections::{HashMap, hash_map};
use std::hash::{BuildHasherDefault, Hasher};

use crate::format::{
    Entry, EntryContent, Location, Record, RecordContent, RecordOp, SegmentId, entry_key,
};
use crate::limits;
use crate::name::FactName;

/// Ranges of LSNs, first and last, ascending.
#[derive(Default)]
pub(super) struct Gaps(Vec<(u64, u64)>);

impl Gaps {
    /// Adds a range.
    pub(super) fn add(&mut self, first: u64, last: u64) {
        if first > last {
            return;
        }
        if self.0.len() == limits::FSCK_SUSPECTS_MAX
            && let Some(end) = self.0.last_mut()
        {
            *end = (end.0.min(first), end.1.max(last));
        } else {
            self.0.push((first, last));
        }
    }

    /// Adds all ranges of another set.
    pub(super) fn append(&mut self, other: Self) {
        for (first, last) in other.0 {
            self.add(first, last);
        }
    }

    /// Returns whether a record with an LSN in this range may be missing.
    pub(super) fn touch(&self, first: u64, last: u64) -> bool {
        self.0.iter().any(|&(from, to)| from <= last && first <= to)
    }
}

/// Hash of the name of an object or fact.
pub(super) type NameHash = [u8; 16];

/// Map by name hash.
pub(super) type ByName<T> = HashMap<NameHash, T, BuildHasherDefault<IdentityHasher>>;

/// Hasher for name hashes. The first half of a hash selects the pass, so the second half is used.
#[derive(Default)]
pub(super) struct IdentityHasher(u64);

impl Hasher for IdentityHasher {
    fn write(&mut self, bytes: &[u8]) {
        if let Some(half) = bytes.last_chunk() {
            self.0 = u64::from_le_bytes(*half);
        }
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

/// Returns the hash of the name of an object, by its index key.
pub(super) fn hash_of_key(key: &[u8]) -> NameHash {
    hash(key)
}

/// Returns the hash of a fact name. No index key starts with 0.
pub(super) fn hash_of_fact(name: &FactName) -> NameHash {
    hash(&[&[0], name.as_str().as_bytes()].concat())
}

/// Returns the hash of the name that a record refers to.
pub(super) fn hash_of(record: &Record) -> Option<NameHash> {
    match &record.op {
        RecordOp::Put { name, .. } | RecordOp::Delete { name, .. } => {
            Some(hash_of_key(&entry_key::encode(name)))
        }
        RecordOp::PutFact { name, .. } | RecordOp::DeleteFact { name } => Some(hash_of_fact(name)),
        RecordOp::Compaction { .. } | RecordOp::HolePunch { .. } => None,
    }
}

fn hash(name: &[u8]) -> NameHash {
    blake3::hash(name).as_bytes().first_chunk().copied().unwrap_or_default()
}

/// State of a name according to a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NameStatus {
    Inline,
    Big(SegmentId),
    Lost,
    Deleted,
    Fact,
    FactDeleted,
}

impl NameStatus {
    /// Returns the state set by this record; `None` if it refers to no name.
    pub(super) fn of_record(record: &Record) -> Option<Self> {
        match &record.op {
            RecordOp::Put { content: RecordContent::Inline { .. }, .. } => Some(Self::Inline),
            RecordOp::Put { content: RecordContent::Big { segment, .. }, .. } => {
                Some(Self::Big(*segment))
            }
            RecordOp::Put { content: RecordContent::Lost { .. }, .. } => Some(Self::Lost),
            RecordOp::Delete { .. } => Some(Self::Deleted),
            RecordOp::PutFact { .. } => Some(Self::Fact),
            RecordOp::DeleteFact { .. } => Some(Self::FactDeleted),
            RecordOp::Compaction { .. } | RecordOp::HolePunch { .. } => None,
        }
    }

    /// Returns whether the name exists.
    pub(super) fn exists(self) -> bool {
        !matches!(self, Self::Deleted | Self::FactDeleted)
    }
}

/// Location of a record: segment and offset.
pub(super) type SegmentOffset = (SegmentId, u64);

/// Returns segment and offset of an entry's record.
pub(super) fn segment_offset(place: &Location) -> SegmentOffset {
    (place.segment, place.offset)
}

/// Newest record of a name, so far.
#[derive(Clone, Debug)]
pub(super) struct NewestRecord {
    pub(super) lsn: u64,
    pub(super) status: NameStatus,
    pub(super) at: SegmentOffset,
    /// Locations of the record; a compaction may leave copies.
    pub(super) copies: Vec<SegmentOffset>,
}

impl NewestRecord {
    /// Returns whether the record has a copy at this location.
    pub(super) fn is_at(&self, place: SegmentOffset) -> bool {
        self.at == place || self.copies.contains(&place)
    }
}

/// Collected state of a name.
pub(super) struct NameState {
    /// Newest record of the name.
    pub(super) now: NewestRecord,
    /// Newest record of the name up to the index position, if that is another one; the inner `None` means that there
    /// is no such record.
    at_index: Option<Option<Box<NewestRecord>>>,
    /// LSN and location that the index refers to.
    pub(super) pointed: Option<(u64, SegmentOffset)>,
}

impl NameState {
    /// Creates the state from the first record.
    pub(super) fn new(first: NewestRecord, applied_lsn: u64) -> Self {
        let at_index = (first.lsn > applied_lsn).then_some(None);
        Self { now: first, at_index, pointed: None }
    }

    /// Adds a record of the name, in any order.
    pub(super) fn add(&mut self, next: NewestRecord, applied_lsn: u64) {
        if next.lsn <= applied_lsn
            && let Some(at_index) = &mut self.at_index
        {
            match at_index {
                Some(known) => newer(known, next),
                None => *at_index = Some(Box::new(next)),
            }
            return;
        }
        if next.lsn > applied_lsn && self.at_index.is_none() {
            self.at_index = Some(Some(Box::new(self.now.clone())));
        }
        newer(&mut self.now, next);
    }

    /// Returns the newest record up to the index position.
    pub(super) fn at_index(&self) -> Option<&NewestRecord> {
        match &self.at_index {
            Some(other) => other.as_deref(),
            None => Some(&self.now),
        }
    }

    /// Returns whether the newest record has the content of the object, and the entry refers to that record.
    pub(super) fn agrees_with(&self, entry: &Entry) -> bool {
        self.now.lsn == entry.lsn
            && self.at_index.is_none()
            && self.now.is_at(segment_offset(&entry.record))
            && self.now.status == NameStatus::Inline
            && matches!(entry.content, EntryContent::Inline { .. })
    }

    /// Returns the location at which the content of the name is read.
    pub(super) fn live_at(&self) -> SegmentOffset {
        match self.pointed {
            Some((lsn, place)) if lsn == self.now.lsn => place,
            _ => self.now.at,
        }
    }
}

/// Returns the hash of the name that a record refers to, and what the record says about it.
pub(super) fn newest_of(record: &Record, at: SegmentOffset) -> Option<(NameHash, NewestRecord)> {
    let status = NameStatus::of_record(record)?;
    Some((hash_of(record)?, NewestRecord { lsn: record.lsn, status, at, copies: Vec::new() }))
}

/// Adds a record of a name to the known ones.
pub(super) fn add_newest(
    known: &mut ByName<NameState>,
    hash: NameHash,
    newest: NewestRecord,
    applied_lsn: u64,
) {
    match known.entry(hash) {
        hash_map::Entry::Occupied(mut known) => known.get_mut().add(newest, applied_lsn),
        hash_map::Entry::Vacant(place) => {
            place.insert(NameState::new(newest, applied_lsn));
        }
    }
}

fn newer(known: &mut NewestRecord, next: NewestRecord) {
    match next.lsn.cmp(&known.lsn) {
        std::cmp::Ordering::Greater => *known = next,
        std::cmp::Ordering::Equal => known.copies.push(next.at),
        std::cmp::Ordering::Less => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(lsn: u64, offset: u64) -> NewestRecord {
        let at = (SegmentId::new(1).unwrap(), offset);
        NewestRecord { lsn, status: NameStatus::Inline, at, copies: Vec::new() }
    }

    #[test]
    fn newest_record_is_independent_of_scan_order() {
        let lsns = [3, 9, 5, 12, 5];
        for turn in 0..lsns.len() {
            let mut order = lsns;
            order.rotate_left(turn);
            for applied in [0, 4, 5, 8, 9, 20] {
                let mut known = NameState::new(record(order[0], 0), applied);
                for (offset, lsn) in (1..).zip(&order[1..]) {
                    known.add(record(*lsn, offset), applied);
                }
                assert_eq!(known.now.lsn, 12);
                let expected = lsns.into_iter().filter(|lsn| *lsn <= applied).max();
                assert_eq!(known.at_index().map(|newest| newest.lsn), expected);
                if applied == 5 {
                    assert_eq!(known.at_index().map(|newest| newest.copies.len()), Some(1));
                }
            }
        }
    }

    #[test]
    fn merged_gaps_still_cover_dropped_ranges() {
        let mut gaps = Gaps::default();
        for at in 0..2 * limits::FSCK_SUSPECTS_MAX as u64 {
            gaps.add(10 * at, 10 * at + 2);
        }
        gaps.add(7, 6);
        assert!(gaps.touch(12, 15) && !gaps.touch(13, 19));
        assert!(gaps.touch(20 * limits::FSCK_SUSPECTS_MAX as u64 - 8, u64::MAX));
        assert!(gaps.0.len() == limits::FSCK_SUSPECTS_MAX);
    }
}
