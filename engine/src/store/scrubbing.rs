//! Scrubbing, and the damage that is known.

use std::ops::ControlFlow;
use std::sync::PoisonError;
use std::time::Duration;

use super::Store;
use crate::error::Result;
use crate::index::DamageList;
use crate::progress::Watch;
use crate::scrub::ScrubReport;

impl Store {
    /// Reads everything in the store and checks it, as fast as it goes. What is found stands in the report, and in
    /// [`Store::damage`] from then on. Waits for the disk. [`Error::Cancelled`](crate::Error::Cancelled) when `watch`
    /// stops it, or the store is closed.
    pub fn scrub(&self, watch: &mut Watch<'_>) -> Result<ScrubReport> {
        self.0.scrubbed.scrub(&mut |progress| match self.0.threads.are_ending() {
            true => ControlFlow::Break(()),
            false => watch(progress),
        })
    }

    /// When it was opened, in milliseconds since 1970: damage with an earlier time was known before.
    pub fn opened_ms(&self) -> u64 {
        self.0.opened_ms
    }

    /// All damage that is known: found when the store was opened, by a scrub, or by reading an object; now, or at an
    /// earlier opening. Looks at the index only.
    pub fn damage(&self) -> Result<DamageList> {
        self.0.scrubbed.gather()?;
        Ok(self.0.index.damage())
    }

    /// Takes one step of the scrub that goes on beside the store's use, if it is time to, and says how long to wait
    /// until the next. For stores without threads.
    #[doc(hidden)]
    pub fn step_scrub(&self) -> Result<Duration> {
        let mut scrubber = self.0.scrubber.lock().unwrap_or_else(PoisonError::into_inner);
        scrubber.step(&|| false)
    }
}
