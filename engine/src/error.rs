//! Error type of the engine.
//!
//! Guarantees: damage on disk is always [`Error::Corrupt`] with file and offset; a failed precondition is
//! [`Error::Conflict`] with its name.
//! Non-goals: status codes.

use std::fmt;
use std::io;
use std::sync::Arc;

use crate::disk::Disk;
use crate::format::Malformed;
use crate::name::{FactName, ObjectName};

/// Result of an engine call.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Error of an engine call. Cheap to clone, because one failure may be returned to many waiting callers.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Error {
    /// Failed disk operation. After a failed write of the log the store is read-only: see
    /// [`Store::health`](crate::Store::health).
    Io {
        /// Operation that failed, such as "reading log/0000000001.seg".
        doing: String,
        /// Error of the disk.
        source: Arc<io::Error>,
    },
    /// Corrupt bytes on disk. None of them were returned.
    Corrupt(Corruption),
    /// Precondition of a batch that did not hold. Nothing of the batch was committed.
    Conflict(Conflict),
    /// Store that is read-only until it is reopened, with the reason. Reads are not affected.
    ReadOnly(Arc<str>),
    /// Too little free disk space for the operation. Reads and stored data are not affected.
    NoSpace,
    /// Request or option beyond a limit, which the text names.
    TooLarge(&'static str),
    /// Too many batches queued, or a checkpoint that takes too long. Retry later.
    Busy,
    /// Store that is already open, with the id of the process if known.
    InUse(Option<u32>),
    /// Folder without a store, or with one that this version or this operation cannot use, with the reason.
    NotAStore(String),
    /// Remote store that cannot be reached, or did not confirm a write in time. The write is durable on this machine
    /// unless it was rejected before.
    RemoteUnavailable(Arc<str>),
    /// Store that was closed.
    Closed,
    /// Operation cancelled by the caller. Completed parts are consistent.
    Cancelled,
}

/// Content of the I/O error of a file whose bytes are in the remote store, which cannot be reached.
#[derive(Debug)]
pub(crate) struct RemoteFailure(pub(crate) String);

impl fmt::Display for RemoteFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for RemoteFailure {}

/// Corrupt location: file, offset, reason, and the affected object if known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Corruption {
    /// Path of the file, relative to the data folder.
    pub file: String,
    /// Offset in the file, in bytes.
    pub offset: u64,
    /// Format rule that the bytes violate.
    pub reason: Malformed,
    /// Affected object, if known.
    pub object: Option<ObjectName>,
}

/// Precondition that did not hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Conflict {
    /// The object exists, but must be absent.
    KeyPresent(ObjectName),
    /// The object is absent, but must exist.
    KeyMissing(ObjectName),
    /// The object exists, but with another ETag or LSN than required. For a read: it was overwritten or deleted since
    /// its lookup.
    KeyChanged(ObjectName),
    /// The fact exists, but must be absent.
    FactPresent(FactName),
    /// The fact is absent, but must exist.
    FactMissing(FactName),
}

impl Error {
    /// Creates an I/O error with the operation that failed. `StorageFull` becomes [`Error::NoSpace`].
    pub(crate) fn io(doing: impl Into<String>, source: io::Error) -> Self {
        match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Self::NoSpace,
            _ if source.get_ref().is_some_and(|inner| inner.is::<RemoteFailure>()) => {
                Self::remote(doing.into(), &source)
            }
            _ => Self::Io { doing: doing.into(), source: Arc::new(source) },
        }
    }

    /// Creates the error of a folder that could not be locked: [`Error::InUse`] if another process has the lock.
    pub(crate) fn locking(disk: &dyn Disk, source: io::Error) -> Self {
        match source.kind() {
            io::ErrorKind::WouldBlock => Self::InUse(disk.lock_holder()),
            _ => Self::io("locking the data folder", source),
        }
    }

    /// Creates an error of the remote store with the operation that failed.
    pub(crate) fn remote(doing: impl fmt::Display, source: &io::Error) -> Self {
        Self::RemoteUnavailable(format!("{doing}: {source}").into())
    }

    /// Creates a corruption error for a file and offset.
    pub(crate) fn corrupt(file: impl Into<String>, offset: u64, reason: Malformed) -> Self {
        Self::Corrupt(Corruption { file: file.into(), offset, reason, object: None })
    }

    /// Adds the affected object to a corruption error.
    pub(crate) fn about(self, object: &ObjectName) -> Self {
        match self {
            Self::Corrupt(corruption) => {
                Self::Corrupt(Corruption { object: Some(object.clone()), ..corruption })
            }
            other => other,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io { doing, source } => write!(f, "{doing}: {source}"),
            Self::Corrupt(corruption) => corruption.fmt(f),
            Self::Conflict(conflict) => conflict.fmt(f),
            Self::ReadOnly(reason) => write!(f, "the store is read-only: {reason}"),
            Self::NoSpace => write!(f, "no space left on the disk"),
            Self::TooLarge(limit) => write!(f, "too large: {limit}"),
            Self::Busy => write!(f, "too many queued writes"),
            Self::InUse(Some(pid)) => write!(f, "the store is in use by process {pid}"),
            Self::InUse(None) => write!(f, "the store is in use by another process"),
            Self::NotAStore(why) => f.write_str(why),
            Self::RemoteUnavailable(why) => write!(f, "the remote store is unavailable: {why}"),
            Self::Closed => write!(f, "the store is closed"),
            Self::Cancelled => write!(f, "cancelled"),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io { source, .. } => Some(source),
            _ => None,
        }
    }
}

impl fmt::Display for Corruption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(object) = &self.object {
            write!(f, "{object} is corrupt: ")?;
        }
        write!(f, "{} at offset {}: {}", self.file, self.offset, self.reason)
    }
}

impl fmt::Display for Conflict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::KeyPresent(name) => write!(f, "{name} already exists"),
            Self::KeyMissing(name) => write!(f, "{name} does not exist"),
            Self::KeyChanged(name) => write!(f, "{name} was changed concurrently"),
            Self::FactPresent(name) => write!(f, "the fact {name} already exists"),
            Self::FactMissing(name) => write!(f, "the fact {name} does not exist"),
        }
    }
}
