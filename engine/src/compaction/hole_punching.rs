//! Hole punching: frees whole pages of dead bodies when the disk is full.
//!
//! Heads remain, so that groups stay decodable; a punched body fails its checksums, and the log records that its
//! space was reclaimed. The log record precedes the punch.
//!
//! Guarantees: no reader of a segment's map sees it change, and no backup copies it during the change: such a
//! segment is skipped.
//! Non-goals: segments that are growing.

use std::ops::Range;

use super::compactor::{CompactionReport, Compactor};
use super::plan::CompactionStep;
use crate::commit::Operation;
use crate::error::{Error, Result};
use crate::format::SegmentId;
use crate::index::View;
use crate::segment::SegmentSet;

impl Compactor {
    /// Punches the dead bodies of a step's inputs.
    pub(super) fn punch(&self, step: &CompactionStep, report: &mut CompactionReport) -> Result<()> {
        for input in &step.inputs {
            let segment = input.segment;
            let view = self.context.index.view();
            let Some(usage) = view.segment_usage(segment)? else { continue };
            if !self.context.segments.is_local(segment, usage.class) {
                continue;
            }
            let pages = dead_pages(&self.context.segments, &view, segment)?;
            let all_bytes = pages.iter().map(|pages| pages.end - pages.start).sum::<u64>();
            let bytes = all_bytes.saturating_sub(usage.punched_bytes);
            if bytes == 0 {
                continue;
            }
            let punched = self.context.segments.with_exclusive_file(segment, |file| {
                self.commit(Operation::RecordHolePunch { segment, bytes })?;
                let path = segment.path(usage.class);
                let done = pages.into_iter().try_for_each(|pages| file.punch(pages));
                done.and_then(|()| file.sync_data())
                    .map_err(|source| Error::io(format!("reclaiming space of {path}"), source))
            })?;
            if punched.is_some() {
                report.punched_bytes += bytes;
                self.context.metrics.reclaimed_bytes.add(bytes);
            }
        }
        let _ = self.context.health.space().on_disk_full();
        Ok(())
    }
}

/// Returns the pages of a segment that contain only bytes of dead bodies.
fn dead_pages(segments: &SegmentSet, view: &View, segment: SegmentId) -> Result<Vec<Range<u64>>> {
    let mut records = segments.records(segment)?;
    let mut pages = Vec::new();
    while let Some(found) = records.step()? {
        let body = found.place.offset + u64::from(found.place.head_bytes);
        let end = body + found.record.body_bytes();
        let whole = body.next_multiple_of(PAGE_BYTES)..end - end % PAGE_BYTES;
        if whole.start < whole.end && !view.points_to(&found.record, found.place)? {
            pages.push(whole);
        }
    }
    Ok(pages)
}

/// Maximum block size in which file systems free space.
const PAGE_BYTES: u64 = 4_096;
