//! Lifecycle rules of a bucket: objects below a prefix expire at an age or at a time.
//!
//! Pure. Guarantees: the earliest expiry of an object counts, of its own and of the enabled rules. Non-goals: deletion
//! of expired objects; noncurrent versions, which do not expire.

use std::collections::BTreeSet;

use engine::Object;
use serde::{Deserialize, Serialize};

use super::Bucket;
use crate::limits::{
    EXPIRY_SECONDS_MAX, EXPIRY_SECONDS_MIN, LIFECYCLE_BYTES_MAX, LIFECYCLE_ID_CHARS_MAX,
    LIFECYCLE_RULES_MAX,
};
use crate::object_attributes::{expires_ms, last_modified_ms};

/// Lifecycle rule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct LifecycleRule {
    /// Id, unique in the bucket.
    pub id: String,
    /// Start of the keys to which the rule applies; empty for all.
    pub prefix: String,
    pub expiration: Expiration,
    pub enabled: bool,
}

/// Expiry by a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Expiration {
    /// Age since the last modification, in seconds.
    AfterSeconds(u64),
    /// Time in milliseconds since 1970.
    AtMs(u64),
}

/// Checks the rules of a bucket; the error says which limit is violated.
pub fn check_lifecycle(rules: &[LifecycleRule]) -> Result<(), String> {
    if rules.len() > LIFECYCLE_RULES_MAX {
        return Err(format!("{} rules: the limit is {LIFECYCLE_RULES_MAX}", rules.len()));
    }
    let mut ids = BTreeSet::new();
    for rule in rules {
        let chars = rule.id.chars().count();
        if chars == 0 || chars > LIFECYCLE_ID_CHARS_MAX || rule.id.chars().any(char::is_control) {
            let chars_max = LIFECYCLE_ID_CHARS_MAX;
            return Err(format!("the id {:?} must have 1 to {chars_max} characters", rule.id));
        }
        if !ids.insert(&rule.id) {
            return Err(format!("the id {:?} occurs twice", rule.id));
        }
        if rule.prefix.len() > engine::limits::KEY_BYTES_MAX {
            let bytes_max = engine::limits::KEY_BYTES_MAX;
            return Err(format!("the prefix of {:?} is longer than {bytes_max} bytes", rule.id));
        }
        if let Expiration::AfterSeconds(seconds) = rule.expiration
            && !(EXPIRY_SECONDS_MIN..=EXPIRY_SECONDS_MAX).contains(&seconds)
        {
            let allowed = format!("{EXPIRY_SECONDS_MIN} to {EXPIRY_SECONDS_MAX}");
            let id = &rule.id;
            return Err(format!("expireAfterSeconds of {id:?} is {seconds}; allowed: {allowed}"));
        }
    }
    let bytes = serde_json::to_vec(rules).map_or(usize::MAX, |encoded| encoded.len());
    match bytes <= LIFECYCLE_BYTES_MAX {
        true => Ok(()),
        false => Err(format!("the rules have {bytes} bytes; the limit is {LIFECYCLE_BYTES_MAX}")),
    }
}

impl LifecycleRule {
    /// Returns whether the rule is enabled and applies to a key.
    pub fn applies_to(&self, key: &str) -> bool {
        self.enabled && key.starts_with(&self.prefix)
    }

    /// Returns when an object that was modified at this time expires by the rule, in milliseconds since 1970.
    pub fn expires_ms(&self, modified_ms: u64) -> u64 {
        match self.expiration {
            Expiration::AfterSeconds(seconds) => modified_ms.saturating_add(seconds * 1_000),
            Expiration::AtMs(at_ms) => at_ms,
        }
    }
}

impl Bucket {
    /// Returns when an object of the bucket expires, in milliseconds since 1970, and the rule by which it does; none
    /// for its own expiry time. `None` if the object does not expire.
    pub fn expiry<'b>(&'b self, object: &Object) -> Option<(u64, Option<&'b LifecycleRule>)> {
        if object.is_derived() || (object.attributes().is_empty() && self.lifecycle.is_empty()) {
            return None;
        }
        let own = expires_ms(object.attributes()).map(|at_ms| (at_ms, None));
        let key = object.name().key.as_str();
        let rules = self.lifecycle.iter().filter(|rule| rule.applies_to(key));
        let by_rule = rules.map(|rule| (rule.expires_ms(last_modified_ms(object)), Some(rule)));
        own.into_iter().chain(by_rule).min_by_key(|(at_ms, _)| *at_ms)
    }

    /// Returns the prefixes of the enabled rules, without those below others.
    pub fn lifecycle_prefixes(&self) -> Vec<String> {
        let all: BTreeSet<_> =
            self.lifecycle.iter().filter(|rule| rule.enabled).map(|rule| &rule.prefix).collect();
        let mut prefixes: Vec<String> = Vec::new();
        for prefix in all {
            if !prefixes.last().is_some_and(|last| prefix.starts_with(last.as_str())) {
                prefixes.push(prefix.clone());
            }
        }
        prefixes
    }

    /// Returns whether an object of the bucket has expired: it reads as missing until it is deleted.
    pub fn is_expired(&self, object: &Object, now_ms: impl FnOnce() -> u64) -> bool {
        self.expiry(object).is_some_and(|(at_ms, _)| at_ms <= now_ms())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(id: &str, prefix: &str, expiration: Expiration) -> LifecycleRule {
        LifecycleRule { id: id.into(), prefix: prefix.into(), expiration, enabled: true }
    }

    #[test]
    fn lifecycle_rules_beyond_the_limits_are_rejected() {
        let day = Expiration::AfterSeconds(86_400);
        assert_eq!(check_lifecycle(&[rule("a", "", day), rule("b", "tmp/", day)]), Ok(()));
        let many: Vec<_> = (0..101).map(|at| rule(&at.to_string(), "", day)).collect();
        for (rules, why) in [
            (many, "101 rules: the limit is 100"),
            (vec![rule("a", "", day), rule("a", "b", day)], "occurs twice"),
            (vec![rule("", "", day)], "1 to 255 characters"),
            (vec![rule("a\n", "", day)], "1 to 255 characters"),
            (vec![rule("a", &"x".repeat(1_025), day)], "longer than 1024 bytes"),
            (
                (0..99).map(|at| rule(&at.to_string(), &"x".repeat(200), day)).collect(),
                "the limit is 16384",
            ),
            (vec![rule("a", "", Expiration::AfterSeconds(59))], "is 59; allowed: 60 to 315360000"),
            (vec![rule("a", "", Expiration::AfterSeconds(315_360_001))], "allowed: 60 to"),
        ] {
            let error = check_lifecycle(&rules).unwrap_err();
            assert!(error.contains(why), "{error}");
        }
    }

    #[test]
    fn lifecycle_rule_counts_from_the_last_modification() {
        let aged = rule("a", "tmp/", Expiration::AfterSeconds(60));
        assert_eq!(aged.expires_ms(1_000), 61_000);
        assert_eq!(aged.expires_ms(u64::MAX), u64::MAX);
        assert!(aged.applies_to("tmp/a") && !aged.applies_to("a/tmp/"));
        assert!(!LifecycleRule { enabled: false, ..aged }.applies_to("tmp/a"));
        assert_eq!(rule("b", "", Expiration::AtMs(5)).expires_ms(1_000), 5);
    }
}
