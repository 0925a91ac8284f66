//! How far long work has come, and whether to go on.
//!
//! Promises: who is told may stop the work at each call; what was done until then stays consistent.
//! Never here: what the work is, printing.

use std::ops::ControlFlow;

/// How far long work has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WorkProgress {
    /// Bytes read or written so far.
    pub done_bytes: u64,
    /// Bytes in all, as far as that is known by now.
    pub total_bytes: u64,
    /// Segments, objects or files done so far.
    pub done_items: u64,
    /// Of how many, as far as that is known by now.
    pub total_items: u64,
}

/// Told again and again while long work goes on; [`ControlFlow::Break`] stops it.
pub type Watch<'a> = dyn FnMut(WorkProgress) -> ControlFlow<()> + 'a;
