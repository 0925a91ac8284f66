//! Deletion of buckets: the bucket disappears immediately, its objects later.
//!
//! First a tombstone fact replaces the bucket and reserves its name: from then on no upload into it commits. Then its
//! objects are removed, then the tombstone. An upload may be stored between the check that found a bucket empty and the
//! bucket's deletion; it was acknowledged, so a bucket that had to be empty is restored instead. Guarantees: an
//! interruption at any point is completed later; one task at a time removes the objects of a bucket, so that a bucket
//! created again is never emptied. Non-goals: authorization.

use std::sync::Arc;

use engine::{Batch, BucketName, Store, limits};
use serde::{Deserialize, Serialize};

use super::audit_entry::{AuditAction, AuditRecord};
use super::bucket::{self, StoredBucket};
use super::record::{CatalogRecord, encode};
use super::{Bucket, Catalog, CatalogError};
use crate::versions;

/// Handling of the objects of a bucket to delete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnNonEmpty {
    Refuse,
    DeleteToo,
}

/// Deleted bucket whose objects the holder may remove. Dropping it early leaves them to a later removal.
pub struct BucketDeletion {
    catalog: Catalog,
    name: BucketName,
    must_be_empty: Option<Arc<Bucket>>,
    is_done: bool,
}

/// Unfinished removal.
pub(super) struct PendingDeletion {
    /// The bucket, if it had to be empty.
    pub(super) must_be_empty: Option<Arc<Bucket>>,
    /// Whether a [`BucketDeletion`] of it exists.
    pub(super) is_claimed: bool,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct StoredRemoval {
    pub(super) must_be_empty: Option<StoredBucket>,
}

impl CatalogRecord for StoredRemoval {
    const VERSION: u32 = 1;
}

impl PendingDeletion {
    pub(super) fn from_stored(name: &str, stored: StoredRemoval) -> Result<Self, String> {
        let bucket = stored.must_be_empty.map(|stored| Bucket::from_stored(name, stored));
        Ok(Self { must_be_empty: bucket.transpose()?.map(Arc::new), is_claimed: false })
    }
}

impl Catalog {
    /// Deletes a bucket. Its name is free, and its space reclaimed, when the removal is finished. A bucket with object
    /// lock must always be empty.
    pub fn delete_bucket(
        &self,
        name: &BucketName,
        contents: OnNonEmpty,
    ) -> Result<BucketDeletion, CatalogError> {
        let _changing = self.change();
        let bucket = self.require_bucket(name)?;
        let contents = match bucket.object_lock {
            Some(_) => OnNonEmpty::Refuse,
            None => contents,
        };
        let must_be_empty = match contents {
            OnNonEmpty::DeleteToo => None,
            OnNonEmpty::Refuse => {
                require_emptiness(&self.0.store, name)?;
                Some(bucket.clone())
            }
        };
        let fact = bucket::removal_fact(name)?;
        let stored = StoredRemoval { must_be_empty: must_be_empty.as_ref().map(|it| it.stored()) };
        let stored = encode(&fact, &stored)?;
        let batch = Batch::new().delete_fact(bucket.fact()?).put_fact(fact, stored);
        let entry = AuditRecord::new(AuditAction::BucketDelete).bucket(&bucket);
        self.0.store.commit(self.append_audit(batch, entry)?)?;
        self.fold_usage_of(&bucket);
        self.publish(|tables| {
            tables.remove_bucket(name);
            let unfinished =
                PendingDeletion { must_be_empty: must_be_empty.clone(), is_claimed: true };
            tables.removals.insert(name.clone(), unfinished);
        });
        Ok(BucketDeletion {
            catalog: self.clone(),
            name: name.clone(),
            must_be_empty,
            is_done: false,
        })
    }

    /// Finishes unclaimed removals: after a start, and after failures. Returns the number of removed objects.
    pub fn resume_deletions(&self) -> Result<u64, CatalogError> {
        let mut removed = 0;
        while let Some(removal) = self.claim_removal() {
            match removal.finish() {
                Ok(objects) => removed += objects,
                Err(CatalogError::NotEmpty(..)) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(removed)
    }

    fn claim_removal(&self) -> Option<BucketDeletion> {
        self.publish(|tables| {
            let (name, found) = tables.removals.iter_mut().find(|(_, it)| !it.is_claimed)?;
            found.is_claimed = true;
            let (name, must_be_empty) = (name.clone(), found.must_be_empty.clone());
            Some(BucketDeletion { catalog: self.clone(), name, must_be_empty, is_done: false })
        })
    }
}

impl BucketDeletion {
    /// Removes the objects, then frees the name; returns the number of objects, without derived ones. Blocks on the
    /// disk, for long if there are many objects. A bucket that had to be empty and is not is restored:
    /// [`CatalogError::NotEmpty`].
    pub fn finish(mut self) -> Result<u64, CatalogError> {
        let (store, fact) = (&self.catalog.0.store, bucket::removal_fact(&self.name)?);
        if let Some(bucket) = &self.must_be_empty
            && let Err(occupied) = require_emptiness(store, &self.name)
        {
            let bucket_fact = bucket.fact()?;
            let stored = encode(&bucket_fact, &bucket.stored())?;
            let batch = Batch::new().put_fact(bucket_fact, stored).delete_fact(fact);
            let entry = AuditRecord::new(AuditAction::BucketCreate).bucket(bucket);
            let entry = entry.detail("an upload restored it during its deletion");
            store.commit(self.catalog.append_audit(batch, entry)?)?;
            self.catalog.restore_usage_of(bucket);
            self.catalog.publish(|tables| {
                tables.removals.remove(&self.name);
                tables.insert_bucket(bucket.clone());
            });
            self.is_done = true;
            return Err(occupied);
        }
        let removed = remove_objects(store, &self.name)?;
        self.catalog.delete_webhooks_of(&self.name)?;
        self.catalog.delete_usage_of(&self.name)?;
        store.commit(Batch::new().delete_fact(fact))?;
        self.catalog.publish(|tables| tables.removals.remove(&self.name));
        self.is_done = true;
        Ok(removed)
    }
}

impl Drop for BucketDeletion {
    fn drop(&mut self) {
        // A bucket of this name may have been created and deleted again since.
        if self.is_done {
            return;
        }
        self.catalog.publish(|tables| {
            if let Some(unfinished) = tables.removals.get_mut(&self.name) {
                unfinished.is_claimed = false;
            }
        });
    }
}

impl Catalog {
    /// Fails if a bucket with object lock is not empty.
    pub(super) fn require_no_locked_objects(&self, name: &BucketName) -> Result<(), CatalogError> {
        match self.require_bucket(name)?.object_lock {
            Some(_) => require_emptiness(&self.0.store, name),
            None => Ok(()),
        }
    }
}

fn require_emptiness(store: &Store, name: &BucketName) -> Result<(), CatalogError> {
    let (usage, versions) = (store.bucket_usage(name)?, versions::usage(store, name)?);
    match usage.objects + usage.derived_objects + versions.objects {
        0 => Ok(()),
        objects => Err(CatalogError::NotEmpty(name.clone(), objects)),
    }
}

fn remove_objects(store: &Store, bucket: &BucketName) -> Result<u64, CatalogError> {
    let mut removed = 0;
    loop {
        let page = store.list_keys(bucket, "", None, limits::LIST_PAGE_MAX)?;
        if page.objects.is_empty() {
            return Ok(removed + versions::remove_all(store, bucket)?);
        }
        let batch = page.objects.iter().fold(Batch::new(), |batch, object| {
            let name = object.name().clone();
            match object.is_derived() {
                true => batch.delete_derived(name, object.attributes().to_vec()),
                false => batch.delete(name),
            }
        });
        removed += store.commit(batch)?.deleted_count as u64;
    }
}
