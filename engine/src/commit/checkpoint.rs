//! Writing what was frozen to the index on disk, with what recovery needs to find orphans.
//!
//! Never here: when, and what is frozen.

use crate::error::Result;
use crate::index::Index;
use crate::segment::SegmentSet;

/// Writes the frozen overlay, if there is one.
pub(crate) fn checkpoint(index: &Index, segments: &SegmentSet) -> Result<()> {
    // The floor first: what is removed after it was taken is below it and must be durably gone.
    let orphan_floor = segments.orphan_floor();
    segments.sync_removals()?;
    let next_segment = segments.next_id();
    index.drain(|mut position| {
        position.orphan_floor = orphan_floor;
        position.next_segment = next_segment;
        Some(position)
    })?;
    Ok(())
}
