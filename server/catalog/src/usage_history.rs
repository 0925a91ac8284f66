//! Usage history, per bucket and server-wide: persisted periodically, aggregated, deleted.
//!
//! Counts are in memory (`usage::bucket_counters`) until they are persisted; a crash loses the rest.
//!
//! Guarantees: counts are written once, for a bucket and server-wide in one batch; aggregated hours are deleted in the
//! same batch; the history of a bucket is deleted with it, and a later bucket of the same name has none of it.
//! Non-goals: authorization.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use engine::{Batch, BucketName, FactName};
use usage::bucket_counters::{BucketCounters, HOUR_MS, MINUTE_MS, UsageCounts};
use usage::limits::USAGE_HOURS_RETENTION_DAYS;

use super::change::{Change, each_fact};
use super::quota::StoredAmount;
use super::record::{corrupt_record, decode};
use super::usage_records::{
    ALL_BUCKETS, BLOCK_DAYS, DAYS_PREFIX, HOURS_PREFIX, UsageBlock, UsageSum, days_fact,
    hours_fact, parse,
};
use super::{Bucket, CatalogError, Usage};
use crate::limits::{USAGE_BATCH_RECORDS, USAGE_DAYS_RETENTION};

const DAY_HOURS: u64 = 24;

/// In-memory state of the usage history.
pub(super) struct UsageHistory {
    /// Counts outside any bucket.
    unattributed: Arc<BucketCounters>,
    since_ms: u64,
    /// Held while facts are written, and while they are read together with unwritten counts. Taken before the lock for
    /// changes.
    written: Mutex<WriteState>,
}

#[derive(Default)]
struct WriteState {
    /// Storage usage of each bucket at the last write.
    amounts: BTreeMap<BucketName, StoredAmount>,
    total: Option<StoredAmount>,
    /// Last day on which old history was swept.
    swept_day: Option<u64>,
}

/// Resolution of a history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UsageStep {
    Minute,
    Hour,
    Day,
}

/// Scope of a history.
pub enum UsageScope {
    /// The whole server, including deleted buckets.
    AllBuckets,
    /// Several buckets, added up.
    Buckets(Vec<Arc<Bucket>>),
}

/// Usage in one step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UsagePoint {
    pub counts: UsageCounts,
    /// Storage usage at its end, if measured by then.
    pub amount: Option<StoredAmount>,
}

impl UsageStep {
    pub const fn ms(self) -> u64 {
        match self {
            Self::Minute => MINUTE_MS,
            Self::Hour => HOUR_MS,
            Self::Day => DAY_HOURS * HOUR_MS,
        }
    }

    /// Returns the step that contains an hour.
    fn of_hour(self, hour: u64) -> u64 {
        match self {
            Self::Day => hour / DAY_HOURS,
            _ => hour,
        }
    }
}

impl UsageHistory {
    pub(super) fn new(since_ms: u64) -> Self {
        Self { unattributed: Arc::default(), since_ms, written: Mutex::default() }
    }

    fn written(&self) -> MutexGuard<'_, WriteState> {
        self.written.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Counting and reading.
impl<'a> Usage<'a> {
    /// Returns the counters outside any bucket.
    pub fn unattributed(&self) -> &'a Arc<BucketCounters> {
        &self.0.state.usage_history.unattributed
    }

    /// Returns the time since which minutes are available.
    pub fn since_ms(&self) -> u64 {
        self.0.state.usage_history.since_ms
    }

    /// Advances all counters to the current minute, including idle ones.
    pub fn advance(&self) {
        let now_ms = self.0.now_ms();
        self.unattributed().advance_to(now_ms);
        self.0.buckets().all().iter().for_each(|bucket| bucket.traffic.advance_to(now_ms));
    }

    /// Returns the points of these steps, counted since 1970. Blocks on the index.
    pub fn points(
        &self,
        of: &UsageScope,
        step: UsageStep,
        steps: std::ops::Range<u64>,
    ) -> Result<Vec<UsagePoint>, CatalogError> {
        let _unchanged = self.0.state.usage_history.written();
        let now_ms = self.0.now_ms();
        let course = || UsageSeries::new(step, steps.clone());
        match of {
            UsageScope::AllBuckets => {
                let mut course = course();
                self.add_stored(&mut course, ALL_BUCKETS)?;
                self.merge_orphaned_counters();
                course.add_recent(self.unattributed(), now_ms);
                let mut amount = StoredAmount::default();
                for bucket in self.0.buckets().all() {
                    course.add_recent(&bucket.traffic, now_ms);
                    amount = amount.plus(self.0.quotas().of_bucket(&bucket.name)?);
                }
                Ok(course.finish(amount, now_ms))
            }
            UsageScope::Buckets(buckets) => {
                let mut sum = course().points;
                for bucket in buckets {
                    let mut course = course();
                    self.add_stored(&mut course, bucket.name.as_str())?;
                    course.add_recent(&bucket.traffic, now_ms);
                    let points = course.finish(self.0.quotas().of_bucket(&bucket.name)?, now_ms);
                    sum.iter_mut().zip(&points).for_each(|(sum, point)| sum.add(point));
                }
                Ok(sum)
            }
        }
    }

    /// Adds the stored history, newest first.
    fn add_stored(&self, course: &mut UsageSeries, whose: &str) -> Result<(), CatalogError> {
        if course.step == UsageStep::Minute {
            return Ok(());
        }
        for (day, fact, bytes) in self.stored(HOURS_PREFIX, whose)?.into_iter().rev() {
            if course.is_past((day + 1) * DAY_HOURS) {
                return Ok(());
            }
            for (hour, sum) in decode::<UsageBlock>(&fact, &bytes)?.parts.iter().rev() {
                course.add_hour(day * DAY_HOURS + u64::from(*hour), sum);
            }
        }
        for (block, fact, bytes) in self.stored(DAYS_PREFIX, whose)?.into_iter().rev() {
            if course.is_past((block + 1) * BLOCK_DAYS * DAY_HOURS) {
                return Ok(());
            }
            for (day, sum) in decode::<UsageBlock>(&fact, &bytes)?.parts.iter().rev() {
                course.add_day(block * BLOCK_DAYS + u64::from(*day), sum);
            }
        }
        Ok(())
    }

    fn stored(
        &self,
        prefix: &str,
        whose: &str,
    ) -> Result<Vec<(u64, FactName, Bytes)>, CatalogError> {
        let page = self.0.state.store.facts(
            &format!("{prefix}{whose}/"),
            None,
            engine::limits::LIST_PAGE_MAX,
        )?;
        let read = |(fact, bytes): (FactName, Bytes)| {
            let number = parse(prefix, &fact).map(|(_, number)| number);
            let number = number
                .ok_or_else(|| corrupt_record(&fact, &"its name does not end in a number"))?;
            Ok((number, fact, bytes))
        };
        page.into_iter().map(read).collect()
    }
}

/// Points of a history under construction.
struct UsageSeries {
    step: UsageStep,
    steps: std::ops::Range<u64>,
    points: Vec<UsagePoint>,
    /// Storage usage when the first step began.
    before: Option<StoredAmount>,
}

impl UsageSeries {
    fn new(step: UsageStep, steps: std::ops::Range<u64>) -> Self {
        let points = steps.clone().map(|_| UsagePoint::default()).collect();
        Self { step, steps, points, before: None }
    }

    fn at(&mut self, step: u64) -> Option<&mut UsagePoint> {
        let at = usize::try_from(step.checked_sub(self.steps.start)?).ok()?;
        self.points.get_mut(at)
    }

    /// Returns whether nothing that ended by this hour is needed.
    fn is_past(&self, end_hour: u64) -> bool {
        self.before.is_some() && self.step.of_hour(end_hour.saturating_sub(1)) < self.steps.start
    }

    fn add_hour(&mut self, hour: u64, sum: &UsageSum) {
        self.add(self.step.of_hour(hour), sum);
    }

    /// Adds a day, whose counts cannot be split into hours: an hourly history uses only its storage usage.
    fn add_day(&mut self, day: u64, sum: &UsageSum) {
        let hour = day * DAY_HOURS + DAY_HOURS - 1;
        match self.step {
            UsageStep::Day => self.add(day, sum),
            _ if hour < self.steps.start => self.before = self.before.or(sum.amount()),
            _ => {}
        }
    }

    /// Adds counts to a step; a newer storage usage was set before.
    fn add(&mut self, step: u64, sum: &UsageSum) {
        if step < self.steps.start {
            self.before = self.before.or(sum.amount());
        } else if let Some(point) = self.at(step) {
            point.counts.add(&sum.counts());
            point.amount = point.amount.or(sum.amount());
        }
    }

    /// Adds the counts that are only in memory.
    fn add_recent(&mut self, traffic: &BucketCounters, now_ms: u64) {
        let (recent, is_minutes) = match self.step {
            UsageStep::Minute => (traffic.minutes(now_ms), true),
            _ => (traffic.unwritten(now_ms), false),
        };
        for (time, counts) in recent {
            let step = if is_minutes { time } else { self.step.of_hour(time) };
            if let Some(point) = self.at(step) {
                point.counts.add(&counts);
            }
        }
    }

    /// Fills in the storage usage of steps without a measurement, which is that of the step before.
    fn finish(mut self, now: StoredAmount, now_ms: u64) -> Vec<UsagePoint> {
        let now_step = now_ms / self.step.ms();
        if let Some(point) = self.at(now_step) {
            point.amount = Some(now);
        }
        let mut last = self.before;
        for point in &mut self.points {
            point.amount = point.amount.or(last);
            last = point.amount;
        }
        self.points
    }
}

impl UsagePoint {
    fn add(&mut self, more: &Self) {
        self.counts.add(&more.counts);
        self.amount = match (self.amount, more.amount) {
            (Some(amount), Some(more)) => Some(amount.plus(more)),
            (amount, more) => amount.or(more),
        };
    }
}

/// Hours taken out of memory to be persisted.
type Taken = Vec<(Arc<BucketCounters>, BTreeMap<u64, UsageCounts>)>;

/// Persistence and deletion.
impl Usage<'_> {
    /// Persists the counts since the last time, and the storage usage. Failed writes are retried the next time.
    pub fn write(&self) -> Result<(), CatalogError> {
        let mut written = self.0.state.usage_history.written();
        let mut rest = self.0.buckets().all().into_iter();
        let mut everything = StoredAmount::default();
        loop {
            // Otherwise a bucket that is deleted concurrently would leave its history behind.
            let mut change = self.0.begin();
            let mut taken = Taken::new();
            let done =
                self.write_some(&mut change, &mut rest, &mut everything, &mut written, &mut taken);
            if done.is_err() {
                taken.iter().for_each(|(traffic, hours)| traffic.restore_unwritten(hours));
            }
            if done? {
                return Ok(());
            }
        }
    }

    /// Writes one batch. Returns whether it was the last one.
    fn write_some(
        &self,
        change: &mut Change<'_>,
        rest: &mut impl Iterator<Item = Arc<Bucket>>,
        everything: &mut StoredAmount,
        written: &mut WriteState,
        taken: &mut Taken,
    ) -> Result<bool, CatalogError> {
        let now_ms = self.0.now_ms();
        let mut amounts = Vec::new();
        let mut is_last = true;
        for bucket in rest {
            // The current record, if the bucket still exists.
            let Some(bucket) = self.0.buckets().get(&bucket.name) else { continue };
            let amount = self.0.quotas().of_bucket(&bucket.name)?;
            *everything = everything.plus(amount);
            let hours = bucket.traffic.take_unwritten(now_ms);
            let is_known = written.amounts.get(&bucket.name) == Some(&amount);
            if hours.is_empty() && is_known {
                continue;
            }
            taken.push((bucket.traffic.clone(), hours));
            let (_, hours) = &taken[taken.len() - 1];
            self.add_hours(change, bucket.name.as_str(), hours, Some(amount))?;
            amounts.push((bucket.name.clone(), amount));
            if change.len() >= USAGE_BATCH_RECORDS {
                is_last = false;
                break;
            }
        }
        if is_last {
            self.merge_orphaned_counters();
            let elsewhere = self.unattributed();
            taken.push((elsewhere.clone(), elsewhere.take_unwritten(now_ms)));
        }
        let mut sums = BTreeMap::<u64, UsageCounts>::new();
        for (hour, counts) in taken.iter().flat_map(|(_, hours)| hours) {
            sums.entry(*hour).or_default().add(counts);
        }
        let amount = is_last.then_some(*everything);
        let is_known = amount.is_none() || amount == written.total;
        if !sums.is_empty() || !is_known {
            self.add_hours(change, ALL_BUCKETS, &sums, amount)?;
        }
        change.commit_any()?;
        written.amounts.extend(amounts);
        written.total = amount.or(written.total);
        Ok(is_last)
    }

    /// Adds these hours and the current storage usage to the stored days of an owner.
    fn add_hours(
        &self,
        change: &mut Change<'_>,
        whose: &str,
        hours: &BTreeMap<u64, UsageCounts>,
        amount: Option<StoredAmount>,
    ) -> Result<(), CatalogError> {
        let now_hour = self.0.now_ms() / HOUR_MS;
        let mut days = BTreeMap::<u64, UsageBlock>::new();
        let mut edit = |hour: u64, edit: &mut dyn FnMut(&mut UsageSum)| {
            let day = match days.entry(hour / DAY_HOURS) {
                std::collections::btree_map::Entry::Occupied(day) => day.into_mut(),
                std::collections::btree_map::Entry::Vacant(day) => {
                    let stored = self.load_usage_block(&hours_fact(whose, hour / DAY_HOURS)?)?;
                    day.insert(stored)
                }
            };
            edit(day.part(hour % DAY_HOURS));
            Ok::<_, CatalogError>(())
        };
        for (hour, counts) in hours {
            edit(*hour, &mut |sum| sum.add(counts))?;
        }
        if let Some(amount) = amount {
            edit(now_hour, &mut |sum| sum.set_amount(amount))?;
        }
        for (day, block) in days {
            change.put(hours_fact(whose, day)?, &block)?;
        }
        Ok(())
    }

    fn load_usage_block(&self, fact: &FactName) -> Result<UsageBlock, CatalogError> {
        let value = self.0.state.store.fact(fact)?;
        Ok(value.map(|value| decode(fact, &value)).transpose()?.unwrap_or_default())
    }

    /// Aggregates old hours to days, and deletes older days. Runs once a day, and is free otherwise.
    pub fn compact(&self) -> Result<(), CatalogError> {
        let mut written = self.0.state.usage_history.written();
        let today = self.0.now_ms() / UsageStep::Day.ms();
        if written.swept_day == Some(today) {
            return Ok(());
        }
        let first_day = today.saturating_sub(USAGE_HOURS_RETENTION_DAYS);
        let mut old = Vec::new();
        each_fact(&self.0.state.store, HOURS_PREFIX, |fact, _| {
            let day = parse(HOURS_PREFIX, fact).filter(|(_, day)| *day < first_day);
            old.extend(day.map(|(whose, day)| (whose.to_owned(), day)));
            Ok(())
        })?;
        for days in old.chunks(USAGE_BATCH_RECORDS) {
            self.make_days(days)?;
        }
        let first_block = today.saturating_sub(USAGE_DAYS_RETENTION) / BLOCK_DAYS;
        let mut old = Vec::new();
        each_fact(&self.0.state.store, DAYS_PREFIX, |fact, _| {
            let is_old = parse(DAYS_PREFIX, fact).is_some_and(|(_, block)| block < first_block);
            old.extend(is_old.then(|| fact.clone()));
            Ok(())
        })?;
        self.delete_facts(&old)?;
        written.swept_day = Some(today);
        Ok(())
    }

    /// Adds the hours of these days to their blocks, and deletes the hours in the same batch.
    fn make_days(&self, days: &[(String, u64)]) -> Result<(), CatalogError> {
        let mut change = self.0.begin();
        let mut blocks = BTreeMap::<(&str, u64), UsageBlock>::new();
        for (whose, day) in days {
            // Leftovers of a deleted bucket are deleted with it.
            let name = BucketName::parse(whose).ok();
            let is_there = name.is_some_and(|name| self.0.buckets().get(&name).is_some());
            if !is_there && whose != ALL_BUCKETS {
                continue;
            }
            let block = day / BLOCK_DAYS;
            let stretch = match blocks.entry((whose, block)) {
                std::collections::btree_map::Entry::Occupied(block) => block.into_mut(),
                std::collections::btree_map::Entry::Vacant(entry) => {
                    entry.insert(self.load_usage_block(&days_fact(whose, block)?)?)
                }
            };
            let fact = hours_fact(whose, *day)?;
            let sum = self.load_usage_block(&fact)?.sum();
            let part = stretch.part(day % BLOCK_DAYS);
            part.add(&sum.counts());
            if let Some(amount) = sum.amount() {
                part.set_amount(amount);
            }
            change.delete(fact);
        }
        for ((whose, block), stretch) in &blocks {
            change.put(days_fact(whose, *block)?, stretch)?;
        }
        change.commit_any()
    }

    /// Takes over the counts of deleted buckets, including those of requests in flight.
    fn merge_orphaned_counters(&self) {
        if self.0.state.buckets.read().has_orphaned() {
            let (into, now_ms) = (self.unattributed(), self.0.now_ms());
            self.0.state.buckets.write().merge_orphaned(into, now_ms);
        }
    }

    /// Deletes the stored history of a deleted bucket.
    pub(super) fn delete_of(&self, bucket: &BucketName) -> Result<(), CatalogError> {
        let mut written = self.0.state.usage_history.written();
        written.amounts.remove(bucket);
        for prefix in [HOURS_PREFIX, DAYS_PREFIX] {
            let facts = self.stored(prefix, bucket.as_str())?;
            let facts: Vec<_> = facts.into_iter().map(|(_, fact, _)| fact).collect();
            self.delete_facts(&facts)?;
        }
        Ok(())
    }

    fn delete_facts(&self, facts: &[FactName]) -> Result<(), CatalogError> {
        for facts in facts.chunks(USAGE_BATCH_RECORDS) {
            let delete = |batch: Batch, fact: &FactName| batch.delete_fact(fact.clone());
            self.0.state.store.commit(facts.iter().fold(Batch::new(), delete))?;
        }
        Ok(())
    }
}
