//! Usage history, per bucket and server-wide: persisted periodically, aggregated, deleted.
//!
//! Counts are in memory (`traffic`) until they are persisted; a crash loses the rest. Guarantees: counts are written
//! once, for a bucket and server-wide in one batch; aggregated hours are deleted in the same batch; the history of a
//! bucket is deleted with it, and a later bucket of the same name has none of it. Non-goals: authorization.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use engine::{Batch, BucketName, FactName};

use super::quota::Amount;
use super::record::{decode, encode, unreadable};
use super::traffic_facts::{
    BLOCK_DAYS, DAYS_PREFIX, EVERYTHING, HOURS_PREFIX, Stretch, Sum, days_fact, hours_fact, parse,
};
use super::{Bucket, Catalog, CatalogError, each_fact};
use crate::limits::{TRAFFIC_BATCH_FACTS, TRAFFIC_DAYS_KEPT, TRAFFIC_HOURS_KEPT_DAYS};
use crate::traffic::{Counts, HOUR_MS, MINUTE_MS, Traffic};

const DAY_HOURS: u64 = 24;

/// In-memory state of the usage history.
pub(super) struct TrafficBook {
    /// Counts outside any bucket.
    elsewhere: Arc<Traffic>,
    /// Counters of deleted buckets that requests in flight still use. The last lock in the order.
    left: Mutex<Vec<Arc<Traffic>>>,
    since_ms: u64,
    /// Held while facts are written, and while they are read together with unwritten counts. Taken before the lock for
    /// changes.
    written: Mutex<Written>,
}

#[derive(Default)]
struct Written {
    /// Storage usage of each bucket at the last write.
    amounts: BTreeMap<BucketName, Amount>,
    everything: Option<Amount>,
    /// Last day on which old history was swept.
    swept_day: Option<u64>,
}

/// Resolution of a history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrafficStep {
    Minute,
    Hour,
    Day,
}

/// Scope of a history.
pub enum TrafficOf {
    /// The whole server, including deleted buckets.
    Everything,
    /// Several buckets, added up.
    Buckets(Vec<Arc<Bucket>>),
}

/// Usage in one step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TrafficPoint {
    pub counts: Counts,
    /// Storage usage at its end, if measured by then.
    pub amount: Option<Amount>,
}

impl TrafficStep {
    pub fn ms(self) -> u64 {
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

impl TrafficBook {
    pub(super) fn new(since_ms: u64) -> Self {
        let (elsewhere, left) = (Arc::default(), Mutex::default());
        Self { elsewhere, left, since_ms, written: Mutex::default() }
    }

    fn written(&self) -> MutexGuard<'_, Written> {
        self.written.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Counting and reading.
impl Catalog {
    /// Returns the counters outside any bucket.
    pub fn traffic_elsewhere(&self) -> &Arc<Traffic> {
        &self.0.traffic.elsewhere
    }

    /// Returns the time since which minutes are available.
    pub fn traffic_since_ms(&self) -> u64 {
        self.0.traffic.since_ms
    }

    /// Advances all counters to the current minute, including idle ones.
    pub fn turn_traffic(&self) {
        let now_ms = self.now_ms();
        self.traffic_elsewhere().turn_to(now_ms);
        self.buckets().iter().for_each(|bucket| bucket.traffic.turn_to(now_ms));
    }

    /// Returns the points of these steps, counted since 1970. Blocks on the index.
    pub fn traffic_points(
        &self,
        of: &TrafficOf,
        step: TrafficStep,
        steps: std::ops::Range<u64>,
    ) -> Result<Vec<TrafficPoint>, CatalogError> {
        let _unchanged = self.0.traffic.written();
        let now_ms = self.now_ms();
        let course = || Course::new(step, steps.clone());
        match of {
            TrafficOf::Everything => {
                let mut course = course();
                self.add_stored(&mut course, EVERYTHING)?;
                self.take_over_left();
                course.add_recent(self.traffic_elsewhere(), now_ms);
                let mut amount = Amount::default();
                for bucket in self.buckets() {
                    course.add_recent(&bucket.traffic, now_ms);
                    amount = amount.plus(self.bucket_amount(&bucket.name)?);
                }
                Ok(course.finish(amount, now_ms))
            }
            TrafficOf::Buckets(buckets) => {
                let mut sum = course().points;
                for bucket in buckets {
                    let mut course = course();
                    self.add_stored(&mut course, bucket.name.as_str())?;
                    course.add_recent(&bucket.traffic, now_ms);
                    let points = course.finish(self.bucket_amount(&bucket.name)?, now_ms);
                    sum.iter_mut().zip(&points).for_each(|(sum, point)| sum.add(point));
                }
                Ok(sum)
            }
        }
    }

    /// Adds the stored history, newest first.
    fn add_stored(&self, course: &mut Course, whose: &str) -> Result<(), CatalogError> {
        if course.step == TrafficStep::Minute {
            return Ok(());
        }
        for (day, fact, bytes) in self.stored(HOURS_PREFIX, whose)?.into_iter().rev() {
            if course.is_past((day + 1) * DAY_HOURS) {
                return Ok(());
            }
            for (hour, sum) in decode::<Stretch>(&fact, &bytes)?.parts.iter().rev() {
                course.add_hour(day * DAY_HOURS + u64::from(*hour), sum);
            }
        }
        for (block, fact, bytes) in self.stored(DAYS_PREFIX, whose)?.into_iter().rev() {
            if course.is_past((block + 1) * BLOCK_DAYS * DAY_HOURS) {
                return Ok(());
            }
            for (day, sum) in decode::<Stretch>(&fact, &bytes)?.parts.iter().rev() {
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
        let page = self.0.store.facts(
            &format!("{prefix}{whose}/"),
            None,
            engine::limits::LIST_PAGE_MAX,
        )?;
        let read = |(fact, bytes): (FactName, Bytes)| {
            let number = parse(prefix, &fact).map(|(_, number)| number);
            let number =
                number.ok_or_else(|| unreadable(&fact, &"its name does not end in a number"))?;
            Ok((number, fact, bytes))
        };
        page.into_iter().map(read).collect()
    }
}

/// Points of a history under construction.
struct Course {
    step: TrafficStep,
    steps: std::ops::Range<u64>,
    points: Vec<TrafficPoint>,
    /// Storage usage when the first step began.
    before: Option<Amount>,
}

impl Course {
    fn new(step: TrafficStep, steps: std::ops::Range<u64>) -> Self {
        let points = steps.clone().map(|_| TrafficPoint::default()).collect();
        Self { step, steps, points, before: None }
    }

    fn at(&mut self, step: u64) -> Option<&mut TrafficPoint> {
        let at = usize::try_from(step.checked_sub(self.steps.start)?).ok()?;
        self.points.get_mut(at)
    }

    /// Returns whether nothing that ended by this hour is needed.
    fn is_past(&self, end_hour: u64) -> bool {
        self.before.is_some() && self.step.of_hour(end_hour.saturating_sub(1)) < self.steps.start
    }

    fn add_hour(&mut self, hour: u64, sum: &Sum) {
        self.add(self.step.of_hour(hour), sum);
    }

    /// Adds a day, whose counts cannot be split into hours: an hourly history uses only its storage usage.
    fn add_day(&mut self, day: u64, sum: &Sum) {
        let hour = day * DAY_HOURS + DAY_HOURS - 1;
        match self.step {
            TrafficStep::Day => self.add(day, sum),
            _ if hour < self.steps.start => self.before = self.before.or(sum.amount()),
            _ => {}
        }
    }

    /// Adds counts to a step; a newer storage usage was set before.
    fn add(&mut self, step: u64, sum: &Sum) {
        if step < self.steps.start {
            self.before = self.before.or(sum.amount());
        } else if let Some(point) = self.at(step) {
            point.counts.add(&sum.counts());
            point.amount = point.amount.or(sum.amount());
        }
    }

    /// Adds the counts that are only in memory.
    fn add_recent(&mut self, traffic: &Traffic, now_ms: u64) {
        let (recent, is_minutes) = match self.step {
            TrafficStep::Minute => (traffic.minutes(now_ms), true),
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
    fn finish(mut self, now: Amount, now_ms: u64) -> Vec<TrafficPoint> {
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

impl TrafficPoint {
    fn add(&mut self, more: &Self) {
        self.counts.add(&more.counts);
        self.amount = match (self.amount, more.amount) {
            (Some(amount), Some(more)) => Some(amount.plus(more)),
            (amount, more) => amount.or(more),
        };
    }
}

/// Hours taken out of memory to be persisted.
type Taken = Vec<(Arc<Traffic>, BTreeMap<u64, Counts>)>;

/// Persistence and deletion.
impl Catalog {
    /// Persists the counts since the last time, and the storage usage. Failed writes are retried the next time.
    pub fn write_traffic(&self) -> Result<(), CatalogError> {
        let mut written = self.0.traffic.written();
        let mut rest = self.buckets().into_iter();
        let mut everything = Amount::default();
        loop {
            // Otherwise a bucket that is deleted concurrently would leave its history behind.
            let _changing = self.change();
            let mut taken = Taken::new();
            let done = self.write_some(&mut rest, &mut everything, &mut written, &mut taken);
            if done.is_err() {
                taken.iter().for_each(|(traffic, hours)| traffic.put_back(hours));
            }
            if done? {
                return Ok(());
            }
        }
    }

    /// Writes one batch. Returns whether it was the last one.
    fn write_some(
        &self,
        rest: &mut impl Iterator<Item = Arc<Bucket>>,
        everything: &mut Amount,
        written: &mut Written,
        taken: &mut Taken,
    ) -> Result<bool, CatalogError> {
        let now_ms = self.now_ms();
        let mut facts = Vec::new();
        let mut amounts = Vec::new();
        let mut is_last = true;
        for bucket in rest {
            // The current record, if the bucket still exists.
            let Some(bucket) = self.bucket(&bucket.name) else { continue };
            let amount = self.bucket_amount(&bucket.name)?;
            *everything = everything.plus(amount);
            let hours = bucket.traffic.take_unwritten(now_ms);
            let is_known = written.amounts.get(&bucket.name) == Some(&amount);
            if hours.is_empty() && is_known {
                continue;
            }
            taken.push((bucket.traffic.clone(), hours));
            let (_, hours) = &taken[taken.len() - 1];
            facts.extend(self.with_hours(bucket.name.as_str(), hours, Some(amount))?);
            amounts.push((bucket.name.clone(), amount));
            if facts.len() >= TRAFFIC_BATCH_FACTS {
                is_last = false;
                break;
            }
        }
        if is_last {
            self.take_over_left();
            let elsewhere = self.traffic_elsewhere();
            taken.push((elsewhere.clone(), elsewhere.take_unwritten(now_ms)));
        }
        let mut sums = BTreeMap::<u64, Counts>::new();
        for (hour, counts) in taken.iter().flat_map(|(_, hours)| hours) {
            sums.entry(*hour).or_default().add(counts);
        }
        let amount = is_last.then_some(*everything);
        let is_known = amount.is_none() || amount == written.everything;
        if !sums.is_empty() || !is_known {
            facts.extend(self.with_hours(EVERYTHING, &sums, amount)?);
        }
        if facts.is_empty() {
            return Ok(is_last);
        }
        let put = |batch: Batch, (fact, value)| batch.put_fact(fact, value);
        self.0.store.commit(facts.into_iter().fold(Batch::new(), put))?;
        written.amounts.extend(amounts);
        written.everything = amount.or(written.everything);
        Ok(is_last)
    }

    /// Adds these hours and the current storage usage to the stored days of an owner.
    fn with_hours(
        &self,
        whose: &str,
        hours: &BTreeMap<u64, Counts>,
        amount: Option<Amount>,
    ) -> Result<Vec<(FactName, Bytes)>, CatalogError> {
        let now_hour = self.now_ms() / HOUR_MS;
        let mut days = BTreeMap::<u64, Stretch>::new();
        let mut change = |hour: u64, change: &mut dyn FnMut(&mut Sum)| {
            let day = match days.entry(hour / DAY_HOURS) {
                std::collections::btree_map::Entry::Occupied(day) => day.into_mut(),
                std::collections::btree_map::Entry::Vacant(day) => {
                    let stored = self.stretch(&hours_fact(whose, hour / DAY_HOURS)?)?;
                    day.insert(stored)
                }
            };
            change(day.part(hour % DAY_HOURS));
            Ok::<_, CatalogError>(())
        };
        for (hour, counts) in hours {
            change(*hour, &mut |sum| sum.add(counts))?;
        }
        if let Some(amount) = amount {
            change(now_hour, &mut |sum| sum.set_amount(amount))?;
        }
        let facts = days.into_iter().map(|(day, stretch)| {
            let fact = hours_fact(whose, day)?;
            let value = encode(&fact, &stretch)?;
            Ok((fact, value))
        });
        facts.collect()
    }

    fn stretch(&self, fact: &FactName) -> Result<Stretch, CatalogError> {
        let value = self.0.store.fact(fact)?;
        Ok(value.map(|value| decode(fact, &value)).transpose()?.unwrap_or_default())
    }

    /// Aggregates old hours to days, and deletes older days. Runs once a day, and is free otherwise.
    pub fn sweep_traffic(&self) -> Result<(), CatalogError> {
        let mut written = self.0.traffic.written();
        let today = self.now_ms() / TrafficStep::Day.ms();
        if written.swept_day == Some(today) {
            return Ok(());
        }
        let first_day = today.saturating_sub(TRAFFIC_HOURS_KEPT_DAYS);
        let mut old = Vec::new();
        each_fact(&self.0.store, HOURS_PREFIX, |fact, _, _| {
            let day = parse(HOURS_PREFIX, fact).filter(|(_, day)| *day < first_day);
            old.extend(day.map(|(whose, day)| (whose.to_owned(), day)));
            Ok(())
        })?;
        for days in old.chunks(TRAFFIC_BATCH_FACTS) {
            self.make_days(days)?;
        }
        let first_block = today.saturating_sub(TRAFFIC_DAYS_KEPT) / BLOCK_DAYS;
        let mut old = Vec::new();
        each_fact(&self.0.store, DAYS_PREFIX, |fact, _, _| {
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
        let _changing = self.change();
        let mut blocks = BTreeMap::<(&str, u64), Stretch>::new();
        let mut batch = Batch::new();
        for (whose, day) in days {
            // Leftovers of a deleted bucket are deleted with it.
            let name = BucketName::parse(whose).ok();
            let is_there = name.is_some_and(|name| self.bucket(&name).is_some());
            if !is_there && whose != EVERYTHING {
                continue;
            }
            let block = day / BLOCK_DAYS;
            let stretch = match blocks.entry((whose, block)) {
                std::collections::btree_map::Entry::Occupied(block) => block.into_mut(),
                std::collections::btree_map::Entry::Vacant(entry) => {
                    entry.insert(self.stretch(&days_fact(whose, block)?)?)
                }
            };
            let fact = hours_fact(whose, *day)?;
            let sum = self.stretch(&fact)?.sum();
            let part = stretch.part(day % BLOCK_DAYS);
            part.add(&sum.counts());
            if let Some(amount) = sum.amount() {
                part.set_amount(amount);
            }
            batch = batch.delete_fact(fact);
        }
        for ((whose, block), stretch) in &blocks {
            let fact = days_fact(whose, *block)?;
            let value = encode(&fact, stretch)?;
            batch = batch.put_fact(fact, value);
        }
        if !batch.is_empty() {
            self.0.store.commit(batch)?;
        }
        Ok(())
    }

    /// Assigns the unwritten counts of a deleted bucket to the server-wide history, including those of requests in
    /// flight.
    pub(super) fn keep_traffic_of(&self, bucket: &Bucket) {
        self.left().push(bucket.traffic.clone());
    }

    /// Returns the counters to a restored bucket.
    pub(super) fn give_back_traffic_to(&self, bucket: &Bucket) {
        self.left().retain(|left| !Arc::ptr_eq(left, &bucket.traffic));
    }

    /// Takes over the counts of deleted buckets, until no request uses their counters.
    fn take_over_left(&self) {
        let now_ms = self.now_ms();
        self.left().retain_mut(|left| {
            // Checked first: a request that has released the counters by then has counted.
            let is_counted = Arc::get_mut(left).is_none();
            self.traffic_elsewhere().take_over(left, now_ms);
            is_counted
        });
    }

    fn left(&self) -> MutexGuard<'_, Vec<Arc<Traffic>>> {
        self.0.traffic.left.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Deletes the stored history of a deleted bucket.
    pub(super) fn forget_traffic_of(&self, bucket: &BucketName) -> Result<(), CatalogError> {
        let mut written = self.0.traffic.written();
        written.amounts.remove(bucket);
        for prefix in [HOURS_PREFIX, DAYS_PREFIX] {
            let facts = self.stored(prefix, bucket.as_str())?;
            let facts: Vec<_> = facts.into_iter().map(|(_, fact, _)| fact).collect();
            self.delete_facts(&facts)?;
        }
        Ok(())
    }

    fn delete_facts(&self, facts: &[FactName]) -> Result<(), CatalogError> {
        for facts in facts.chunks(TRAFFIC_BATCH_FACTS) {
            let delete = |batch: Batch, fact: &FactName| batch.delete_fact(fact.clone());
            self.0.store.commit(facts.iter().fold(Batch::new(), delete))?;
        }
        Ok(())
    }
}
