//! Event counts of runs, by name.

use std::collections::BTreeMap;
use std::fmt;

/// Counts by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Tally(BTreeMap<&'static str, u64>);

impl Tally {
    /// Counts one event.
    pub(super) fn count(&mut self, what: &'static str) {
        self.count_many(what, 1);
    }

    /// Counts so many events.
    pub(super) fn count_many(&mut self, what: &'static str, times: u64) {
        if times > 0 {
            *self.0.entry(what).or_default() += times;
        }
    }

    /// Returns the count of an event.
    pub(super) fn of(&self, what: &str) -> u64 {
        self.0.get(what).copied().unwrap_or(0)
    }

    /// Adds another tally's counts.
    pub(super) fn add(&mut self, other: &Self) {
        for (what, times) in &other.0 {
            self.count_many(what, *times);
        }
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (what, times) in &self.0 {
            writeln!(f, "{times:>12} {what}")?;
        }
        Ok(())
    }
}
