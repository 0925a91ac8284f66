//! redb's storage over a file of ours, so that the index lies on the same disk as everything else.
//!
//! Promises: every call goes straight to the [`DiskFile`], with its promises and its errors.
//! Never here: locks (the store's own covers the index too) and caches (redb has its own).

use std::fmt;
use std::io;
use std::sync::Arc;

use redb::StorageBackend;

use super::DiskFile;

/// A file as redb wants it.
pub struct RedbFile(Arc<dyn DiskFile>);

impl RedbFile {
    /// Lends the file to redb.
    pub fn new(file: Arc<dyn DiskFile>) -> Self {
        Self(file)
    }
}

impl fmt::Debug for RedbFile {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("RedbFile")
    }
}

impl StorageBackend for RedbFile {
    fn len(&self) -> io::Result<u64> {
        self.0.bytes_len()
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.0.read_at(offset, out)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.0.set_len(len)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.0.sync_data()
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.0.write_at(offset, &[data])
    }
}
