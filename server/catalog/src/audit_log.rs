//! Audit log: retention and lookup of entries.
//!
//! Entries are numbered in the order of changes; the numbers are in memory, each entry is one fact in the store.
//! Guarantees: at most [`AUDIT_ENTRIES_MAX`] entries, older than [`AUDIT_RETENTION`] only briefly; at the limit the
//! oldest entry of the largest retention class is evicted, so that a busy account does not displace the entries of
//! others. Non-goals: content of entries, and authorization of readers.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use engine::name::NameError;
use engine::{Batch, FactName, Store};

use super::audit_entry::{Actor, AuditAction, AuditEntry, AuditRecord};
use super::record::{decode, encode};
use super::{AccountId, Catalog, CatalogError, each_fact};
use crate::limits::{AUDIT_BATCH, AUDIT_ENTRIES_MAX, AUDIT_REFUSED_MAX, AUDIT_RETENTION};

/// Prefix of the fact names of entries; the number follows.
const PREFIX: &str = "audit/";
const NUMBER_DIGITS: usize = 20;

/// Index of the stored entries.
#[derive(Default)]
pub(super) struct AuditLog(Mutex<SequenceNumbers>);

#[derive(Default)]
struct SequenceNumbers {
    next: u64,
    /// Time and retention class of each entry.
    kept: BTreeMap<u64, (u64, Arc<str>)>,
    /// Entry numbers by class, oldest first.
    classes: HashMap<Arc<str>, VecDeque<u64>>,
}

/// Page of entries, newest first.
pub struct AuditPage {
    /// Entries with their numbers.
    pub entries: Vec<(u64, AuditEntry)>,
    /// Number before which the next page starts, if there is more.
    pub next: Option<u64>,
}

impl AuditLog {
    pub(super) fn open(store: &Store) -> Result<Self, CatalogError> {
        let mut numbers = SequenceNumbers::default();
        each_fact(store, PREFIX, |fact, number, bytes| {
            // An unreadable entry is not counted, and stays.
            if let (Ok(number), Ok(entry)) = (number.parse(), decode::<AuditEntry>(fact, bytes)) {
                numbers.insert(number, entry.at_ms, entry.retention_class());
            }
            Ok(())
        })?;
        Ok(Self(Mutex::new(numbers)))
    }

    fn numbers(&self) -> MutexGuard<'_, SequenceNumbers> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SequenceNumbers {
    fn insert(&mut self, number: u64, at_ms: u64, class: &str) {
        let class = match self.classes.get_key_value(class) {
            Some((class, _)) => class.clone(),
            None => Arc::from(class),
        };
        self.classes.entry(class.clone()).or_default().push_back(number);
        self.kept.insert(number, (at_ms, class));
        self.next = self.next.max(number + 1);
    }

    fn remove(&mut self, number: u64) {
        let Some((_, class)) = self.kept.remove(&number) else { return };
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
        if self.kept.len() < AUDIT_ENTRIES_MAX {
            return None;
        }
        // Among classes of equal size the one with the oldest entry, which makes the choice deterministic.
        let most = self.classes.values().max_by_key(|numbers| {
            (numbers.len(), std::cmp::Reverse(numbers.front().copied().unwrap_or(u64::MAX)))
        });
        most.and_then(|numbers| numbers.front().copied())
    }
}

impl Catalog {
    /// Returns the same catalog on behalf of an author: changes through it are recorded as theirs.
    pub fn acting_as(&self, actor: Actor) -> Self {
        Self(self.0.clone(), Some(Arc::new(actor)))
    }

    /// Adds an entry to the batch of its change.
    pub(super) fn append_audit(
        &self,
        batch: Batch,
        record: AuditRecord,
    ) -> Result<Batch, CatalogError> {
        let actor = self.1.as_deref().cloned().unwrap_or_default();
        let entry = record.entry(self.now_ms(), actor);
        let mut numbers = self.0.audit.numbers();
        let mut batch = batch;
        if let Some(oldest) = numbers.crowded_out(entry.retention_class()) {
            batch = batch.delete_fact(fact(oldest)?);
            numbers.remove(oldest);
        }
        let number = numbers.next;
        let fact = fact(number)?;
        let value = encode(&fact, &entry)?;
        // If the batch fails, the number has no entry, and readers skip it.
        numbers.insert(number, entry.at_ms, entry.retention_class());
        Ok(batch.put_fact(fact, value))
    }

    /// Stores an entry for an action that does not change the catalog.
    fn store_audit_entry(&self, entry: AuditRecord) -> Result<(), CatalogError> {
        self.0.store.commit(self.append_audit(Batch::new(), entry)?)?;
        Ok(())
    }

    /// Records a rejected sign-in to this account, or to an unknown one.
    pub fn audit_failed_sign_in(&self, account: Option<&AccountId>) -> Result<(), CatalogError> {
        let entry = AuditRecord::new(AuditAction::SessionRefused);
        self.store_audit_entry(match account {
            Some(account) => entry.account(account).detail("wrong password"),
            None => entry.detail("unknown name"),
        })
    }

    /// Records the start of a requested compaction.
    pub fn audit_compaction(&self, dead_percent_min: u8) -> Result<(), CatalogError> {
        let entry = AuditRecord::new(AuditAction::CompactionBegin);
        self.store_audit_entry(
            entry.detail(format!("segments of which {dead_percent_min} % are dead")),
        )
    }

    /// Returns the newest entries that match, before a number. Blocks on the index.
    pub fn audit_page(
        &self,
        wants: impl Fn(&AuditEntry) -> bool,
        before: Option<u64>,
        limit: usize,
    ) -> Result<AuditPage, CatalogError> {
        let numbers: Vec<u64> = {
            let numbers = self.0.audit.numbers();
            let older = numbers.kept.range(..before.unwrap_or(u64::MAX));
            older.map(|(number, _)| *number).rev().collect()
        };
        let mut entries = Vec::new();
        for number in numbers {
            let fact = fact(number)?;
            let Some(value) = self.0.store.fact(&fact)? else { continue };
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

    /// Deletes entries that are past their retention.
    pub fn sweep_audit(&self) -> Result<(), CatalogError> {
        let kept_ms = u64::try_from(AUDIT_RETENTION.as_millis()).unwrap_or(u64::MAX);
        let before_ms = self.now_ms().saturating_sub(kept_ms);
        loop {
            let old: Vec<u64> = {
                let numbers = self.0.audit.numbers();
                let old = numbers.kept.iter().filter(|(_, (at_ms, _))| *at_ms < before_ms);
                old.map(|(number, _)| *number).take(AUDIT_BATCH).collect()
            };
            if old.is_empty() {
                return Ok(());
            }
            let mut batch = Batch::new();
            for number in &old {
                batch = batch.delete_fact(fact(*number)?);
            }
            self.0.store.commit(batch)?;
            let mut numbers = self.0.audit.numbers();
            old.into_iter().for_each(|number| numbers.remove(number));
        }
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
        let mut numbers = SequenceNumbers::default();
        let add = |numbers: &mut SequenceNumbers, class: &str| {
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
        assert_eq!(numbers.kept.len(), AUDIT_ENTRIES_MAX);
        assert_eq!(numbers.classes["quiet"].len(), 10);
    }

    #[test]
    fn failed_sign_ins_have_their_own_audit_limit() {
        let mut numbers = SequenceNumbers::default();
        numbers.insert(0, 0, "ann");
        for at in 0..AUDIT_REFUSED_MAX as u64 {
            numbers.insert(at + 1, 0, AuditAction::REFUSED_CLASS);
        }
        assert_eq!(numbers.crowded_out(AuditAction::REFUSED_CLASS), Some(1));
        assert_eq!(numbers.crowded_out("ann"), None);
    }
}
