//! Whether the store takes writes.
//!
//! Promises: the first failure stands until the store is reopened; nothing turns writing back on. A full disk is no
//! failure: it passes by itself.

use std::sync::{Arc, OnceLock};

use crate::error::{Error, Result};
use crate::space::Space;

/// Whether the store takes writes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Health {
    /// It does.
    Writable,
    /// Less than the reserve is free. Deletions and facts are taken, bodies are not until there is room again. Reads go
    /// on.
    Full {
        /// What is free.
        free_bytes: u64,
        /// What is to stay free.
        reserve_bytes: u64,
    },
    /// It does not, for this reason, until it is reopened. Reads go on.
    ReadOnly(Arc<str>),
}

/// The health of an open store, shared by all that write.
pub(crate) struct HealthState {
    failed: OnceLock<Arc<str>>,
    space: Arc<Space>,
}

impl HealthState {
    /// Of a store on a disk with this room.
    pub(crate) fn new(space: Arc<Space>) -> Self {
        Self { failed: OnceLock::new(), space }
    }

    /// The health now.
    pub(crate) fn get(&self) -> Health {
        if let Some(reason) = self.failed.get() {
            return Health::ReadOnly(Arc::clone(reason));
        }
        self.space.shortage().map_or(Health::Writable, |shortage| Health::Full {
            free_bytes: shortage.free_bytes,
            reserve_bytes: shortage.reserve_bytes,
        })
    }

    /// The room on the disk.
    pub(crate) fn space(&self) -> &Space {
        &self.space
    }

    /// An error when the store takes no writes at all.
    pub(crate) fn require_writable(&self) -> Result<()> {
        self.failed.get().map_or(Ok(()), |reason| Err(Error::ReadOnly(Arc::clone(reason))))
    }

    /// A write failed: no more of them.
    pub(crate) fn fail(&self, error: &Error) {
        let _ = self.failed.set(error.to_string().into());
    }
}
