//! Writes the frozen overlay and recovery metadata to the index.
//!
//! Non-goals: the decision when to checkpoint, and freezing.

use super::health::HealthState;
use crate::error::{Error, Result};
use crate::format::AppliedPosition;
use crate::index::Index;
use crate::limits;
use crate::metrics::Metrics;
use crate::segment::SegmentSet;

/// Writes the frozen overlay to the index. If the disk is full, the overlay stays frozen and the call can be
/// retried. Any other error makes the store read-only.
pub(crate) fn checkpoint(
    index: &Index,
    segments: &SegmentSet,
    health: &HealthState,
    metrics: &Metrics,
) -> Result<()> {
    let entries = index.view().frozen.as_ref().map(|frozen| frozen.len());
    let work = || write_frozen(index, segments, health, entries.unwrap_or(0));
    match entries {
        Some(_) => metrics
            .timed(&metrics.checkpoints_us, work)
            .inspect_err(|_| metrics.checkpoints_failed.add(1)),
        // Without a frozen overlay there is no checkpoint to count.
        None => work(),
    }
}

fn write_frozen(
    index: &Index,
    segments: &SegmentSet,
    health: &HealthState,
    entries: usize,
) -> Result<()> {
    let room_bytes = limits::CHECKPOINT_FREE_BYTES_PER_ENTRY * entries as u64;
    health.space().require_bytes(limits::CHECKPOINT_FREE_BYTES_MIN + room_bytes)?;
    let foot = Foot::take(segments).inspect_err(|error| health.fail(error))?;
    foot.write(index).inspect_err(|error| {
        if !matches!(error, Error::NoSpace) {
            health.fail(error);
        }
    })
}

/// Writes a checkpoint of a store that is not open yet.
pub(crate) fn write_checkpoint(index: &Index, segments: &SegmentSet) -> Result<()> {
    Foot::take(segments)?.write(index)
}

/// Recovery metadata of a checkpoint, in addition to the frozen overlay.
struct Foot {
    orphan_floor: u64,
    next_segment: u64,
}

impl Foot {
    fn take(segments: &SegmentSet) -> Result<Self> {
        // The floor is taken first: segments removed later are below it, and their removal must be durable.
        let orphan_floor = segments.orphan_floor();
        segments.sync_removals()?;
        Ok(Self { orphan_floor, next_segment: segments.next_id() })
    }

    fn write(self, index: &Index) -> Result<()> {
        let Self { orphan_floor, next_segment } = self;
        index.drain(|position| Some(AppliedPosition { orphan_floor, next_segment, ..position }))
    }
}
