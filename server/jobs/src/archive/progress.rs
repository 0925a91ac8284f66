//! Progress reporting of an export or import.
//!
//! Non-goals: the work.

use std::ops::ControlFlow;

use engine::Error;
use engine::progress::{ProgressCallback, WorkProgress};

/// Observed work.
pub(super) struct ProgressReporter<'w> {
    watch: &'w mut ProgressCallback<'w>,
    progress: WorkProgress,
}

impl<'w> ProgressReporter<'w> {
    pub(super) fn new(
        watch: &'w mut ProgressCallback<'w>,
        total_bytes: u64,
        total_items: u64,
    ) -> Self {
        let progress = WorkProgress { total_bytes, total_items, ..WorkProgress::default() };
        Self { watch, progress }
    }

    /// Sets the position in the source.
    pub(super) fn read_to(&mut self, bytes: u64) -> Result<(), Error> {
        self.progress.done_bytes = bytes;
        self.check_cancelled()
    }

    /// Adds processed bytes.
    pub(super) fn add_bytes(&mut self, bytes: u64) -> Result<(), Error> {
        self.progress.done_bytes += bytes;
        self.check_cancelled()
    }

    /// Counts a processed file.
    pub(super) fn add_item(&mut self) -> Result<(), Error> {
        self.progress.done_items += 1;
        self.check_cancelled()
    }

    /// Reports the progress, and checks for cancellation.
    pub(super) fn check_cancelled(&mut self) -> Result<(), Error> {
        match (self.watch)(self.progress) {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(()) => Err(Error::Cancelled),
        }
    }
}
