//! Writing what was frozen to the index on disk, with what recovery needs to find orphans.
//!
//! Never here: when, and what is frozen.

use super::health::HealthState;
use crate::error::Result;
use crate::index::Index;
use crate::limits;
use crate::segment::SegmentSet;

/// Writes what is frozen to the index. Without room for that it stays frozen and nothing is lost: redb is never begun
/// with, because it gives up for good when a write of its own fails, and so must the store then.
pub(crate) fn checkpoint(index: &Index, segments: &SegmentSet, health: &HealthState) -> Result<()> {
    let entries = index.view().frozen.as_ref().map_or(0, |frozen| frozen.len());
    let room_bytes = limits::CHECKPOINT_ENTRY_ROOM_BYTES * entries as u64;
    health.space().require_bytes(limits::CHECKPOINT_ROOM_BYTES + room_bytes)?;
    write_checkpoint(index, segments).inspect_err(|error| health.fail(error))
}

/// The same for a store that is not open yet.
pub(crate) fn write_checkpoint(index: &Index, segments: &SegmentSet) -> Result<()> {
    // The floor first: what is removed after it was taken is below it and must be durably gone.
    let orphan_floor = segments.orphan_floor();
    segments.sync_removals()?;
    let next_segment = segments.next_id();
    index.drain(|mut position| {
        position.orphan_floor = orphan_floor;
        position.next_segment = next_segment;
        Some(position)
    })
}
