//! Object versions (S3 API).
//!
//! The current version of a key is the object of that name, as in every bucket. Noncurrent versions and delete markers
//! are objects of an internal bucket that no request can address: to compaction they are live objects. Every change of
//! objects in a versioned bucket commits its batch through `replaced`, which adds a copy of the replaced version to
//! the same batch.
//!
//! ```text
//! names      name of a noncurrent version: bucket, key and its position among the versions of the key
//! mark       version mark in the attributes of an object
//! replaced   batches that retain the versions they replace
//! stack      the versions of a key, and the removal of one
//! listing    pages of the versions of a bucket
//! ```
//!
//! Guarantees: an acknowledged version stays until it is removed by its id, or with its bucket; the state of a key
//! changes in one batch; a bucket that was never versioned costs no index lookup. Non-goals: authorization.

pub mod limits;
mod listing;
mod mark;
mod names;
mod replaced;
mod stack;

use engine::name::NameError;
use engine::{Batch, BucketName, FolderKey, Store, Usage};
use serde::{Deserialize, Serialize};

pub use self::listing::{VersionPage, VersionsQuery, list};
pub use self::mark::{VersionId, id_of};
pub use self::names::key_of;
pub use self::replaced::marker_of;
pub use self::replaced::{Absent, Rules, retain_replaced_versions};
pub use self::stack::{Promoted, Removal, Version, find, latest, removal};

/// Versioning state of a bucket that is or was versioned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Versioning {
    pub state: VersioningState,
    /// LSN of the last record when it was first enabled: earlier objects are the version `null`.
    pub after_lsn: u64,
}

/// State of versioning.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum VersioningState {
    Enabled,
    /// New objects are the version `null`; existing versions stay.
    Suspended,
}

/// Returns the number of noncurrent versions and delete markers of a bucket, and their bytes.
pub fn usage(store: &Store, bucket: &BucketName) -> engine::Result<Usage> {
    let Ok((internal, folder)) = folder_of(bucket) else { return Ok(Usage::default()) };
    Ok(store.folder_usage(&internal, &folder)?.unwrap_or_default())
}

/// Removes the noncurrent versions and delete markers of a bucket; returns their number. Blocks on the disk.
pub fn remove_all(store: &Store, bucket: &BucketName) -> engine::Result<u64> {
    let Ok((internal, folder)) = folder_of(bucket) else { return Ok(0) };
    let mut removed = 0;
    loop {
        let page =
            store.list_keys(&internal, folder.as_str(), None, engine::limits::LIST_PAGE_MAX)?;
        if page.objects.is_empty() {
            return Ok(removed);
        }
        let names = page.objects.iter().map(|object| object.name().clone());
        removed += store.commit(names.fold(Batch::new(), Batch::delete))?.deleted_count as u64;
    }
}

fn folder_of(bucket: &BucketName) -> Result<(BucketName, FolderKey), NameError> {
    Ok((names::bucket()?, FolderKey::parse(&names::folder(bucket))?))
}
