//! Writing what was frozen to the index on disk, with what recovery needs to find orphans.
//!
//! Never here: when, and what is frozen.

use super::health::HealthState;
use crate::error::{Error, Result};
use crate::format::AppliedPosition;
use crate::index::Index;
use crate::limits;
use crate::measures::Measures;
use crate::segment::SegmentSet;

/// Writes what is frozen to the index. Without room for that it stays frozen and nothing is lost: it can be tried
/// again. Any other failure ends writing.
pub(crate) fn checkpoint(
    index: &Index,
    segments: &SegmentSet,
    health: &HealthState,
    measures: &Measures,
) -> Result<()> {
    let entries = index.view().frozen.as_ref().map(|frozen| frozen.len());
    let work = || write_frozen(index, segments, health, entries.unwrap_or(0));
    match entries {
        Some(_) => measures
            .timed(&measures.checkpoints_us, work)
            .inspect_err(|_| measures.checkpoints_failed.add(1)),
        // With nothing to write that is none.
        None => work(),
    }
}

fn write_frozen(
    index: &Index,
    segments: &SegmentSet,
    health: &HealthState,
    entries: usize,
) -> Result<()> {
    let room_bytes = limits::CHECKPOINT_ENTRY_ROOM_BYTES * entries as u64;
    health.space().require_bytes(limits::CHECKPOINT_ROOM_BYTES + room_bytes)?;
    let foot = Foot::take(segments).inspect_err(|error| health.fail(error))?;
    foot.write(index).inspect_err(|error| {
        if !matches!(error, Error::NoSpace) {
            health.fail(error);
        }
    })
}

/// The same for a store that is not open yet.
pub(crate) fn write_checkpoint(index: &Index, segments: &SegmentSet) -> Result<()> {
    Foot::take(segments)?.write(index)
}

/// What a checkpoint says of the segments, besides what is frozen.
struct Foot {
    orphan_floor: u64,
    next_segment: u64,
}

impl Foot {
    fn take(segments: &SegmentSet) -> Result<Self> {
        // The floor first: what is removed after it was taken is below it and must be durably gone.
        let orphan_floor = segments.orphan_floor();
        segments.sync_removals()?;
        Ok(Self { orphan_floor, next_segment: segments.next_id() })
    }

    fn write(self, index: &Index) -> Result<()> {
        let Self { orphan_floor, next_segment } = self;
        index.drain(|position| Some(AppliedPosition { orphan_floor, next_segment, ..position }))
    }
}
