//! Object lock: retention and legal holds of versions, and the default retention of a bucket.
//!
//! A locked version cannot be deleted. Guarantees: compliance retention is never shortened or removed; a legal hold is
//! independent of retention. Non-goals: who may bypass governance retention.

use serde::{Deserialize, Serialize};

const DAY_MS: u64 = 24 * 60 * 60 * 1_000;
const DAYS_PER_YEAR: u64 = 365;

/// Lock of a version.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ObjectLock {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retention: Option<Retention>,
    /// Whether the version has a legal hold.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub hold: bool,
}

/// Retention of a version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "(RetentionMode, u64)", into = "(RetentionMode, u64)")]
pub struct Retention {
    pub mode: RetentionMode,
    /// End of the retention, in milliseconds since 1970.
    pub until_ms: u64,
}

/// Strictness of a retention.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RetentionMode {
    /// Callers that may bypass it can shorten the retention and delete the version.
    Governance,
    /// Nobody can shorten the retention or delete the version.
    Compliance,
}

/// Object lock of a bucket that has it enabled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BucketLock {
    /// Retention of new versions that bring none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default_retention: Option<DefaultRetention>,
}

/// Retention that begins with the creation of a version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DefaultRetention {
    pub mode: RetentionMode,
    pub period: RetentionPeriod,
}

/// Length of a retention.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RetentionPeriod {
    Days(u32),
    /// Years of 365 days.
    Years(u32),
}

impl From<(RetentionMode, u64)> for Retention {
    fn from((mode, until_ms): (RetentionMode, u64)) -> Self {
        Self { mode, until_ms }
    }
}

impl From<Retention> for (RetentionMode, u64) {
    fn from(retention: Retention) -> Self {
        (retention.mode, retention.until_ms)
    }
}

impl DefaultRetention {
    /// Returns the retention of a version that is created at `now_ms`.
    pub fn starting_at(self, now_ms: u64) -> Retention {
        let days = match self.period {
            RetentionPeriod::Days(days) => u64::from(days),
            RetentionPeriod::Years(years) => u64::from(years).saturating_mul(DAYS_PER_YEAR),
        };
        Retention { mode: self.mode, until_ms: now_ms.saturating_add(days.saturating_mul(DAY_MS)) }
    }
}

impl ObjectLock {
    /// Returns whether the version has neither retention nor legal hold.
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }

    /// Returns whether the version must not be deleted at `now_ms`.
    pub fn forbids_deletion(&self, now_ms: u64, may_bypass_governance: bool) -> bool {
        let is_retained = |it: Retention| {
            it.is_active(now_ms) && !(may_bypass_governance && it.mode == RetentionMode::Governance)
        };
        self.hold || self.retention.is_some_and(is_retained)
    }
}

impl Retention {
    fn is_active(self, now_ms: u64) -> bool {
        now_ms < self.until_ms
    }

    /// Returns whether this retention may be replaced by `new` (S3 API, PutObjectRetention): anything while it has
    /// ended, an extension always, and with the right to bypass it also less than governance retention.
    pub fn may_become(self, new: Option<Self>, now_ms: u64, may_bypass_governance: bool) -> bool {
        let extends = new.is_some_and(|new| new.mode == self.mode && new.until_ms >= self.until_ms);
        let bypasses = may_bypass_governance && self.mode == RetentionMode::Governance;
        !self.is_active(now_ms) || extends || bypasses
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOVERNANCE: Retention = Retention { mode: RetentionMode::Governance, until_ms: 10 };
    const COMPLIANCE: Retention = Retention { mode: RetentionMode::Compliance, until_ms: 10 };

    #[test]
    fn locked_versions_cannot_be_deleted_before_expiry() {
        let forbids =
            |lock: ObjectLock, now_ms, may_bypass| lock.forbids_deletion(now_ms, may_bypass);
        let retained = |it| ObjectLock { retention: Some(it), hold: false };
        let held = ObjectLock { retention: None, hold: true };
        assert!(!forbids(ObjectLock::default(), 9, false));
        assert!(forbids(held, u64::MAX, true));
        for (lock, may_bypass) in [
            (retained(GOVERNANCE), false),
            (retained(COMPLIANCE), false),
            (retained(COMPLIANCE), true),
        ] {
            assert!(forbids(lock, 9, may_bypass), "{lock:?} {may_bypass}");
            assert!(!forbids(lock, 10, may_bypass), "{lock:?} {may_bypass}");
        }
        assert!(!forbids(retained(GOVERNANCE), 9, true));
    }

    #[test]
    fn shortening_retention_requires_governance_bypass() {
        let until = |it: Retention, until_ms| Some(Retention { until_ms, ..it });
        for (old, new, plain, bypass) in [
            (GOVERNANCE, until(GOVERNANCE, 11), true, true),
            (GOVERNANCE, until(GOVERNANCE, 9), false, true),
            (GOVERNANCE, None, false, true),
            (GOVERNANCE, Some(COMPLIANCE), false, true),
            (COMPLIANCE, until(COMPLIANCE, 11), true, true),
            (COMPLIANCE, until(COMPLIANCE, 9), false, false),
            (COMPLIANCE, None, false, false),
            (COMPLIANCE, Some(GOVERNANCE), false, false),
        ] {
            assert_eq!(old.may_become(new, 9, false), plain, "{old:?} {new:?}");
            assert_eq!(old.may_become(new, 9, true), bypass, "{old:?} {new:?}");
            assert!(old.may_become(new, 10, false), "{old:?} {new:?}");
        }
    }

    #[test]
    fn default_retention_counts_days_and_years() {
        let mode = RetentionMode::Compliance;
        let of = |period| DefaultRetention { mode, period }.starting_at(5).until_ms;
        assert_eq!(of(RetentionPeriod::Days(2)), 5 + 2 * DAY_MS);
        assert_eq!(of(RetentionPeriod::Years(1)), 5 + 365 * DAY_MS);
        assert_eq!(of(RetentionPeriod::Years(u32::MAX)), u64::MAX);
    }
}
