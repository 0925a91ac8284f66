//! Compaction, for the operator: preview and result.
//!
//! Non-goals: selection and copying, which the engine does.

use std::collections::BTreeMap;

use catalog::{Catalog, CatalogError};
use engine::compaction::{CompactionInput, CompactionPlan, CompactionReport};
use engine::damage::SegmentId;
use engine::progress::ProgressCallback;
use engine::{Error, Store};
use jobs::compaction::{self, requested_rules};
use serde::{Deserialize, Serialize};

use super::stats::{SegmentKindView, class_view};
use crate::limits;

/// Options of a compaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CompactionParams {
    /// Minimum percentage of dead bytes in a segment.
    pub dead_percent_min: u8,
    /// Maximum copy rate in bytes per second; unlimited if absent.
    pub bytes_per_second_max: Option<u64>,
}

/// Preview of a compaction.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SelectionView {
    /// Bytes of all records in the log and in compacted segments.
    pub record_bytes: u64,
    /// Dead bytes among them.
    pub dead_bytes: u64,
    /// Dead bytes in the newest segment, which a run closes first and which is part of no step below.
    pub newest_dead_bytes: u64,
    /// Bytes of retained large files, which a run reclaims first.
    #[serde(default)]
    pub retained_bytes: u64,
    /// Steps in order; each is atomic.
    pub steps: Vec<StepView>,
    pub copy_bytes: u64,
    /// Estimate of the reclaimed bytes: tombstones that must be retained are not counted.
    pub free_bytes: u64,
    /// Assumed copy rate.
    pub bytes_per_second: u64,
    pub expected_seconds: u64,
}

/// Segments that are merged.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StepView {
    pub segments: Vec<CandidateView>,
    pub copy_bytes: u64,
    pub free_bytes: u64,
}

/// Segment that would be replaced.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CandidateView {
    pub id: u64,
    pub class: SegmentKindView,
    pub file_bytes: u64,
    pub live_bytes: u64,
    pub dead_bytes: u64,
}

/// Result of a compaction.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CompactedView {
    pub steps: u64,
    pub segments_removed: u64,
    pub segments_written: u64,
    pub copied_bytes: u64,
    /// Reduction of the files' size, including that of retained large files.
    pub freed_bytes: u64,
    /// Bytes punched out of segments for whose copies there was no space.
    pub punched_bytes: u64,
    /// Tombstones that need not be retained any longer.
    pub removals_dropped: u64,
    /// Whether it stopped early: replaced segments are still held by a backup, or cannot be removed.
    pub postponed: bool,
    /// Corrupt segments, which were not compacted.
    pub refused: Vec<RefusedSegmentView>,
}

/// Corrupt segment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RefusedSegmentView {
    pub id: u64,
    pub why: String,
}

/// Previews a compaction.
pub(super) fn selection(
    store: &Store,
    asked: CompactionParams,
) -> Result<SelectionView, CatalogError> {
    // A run writes a checkpoint first as well: only records in the index on disk can be compacted.
    match store.checkpoint() {
        Ok(_) | Err(Error::NoSpace | Error::ReadOnly(_)) => {}
        Err(other) => return Err(other.into()),
    }
    let selection = store.select_compaction(requested_rules(asked.dead_percent_min))?;
    let expected = limits::COMPACTION_BYTES_PER_SECOND_EXPECTED;
    let bytes_per_second = asked.bytes_per_second_max.unwrap_or(expected).clamp(1, expected);
    let known = store.stats()?.segments.into_iter();
    let classes: BTreeMap<_, _> = known.map(|it| (it.id, class_view(it.class))).collect();
    let (copy_bytes, free_bytes) = (selection.live_bytes(), selection.freed_bytes());
    let CompactionPlan { record_bytes, dead_bytes, newest_dead_bytes, retained_bytes, steps } =
        selection;
    Ok(SelectionView {
        record_bytes,
        dead_bytes,
        newest_dead_bytes,
        retained_bytes,
        steps: steps.iter().map(|step| step_view(&step.inputs, &classes)).collect(),
        copy_bytes,
        free_bytes: free_bytes.saturating_add(retained_bytes),
        bytes_per_second,
        expected_seconds: copy_bytes.div_ceil(bytes_per_second),
    })
}

fn step_view(
    inputs: &[CompactionInput],
    classes: &BTreeMap<SegmentId, SegmentKindView>,
) -> StepView {
    let copy_bytes = inputs.iter().map(|input| input.live_bytes).sum();
    let file_bytes: u64 = inputs.iter().map(|input| input.file_bytes).sum();
    let candidate = |input: &CompactionInput| CandidateView {
        id: input.segment.get(),
        class: classes.get(&input.segment).copied().unwrap_or(SegmentKindView::Log),
        file_bytes: input.file_bytes,
        live_bytes: input.live_bytes,
        dead_bytes: input.dead_bytes,
    };
    StepView {
        segments: inputs.iter().map(candidate).collect(),
        copy_bytes,
        free_bytes: file_bytes.saturating_sub(copy_bytes),
    }
}

/// Compacts the store, and adds an entry to the audit log.
pub(super) fn compact(
    store: &Store,
    catalog: &Catalog,
    asked: CompactionParams,
    watch: &mut ProgressCallback<'_>,
) -> Result<CompactedView, CatalogError> {
    let CompactionParams { dead_percent_min, bytes_per_second_max } = asked;
    let report =
        compaction::compact(store, catalog, dead_percent_min, bytes_per_second_max, watch)?;
    let CompactionReport {
        steps,
        segments_removed,
        segments_written,
        copied_bytes,
        freed_bytes,
        released_bytes,
        punched_bytes,
        tombstones_dropped: removals_dropped,
        is_deferred: is_postponed,
        skipped: refused,
    } = report;
    let refused = refused.into_iter();
    Ok(CompactedView {
        steps,
        segments_removed,
        segments_written,
        copied_bytes,
        freed_bytes: freed_bytes.saturating_add(released_bytes),
        punched_bytes,
        removals_dropped,
        postponed: is_postponed,
        refused: refused
            .map(|(id, why)| RefusedSegmentView { id: id.get(), why: why.to_string() })
            .collect(),
    })
}
