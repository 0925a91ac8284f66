//! Audit log: retention and lookup of entries.
//!
//! Entries are numbered in the order of changes; the numbers are in memory, each entry is one fact in the store.
//! Guarantees: at most [`AUDIT_ENTRIES_MAX`] entries, older than [`AUDIT_RETENTION`] only briefly; at the limit the
//! oldest entry of the largest retention class is evicted, so that a busy account does not displace the entries of
//! others. Non-goals: content of entries, and authorization of readers.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use engine::name::NameError;
use engine::{BucketName, FactName};

use super::audit_entry::{AuditAction, AuditEntry, AuditRecord};
use super::change::{ChangedFact, Table, split};
use super::record::{decode, encode};
use super::{AccountId, Audit, Bucket, CatalogError};
use crate::limits::{AUDIT_BATCH, AUDIT_ENTRIES_MAX, AUDIT_REFUSED_MAX, AUDIT_RETENTION, millis};

/// Prefix of the fact names of entries; the number follows.
const PREFIX: &str = "audit/";
const NUMBER_DIGITS: usize = 20;

/// Index of the stored entries.
#[derive(Debug, Default)]
pub(super) struct AuditTable {
    next: u64,
    /// Time and retention class of each entry.
    entries: BTreeMap<u64, (u64, Arc<str>)>,
    /// Entry numbers by class, oldest first.
    classes: BTreeMap<Arc<str>, VecDeque<u64>>,
}

/// Page of entries, newest first.
pub struct AuditPage<I> {
    /// Entries with their ids.
    pub entries: Vec<(I, AuditEntry)>,
    /// Id before which the next page starts, if there is more.
    pub next: Option<I>,
}

/// Objects that expired.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExpiredObjects {
    pub files: u64,
    pub bytes: u64,
}

impl Table for AuditTable {
    const PREFIXES: &'static [&'static str] = &[PREFIX];

    fn apply(&mut self, fact: &FactName, value: Option<&[u8]>) -> Result<(), CatalogError> {
        let Ok(number) = split(fact).1.parse() else { return Ok(()) };
        match value.map(|value| decode::<AuditEntry>(fact, value)) {
            Some(Ok(entry)) => self.insert(number, entry.at_ms, entry.retention_class()),
            // An unreadable entry is not counted, and stays.
            Some(Err(_)) => {}
            None => self.remove(number),
        }
        Ok(())
    }
}

impl AuditTable {
    /// Assigns a number to a new entry. Returns its fact, and that of the entry that it evicts, if any.
    ///
    /// The entry counts from here on, for the next one of the same change. If the change fails, its number has no
    /// entry, and readers skip it.
    pub(super) fn reserve(&mut self, entry: &AuditEntry) -> Result<Vec<ChangedFact>, CatalogError> {
        let mut facts = Vec::with_capacity(2);
        if let Some(oldest) = self.crowded_out(entry.retention_class()) {
            facts.push((fact(oldest)?, None));
            self.remove(oldest);
        }
        let number = self.next;
        let fact = fact(number)?;
        let value = encode(&fact, entry)?;
        facts.push((fact, Some(value)));
        self.insert(number, entry.at_ms, entry.retention_class());
        Ok(facts)
    }

    fn insert(&mut self, number: u64, at_ms: u64, class: &str) {
        if self.entries.contains_key(&number) {
            return;
        }
        let class = match self.classes.get_key_value(class) {
            Some((class, _)) => class.clone(),
            None => Arc::from(class),
        };
        self.classes.entry(class.clone()).or_default().push_back(number);
        self.entries.insert(number, (at_ms, class));
        self.next = self.next.max(number + 1);
    }

    fn remove(&mut self, number: u64) {
        let Some((_, class)) = self.entries.remove(&number) else { return };
        if let Some(numbers) = self.classes.get_mut(&class) {
            numbers.retain(|it| *it != number);
            if numbers.is_empty() {
                self.classes.remove(&class);
            }
        }
    }

    /// Returns the entry to evict for a new one, if any.
    fn crowded_out(&self, class: &str) -> Option<u64> {
        let refused = self.classes.get(class).filter(|numbers| {
            class == AuditAction::REFUSED_CLASS && numbers.len() >= AUDIT_REFUSED_MAX
        });
        if let Some(numbers) = refused {
            return numbers.front().copied();
        }
        if self.entries.len() < AUDIT_ENTRIES_MAX {
            return None;
        }
        // Among classes of equal size the one with the oldest entry, which makes the choice deterministic.
        let most = self.classes.values().max_by_key(|numbers| {
            (numbers.len(), std::cmp::Reverse(numbers.front().copied().unwrap_or(u64::MAX)))
        });
        most.and_then(|numbers| numbers.front().copied())
    }
}

impl Audit<'_> {
    /// Stores an entry for an action that does not change the catalog.
    fn store(&self, entry: AuditRecord) -> Result<(), CatalogError> {
        let mut change = self.0.begin();
        change.audit(entry);
        change.commit()
    }

    /// Records a rejected sign-in to this account, or to an unknown one.
    pub fn record_failed_sign_in(&self, account: Option<&AccountId>) -> Result<(), CatalogError> {
        let entry = AuditRecord::new(AuditAction::SessionRefused);
        self.store(match account {
            Some(account) => entry.account(account).detail("wrong password"),
            None => entry.detail("unknown name"),
        })
    }

    /// Records the start of a requested compaction.
    pub fn record_compaction(&self, dead_percent_min: u8) -> Result<(), CatalogError> {
        let entry = AuditRecord::new(AuditAction::CompactionBegin);
        self.store(entry.detail(format!("segments of which {dead_percent_min} % are dead")))
    }

    /// Records a change of the attributes of a file; `fields` names the changed ones.
    pub fn record_file_change(
        &self,
        bucket: &Bucket,
        path: &str,
        fields: String,
    ) -> Result<(), CatalogError> {
        let entry = AuditRecord::new(AuditAction::FileChange).bucket(bucket);
        self.store(entry.target(&path).detail(fields))
    }

    /// Records objects of a bucket that expired by a lifecycle rule, or by their own expiry times. A bucket that was
    /// deleted since is not recorded.
    pub fn record_expired(
        &self,
        bucket: &BucketName,
        rule: Option<&str>,
        expired: ExpiredObjects,
    ) -> Result<(), CatalogError> {
        let Some(bucket) = self.0.buckets().get(bucket) else { return Ok(()) };
        let by = rule.map_or("own expiry time".to_owned(), |rule| format!("rule {rule:?}"));
        let ExpiredObjects { files, bytes } = expired;
        let entry = AuditRecord::new(AuditAction::LifecycleExpire).bucket(&bucket);
        self.store(entry.detail(format!("{files} files, {bytes} bytes, by {by}")))
    }

    /// Returns the newest entries that match, before a number. Blocks on the index.
    pub fn page(
        &self,
        wants: impl Fn(&AuditEntry) -> bool,
        before: Option<u64>,
        limit: usize,
    ) -> Result<AuditPage<u64>, CatalogError> {
        let numbers: Vec<u64> = {
            let numbers = self.0.state.audit.read();
            let older = numbers.entries.range(..before.unwrap_or(u64::MAX));
            older.map(|(number, _)| *number).rev().collect()
        };
        let mut entries = Vec::new();
        for number in numbers {
            let fact = fact(number)?;
            let Some(value) = self.0.state.store.fact(&fact)? else { continue };
            let entry: AuditEntry = decode(&fact, &value)?;
            if !wants(&entry) {
                continue;
            }
            if entries.len() == limit {
                let next = entries.last().map(|(number, _)| *number);
                return Ok(AuditPage { entries, next });
            }
            entries.push((number, entry));
        }
        Ok(AuditPage { entries, next: None })
    }

    /// Deletes entries, and changes of files, that are past their retention.
    pub fn sweep(&self) -> Result<(), CatalogError> {
        let kept_ms = millis(AUDIT_RETENTION);
        let before_ms = self.0.now_ms().saturating_sub(kept_ms);
        loop {
            let mut change = self.0.begin();
            let old: Vec<u64> = {
                let numbers = self.0.state.audit.read();
                let old = numbers.entries.iter().filter(|(_, (at_ms, _))| *at_ms < before_ms);
                old.map(|(number, _)| *number).take(AUDIT_BATCH).collect()
            };
            if old.is_empty() {
                break;
            }
            for number in old {
                change.delete(fact(number)?);
            }
            change.commit()?;
        }
        self.sweep_file_changes()
    }
}

fn fact(number: u64) -> Result<FactName, NameError> {
    FactName::parse(&format!("{PREFIX}{number:0NUMBER_DIGITS$}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn audit_eviction_hits_the_largest_actor() {
        let mut numbers = AuditTable::default();
        let add = |numbers: &mut AuditTable, class: &str| {
            let gone = numbers.crowded_out(class);
            gone.into_iter().for_each(|number| numbers.remove(number));
            let number = numbers.next;
            numbers.insert(number, 0, class);
            gone
        };
        for _ in 0..10 {
            assert_eq!(add(&mut numbers, "quiet"), None);
        }
        for _ in 10..AUDIT_ENTRIES_MAX {
            assert_eq!(add(&mut numbers, "busy"), None);
        }
        for at in 0..50 {
            assert_eq!(add(&mut numbers, "busy"), Some(10 + at));
        }
        // Also for an entry of another class.
        assert_eq!(add(&mut numbers, "other"), Some(60));
        assert_eq!(numbers.entries.len(), AUDIT_ENTRIES_MAX);
        assert_eq!(numbers.classes["quiet"].len(), 10);
    }

    #[test]
    fn failed_sign_ins_have_their_own_audit_limit() {
        let mut numbers = AuditTable::default();
        numbers.insert(0, 0, "ann");
        for at in 0..AUDIT_REFUSED_MAX as u64 {
            numbers.insert(at + 1, 0, AuditAction::REFUSED_CLASS);
        }
        assert_eq!(numbers.crowded_out(AuditAction::REFUSED_CLASS), Some(1));
        assert_eq!(numbers.crowded_out("ann"), None);
    }
}
