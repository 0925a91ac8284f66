//! Stored usage history: one fact for each day with its hours, later one for each 32 days.
//!
//! Non-goals: which of them are written, and when.

use std::collections::BTreeMap;

use engine::FactName;
use engine::name::NameError;
use serde::{Deserialize, Serialize};
use usage::bucket_counters::UsageCounts;

use super::quota::StoredAmount;
use super::record::Record;

/// Prefix of the fact names of days with their hours; the owner and the number of the day follow.
pub(super) const HOURS_PREFIX: &str = "traffic-hours/";
/// Prefix of the fact names of blocks of days; the owner and the block number (day divided by block size) follow.
pub(super) const DAYS_PREFIX: &str = "traffic-days/";
/// Days in one fact.
pub(super) const BLOCK_DAYS: u64 = 32;
/// Owner of the server-wide history: not a valid bucket name.
pub(super) const ALL_BUCKETS: &str = "-";

/// Hours of a day, or days of a block, without empty ones.
#[derive(Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct UsageBlock {
    pub(super) parts: BTreeMap<u8, UsageSum>,
}

/// Counts of one hour or day, and the storage usage at its last measurement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct UsageSum {
    #[serde(skip_serializing_if = "is_zero")]
    requests: u64,
    #[serde(skip_serializing_if = "is_zero")]
    errors: u64,
    #[serde(skip_serializing_if = "is_zero")]
    refusals: u64,
    #[serde(skip_serializing_if = "is_zero")]
    bytes_out: u64,
    #[serde(skip_serializing_if = "is_zero")]
    bytes_in: u64,
    #[serde(skip_serializing_if = "is_zero")]
    images: u64,
    #[serde(skip_serializing_if = "is_zero")]
    image_us: u64,
    /// Objects and their bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    stored: Option<(u64, u64)>,
}

impl Record for UsageBlock {}

impl UsageSum {
    pub(super) fn counts(&self) -> UsageCounts {
        let Self { requests, errors, refusals, bytes_out, bytes_in, images, image_us, .. } = *self;
        UsageCounts { requests, errors, refusals, bytes_out, bytes_in, images, image_us }
    }

    pub(super) fn amount(&self) -> Option<StoredAmount> {
        self.stored.map(|(objects, bytes)| StoredAmount { objects, bytes })
    }

    pub(super) fn add(&mut self, more: &UsageCounts) {
        let mut counts = self.counts();
        counts.add(more);
        let UsageCounts { requests, errors, refusals, bytes_out, bytes_in, images, image_us } =
            counts;
        let stored = self.stored;
        *self = Self { requests, errors, refusals, bytes_out, bytes_in, images, image_us, stored };
    }

    pub(super) fn set_amount(&mut self, amount: StoredAmount) {
        self.stored = Some((amount.objects, amount.bytes));
    }
}

impl UsageBlock {
    /// Returns the sum of all parts; the storage usage is that of the last part that has one.
    pub(super) fn sum(&self) -> UsageSum {
        self.parts.values().fold(UsageSum::default(), |mut sum, part| {
            sum.add(&part.counts());
            sum.stored = part.stored.or(sum.stored);
            sum
        })
    }

    pub(super) fn part(&mut self, number: u64) -> &mut UsageSum {
        self.parts.entry(u8::try_from(number).unwrap_or(u8::MAX)).or_default()
    }
}

/// Returns the fact of a day with its hours.
pub(super) fn hours_fact(whose: &str, day: u64) -> Result<FactName, NameError> {
    FactName::parse(&format!("{HOURS_PREFIX}{whose}/{day:06}"))
}

/// Returns the fact of a block with its days.
pub(super) fn days_fact(whose: &str, block: u64) -> Result<FactName, NameError> {
    FactName::parse(&format!("{DAYS_PREFIX}{whose}/{block:06}"))
}

/// Parses the owner, and the day or block number, of a fact.
pub(super) fn parse<'a>(prefix: &str, fact: &'a FactName) -> Option<(&'a str, u64)> {
    let (whose, number) = fact.as_str().strip_prefix(prefix)?.split_once('/')?;
    Some((whose, number.parse().ok()?))
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

#[cfg(test)]
mod tests {
    use super::super::record::{decode, encode};
    use super::*;

    #[test]
    fn hourly_usage_round_trips_and_folds_into_days() {
        let mut day = UsageBlock::default();
        day.part(3).add(&UsageCounts { requests: 2, bytes_out: 10, ..UsageCounts::default() });
        day.part(3).set_amount(StoredAmount { objects: 1, bytes: 10 });
        day.part(23).add(&UsageCounts { requests: 1, refusals: 1, ..UsageCounts::default() });
        let fact = hours_fact("photos", 20_484).unwrap();
        assert_eq!(parse(HOURS_PREFIX, &fact), Some(("photos", 20_484)));
        let bytes = encode(&fact, &day).unwrap();
        let text = r#"{"version":1,"record":{"parts":{"3":{"requests":2,"bytes_out":10,"stored":[1,10]},"23":{"requests":1,"refusals":1}}}}"#;
        assert_eq!(std::str::from_utf8(&bytes).unwrap(), text);
        assert_eq!(decode::<UsageBlock>(&fact, &bytes).unwrap(), day);
        let sum = day.sum();
        assert_eq!(
            sum.counts(),
            UsageCounts { requests: 3, refusals: 1, bytes_out: 10, ..UsageCounts::default() }
        );
        assert_eq!(sum.amount(), Some(StoredAmount { objects: 1, bytes: 10 }));
    }

    #[test]
    fn usage_record_size_is_below_the_limit() {
        let mut block = UsageBlock::default();
        for day in 0..BLOCK_DAYS {
            let most = u64::MAX;
            let counts = UsageCounts {
                requests: most,
                errors: most,
                refusals: most,
                bytes_out: most,
                bytes_in: most,
                images: most,
                image_us: most,
            };
            block.part(day).add(&counts);
            block.part(day).set_amount(StoredAmount { objects: most, bytes: most });
        }
        let bytes = encode(&days_fact("photos", 640).unwrap(), &block).unwrap();
        assert!(bytes.len() * 4 < engine::limits::FACT_BYTES_MAX, "{}", bytes.len());
    }
}
