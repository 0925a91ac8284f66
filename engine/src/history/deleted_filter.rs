//! Filters of records in the log: LSN ranges, and deleted objects.

use crate::name::{BucketName, FolderKey};

/// Range of LSNs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LsnRange {
    /// Exclusive lower bound.
    pub after_lsn: u64,
    /// Inclusive upper bound.
    pub through_lsn: u64,
}

impl LsnRange {
    /// All LSNs.
    pub const ALL: Self = Self { after_lsn: 0, through_lsn: u64::MAX };

    /// Returns the range after this LSN.
    pub fn after(after_lsn: u64) -> Self {
        Self { after_lsn, ..Self::ALL }
    }
}

/// Filter of a listing of deleted objects.
#[derive(Clone, Debug)]
pub struct DeletedFilter {
    /// Bucket of the objects.
    pub bucket: BucketName,
    /// Folder of the objects, including its subfolders; the root is the whole bucket.
    pub folder: FolderKey,
    /// Time of the earliest deletion to include, in milliseconds since 1970.
    pub since_ms: u64,
    /// LSN range of the deletions: an object is left out if its last deletion is after the range. Versions put before
    /// the range are left out.
    pub span: LsnRange,
}
