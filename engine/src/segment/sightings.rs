//! Damage that reads have met, until somebody notes it.
//!
//! Promises: bounded; meeting the same place again changes nothing. Never here: whether it matters.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use crate::error::{Corruption, Error};
use crate::limits;

/// Damage that reads have met, by file and offset.
#[derive(Default)]
pub(crate) struct Sightings(Mutex<BTreeMap<(String, u64), Corruption>>);

impl Sightings {
    /// A read failed; damage is remembered, unless there is too much of it.
    pub(crate) fn add(&self, error: &Error) {
        let Error::Corrupt(corruption) = error else { return };
        let mut sightings = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if sightings.len() < limits::DAMAGE_LISTED_MAX {
            let place = (corruption.file.clone(), corruption.offset);
            sightings.entry(place).or_insert_with(|| corruption.clone());
        }
    }

    /// Takes what was met since the last time.
    pub(crate) fn take(&self) -> Vec<Corruption> {
        let mut sightings = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut *sightings).into_values().collect()
    }
}
