//! Deletion of buckets: the bucket disappears immediately, its objects later.
//!
//! First a tombstone fact replaces the bucket and reserves its name: from then on no upload into it commits. Then its
//! objects are removed, then the tombstone. An upload may be stored between the check that found a bucket empty and the
//! bucket's deletion; it was acknowledged, so a bucket that had to be empty is restored instead. Guarantees: an
//! interruption at any point is completed later; one task at a time removes the objects of a bucket, so that a bucket
//! created again is never emptied. Non-goals: authorization.

use engine::{Batch, BucketName, Store, limits};
use serde::{Deserialize, Serialize};

use super::audit_entry::{AuditAction, AuditRecord};
use super::record::Record;
use super::{Bucket, Buckets, Catalog, CatalogError, bucket};
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
    must_be_empty: Option<Bucket>,
    is_done: bool,
}

/// Unfinished removal.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PendingDeletion {
    /// The bucket, if it had to be empty.
    pub(super) must_be_empty: Option<Bucket>,
    /// Whether a [`BucketDeletion`] of it exists.
    #[serde(skip)]
    pub(super) is_claimed: bool,
}

impl Record for PendingDeletion {
    fn named(self, name: &str) -> Result<Self, String> {
        let bucket = self.must_be_empty.map(|bucket| bucket.named(name));
        Ok(Self { must_be_empty: bucket.transpose()?, ..self })
    }
}

impl Buckets<'_> {
    /// Deletes a bucket. Its name is free, and its space reclaimed, when the removal is finished. A bucket with object
    /// lock must always be empty.
    pub fn delete(
        &self,
        name: &BucketName,
        contents: OnNonEmpty,
    ) -> Result<BucketDeletion, CatalogError> {
        let mut change = self.0.begin();
        let bucket = self.require(name)?;
        let contents = match bucket.object_lock {
            Some(_) => OnNonEmpty::Refuse,
            None => contents,
        };
        let must_be_empty = match contents {
            OnNonEmpty::DeleteToo => None,
            OnNonEmpty::Refuse => {
                require_emptiness(&self.0.state.store, name)?;
                Some(Bucket::clone(&bucket))
            }
        };
        let deletion = PendingDeletion { must_be_empty, is_claimed: false };
        change.delete(bucket.fact()?);
        change.put(bucket::removal_fact(name)?, &deletion)?;
        change.audit(AuditRecord::new(AuditAction::BucketDelete).bucket(&bucket));
        change.commit()?;
        let missing = || CatalogError::BucketNotFound(name.to_string());
        self.claim_deletion(Some(name)).ok_or_else(missing)
    }

    /// Finishes unclaimed removals: after a start, and after failures. Returns the number of removed objects.
    pub fn resume_deletions(&self) -> Result<u64, CatalogError> {
        let mut removed = 0;
        while let Some(removal) = self.claim_next_deletion() {
            match removal.finish() {
                Ok(objects) => removed += objects,
                Err(CatalogError::NotEmpty(..)) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(removed)
    }

    fn claim_next_deletion(&self) -> Option<BucketDeletion> {
        // A deletion that has just been committed belongs to the change that holds the lock.
        let _change = self.0.begin();
        self.claim_deletion(None)
    }

    fn claim_deletion(&self, name: Option<&BucketName>) -> Option<BucketDeletion> {
        let (name, must_be_empty) = self.0.state.buckets.write().claim_deletion(name)?;
        Some(BucketDeletion { catalog: self.0.clone(), name, must_be_empty, is_done: false })
    }
}

impl BucketDeletion {
    /// Removes the objects, then frees the name; returns the number of objects, without derived ones. Blocks on the
    /// disk, for long if there are many objects. A bucket that had to be empty and is not is restored:
    /// [`CatalogError::NotEmpty`].
    pub fn finish(mut self) -> Result<u64, CatalogError> {
        let (store, fact) = (&self.catalog.state.store, bucket::removal_fact(&self.name)?);
        if let Some(bucket) = &self.must_be_empty
            && let Err(occupied) = require_emptiness(store, &self.name)
        {
            let mut change = self.catalog.begin();
            change.put(bucket.fact()?, bucket)?;
            change.delete(fact);
            let entry = AuditRecord::new(AuditAction::BucketCreate).bucket(bucket);
            change.audit(entry.detail("an upload restored it during its deletion"));
            change.commit()?;
            drop(change);
            self.is_done = true;
            return Err(occupied);
        }
        let removed = remove_objects(store, &self.name)?;
        self.catalog.webhooks().delete_all_of(&self.name)?;
        self.catalog.shared_links().delete_all_of(&self.name)?;
        self.catalog.usage().delete_of(&self.name)?;
        let mut change = self.catalog.begin();
        change.delete(fact);
        change.commit()?;
        drop(change);
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
        self.catalog.state.buckets.write().release_deletion(&self.name);
    }
}

impl Buckets<'_> {
    /// Fails if a bucket with object lock is not empty.
    pub(super) fn require_no_locked_objects(&self, name: &BucketName) -> Result<(), CatalogError> {
        match self.require(name)?.object_lock {
            Some(_) => require_emptiness(&self.0.state.store, name),
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
