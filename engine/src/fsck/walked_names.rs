//! Names of the records of checked segments: a store with few names needs no scan for them.
//!
//! Guarantees: memory is bounded by the names of a pass.
//! Non-goals: records of broken groups that only the footer contains.

use std::sync::{Mutex, MutexGuard, PoisonError};

use super::name_state::{
    ByName, NameHash, NameState, NewestRecord, SegmentOffset, add_newest, newest_of,
};
use crate::format::Record;

/// Names that one worker adds together, with their records; `None` once there are too many names.
pub(super) type NameBatch = Option<Vec<(NameHash, NewestRecord)>>;

/// Records per batch.
const BATCH_RECORDS: usize = 256;

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

    /// Makes room for at least this number of names; collects none if they do not fit in one pass.
    pub(super) fn expect(&self, count: u64) {
        let mut names = self.lock();
        let room = usize::try_from(count).ok().filter(|_| count < self.names_max);
        match (names.as_mut(), room) {
            (Some(known), Some(room)) => known.reserve(room),
            _ => *names = None,
        }
    }

    /// Adds a record to a batch, and a full batch to the names.
    pub(super) fn collect(
        &self,
        batch: &mut NameBatch,
        record: &Record,
        at: SegmentOffset,
        applied_lsn: u64,
    ) {
        let Some(records) = batch else { return };
        records.extend(newest_of(record, at));
        if records.len() >= BATCH_RECORDS {
            self.add(batch, applied_lsn);
        }
    }

    /// Adds the records of a batch, and empties it.
    pub(super) fn add(&self, batch: &mut NameBatch, applied_lsn: u64) {
        let mut names = self.lock();
        for (hash, newest) in batch.iter_mut().flat_map(|records| records.drain(..)) {
            let Some(known) = names.as_mut() else { break };
            add_newest(known, hash, newest, applied_lsn);
            if known.len() as u64 >= self.names_max {
                *names = None;
            }
        }
        if names.is_none() {
            *batch = None;
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
