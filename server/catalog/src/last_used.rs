//! Last-used times of API keys and sessions, to the hour.
//!
//! A request sets a number in memory, and once an hour puts the key on a list; the list is persisted periodically, many
//! keys in one batch. Guarantees: no request waits for it; persisted times survive a restart. A crash loses what was
//! not written yet, at most some minutes. Non-goals: rights of a key.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use engine::name::NameError;
use engine::{Batch, FactName};
use serde::{Deserialize, Serialize};

use super::record::{CatalogRecord, encode};
use super::{ApiKeyId, Catalog, CatalogError};

/// Prefix of the fact names of last-used times; the key id follows.
pub(super) const PREFIX: &str = "apikey-use/";
/// Facts that are written in one batch.
const BATCH_FACTS: usize = 500;
pub(super) const HOUR_MS: u64 = 60 * 60 * 1_000;

/// Hour of the last use; zero if never used.
#[derive(Debug, Default)]
pub(super) struct LastUsed(AtomicU64);

/// Ids of keys, or of sessions, whose last use is not persisted yet.
pub(super) struct UnwrittenUses<I>(Mutex<BTreeSet<I>>);

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct StoredLastUse {
    /// Hours since 1970.
    hour: u64,
}

impl CatalogRecord for StoredLastUse {
    const VERSION: u32 = 1;
}

impl LastUsed {
    pub(super) fn from_stored(stored: &StoredLastUse) -> Self {
        Self::at(stored.hour)
    }

    pub(super) fn at(hour: u64) -> Self {
        Self(AtomicU64::new(hour))
    }

    pub(super) fn hour(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    /// Records a use; returns whether its hour is new.
    fn record(&self, now_ms: u64) -> bool {
        let hour = now_ms / HOUR_MS;
        // Reads first: a write would invalidate the cache line on all cores with each request.
        self.0.load(Ordering::Relaxed) != hour && self.0.swap(hour, Ordering::Relaxed) != hour
    }

    pub(super) fn ms(&self) -> Option<u64> {
        match self.hour() {
            0 => None,
            hour => Some(hour.saturating_mul(HOUR_MS)),
        }
    }
}

impl<I: Clone + Ord> UnwrittenUses<I> {
    /// Records a use.
    pub(super) fn record_use(&self, id: &I, last_use: &LastUsed, now_ms: u64) {
        if last_use.record(now_ms) {
            self.lock().insert(id.clone());
        }
    }

    /// Writes the recorded ids, at most `batch_max` at a time. Those that were not written remain recorded.
    pub(super) fn write_batches(
        &self,
        batch_max: usize,
        write: impl Fn(&BTreeSet<I>) -> Result<(), CatalogError>,
    ) -> Result<(), CatalogError> {
        let mut waiting = std::mem::take(&mut *self.lock());
        while !waiting.is_empty() {
            let later = waiting.iter().nth(batch_max).cloned();
            let rest = later.map(|first| waiting.split_off(&first)).unwrap_or_default();
            if let Err(error) = write(&waiting) {
                waiting.extend(rest);
                self.lock().extend(waiting);
                return Err(error);
            }
            waiting = rest;
        }
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, BTreeSet<I>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<I> Default for UnwrittenUses<I> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl Catalog {
    /// Returns the start of the hour in which a key was last used.
    pub fn last_use_ms(&self, id: &ApiKeyId) -> Option<u64> {
        self.tables().api_keys.get(id)?.last_use.ms()
    }

    /// Persists the recorded times. Failed writes are retried the next time.
    pub fn write_last_used(&self) -> Result<(), CatalogError> {
        // Otherwise a key that is deleted concurrently would leave its fact behind.
        let _changing = self.change();
        self.0.unwritten.write_batches(BATCH_FACTS, |ids| self.write_batch(ids))
    }

    fn write_batch(&self, ids: &BTreeSet<ApiKeyId>) -> Result<(), CatalogError> {
        let mut batch = Batch::new();
        for id in ids {
            let Some(ms) = self.last_use_ms(id) else { continue };
            let fact = fact(id)?;
            let stored = encode(&fact, &StoredLastUse { hour: ms / HOUR_MS })?;
            batch = batch.put_fact(fact, stored);
        }
        if !batch.is_empty() {
            self.0.store.commit(batch)?;
        }
        Ok(())
    }
}

pub(super) fn fact(id: &ApiKeyId) -> Result<FactName, NameError> {
    FactName::parse(&format!("{PREFIX}{id}"))
}
