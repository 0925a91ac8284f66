//! Scrub: periodic verification of all stored data, so that damage is found while a backup still has the data.
//!
//! A segment is read entirely, one piece at a time: header page, groups, heads, bodies and footer; of a big segment,
//! header page, block table and blocks. The content of live objects is also verified against its BLAKE3 hash. Damage is
//! any mismatch in the structure or in live records; a corrupt dead body is not damage. Damage is recorded with the
//! name of the object.
//!
//! Guarantees: writes nothing except the integrity state; one piece is in memory, which is a group or
//! [`limits::WRITE_BYTES_MAX`]; a segment that is retired during its scrub is skipped.
//! Non-goals: repair; segments that are only in the remote store.

mod damage_collector;
mod damage_owners;
mod log;
mod schedule;
mod scrub_big;
mod segment_scrub;

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use self::damage_collector::DamageCollector;
use self::schedule::{DueSegment, by_due_time};
use self::segment_scrub::{SegmentScrub, SegmentScrubResult};
use crate::clock::Clock;
use crate::error::{Corruption, Error, Result};
use crate::format::{
    Damage, EntryContent, Malformed, RecordName, ScrubResult, SegmentClass, SegmentId, SegmentUsage,
};
use crate::index::{DamageList, Index, View};
use crate::limits;
use crate::metrics::Metrics;
use crate::progress::{ProgressCallback, WorkProgress};
use crate::segment::{SegmentSet, read_header};

/// Options of the background scrub.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScrubOptions {
    /// Time within which each segment is verified again.
    pub period: Duration,
    /// Maximum read rate in bytes per second. The scrub reads only as fast as the period requires, and takes longer
    /// than the period if this rate is too low.
    pub bytes_per_second_max: u64,
}

impl Default for ScrubOptions {
    fn default() -> Self {
        Self {
            period: Duration::from_secs(limits::SCRUB_PERIOD_SECONDS),
            bytes_per_second_max: limits::SCRUB_BYTES_PER_SECOND_MAX,
        }
    }
}

/// Report of a full scrub.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ScrubReport {
    /// Number of segments read.
    pub segments: u64,
    /// Number of bytes read.
    pub bytes: u64,
    /// Damage found.
    pub damage: DamageList,
}

/// Dependencies of a scrub.
#[derive(Clone)]
pub(crate) struct ScrubContext {
    pub(crate) segments: Arc<SegmentSet>,
    pub(crate) index: Arc<Index>,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) clock: Arc<dyn Clock>,
}

/// Background scrub of a store.
pub(crate) struct Scrubber {
    store: ScrubContext,
    options: ScrubOptions,
    current: Option<SegmentScrub>,
    /// Due segments, the next one first.
    due: VecDeque<(SegmentId, SegmentClass)>,
    /// Creation times of the segments that were never verified.
    made: BTreeMap<SegmentId, u64>,
    /// Time of the next check for due segments; monotonic.
    next_schedule_ms: u64,
    bytes_per_second: u64,
    /// Earliest time of the next piece; monotonic, in microseconds, so that small pieces add up.
    next_us: u64,
    /// Bytes read since the integrity state was last written.
    unsaved_bytes: u64,
}

impl Scrubber {
    pub(crate) fn new(store: ScrubContext, options: ScrubOptions) -> Self {
        Self {
            store,
            options,
            current: None,
            due: VecDeque::new(),
            made: BTreeMap::new(),
            next_schedule_ms: 0,
            bytes_per_second: limits::SCRUB_BYTES_PER_SECOND_MIN,
            next_us: 0,
            unsaved_bytes: 0,
        }
    }

    /// Reads one piece if it is due, and returns the time until the next. Once `stopped` returns true, it ends after
    /// the current read.
    pub(crate) fn step(&mut self, stopped: &dyn Fn() -> bool) -> Result<Duration> {
        self.store.collect_reported()?;
        let now_us = self.store.clock.monotonic_ms().saturating_mul(1_000);
        if now_us < self.next_us {
            return Ok(Duration::from_micros(self.next_us - now_us));
        }
        let Some(mut current) = self.take_current(stopped)? else {
            self.save();
            let idle_ms = self.next_schedule_ms.saturating_sub(now_us / 1_000);
            return Ok(Duration::from_millis(idle_ms.min(limits::SCRUB_REPORTED_POLL_MS)));
        };
        let bytes = match current.step(&self.store, stopped)? {
            Some(bytes) => {
                self.current = Some(current);
                bytes
            }
            None => {
                if let Some(ended) = current.end(&self.store, stopped)? {
                    let found = ended.findings.count > 0;
                    self.store.note(&ended);
                    if found || self.unsaved_bytes >= limits::SCRUB_SAVE_BYTES {
                        self.save();
                    }
                }
                0
            }
        };
        self.store.metrics.scrubbed_bytes.add(bytes);
        self.unsaved_bytes = self.unsaved_bytes.saturating_add(bytes);
        let pause_us = bytes.saturating_mul(1_000_000) / self.bytes_per_second;
        self.next_us = now_us.saturating_add(pause_us);
        Ok(Duration::from_micros(pause_us))
    }

    /// Writes the integrity state if there is space for it. Otherwise it remains in memory.
    pub(crate) fn save(&mut self) {
        self.unsaved_bytes = 0;
        self.store.save();
    }

    /// Returns the segment in progress, or else the next that is due.
    fn take_current(&mut self, stopped: &dyn Fn() -> bool) -> Result<Option<SegmentScrub>> {
        if let Some(current) = self.current.take() {
            return Ok(Some(current));
        }
        let now_ms = self.store.clock.monotonic_ms();
        if now_ms >= self.next_schedule_ms {
            self.reschedule(stopped)?;
            self.next_schedule_ms = now_ms.saturating_add(limits::SCRUB_SCHEDULE_POLL_MS);
        }
        while let Some((id, class)) = self.due.pop_front() {
            if let Some(begun) = SegmentScrub::begin(&self.store, id, class, None)? {
                return Ok(Some(begun));
            }
        }
        Ok(None)
    }

    /// Determines the due segments and the required rate.
    fn reschedule(&mut self, stopped: &dyn Fn() -> bool) -> Result<()> {
        let period_ms = u64::try_from(self.options.period.as_millis()).unwrap_or(u64::MAX);
        let now_ms = self.store.clock.unix_ms();
        let all = self.store.segments()?;
        self.store.forget_removed(&all);
        let bytes = all.iter().map(|segment| segment.usage.record_bytes);
        let bytes = bytes.fold(0_u64, u64::saturating_add);
        self.bytes_per_second = (bytes / self.options.period.as_secs().max(1))
            .max(limits::SCRUB_BYTES_PER_SECOND_MIN)
            .min(self.options.bytes_per_second_max)
            .max(1);
        let mut turns = Vec::with_capacity(all.len());
        let mut made = BTreeMap::new();
        let mut oldest_ms: Option<u64> = None;
        for Segment { id, usage, verified_ms, .. } in all.into_iter().filter(|it| !it.is_active) {
            let class = usage.class;
            if !self.store.segments.is_local(id, class) {
                continue;
            }
            let mut made_ms = 0;
            if verified_ms.is_none() {
                if stopped() {
                    return Err(Error::Cancelled);
                }
                made_ms = self.made.get(&id).copied().unwrap_or_else(|| self.made_ms(id, class));
                made.insert(id, made_ms);
            }
            let since_ms = verified_ms.unwrap_or(made_ms);
            oldest_ms = Some(oldest_ms.map_or(since_ms, |oldest_ms| oldest_ms.min(since_ms)));
            turns.push(DueSegment { id, class, verified_ms, made_ms });
        }
        self.store.metrics.scrub_oldest_ms.set(oldest_ms.unwrap_or(0));
        self.made = made;
        self.due = by_due_time(turns, period_ms, now_ms);
        Ok(())
    }

    /// Returns the creation time of a segment from its header; an unreadable header makes the segment due first.
    fn made_ms(&self, id: SegmentId, class: SegmentClass) -> u64 {
        let path = id.path(class);
        let file = self.store.segments.disk().open(&path).ok();
        let header = file.and_then(|file| {
            read_header(file.as_ref(), &path, id, class, self.store.segments.store()).ok()
        });
        header.map_or(0, |header| header.created_ms)
    }
}

/// Segment with its scheduling data.
struct Segment {
    id: SegmentId,
    usage: SegmentUsage,
    verified_ms: Option<u64>,
    /// Whether groups are still appended to it.
    is_active: bool,
}

impl ScrubContext {
    /// Verifies everything now, without a rate limit, up to the end of the log.
    pub(crate) fn scrub(&self, watch: &mut ProgressCallback<'_>) -> Result<ScrubReport> {
        self.collect_reported()?;
        let scrubbed = self.scrub_all(watch);
        self.save();
        scrubbed
    }

    fn scrub_all(&self, watch: &mut ProgressCallback<'_>) -> Result<ScrubReport> {
        let all = self.segments()?;
        self.forget_removed(&all);
        let total_bytes = all.iter().map(|segment| segment.usage.record_bytes);
        let progress = WorkProgress {
            total_bytes: total_bytes.fold(0, u64::saturating_add),
            total_items: all.len() as u64,
            ..WorkProgress::default()
        };
        let mut report = ScrubReport::default();
        let progress = Cell::new(progress);
        let watch = RefCell::new(watch);
        // After a stop, the callback is not called again.
        let is_stopped = Cell::new(false);
        let stopped = || {
            if !is_stopped.get() {
                is_stopped.set(watch.borrow_mut()(progress.get()).is_break());
            }
            is_stopped.get()
        };
        for segment in all {
            let position = self.read_checked(|view| Ok(view.position()))?;
            let end = position.filter(|at| segment.is_active && at.segment == Some(segment.id));
            let end = end.map(|position| position.offset);
            let is_local = self.segments.is_local(segment.id, segment.usage.class);
            let begun = match is_local {
                true => SegmentScrub::begin(self, segment.id, segment.usage.class, end)?,
                false => None,
            };
            let WorkProgress { done_items, .. } = progress.get();
            progress.set(WorkProgress { done_items: done_items + 1, ..progress.get() });
            let Some(mut current) = begun else { continue };
            while let Some(bytes) = current.step(self, &stopped)? {
                self.metrics.scrubbed_bytes.add(bytes);
                report.bytes = report.bytes.saturating_add(bytes);
                let total_bytes = progress.get().total_bytes.max(report.bytes);
                let done_bytes = report.bytes;
                progress.set(WorkProgress { done_bytes, total_bytes, ..progress.get() });
                if stopped() {
                    return Err(Error::Cancelled);
                }
            }
            let ended = current.end(self, &stopped)?;
            if stopped() {
                return Err(Error::Cancelled);
            }
            if let Some(ended) = ended {
                self.note(&ended);
                report.segments += 1;
                report.damage.unlisted += ended.findings.unlisted();
                for damage in ended.findings.listed {
                    report.damage.add(damage);
                }
            }
        }
        Ok(report)
    }

    /// Records the corruption reported by reads, if it is in live data.
    pub(crate) fn collect_reported(&self) -> Result<()> {
        for corruption in self.segments.reported_corruption().take() {
            if let Some(damage) = self.damage_of(corruption)? {
                self.index.record_damage(damage);
            }
        }
        Ok(())
    }

    fn damage_of(&self, corruption: Corruption) -> Result<Option<Damage>> {
        let file_name = corruption.file.rsplit('/').next().unwrap_or_default();
        let Some(segment) = SegmentId::from_file_name(file_name) else { return Ok(None) };
        let (offset, reason, found_ms) =
            (corruption.offset, corruption.reason, self.clock.unix_ms());
        let Some(name) = corruption.object else {
            // The structure matters while any record of the segment is live.
            let usage = self.read_checked(|view| view.segment_usage(segment))?;
            return Ok(usage.map(|usage| {
                let class = usage.class;
                Damage { segment, class, offset, lsn: None, reason, name: None, found_ms }
            }));
        };
        let Some(entry) = self.read_checked(|view| view.entry(&name))? else { return Ok(None) };
        let class = match entry.content {
            EntryContent::Big { segment: big, .. } if big == segment => SegmentClass::Big,
            // The loss was already reported.
            EntryContent::Lost { .. } => return Ok(None),
            _ if entry.record.segment == segment => self.segments.class_of(segment),
            _ => return Ok(None),
        };
        let (lsn, name) = (Some(entry.lsn), Some(RecordName::Object(name)));
        Ok(Some(Damage { segment, class, offset, lsn, reason, name, found_ms }))
    }

    /// Writes the integrity state unless the disk is so full that the write could fail partially: the index would
    /// have to be reopened, and a checkpoint needs the space more.
    pub(crate) fn save(&self) {
        let free_bytes = self.segments.disk().free_bytes();
        if free_bytes.is_ok_and(|bytes| bytes >= limits::INTEGRITY_SAVE_FREE_BYTES_MIN) {
            // On failure the changes remain in memory and are retried.
            let _ = self.index.save_integrity();
        }
    }

    fn note(&self, ended: &SegmentScrubResult) {
        let SegmentScrubResult { id, is_whole, findings } = ended;
        self.metrics.scrubbed_segments.add(1);
        let result =
            ScrubResult { verified_ms: self.clock.unix_ms(), damage_count: findings.count };
        if *is_whole {
            self.index.record_scrub(*id, result, &findings.listed);
        } else {
            findings.listed.iter().for_each(|damage| self.index.record_damage(damage.clone()));
        }
    }

    /// Returns all segments, the least recently verified first.
    fn segments(&self) -> Result<Vec<Segment>> {
        let (usages, position) =
            self.read_checked(|view| Ok((view.segments()?, view.position())))?;
        let log_end = position.and_then(|position| position.segment);
        let mut all: Vec<_> = usages
            .into_iter()
            .map(|(id, usage)| Segment {
                id,
                usage,
                verified_ms: self.index.segment_integrity(id).0,
                is_active: self.segments.is_unsealed(id) && log_end.is_none_or(|last| id >= last),
            })
            .collect();
        all.sort_by_key(|segment| (segment.verified_ms, segment.id));
        Ok(all)
    }

    /// Forgets the integrity state of retired segments.
    fn forget_removed(&self, all: &[Segment]) {
        let there: BTreeSet<SegmentId> = all.iter().map(|segment| segment.id).collect();
        self.index.forget_segments(|id, damage| {
            // An unreferenced file that is retained is still damaged.
            let is_kept = |damage: &Damage| self.segments.disk().open(&damage.file()).is_ok();
            !there.contains(&id) && !damage.is_some_and(is_kept)
        });
    }

    /// Reads the index.
    pub(crate) fn read_checked<T>(&self, read: impl FnOnce(&View) -> Result<T>) -> Result<T> {
        self.index.read_checked(read)
    }
}

/// Converts a failed read to a fault; errors that do not concern the bytes are returned.
fn fault(error: Error, offset: u64) -> Result<(u64, Malformed)> {
    match error {
        Error::Corrupt(corruption) => Ok((corruption.offset, corruption.reason)),
        Error::Io { .. } => Ok((offset, Malformed::Unreadable)),
        other => Err(other),
    }
}
