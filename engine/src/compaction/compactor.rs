//! Executes a compaction plan step by step through the committer.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::time::Duration;

use super::plan::{self, Candidate, CompactionPlan, CompactionRules, CompactionStep};
use super::rewrite::{Rewrite, Rewritten, tombstones_needed_from};
use super::throttle::Throttle;
use crate::clock::Clock;
use crate::commit::{
    self, Batch, CommitInfo, CommitStep, Committer, HealthState, Operation, Queue, Rollover,
};
use crate::error::{Error, Result};
use crate::format::{
    COMPACTED_FOLDER, LOG_FOLDER, LsnRanges, Origin, SegmentClass, SegmentHeader, SegmentId,
    SegmentUsage,
};
use crate::index::{Index, View};
use crate::limits;
use crate::metrics::Metrics;
use crate::progress::{ProgressCallback, WorkProgress};
use crate::segment::{SegmentSet, read_footer, read_origin};

/// Compactor of a store.
pub(crate) struct Compactor {
    pub(super) context: CompactorContext,
    /// Locked by the running compaction. Segments that could not be compacted, until the store is reopened.
    skipped: Mutex<BTreeSet<SegmentId>>,
    /// Number of requested compactions; a background compaction yields to them.
    asking: AtomicUsize,
    /// Bytes of records in compacted segments that the index does not refer to and that belong to retained segments.
    retained_dead_bytes: Mutex<BTreeMap<SegmentId, u64>>,
}

/// Dependencies of a compactor.
pub(crate) struct CompactorContext {
    pub(crate) segments: Arc<SegmentSet>,
    pub(crate) index: Arc<Index>,
    pub(crate) queue: Arc<Queue>,
    pub(crate) committer: Arc<Mutex<Committer>>,
    pub(crate) health: Arc<HealthState>,
    pub(crate) rollover: Arc<Rollover>,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) segment_bytes: u64,
    /// Whether the compactor runs the committer itself.
    pub(crate) steps_committer: bool,
}

/// Report of a compaction.
#[derive(Clone, Debug, Default)]
pub struct CompactionReport {
    /// Number of committed steps.
    pub steps: u64,
    /// Number of segments removed after their live records were copied.
    pub segments_removed: u64,
    /// Number of compacted segments written.
    pub segments_written: u64,
    /// Bytes of records copied.
    pub copied_bytes: u64,
    /// Decrease of file sizes in bytes.
    pub freed_bytes: u64,
    /// Bytes of dead bodies that were freed by hole punching, because there was no space to copy the live records.
    pub punched_bytes: u64,
    /// Bytes of retained large objects that were removed and can no longer be restored.
    pub released_bytes: u64,
    /// Number of tombstones and fact deletions that were not copied, because no older record remains.
    pub tombstones_dropped: u64,
    /// Whether the compaction stopped early because segments replaced before still exist: a backup holds them, or they
    /// could not be removed.
    pub is_deferred: bool,
    /// Damaged segments that were skipped, with their errors. Check them with [`fsck`](crate::fsck).
    pub skipped: Vec<(SegmentId, Error)>,
}

/// Progress of a compaction.
#[derive(Default)]
pub(super) struct CompactionProgress(WorkProgress);

impl CompactionProgress {
    pub(super) fn copied(&mut self, bytes: u64) {
        self.0.done_bytes += bytes;
    }

    pub(super) fn progress(&self) -> WorkProgress {
        self.0
    }
}

impl Compactor {
    pub(crate) fn new(desk: CompactorContext) -> Self {
        let (refused, kept) = (Mutex::default(), Mutex::default());
        Self {
            context: desk,
            skipped: refused,
            asking: AtomicUsize::new(0),
            retained_dead_bytes: kept,
        }
    }

    /// Returns the plan of a compaction by these rules.
    pub(crate) fn plan(&self, rules: CompactionRules) -> Result<CompactionPlan> {
        let refused = self.lock().clone();
        self.select_without(rules, &refused)
    }

    fn select_without(
        &self,
        rules: CompactionRules,
        refused: &BTreeSet<SegmentId>,
    ) -> Result<CompactionPlan> {
        let view = self.context.index.view();
        let kept = self.retained_dead_bytes();
        let usages: Vec<_> = view
            .segments()?
            .into_iter()
            .filter(|(_, usage)| usage.class != SegmentClass::Big)
            .map(|(id, usage)| {
                let live_bytes = usage.live_bytes + kept.get(&id).copied().unwrap_or(0);
                (id, SegmentUsage { live_bytes: live_bytes.min(usage.record_bytes), ..usage })
            })
            .collect();
        let totals = plan::totals(usages.iter().map(|(_, usage)| usage));
        let applied = view.checkpointed_position().and_then(|position| position.segment);
        let mut candidates = Vec::new();
        for (id, usage) in usages {
            // Everything after the checkpoint is replayed by the next open.
            let is_behind = applied.is_some_and(|segment| id < segment)
                || usage.class == SegmentClass::Compacted;
            let segments = &self.context.segments;
            let may_be_replaced = segments.may_be_replaced(id)
                && (plan::is_mostly_dead(&usage) || segments.is_local(id, usage.class));
            if is_behind && may_be_replaced && !refused.contains(&id) {
                candidates.extend(self.candidate(id, usage)?);
            }
        }
        let selection = plan::select(candidates, totals, rules, self.context.segment_bytes);
        let newest_dead_bytes = match self.newest(&view)? {
            Some((_, usage)) => plan::reclaimable_bytes(&usage),
            None => 0,
        };
        let retained_bytes = self.context.segments.retained_stats().bytes;
        Ok(CompactionPlan { newest_dead_bytes, retained_bytes, ..selection })
    }

    /// Returns the bytes of records that belong to retained segments, by compacted segment; empty if nothing is
    /// retained.
    fn retained_dead_bytes(&self) -> BTreeMap<SegmentId, u64> {
        let mut kept = self.retained_dead_bytes.lock().unwrap_or_else(PoisonError::into_inner);
        if self.context.segments.retained_stats().segments == 0 {
            kept.clear();
        }
        kept.clone()
    }

    /// Returns the segment of the last group of the log.
    fn newest(&self, view: &View) -> Result<Option<(SegmentId, SegmentUsage)>> {
        let Some(segment) = view.position().and_then(|position| position.segment) else {
            return Ok(None);
        };
        Ok(view.segment_usage(segment)?.map(|usage| (segment, usage)))
    }

    /// Closes the newest log segment if much of it is dead, so that it can be compacted.
    fn roll_over_newest(&self, rules: CompactionRules) -> Result<()> {
        let view = self.context.index.view();
        let Some((segment, usage)) = self.newest(&view)? else { return Ok(()) };
        let is_worth_it =
            plan::reclaimable_bytes(&usage) >= limits::COMPACTION_ROLLOVER_DEAD_BYTES_MIN;
        if !is_worth_it || !plan::is_dead_enough(&usage, rules) {
            return Ok(());
        }
        self.committer().roll_over()?;
        // Another thread may still be sealing it. A segment that cannot be sealed is not compacted.
        for _ in 0..SEAL_TRIES {
            while self.context.rollover.step()? {}
            if !self.context.segments.is_unsealed(segment) {
                break;
            }
            std::thread::sleep(SEAL_WAIT);
        }
        Ok(())
    }

    /// Returns a candidate if the segment is intact, sealed and not needed unchanged.
    fn candidate(&self, id: SegmentId, usage: SegmentUsage) -> Result<Option<Candidate>> {
        let segments = &self.context.segments;
        let found = match usage.class {
            SegmentClass::Compacted => self.open_compacted_input(id),
            _ => self.open_log_input(id),
        };
        let (header, covers, file_bytes) = match found {
            Ok(Some(found)) => found,
            // Damage is reported by scrub and fsck.
            Ok(None) | Err(Error::Corrupt(_)) => return Ok(None),
            Err(other) => return Err(other),
        };
        // The successor of an unsealed segment records where its groups end, so it must not be replaced.
        let before_is_sealed =
            header.predecessor.is_none_or(|before| !segments.is_unsealed(before.segment));
        if segments.is_unsealed(id) || !before_is_sealed {
            return Ok(None);
        }
        let age_ms = self.context.clock.unix_ms().saturating_sub(header.created_ms);
        Ok(Some(Candidate { id, usage, file_bytes, age_ms, lsn_ranges: covers }))
    }

    fn open_compacted_input(
        &self,
        id: SegmentId,
    ) -> Result<Option<(SegmentHeader, LsnRanges, u64)>> {
        let segments = &self.context.segments;
        let (header, origin) = read_origin(segments.disk(), id, segments.store())?;
        Ok(Some((header, origin.lsn_ranges, self.file_bytes(id)?)))
    }

    fn open_log_input(&self, id: SegmentId) -> Result<Option<(SegmentHeader, LsnRanges, u64)>> {
        let segments = &self.context.segments;
        let header = segments.header(id)?;
        let path = id.path(SegmentClass::Log);
        let file = segments.disk().open(&path);
        let file = file.map_err(|source| Error::io(format!("opening {path}"), source))?;
        let Some(footer) = read_footer(file.as_ref(), &header)? else { return Ok(None) };
        let mut covers = LsnRanges::default();
        covers.add(header.base_lsn, footer.last_lsn);
        Ok(Some((header, covers, self.file_bytes(id)?)))
    }

    fn file_bytes(&self, id: SegmentId) -> Result<u64> {
        let path = id.path(self.context.segments.class_of(id));
        let bytes = self.context.segments.disk().open(&path).and_then(|file| file.bytes_len());
        bytes.map_err(|source| Error::io(format!("reading {path}"), source))
    }

    /// Runs a requested compaction by these rules until there is nothing left to do or `watch` stops it. Waits for
    /// other requested compactions.
    pub(crate) fn run(
        &self,
        rules: CompactionRules,
        throttle: &Throttle,
        watch: &mut ProgressCallback<'_>,
    ) -> Result<CompactionReport> {
        // Segments that the index on disk does not contain cannot be compacted yet. If there is no space for a
        // checkpoint, the others can be.
        let prepared = self.roll_over_newest(rules).and_then(|()| {
            self.checkpoint()?;
            self.checkpoint()
        });
        match prepared {
            Ok(()) | Err(Error::NoSpace) => {}
            Err(other) => return Err(other),
        }
        let released_bytes = self.context.segments.release_bytes(u64::MAX);
        self.asking.fetch_add(1, Ordering::SeqCst);
        let report = self.run_exclusively(rules, throttle, watch);
        self.asking.fetch_sub(1, Ordering::SeqCst);
        report.map(|report| CompactionReport { released_bytes, ..report })
    }

    /// Runs a background compaction, which yields to requested ones.
    pub(crate) fn run_in_background(
        &self,
        rules: CompactionRules,
        throttle: &Throttle,
        watch: &mut ProgressCallback<'_>,
    ) -> Result<CompactionReport> {
        self.run_exclusively(rules, throttle, &mut |progress| {
            if self.asking.load(Ordering::SeqCst) > 0 {
                return ControlFlow::Break(());
            }
            watch(progress)
        })
    }

    fn run_exclusively(
        &self,
        rules: CompactionRules,
        throttle: &Throttle,
        watch: &mut ProgressCallback<'_>,
    ) -> Result<CompactionReport> {
        let mut refused = self.lock();
        self.resume_unfinished()?;
        let selection = self.select_without(rules, &refused)?;
        if !selection.steps.is_empty() {
            self.context.metrics.compactions.add(1);
        }
        let mut report = CompactionReport::default();
        let mut tally = CompactionProgress(WorkProgress {
            total_bytes: selection.live_bytes(),
            total_items: selection.inputs().count() as u64,
            ..WorkProgress::default()
        });
        for step in &selection.steps {
            if watch(tally.progress()) == ControlFlow::Break(()) {
                return Err(Error::Cancelled);
            }
            if !self.has_no_leftovers()? {
                report.is_deferred = true;
                return Ok(report);
            }
            match self.step(step, throttle, &mut tally, watch, &mut report) {
                // The rest of the store is not affected.
                Err(error @ Error::Corrupt(_)) if !Index::is_damage(&error) => {
                    for input in &step.inputs {
                        refused.insert(input.segment);
                        report.skipped.push((input.segment, error.clone()));
                    }
                }
                // The step is committed, but the disk is too full to finish it.
                Err(Error::NoSpace) if !self.has_no_leftovers()? => {
                    report.is_deferred = true;
                    return Ok(report);
                }
                Err(Error::NoSpace) => {
                    self.punch(step, &mut report)?;
                    // The reclaimed space may be sufficient; if not, the other steps would not fit either.
                    match self.step(step, throttle, &mut tally, watch, &mut report) {
                        Err(Error::NoSpace) => continue,
                        other => other?,
                    }
                }
                Err(other) => return Err(other),
                Ok(()) => {}
            }
            tally.0.done_items += step.inputs.len() as u64;
        }
        Ok(report)
    }

    /// Returns whether no replaced or unreferenced segment is left. While one exists, an index rebuild could read it
    /// instead of, or in addition to, its copy, so the records that keep its content dead are still needed.
    fn has_no_leftovers(&self) -> Result<bool> {
        let segments = &self.context.segments;
        // Segments held by a backup are removed when it ends, possibly without a checkpoint since.
        segments.sync_removals()?;
        let listed = |folder: &str| -> Result<BTreeSet<SegmentId>> {
            let names = segments.disk().list(folder);
            let names = names.map_err(|source| Error::io(format!("listing {folder}"), source))?;
            Ok(names.iter().filter_map(|name| SegmentId::from_file_name(name)).collect())
        };
        let (log, compacted) = (listed(LOG_FOLDER)?, listed(COMPACTED_FOLDER)?);
        let view = self.context.index.view();
        // An uncommitted output would be in effect once its inputs are removed; its removal had failed.
        for id in &compacted {
            if view.segment_usage(*id)?.is_none() {
                return Ok(false);
            }
        }
        for (id, usage) in view.segments()? {
            if usage.class == SegmentClass::Compacted {
                let origin = match read_origin(segments.disk(), id, segments.store()) {
                    Ok((_, origin)) => origin,
                    // Its inputs are unknown.
                    Err(Error::Corrupt(_)) => return Ok(false),
                    Err(other) => return Err(other),
                };
                let is_present = |id: &SegmentId| log.contains(id) || compacted.contains(id);
                if origin.inputs.iter().any(is_present) {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    fn step(
        &self,
        step: &CompactionStep,
        throttle: &Throttle,
        tally: &mut CompactionProgress,
        watch: &mut ProgressCallback<'_>,
        report: &mut CompactionReport,
    ) -> Result<()> {
        let segments = &self.context.segments;
        let view = self.context.index.view();
        let inputs: Vec<SegmentId> = step.inputs.iter().map(|input| input.segment).collect();
        let mut origin = Origin { inputs: inputs.clone(), lsn_ranges: LsnRanges::default() };
        let mut input_bytes = 0;
        for input in &inputs {
            let found = match segments.class_of(*input) {
                SegmentClass::Compacted => self.open_compacted_input(*input)?,
                _ => self.open_log_input(*input)?,
            };
            let Some((_, covers, bytes)) = found else { return Ok(()) };
            origin.lsn_ranges.add_all(&covers);
            input_bytes += bytes;
        }
        let room_bytes = step.inputs.iter().map(|input| input.live_bytes).sum::<u64>();
        self.context.health.space().require_bytes(room_bytes + OUTPUT_RESERVE_BYTES)?;
        let rewrite = Rewrite {
            segments,
            removals_needed_from: tombstones_needed_from(&view, segments, step)?,
            view,
            step,
            origin,
            segment_bytes: self.context.segment_bytes,
            throttle,
        };
        let rewritten = rewrite.run(tally, watch)?;
        self.replace(&inputs, &rewritten)?;
        {
            let mut kept = self.retained_dead_bytes.lock().unwrap_or_else(PoisonError::into_inner);
            kept.retain(|id, _| !inputs.contains(id));
            kept.extend(&rewritten.kept);
        }
        report.steps += 1;
        report.segments_removed += inputs.len() as u64;
        report.segments_written += rewritten.outputs.len() as u64;
        report.copied_bytes += rewritten.copied_bytes;
        report.tombstones_dropped += rewritten.removals_dropped;
        let mut output_bytes = 0;
        for (output, _) in &rewritten.outputs {
            output_bytes += self.file_bytes(*output)?;
        }
        let freed_bytes = input_bytes.saturating_sub(output_bytes);
        report.freed_bytes += freed_bytes;
        self.context.metrics.compacted_bytes.add(rewritten.copied_bytes);
        self.context.metrics.reclaimed_bytes.add(freed_bytes);
        Ok(())
    }

    /// Commits the durable copies and removes the originals.
    fn replace(&self, inputs: &[SegmentId], rewritten: &Rewritten) -> Result<()> {
        let segments = &self.context.segments;
        let outputs = rewritten.outputs.clone();
        self.upload(&outputs)?;
        for (output, _) in &outputs {
            segments.add_compacted(*output);
        }
        let committed =
            self.commit(Operation::CommitCompaction { outputs, inputs: inputs.to_vec() });
        if let Err(error) = committed {
            // After a failed write it is unknown whether the record is on disk: the next open decides.
            let is_refused = matches!(error, Error::Busy | Error::NoSpace | Error::Closed);
            if is_refused && self.context.health.require_writable().is_ok() {
                self.abandon(&rewritten.outputs);
            }
            return Err(error);
        }
        let outputs: Vec<SegmentId> = rewritten.outputs.iter().map(|(id, _)| *id).collect();
        outputs.iter().for_each(|output| segments.end_compaction(*output));
        self.finish(&outputs, inputs)
    }

    /// Uploads the copies of a compaction to the remote store, if there is one, or removes them.
    fn upload(&self, outputs: &[(SegmentId, SegmentUsage)]) -> Result<()> {
        let segments = &self.context.segments;
        let uploaded = outputs.iter().try_for_each(|(output, _)| {
            segments.upload_before_commit(*output, SegmentClass::Compacted)
        });
        uploaded.inspect_err(|_| self.abandon(outputs))
    }

    /// Removes the copies of a compaction that is not committed.
    fn abandon(&self, outputs: &[(SegmentId, SegmentUsage)]) {
        for (output, _) in outputs {
            self.context.segments.retire(*output, SegmentClass::Compacted);
            self.context.segments.end_compaction(*output);
        }
    }

    /// Finishes compactions that were committed and then failed: until then the index refers to the originals,
    /// nothing else can be compacted, and a rebuild would not know the copies.
    fn resume_unfinished(&self) -> Result<()> {
        let view = self.context.index.view();
        let segments = &self.context.segments;
        let mut begun: BTreeMap<Vec<SegmentId>, Vec<SegmentId>> = BTreeMap::new();
        for (id, usage) in view.segments()? {
            if usage.class != SegmentClass::Compacted {
                continue;
            }
            let origin = match read_origin(segments.disk(), id, segments.store()) {
                Ok((_, origin)) => origin,
                // Damage is reported by scrub and fsck.
                Err(Error::Corrupt(_)) => continue,
                Err(other) => return Err(other),
            };
            if view.contains_any_segment(&origin.inputs)? {
                begun.entry(origin.inputs).or_default().push(id);
            }
        }
        for (inputs, outputs) in begun {
            match self.finish(&outputs, &inputs) {
                Err(Error::NoSpace) => {}
                // The originals remain and are read.
                Err(error @ Error::Corrupt(_)) if !Index::is_damage(&error) => {}
                other => other?,
            }
        }
        Ok(())
    }

    /// Makes the index refer to the copies of a committed compaction, and removes the originals.
    fn finish(&self, outputs: &[SegmentId], inputs: &[SegmentId]) -> Result<()> {
        let segments = &self.context.segments;
        for output in outputs {
            self.repoint(*output, inputs)?;
        }
        let done = self.commit(Operation::Repointed { inputs: inputs.to_vec() })?;
        if !done.inputs_are_free {
            let path = outputs.first().map(|id| id.path(SegmentClass::Compacted));
            let reason = crate::format::Malformed::Count;
            return Err(Error::corrupt(path.unwrap_or_default(), 0, reason));
        }
        self.checkpoint_without(inputs)?;
        for input in inputs {
            segments.retire(*input, segments.class_of(*input));
        }
        segments.sync_removals()
    }

    /// Makes the index refer to the copies in a segment, in batches, between which other batches are committed.
    fn repoint(&self, output: SegmentId, inputs: &[SegmentId]) -> Result<()> {
        let mut copies = self.context.segments.records(output)?;
        let mut is_done = false;
        while !is_done {
            let view = self.context.index.view();
            let mut moved = Vec::with_capacity(limits::REPOINT_BATCH_ENTRIES);
            while moved.len() < limits::REPOINT_BATCH_ENTRIES {
                let Some(copy) = copies.step()? else {
                    is_done = true;
                    break;
                };
                moved.extend(view.relocation_of(&copy.record, copy.place, inputs)?);
            }
            if !moved.is_empty() {
                self.commit_with_retry(moved)?;
            }
        }
        Ok(())
    }

    /// Commits a batch of repointings, and waits for the checkpoint if too many changes are in memory.
    fn commit_with_retry(&self, moved: Vec<crate::index::RelocatedRecord>) -> Result<()> {
        loop {
            match self.commit(Operation::Repoint { moved: moved.clone() }) {
                Err(Error::Busy) => self.checkpoint()?,
                other => return other.map(|_| ()),
            }
        }
    }

    /// Writes checkpoints until the index on disk does not contain these segments.
    fn checkpoint_without(&self, inputs: &[SegmentId]) -> Result<()> {
        loop {
            let view: Arc<View> = self.context.index.view();
            let mut is_free = true;
            for input in inputs {
                is_free &= view.checkpointed_usage(*input)?.is_none();
            }
            if is_free {
                return Ok(());
            }
            self.checkpoint()?;
        }
    }

    fn checkpoint(&self) -> Result<()> {
        self.committer().freeze();
        let CompactorContext { index, segments, health, metrics, .. } = &self.context;
        commit::checkpoint(index, segments, health, metrics)
    }

    pub(super) fn commit(&self, operation: Operation) -> Result<CommitInfo> {
        let (answer, outcome) = mpsc::sync_channel(1);
        let answer = Box::new(move |result| {
            let _ = answer.send(result);
        });
        self.context.queue.push(Batch::of(operation), answer);
        if self.context.steps_committer {
            while self.committer().step() == CommitStep::Worked {}
        }
        outcome.recv().unwrap_or(Err(Error::Closed))
    }

    fn committer(&self) -> MutexGuard<'_, Committer> {
        self.context.committer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock(&self) -> MutexGuard<'_, BTreeSet<SegmentId>> {
        self.skipped.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Space that a compaction needs in addition to the copies: groups, footers, a header page, and the index.
const OUTPUT_RESERVE_BYTES: u64 = 1 << 20;
/// Number of polls whether a segment is sealed, and the interval between them.
const SEAL_TRIES: u32 = 400;
const SEAL_WAIT: Duration = Duration::from_millis(5);
