//! Replay: records of the log, applied to the index again. One replay serves opening after a crash and rebuilding.
//!
//! Promises: what a record does here is what it did when it was committed, because both call the same functions of
//! [`View`]; memory is bounded, since a full overlay is checkpointed on the way.
//! Never here: which segments, whether a tail is torn.

mod merge;
mod suspects;

use bytes::Bytes;

pub(crate) use self::merge::Merge;
use self::suspects::Suspects;
use crate::error::{Error, Result};
use crate::format::{
    Entry, EntryContent, Location, Record, SegmentClass, SegmentId, SegmentUsage, What,
};
use crate::index::{Fact, INDEX_FILE, Index, Unnamed, View};
use crate::limits;
use crate::segment::{CursorFault, LogPosition, SegmentSet};

/// Applies records to the index, in the order of the log.
pub(crate) struct Replay<'a> {
    index: &'a Index,
    segments: &'a SegmentSet,
    view: View,
    position: LogPosition,
    /// Records applied.
    pub(crate) records: u64,
    /// Big segments that a replayed record replaced; their names may still be there.
    unnamed: Vec<Unnamed>,
    /// Copies of compactions that could not be read.
    faults: Vec<(SegmentId, CursorFault)>,
    /// Bodies that are not what was written.
    suspects: Suspects,
    /// When the index is made anew: the records of compacted segments, which are applied among those of the log.
    merged: Option<Merge>,
}

impl<'a> Replay<'a> {
    /// A replay that goes on from where the index stands.
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
            suspects: Suspects::default(),
            merged: None,
        })
    }

    /// A replay of everything, into an empty index. `compacted` are the compacted segments that count.
    pub(crate) fn anew(
        index: &'a Index,
        segments: &'a SegmentSet,
        compacted: Merge,
    ) -> Result<Self> {
        let mut replay = Self::new(index, segments)?;
        let empty = SegmentUsage::empty(SegmentClass::Compacted);
        let counters: Vec<_> = compacted.segments().map(|segment| (segment, empty)).collect();
        replay.view.add_compacted(&counters);
        replay.merged = Some(compacted);
        Ok(replay)
    }

    /// Where the replay stands.
    pub(crate) fn position(&self) -> LogPosition {
        self.position
    }

    /// Applies one record. `value` is the body that follows it, for a fact.
    pub(crate) fn apply(&mut self, record: Record, place: Location, value: &[u8]) -> Result<()> {
        self.apply_merged_before(record.lsn)?;
        self.apply_one(record, place, value)
    }

    /// The same for a record whose body is not what was written: damage, unless a later record replaces it. A fact is
    /// lost; an object is not, because its key answers that it is damaged.
    pub(crate) fn apply_damaged(
        &mut self,
        record: Record,
        place: Location,
        fault: CursorFault,
    ) -> Result<()> {
        self.apply_merged_before(record.lsn)?;
        self.apply_damaged_one(record, place, fault)
    }

    /// Applies what compacted segments hold from before this LSN.
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
        if !matches!(record.what, What::Fact { .. }) {
            self.apply_one(record.clone(), place, &[])?;
        }
        self.suspects.add(&record, place.segment, fault);
        Ok(())
    }

    fn apply_one(&mut self, record: Record, place: Location, value: &[u8]) -> Result<()> {
        self.suspects.replaced_by(&record);
        let lsn = record.lsn;
        let replaced = match record.what {
            What::Put { name, meta, content } => {
                if let crate::format::Content::Big { segment, .. } = content {
                    self.segments.skip_ids_through(segment.get());
                }
                let content = EntryContent::of(&content);
                self.view.put(&name, Entry { lsn, record: place, meta, content })?.0
            }
            What::Delete { name, deleted_ms } => self.view.delete(&name, deleted_ms, place)?,
            What::Fact { name, .. } => {
                let value = Bytes::copy_from_slice(value);
                self.view.put_fact(&name, Fact { lsn, record: place, value })?;
                Default::default()
            }
            What::FactGone { name } => {
                self.view.delete_fact(&name, place)?;
                Default::default()
            }
            What::Compacted { outputs, inputs } => {
                self.view.note(place)?;
                // Into a new index the records come from where they are now.
                if self.merged.is_none() {
                    self.compacted(&outputs, &inputs)?;
                }
                Default::default()
            }
            What::Punched { segment, bytes } => {
                self.view.punched(segment, bytes, place)?;
                Default::default()
            }
        };
        self.unnamed.extend(replaced.big);
        self.records += 1;
        Ok(())
    }

    /// Everything up to `position` is applied: publishes it, and checkpoints when much has gathered.
    pub(crate) fn reach(&mut self, position: LogPosition) -> Result<()> {
        self.position = position;
        self.view.active.position = Some(position.applied());
        if self.view.active.len() >= limits::CHECKPOINT_ENTRIES {
            self.publish();
            self.checkpoint()?;
        }
        Ok(())
    }

    /// A compaction was committed: points to its copies, as was done then. May have been done in part.
    fn compacted(&mut self, outputs: &[SegmentId], inputs: &[SegmentId]) -> Result<()> {
        for output in outputs {
            match self.point_to(*output, inputs) {
                // The inputs stay, for what is still pointed to in them.
                Err(Error::Corrupt(corruption)) if corruption.file != INDEX_FILE => {
                    let (offset, reason) = (corruption.offset, corruption.reason);
                    let fault = CursorFault { offset, first_lsn: self.position.lsn, reason };
                    self.faults.push((*output, fault));
                }
                other => other?,
            }
        }
        // Where something still points to an input, all of them stay.
        self.view.drop_segments(inputs)?;
        Ok(())
    }

    /// Finishes a compaction that the index speaks of, and was checkpointed in the middle of: no record that is
    /// replayed says so any more. Where a copy cannot be read nothing is lost: the originals stay.
    pub(crate) fn finish_compaction(
        &mut self,
        output: SegmentId,
        inputs: &[SegmentId],
    ) -> Result<()> {
        if self.view.segment_usage(output)?.is_none() || !self.view.knows_any(inputs)? {
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
            if let Some(moved) = self.view.moved_to(&copy.record, copy.place, inputs)? {
                self.view.repoint(&moved)?;
                self.reach(self.position)?;
            }
        }
        let faults = copies.faults().iter().map(|fault| (output, *fault));
        self.faults.extend(faults);
        Ok(())
    }

    /// The log has ended: applies what compacted segments hold besides.
    pub(crate) fn apply_merged(&mut self) -> Result<()> {
        self.apply_merged_before(u64::MAX)
    }

    /// What was broken in compacted segments, as far as they were read, and the damaged bodies of records that count;
    /// and how many more of these there are than are remembered.
    pub(crate) fn take_faults(&mut self) -> (Vec<(SegmentId, CursorFault)>, u64) {
        let (bodies, unlisted) = std::mem::take(&mut self.suspects).into_faults();
        let mut faults = std::mem::take(&mut self.faults);
        faults.extend(self.merged.take().map(Merge::into_faults).unwrap_or_default());
        faults.extend(bodies);
        (faults, unlisted)
    }

    /// Publishes what was applied and gives the space of replaced big segments back.
    pub(crate) fn finish(mut self) -> u64 {
        self.publish();
        for Unnamed { segment, retained } in self.unnamed {
            // What is retained is looked through when all of it is known.
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
        // While records are missing from the index every big segment may be one that a later record names.
        self.index.freeze();
        let next_segment = self.segments.next_id();
        let is_anew = self.merged.is_some();
        self.index.drain(|mut position| {
            position.next_segment = next_segment;
            // An index that was left half made is to be made anew: it lacks what was to be merged.
            (!is_anew).then_some(position)
        })?;
        self.view = View::clone(&self.index.view());
        Ok(())
    }
}

/// The place of a record, as an index entry keeps it.
pub(crate) fn location(segment: SegmentId, offset: u64, head_bytes: usize) -> Result<Location> {
    let head_bytes = u32::try_from(head_bytes).map_err(|_| Error::TooLarge("a record's head"))?;
    Ok(Location { segment, offset, head_bytes })
}
