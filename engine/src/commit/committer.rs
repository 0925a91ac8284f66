//! Committer: the only thread that appends to the log and changes the index.
//!
//! [`Committer::step`] commits one group of queued batches: it checks preconditions, builds the records, appends,
//! syncs once, publishes the view and calls the callbacks. After a long group with more batches queued, the
//! callbacks are deferred to the next step (`deferred_callbacks.rs`). If a write or sync fails, every waiting batch
//! gets the error, nothing is published, and the store becomes read-only.
//!
//! Non-goals: threads, timers.

use std::collections::BTreeSet;
use std::mem;
use std::sync::Arc;
use std::time::Duration;

use super::apply::{BatchOutcome, add, require};
use super::batch::{Batch, CommitInfo};
use super::commit_latency::CommitLatency;
use super::deferred_callbacks::DeferredCallbacks;
use super::health::HealthState;
use super::queue::{Dequeued, PendingBatch, Queue};
use super::recent_noncurrent::RecentNoncurrent;
use super::rollover::{Rollover, SpareSegment};
use crate::clock::Clock;
use crate::error::{Error, Result};
use crate::format::{GROUP_OVERHEAD_BYTES, GroupBuilder, SEGMENT_HEADER_BYTES, SegmentClass};
use crate::index::{Index, View};
use crate::limits;
use crate::metrics::Metrics;
use crate::segment::{ActiveSegment, LogPosition, SegmentSet};

/// Writer of the log.
pub(crate) struct Committer {
    context: CommitterContext,
    log: Log,
    deferred: DeferredCallbacks,
}

/// Dependencies of the committer.
pub(crate) struct CommitterContext {
    pub(crate) queue: Arc<Queue>,
    pub(crate) segments: Arc<SegmentSet>,
    pub(crate) index: Arc<Index>,
    pub(crate) rollover: Arc<Rollover>,
    pub(crate) health: Arc<HealthState>,
    pub(crate) commit_latency: Arc<CommitLatency>,
    pub(crate) recent_noncurrent: Arc<RecentNoncurrent>,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) segment_bytes: u64,
}

/// State of the log.
struct Log {
    active: Option<ActiveSegment>,
    position: LogPosition,
    /// LSN up to which a group header in the log confirms durability.
    watermark_lsn: u64,
    /// Log bytes written since the last freeze, and the time of the first of them.
    unfrozen_bytes: u64,
    unfrozen_since_ms: Option<u64>,
    /// Buffer for the next group.
    spare: Vec<u8>,
}

/// Outcome of a committer step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommitStep {
    /// Committed a group, or rejected batches.
    Worked,
    /// Nothing to commit.
    Idle,
    /// Nothing to commit, and the queue is closed.
    Closed,
}

/// Whether a group accepts batches with bodies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BodyPolicy {
    Allowed,
    Refused,
}

impl Committer {
    /// Creates a committer that continues at `position`.
    pub(crate) fn new(desk: CommitterContext, position: LogPosition) -> Self {
        let log = Log {
            active: None,
            position,
            watermark_lsn: position.lsn,
            unfrozen_bytes: 0,
            unfrozen_since_ms: None,
            spare: Vec::new(),
        };
        Self { context: desk, log, deferred: DeferredCallbacks::default() }
    }

    /// Commits queued batches. With none queued, writes a watermark if the last group has no later confirmation yet.
    pub(crate) fn step(&mut self) -> CommitStep {
        self.context.segments.release_due();
        let bytes_max = limits::GROUP_BYTES_MAX.min(self.batch_bytes_max());
        match self.context.queue.take(bytes_max) {
            Dequeued::Closed => CommitStep::Closed,
            Dequeued::Empty => {
                self.write_watermark();
                CommitStep::Idle
            }
            Dequeued::Batches(waiting) => {
                let began_us = self.context.clock.monotonic_us();
                self.commit(waiting);
                let now_us = self.context.clock.monotonic_us();
                self.context.commit_latency.observe(now_us.saturating_sub(began_us));
                CommitStep::Worked
            }
        }
    }

    /// Returns the maximum length of a batch in bytes.
    pub(crate) fn batch_bytes_max(&self) -> u64 {
        limits::BATCH_BYTES_MAX.min(self.context.segment_bytes / 2)
    }

    /// Returns whether a checkpoint is due by the amount or age of changes.
    pub(crate) fn checkpoint_is_due(&self) -> bool {
        let Some(since_ms) = self.log.unfrozen_since_ms else {
            return false;
        };
        self.log.unfrozen_bytes >= limits::CHECKPOINT_LOG_BYTES
            || self.context.clock.monotonic_ms().saturating_sub(since_ms) >= limits::CHECKPOINT_MS
            || self.context.index.view().active.len() >= limits::CHECKPOINT_ENTRIES
    }

    /// Freezes the active overlay for a checkpoint. Returns false if it is empty or a checkpoint is running.
    pub(crate) fn freeze(&mut self) -> bool {
        let frozen = self.context.index.freeze();
        if frozen {
            self.log.unfrozen_bytes = 0;
            self.log.unfrozen_since_ms = None;
        }
        frozen
    }

    /// Closes the active segment so that it can be sealed; the next group begins a new one. A segment without groups
    /// is removed: its successor names the same predecessor.
    pub(crate) fn close_segment(&mut self) {
        let Some(active) = self.log.active.take() else { return };
        let header = *active.header();
        if active.end() > SEGMENT_HEADER_BYTES as u64 {
            self.context.rollover.close_segment(header, active.end());
        } else {
            self.context.segments.sealed(header.segment);
            self.context.segments.retire(header.segment, SegmentClass::Log);
        }
    }

    /// Writes a watermark (an empty group) that confirms the durability of the last group: without it, damage to the
    /// last acknowledged group would look like a torn tail.
    pub(crate) fn write_watermark(&mut self) {
        let due = self.log.watermark_lsn < self.log.position.lsn && self.log.active.is_some();
        if due
            && self.context.health.require_writable().is_ok()
            // If there is no space for another segment, the watermark is omitted; that is not a failure.
            && let Ok(builder) = self.begin_group(GROUP_OVERHEAD_BYTES as u64, BodyPolicy::Refused)
        {
            let view = View::clone(&self.context.index.view());
            if let Err(error) = self.write(builder, view) {
                self.fail(&error);
            }
        }
    }

    /// Ends the newest log segment and begins the next one with a watermark, so that the old one can be compacted
    /// after a checkpoint.
    pub(crate) fn roll_over(&mut self) -> Result<()> {
        self.context.health.require_writable()?;
        self.close_segment();
        let builder = self.begin_group(GROUP_OVERHEAD_BYTES as u64, BodyPolicy::Refused)?;
        let view = View::clone(&self.context.index.view());
        self.write(builder, view).inspect_err(|error| self.fail(error))
    }

    fn commit(&mut self, waiting: Vec<PendingBatch>) {
        let (batches, answers): (Vec<Batch>, Vec<_>) =
            waiting.into_iter().map(|waiting| (waiting.batch, waiting.callback)).unzip();
        let is_long =
            batches.iter().map(Batch::bytes).sum::<u64>() > limits::WRITE_BYTES_MAX as u64;
        if !is_long {
            self.deferred.run_all();
        }
        let outcomes = self.commit_group(&batches);
        // Callbacks of the previous group that were not called because this group was not written.
        self.deferred.run_all();
        let may_wait = is_long && outcomes.is_ok() && self.context.queue.len() > 0;
        match outcomes {
            Ok(outcomes) => self.deferred.defer(outcomes.into_iter().zip(answers)),
            Err(error) => {
                if Index::is_damage(&error) {
                    self.context.index.mark_corrupt();
                }
                self.deferred.defer(answers.into_iter().map(|answer| (Err(error.clone()), answer)));
            }
        }
        if !may_wait {
            self.deferred.run_all();
        }
    }

    fn commit_group(&mut self, batches: &[Batch]) -> Result<Vec<Result<CommitInfo>>> {
        self.context.health.require_writable()?;
        if self.context.index.changes() > limits::OVERLAY_ENTRIES_MAX {
            self.deferred.run_all();
            self.context.index.wait_for_drain(Duration::from_millis(limits::OVERLAY_WAIT_MS));
        }
        if self.context.index.changes() > limits::OVERLAY_ENTRIES_MAX {
            return Err(Error::Busy);
        }
        let mut view = View::clone(&self.context.index.view());
        let (mut builder, taken) = self.begin_group_for(batches)?;
        let now_ms = self.context.clock.unix_ms();
        let mut decided = Vec::with_capacity(batches.len());
        let mut named = BTreeSet::new();
        for batch in batches {
            decided.push(match require(&view, &batch.preconditions) {
                Ok(()) if taken == BodyPolicy::Refused && batch.has_puts() => Err(Error::NoSpace),
                Ok(()) => add(&mut builder, &mut view, batch, now_ms, &mut named)?,
                Err(refused) => Err(refused),
            });
        }
        if decided.iter().flatten().any(|batch| batch.has_records) {
            if let Err(error) = self.write(builder, view) {
                for staged in decided.iter().flatten().flat_map(|batch| &batch.staged) {
                    staged.disarm_cleanup();
                }
                self.fail(&error);
                return Err(error);
            }
        } else if decided.iter().flatten().any(|batch| batch.changes_index) {
            self.publish(view);
        }
        Ok(decided
            .into_iter()
            .map(|outcome| outcome.map(|batch| self.finish_batch(batch)))
            .collect())
    }

    /// Releases what a durable and published group replaced, and commits the big segments it refers to.
    fn finish_batch(&self, batch: BatchOutcome) -> CommitInfo {
        for staged in &batch.staged {
            staged.committed();
        }
        for unnamed in batch.unnamed {
            self.context.segments.retain_or_release(unnamed.segment, unnamed.retained);
        }
        if !batch.moved.is_empty() {
            self.context.segments.release(&batch.moved);
        }
        self.context.recent_noncurrent.add(batch.ended);
        let last_lsn = if batch.has_records { self.log.position.lsn } else { 0 };
        CommitInfo { last_lsn, ..batch.committed }
    }

    /// Returns a builder for a group of these batches, and whether those with bodies fit in it.
    fn begin_group_for(&mut self, batches: &[Batch]) -> Result<(GroupBuilder, BodyPolicy)> {
        let bytes_of = |bodies| {
            let taken = batches.iter().filter(|it| bodies == BodyPolicy::Allowed || !it.has_puts());
            taken.map(Batch::bytes).sum::<u64>() + GROUP_OVERHEAD_BYTES as u64
        };
        if !batches.iter().any(Batch::has_puts)
            || self.context.health.space().require_reserve().is_ok()
        {
            // Once a segment could not be begun for lack of space, nothing more is written.
            let is_short = |begun: &Result<GroupBuilder>, health: &HealthState| {
                matches!(begun, Err(Error::NoSpace)) && health.require_writable().is_ok()
            };
            let mut begun = self.begin_group(bytes_of(BodyPolicy::Allowed), BodyPolicy::Allowed);
            if is_short(&begun, &self.context.health) && self.context.health.space().on_disk_full()
            {
                begun = self.begin_group(bytes_of(BodyPolicy::Allowed), BodyPolicy::Allowed);
            }
            if !is_short(&begun, &self.context.health) {
                return Ok((begun?, BodyPolicy::Allowed));
            }
        }
        if batches.iter().all(Batch::has_puts) {
            return Err(Error::NoSpace);
        }
        Ok((
            self.begin_group(bytes_of(BodyPolicy::Refused), BodyPolicy::Refused)?,
            BodyPolicy::Refused,
        ))
    }

    /// Returns a builder for the next group, in a segment with room for it. A group without bodies accepts a smaller
    /// segment than usual: a deletion can be logged as long as there is any space.
    fn begin_group(&mut self, bytes: u64, bodies: BodyPolicy) -> Result<GroupBuilder> {
        if !self.log.active.as_ref().is_some_and(|active| active.has_room_for(bytes)) {
            self.roll(match bodies {
                BodyPolicy::Allowed => self.context.segment_bytes,
                BodyPolicy::Refused => {
                    ActiveSegment::bytes_for(bytes).max(limits::SEGMENT_BYTES_MIN)
                }
            })?;
        }
        let active = self.log.active.as_ref().ok_or(Error::NoSpace)?;
        let place = active.next_place();
        let position = &self.log.position;
        let builder = GroupBuilder::new(
            place.context(),
            place.offset,
            position.next_group,
            position.lsn + 1,
            position.lsn,
            position.previous_group,
        );
        Ok(builder.reusing(mem::take(&mut self.log.spare)))
    }

    fn roll(&mut self, bytes_min: u64) -> Result<()> {
        self.deferred.run_all();
        let SpareSegment { file, header, bytes } = self.context.rollover.take_spare(bytes_min)?;
        let begun = ActiveSegment::begin(Arc::clone(&file), header, &self.log.position, bytes);
        let next = begun.inspect_err(|error| self.context.health.fail(error))?;
        self.context.segments.register_unsealed(*next.header(), file);
        self.close_segment();
        self.log.active = Some(next);
        Ok(())
    }

    /// Appends the group, calls the callbacks of the previous group, syncs, and publishes the view with its new
    /// position.
    fn write(&mut self, builder: GroupBuilder, view: View) -> Result<()> {
        let active = self.log.active.as_mut().ok_or(Error::NoSpace)?;
        let durable_lsn = self.log.position.lsn;
        let group = builder.finish();
        active.append(&group)?;
        self.deferred.run_all();
        let metrics = &self.context.metrics;
        metrics.timed(&metrics.syncs_us, || active.sync())?;
        let records = group.last_lsn.saturating_sub(durable_lsn);
        if records > 0 {
            metrics.group_records.observe(records);
            metrics.group_bytes.observe(group.bytes);
        }
        self.log.position = LogPosition {
            lsn: group.last_lsn,
            segment: Some(active.header().segment),
            offset: active.end(),
            next_group: self.log.position.next_group + 1,
            previous_group: group.header_checksum,
        };
        self.log.watermark_lsn = durable_lsn;
        self.log.unfrozen_bytes += group.bytes;
        self.context.health.space().count_written(group.bytes);
        let is_small = |buffer: &Vec<u8>| buffer.capacity() <= limits::GROUP_BUFFER_BYTES_MAX;
        self.log.spare = Some(group.into_buffer()).filter(is_small).unwrap_or_default();
        self.publish(view);
        Ok(())
    }

    /// Publishes a view with the current log position.
    fn publish(&mut self, mut view: View) {
        self.log.unfrozen_since_ms.get_or_insert(self.context.clock.monotonic_ms());
        view.active.position = Some(self.log.position.applied());
        view.forget_retained(self.context.segments.take_released());
        self.context.index.publish(view.active);
    }

    fn fail(&self, error: &Error) {
        self.context.health.fail(error);
    }
}
