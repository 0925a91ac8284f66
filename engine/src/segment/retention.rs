//! Retention of big segments after their object was deleted or overwritten, for undelete.
//!
//! Guarantees: a segment is retained for the retention window, or until space is needed; the oldest is released
//! first. This state is derived from the index and the existing files, so it survives crashes: the index drops a
//! segment after its file was removed, never before.
//! Non-goals: the length of the window, and the detection of low space.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::format::{RetainedSegment, SegmentId};

/// Retained segments of an open store.
#[derive(Default)]
pub(super) struct RetainedSegments {
    pub(super) window_ms: u64,
    state: Mutex<State>,
}

#[derive(Default)]
pub(super) struct State {
    pub(super) by_id: BTreeMap<SegmentId, RetainedSegment>,
    pub(super) by_end: BTreeSet<(u64, SegmentId)>,
    pub(super) bytes: u64,
    /// Segments whose files were removed since the last index update.
    pub(super) released: Vec<SegmentId>,
}

/// Statistics of retained segments: files of deleted or replaced large objects.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RetainedStats {
    /// Number of retained segments.
    pub segments: u64,
    /// Total size of retained segments in bytes.
    pub bytes: u64,
    /// Time at which the next retained segment expires, in milliseconds since 1970; `None` if there is none.
    pub next_release_ms: Option<u64>,
}

impl RetainedSegments {
    pub(super) fn new(window_ms: u64) -> Self {
        Self { window_ms, state: Mutex::default() }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Removes the oldest segments from this list until `is_enough` returns true, and returns them.
    pub(super) fn take(
        &self,
        mut is_enough: impl FnMut(&RetainedSegment) -> bool,
    ) -> Vec<SegmentId> {
        let mut state = self.lock();
        let mut taken = Vec::new();
        while let Some((ended_ms, id)) = state.by_end.first().copied() {
            let Some(retained) = state.by_id.get(&id).copied() else { break };
            if is_enough(&retained) {
                break;
            }
            state.by_end.remove(&(ended_ms, id));
            state.by_id.remove(&id);
            state.bytes -= retained.bytes;
            taken.push(id);
        }
        taken
    }
}

impl State {
    pub(super) fn insert(&mut self, id: SegmentId, retained: RetainedSegment) {
        if self.by_id.insert(id, retained).is_none() {
            self.by_end.insert((retained.ended_ms, id));
            self.bytes += retained.bytes;
        }
    }
}
