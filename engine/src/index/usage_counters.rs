//! Exact usage counters of buckets and top-level folders: single lookups and pages.
//!
//! Both are rows of the same table, keyed by the common prefix of their objects' keys; a bucket is its own root
//! folder. The row of a bucket precedes those of its folders, which are ordered by name.
//!
//! Non-goals: counting, which is part of changing an entry (`view.rs`).

use std::ops::Bound;

use super::background_verify::END_OF_KEYS;
use super::tables::damaged;
use super::view::View;
use crate::error::Result;
use crate::format::{Malformed, Usage, entry_key};
use crate::limits;
use crate::name::{BucketName, FolderKey};

/// Page of the top-level folders of a bucket.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UsagePage {
    /// Nonempty folders in byte order of their names, with their usage.
    pub folders: Vec<(FolderKey, Usage)>,
    /// Whether there are more folders after the last one.
    pub more: bool,
}

impl View {
    /// Returns the counters of a bucket; zeros if it is empty.
    pub(crate) fn bucket_usage(&self, bucket: &BucketName) -> Result<Usage> {
        self.folder_usage(bucket, &FolderKey::root())
    }

    /// Returns the counters of a top-level folder, or of the root; zeros if it is empty.
    pub(crate) fn folder_usage(&self, bucket: &BucketName, folder: &FolderKey) -> Result<Usage> {
        self.usage_at(&entry_key::folder_prefix(bucket, folder))
    }

    /// Returns all nonempty buckets with their counters.
    pub(crate) fn buckets(&self) -> Result<Vec<(BucketName, Usage)>> {
        let mut all = Vec::new();
        let mut from = Vec::new();
        while let Some(row) = self.usages(Bound::Included(&from), &END_OF_KEYS)?.next() {
            let (key, usage) = row?;
            let (bucket, folder) = entry_key::decode_prefix(&key).map_err(damaged)?;
            if !folder.is_root() {
                // Objects in a folder are counted in its bucket too.
                return Err(damaged(Malformed::Count));
            }
            from = entry_key::after_folder(&bucket, &folder);
            all.push((bucket, usage));
        }
        Ok(all)
    }

    /// Returns top-level folders of a bucket after a given name, which need not exist. At most
    /// [`limits::LIST_PAGE_MAX`].
    pub(crate) fn folder_usages(
        &self,
        bucket: &BucketName,
        after: Option<&FolderKey>,
        limit: usize,
    ) -> Result<UsagePage> {
        let root = FolderKey::root();
        let from = entry_key::folder_prefix(bucket, after.unwrap_or(&root));
        let to = entry_key::after_folder(bucket, &root);
        let limit = limit.min(limits::LIST_PAGE_MAX);
        let mut page = UsagePage::default();
        for row in self.usages(Bound::Excluded(&from), &to)? {
            let (key, usage) = row?;
            if page.folders.len() == limit {
                page.more = true;
                break;
            }
            let (_, folder) = entry_key::decode_prefix(&key).map_err(damaged)?;
            page.folders.push((folder, usage));
        }
        Ok(page)
    }
}
