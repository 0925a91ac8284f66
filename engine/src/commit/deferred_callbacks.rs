//! Deferred commit callbacks: large groups are acknowledged after the next write starts.
//!
//! A client that is acknowledged sends its next body, and receiving that body uses a processor. If all clients of a
//! group were acknowledged at once, they would compete for processors with the committer, which must write the next
//! group, and the disk would be idle. The callbacks of a large group therefore wait until the next group, if there is
//! one, is being written.
//!
//! Guarantees: callbacks are called in order, once.
//! Non-goals: the decision how long to defer.

use super::batch::CommitInfo;
use super::queue::CommitCallback;
use crate::error::Result;

/// Batch results with their callbacks.
#[derive(Default)]
pub(super) struct DeferredCallbacks(Vec<(Result<CommitInfo>, CommitCallback)>);

impl DeferredCallbacks {
    /// Adds results.
    pub(super) fn defer(
        &mut self,
        outcomes: impl IntoIterator<Item = (Result<CommitInfo>, CommitCallback)>,
    ) {
        self.0.extend(outcomes);
    }

    /// Calls all callbacks.
    pub(super) fn run_all(&mut self) {
        for (outcome, answer) in self.0.drain(..) {
            answer(outcome);
        }
    }
}
