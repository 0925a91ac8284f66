//! Copies the live records of the input segments into new segments.
//!
//! Copied are: records that the index refers to, damaged or not; tombstones and fact deletions that may be needed to
//! keep an older record dead; compaction and punch records about segments that remain; and records of deleted
//! objects whose big segments are retained, without which they could not be restored. A tombstone is dropped if its
//! name was put again, or if no remaining record can be an older, superseded one.
//!
//! Guarantees: an input with a missing live record is rejected: no live data is lost. A record is copied with its
//! checksums, so corruption stays detectable.
//! Non-goals: committing, removing.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;

use super::plan::CompactionStep;
use super::throttle::Throttle;
use crate::error::{Error, Result};
use crate::format::{
    Location, Malformed, Origin, Record, RecordContent, RecordOp, SegmentClass, SegmentId,
    SegmentUsage,
};
use crate::index::View;
use crate::progress::ProgressCallback;
use crate::replay::SegmentMerge;
use crate::segment::{CompactedWriter, RecordCursor, SegmentSet};

/// Result of a rewrite.
#[derive(Default)]
pub(super) struct Rewritten {
    /// New segments, with their usage.
    pub(super) outputs: Vec<(SegmentId, SegmentUsage)>,
    pub(super) copied_bytes: u64,
    pub(super) copied_count: u64,
    /// Number of dropped tombstones and fact deletions.
    pub(super) removals_dropped: u64,
    /// Bytes of records copied for retained segments, by new segment.
    pub(super) kept: BTreeMap<SegmentId, u64>,
}

/// Copy of the records of one step's inputs.
pub(super) struct Rewrite<'a> {
    pub(super) segments: &'a Arc<SegmentSet>,
    /// Index snapshot for liveness checks; a record that dies during the copy is copied unnecessarily.
    pub(super) view: Arc<View>,
    pub(super) step: &'a CompactionStep,
    pub(super) origin: Origin,
    /// Tombstones at or below this LSN are not needed: see [`tombstones_needed_from`].
    pub(super) removals_needed_from: Option<u64>,
    pub(super) segment_bytes: u64,
    pub(super) throttle: &'a Throttle,
}

impl Rewrite<'_> {
    /// Writes the outputs and makes them durable. After an error they are removed.
    pub(super) fn run(
        mut self,
        progress: &mut super::CompactionProgress,
        watch: &mut ProgressCallback<'_>,
    ) -> Result<Rewritten> {
        let mut readers: BTreeMap<SegmentId, RecordCursor> = BTreeMap::new();
        let mut headers = Vec::new();
        for input in &self.step.inputs {
            headers.push(self.segments.header(input.segment)?);
            readers.insert(input.segment, self.segments.records(input.segment)?);
        }
        let first_lsn = headers.iter().map(|header| header.base_lsn).min().unwrap_or(1);
        let segments = Arc::clone(self.segments);
        let mut records = SegmentMerge::new(headers, move |id| segments.records(id));
        let mut found: BTreeMap<SegmentId, u64> = BTreeMap::new();
        let mut rewritten = Rewritten::default();
        let mut finished: Vec<CompactedWriter> = Vec::new();
        let mut writer: Option<CompactedWriter> = None;
        let mut is_retaining = false;
        while let Some((record, at)) = records.next_head()? {
            let is_live = match self.disposition(&record, at)? {
                RecordDisposition::Dead => continue,
                RecordDisposition::Retained => {
                    is_retaining = true;
                    // The tombstone that keeps it dead comes later, and must be copied as well.
                    let before = record.lsn.saturating_sub(1);
                    let from = self.removals_needed_from.map_or(before, |from| from.min(before));
                    self.removals_needed_from = Some(from);
                    false
                }
                RecordDisposition::Tombstone => {
                    rewritten.removals_dropped += 1;
                    continue;
                }
                RecordDisposition::Live => {
                    *found.entry(at.segment).or_default() += 1;
                    true
                }
                RecordDisposition::Required => false,
            };
            let reader = readers.get(&at.segment).ok_or(Error::Closed)?;
            let body = reader.read_body_unverified(&record, at)?;
            let is_full =
                writer.as_ref().is_some_and(|it| it.bytes_with(&record) > self.segment_bytes);
            if is_full {
                finished.extend(writer.take());
            }
            let target = match &mut writer {
                Some(target) => target,
                none => {
                    let inputs = self.origin.inputs.clone();
                    none.insert(CompactedWriter::create(self.segments, record.lsn, inputs)?)
                }
            };
            let bytes = record.head_bytes() as u64 + record.body_bytes();
            // Includes the tombstones that it requires.
            if is_retaining && !is_live {
                *rewritten.kept.entry(target.header().segment).or_default() += bytes;
            }
            target.push(record, reader.place(at), body)?;
            rewritten.copied_bytes += bytes;
            rewritten.copied_count += 1;
            progress.copied(bytes);
            self.throttle.consume(bytes);
            if watch(progress.progress()) == ControlFlow::Break(()) {
                return Err(Error::Cancelled);
            }
        }
        if let Some((segment, fault)) = records.into_faults().first() {
            let path = segment.path(self.segments.class_of(*segment));
            return Err(Error::corrupt(path, fault.offset, fault.reason));
        }
        self.require_all(&found)?;
        finished.extend(writer);
        if finished.is_empty() {
            // No live records, but an output must record that this log range was replaced.
            let inputs = self.origin.inputs.clone();
            finished.push(CompactedWriter::create(self.segments, first_lsn, inputs)?);
        }
        // Each output covers the range up to the first record of the next, so that a lost output is detected.
        let mut from = 0;
        let mut later = finished.iter().skip(1).map(|writer| writer.header().base_lsn - 1);
        let ends: Vec<u64> = finished.iter().map(|_| later.next().unwrap_or(u64::MAX)).collect();
        let finish = || {
            for (writer, to) in finished.into_iter().zip(ends) {
                let segment = writer.header().segment;
                let covers = self.origin.lsn_ranges.intersect(from, to);
                rewritten.outputs.push((segment, writer.finish(covers)?));
                from = to.saturating_add(1);
            }
            self.segments.sync_compacted_names()
        };
        // A remaining output would be in effect once its inputs are removed, and resurrect objects deleted since.
        if let Err(error) = finish() {
            for (output, _) in &rewritten.outputs {
                self.segments.retire(*output, SegmentClass::Compacted);
            }
            return Err(error);
        }
        Ok(rewritten)
    }

    fn disposition(&self, record: &Record, at: Location) -> Result<RecordDisposition> {
        let is_live = match &record.op {
            RecordOp::Put { .. } | RecordOp::PutFact { .. } => self.view.points_to(record, at)?,
            RecordOp::Delete { name, .. } => {
                return self.tombstone_disposition(record.lsn, self.view.entry(name)?.is_some());
            }
            RecordOp::DeleteFact { name } => {
                return self.tombstone_disposition(record.lsn, self.view.fact(name)?.is_some());
            }
            // The segments that it refers to are already handled.
            RecordOp::Compaction { .. } => false,
            RecordOp::HolePunch { segment, .. } => {
                let is_input = self.step.inputs.iter().any(|input| input.segment == *segment);
                let stays = !is_input && self.view.segment_usage(*segment)?.is_some();
                return Ok(if stays {
                    RecordDisposition::Required
                } else {
                    RecordDisposition::Dead
                });
            }
        };
        Ok(match &record.op {
            _ if is_live => RecordDisposition::Live,
            RecordOp::Put { content: RecordContent::Big { segment, .. }, .. }
                if self.segments.is_retained(*segment) =>
            {
                RecordDisposition::Retained
            }
            _ => RecordDisposition::Dead,
        })
    }

    fn tombstone_disposition(&self, lsn: u64, has_come_back: bool) -> Result<RecordDisposition> {
        let is_needed = self.removals_needed_from.is_some_and(|from| lsn > from);
        Ok(if is_needed && !has_come_back {
            RecordDisposition::Required
        } else {
            RecordDisposition::Tombstone
        })
    }

    /// Checks that every record that the index refers to in the inputs was found.
    fn require_all(&self, found: &BTreeMap<SegmentId, u64>) -> Result<()> {
        for input in &self.step.inputs {
            let usage = self.view.segment_usage(input.segment)?;
            let wanted = usage.map_or(0, |usage| usage.live_count);
            if found.get(&input.segment).copied().unwrap_or(0) != wanted {
                let path = input.segment.path(self.segments.class_of(input.segment));
                return Err(Error::corrupt(path, 0, Malformed::Count));
            }
        }
        Ok(())
    }
}

/// Disposition of a record.
enum RecordDisposition {
    /// Copied: the index refers to it.
    Live,
    /// Copied, although the index does not refer to it.
    Required,
    /// Copied, because its object can be restored.
    Retained,
    /// Dropped: unreachable.
    Dead,
    /// Tombstone that may be dropped unless a remaining record requires it.
    Tombstone,
}

/// Returns the lowest LSN of the remaining segments that may have superseded records: a later tombstone may keep
/// such a record dead. `None` if there is no such segment.
pub(super) fn tombstones_needed_from(
    view: &View,
    segments: &SegmentSet,
    step: &CompactionStep,
) -> Result<Option<u64>> {
    let mut from: Option<u64> = None;
    for (id, usage) in view.segments()? {
        let is_input = step.inputs.iter().any(|input| input.segment == id);
        let holds_records = usage.class != crate::format::SegmentClass::Big;
        if holds_records && !is_input && usage.may_hold_dead_records() {
            let base_lsn = segments.header(id)?.base_lsn;
            from = Some(from.map_or(base_lsn, |lowest| lowest.min(base_lsn)));
        }
    }
    Ok(from)
}
