//! How far an export or import has come, told to whoever watches.
//!
//! Never here: what is done.

use std::ops::ControlFlow;

use engine::{Error, Watch, WorkProgress};

/// Work that is watched.
pub(super) struct Work<'w> {
    watch: &'w mut Watch<'w>,
    progress: WorkProgress,
}

impl<'w> Work<'w> {
    pub(super) fn new(watch: &'w mut Watch<'w>, total_bytes: u64, total_items: u64) -> Self {
        let progress = WorkProgress { total_bytes, total_items, ..WorkProgress::default() };
        Self { watch, progress }
    }

    /// The source was read up to here.
    pub(super) fn read_to(&mut self, bytes: u64) -> Result<(), Error> {
        self.progress.done_bytes = bytes;
        self.tell()
    }

    /// So many bytes more are done.
    pub(super) fn add_bytes(&mut self, bytes: u64) -> Result<(), Error> {
        self.progress.done_bytes += bytes;
        self.tell()
    }

    /// One more file is done.
    pub(super) fn add_item(&mut self) -> Result<(), Error> {
        self.progress.done_items += 1;
        self.tell()
    }

    /// Asks whether to go on.
    pub(super) fn tell(&mut self) -> Result<(), Error> {
        match (self.watch)(self.progress) {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(()) => Err(Error::Cancelled),
        }
    }
}
