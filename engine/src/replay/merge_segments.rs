//! Merges the records of several segments in LSN order: of all compacted segments for a rebuild of the index, and of
//! the inputs of a compaction.
//!
//! Guarantees: memory is one window per segment whose LSN range includes the current LSN.
//! Non-goals: the choice of segments.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use bytes::Bytes;

use crate::error::{Error, Result};
use crate::format::{Location, Malformed, Record, RecordOp, SegmentHeader, SegmentId};
use crate::segment::{CursorFault, CursorRecord, RecordCursor};

/// Merging reader of several segments.
pub(crate) struct SegmentMerge {
    /// Segments not opened yet, by their base LSN, the lowest last.
    waiting: Vec<SegmentHeader>,
    /// Open segments, with the next record of each.
    open: BTreeMap<SegmentId, (CursorRecord, RecordCursor)>,
    /// LSNs of these records, lowest first.
    order: BinaryHeap<Reverse<(u64, SegmentId)>>,
    open_segment: Box<dyn FnMut(SegmentId) -> Result<RecordCursor>>,
    faults: Vec<(SegmentId, CursorFault)>,
}

/// Record from a compacted segment.
pub(crate) struct Merged {
    pub(crate) record: Record,
    pub(crate) place: Location,
    /// Value of a fact, or the reason why it is corrupt.
    pub(crate) value: Result<Bytes, Malformed>,
}

impl SegmentMerge {
    /// Creates a reader of these segments.
    pub(crate) fn new(
        mut segments: Vec<SegmentHeader>,
        open_segment: impl FnMut(SegmentId) -> Result<RecordCursor> + 'static,
    ) -> Self {
        segments.sort_by_key(|header| Reverse(header.base_lsn));
        Self {
            waiting: segments,
            open: BTreeMap::new(),
            order: BinaryHeap::new(),
            open_segment: Box::new(open_segment),
            faults: Vec::new(),
        }
    }

    /// Returns the segments; only valid before the first record is read.
    pub(crate) fn segments(&self) -> impl Iterator<Item = SegmentId> {
        self.waiting.iter().map(|header| header.segment)
    }

    /// Returns the next record if its LSN is less than `lsn`.
    pub(crate) fn next_before(&mut self, lsn: u64) -> Result<Option<Merged>> {
        let Some((found, cursor)) = self.pop_before(lsn)? else { return Ok(None) };
        let value = match &found.record.op {
            RecordOp::PutFact { .. } => match cursor.read_body(&found) {
                Err(Error::Corrupt(corruption)) => Err(corruption.reason),
                read => Ok(read?),
            },
            _ => Ok(Bytes::new()),
        };
        let CursorRecord { record, place } = found;
        self.advance(place.segment, cursor)?;
        Ok(Some(Merged { record, place, value }))
    }

    /// Returns the next record without its value.
    pub(crate) fn next_head(&mut self) -> Result<Option<(Record, Location)>> {
        let Some((found, cursor)) = self.pop_before(u64::MAX)? else { return Ok(None) };
        self.advance(found.place.segment, cursor)?;
        Ok(Some((found.record, found.place)))
    }

    /// Takes the next record, with its cursor, if its LSN is less than `lsn`.
    fn pop_before(&mut self, lsn: u64) -> Result<Option<(CursorRecord, RecordCursor)>> {
        while let Some(header) = self.waiting.pop_if(|header| header.base_lsn < lsn) {
            let cursor = (self.open_segment)(header.segment)?;
            self.advance(header.segment, cursor)?;
        }
        match self.order.peek() {
            Some(&Reverse((next, segment))) if next < lsn => {
                self.order.pop();
                Ok(self.open.remove(&segment))
            }
            _ => Ok(None),
        }
    }

    /// Returns the faults of the segments that were read to their ends.
    pub(crate) fn into_faults(self) -> Vec<(SegmentId, CursorFault)> {
        self.faults
    }

    fn advance(&mut self, segment: SegmentId, mut cursor: RecordCursor) -> Result<()> {
        match cursor.step()? {
            Some(next) => {
                self.order.push(Reverse((next.record.lsn, segment)));
                self.open.insert(segment, (next, cursor));
            }
            None => {
                self.faults.extend(cursor.faults().iter().map(|fault| (segment, *fault)));
            }
        }
        Ok(())
    }
}
