//! Compaction, for the operator: what it would do, and what it did.
//!
//! Never here: choosing and copying, which the engine does.

use std::collections::BTreeMap;

use engine::{
    CompactionInput, CompactionReport, CompactionRules, Error, SegmentId, Selection, Store, Watch,
};
use serde::{Deserialize, Serialize};

use super::stats::{ClassView, class_view};
use crate::catalog::CatalogError;
use crate::limits;

/// Which segments are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CompactionAsked {
    /// Those of whose bytes at least so many percent are dead.
    pub dead_percent_min: u8,
    /// At most so many bytes are copied in a second; without it, as fast as it goes.
    pub bytes_per_second_max: Option<u64>,
}

/// What a compaction would do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SelectionView {
    /// Bytes of all records in the log and in compacted segments.
    pub record_bytes: u64,
    /// How many of them are dead.
    pub dead_bytes: u64,
    /// How many of these lie in the newest segment, which a run ends first and no step below takes.
    pub newest_dead_bytes: u64,
    /// Bytes of large files that are gone and can come back: a run gives them back first.
    #[serde(default)]
    pub retained_bytes: u64,
    /// In this order; each is done whole or not at all.
    pub steps: Vec<StepView>,
    pub copy_bytes: u64,
    /// About: deletions that must be remembered are not counted.
    pub free_bytes: u64,
    /// How fast the copying is taken to be.
    pub bytes_per_second: u64,
    pub expected_seconds: u64,
}

/// Segments that become one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StepView {
    pub segments: Vec<CandidateView>,
    pub copy_bytes: u64,
    pub free_bytes: u64,
}

/// A segment that would be replaced.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CandidateView {
    pub id: u64,
    pub class: ClassView,
    pub file_bytes: u64,
    pub live_bytes: u64,
    pub dead_bytes: u64,
}

/// What a compaction did.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CompactedView {
    pub steps: u64,
    pub segments_removed: u64,
    pub segments_written: u64,
    pub copied_bytes: u64,
    /// By how much the files became smaller, with those of large files that might have come back.
    pub freed_bytes: u64,
    /// What was given back of segments for whose copies there was no room.
    pub punched_bytes: u64,
    /// Deletions that need not be remembered any more.
    pub removals_dropped: u64,
    /// Whether it stopped early: a backup still holds segments that were replaced before, or they cannot be removed.
    pub postponed: bool,
    /// Damaged segments, which stay as they are.
    pub refused: Vec<RefusedSegmentView>,
}

/// A segment that is damaged.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RefusedSegmentView {
    pub id: u64,
    pub why: String,
}

/// What a compaction would do now.
pub(super) fn selection(
    store: &Store,
    asked: CompactionAsked,
) -> Result<SelectionView, CatalogError> {
    // A run writes one first, too: only what is in the index on disk can be compacted.
    match store.checkpoint() {
        Ok(_) | Err(Error::NoSpace | Error::ReadOnly(_)) => {}
        Err(other) => return Err(other.into()),
    }
    let selection = store.select_compaction(rules(asked))?;
    let expected = limits::COMPACTION_BYTES_PER_SECOND_EXPECTED;
    let bytes_per_second = asked.bytes_per_second_max.unwrap_or(expected).clamp(1, expected);
    let known = store.stats()?.segments.into_iter();
    let classes: BTreeMap<_, _> = known.map(|it| (it.id, class_view(it.class))).collect();
    let (copy_bytes, free_bytes) = (selection.live_bytes(), selection.freed_bytes());
    let Selection { record_bytes, dead_bytes, newest_dead_bytes, retained_bytes, steps } =
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

fn step_view(inputs: &[CompactionInput], classes: &BTreeMap<SegmentId, ClassView>) -> StepView {
    let copy_bytes = inputs.iter().map(|input| input.live_bytes).sum();
    let file_bytes: u64 = inputs.iter().map(|input| input.file_bytes).sum();
    let candidate = |input: &CompactionInput| CandidateView {
        id: input.segment.get(),
        class: classes.get(&input.segment).copied().unwrap_or(ClassView::Log),
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

/// Compacts.
pub(super) fn compact(
    store: &Store,
    asked: CompactionAsked,
    watch: &mut Watch<'_>,
) -> Result<CompactedView, CatalogError> {
    let report = store.compact(rules(asked), asked.bytes_per_second_max, watch)?;
    let CompactionReport {
        steps,
        segments_removed,
        segments_written,
        copied_bytes,
        freed_bytes,
        released_bytes,
        punched_bytes,
        removals_dropped,
        is_postponed,
        refused,
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

/// Whoever asks is not kept waiting until enough of the whole store is dead.
fn rules(asked: CompactionAsked) -> CompactionRules {
    CompactionRules { store_dead_percent_min: 0, segment_dead_percent_min: asked.dead_percent_min }
}
