//! Changes of the catalog: each is one durable batch, then visible in memory.
//!
//! Guarantees: those of `catalog`. The order is always the same: lock for changes, validate, commit, publish.
//! Non-goals: reading.

mod account_deletion;
mod accounts;
mod api_keys;
mod buckets;
mod organisations;
mod sessions;
mod set_up;
#[cfg(test)]
mod tests;
mod webhooks;

use std::sync::{Arc, MutexGuard, PoisonError};

use engine::{Batch, BucketName, FactName, Precondition};

use super::audit_entry::AuditRecord;
use super::record::{CatalogRecord, encode};
use super::{Account, AccountId, Bucket, Catalog, CatalogError, Quota, Tables};
use crate::limits::CATALOG_RECORDS_MAX;

pub use self::accounts::{AccountChange, NewAccount};
pub use self::api_keys::NewApiKey;
pub use self::buckets::{BucketChange, NewBucket, NewBucketOwner};
pub(super) use self::sessions::SessionChanges;
pub use self::set_up::{FirstBucket, NewSetup, SetupResult};
pub use self::webhooks::{NewWebhook, WebhookChange};

/// Change of a quota; `Some(None)` removes a limit.
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
        self.0.write_lock.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Publishes a durable change in memory.
    pub(super) fn publish<T>(&self, change: impl FnOnce(&mut Tables) -> T) -> T {
        change(&mut self.0.tables.write().unwrap_or_else(PoisonError::into_inner))
    }

    /// Stores a record that must not exist yet.
    fn add_record(
        &self,
        fact: FactName,
        record: &impl CatalogRecord,
        entry: AuditRecord,
    ) -> Result<(), CatalogError> {
        let batch = Batch::new().require(Precondition::FactAbsent(fact.clone()));
        let batch = batch.put_fact(fact.clone(), encode(&fact, record)?);
        self.0.store.commit(self.append_audit(batch, entry)?)?;
        Ok(())
    }

    /// Replaces an existing record.
    fn put_record(
        &self,
        fact: FactName,
        record: &impl CatalogRecord,
        entry: AuditRecord,
    ) -> Result<(), CatalogError> {
        let stored = encode(&fact, record)?;
        self.0.store.commit(self.append_audit(Batch::new().put_fact(fact, stored), entry)?)?;
        Ok(())
    }

    pub(super) fn require_account(&self, id: &AccountId) -> Result<Arc<Account>, CatalogError> {
        self.account(id).ok_or_else(|| CatalogError::NotFound(format!("the account {id}")))
    }

    pub(super) fn require_bucket(&self, name: &BucketName) -> Result<Arc<Bucket>, CatalogError> {
        self.bucket(name).ok_or_else(|| CatalogError::BucketNotFound(name.to_string()))
    }
}

/// Checks that one more record may be created.
fn check_total(count: usize, what: &str) -> Result<(), CatalogError> {
    check_count(count, CATALOG_RECORDS_MAX, what)
}

fn check_count(count: usize, max: usize, what: &str) -> Result<(), CatalogError> {
    if count < max {
        return Ok(());
    }
    Err(CatalogError::InvalidRequest(format!("limit reached: at most {max} {what}")))
}

/// In-memory store for tests.
#[cfg(test)]
mod world {
    use engine::clock::SimClock;
    use engine::disk::sim::SimDisk;
    use engine::rng::{Rng, SeededRng};
    use engine::{
        Background, Create, Environment, ObjectKey, ObjectName, OpenOptions, PutOptions, Store,
    };

    use super::*;

    pub(super) struct World {
        pub(super) store: Store,
        pub(super) clock: Arc<SimClock>,
        rng: Arc<dyn Rng>,
    }

    impl World {
        pub(super) fn new() -> Self {
            let clock = Arc::new(SimClock::at(1_700_000_000_000));
            let rng: Arc<dyn Rng> = Arc::new(SeededRng::new(7));
            let disk = Arc::new(SimDisk::with_seed(7));
            let surroundings = Environment { disk, clock: clock.clone(), rng: rng.clone() };
            let mut options = OpenOptions::new(Create::IfMissing);
            options.background = Background::Threads;
            let (store, _) = Store::open(surroundings, options).unwrap();
            Self { store, clock, rng }
        }

        pub(super) fn catalog(&self) -> Catalog {
            Catalog::open(self.store.clone(), self.clock.clone(), self.rng.clone()).unwrap()
        }

        pub(super) fn put(&self, bucket: &str, key: &str) {
            let name =
                ObjectName::new(BucketName::parse(bucket).unwrap(), ObjectKey::parse(key).unwrap());
            let options = PutOptions { content_type: "text/plain".into(), ..PutOptions::default() };
            let staged = self.store.upload().finish().unwrap();
            self.store.commit(Batch::new().put(name, staged, options)).unwrap();
        }
    }
}
