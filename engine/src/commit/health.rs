//! Whether the store takes writes.
//!
//! Promises: the first failure stands until the store is reopened; nothing turns writing back on.

use std::sync::{Arc, OnceLock};

use crate::error::{Error, Result};

/// Whether the store takes writes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Health {
    /// It does.
    Writable,
    /// It does not, for this reason, until it is reopened. Reads go on.
    ReadOnly(Arc<str>),
}

/// The health of an open store, shared by all that write.
#[derive(Default)]
pub(crate) struct HealthState(OnceLock<Arc<str>>);

impl HealthState {
    /// The health now.
    pub(crate) fn get(&self) -> Health {
        self.0.get().map_or(Health::Writable, |reason| Health::ReadOnly(Arc::clone(reason)))
    }

    /// An error when the store takes no writes.
    pub(crate) fn require_writable(&self) -> Result<()> {
        self.0.get().map_or(Ok(()), |reason| Err(Error::ReadOnly(Arc::clone(reason))))
    }

    /// A write failed: no more of them.
    pub(crate) fn fail(&self, error: &Error) {
        let _ = self.0.set(error.to_string().into());
    }
}
