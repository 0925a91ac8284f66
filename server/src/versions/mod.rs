//! Versions of objects, as S3 has them.
//!
//! The current version of a key is the object of that name, as in every bucket. Noncurrent versions and delete markers
//! are objects of an internal bucket that no request can address: compaction keeps them as what they are, live objects.
//! Whatever puts or deletes an object of a bucket with versions commits its batch through [`keeping`], which adds to
//! the same batch a copy of the version that is replaced.
//!
//! ```text
//! names      the name of a noncurrent version: bucket, key and its place among the versions of the key
//! mark       what the attributes of an object say about its version
//! keeping    a batch that keeps what it replaces
//! stack      the versions of a key, and how one is removed
//! listing    the versions of a bucket in pages
//! ```
//!
//! Guarantees: a version that was acknowledged stays until it is removed by its id, or with its bucket; the state of a
//! key changes in one batch; a bucket that never had versions costs no look at the index. Non-goals: who may ask.

mod keeping;
#[cfg(feature = "s3")]
mod listing;
mod mark;
mod names;
#[cfg(feature = "s3")]
mod stack;

use engine::{Batch, BucketName, FolderKey, NameError, Store, Usage, limits};
use serde::{Deserialize, Serialize};

#[cfg(feature = "s3")]
pub(crate) use self::keeping::marker_of;
pub(crate) use self::keeping::{Absent, Rules, keeping};
#[cfg(feature = "s3")]
pub(crate) use self::listing::{VersionPage, VersionsQuery, list};
#[cfg(feature = "s3")]
pub(crate) use self::mark::{VersionId, id_of};
#[cfg(feature = "s3")]
pub(crate) use self::names::key_of;
#[cfg(feature = "s3")]
pub(crate) use self::stack::{Promoted, Removal, Version, find, latest, removal};

/// Versioning of a bucket that has it, or had it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Versioning {
    pub state: VersioningState,
    /// The last record of the log when it was first enabled: objects until then are the version `null`.
    pub after_lsn: u64,
}

/// Whether new objects get a version of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum VersioningState {
    Enabled,
    /// New objects are the version `null`; the versions that exist stay.
    Suspended,
}

/// The noncurrent versions and delete markers of a bucket: how many, and their bytes.
pub(crate) fn usage(store: &Store, bucket: &BucketName) -> engine::Result<Usage> {
    let Ok((internal, folder)) = folder_of(bucket) else { return Ok(Usage::default()) };
    Ok(store.folder_usage(&internal, &folder)?.unwrap_or_default())
}

/// Removes the noncurrent versions and delete markers of a bucket; returns how many. Waits for the disk.
pub(crate) fn remove_all(store: &Store, bucket: &BucketName) -> engine::Result<u64> {
    let Ok((internal, folder)) = folder_of(bucket) else { return Ok(0) };
    let mut removed = 0;
    loop {
        let page = store.list_keys(&internal, folder.as_str(), None, limits::LIST_PAGE_MAX)?;
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
