//! Names of the records of checked segments: a store with few names needs no scan for them.
//!
//! Guarantees: memory is bounded by the names of a pass.
//! Non-goals: records of broken groups that only the footer contains.

use std::sync::{Mutex, MutexGuard, PoisonError};

use super::name_state::{ByName, NameState, SegmentOffset, add_newest, newest_of};
use crate::format::Record;

/// Names from all workers.
pub(super) struct WalkedNames {
    /// Names; `None` once there are too many for one pass.
    known: Mutex<Option<ByName<NameState>>>,
    /// Number of names that do not fit in one pass.
    names_max: u64,
}

impl WalkedNames {
    /// Creates an empty set for passes of fewer than `names_max` names.
    pub(super) fn new(names_max: u64) -> Self {
        Self { known: Mutex::new(Some(ByName::default())), names_max }
    }

    /// Returns the number of passes that this number of records takes.
    pub(super) fn passes(&self, records: u64) -> u64 {
        records / self.names_max + 1
    }

    /// Adds a record.
    pub(super) fn add(&self, record: &Record, at: SegmentOffset, applied_lsn: u64) {
        if self.lock().is_none() {
            return;
        }
        let Some((hash, newest)) = newest_of(record, at) else { return };
        let mut names = self.lock();
        if let Some(known) = names.as_mut() {
            add_newest(known, hash, newest, applied_lsn);
            if known.len() as u64 >= self.names_max {
                *names = None;
            }
        }
    }

    /// Takes the names, if they are complete.
    pub(super) fn take(&self) -> Option<ByName<NameState>> {
        self.lock().take()
    }

    fn lock(&self) -> MutexGuard<'_, Option<ByName<NameState>>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
