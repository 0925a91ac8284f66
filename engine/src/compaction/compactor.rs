//! Carrying a selection out, step by step, through the same committer as everything else.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::time::Duration;

use super::punch::dead_pages;
use super::rewrite::{Rewrite, Rewritten, removals_needed_from};
use super::selection::{self, Candidate, CompactionRules, CompactionStep, Selection};
use super::throttle::Throttle;
use crate::clock::Clock;
use crate::commit::{
    self, Batch, Committed, Committer, HealthState, Operation, Progress, Queue, Rollover,
};
use crate::error::{Error, Result};
use crate::format::{Covers, Origin, SegmentClass, SegmentHeader, SegmentId, SegmentUsage};
use crate::index::{Index, View};
use crate::limits;
use crate::measures::Measures;
use crate::progress::{Watch, WorkProgress};
use crate::segment::{COMPACTED_FOLDER, LOG_FOLDER, SegmentSet, read_footer, read_origin};

/// Compacts a store.
pub(crate) struct Compactor {
    desk: CompactorDesk,
    /// Held by the one compaction that runs. Segments that could not be compacted, until the store is opened again.
    refused: Mutex<BTreeSet<SegmentId>>,
    /// How many ask for a compaction: one that nobody asked for makes way.
    asking: AtomicUsize,
    /// Bytes of records in compacted segments that nothing points to and that stay with what is retained.
    kept: Mutex<BTreeMap<SegmentId, u64>>,
}

/// What a compactor works with.
pub(crate) struct CompactorDesk {
    pub(crate) segments: Arc<SegmentSet>,
    pub(crate) index: Arc<Index>,
    pub(crate) queue: Arc<Queue>,
    pub(crate) committer: Arc<Mutex<Committer>>,
    pub(crate) health: Arc<HealthState>,
    pub(crate) rollover: Arc<Rollover>,
    pub(crate) measures: Arc<Measures>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) segment_bytes: u64,
    /// Whether nobody else runs the committer.
    pub(crate) steps_committer: bool,
}

/// What a compaction did.
#[derive(Clone, Debug, Default)]
pub struct CompactionReport {
    /// Steps that were committed.
    pub steps: u64,
    /// Segments that were replaced and removed.
    pub segments_removed: u64,
    /// Segments that took their place.
    pub segments_written: u64,
    /// Bytes of records that were copied.
    pub copied_bytes: u64,
    /// By how much the files became smaller.
    pub freed_bytes: u64,
    /// Bytes of dead bodies whose space was given back where there was no room to copy what lies between them.
    pub punched_bytes: u64,
    /// Bytes of large objects that were gone and might have come back.
    pub released_bytes: u64,
    /// Tombstones and ends of facts that nothing needs any more.
    pub removals_dropped: u64,
    /// Whether it stopped early, because segments that were replaced before are still there: a backup keeps them, or
    /// they could not be removed.
    pub is_postponed: bool,
    /// Segments that are damaged and were left as they are, and what was found: for `fsck`.
    pub refused: Vec<(SegmentId, Error)>,
}

/// How far a compaction has come.
#[derive(Default)]
pub(super) struct Tally(WorkProgress);

impl Tally {
    pub(super) fn copied(&mut self, bytes: u64) {
        self.0.done_bytes += bytes;
    }

    pub(super) fn progress(&self) -> WorkProgress {
        self.0
    }
}

impl Compactor {
    pub(crate) fn new(desk: CompactorDesk) -> Self {
        let (refused, kept) = (Mutex::default(), Mutex::default());
        Self { desk, refused, asking: AtomicUsize::new(0), kept }
    }

    /// What a compaction by these rules would do.
    pub(crate) fn select(&self, rules: CompactionRules) -> Result<Selection> {
        let refused = self.lock().clone();
        self.select_without(rules, &refused)
    }

    fn select_without(
        &self,
        rules: CompactionRules,
        refused: &BTreeSet<SegmentId>,
    ) -> Result<Selection> {
        let view = self.desk.index.view();
        let kept = self.kept_now();
        let usages: Vec<_> = view
            .segments()?
            .into_iter()
            .filter(|(_, usage)| usage.class != SegmentClass::Big)
            .map(|(id, usage)| {
                let live_bytes = usage.live_bytes + kept.get(&id).copied().unwrap_or(0);
                (id, SegmentUsage { live_bytes: live_bytes.min(usage.record_bytes), ..usage })
            })
            .collect();
        let totals = selection::totals(usages.iter().map(|(_, usage)| usage));
        let applied = view.checkpointed_position().and_then(|position| position.segment);
        let mut candidates = Vec::new();
        for (id, usage) in usages {
            // What lies behind the checkpoint is read again by the next opening.
            let is_behind = applied.is_some_and(|segment| id < segment)
                || usage.class == SegmentClass::Compacted;
            if is_behind && !refused.contains(&id) {
                candidates.extend(self.candidate(id, usage)?);
            }
        }
        let selection = selection::select(candidates, totals, rules, self.desk.segment_bytes);
        let newest_dead_bytes = match self.newest(&view)? {
            Some((_, usage)) => selection::reclaimable_bytes(&usage),
            None => 0,
        };
        let retained_bytes = self.desk.segments.retained_stats().bytes;
        Ok(Selection { newest_dead_bytes, retained_bytes, ..selection })
    }

    /// What is kept beside what counts, by segment, while anything is retained.
    fn kept_now(&self) -> BTreeMap<SegmentId, u64> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if self.desk.segments.retained_stats().segments == 0 {
            kept.clear();
        }
        kept.clone()
    }

    /// The segment that the last group of the log lies in.
    fn newest(&self, view: &View) -> Result<Option<(SegmentId, SegmentUsage)>> {
        let Some(segment) = view.position().and_then(|position| position.segment) else {
            return Ok(None);
        };
        Ok(view.segment_usage(segment)?.map(|usage| (segment, usage)))
    }

    /// Ends the newest segment of the log when much of it is dead, so that it can be compacted like any other.
    fn end_newest(&self, rules: CompactionRules) -> Result<()> {
        let view = self.desk.index.view();
        let Some((segment, usage)) = self.newest(&view)? else { return Ok(()) };
        let is_worth_it =
            selection::reclaimable_bytes(&usage) >= limits::COMPACTION_NEWEST_BYTES_MIN;
        if !is_worth_it || !selection::is_dead_enough(&usage, rules) {
            return Ok(());
        }
        self.committer().begin_next_segment()?;
        // Whoever seals it beside us may not be done yet. One that cannot be sealed is not compacted, and no harm.
        for _ in 0..SEAL_TRIES {
            while self.desk.rollover.step()? {}
            if !self.desk.segments.is_growing(segment) {
                break;
            }
            std::thread::sleep(SEAL_WAIT);
        }
        Ok(())
    }

    /// A segment, if it is whole and sealed and nobody needs it as it is.
    fn candidate(&self, id: SegmentId, usage: SegmentUsage) -> Result<Option<Candidate>> {
        let segments = &self.desk.segments;
        let found = match usage.class {
            SegmentClass::Compacted => self.origin_of(id),
            _ => self.stretch_of(id),
        };
        let (header, covers, file_bytes) = match found {
            Ok(Some(found)) => found,
            // Damage is for others to report.
            Ok(None) | Err(Error::Corrupt(_)) => return Ok(None),
            Err(other) => return Err(other),
        };
        // Where the groups of an unsealed segment end is said by the one after it, which must stay as long.
        let before_is_sealed =
            header.predecessor.is_none_or(|before| !segments.is_growing(before.segment));
        if segments.is_growing(id) || !before_is_sealed {
            return Ok(None);
        }
        let age_ms = self.desk.clock.unix_ms().saturating_sub(header.created_ms);
        Ok(Some(Candidate { id, usage, file_bytes, age_ms, covers }))
    }

    fn origin_of(&self, id: SegmentId) -> Result<Option<(SegmentHeader, Covers, u64)>> {
        let segments = &self.desk.segments;
        let (header, origin) = read_origin(segments.disk(), id, segments.store())?;
        Ok(Some((header, origin.covers, self.file_bytes(id)?)))
    }

    fn stretch_of(&self, id: SegmentId) -> Result<Option<(SegmentHeader, Covers, u64)>> {
        let segments = &self.desk.segments;
        let header = segments.header(id)?;
        let path = id.path(SegmentClass::Log);
        let file = segments.disk().open(&path);
        let file = file.map_err(|source| Error::io(format!("opening {path}"), source))?;
        let Some(footer) = read_footer(file.as_ref(), &header)? else { return Ok(None) };
        let mut covers = Covers::default();
        covers.add(header.base_lsn, footer.last_lsn);
        Ok(Some((header, covers, self.file_bytes(id)?)))
    }

    fn file_bytes(&self, id: SegmentId) -> Result<u64> {
        let path = id.path(self.desk.segments.class_of(id));
        let bytes = self.desk.segments.disk().open(&path).and_then(|file| file.bytes_len());
        bytes.map_err(|source| Error::io(format!("reading {path}"), source))
    }

    /// Compacts by these rules, because somebody asked for it, until nothing is left to do or `watch` says to stop.
    /// Waits for another who asked.
    pub(crate) fn run(
        &self,
        rules: CompactionRules,
        throttle: &Throttle,
        watch: &mut Watch<'_>,
    ) -> Result<CompactionReport> {
        // What is not in the index on disk cannot be compacted yet. Where there is no room for that, the rest can be.
        let prepared = self.end_newest(rules).and_then(|()| {
            self.checkpoint()?;
            self.checkpoint()
        });
        match prepared {
            Ok(()) | Err(Error::NoSpace) => {}
            Err(other) => return Err(other),
        }
        let released_bytes = self.desk.segments.release_bytes(u64::MAX);
        self.asking.fetch_add(1, Ordering::SeqCst);
        let report = self.run_alone(rules, throttle, watch);
        self.asking.fetch_sub(1, Ordering::SeqCst);
        report.map(|report| CompactionReport { released_bytes, ..report })
    }

    /// The same when nobody asked: makes way for those who do.
    pub(crate) fn run_by_itself(
        &self,
        rules: CompactionRules,
        throttle: &Throttle,
        watch: &mut Watch<'_>,
    ) -> Result<CompactionReport> {
        self.run_alone(rules, throttle, &mut |progress| {
            if self.asking.load(Ordering::SeqCst) > 0 {
                return ControlFlow::Break(());
            }
            watch(progress)
        })
    }

    fn run_alone(
        &self,
        rules: CompactionRules,
        throttle: &Throttle,
        watch: &mut Watch<'_>,
    ) -> Result<CompactionReport> {
        let mut refused = self.lock();
        self.finish_begun()?;
        let selection = self.select_without(rules, &refused)?;
        if !selection.steps.is_empty() {
            self.desk.measures.compactions.add(1);
        }
        let mut report = CompactionReport::default();
        let mut tally = Tally(WorkProgress {
            total_bytes: selection.live_bytes(),
            total_items: selection.inputs().count() as u64,
            ..WorkProgress::default()
        });
        for step in &selection.steps {
            if watch(tally.progress()) == ControlFlow::Break(()) {
                return Err(Error::Cancelled);
            }
            if !self.is_settled()? {
                report.is_postponed = true;
                return Ok(report);
            }
            match self.step(step, throttle, &mut tally, watch, &mut report) {
                // The rest of the store is none the worse for it.
                Err(error @ Error::Corrupt(_)) if !Index::is_damage(&error) => {
                    for input in &step.inputs {
                        refused.insert(input.segment);
                        report.refused.push((input.segment, error.clone()));
                    }
                }
                // It is committed, and there was no room for what comes after.
                Err(Error::NoSpace) if !self.is_settled()? => {
                    report.is_postponed = true;
                    return Ok(report);
                }
                Err(Error::NoSpace) => {
                    self.punch(step, &mut report)?;
                    // What came back may be room enough; if not, there is none for the others either.
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

    /// Whether no segment is left that another took the place of, or that nothing names. While there is one, a rebuilt
    /// index may read it instead of its copy, or besides, and everything that keeps its records dead is still needed.
    fn is_settled(&self) -> Result<bool> {
        let segments = &self.desk.segments;
        // What a backup held goes when that ends, and no checkpoint may have come since.
        segments.sync_removals()?;
        let listed = |folder: &str| -> Result<BTreeSet<SegmentId>> {
            let names = segments.disk().list(folder);
            let names = names.map_err(|source| Error::io(format!("listing {folder}"), source))?;
            Ok(names.iter().filter_map(|name| SegmentId::from_file_name(name)).collect())
        };
        let (log, compacted) = (listed(LOG_FOLDER)?, listed(COMPACTED_FOLDER)?);
        let view = self.desk.index.view();
        // One that nothing committed would count once its inputs are gone: it was to be removed, and could not be.
        for id in &compacted {
            if view.segment_usage(*id)?.is_none() {
                return Ok(false);
            }
        }
        for (id, usage) in view.segments()? {
            if usage.class == SegmentClass::Compacted {
                let origin = match read_origin(segments.disk(), id, segments.store()) {
                    Ok((_, origin)) => origin,
                    // What it replaced is not known any more.
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
        tally: &mut Tally,
        watch: &mut Watch<'_>,
        report: &mut CompactionReport,
    ) -> Result<()> {
        let segments = &self.desk.segments;
        let view = self.desk.index.view();
        let inputs: Vec<SegmentId> = step.inputs.iter().map(|input| input.segment).collect();
        let mut origin = Origin { inputs: inputs.clone(), covers: Covers::default() };
        let mut input_bytes = 0;
        for input in &inputs {
            let found = match segments.class_of(*input) {
                SegmentClass::Compacted => self.origin_of(*input)?,
                _ => self.stretch_of(*input)?,
            };
            let Some((_, covers, bytes)) = found else { return Ok(()) };
            origin.covers.add_all(&covers);
            input_bytes += bytes;
        }
        let room_bytes = step.inputs.iter().map(|input| input.live_bytes).sum::<u64>();
        self.desk.health.space().require_bytes(room_bytes + OUTPUT_ROOM_BYTES)?;
        let rewrite = Rewrite {
            segments,
            removals_needed_from: removals_needed_from(&view, segments, step)?,
            view,
            step,
            origin,
            segment_bytes: self.desk.segment_bytes,
            throttle,
        };
        let rewritten = rewrite.run(tally, watch)?;
        self.replace(&inputs, &rewritten)?;
        {
            let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
            kept.retain(|id, _| !inputs.contains(id));
            kept.extend(&rewritten.kept);
        }
        report.steps += 1;
        report.segments_removed += inputs.len() as u64;
        report.segments_written += rewritten.outputs.len() as u64;
        report.copied_bytes += rewritten.copied_bytes;
        report.removals_dropped += rewritten.removals_dropped;
        let mut output_bytes = 0;
        for (output, _) in &rewritten.outputs {
            output_bytes += self.file_bytes(*output)?;
        }
        let freed_bytes = input_bytes.saturating_sub(output_bytes);
        report.freed_bytes += freed_bytes;
        self.desk.measures.compacted_bytes.add(rewritten.copied_bytes);
        self.desk.measures.given_back_bytes.add(freed_bytes);
        Ok(())
    }

    /// Gives back the space of dead bodies where they lie.
    fn punch(&self, step: &CompactionStep, report: &mut CompactionReport) -> Result<()> {
        for input in &step.inputs {
            let segment = input.segment;
            let view = self.desk.index.view();
            let Some(usage) = view.segment_usage(segment)? else { continue };
            let pages = dead_pages(&self.desk.segments, &view, segment)?;
            let all_bytes = pages.iter().map(|pages| pages.end - pages.start).sum::<u64>();
            let bytes = all_bytes.saturating_sub(usage.punched_bytes);
            if bytes == 0 {
                continue;
            }
            let punched = self.desk.segments.while_unread(segment, |file| {
                self.commit(Operation::Punched { segment, bytes })?;
                let path = segment.path(usage.class);
                let done = pages.into_iter().try_for_each(|pages| file.punch(pages));
                done.and_then(|()| file.sync_data())
                    .map_err(|source| Error::io(format!("reclaiming space of {path}"), source))
            })?;
            if punched.is_some() {
                report.punched_bytes += bytes;
                self.desk.measures.given_back_bytes.add(bytes);
            }
        }
        let _ = self.desk.health.space().ran_out();
        Ok(())
    }

    /// The copies are durable: makes them count, and removes the originals.
    fn replace(&self, inputs: &[SegmentId], rewritten: &Rewritten) -> Result<()> {
        let segments = &self.desk.segments;
        let outputs = rewritten.outputs.clone();
        for (output, _) in &outputs {
            segments.add_compacted(*output);
        }
        let committed = self.commit(Operation::Compacted { outputs, inputs: inputs.to_vec() });
        if let Err(error) = committed {
            // Whether the record is on the disk is not known when a write failed: then the next opening decides.
            let is_refused = matches!(error, Error::Busy | Error::NoSpace | Error::Closed);
            if is_refused && self.desk.health.require_writable().is_ok() {
                for (output, _) in &rewritten.outputs {
                    segments.retire(*output, SegmentClass::Compacted);
                }
            }
            return Err(error);
        }
        let outputs: Vec<SegmentId> = rewritten.outputs.iter().map(|(id, _)| *id).collect();
        self.finish(&outputs, inputs)
    }

    /// Finishes what was committed and then failed: until then the index points to the originals, nothing else can be
    /// compacted, and an index that is made anew knows nothing of the copies.
    fn finish_begun(&self) -> Result<()> {
        let view = self.desk.index.view();
        let segments = &self.desk.segments;
        let mut begun: BTreeMap<Vec<SegmentId>, Vec<SegmentId>> = BTreeMap::new();
        for (id, usage) in view.segments()? {
            if usage.class != SegmentClass::Compacted {
                continue;
            }
            let origin = match read_origin(segments.disk(), id, segments.store()) {
                Ok((_, origin)) => origin,
                // Damage is for others to report.
                Err(Error::Corrupt(_)) => continue,
                Err(other) => return Err(other),
            };
            if view.knows_any(&origin.inputs)? {
                begun.entry(origin.inputs).or_default().push(id);
            }
        }
        for (inputs, outputs) in begun {
            match self.finish(&outputs, &inputs) {
                Err(Error::NoSpace) => {}
                // The originals stay, and are read.
                Err(error @ Error::Corrupt(_)) if !Index::is_damage(&error) => {}
                other => other?,
            }
        }
        Ok(())
    }

    /// The copies count: points the index to them, and removes the originals.
    fn finish(&self, outputs: &[SegmentId], inputs: &[SegmentId]) -> Result<()> {
        let segments = &self.desk.segments;
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

    /// Points the index to the copies in a segment, in batches between which others commit.
    fn repoint(&self, output: SegmentId, inputs: &[SegmentId]) -> Result<()> {
        let mut copies = self.desk.segments.records(output)?;
        let mut is_done = false;
        while !is_done {
            let view = self.desk.index.view();
            let mut moved = Vec::with_capacity(limits::REPOINT_BATCH);
            while moved.len() < limits::REPOINT_BATCH {
                let Some(copy) = copies.step()? else {
                    is_done = true;
                    break;
                };
                moved.extend(view.moved_to(&copy.record, copy.place, inputs)?);
            }
            if !moved.is_empty() {
                self.commit_patiently(moved)?;
            }
        }
        Ok(())
    }

    /// Commits a batch of re-pointings. When too much is waiting for a checkpoint, so does this.
    fn commit_patiently(&self, moved: Vec<crate::index::Moved>) -> Result<()> {
        loop {
            match self.commit(Operation::Repoint { moved: moved.clone() }) {
                Err(Error::Busy) => self.checkpoint()?,
                other => return other.map(|_| ()),
            }
        }
    }

    /// Writes checkpoints until the index on disk knows nothing of these segments any more.
    fn checkpoint_without(&self, inputs: &[SegmentId]) -> Result<()> {
        loop {
            let view: Arc<View> = self.desk.index.view();
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
        let CompactorDesk { index, segments, health, measures, .. } = &self.desk;
        commit::checkpoint(index, segments, health, measures)
    }

    fn commit(&self, operation: Operation) -> Result<Committed> {
        let (answer, outcome) = mpsc::sync_channel(1);
        let answer = Box::new(move |result| {
            let _ = answer.send(result);
        });
        self.desk.queue.push(Batch::of(operation), answer);
        if self.desk.steps_committer {
            while self.committer().step() == Progress::Worked {}
        }
        outcome.recv().unwrap_or(Err(Error::Closed))
    }

    fn committer(&self) -> MutexGuard<'_, Committer> {
        self.desk.committer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock(&self) -> MutexGuard<'_, BTreeSet<SegmentId>> {
        self.refused.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a compaction needs beside what it copies: for groups, footers, a page of header, and the index.
const OUTPUT_ROOM_BYTES: u64 = 1 << 20;
/// How often it is asked whether a segment is sealed, and how long between.
const SEAL_TRIES: u32 = 400;
const SEAL_WAIT: Duration = Duration::from_millis(5);
