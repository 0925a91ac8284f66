//! Progress reports and cancellation of long operations.
//!
//! Guarantees: a callback can stop the operation at each call; completed parts remain consistent.
//! Non-goals: the operations, printing.

use std::ops::ControlFlow;

/// Progress of a long operation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WorkProgress {
    /// Bytes read or written so far.
    pub done_bytes: u64,
    /// Total bytes, as far as known yet.
    pub total_bytes: u64,
    /// Segments, objects or files processed so far.
    pub done_items: u64,
    /// Total number of segments, objects or files, as far as known yet.
    pub total_items: u64,
}

/// Progress callback of a long operation; [`ControlFlow::Break`] stops it.
pub type ProgressCallback<'a> = dyn FnMut(WorkProgress) -> ControlFlow<()> + 'a;
