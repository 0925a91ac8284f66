//! redb's storage over a file of ours, so that the index lies on the same disk as everything else.
//!
//! Promises: every call goes straight to the [`DiskFile`], with its promises and its errors, until one fails. From then
//! on every call fails and none reaches the disk: redb gives a file up in the same way, and whoever opens the file
//! again must be alone with it.
//! Never here: locks (the store's own covers the index too) and caches (redb has its own).

use std::fmt;
use std::io;
use std::sync::{Arc, OnceLock};

use redb::StorageBackend;

use super::DiskFile;

/// A file as redb wants it.
pub struct RedbFile {
    file: Arc<dyn DiskFile>,
    given_up: Arc<GivenUp>,
}

/// Whether a file that redb has was given up, and why.
#[derive(Default)]
pub(crate) struct GivenUp(OnceLock<(Why, io::ErrorKind, String)>);

/// The call that failed first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Why {
    /// A read: the file holds what it held.
    Read,
    /// A write for which there was no room: the file holds what it held, or is as a crash would have left it.
    Full,
    /// Another write, or a sync: nobody knows what the disk holds.
    Write,
}

impl GivenUp {
    /// Why, if it was.
    pub(crate) fn why(&self) -> Option<Why> {
        self.0.get().map(|(why, ..)| *why)
    }

    /// What the disk said, if it was.
    pub(crate) fn error(&self) -> Option<io::Error> {
        self.0.get().map(|(_, kind, text)| io::Error::new(*kind, text.clone()))
    }
}

impl RedbFile {
    /// Lends the file to redb.
    pub fn new(file: Arc<dyn DiskFile>) -> Self {
        Self { file, given_up: Arc::default() }
    }

    /// Tells, from now on, whether the file was given up.
    pub(crate) fn given_up(&self) -> Arc<GivenUp> {
        Arc::clone(&self.given_up)
    }

    fn call<T>(
        &self,
        why: impl FnOnce(&io::Error) -> Why,
        call: impl FnOnce(&dyn DiskFile) -> io::Result<T>,
    ) -> io::Result<T> {
        if let Some(error) = self.given_up.error() {
            return Err(error);
        }
        call(self.file.as_ref()).inspect_err(|error| {
            let _ = self.given_up.0.set((why(error), error.kind(), error.to_string()));
        })
    }
}

fn of_write(error: &io::Error) -> Why {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Why::Full,
        _ => Why::Write,
    }
}

impl fmt::Debug for RedbFile {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("RedbFile")
    }
}

impl StorageBackend for RedbFile {
    fn len(&self) -> io::Result<u64> {
        self.call(|_| Why::Read, |file| file.bytes_len())
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.call(|_| Why::Read, |file| file.read_at(offset, out))
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.call(of_write, |file| file.set_len(len))
    }

    fn sync_data(&self) -> io::Result<()> {
        self.call(|_| Why::Write, |file| file.sync_data())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.call(of_write, |file| file.write_at(offset, &[data]))
    }
}
