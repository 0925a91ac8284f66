//! Last-used times of API keys and sessions, to the hour.
//!
//! A request sets a number in memory, and once an hour puts the key on a list; the list is persisted periodically, many
//! keys in one batch. Guarantees: no request waits for it; persisted times survive a restart. A crash loses what was
//! not written yet, at most some minutes. Non-goals: rights of a key.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};

use super::CatalogError;
use super::record::Record;

/// Prefix of the fact names of last-used times; the key id follows.
pub(super) const PREFIX: &str = "apikey-use/";
/// Facts that are written in one batch.
pub(super) const BATCH_FACTS: usize = 500;
pub(super) const HOUR_MS: u64 = 60 * 60 * 1_000;

/// Hour of the last use; zero if never used. Not part of the equality of records.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub(super) struct LastUsed(AtomicU64);

/// Ids of keys, or of sessions, whose last use is not persisted yet.
pub(super) struct UnwrittenUses<I>(Mutex<BTreeSet<I>>);

#[derive(PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct StoredLastUse {
    /// Hours since 1970.
    pub(super) hour: u64,
}

impl Record for StoredLastUse {}

impl PartialEq for LastUsed {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for LastUsed {}

impl LastUsed {
    pub(super) fn at(hour: u64) -> Self {
        Self(AtomicU64::new(hour))
    }

    pub(super) fn hour(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    /// Records a stored use, unless a later one is known.
    pub(super) fn advance_to(&self, hour: u64) {
        self.0.fetch_max(hour, Ordering::Relaxed);
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
            self.add(id);
        }
    }

    /// Records an id.
    pub(super) fn add(&self, id: &I) {
        self.lock().insert(id.clone());
    }

    /// Writes the recorded ids, at most `batch_max` at a time. Those that were not written remain recorded.
    pub(super) fn write_batches(
        &self,
        batch_max: usize,
        mut write: impl FnMut(&BTreeSet<I>) -> Result<(), CatalogError>,
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
