//! Snapshot of the objects, and subscription to the names that change after it: for caches outside the engine.
//!
//! Guarantees: all reads of a snapshot see the same state; a subscription has every change after its snapshot.
//! Non-goals: what a cache does with the names. The crate `search` has one.

use std::cmp::Ordering;
use std::ops::{Bound, ControlFlow};
use std::sync::Arc;

use crate::error::Result;
use crate::format::{Usage, entry_key};
use crate::index::{self, FolderCursor, FolderPage, Index, Object, View, damaged};
pub use crate::index::{NameChange, Subscription};
use crate::name::{BucketName, FolderKey, ObjectName};

/// Consistent snapshot of the objects of a store. It holds memory of the changes since, so drop it soon.
pub struct Snapshot {
    index: Arc<Index>,
    view: Arc<View>,
}

impl Snapshot {
    /// Takes a snapshot of the current state.
    pub(crate) fn new(index: &Arc<Index>) -> Self {
        Self { index: Arc::clone(index), view: index.view() }
    }

    /// Takes a snapshot, and subscribes to later changes of the names of a bucket.
    pub(crate) fn with_subscription(
        index: &Arc<Index>,
        bucket: &BucketName,
    ) -> (Self, Arc<Subscription>) {
        let (view, subscription) = index.subscribe(bucket);
        (Self { index: Arc::clone(index), view }, subscription)
    }

    /// Returns an object.
    pub fn get(&self, name: &ObjectName) -> Result<Option<Object>> {
        let entry = self.index.checked(|| self.view.entry(name))?;
        Ok(entry.map(|entry| Object { name: name.clone(), entry }))
    }

    /// Lists the direct content of a folder, as [`Store::list_folder`](crate::Store::list_folder).
    pub fn list_folder(
        &self,
        bucket: &BucketName,
        folder: &FolderKey,
        after: Option<&FolderCursor>,
        limit: usize,
    ) -> Result<FolderPage> {
        self.index.checked(|| index::list_folder(&self.view, bucket, folder, after, limit))
    }

    /// Returns the number of objects and of their content bytes in a bucket.
    pub fn bucket_usage(&self, bucket: &BucketName) -> Result<Usage> {
        self.index.checked(|| self.view.bucket_usage(bucket))
    }

    /// Visits the keys below a folder, at any depth, in the order of [`compare_keys`], until `visit` breaks or fails.
    pub fn visit_keys(
        &self,
        bucket: &BucketName,
        folder: &FolderKey,
        mut visit: impl FnMut(&str) -> Result<ControlFlow<()>>,
    ) -> Result<ControlFlow<()>> {
        self.index.checked(|| {
            let range = entry_key::folder_range(bucket, folder);
            for key in self.view.entry_keys(Bound::Included(&range.start), &range.end)? {
                let name = entry_key::decode(&key?).map_err(damaged)?;
                if visit(name.key.as_str())?.is_break() {
                    return Ok(ControlFlow::Break(()));
                }
            }
            Ok(ControlFlow::Continue(()))
        })
    }
}

/// Compares two keys of one bucket in the order of the index: a folder's content is contiguous, and folders precede
/// files.
pub fn compare_keys(left: &str, right: &str) -> Ordering {
    entry_key::order(left, right)
}
