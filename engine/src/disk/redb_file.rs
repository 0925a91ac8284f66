//! redb storage backend over a file of the disk abstraction.
//!
//! Guarantees: every call goes directly to the [`DiskFile`], with its guarantees and errors, until one fails. From
//! then on every call fails without reaching the disk: redb stops using a file in the same way, and a new user of
//! the file must have exclusive access.
//! Non-goals: locks (the lock of the store covers the index) and caches (redb has its own).

use std::fmt;
use std::io;
use std::sync::{Arc, OnceLock};

use redb::StorageBackend;

use super::DiskFile;

/// redb storage backend over a file of the disk.
pub struct RedbFile {
    file: Arc<dyn DiskFile>,
    failure: Arc<FileFailure>,
}

/// First error after which redb's file is no longer used, if any.
#[derive(Default)]
pub(crate) struct FileFailure(OnceLock<(FailureKind, io::ErrorKind, String)>);

/// Kind of the first failed call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FailureKind {
    /// Read: the file is unchanged.
    Read,
    /// Write without enough space: the file is unchanged, or in a state that a crash could have left.
    Full,
    /// Other write, or sync: the state of the file is unknown.
    Write,
}

impl FileFailure {
    /// Returns the kind of the failure, if any.
    pub(crate) fn kind(&self) -> Option<FailureKind> {
        self.0.get().map(|(why, ..)| *why)
    }

    /// Returns the error of the disk, if any.
    pub(crate) fn error(&self) -> Option<io::Error> {
        self.0.get().map(|(_, kind, text)| io::Error::new(*kind, text.clone()))
    }
}

impl RedbFile {
    /// Creates a backend over the file.
    pub fn new(file: Arc<dyn DiskFile>) -> Self {
        Self { file, failure: Arc::default() }
    }

    /// Returns a handle that reports whether the file failed.
    pub(crate) fn failure(&self) -> Arc<FileFailure> {
        Arc::clone(&self.failure)
    }

    fn call<T>(
        &self,
        why: impl FnOnce(&io::Error) -> FailureKind,
        call: impl FnOnce(&dyn DiskFile) -> io::Result<T>,
    ) -> io::Result<T> {
        if let Some(error) = self.failure.error() {
            return Err(error);
        }
        call(self.file.as_ref()).inspect_err(|error| {
            let _ = self.failure.0.set((why(error), error.kind(), error.to_string()));
        })
    }
}

fn of_write(error: &io::Error) -> FailureKind {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => FailureKind::Full,
        _ => FailureKind::Write,
    }
}

impl fmt::Debug for RedbFile {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("RedbFile")
    }
}

impl StorageBackend for RedbFile {
    fn len(&self) -> io::Result<u64> {
        self.call(|_| FailureKind::Read, |file| file.bytes_len())
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.call(|_| FailureKind::Read, |file| file.read_at(offset, out))
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.call(of_write, |file| file.set_len(len))
    }

    fn sync_data(&self) -> io::Result<()> {
        self.call(|_| FailureKind::Write, |file| file.sync_data())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.call(of_write, |file| file.write_at(offset, &[data]))
    }
}
