//! Committer: the only thread that appends to the log and changes the index.
//!
//! [`Committer::step`] commits one group of queued batches: it checks preconditions, builds the records, appends,
//! syncs once, publishes the view and calls the callbacks. After a long group with more batches queued, the
//! callbacks are deferred to the next step (`held.rs`). If a write or sync fails, every waiting batch gets the
//! error, nothing is published, and the store becomes read-only.
//!
//! Non-goals: threads, timers.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use super::apply::{Decided, add, require};
use super::batch::{Batch, Committed};
use super::health::HealthState;
use super::held::HeldAnswers;
use super::lately::Lately;
use super::load::Load;
use super::queue::{Queue, Taken, Waiting};
use super::rollover::{Rollover, Spare};
use crate::clock::Clock;
use crate::error::{Error, Result};
use crate::format::{GROUP_OVERHEAD_BYTES, GroupBuilder, SEGMENT_HEADER_BYTES, SegmentClass};
use crate::index::{Index, View};
use crate::limits;
use crate::measures::Measures;
use crate::segment::{ActiveSegment, LogPosition, SegmentSet};

/// Writer of the log.
pub(crate) struct Committer {
    desk: Desk,
    log: Log,
    held: HeldAnswers,
}

/// Dependencies of the committer.
pub(crate) struct Desk {
    pub(crate) queue: Arc<Queue>,
    pub(crate) segments: Arc<SegmentSet>,
    pub(crate) index: Arc<Index>,
    pub(crate) rollover: Arc<Rollover>,
    pub(crate) health: Arc<HealthState>,
    pub(crate) load: Arc<Load>,
    pub(crate) lately: Arc<Lately>,
    pub(crate) measures: Arc<Measures>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) segment_bytes: u64,
}

/// State of the log.
struct Log {
    active: Option<ActiveSegment>,
    position: LogPosition,
    /// LSN up to which a group header in the log confirms durability.
    vouched_lsn: u64,
    /// Log bytes written since the last freeze, and the time of the first of them.
    unfrozen_bytes: u64,
    unfrozen_since_ms: Option<u64>,
}

/// Outcome of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// Committed a group, or rejected batches.
    Worked,
    /// Nothing to commit.
    Idle,
    /// Nothing to commit, and the queue is closed.
    Closed,
}

/// Whether a group accepts batches with bodies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Bodies {
    With,
    Without,
}

impl Committer {
    /// Creates a committer that continues at `position`.
    pub(crate) fn new(desk: Desk, position: LogPosition) -> Self {
        let log = Log {
            active: None,
            position,
            vouched_lsn: position.lsn,
            unfrozen_bytes: 0,
            unfrozen_since_ms: None,
        };
        Self { desk, log, held: HeldAnswers::default() }
    }

    /// Commits queued batches. With none queued, writes a watermark if the last group has no later confirmation yet.
    pub(crate) fn step(&mut self) -> Progress {
        self.desk.segments.release_due();
        let bytes_max = limits::GROUP_BYTES_MAX.min(self.batch_bytes_max());
        match self.desk.queue.take(bytes_max) {
            Taken::Closed => Progress::Closed,
            Taken::Nothing => {
                self.vouch();
                Progress::Idle
            }
            Taken::Batches(waiting) => {
                let began_us = self.desk.clock.monotonic_us();
                self.commit(waiting);
                let now_us = self.desk.clock.monotonic_us();
                self.desk.load.committed(now_us.saturating_sub(began_us));
                Progress::Worked
            }
        }
    }

    /// Returns the maximum length of a batch in bytes.
    pub(crate) fn batch_bytes_max(&self) -> u64 {
        limits::BATCH_BYTES_MAX.min(self.desk.segment_bytes / 2)
    }

    /// Returns whether a checkpoint is due by the amount or age of changes.
    pub(crate) fn checkpoint_is_due(&self) -> bool {
        let Some(since_ms) = self.log.unfrozen_since_ms else {
            return false;
        };
        self.log.unfrozen_bytes >= limits::CHECKPOINT_LOG_BYTES
            || self.desk.clock.monotonic_ms().saturating_sub(since_ms) >= limits::CHECKPOINT_MS
            || self.desk.index.view().active.len() >= limits::CHECKPOINT_ENTRIES
    }

    /// Freezes the active overlay for a checkpoint. Returns false if it is empty or a checkpoint is running.
    pub(crate) fn freeze(&mut self) -> bool {
        let frozen = self.desk.index.freeze();
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
            self.desk.rollover.close_segment(header, active.end());
        } else {
            self.desk.segments.sealed(header.segment);
            self.desk.segments.retire(header.segment, SegmentClass::Log);
        }
    }

    /// Writes a watermark (an empty group) that confirms the durability of the last group: without it, damage to the
    /// last acknowledged group would look like a torn tail.
    pub(crate) fn vouch(&mut self) {
        let due = self.log.vouched_lsn < self.log.position.lsn && self.log.active.is_some();
        if due
            && self.desk.health.require_writable().is_ok()
            // If there is no space for another segment, the watermark is omitted; that is not a failure.
            && let Ok(builder) = self.begin_group(GROUP_OVERHEAD_BYTES as u64, Bodies::Without)
        {
            let view = View::clone(&self.desk.index.view());
            if let Err(error) = self.write(builder, view) {
                self.fail(&error);
            }
        }
    }

    /// Ends the newest log segment and begins the next one with a watermark, so that the old one can be compacted
    /// after a checkpoint.
    pub(crate) fn begin_next_segment(&mut self) -> Result<()> {
        self.desk.health.require_writable()?;
        self.close_segment();
        let builder = self.begin_group(GROUP_OVERHEAD_BYTES as u64, Bodies::Without)?;
        let view = View::clone(&self.desk.index.view());
        self.write(builder, view).inspect_err(|error| self.fail(error))
    }

    fn commit(&mut self, waiting: Vec<Waiting>) {
        let (batches, answers): (Vec<Batch>, Vec<_>) =
            waiting.into_iter().map(|waiting| (waiting.batch, waiting.answer)).unzip();
        let is_long =
            batches.iter().map(Batch::bytes).sum::<u64>() > limits::WRITE_BYTES_MAX as u64;
        if !is_long {
            self.held.tell();
        }
        let outcomes = self.commit_group(&batches);
        // Callbacks of the previous group that were not called because this group was not written.
        self.held.tell();
        let may_wait = is_long && outcomes.is_ok() && self.desk.queue.len() > 0;
        match outcomes {
            Ok(outcomes) => self.held.hold(outcomes.into_iter().zip(answers)),
            Err(error) => {
                if Index::is_damage(&error) {
                    self.desk.index.condemn();
                }
                self.held.hold(answers.into_iter().map(|answer| (Err(error.clone()), answer)));
            }
        }
        if !may_wait {
            self.held.tell();
        }
    }

    fn commit_group(&mut self, batches: &[Batch]) -> Result<Vec<Result<Committed>>> {
        self.desk.health.require_writable()?;
        if self.desk.index.changes() > limits::OVERLAY_ENTRIES_MAX {
            self.held.tell();
            self.desk.index.wait_for_drain(Duration::from_millis(limits::OVERLAY_WAIT_MS));
        }
        if self.desk.index.changes() > limits::OVERLAY_ENTRIES_MAX {
            return Err(Error::Busy);
        }
        let mut view = View::clone(&self.desk.index.view());
        let (mut builder, taken) = self.begin_group_for(batches)?;
        let now_ms = self.desk.clock.unix_ms();
        let mut decided = Vec::with_capacity(batches.len());
        let mut named = BTreeSet::new();
        for batch in batches {
            decided.push(match require(&view, &batch.preconditions) {
                Ok(()) if taken == Bodies::Without && batch.has_bodies() => Err(Error::NoSpace),
                Ok(()) => add(&mut builder, &mut view, batch, now_ms, &mut named)?,
                Err(refused) => Err(refused),
            });
        }
        if decided.iter().flatten().any(|batch| batch.has_records) {
            if let Err(error) = self.write(builder, view) {
                for staged in decided.iter().flatten().flat_map(|batch| &batch.staged) {
                    staged.keep();
                }
                self.fail(&error);
                return Err(error);
            }
        } else if decided.iter().flatten().any(|batch| batch.changes_index) {
            self.publish(view);
        }
        Ok(decided.into_iter().map(|outcome| outcome.map(|batch| self.settle(batch))).collect())
    }

    /// Releases what a durable and published group replaced, and commits the big segments it refers to.
    fn settle(&self, batch: Decided) -> Committed {
        for staged in &batch.staged {
            staged.committed();
        }
        for unnamed in batch.unnamed {
            self.desk.segments.let_go(unnamed.segment, unnamed.retained);
        }
        if !batch.moved.is_empty() {
            self.desk.segments.release(&batch.moved);
        }
        self.desk.lately.add(batch.ended);
        batch.committed
    }

    /// Returns a builder for a group of these batches, and whether those with bodies fit in it.
    fn begin_group_for(&mut self, batches: &[Batch]) -> Result<(GroupBuilder, Bodies)> {
        let bytes_of = |bodies| {
            let taken = batches.iter().filter(|it| bodies == Bodies::With || !it.has_bodies());
            taken.map(Batch::bytes).sum::<u64>() + GROUP_OVERHEAD_BYTES as u64
        };
        if !batches.iter().any(Batch::has_bodies) || self.desk.health.space().require_room().is_ok()
        {
            // Once a segment could not be begun for lack of space, nothing more is written.
            let is_short = |begun: &Result<GroupBuilder>, health: &HealthState| {
                matches!(begun, Err(Error::NoSpace)) && health.require_writable().is_ok()
            };
            let mut begun = self.begin_group(bytes_of(Bodies::With), Bodies::With);
            if is_short(&begun, &self.desk.health) && self.desk.health.space().ran_out() {
                begun = self.begin_group(bytes_of(Bodies::With), Bodies::With);
            }
            if !is_short(&begun, &self.desk.health) {
                return Ok((begun?, Bodies::With));
            }
        }
        if batches.iter().all(Batch::has_bodies) {
            return Err(Error::NoSpace);
        }
        Ok((self.begin_group(bytes_of(Bodies::Without), Bodies::Without)?, Bodies::Without))
    }

    /// Returns a builder for the next group, in a segment with room for it. A group without bodies accepts a smaller
    /// segment than usual: a deletion can be logged as long as there is any space.
    fn begin_group(&mut self, bytes: u64, bodies: Bodies) -> Result<GroupBuilder> {
        if !self.log.active.as_ref().is_some_and(|active| active.has_room_for(bytes)) {
            self.roll(match bodies {
                Bodies::With => self.desk.segment_bytes,
                Bodies::Without => ActiveSegment::bytes_for(bytes).max(limits::SEGMENT_BYTES_MIN),
            })?;
        }
        let active = self.log.active.as_ref().ok_or(Error::NoSpace)?;
        let place = active.next_place();
        let position = &self.log.position;
        Ok(GroupBuilder::new(
            place.context(),
            place.offset,
            position.next_group,
            position.lsn + 1,
            position.lsn,
            position.previous_group,
        ))
    }

    fn roll(&mut self, bytes_min: u64) -> Result<()> {
        self.held.tell();
        let Spare { file, header, bytes } = self.desk.rollover.take_spare(bytes_min)?;
        let begun = ActiveSegment::begin(Arc::clone(&file), header, &self.log.position, bytes);
        let next = begun.inspect_err(|error| self.desk.health.fail(error))?;
        self.desk.segments.add_growing(*next.header(), file);
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
        self.held.tell();
        let measures = &self.desk.measures;
        measures.timed(&measures.syncs_us, || active.sync())?;
        let records = group.last_lsn.saturating_sub(durable_lsn);
        if records > 0 {
            measures.group_records.note(records);
            measures.group_bytes.note(group.bytes);
        }
        self.log.position = LogPosition {
            lsn: group.last_lsn,
            segment: Some(active.header().segment),
            offset: active.end(),
            next_group: self.log.position.next_group + 1,
            previous_group: group.header_checksum,
        };
        self.log.vouched_lsn = durable_lsn;
        self.log.unfrozen_bytes += group.bytes;
        self.desk.health.space().count_written(group.bytes);
        self.publish(view);
        Ok(())
    }

    /// Publishes a view with the current log position.
    fn publish(&mut self, mut view: View) {
        self.log.unfrozen_since_ms.get_or_insert(self.desk.clock.monotonic_ms());
        view.active.position = Some(self.log.position.applied());
        view.forget_retained(self.desk.segments.take_released());
        self.desk.index.publish(view.active);
    }

    fn fail(&self, error: &Error) {
        self.desk.health.fail(error);
    }
}
