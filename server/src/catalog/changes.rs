//! Changes of the catalog: each is one durable batch, then seen by all.
//!
//! Promises: as `catalog`. The order is always the same: take the lock for changes, check, commit, show.
//! Never here: reading.

mod accounts;
mod api_keys;
mod buckets;
mod organisations;
#[cfg(test)]
mod tests;

use std::sync::{Arc, MutexGuard, PoisonError};

use engine::{Batch, BucketName, FactName, Precondition};

use super::record::{Stored, encode};
use super::{Account, AccountId, Bucket, Catalog, CatalogError, Quota, Tables};
use crate::limits::CATALOG_RECORDS_MAX;

pub use self::accounts::{AccountChange, NewAccount};
pub use self::api_keys::NewApiKey;
pub use self::buckets::{BucketChange, NewBucket, NewBucketOwner};

/// What is to change of a quota; `Some(None)` takes a limit away.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QuotaChange {
    pub bytes_max: Option<Option<u64>>,
    pub objects_max: Option<Option<u64>>,
}

impl QuotaChange {
    fn apply(self, quota: &mut Quota) {
        quota.bytes_max = self.bytes_max.unwrap_or(quota.bytes_max);
        quota.objects_max = self.objects_max.unwrap_or(quota.objects_max);
    }
}

impl Catalog {
    pub(super) fn change(&self) -> MutexGuard<'_, ()> {
        self.0.changing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets everybody see what is durable now.
    pub(super) fn show<T>(&self, change: impl FnOnce(&mut Tables) -> T) -> T {
        change(&mut self.0.tables.write().unwrap_or_else(PoisonError::into_inner))
    }

    /// Stores a record that must not be there yet.
    fn add_record(&self, fact: FactName, record: &impl Stored) -> Result<(), CatalogError> {
        let batch = Batch::new().require(Precondition::FactAbsent(fact.clone()));
        self.0.store.commit(batch.put_fact(fact.clone(), encode(&fact, record)?))?;
        Ok(())
    }

    /// Stores a record in place of the one that is there.
    fn put_record(&self, fact: FactName, record: &impl Stored) -> Result<(), CatalogError> {
        let stored = encode(&fact, record)?;
        self.0.store.commit(Batch::new().put_fact(fact, stored))?;
        Ok(())
    }

    pub(super) fn require_account(&self, id: &AccountId) -> Result<Arc<Account>, CatalogError> {
        self.account(id).ok_or_else(|| CatalogError::Missing(format!("the account {id}")))
    }

    pub(super) fn require_bucket(&self, name: &BucketName) -> Result<Arc<Bucket>, CatalogError> {
        self.bucket(name).ok_or_else(|| CatalogError::Missing(format!("the bucket {name}")))
    }
}

/// Whether there is room for one more record.
fn room(count: usize, what: &str) -> Result<(), CatalogError> {
    room_among(count, CATALOG_RECORDS_MAX, what)
}

fn room_among(count: usize, max: usize, what: &str) -> Result<(), CatalogError> {
    if count < max {
        return Ok(());
    }
    Err(CatalogError::Refused(format!("there are {max} {what} already, which is the most")))
}
