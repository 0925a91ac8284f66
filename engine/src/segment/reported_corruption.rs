//! Corruption reported by reads, until the scrub records it.
//!
//! Guarantees: memory is bounded; reports of the same location are merged.
//! Non-goals: the severity of the corruption.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use crate::error::{Corruption, Error};
use crate::limits;

/// Corruption reported by reads, by file and offset.
#[derive(Default)]
pub(crate) struct ReportedCorruption(Mutex<BTreeMap<(String, u64), Corruption>>);

impl ReportedCorruption {
    /// Records the corruption of a failed read, up to a limit.
    pub(crate) fn add(&self, error: &Error) {
        let Error::Corrupt(corruption) = error else { return };
        let mut reported = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if reported.len() < limits::DAMAGE_LISTED_MAX {
            let place = (corruption.file.clone(), corruption.offset);
            reported.entry(place).or_insert_with(|| corruption.clone());
        }
    }

    /// Takes the corruption reported since the last call.
    pub(crate) fn take(&self) -> Vec<Corruption> {
        let mut reported = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut *reported).into_values().collect()
    }
}
