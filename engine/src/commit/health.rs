//! Health of the store: writable, full, or read-only after a failure.
//!
//! Guarantees: the first failure is permanent until the store is reopened; nothing re-enables writes. A full disk is
//! not a failure: the state ends when space is available.

use std::sync::{Arc, OnceLock};

use crate::error::{Error, Result};
use crate::free_space::FreeSpace;

/// Whether the store accepts writes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Health {
    /// Accepts all writes.
    Writable,
    /// Free space is below the reserve. Deletions and facts are accepted; bodies are rejected with [`Error::NoSpace`]
    /// until there is space again. Reads are not affected.
    Full {
        /// Free bytes on the disk.
        free_bytes: u64,
        /// Bytes of free space that bodies may not use.
        reserve_bytes: u64,
    },
    /// Rejects all writes, for this reason, until the store is reopened, because a write or sync of the log failed.
    /// Reads are not affected.
    ReadOnly(Arc<str>),
}

/// Health of an open store, shared by all writers.
pub(crate) struct HealthState {
    failed: OnceLock<Arc<str>>,
    space: Arc<FreeSpace>,
}

impl HealthState {
    /// Creates the health of a store on a disk with this free space.
    pub(crate) fn new(space: Arc<FreeSpace>) -> Self {
        Self { failed: OnceLock::new(), space }
    }

    /// Returns the current health.
    pub(crate) fn get(&self) -> Health {
        if let Some(reason) = self.failed.get() {
            return Health::ReadOnly(Arc::clone(reason));
        }
        self.space.shortage().map_or(Health::Writable, |shortage| Health::Full {
            free_bytes: shortage.free_bytes,
            reserve_bytes: shortage.reserve_bytes,
        })
    }

    /// Returns the free-space accounting.
    pub(crate) fn space(&self) -> &FreeSpace {
        &self.space
    }

    /// Fails if the store accepts no writes at all.
    pub(crate) fn require_writable(&self) -> Result<()> {
        self.failed.get().map_or(Ok(()), |reason| Err(Error::ReadOnly(Arc::clone(reason))))
    }

    /// Makes the store read-only after a failed write.
    pub(crate) fn fail(&self, error: &Error) {
        let _ = self.failed.set(error.to_string().into());
    }
}
