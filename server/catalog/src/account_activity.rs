//! Recent account activity for fair use: requests, and rejections by rate limits, by day.
//!
//! In memory only: a restart loses evidence, in favor of the account. Guarantees: recording takes one of many locks,
//! and allocates only at the first activity of an account. Non-goals: the limits.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use engine::clock::Clock;

use super::AccountId;
use crate::limits::{FAIR_USE_BASELINE_DAYS_MAX, FAIR_USE_BASELINE_DAYS_MIN};

/// Activity of all accounts.
pub struct AccountActivity {
    clock: Arc<dyn Clock>,
    hasher: RandomState,
    shards: [Mutex<HashMap<AccountId, Days>>; SHARDS],
}

/// Activity of an account on one day.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ActivityDay {
    /// Requests with a key of the account, and requests for files in its buckets.
    pub requests: u64,
    /// Requests rejected by a rate limit.
    pub refused: u64,
    /// Mean of the requests of the preceding days, if there are enough of them.
    pub usual_requests: Option<u64>,
}

const SHARDS: usize = 16;
/// Today, yesterday, and the baseline days before that.
const DAYS: usize = 2 + FAIR_USE_BASELINE_DAYS_MAX;
const DAY_MS: u64 = 24 * 60 * 60 * 1_000;

/// Recent days, newest first.
#[derive(Clone, Copy, Default)]
struct Days {
    newest: u64,
    known_count: usize,
    requests: [u64; DAYS],
    refused: [u64; DAYS],
}

impl AccountActivity {
    /// Creates an empty record.
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self { clock, hasher: RandomState::new(), shards: Default::default() }
    }

    /// Counts a request of the account, or for one of its files.
    pub fn count_request(&self, account: &AccountId) {
        self.count(account, |days| days.requests.first_mut());
    }

    /// Counts a request rejected by a rate limit.
    pub fn count_rejection(&self, account: &AccountId) {
        self.count(account, |days| days.refused.first_mut());
    }

    /// Returns today and yesterday of an account.
    pub fn last_two_days(&self, account: &AccountId) -> [ActivityDay; 2] {
        let Some(mut days) = self.shard(account).get(account).copied() else {
            return Default::default();
        };
        days.advance_to(self.today());
        [days.day(0), days.day(1)]
    }

    fn count(&self, account: &AccountId, count: impl FnOnce(&mut Days) -> Option<&mut u64>) {
        let today = self.today();
        let mut shard = self.shard(account);
        let days = match shard.get_mut(account) {
            Some(days) => days,
            None => shard.entry(account.clone()).or_insert(Days::beginning(today)),
        };
        days.advance_to(today);
        if let Some(count) = count(days) {
            *count += 1;
        }
    }

    fn today(&self) -> u64 {
        self.clock.unix_ms() / DAY_MS
    }

    fn shard(&self, account: &AccountId) -> MutexGuard<'_, HashMap<AccountId, Days>> {
        let at = self.hasher.hash_one(account) as usize % SHARDS;
        self.shards[at].lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Days {
    fn beginning(today: u64) -> Self {
        Self { newest: today, known_count: 1, ..Self::default() }
    }

    /// Advances to a day; a clock that is set back changes nothing.
    fn advance_to(&mut self, today: u64) {
        let passed = today.saturating_sub(self.newest).min(DAYS as u64) as usize;
        if passed == 0 {
            return;
        }
        for counts in [&mut self.requests, &mut self.refused] {
            counts.rotate_right(passed % DAYS);
            counts.iter_mut().take(passed).for_each(|count| *count = 0);
        }
        self.known_count = (self.known_count + passed).min(DAYS);
        self.newest = today;
    }

    fn day(&self, ago: usize) -> ActivityDay {
        let at = |counts: &[u64; DAYS]| counts.get(ago).copied().unwrap_or(0);
        let before = self.requests.iter().take(self.known_count).skip(ago + 1);
        let before: Vec<u64> = before.take(FAIR_USE_BASELINE_DAYS_MAX).copied().collect();
        let is_known = before.len() >= FAIR_USE_BASELINE_DAYS_MIN;
        let usual_requests = is_known.then(|| before.iter().sum::<u64>() / before.len() as u64);
        ActivityDay { requests: at(&self.requests), refused: at(&self.refused), usual_requests }
    }
}

#[cfg(test)]
mod tests {
    use engine::clock::SimClock;
    use engine::rng::SeededRng;

    use super::*;

    #[test]
    fn activity_baseline_needs_minimum_days() {
        let clock = Arc::new(SimClock::at(20_000 * DAY_MS));
        let conduct = AccountActivity::new(clock.clone());
        let account = AccountId::issue(&SeededRng::new(1));
        let other = AccountId::issue(&SeededRng::new(2));
        assert_eq!(conduct.last_two_days(&account), [ActivityDay::default(); 2]);
        for requests in [10, 20, 30] {
            (0..requests).for_each(|_| conduct.count_request(&account));
            clock.advance(DAY_MS);
        }
        conduct.count_request(&account);
        conduct.count_rejection(&account);
        let [today, yesterday] = conduct.last_two_days(&account);
        assert_eq!(today, ActivityDay { requests: 1, refused: 1, usual_requests: Some(20) });
        assert_eq!(yesterday, ActivityDay { requests: 30, refused: 0, usual_requests: None });
        assert_eq!(conduct.last_two_days(&other), [ActivityDay::default(); 2]);
        // Days without activity count.
        clock.advance(2 * DAY_MS);
        let [today, yesterday] = conduct.last_two_days(&account);
        assert_eq!(today.usual_requests, Some((10 + 20 + 30 + 1) / 5));
        assert_eq!((yesterday.requests, yesterday.usual_requests), (0, Some(61 / 4)));
        clock.advance(100 * DAY_MS);
        let [today, _] = conduct.last_two_days(&account);
        assert_eq!(today, ActivityDay { usual_requests: Some(0), ..ActivityDay::default() });
    }
}
