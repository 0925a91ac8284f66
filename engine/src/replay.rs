//! Replay: applies log records to the index, for recovery and rebuild.
//!
//! Guarantees: a replayed record has the same effect as when it was committed, because both use the same functions
//! of [`View`]; memory is bounded, because a full overlay is checkpointed during the replay.
//! Non-goals: the choice of segments, and torn tails.

mod merge_segments;
mod suspect_bodies;

use bytes::Bytes;

pub(crate) use self::merge_segments::SegmentMerge;
use self::suspect_bodies::SuspectBodies;
use crate::error::{Error, Result};
use crate::format::{
    Entry, EntryContent, Location, Record, RecordOp, SegmentClass, SegmentId, SegmentUsage,
};
use crate::index::{Fact, INDEX_FILE, Index, UnreferencedSegment, View};
use crate::limits;
use crate::segment::{CursorFault, LogPosition, SegmentSet};

/// Replay of records in log order.
pub(crate) struct Replay<'a> {
    index: &'a Index,
    segments: &'a SegmentSet,
    view: View,
    position: LogPosition,
    /// Number of records applied.
    pub(crate) records: u64,
    /// Big segments that a replayed record replaced and that may still exist.
    unnamed: Vec<UnreferencedSegment>,
    /// Faults in the outputs of compactions.
    faults: Vec<(SegmentId, CursorFault)>,
    /// Corrupt bodies.
    suspects: SuspectBodies,
    /// For a rebuild: the records of compacted segments, which are applied among those of the log.
    merged: Option<SegmentMerge>,
}

impl<'a> Replay<'a> {
    /// Creates a replay that continues at the position of the index.
    pub(crate) fn new(index: &'a Index, segments: &'a SegmentSet) -> Result<Self> {
        let view = View::clone(&index.view());
        let position = view.position().map_or(LogPosition::START, LogPosition::from);
        Ok(Self {
            index,
            segments,
            view,
            position,
            records: 0,
            unnamed: Vec::new(),
            faults: Vec::new(),
            suspects: SuspectBodies::default(),
            merged: None,
        })
    }

    /// Creates a replay of everything into an empty index. `compacted` are the compacted segments in effect.
    pub(crate) fn from_scratch(
        index: &'a Index,
        segments: &'a SegmentSet,
        compacted: SegmentMerge,
    ) -> Result<Self> {
        let mut replay = Self::new(index, segments)?;
        let empty = SegmentUsage::empty(SegmentClass::Compacted);
        let counters: Vec<_> = compacted.segments().map(|segment| (segment, empty)).collect();
        replay.view.add_compacted(&counters);
        replay.merged = Some(compacted);
        Ok(replay)
    }

    /// Returns the current log position.
    pub(crate) fn position(&self) -> LogPosition {
        self.position
    }

    /// Applies one record. `value` is the body of a fact.
    pub(crate) fn apply(&mut self, record: Record, place: Location, value: &[u8]) -> Result<()> {
        self.apply_merged_before(record.lsn)?;
        self.apply_one(record, place, value)
    }

    /// Applies a record with a corrupt body, which is damage unless a later record supersedes it. A fact is lost; an
    /// object is not, because reads of its key return a corruption error.
    pub(crate) fn apply_damaged(
        &mut self,
        record: Record,
        place: Location,
        fault: CursorFault,
    ) -> Result<()> {
        self.apply_merged_before(record.lsn)?;
        self.apply_damaged_one(record, place, fault)
    }

    /// Applies the records of compacted segments below this LSN.
    fn apply_merged_before(&mut self, lsn: u64) -> Result<()> {
        while let Some(merged) = &mut self.merged
            && let Some(older) = merged.next_before(lsn)?
        {
            match older.value {
                Ok(value) => self.apply_one(older.record, older.place, &value)?,
                Err(reason) => {
                    let (offset, first_lsn) = (older.place.offset, older.record.lsn);
                    let fault = CursorFault { offset, first_lsn, reason };
                    self.apply_damaged_one(older.record, older.place, fault)?;
                }
            }
            self.reach(self.position)?;
        }
        Ok(())
    }

    fn apply_damaged_one(
        &mut self,
        record: Record,
        place: Location,
        fault: CursorFault,
    ) -> Result<()> {
        if !matches!(record.op, RecordOp::PutFact { .. }) {
            self.apply_one(record.clone(), place, &[])?;
        }
        self.suspects.add(&record, place.segment, fault);
        Ok(())
    }

    fn apply_one(&mut self, record: Record, place: Location, value: &[u8]) -> Result<()> {
        self.suspects.replaced_by(&record);
        let lsn = record.lsn;
        let replaced = match record.op {
            RecordOp::Put { name, meta, content } => {
                if let crate::format::RecordContent::Big { segment, .. } = content {
                    self.segments.skip_ids_through(segment.get());
                }
                let content = EntryContent::of(&content);
                self.view.put(&name, Entry { lsn, record: place, meta, content })?.0
            }
            RecordOp::Delete { name, deleted_ms } => self.view.delete(&name, deleted_ms, place)?,
            RecordOp::PutFact { name, .. } => {
                let value = Bytes::copy_from_slice(value);
                self.view.put_fact(&name, Fact { lsn, record: place, value })?;
                Default::default()
            }
            RecordOp::DeleteFact { name } => {
                self.view.delete_fact(&name, place)?;
                Default::default()
            }
            RecordOp::Compaction { outputs, inputs } => {
                self.view.apply_segment_record(place)?;
                // In a rebuild, records are read from their current location.
                if self.merged.is_none() {
                    self.compacted(&outputs, &inputs)?;
                }
                Default::default()
            }
            RecordOp::HolePunch { segment, bytes } => {
                self.view.apply_hole_punch(segment, bytes, place)?;
                Default::default()
            }
        };
        self.unnamed.extend(replaced.big);
        self.records += 1;
        Ok(())
    }

    /// Publishes everything up to `position`, and writes a checkpoint after many changes.
    pub(crate) fn reach(&mut self, position: LogPosition) -> Result<()> {
        self.position = position;
        self.view.active.position = Some(position.applied());
        if self.view.active.len() >= limits::CHECKPOINT_ENTRIES {
            self.publish();
            self.checkpoint()?;
        }
        Ok(())
    }

    /// Applies a committed compaction: refers to its copies, as was done then. May have been done partially.
    fn compacted(&mut self, outputs: &[SegmentId], inputs: &[SegmentId]) -> Result<()> {
        for output in outputs {
            match self.point_to(*output, inputs) {
                // The inputs remain, for the records in them that are still referred to.
                Err(Error::Corrupt(corruption)) if corruption.file != INDEX_FILE => {
                    let (offset, reason) = (corruption.offset, corruption.reason);
                    let fault = CursorFault { offset, first_lsn: self.position.lsn, reason };
                    self.faults.push((*output, fault));
                }
                other => other?,
            }
        }
        // If the index still refers to one input, all of them remain.
        self.view.drop_segments(inputs)?;
        Ok(())
    }

    /// Finishes a compaction in the index that was only partially applied at the checkpoint: no replayed record
    /// mentions it. An unreadable copy loses nothing: the originals remain.
    pub(crate) fn finish_compaction(
        &mut self,
        output: SegmentId,
        inputs: &[SegmentId],
    ) -> Result<()> {
        if self.view.segment_usage(output)?.is_none() || !self.view.contains_any_segment(inputs)? {
            return Ok(());
        }
        let known_faults = self.faults.len();
        self.compacted(&[output], inputs)?;
        self.faults.truncate(known_faults);
        self.reach(self.position)
    }

    fn point_to(&mut self, output: SegmentId, inputs: &[SegmentId]) -> Result<()> {
        if self.view.segment_usage(output)?.is_none() {
            let mut usage = SegmentUsage::empty(SegmentClass::Compacted);
            let mut copies = self.segments.records(output)?;
            while let Some(copy) = copies.step()? {
                usage.add(&copy.record);
            }
            self.view.add_compacted(&[(output, usage)]);
        }
        let mut copies = self.segments.records(output)?;
        while let Some(copy) = copies.step()? {
            if let Some(moved) = self.view.relocation_of(&copy.record, copy.place, inputs)? {
                self.view.repoint(&moved)?;
                self.reach(self.position)?;
            }
        }
        let faults = copies.faults().iter().map(|fault| (output, *fault));
        self.faults.extend(faults);
        Ok(())
    }

    /// Applies the remaining records of compacted segments, at the end of the log.
    pub(crate) fn apply_merged(&mut self) -> Result<()> {
        self.apply_merged_before(u64::MAX)
    }

    /// Takes the faults of compacted segments read so far, and the corrupt bodies of current records, with the
    /// number of those that are not listed.
    pub(crate) fn take_faults(&mut self) -> (Vec<(SegmentId, CursorFault)>, u64) {
        let (bodies, unlisted) = std::mem::take(&mut self.suspects).into_faults();
        let mut faults = std::mem::take(&mut self.faults);
        faults.extend(self.merged.take().map(SegmentMerge::into_faults).unwrap_or_default());
        faults.extend(bodies);
        (faults, unlisted)
    }

    /// Publishes the replayed changes and reclaims the space of replaced big segments.
    pub(crate) fn finish(mut self) -> u64 {
        self.publish();
        for UnreferencedSegment { segment, retained } in self.unnamed {
            // Retained segments are loaded once all are known.
            if retained.is_none() {
                self.segments.retire(segment, crate::format::SegmentClass::Big);
            }
        }
        self.records
    }

    fn publish(&mut self) {
        if self.view.active.position.is_some() {
            self.index.publish(self.view.active.clone());
        }
    }

    fn checkpoint(&mut self) -> Result<()> {
        // While records are missing from the index, a later record may refer to any big segment.
        self.index.freeze();
        let next_segment = self.segments.next_id();
        let is_rebuild = self.merged.is_some();
        self.index.drain(|mut position| {
            position.next_segment = next_segment;
            // An incomplete rebuild must be repeated: the index lacks the records to be merged.
            (!is_rebuild).then_some(position)
        })?;
        self.view = View::clone(&self.index.view());
        Ok(())
    }
}

/// Returns the location of a record in index form.
pub(crate) fn location(segment: SegmentId, offset: u64, head_bytes: usize) -> Result<Location> {
    let head_bytes = u32::try_from(head_bytes).map_err(|_| Error::TooLarge("a record's head"))?;
    Ok(Location { segment, offset, head_bytes })
}
