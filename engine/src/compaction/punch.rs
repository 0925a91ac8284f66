//! Giving space back where there is none left to copy anything: the whole pages inside dead bodies become holes.
//!
//! Heads stay, so that groups stay whole; a body that reads as zeros fails its checksums, and whoever looks it up in
//! the log learns that its space was given back. The log says so before it is done.
//!
//! Promises: nobody who has a piece of a segment's map sees it change, and no backup copies it while it does: such a
//! segment is passed over.
//! Never here: segments that still grow.

use std::ops::Range;

use crate::error::Result;
use crate::format::SegmentId;
use crate::index::View;
use crate::segment::SegmentSet;

/// The pages of a segment that hold nothing but bytes of dead bodies.
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

/// File systems give space back in blocks of this size, or of a part of it.
const PAGE_BYTES: u64 = 4_096;
