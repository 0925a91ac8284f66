//! Scrub API of the store, and known damage.

use std::ops::ControlFlow;
use std::sync::PoisonError;
use std::time::Duration;

use super::Store;
use crate::error::Result;
use crate::index::DamageList;
use crate::progress::ProgressCallback;
use crate::scrub::ScrubReport;

impl Store {
    /// Verifies everything in the store without a rate limit. Waits for the disk.
    ///
    /// Damage is in the report, and in [`Store::damage`] from then on. Fails with
    /// [`Error::Cancelled`](crate::Error::Cancelled) if `watch` stops it, or if the store is closed.
    pub fn scrub(&self, watch: &mut ProgressCallback<'_>) -> Result<ScrubReport> {
        self.0.scrubbed.scrub(&mut |progress| match self.0.threads.are_ending() {
            true => ControlFlow::Break(()),
            false => watch(progress),
        })
    }

    /// Returns the time at which the store was opened, in milliseconds since 1970. Damage found earlier was known
    /// before.
    pub fn opened_ms(&self) -> u64 {
        self.0.opened_ms
    }

    /// Returns all known damage, found by recovery, a scrub or a read, since this or an earlier open. Reads only the
    /// index.
    pub fn damage(&self) -> Result<DamageList> {
        self.0.scrubbed.collect_reported()?;
        Ok(self.0.index.damage())
    }

    /// Performs one step of the background scrub, if due, and returns the time until the next. For stores without
    /// threads.
    #[doc(hidden)]
    pub fn step_scrub(&self) -> Result<Duration> {
        let mut scrubber = self.0.scrubber.lock().unwrap_or_else(PoisonError::into_inner);
        scrubber.step(&|| false)
    }
}
