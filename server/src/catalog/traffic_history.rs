//! What happened over time, in each bucket and everywhere: written now and then, added up, forgotten.
//!
//! Counts are in memory (`traffic`) until they are written; a crash loses what was not. Promises: what is written is
//! written once, for a bucket and for everything in one batch; what is added up is gone as hours in the same batch; a
//! bucket that goes takes its history along, and one that is made again under its name has none of it.
//! Never here: who may see it.

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

/// What is known of it in memory.
pub(super) struct TrafficBook {
    /// What happens in no bucket.
    elsewhere: Arc<Traffic>,
    /// What requests under way still count for buckets that are gone. Taken last of all locks here.
    left: Mutex<Vec<Arc<Traffic>>>,
    since_ms: u64,
    /// Held while facts of it are written, and while they are read together with what is not written yet. Taken before
    /// the lock for changes.
    written: Mutex<Written>,
}

#[derive(Default)]
struct Written {
    /// What a bucket held when that was written last.
    amounts: BTreeMap<BucketName, Amount>,
    everything: Option<Amount>,
    /// The last day on which it was looked for what is old.
    swept_day: Option<u64>,
}

/// How far apart points are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrafficStep {
    Minute,
    Hour,
    Day,
}

/// Whose history is asked for.
pub enum TrafficOf {
    /// What happened anywhere, also in buckets that are gone.
    Everything,
    /// These together.
    Buckets(Vec<Arc<Bucket>>),
}

/// What happened in one step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TrafficPoint {
    pub counts: Counts,
    /// What was stored at the end of it, as far as that was looked at by then.
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

    /// The step in which an hour lies.
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

/// Counting and looking.
impl Catalog {
    /// What happens in no bucket.
    pub fn traffic_elsewhere(&self) -> &Arc<Traffic> {
        &self.0.traffic.elsewhere
    }

    /// Since when minutes are known.
    pub fn traffic_since_ms(&self) -> u64 {
        self.0.traffic.since_ms
    }

    /// What is counted from now on belongs to this minute, also where nobody asks for anything.
    pub fn turn_traffic(&self) {
        let now_ms = self.now_ms();
        self.traffic_elsewhere().turn_to(now_ms);
        self.buckets().iter().for_each(|bucket| bucket.traffic.turn_to(now_ms));
    }

    /// The points of these steps, counted since 1970. Waits for the index.
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

    /// Adds what the store knows, the newest first.
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

/// The points that are asked for, on their way.
struct Course {
    step: TrafficStep,
    steps: std::ops::Range<u64>,
    points: Vec<TrafficPoint>,
    /// What was stored when the first one began.
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

    /// Whether nothing that ended with this hour is wanted any more.
    fn is_past(&self, end_hour: u64) -> bool {
        self.before.is_some() && self.step.of_hour(end_hour.saturating_sub(1)) < self.steps.start
    }

    fn add_hour(&mut self, hour: u64, sum: &Sum) {
        self.add(self.step.of_hour(hour), sum);
    }

    /// A day is no hour: of it only what was stored then is told where hours are asked for.
    fn add_day(&mut self, day: u64, sum: &Sum) {
        let hour = day * DAY_HOURS + DAY_HOURS - 1;
        match self.step {
            TrafficStep::Day => self.add(day, sum),
            _ if hour < self.steps.start => self.before = self.before.or(sum.amount()),
            _ => {}
        }
    }

    /// What is newer was there before.
    fn add(&mut self, step: u64, sum: &Sum) {
        if step < self.steps.start {
            self.before = self.before.or(sum.amount());
        } else if let Some(point) = self.at(step) {
            point.counts.add(&sum.counts());
            point.amount = point.amount.or(sum.amount());
        }
    }

    /// Adds what is in memory alone.
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

    /// What is stored does not change where nobody has seen a change.
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

/// Hours that were taken out of memory, to be written.
type Taken = Vec<(Arc<Traffic>, BTreeMap<u64, Counts>)>;

/// Writing and forgetting.
impl Catalog {
    /// Writes what was counted since the last time, and what is stored. What cannot be written now is written the next
    /// time.
    pub fn write_traffic(&self) -> Result<(), CatalogError> {
        let mut written = self.0.traffic.written();
        let mut rest = self.buckets().into_iter();
        let mut everything = Amount::default();
        loop {
            // A bucket that goes while its history is written would leave it behind.
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

    /// Writes one batch. Whether it was the last one.
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
            // As it is now, if it still is.
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

    /// The days of somebody with these hours added, and with what is stored now.
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

    /// Makes days of hours that are old, and forgets days that are older. Once a day; then it costs nothing.
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

    /// Adds the hours of these days to their blocks; in the same batch the hours go.
    fn make_days(&self, days: &[(String, u64)]) -> Result<(), CatalogError> {
        let _changing = self.change();
        let mut blocks = BTreeMap::<(&str, u64), Stretch>::new();
        let mut batch = Batch::new();
        for (whose, day) in days {
            // What is left of a bucket that goes is forgotten with it.
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

    /// What was counted for a bucket that goes and is not written yet stays in what happened anywhere, and so does what
    /// requests under way count for it from now on.
    pub(super) fn keep_traffic_of(&self, bucket: &Bucket) {
        self.left().push(bucket.traffic.clone());
    }

    /// The bucket is back: what is counted for it is its own again.
    pub(super) fn give_back_traffic_to(&self, bucket: &Bucket) {
        self.left().retain(|left| !Arc::ptr_eq(left, &bucket.traffic));
    }

    /// Takes over what was counted for buckets that are gone, until nobody counts for them any more.
    fn take_over_left(&self) {
        let now_ms = self.now_ms();
        self.left().retain_mut(|left| {
            // Asked before: whoever let go by then has counted.
            let is_counted = Arc::get_mut(left).is_none();
            self.traffic_elsewhere().take_over(left, now_ms);
            is_counted
        });
    }

    fn left(&self) -> MutexGuard<'_, Vec<Arc<Traffic>>> {
        self.0.traffic.left.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Removes the history of a bucket that is gone from the store.
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
