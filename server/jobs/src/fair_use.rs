//! Fair use of the plan Free: detection of violations, and the sweep that escalates accounts one step at a time.
//!
//! `good -> notified -> upgrade_requested -> throttled -> suspended`, specification 8. Guarantees: only accounts on the
//! plan Free are escalated, only during a violation, at most one step per sweep, and never sooner than
//! [`FAIR_USE_STEP_DELAY`] after the last change, including changes by the operator; only the operator de-escalates.
//! Non-goals: the consequences of a standing.

use std::collections::BTreeMap;

use catalog::{Account, AccountId, ActivityDay, Catalog, CatalogError, FairUseStanding, Plan};

use crate::limits::{
    FAIR_USE_REFUSED_PER_DAY, FAIR_USE_SPIKE_FACTOR, FAIR_USE_SPIKE_REQUESTS_MIN,
    FAIR_USE_STEP_DELAY,
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
struct FairUseEvidence {
    stored_bytes: u64,
    quota_bytes: Option<u64>,
    days: [ActivityDay; 2],
}

/// Checks all accounts, and escalates those that are due. Blocks on the disk.
pub fn sweep(catalog: &Catalog) -> Result<SweepReport, CatalogError> {
    let stored = stored_bytes(catalog)?;
    let mut swept = SweepReport::default();
    for account in catalog.accounts().all() {
        if account.plan != Plan::Free {
            continue;
        }
        swept.account_count += 1;
        let evidence = FairUseEvidence {
            stored_bytes: stored.get(&account.id).copied().unwrap_or(0),
            quota_bytes: account.quota.bytes_max,
            days: catalog.account_activity().last_two_days(&account.id),
        };
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
    /// Describes the most severe violation in a sentence for the account's owner.
    fn violation(&self) -> Option<String> {
        if let Some(quota) = self.quota_bytes.filter(|quota| self.stored_bytes > *quota) {
            let stored = self.stored_bytes;
            return Some(format!("{stored} bytes stored; quota {quota}"));
        }
        self.days.iter().find_map(|day| {
            let ActivityDay { requests, refused, usual_requests } = *day;
            if refused >= FAIR_USE_REFUSED_PER_DAY {
                return Some(format!(
                    "{refused} requests in one day exceeded the plan's rate limit"
                ));
            }
            let usual = usual_requests?;
            let is_spike = requests >= FAIR_USE_SPIKE_REQUESTS_MIN
                && requests >= usual.saturating_mul(FAIR_USE_SPIKE_FACTOR);
            is_spike.then(|| format!("{requests} requests in one day; usual: {usual}"))
        })
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

fn stored_bytes(catalog: &Catalog) -> Result<BTreeMap<AccountId, u64>, CatalogError> {
    let mut stored = BTreeMap::new();
    for bucket in catalog.buckets().all() {
        *stored.entry(bucket.owner.clone()).or_insert(0) +=
            catalog.quotas().of_bucket(&bucket.name)?.bytes;
    }
    Ok(stored)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn evidence(day: ActivityDay) -> FairUseEvidence {
        FairUseEvidence { stored_bytes: 0, quota_bytes: None, days: [ActivityDay::default(), day] }
    }

    #[test]
    fn fair_use_signals_have_thresholds() {
        let refused =
            |refused| evidence(ActivityDay { refused, ..ActivityDay::default() }).violation();
        assert_eq!(refused(FAIR_USE_REFUSED_PER_DAY - 1), None);
        assert!(refused(FAIR_USE_REFUSED_PER_DAY).unwrap().starts_with("10000 requests"));

        let spike = |requests, usual_requests| {
            evidence(ActivityDay { requests, refused: 0, usual_requests }).violation()
        };
        assert_eq!(spike(u64::MAX, None), None);
        assert_eq!(spike(FAIR_USE_SPIKE_REQUESTS_MIN - 1, Some(0)), None);
        assert!(spike(FAIR_USE_SPIKE_REQUESTS_MIN, Some(0)).is_some());
        assert_eq!(spike(999_999, Some(100_000)), None);
        assert!(spike(1_000_000, Some(100_000)).unwrap().contains("usual: 100000"));

        let stored = |stored_bytes, quota_bytes| {
            FairUseEvidence { stored_bytes, quota_bytes, days: Default::default() }.violation()
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
