//! The records of all compacted segments in the order of their numbers, so that an index is made anew as if they still
//! lay in the log.
//!
//! Promises: memory is a window for each segment whose stretch of the log has been reached and not left.
//! Never here: which segments count.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use crate::error::Result;
use crate::format::{Location, Record, SegmentHeader, SegmentId, What};
use crate::segment::{CursorFault, CursorRecord, RecordCursor};

/// Reads many compacted segments as one.
pub(crate) struct Merge {
    /// The segments that were not opened yet, by the first LSN that may lie in them, the lowest last.
    waiting: Vec<SegmentHeader>,
    /// The segments that are open, with the next record of each.
    open: BTreeMap<SegmentId, (CursorRecord, RecordCursor)>,
    /// The LSN of that record, lowest first.
    order: BinaryHeap<Reverse<(u64, SegmentId)>>,
    open_segment: Box<dyn FnMut(SegmentId) -> Result<RecordCursor>>,
    faults: Vec<(SegmentId, CursorFault)>,
}

/// A record from a compacted segment, with its value when it is a fact.
pub(crate) struct Merged {
    pub(crate) record: Record,
    pub(crate) place: Location,
    pub(crate) value: Vec<u8>,
}

impl Merge {
    /// Of these segments.
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

    /// The segments, before the first record is asked for.
    pub(crate) fn segments(&self) -> impl Iterator<Item = SegmentId> {
        self.waiting.iter().map(|header| header.segment)
    }

    /// The next record, if its number is less than `lsn`.
    pub(crate) fn next_before(&mut self, lsn: u64) -> Result<Option<Merged>> {
        loop {
            while let Some(header) = self.waiting.pop_if(|header| header.base_lsn < lsn) {
                let cursor = (self.open_segment)(header.segment)?;
                self.advance(header.segment, cursor)?;
            }
            let Some(&Reverse((next, segment))) = self.order.peek() else { return Ok(None) };
            if next >= lsn {
                return Ok(None);
            }
            self.order.pop();
            let Some((found, cursor)) = self.open.remove(&segment) else { continue };
            let value = match &found.record.what {
                What::Fact { .. } => cursor.read_body(&found),
                _ => Ok(Default::default()),
            };
            let CursorRecord { record, place } = found;
            let offset = place.offset;
            let first_lsn = record.lsn;
            self.advance(segment, cursor)?;
            match value {
                Ok(value) => return Ok(Some(Merged { record, place, value: value.to_vec() })),
                // A fact without its value is lost.
                Err(crate::error::Error::Corrupt(corruption)) => {
                    let reason = corruption.reason;
                    self.faults.push((segment, CursorFault { offset, first_lsn, reason }));
                }
                Err(other) => return Err(other),
            }
        }
    }

    /// What was broken in the segments that were read to their ends.
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
