//! Requests that the rate limit of an account rejected, today and yesterday (UTC), for fair use.
//!
//! In memory only: a restart loses evidence, in favor of the account. Guarantees: memory is bounded by the accounts
//! with rejections on these two days. Non-goals: the limits, and requests that were not rejected (`usage_history`).

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use engine::clock::Clock;

use super::{AccountId, UsageStep};

const DAY_MS: u64 = UsageStep::Day.ms();

/// Rejections of all accounts.
pub struct RateLimitRejections {
    clock: Arc<dyn Clock>,
    days: Mutex<Days>,
}

#[derive(Default)]
struct Days {
    /// Days since 1970.
    today: u64,
    /// Counts of today and yesterday.
    counts: [HashMap<AccountId, u64>; 2],
}

impl RateLimitRejections {
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self { clock, days: Mutex::default() }
    }

    /// Counts a rejected request.
    pub fn count(&self, account: &AccountId) {
        let [today, _] = &mut self.days().counts;
        match today.get_mut(account) {
            Some(count) => *count += 1,
            None => drop(today.insert(account.clone(), 1)),
        }
    }

    /// Returns the rejections of an account today and yesterday.
    pub fn last_two_days(&self, account: &AccountId) -> [u64; 2] {
        self.days().counts.each_ref().map(|day| day.get(account).copied().unwrap_or(0))
    }

    /// Locks the counts of the current day; a clock that is set back changes nothing.
    fn days(&self) -> MutexGuard<'_, Days> {
        let mut days = self.days.lock().unwrap_or_else(PoisonError::into_inner);
        let today = self.clock.unix_ms() / DAY_MS;
        match today.saturating_sub(days.today) {
            0 => {}
            1 => days.counts = [HashMap::new(), std::mem::take(&mut days.counts[0])],
            _ => days.counts = Default::default(),
        }
        days.today = days.today.max(today);
        days
    }
}

#[cfg(test)]
mod tests {
    use engine::clock::SimClock;
    use engine::rng::SeededRng;

    use super::*;

    #[test]
    fn rejections_are_counted_by_account_and_day() {
        let clock = Arc::new(SimClock::at(20_000 * DAY_MS));
        let rejections = RateLimitRejections::new(clock.clone());
        let [account, other] = [1, 2].map(|seed| AccountId::issue(&SeededRng::new(seed)));
        let counted = || rejections.last_two_days(&account);
        assert_eq!(counted(), [0, 0]);
        (0..3).for_each(|_| rejections.count(&account));
        assert_eq!((counted(), rejections.last_two_days(&other)), ([3, 0], [0, 0]));
        clock.advance(DAY_MS);
        rejections.count(&account);
        assert_eq!(counted(), [1, 3]);
        clock.advance(2 * DAY_MS);
        assert_eq!(counted(), [0, 0]);
    }
}
