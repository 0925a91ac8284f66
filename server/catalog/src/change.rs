//! Changes of the catalog, and its tables in memory.
//!
//! A [`Change`] holds the writer's lock from reading the current state until its facts are visible, so that concurrent
//! changes of one record are serialized. Guarantees: a change is durable before it is visible; a failed change is never
//! visible; tables change only by [`Table::apply`], with the same result at the start and after a commit. Non-goals:
//! rules for changes, and facts that are committed with objects.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::{Arc, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use bytes::Bytes;
use engine::{Batch, FactName, Precondition, Store};

use super::audit_entry::AuditRecord;
use super::id::{Id, IdKind};
use super::record::{Record, corrupt_record, decode, encode};
use super::{Catalog, CatalogError};
use crate::limits::{CATALOG_PAGE_FACTS, CATALOG_RECORDS_MAX};

/// Fact that was put, with its value, or deleted.
pub(super) type ChangedFact = (FactName, Option<Bytes>);

/// Records of one aggregate in memory.
pub(super) trait Table: Default {
    /// Prefixes of the fact names of its records, each ending in `/`, in the order in which they are loaded.
    const PREFIXES: &'static [&'static str];

    /// Puts (`Some`) or deletes (`None`) a fact. State that is not part of the fact, such as a last-used time, is
    /// retained, and so is the `Arc` of an equal record.
    fn apply(&mut self, name: &FactName, value: Option<&[u8]>) -> Result<(), CatalogError>;

    /// Adjusts records that a process which has stopped left behind, after loading.
    fn recover(&mut self) {}
}

/// Table and its lock.
pub(super) struct Shared<T>(RwLock<T>);

/// Change under construction. Dropping it before [`Change::commit`] discards it.
pub(super) struct Change<'a> {
    catalog: &'a Catalog,
    preconditions: Vec<Precondition>,
    facts: Vec<ChangedFact>,
    entries: Vec<AuditRecord>,
    _lock: MutexGuard<'a, ()>,
}

impl<T: Table> Shared<T> {
    /// Loads the table from the store.
    pub(super) fn load(store: &Store) -> Result<Self, CatalogError> {
        let mut table = T::default();
        for prefix in T::PREFIXES {
            each_fact(store, prefix, |name, value| table.apply(name, Some(value)))?;
        }
        table.recover();
        Ok(Self(RwLock::new(table)))
    }

    pub(super) fn read(&self) -> RwLockReadGuard<'_, T> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Locks the table for a change of state that is not part of its facts.
    pub(super) fn write(&self) -> RwLockWriteGuard<'_, T> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Applies the facts of this table, under one lock.
    pub(super) fn apply(&self, facts: &[ChangedFact]) -> Result<(), CatalogError> {
        let is_own = |(name, _): &&ChangedFact| T::PREFIXES.contains(&split(name).0);
        let mut own = facts.iter().filter(is_own).peekable();
        if own.peek().is_none() {
            return Ok(());
        }
        let mut table = self.write();
        own.try_for_each(|(name, value)| table.apply(name, value.as_deref()))
    }
}

impl Catalog {
    /// Begins a change; waits for the previous one.
    pub(super) fn begin(&self) -> Change<'_> {
        Change {
            _lock: self.state.writer.lock().unwrap_or_else(PoisonError::into_inner),
            catalog: self,
            preconditions: Vec::new(),
            facts: Vec::new(),
            entries: Vec::new(),
        }
    }
}

impl Change<'_> {
    /// Puts a record that must not exist yet.
    pub(super) fn add<R: Record>(
        &mut self,
        fact: FactName,
        record: &R,
    ) -> Result<(), CatalogError> {
        self.require(Precondition::FactAbsent(fact.clone()));
        self.put(fact, record)
    }

    /// Puts a record, and replaces its previous version.
    pub(super) fn put<R: Record>(
        &mut self,
        fact: FactName,
        record: &R,
    ) -> Result<(), CatalogError> {
        let value = encode(&fact, record)?;
        debug_assert!(decode::<R>(&fact, &value).is_ok_and(|it| it == *record), "{fact}");
        self.facts.push((fact, Some(value)));
        Ok(())
    }

    /// Deletes a fact; a missing fact is not an error.
    pub(super) fn delete(&mut self, fact: FactName) {
        self.facts.push((fact, None));
    }

    /// Returns the facts that the change deletes.
    pub(super) fn deleted(&self) -> impl Iterator<Item = &FactName> {
        self.facts.iter().filter(|(_, value)| value.is_none()).map(|(name, _)| name)
    }

    /// Adds a precondition.
    pub(super) fn require(&mut self, precondition: Precondition) {
        self.preconditions.push(precondition);
    }

    /// Adds an entry to the audit log.
    pub(super) fn audit(&mut self, entry: AuditRecord) {
        self.entries.push(entry);
    }

    /// Returns the number of facts in the change.
    pub(super) fn len(&self) -> usize {
        self.facts.len()
    }

    /// Commits the change unless it is empty.
    pub(super) fn commit_any(&mut self) -> Result<(), CatalogError> {
        if self.facts.is_empty() { Ok(()) } else { self.commit() }
    }

    /// Commits the change, and makes it visible. The lock is held until the change is dropped, and further facts begin
    /// a new batch. Blocks on the disk.
    pub(super) fn commit(&mut self) -> Result<(), CatalogError> {
        let state = &self.catalog.state;
        for record in self.entries.drain(..) {
            let actor = self.catalog.author.as_deref().cloned().unwrap_or_default();
            let entry = record.entry(self.catalog.now_ms(), actor);
            self.facts.extend(state.audit.write().reserve(&entry)?);
        }
        let facts = std::mem::take(&mut self.facts);
        let preconditions = std::mem::take(&mut self.preconditions);
        let batch = preconditions.into_iter().fold(Batch::new(), Batch::require);
        let add = |batch: Batch, (name, value): &ChangedFact| match value {
            Some(value) => batch.put_fact(name.clone(), value.clone()),
            None => batch.delete_fact(name.clone()),
        };
        state.store.commit(facts.iter().fold(batch, add))?;
        state.apply(&facts)
    }
}

/// Splits a fact name after its first `/`: the prefix of the table, and the name of the record.
pub(super) fn split(fact: &FactName) -> (&str, &str) {
    let name = fact.as_str();
    name.split_at(name.find('/').map_or(name.len(), |at| at + 1))
}

/// Applies a fact to a map of records by id.
pub(super) fn apply_record<K: IdKind + Ord, R: Record>(
    records: &mut BTreeMap<Id<K>, Arc<R>>,
    fact: &FactName,
    value: Option<&[u8]>,
) -> Result<(), CatalogError> {
    let id = Id::read(split(fact).1);
    match value {
        Some(value) => {
            set(records, id.map_err(|why| corrupt_record(fact, &why))?, decode(fact, value)?);
        }
        None => drop(id.map(|id| records.remove(&id))),
    }
    Ok(())
}

/// Inserts a record, and retains the `Arc` of an equal one.
pub(super) fn set<K: Ord, R: PartialEq>(records: &mut BTreeMap<K, Arc<R>>, key: K, record: R) {
    if records.get(&key).is_none_or(|known| **known != record) {
        records.insert(key, Arc::new(record));
    }
}

/// Passes each fact with a prefix to a function, in the order of names.
pub(super) fn each_fact(
    store: &Store,
    prefix: &str,
    mut take: impl FnMut(&FactName, &[u8]) -> Result<(), CatalogError>,
) -> Result<(), CatalogError> {
    let mut after: Option<FactName> = None;
    loop {
        let page = store.facts(prefix, after.as_ref(), CATALOG_PAGE_FACTS)?;
        let is_last = page.len() < CATALOG_PAGE_FACTS;
        for (fact, bytes) in &page {
            take(fact, bytes)?;
        }
        after = page.into_iter().next_back().map(|(fact, _)| fact);
        if is_last || after.is_none() {
            return Ok(());
        }
    }
}

/// Checks that one more record may be created.
pub(super) fn check_total(count: usize, what: &str) -> Result<(), CatalogError> {
    check_count(count, CATALOG_RECORDS_MAX, what)
}

pub(super) fn check_count(count: usize, max: usize, what: &str) -> Result<(), CatalogError> {
    if count < max {
        return Ok(());
    }
    Err(CatalogError::InvalidRequest(format!("limit reached: at most {max} {what}")))
}
