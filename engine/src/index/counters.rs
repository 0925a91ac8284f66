//! The exact counters of buckets and of their top-level folders: one of each, and pages of them.
//!
//! Both are rows of one kind, under what the keys of the objects in them begin with: a bucket is its own root folder.
//! So the row of a bucket lies before those of its folders, and these by name.
//! Never here: counting, which goes with the change of the entry (`view.rs`).

use std::ops::Bound;

use super::audit::END_OF_KEYS;
use super::tables::damaged;
use super::view::View;
use crate::error::Result;
use crate::format::{Malformed, Usage, entry_key};
use crate::limits;
use crate::name::{BucketName, FolderKey};

/// A page of the top-level folders of a bucket.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UsagePage {
    /// Those that hold something, in byte order of their names, and what they hold.
    pub folders: Vec<(FolderKey, Usage)>,
    /// Whether there are more after the last of them.
    pub more: bool,
}

impl View {
    /// The counters of a bucket; zeros where nothing is.
    pub(crate) fn bucket_usage(&self, bucket: &BucketName) -> Result<Usage> {
        self.folder_usage(bucket, &FolderKey::root())
    }

    /// The counters of a top-level folder, or of the root; zeros where nothing is.
    pub(crate) fn folder_usage(&self, bucket: &BucketName, folder: &FolderKey) -> Result<Usage> {
        self.usage_at(&entry_key::folder_prefix(bucket, folder))
    }

    /// All buckets with something in them, and their counters.
    pub(crate) fn buckets(&self) -> Result<Vec<(BucketName, Usage)>> {
        let mut all = Vec::new();
        let mut from = Vec::new();
        while let Some(row) = self.usages(Bound::Included(&from), &END_OF_KEYS)?.next() {
            let (key, usage) = row?;
            let (bucket, folder) = entry_key::decode_prefix(&key).map_err(damaged)?;
            if !folder.is_root() {
                // Whatever lies in a folder is counted in its bucket too.
                return Err(damaged(Malformed::Count));
            }
            from = entry_key::after_folder(&bucket, &folder);
            all.push((bucket, usage));
        }
        Ok(all)
    }

    /// Top-level folders of a bucket, after one of them, or after where it would be. At most
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
