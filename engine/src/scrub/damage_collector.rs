//! Collects the damage found in one segment.

use std::ops::Range;

use crate::format::{Damage, Malformed, RecordName, SegmentClass, SegmentId};
use crate::limits;

/// Damage in one segment.
pub(super) struct DamageCollector {
    id: SegmentId,
    class: SegmentClass,
    now_ms: u64,
    /// First [`limits::DAMAGE_LISTED_MAX`] locations.
    pub(super) listed: Vec<Damage>,
    /// Number of locations.
    pub(super) count: u64,
    /// Ranges that may contain live records that could not be decoded.
    pub(super) unclear: Vec<Range<u64>>,
}

impl DamageCollector {
    pub(super) fn new(id: SegmentId, class: SegmentClass, now_ms: u64) -> Self {
        Self { id, class, now_ms, listed: Vec::new(), count: 0, unclear: Vec::new() }
    }

    /// Adds damage to the structure of the segment.
    pub(super) fn structure(&mut self, offset: u64, lsn: Option<u64>, reason: Malformed) {
        self.push(offset, lsn, reason, None);
    }

    /// Adds damage to a live record or its body.
    pub(super) fn record(&mut self, offset: u64, lsn: u64, reason: Malformed, name: RecordName) {
        // A broken group at the offset of its record: the name is more specific.
        if let Some(known) = self.listed.iter_mut().find(|known| known.offset == offset) {
            (known.lsn, known.name) = (Some(lsn), Some(name));
            return;
        }
        self.push(offset, Some(lsn), reason, Some(name));
    }

    /// Returns whether further locations would only be counted.
    pub(super) fn is_full(&self) -> bool {
        self.listed.len() >= limits::DAMAGE_LISTED_MAX
    }

    /// Returns the number of locations that are not listed.
    pub(super) fn unlisted(&self) -> u64 {
        self.count.saturating_sub(self.listed.len() as u64)
    }

    fn push(&mut self, offset: u64, lsn: Option<u64>, reason: Malformed, name: Option<RecordName>) {
        self.count += 1;
        if !self.is_full() {
            let Self { id: segment, class, now_ms: found_ms, .. } = *self;
            self.listed.push(Damage { segment, class, offset, lsn, reason, name, found_ms });
        }
    }
}
