//! Hole punching: frees whole pages of dead bodies when the disk is full.
//!
//! Heads remain, so that groups stay decodable; a punched body fails its checksums, and the log records that its
//! space was reclaimed. The log record precedes the punch.
//!
//! Guarantees: no reader of a segment's map sees it change, and no backup copies it during the change: such a
//! segment is skipped.
//! Non-goals: segments that are growing.

use std::ops::Range;

use crate::error::Result;
use crate::format::SegmentId;
use crate::index::View;
use crate::segment::SegmentSet;

/// Returns the pages of a segment that contain only bytes of dead bodies.
pub(super) fn dead_pages(
    segments: &SegmentSet,
    view: &View,
    segment: SegmentId,
) -> Result<Vec<Range<u64>>> {
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
