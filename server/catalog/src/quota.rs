//! Quotas of accounts and buckets, and reservations of uploads in flight.
//!
//! The store counts stored objects exactly. Unfinished uploads are counted by `staging.rs`, as if they were stored.
//! From the decision that an upload fits until the store counts it, it is reserved in a ledger in memory. Guarantees: a
//! granted upload fits, regardless of concurrent uploads; an upload is rejected only if it would not fit with the
//! stored objects alone, and waits if it only exceeds the quota together with uploads that may still fail. Non-goals:
//! names, and which uploads replace objects.

use std::collections::{BTreeSet, HashMap};
use std::hash::Hash;
use std::sync::{Mutex, MutexGuard, PoisonError};

use engine::BucketName;
use serde::{Deserialize, Serialize};
use tokio::sync::Notify;
use tokio::sync::futures::Notified;
use uuid::Uuid;

use protocol::error::ApiError;

use super::id::AccountId;
use super::{Bucket, Catalog, CatalogError, Quotas};
use crate::versions;

/// Quota of objects and bytes; `None` means unlimited.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Quota {
    pub bytes_max: Option<u64>,
    pub objects_max: Option<u64>,
}

/// Change of a quota; `Some(None)` removes a limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QuotaChange {
    pub bytes_max: Option<Option<u64>>,
    pub objects_max: Option<Option<u64>>,
}

impl QuotaChange {
    pub(super) fn apply(self, quota: &mut Quota) {
        quota.bytes_max = self.bytes_max.unwrap_or(quota.bytes_max);
        quota.objects_max = self.objects_max.unwrap_or(quota.objects_max);
    }
}

/// Number of objects and bytes. Derived objects do not count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StoredAmount {
    pub objects: u64,
    pub bytes: u64,
}

/// Result of a reservation.
pub enum QuotaDecision {
    /// Granted, while this is held.
    Granted(QuotaReservation),
    /// The quota is exceeded, whatever becomes of other uploads.
    Exceeded(QuotaExceeded),
    /// Depends on uploads in flight: retry when one of them has ended.
    Pending,
}

/// Exceeded quota.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QuotaExceeded {
    pub whose: QuotaOwner,
    pub measure: QuotaMeasure,
    pub limit: u64,
    pub used: u64,
}

impl From<QuotaExceeded> for ApiError {
    fn from(exceeded: QuotaExceeded) -> Self {
        let QuotaExceeded { whose, measure, limit, used } = exceeded;
        let owner = match whose {
            QuotaOwner::Account => "account",
            QuotaOwner::Bucket => "bucket",
        };
        let measure = match measure {
            QuotaMeasure::Bytes => "bytes",
            QuotaMeasure::Objects => "files",
        };
        Self::quota_exceeded(owner, measure, limit, used)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QuotaOwner {
    Account,
    Bucket,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QuotaMeasure {
    Bytes,
    Objects,
}

/// Reservation, held until the upload is stored or has failed.
pub struct QuotaReservation {
    catalog: Catalog,
    account: AccountId,
    bucket: BucketName,
    amount: StoredAmount,
    /// Unfinished upload that it completes.
    completes: Option<Uuid>,
}

/// Reservations that are not stored yet, without empty entries.
#[derive(Default)]
pub(super) struct QuotaLedger {
    reserved: Mutex<Reserved>,
    released: Notify,
}

#[derive(Default)]
struct Reserved {
    accounts: HashMap<AccountId, StoredAmount>,
    buckets: HashMap<BucketName, StoredAmount>,
}

impl Quota {
    pub fn is_unlimited(&self) -> bool {
        self.bytes_max.is_none() && self.objects_max.is_none()
    }

    /// Decides whether more fits, given what is stored and reserved.
    fn judge(
        &self,
        whose: QuotaOwner,
        used: StoredAmount,
        granted: StoredAmount,
        more: StoredAmount,
    ) -> Verdict {
        let mut verdict = Verdict::Fits;
        for (what, limit, used, granted, more) in [
            (QuotaMeasure::Bytes, self.bytes_max, used.bytes, granted.bytes, more.bytes),
            (QuotaMeasure::Objects, self.objects_max, used.objects, granted.objects, more.objects),
        ] {
            // An upload that does not grow the usage is accepted even over the limit, which may have been lowered.
            let Some(limit) = limit.filter(|_| more > 0) else { continue };
            if used.saturating_add(more) > limit {
                return Verdict::Exceeded(QuotaExceeded { whose, measure: what, limit, used });
            }
            if used.saturating_add(granted).saturating_add(more) > limit {
                verdict = Verdict::Depends;
            }
        }
        verdict
    }
}

enum Verdict {
    Fits,
    Depends,
    Exceeded(QuotaExceeded),
}

impl StoredAmount {
    pub(super) fn plus(self, other: Self) -> Self {
        Self {
            objects: self.objects.saturating_add(other.objects),
            bytes: self.bytes.saturating_add(other.bytes),
        }
    }

    fn minus(self, other: Self) -> Self {
        Self {
            objects: self.objects.saturating_sub(other.objects),
            bytes: self.bytes.saturating_sub(other.bytes),
        }
    }
}

impl<'a> Quotas<'a> {
    /// Returns whether any quota limits the bucket.
    pub fn is_limited(&self, bucket: &Bucket) -> bool {
        let account_is_limited = self
            .0
            .accounts()
            .get(&bucket.owner)
            .is_some_and(|account| !account.quota.is_unlimited());
        account_is_limited || !bucket.quota.is_unlimited()
    }

    /// Reserves room in a bucket and in the account that owns it. Blocks on the index. `completes` is the unfinished
    /// upload that is being stored, which is not counted separately while the reservation lasts.
    pub fn reserve(
        &self,
        bucket: &Bucket,
        amount: StoredAmount,
        completes: Option<Uuid>,
    ) -> Result<QuotaDecision, CatalogError> {
        // The current settings: an upload may have started long before they were changed.
        let bucket = self.0.buckets().require(&bucket.name)?;
        let account = self.0.accounts().require(&bucket.owner)?;
        // Held during the lookup: the store has counted an upload before it leaves the ledger.
        let mut reserved = self.0.state.ledger.reserved();
        let granted = |amount: Option<&StoredAmount>| amount.copied().unwrap_or_default();
        let mut depends = false;
        for (whose, quota, granted) in [
            (QuotaOwner::Bucket, bucket.quota, granted(reserved.buckets.get(&bucket.name))),
            (QuotaOwner::Account, account.quota, granted(reserved.accounts.get(&account.id))),
        ] {
            if quota.is_unlimited() {
                continue;
            }
            let staging = &self.0.state.staging;
            let (stored, unfinished) = match whose {
                QuotaOwner::Bucket => {
                    let unfinished = staging.claimed(|it| *it == bucket.name, completes);
                    (self.of_bucket(&bucket.name)?, unfinished)
                }
                QuotaOwner::Account => {
                    let own: BTreeSet<_> =
                        self.0.buckets().names_of(&account.id).into_iter().collect();
                    let unfinished = staging.claimed(|it| own.contains(it), completes);
                    (self.of_account(&account.id)?, unfinished)
                }
            };
            let used = stored.plus(unfinished);
            match quota.judge(whose, used, granted, amount) {
                Verdict::Fits => {}
                Verdict::Depends => depends = true,
                Verdict::Exceeded(exceeded) => return Ok(QuotaDecision::Exceeded(exceeded)),
            }
        }
        if depends {
            return Ok(QuotaDecision::Pending);
        }
        grow(&mut reserved.accounts, account.id.clone(), amount);
        grow(&mut reserved.buckets, bucket.name.clone(), amount);
        if let Some(id) = completes {
            self.0.state.staging.set_completing(id, true);
        }
        let (catalog, account, bucket) = (self.0.clone(), account.id.clone(), bucket.name.clone());
        Ok(QuotaDecision::Granted(QuotaReservation { catalog, account, bucket, amount, completes }))
    }

    /// Resolves when a reservation ends. Must be created before reserving, so that none is missed.
    pub(super) fn released(&self) -> Notified<'a> {
        self.0.state.ledger.released.notified()
    }

    /// Returns the usage of a bucket, including noncurrent versions and delete markers.
    pub fn of_bucket(&self, bucket: &BucketName) -> Result<StoredAmount, CatalogError> {
        let has_versions = self.0.buckets().get(bucket).is_some_and(|it| it.versioning.is_some());
        let usage = self.0.state.store.bucket_usage(bucket)?;
        let amount = StoredAmount { objects: usage.objects, bytes: usage.bytes };
        if !has_versions {
            return Ok(amount);
        }
        let versions = versions::usage(&self.0.state.store, bucket)?;
        Ok(amount.plus(StoredAmount { objects: versions.objects, bytes: versions.bytes }))
    }

    /// Returns the usage of all buckets of an account.
    pub fn of_account(&self, account: &AccountId) -> Result<StoredAmount, CatalogError> {
        let mut sum = StoredAmount::default();
        for bucket in self.0.buckets().names_of(account) {
            sum = sum.plus(self.of_bucket(&bucket)?);
        }
        Ok(sum)
    }
}

impl QuotaLedger {
    fn reserved(&self) -> MutexGuard<'_, Reserved> {
        self.reserved.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl QuotaReservation {
    /// Records that the upload is stored: an unfinished upload that it completes is no longer counted. The reservation
    /// ends when it is dropped.
    pub(super) fn settle(&mut self) {
        if let Some(id) = self.completes.take() {
            self.catalog.state.staging.remove(id);
        }
    }
}

impl Drop for QuotaReservation {
    fn drop(&mut self) {
        let ledger = &self.catalog.state.ledger;
        {
            let mut reserved = ledger.reserved();
            if let Some(id) = self.completes {
                self.catalog.state.staging.set_completing(id, false);
            }
            shrink(&mut reserved.accounts, &self.account, self.amount);
            shrink(&mut reserved.buckets, &self.bucket, self.amount);
        }
        ledger.released.notify_waiters();
    }
}

fn grow<K: Hash + Eq>(amounts: &mut HashMap<K, StoredAmount>, key: K, more: StoredAmount) {
    let amount = amounts.entry(key).or_default();
    *amount = amount.plus(more);
}

fn shrink<K: Hash + Eq>(amounts: &mut HashMap<K, StoredAmount>, key: &K, less: StoredAmount) {
    if let Some(amount) = amounts.get_mut(key) {
        *amount = amount.minus(less);
        if *amount == StoredAmount::default() {
            amounts.remove(key);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::task::{Context, Waker};
    use std::time::Duration;

    use engine::{Batch, ObjectKey, ObjectName, PutOptions};

    use super::*;
    use crate::Plan;
    use crate::tests::{World, account, new_bucket};

    fn judge(used: u64, granted: u64, more: u64) -> &'static str {
        let quota = Quota { bytes_max: Some(100), objects_max: None };
        let amount = |bytes| StoredAmount { objects: 1, bytes };
        match quota.judge(QuotaOwner::Bucket, amount(used), amount(granted), amount(more)) {
            Verdict::Fits => "fits",
            Verdict::Depends => "depends",
            Verdict::Exceeded(_) => "exceeded",
        }
    }

    #[test]
    fn quota_rejects_only_on_stored_bytes() {
        assert_eq!(judge(0, 0, 100), "fits");
        assert_eq!(judge(0, 0, 101), "exceeded");
        assert_eq!(judge(50, 25, 25), "fits");
        assert_eq!(judge(50, 26, 25), "depends");
        assert_eq!(judge(76, 0, 25), "exceeded");
        assert_eq!(judge(200, 0, 0), "fits");
        assert_eq!(judge(0, u64::MAX, 1), "depends");
        assert_eq!(judge(u64::MAX, 1, u64::MAX), "exceeded");
    }

    #[tokio::test]
    async fn dropped_request_is_stored_and_ends_its_reservation() {
        let world = World::new();
        let catalog = world.catalog();
        let owner = account(&catalog, "Ann", Plan::Pro).unwrap();
        let bucket = catalog.buckets().create(new_bucket(&owner, "photos")).unwrap();
        let amount = StoredAmount { objects: 1, bytes: 0 };
        let reservation = catalog.reserve_quota(&bucket, amount, None).await.unwrap();
        let reserved = || catalog.state.ledger.reserved().buckets.get(&bucket.name).copied();
        assert_eq!(reserved(), Some(amount));

        let name = ObjectName::new(bucket.name.clone(), ObjectKey::parse("a").unwrap());
        let body = world.store.upload().finish().unwrap();
        let options = PutOptions { content_type: "text/plain".into(), ..PutOptions::default() };
        let batch = Batch::new().put(name.clone(), body, options);
        let request = catalog.commit_reserved(&bucket.name, batch, Vec::new(), reservation);
        let _ = Box::pin(request).as_mut().poll(&mut Context::from_waker(Waker::noop()));

        let is_done = || world.store.get(&name).unwrap().is_some() && reserved().is_none();
        for _ in 0..1_000 {
            if is_done() {
                return;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        panic!("stored: {:?}, reserved: {:?}", world.store.get(&name), reserved());
    }
}
