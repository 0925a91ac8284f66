//! Schedule of expiring objects: facts in the order of the expiry times, in the batches that store the objects.
//!
//! Guarantees: every stored object with an expiry time in its attributes is in the schedule, whatever stored it.
//! Non-goals: the deletion; expiry by lifecycle rules. An entry is only a hint: the object may have been replaced,
//! moved, deleted or changed since.

use std::collections::BTreeMap;

use engine::limits::FACT_BYTES_MAX;
use engine::{Batch, BucketName, FactName, ObjectKey, ObjectName, Store};
use protocol::reserved_paths;
use sha2::{Digest, Sha256};

use super::base32;
use crate::object_attributes::expires_ms;

/// Prefix of the fact names of the schedule; the expiry time and a hash of the value follow.
const PREFIX: &str = "expiry/";
/// Bytes of the hash in a fact name.
const HASH_BYTES: usize = 10;

/// Objects that had the same expiry time when they were stored together.
#[derive(Clone, Debug)]
pub struct ScheduledExpiry {
    pub fact: FactName,
    /// Expiry time in milliseconds since 1970.
    pub expires_ms: u64,
    pub names: Vec<ObjectName>,
}

/// Adds the schedule of the objects that a batch puts and that have an expiry time.
pub fn schedule(batch: Batch) -> Batch {
    let mut expiring: BTreeMap<u64, Vec<String>> = BTreeMap::new();
    for (name, attributes) in batch.put_attributes() {
        // Noncurrent versions do not expire.
        if let Some(at_ms) = expires_ms(attributes)
            && !reserved_paths::is_reserved(name.bucket.as_str())
        {
            expiring.entry(at_ms).or_default().push(format!("{}/{}\n", name.bucket, name.key));
        }
    }
    let facts = expiring.into_iter().flat_map(|(at_ms, names)| facts(at_ms, &names));
    facts.fold(batch, |batch, (fact, value)| batch.put_fact(fact, value.into()))
}

/// Returns the facts that schedule these names, each within the size limit of facts.
fn facts(at_ms: u64, names: &[String]) -> Vec<(FactName, String)> {
    let mut values = vec![String::new()];
    for name in names {
        if let Some(last) = values.last_mut()
            && last.len() + name.len() <= FACT_BYTES_MAX
        {
            last.push_str(name);
        } else {
            values.push(name.clone());
        }
    }
    let named = values.into_iter().filter_map(|value| {
        let hash = Sha256::digest(&value);
        let hash = base32::encode(hash.get(..HASH_BYTES)?);
        Some((FactName::parse(&format!("{PREFIX}{at_ms:015}/{hash}")).ok()?, value))
    });
    named.collect()
}

/// Returns the first entries of the schedule that are due at a time, in milliseconds since 1970. Blocks on the index.
pub fn due(store: &Store, now_ms: u64, limit: usize) -> engine::Result<Vec<ScheduledExpiry>> {
    let entries = store.facts(PREFIX, None, limit)?;
    let scheduled = entries.into_iter().map(|(fact, value)| {
        let expires_ms = fact.as_str().get(PREFIX.len()..).and_then(|rest| rest.split('/').next());
        // An unreadable entry is due, so that it is removed.
        let expires_ms = expires_ms.and_then(|text| text.parse().ok()).unwrap_or_default();
        let lines = std::str::from_utf8(&value).unwrap_or_default().lines();
        ScheduledExpiry { names: lines.filter_map(parse_name).collect(), fact, expires_ms }
    });
    Ok(scheduled.take_while(|entry| entry.expires_ms <= now_ms).collect())
}

fn parse_name(line: &str) -> Option<ObjectName> {
    let (bucket, key) = line.split_once('/')?;
    Some(ObjectName::new(BucketName::parse(bucket).ok()?, ObjectKey::parse(key).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expiry_schedule_respects_the_size_of_facts() {
        let name = |at: usize| format!("photos/{at}{}\n", "x".repeat(1_000));
        let names: Vec<_> = (0..100).map(name).collect();
        let facts = facts(7, &names);
        assert_eq!(facts.len(), 2);
        assert!(facts.iter().all(|(_, value)| value.len() <= FACT_BYTES_MAX));
        assert_eq!(
            facts.iter().map(|(_, value)| value.as_str()).collect::<String>(),
            names.concat()
        );
        let later = super::facts(1_000_000_000_000_000, &names);
        assert!(facts[0].0.as_str().starts_with("expiry/000000000000007/"));
        assert!(facts.iter().all(|(fact, _)| *fact < later[0].0));
    }

    #[test]
    fn scheduled_name_is_parsed_back() {
        let name = parse_name("photos/a/b c.txt").unwrap();
        assert_eq!((name.bucket.as_str(), name.key.as_str()), ("photos", "a/b c.txt"));
        assert!(["", "photos", "photos/", "p/a"].into_iter().all(|it| parse_name(it).is_none()));
    }
}
