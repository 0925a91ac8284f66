//! What can go wrong, said once: what, where, and what now.
//!
//! Promises: damage on disk is always [`Error::Corrupt`] and names file and offset; a refused precondition is
//! [`Error::Conflict`] and names which. Never here: status codes.

use std::fmt;
use std::io;
use std::sync::Arc;

use crate::format::Malformed;
use crate::name::{FactName, ObjectName};

/// The result of an engine call.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why an engine call failed. Cheap to clone: one failure may have many waiters.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Error {
    /// The disk failed. What was being done is said; the store's health tells whether it still takes writes.
    Io {
        /// What was being done, as "reading log/0000000001.seg".
        doing: String,
        /// What the disk said.
        source: Arc<io::Error>,
    },
    /// Bytes on disk are not what was written. Nothing wrong was handed out.
    Corrupt(Corruption),
    /// A precondition of a batch did not hold; nothing of the batch was done.
    Conflict(Conflict),
    /// The store takes no more writes until it is reopened, for the reason given. Reads go on.
    ReadOnly(Arc<str>),
    /// There is no room on the disk. Reads and the store itself are fine.
    NoSpace,
    /// More is asked at once than the store takes: the limit that was met.
    TooLarge(&'static str),
    /// Too many batches wait already. Try again shortly.
    Busy,
    /// Another process has the store open; its process id where it could be read.
    InUse(Option<u32>),
    /// The folder is not a store, or not one that this version reads.
    NotAStore(String),
    /// The store is closed.
    Closed,
    /// Whoever watched long work stopped it. What was done until then is consistent.
    Cancelled,
}

/// Damage: which file, where, what is wrong, and whose bytes they are when that is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Corruption {
    /// The file, relative to the data folder.
    pub file: String,
    /// The offset in it, in bytes.
    pub offset: u64,
    /// What the bytes fail.
    pub reason: Malformed,
    /// The object that they belong to.
    pub object: Option<ObjectName>,
}

/// The precondition that did not hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Conflict {
    /// The key was to be absent and is there.
    KeyPresent(ObjectName),
    /// The key was to be there and is absent.
    KeyMissing(ObjectName),
    /// The key was to hold another version.
    KeyChanged(ObjectName),
    /// The fact was to be absent and is there.
    FactPresent(FactName),
    /// The fact was to be there and is absent.
    FactMissing(FactName),
}

impl Error {
    /// An I/O error with what was being done. `StorageFull` becomes [`Error::NoSpace`].
    pub(crate) fn io(doing: impl Into<String>, source: io::Error) -> Self {
        match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Self::NoSpace,
            _ => Self::Io { doing: doing.into(), source: Arc::new(source) },
        }
    }

    /// Damage in a file at an offset.
    pub(crate) fn corrupt(file: impl Into<String>, offset: u64, reason: Malformed) -> Self {
        Self::Corrupt(Corruption { file: file.into(), offset, reason, object: None })
    }

    /// The same error, naming the object where it is about damage.
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
