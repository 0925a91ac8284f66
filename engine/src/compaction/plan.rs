//! Compaction plan: selects segments by cost-benefit and groups them into steps.
//!
//! A segment is a candidate if enough of it is dead, or if it is one of many small ones, which each open of the
//! store leaves behind. Candidates that reclaim most for the bytes copied, and have been stable longest, come first:
//! `(1 - live) * age / (1 + live)`, the cost-benefit rule of log-structured file systems (Rosenblum and Ousterhout,
//! 1992).
//!
//! Guarantees: pure; the copies of a step fit in one segment according to the counters, and its origin in a header
//! page.
//! Non-goals: disk access.

use std::fmt;

use crate::format::{LsnRanges, SegmentClass, SegmentId, SegmentUsage};
use crate::limits;

/// Thresholds of a compaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CompactionRules {
    /// Minimum share of dead bytes in the whole store, in percent.
    pub store_dead_percent_min: u8,
    /// Minimum share of dead bytes in a segment, in percent.
    pub segment_dead_percent_min: u8,
}

impl CompactionRules {
    /// Rules of background compaction in normal operation.
    pub const BACKGROUND: Self = Self { store_dead_percent_min: 20, segment_dead_percent_min: 50 };
    /// Rules of background compaction when the disk is nearly full.
    pub const LOW_SPACE: Self = Self { store_dead_percent_min: 0, segment_dead_percent_min: 30 };
}

/// Segment that may be compacted.
#[derive(Clone, Debug)]
pub(crate) struct Candidate {
    pub(crate) id: SegmentId,
    pub(crate) usage: SegmentUsage,
    /// Length of the file in bytes.
    pub(crate) file_bytes: u64,
    /// Age of the segment.
    pub(crate) age_ms: u64,
    /// LSN ranges that the segment replaces.
    pub(crate) lsn_ranges: LsnRanges,
}

/// Compaction plan: steps, and the totals they were selected from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CompactionPlan {
    /// Steps in order; each is committed separately.
    pub steps: Vec<CompactionStep>,
    /// Record bytes of all log and compacted segments.
    pub record_bytes: u64,
    /// Dead bytes in all log and compacted segments that still use disk space.
    pub dead_bytes: u64,
    /// Dead bytes in the newest log segment, which no step includes while it is the newest.
    pub newest_dead_bytes: u64,
    /// Bytes of retained large objects, which [`Store::compact`](crate::Store::compact) releases first.
    pub retained_bytes: u64,
}

/// Step that replaces some segments by one with their live records.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CompactionStep {
    /// Segments to be replaced.
    pub inputs: Vec<CompactionInput>,
}

/// Segment to be replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CompactionInput {
    /// Id of the segment.
    pub segment: SegmentId,
    /// Length of the file in bytes.
    pub file_bytes: u64,
    /// Bytes of live records, to be copied.
    pub live_bytes: u64,
    /// Bytes of unreachable records.
    pub dead_bytes: u64,
    /// Number of live records, to be copied.
    pub live_count: u64,
}

impl CompactionPlan {
    /// Returns the number of bytes to be copied.
    pub fn live_bytes(&self) -> u64 {
        self.inputs().map(|input| input.live_bytes).sum()
    }

    /// Returns the approximate number of bytes that the step reclaims. Tombstones that must be copied reduce it.
    pub fn freed_bytes(&self) -> u64 {
        let files: u64 = self.inputs().map(|input| input.file_bytes).sum();
        files.saturating_sub(self.live_bytes())
    }

    /// Returns the inputs of all steps.
    pub fn inputs(&self) -> impl Iterator<Item = &CompactionInput> {
        self.steps.iter().flat_map(|step| &step.inputs)
    }
}

impl fmt::Display for CompactionPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} segments in {} steps, {} bytes to copy, about {} to give back",
            self.inputs().count(),
            self.steps.len(),
            self.live_bytes(),
            self.freed_bytes()
        )
    }
}

/// Selects segments. `record_bytes` and `dead_bytes` are the totals of all segments, including those that are no
/// candidates.
pub(crate) fn select(
    candidates: Vec<Candidate>,
    totals: (u64, u64),
    rules: CompactionRules,
    segment_bytes: u64,
) -> CompactionPlan {
    let (record_bytes, dead_bytes) = totals;
    let mut selection = CompactionPlan { record_bytes, dead_bytes, ..CompactionPlan::default() };
    let is_small = |candidate: &Candidate| candidate.file_bytes <= segment_bytes / SMALL_PART;
    let are_many_small =
        candidates.iter().filter(|candidate| is_small(candidate)).count() >= SMALL_COUNT_MIN;
    let is_due = percent(dead_bytes, record_bytes) >= u64::from(rules.store_dead_percent_min);
    let mut chosen: Vec<Candidate> = candidates
        .into_iter()
        .filter(|candidate| {
            let is_wanted = is_due && is_dead_enough(&candidate.usage, rules);
            is_wanted || are_many_small && is_small(candidate)
        })
        .collect();
    chosen.sort_by(|one, other| {
        score(other).total_cmp(&score(one)).then_with(|| one.id.cmp(&other.id))
    });
    while !chosen.is_empty() {
        let step = take_step(&mut chosen, segment_bytes);
        let is_worth_it =
            step.inputs.len() > 1 || step.inputs.iter().any(|input| input.dead_bytes > 0);
        if is_worth_it {
            selection.steps.push(step);
        }
    }
    selection
}

/// Takes the best candidates that fit together in one segment. The first always fits.
fn take_step(chosen: &mut Vec<Candidate>, segment_bytes: u64) -> CompactionStep {
    let mut step = CompactionStep::default();
    let mut covers = LsnRanges::default();
    let mut live_bytes = 0;
    chosen.retain(|candidate| {
        let mut with_it = covers.clone();
        with_it.add_all(&candidate.lsn_ranges);
        let copied = live_bytes + copied_bytes(&candidate.usage);
        let fits = step.inputs.len() < limits::COMPACTION_SEGMENTS_MAX
            && with_it.count() <= limits::LSN_RANGES_MAX
            && copied <= segment_bytes;
        if !fits && !step.inputs.is_empty() {
            return true;
        }
        live_bytes = copied;
        covers = with_it;
        step.inputs.push(CompactionInput {
            segment: candidate.id,
            file_bytes: candidate.file_bytes,
            live_bytes: candidate.usage.live_bytes,
            dead_bytes: candidate.usage.dead_bytes(),
            live_count: candidate.usage.live_count,
        });
        false
    });
    step.inputs.sort_by_key(|input| input.segment);
    step
}

/// Returns the size of the copy: the records with the overhead of groups and footer.
fn copied_bytes(usage: &SegmentUsage) -> u64 {
    usage.live_bytes + usage.live_count.saturating_mul(COPY_OVERHEAD_BYTES)
}

/// Returns the dead bytes that still use space.
pub(crate) fn reclaimable_bytes(usage: &SegmentUsage) -> u64 {
    usage.dead_bytes().saturating_sub(usage.punched_bytes)
}

/// Returns whether a segment has enough dead bytes to be compacted by these rules.
pub(crate) fn is_dead_enough(usage: &SegmentUsage, rules: CompactionRules) -> bool {
    let dead_percent = percent(reclaimable_bytes(usage), usage.record_bytes);
    usage.record_bytes > usage.live_bytes
        && dead_percent >= u64::from(rules.segment_dead_percent_min)
}

/// Returns whether so much of a segment is dead that it is compacted even if its live bytes have to be fetched from the
/// remote store.
pub(crate) fn is_mostly_dead(usage: &SegmentUsage) -> bool {
    percent(reclaimable_bytes(usage), usage.record_bytes)
        >= limits::COMPACTION_REMOTE_DEAD_PERCENT_MIN
}

/// Returns the record bytes and the reclaimable dead bytes of log and compacted segments.
pub(crate) fn totals<'a>(all: impl Iterator<Item = &'a SegmentUsage>) -> (u64, u64) {
    all.filter(|usage| usage.class != SegmentClass::Big).fold((0, 0), |(records, dead), usage| {
        (records + usage.record_bytes, dead + reclaimable_bytes(usage))
    })
}

#[allow(clippy::cast_precision_loss, reason = "a ratio to sort by")]
fn score(candidate: &Candidate) -> f64 {
    let usage = &candidate.usage;
    let live = usage.live_bytes as f64 / usage.record_bytes.max(1) as f64;
    (1.0 - live) * (candidate.age_ms as f64 + 1.0) / (1.0 + live)
}

fn percent(part: u64, whole: u64) -> u64 {
    let percent = u128::from(part) * 100 / u128::from(whole.max(1));
    u64::try_from(percent).unwrap_or(u64::MAX)
}

/// Divisor of the segment size that gives the maximum size of a small segment.
const SMALL_PART: u64 = 16;
/// Number of small segments from which on they are merged.
const SMALL_COUNT_MIN: usize = 16;
/// Overhead of a copied record: its frame, and approximately its footer entry.
const COPY_OVERHEAD_BYTES: u64 = 160;

#[cfg(test)]
mod tests {
    use super::*;

    const SEGMENT: u64 = 1_000_000;

    fn candidate(id: u64, live_percent: u64, age_ms: u64) -> Candidate {
        let mut covers = LsnRanges::default();
        covers.add(id * 100, id * 100 + 99);
        let usage = SegmentUsage {
            record_bytes: SEGMENT,
            live_bytes: SEGMENT * live_percent / 100,
            record_count: 100,
            live_count: live_percent,
            ..SegmentUsage::empty(SegmentClass::Log)
        };
        let id = SegmentId::new(id).unwrap();
        Candidate { id, usage, file_bytes: SEGMENT, age_ms, lsn_ranges: covers }
    }

    fn chosen(candidates: Vec<Candidate>, rules: CompactionRules) -> Vec<Vec<u64>> {
        let usages: Vec<_> = candidates.iter().map(|candidate| candidate.usage).collect();
        let selection = select(candidates, totals(usages.iter()), rules, SEGMENT);
        let ids = |step: &CompactionStep| step.inputs.iter().map(|i| i.segment.get()).collect();
        selection.steps.iter().map(ids).collect()
    }

    #[test]
    fn plan_is_empty_below_dead_threshold() {
        let mut all = vec![candidate(1, 10, 5)];
        assert_eq!(chosen(all.clone(), CompactionRules::BACKGROUND), [[1]]);
        all.extend((2..=10).map(|id| candidate(id, 95, 5)));
        assert!(chosen(all.clone(), CompactionRules::BACKGROUND).is_empty(), "13 % are dead");
        assert_eq!(chosen(all, CompactionRules::LOW_SPACE), [[1]]);
    }

    #[test]
    fn compaction_threshold_drops_when_space_is_short() {
        let all = vec![candidate(1, 49, 5), candidate(2, 51, 5), candidate(3, 71, 5)];
        assert_eq!(chosen(all.clone(), CompactionRules::BACKGROUND), [vec![1]]);
        assert_eq!(chosen(all, CompactionRules::LOW_SPACE), [vec![1], vec![2]]);
    }

    #[test]
    fn plan_orders_by_cost_benefit_and_fills_one_segment() {
        let all = vec![candidate(1, 50, 5), candidate(2, 10, 5), candidate(3, 45, 50)];
        assert_eq!(chosen(all, CompactionRules::BACKGROUND), [vec![2, 3], vec![1]]);
    }

    #[test]
    fn many_small_segments_are_merged() {
        let small = |id| {
            let mut small = candidate(id, 100, 5);
            small.usage.record_bytes = 50;
            small.usage.live_bytes = 50;
            small.usage.live_count = 1;
            Candidate { file_bytes: 4_096, ..small }
        };
        let few: Vec<_> = (1..=15).map(small).collect();
        assert!(chosen(few, CompactionRules::BACKGROUND).is_empty());
        let many: Vec<_> = (1..=16).map(small).collect();
        assert_eq!(chosen(many, CompactionRules::BACKGROUND).len(), 1);
    }

    #[test]
    fn plan_step_is_bounded_by_header_page_capacity() {
        let scattered: Vec<_> = (1..=200).map(|id| candidate(2 * id, 0, 5)).collect();
        let steps = chosen(scattered, CompactionRules::BACKGROUND);
        assert_eq!(steps.iter().map(Vec::len).collect::<Vec<_>>(), [64, 64, 64, 8]);
    }

    #[test]
    fn single_segment_without_dead_bytes_is_not_planned() {
        let rules = CompactionRules { store_dead_percent_min: 0, segment_dead_percent_min: 0 };
        assert!(chosen(vec![candidate(1, 100, 5)], rules).is_empty());
    }

    #[test]
    fn punched_bytes_are_not_reclaimable_again() {
        let mut punched = candidate(1, 20, 5);
        punched.usage.punched_bytes = 700_000;
        assert!(chosen(vec![punched], CompactionRules::BACKGROUND).is_empty());
    }
}
