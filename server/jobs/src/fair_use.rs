//! Fair use of the plan Free: detection of violations, and the sweep that escalates accounts one step at a time.
//!
//! `good -> notified -> upgrade_requested -> throttled -> suspended`, specification 8. Guarantees: only accounts on the
//! plan Free are escalated, only during a violation, at most one step per sweep, and never sooner than
//! [`FAIR_USE_STEP_DELAY`] after the last change, including changes by the operator; only the operator de-escalates.
//! Non-goals: the consequences of a standing.

use catalog::{
    Account, AccountId, Catalog, CatalogError, FairUseStanding, Plan, UsageScope, UsageStep,
};

use crate::limits::{
    FAIR_USE_BASELINE_DAYS_MAX, FAIR_USE_BASELINE_DAYS_MIN, FAIR_USE_REFUSED_PER_DAY,
    FAIR_USE_SPIKE_FACTOR, FAIR_USE_SPIKE_REQUESTS_MIN, FAIR_USE_STEP_DELAY,
};

/// Escalation by a sweep.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FairUseStep {
    pub account: AccountId,
    pub name: String,
    pub from: FairUseStanding,
    pub to: FairUseStanding,
    pub reason: String,
}

/// Result of a sweep.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SweepReport {
    /// Number of accounts that were checked.
    pub account_count: u64,
    /// Number of accounts in violation, whether or not a step was due.
    pub violation_count: u64,
    pub steps: Vec<FairUseStep>,
}

/// Evidence for and against an account.
#[derive(Default)]
struct FairUseEvidence {
    stored_bytes: u64,
    quota_bytes: Option<u64>,
    /// Requests rejected by its rate limit, today and yesterday.
    rejections: [u64; 2],
    /// Requests to its buckets by day, today last.
    requests: [u64; DAYS],
}

/// Today, yesterday, and the baseline days before that.
const DAYS: usize = 2 + FAIR_USE_BASELINE_DAYS_MAX;

/// Checks all accounts, and escalates those that are due. Blocks on the disk.
pub fn sweep(catalog: &Catalog) -> Result<SweepReport, CatalogError> {
    let mut swept = SweepReport::default();
    for account in catalog.accounts().all() {
        if account.plan != Plan::Free {
            continue;
        }
        swept.account_count += 1;
        let evidence = FairUseEvidence::collect(catalog, &account)?;
        let Some(reason) = evidence.violation() else { continue };
        swept.violation_count += 1;
        let Some(to) = next(account.standing).filter(|_| is_due(catalog, &account)) else {
            continue;
        };
        if catalog
            .accounts()
            .advance_standing(&account.id, account.standing, to, &reason)?
            .is_some()
        {
            let name = account.name.as_str().to_owned();
            let (account, from) = (account.id.clone(), account.standing);
            swept.steps.push(FairUseStep { account, name, from, to, reason });
        }
    }
    Ok(swept)
}

impl FairUseEvidence {
    fn collect(catalog: &Catalog, account: &Account) -> Result<Self, CatalogError> {
        let names = catalog.buckets().names_of(&account.id);
        let buckets = names.iter().filter_map(|name| catalog.buckets().get(name)).collect();
        let tomorrow = catalog.now_ms() / UsageStep::Day.ms() + 1;
        let days = tomorrow.saturating_sub(DAYS as u64)..tomorrow;
        let points = catalog.usage().points(&UsageScope::Buckets(buckets), UsageStep::Day, days)?;
        let mut evidence = Self {
            stored_bytes: points.last().and_then(|day| day.amount).map_or(0, |it| it.bytes),
            quota_bytes: account.quota.bytes_max,
            rejections: catalog.rate_limit_rejections().last_two_days(&account.id),
            requests: [0; DAYS],
        };
        for (requests, day) in evidence.requests.iter_mut().rev().zip(points.iter().rev()) {
            // Anyone can send requests that are rejected.
            *requests = day.counts.requests.saturating_sub(day.counts.refusals);
        }
        Ok(evidence)
    }

    /// Describes the most severe violation in a sentence for the account's owner.
    fn violation(&self) -> Option<String> {
        if let Some(quota) = self.quota_bytes.filter(|quota| self.stored_bytes > *quota) {
            let stored = self.stored_bytes;
            return Some(format!("{stored} bytes stored; quota {quota}"));
        }
        if let Some(rejections) =
            self.rejections.iter().find(|count| **count >= FAIR_USE_REFUSED_PER_DAY)
        {
            return Some(format!(
                "{rejections} requests in one day exceeded the plan's rate limit"
            ));
        }
        let [older @ .., yesterday, today] = &self.requests;
        let [earlier @ .., _] = &self.requests;
        [(today, earlier.as_slice()), (yesterday, older.as_slice())].into_iter().find_map(
            |(requests, before)| {
                let usual = usual_requests(before)?;
                let is_spike = *requests >= FAIR_USE_SPIKE_REQUESTS_MIN
                    && *requests >= usual.saturating_mul(FAIR_USE_SPIKE_FACTOR);
                is_spike.then(|| format!("{requests} requests in one day; usual: {usual}"))
            },
        )
    }
}

fn next(standing: FairUseStanding) -> Option<FairUseStanding> {
    match standing {
        FairUseStanding::Good => Some(FairUseStanding::Notified),
        FairUseStanding::Notified => Some(FairUseStanding::UpgradeRequested),
        FairUseStanding::UpgradeRequested => Some(FairUseStanding::Throttled),
        FairUseStanding::Throttled => Some(FairUseStanding::Suspended),
        FairUseStanding::Suspended => None,
    }
}

/// Returns whether the last change is long enough ago.
fn is_due(catalog: &Catalog, account: &Account) -> bool {
    let history = catalog.accounts().standing_history(&account.id);
    let changed_ms = history.and_then(|history| history.latest().map(|change| change.at_ms));
    let wait_ms = FAIR_USE_STEP_DELAY.as_millis() as u64;
    changed_ms.is_none_or(|changed_ms| catalog.now_ms().saturating_sub(changed_ms) >= wait_ms)
}

/// Returns the mean of the latest days, from the first with requests on; `None` if these are too few.
fn usual_requests(days: &[u64]) -> Option<u64> {
    let latest = days.get(days.len().saturating_sub(FAIR_USE_BASELINE_DAYS_MAX)..)?;
    let known = latest.get(latest.iter().position(|requests| *requests > 0)?..)?;
    let is_enough = known.len() >= FAIR_USE_BASELINE_DAYS_MIN;
    is_enough.then(|| known.iter().sum::<u64>() / known.len() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fair_use_bounds_rejections_by_the_rate_limit() {
        let violation =
            |rejections| FairUseEvidence { rejections, ..FairUseEvidence::default() }.violation();
        assert_eq!(violation([FAIR_USE_REFUSED_PER_DAY - 1; 2]), None);
        for days in [[FAIR_USE_REFUSED_PER_DAY, 0], [0, FAIR_USE_REFUSED_PER_DAY]] {
            assert!(violation(days).unwrap().starts_with("10000 requests"));
        }
    }

    #[test]
    fn fair_use_compares_a_spike_with_the_days_before() {
        let spike = |latest: &[u64]| {
            let mut evidence = FairUseEvidence::default();
            let from = DAYS - latest.len();
            evidence.requests[from..].copy_from_slice(latest);
            evidence.violation()
        };
        let (most, usual) = (FAIR_USE_SPIKE_REQUESTS_MIN, 10_000);
        assert_eq!(spike(&[most]), None);
        assert_eq!(spike(&[usual, usual, u64::MAX]), None);
        assert_eq!(spike(&[usual, usual, usual, most - 1]), None);
        assert_eq!(spike(&[usual, usual, usual + 3, most]), None);
        assert_eq!(
            spike(&[usual, usual, usual, most]).unwrap(),
            "100000 requests in one day; usual: 10000"
        );
        // Yesterday. Days without requests count after one with requests.
        assert!(spike(&[1, 0, 2, most, 5]).unwrap().ends_with("usual: 1"));
        // Older than the baseline.
        assert!(spike(&[usual * 99, 1, 1, 1, 1, 1, 1, 1, most]).unwrap().ends_with("usual: 1"));
    }

    #[test]
    fn fair_use_bounds_stored_bytes_by_the_quota() {
        let stored = |stored_bytes, quota_bytes| {
            FairUseEvidence { stored_bytes, quota_bytes, ..FairUseEvidence::default() }.violation()
        };
        assert_eq!(stored(u64::MAX, None), None);
        assert_eq!(stored(10, Some(10)), None);
        assert!(stored(11, Some(10)).unwrap().contains("quota 10"));
    }

    #[test]
    fn fair_use_steps_end_at_the_last() {
        let mut standing = FairUseStanding::Good;
        let mut steps = 0;
        while let Some(following) = next(standing) {
            (standing, steps) = (following, steps + 1);
        }
        assert_eq!((standing, steps), (FairUseStanding::Suspended, 4));
    }
}
