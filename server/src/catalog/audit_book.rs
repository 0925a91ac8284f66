//! Which entries are kept of who changed what, and finding them.
//!
//! Numbers in the order of changes; in memory there are the numbers, in the store one fact for each. Promises: no more
//! than [`AUDIT_ENTRIES_MAX`], none older than [`AUDIT_KEPT`] for long; where there are too many, the oldest goes of
//! whoever has most, so that nobody who does much hides what others did. Never here: what is told, and who may see it.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use engine::{Batch, FactName, NameError, Store};

use super::audit::{Actor, AuditAction, AuditEntry, Told};
use super::record::{decode, encode};
use super::{AccountId, Catalog, CatalogError, each_fact};
use crate::limits::{AUDIT_BATCH, AUDIT_ENTRIES_MAX, AUDIT_KEPT, AUDIT_REFUSED_MAX};

/// The fact names of entries start with this; the number follows.
const PREFIX: &str = "audit/";
const NUMBER_DIGITS: usize = 20;

/// The entries that are kept.
#[derive(Default)]
pub(super) struct AuditBook(Mutex<Numbers>);

#[derive(Default)]
struct Numbers {
    next: u64,
    /// When each was made, and of which class it is.
    kept: BTreeMap<u64, (u64, Arc<str>)>,
    /// The same by class, the oldest first.
    classes: HashMap<Arc<str>, VecDeque<u64>>,
}

/// A part of what is known, the newest first.
pub struct AuditPage {
    /// Entries with their numbers.
    pub entries: Vec<(u64, AuditEntry)>,
    /// What stands before the rest, where there is more.
    pub next: Option<u64>,
}

impl AuditBook {
    pub(super) fn open(store: &Store) -> Result<Self, CatalogError> {
        let mut numbers = Numbers::default();
        each_fact(store, PREFIX, |fact, number, bytes| {
            // What is not read is not counted, and stays.
            if let (Ok(number), Ok(entry)) = (number.parse(), decode::<AuditEntry>(fact, bytes)) {
                numbers.insert(number, entry.at_ms, entry.class());
            }
            Ok(())
        })?;
        Ok(Self(Mutex::new(numbers)))
    }

    fn numbers(&self) -> MutexGuard<'_, Numbers> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Numbers {
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

    /// The one that goes for a new one, where one has to.
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
        // Of those with as many the one whose oldest is older, so that it is always the same one.
        let most = self.classes.values().max_by_key(|numbers| {
            (numbers.len(), std::cmp::Reverse(numbers.front().copied().unwrap_or(u64::MAX)))
        });
        most.and_then(|numbers| numbers.front().copied())
    }
}

impl Catalog {
    /// The same catalog in the hands of somebody: what is changed through it is theirs.
    pub fn by(&self, actor: Actor) -> Self {
        Self(self.0.clone(), Some(Arc::new(actor)))
    }

    /// Puts an entry into the batch of the change that it tells of.
    pub(super) fn audited(&self, batch: Batch, told: Told) -> Result<Batch, CatalogError> {
        let actor = self.1.as_deref().cloned().unwrap_or_default();
        let entry = told.entry(self.now_ms(), actor);
        let mut numbers = self.0.audit.numbers();
        let mut batch = batch;
        if let Some(oldest) = numbers.crowded_out(entry.class()) {
            batch = batch.delete_fact(fact(oldest)?);
            numbers.remove(oldest);
        }
        let number = numbers.next;
        let fact = fact(number)?;
        let value = encode(&fact, &entry)?;
        // Where the batch comes to nothing there is no such entry, and it is passed over.
        numbers.insert(number, entry.at_ms, entry.class());
        Ok(batch.put_fact(fact, value))
    }

    /// Tells of what is no change of the catalog.
    fn tell(&self, told: Told) -> Result<(), CatalogError> {
        self.0.store.commit(self.audited(Batch::new(), told)?)?;
        Ok(())
    }

    /// Somebody was refused who wanted to sign in to this account, or to none that there is.
    pub fn note_refused_session(&self, account: Option<&AccountId>) -> Result<(), CatalogError> {
        let told = Told::of(AuditAction::SessionRefused);
        self.tell(match account {
            Some(account) => told.account(account).detail("wrong password"),
            None => told.detail("unknown name"),
        })
    }

    /// A compaction begins that somebody asked for.
    pub fn note_compaction(&self, dead_percent_min: u8) -> Result<(), CatalogError> {
        let told = Told::of(AuditAction::CompactionBegin);
        self.tell(told.detail(format!("segments of which {dead_percent_min} % are dead")))
    }

    /// The newest entries that are wanted, before a number. Waits for the index.
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

    /// Forgets entries that are too old.
    pub fn sweep_audit(&self) -> Result<(), CatalogError> {
        let kept_ms = u64::try_from(AUDIT_KEPT.as_millis()).unwrap_or(u64::MAX);
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
    fn whoever_does_most_makes_room() {
        let mut numbers = Numbers::default();
        let add = |numbers: &mut Numbers, class: &str| {
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
        // Also for somebody else.
        assert_eq!(add(&mut numbers, "other"), Some(60));
        assert_eq!(numbers.kept.len(), AUDIT_ENTRIES_MAX);
        assert_eq!(numbers.classes["quiet"].len(), 10);
    }

    #[test]
    fn those_who_are_refused_have_a_bound_of_their_own() {
        let mut numbers = Numbers::default();
        numbers.insert(0, 0, "ann");
        for at in 0..AUDIT_REFUSED_MAX as u64 {
            numbers.insert(at + 1, 0, AuditAction::REFUSED_CLASS);
        }
        assert_eq!(numbers.crowded_out(AuditAction::REFUSED_CLASS), Some(1));
        assert_eq!(numbers.crowded_out("ann"), None);
    }
}
