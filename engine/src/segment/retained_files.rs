//! Files of retained segments: how long they exist, and their removal.
//!
//! Guarantees: a file is removed before the index drops its segment. Non-goals: the list of retained segments.

use std::io;

use super::retention::RetainedStats;
use super::set::SegmentSet;
use crate::format::{RetainedSegment, SegmentClass, SegmentId};

impl SegmentSet {
    /// Releases a big segment that no record refers to: it is removed, or retained if the index has recorded that.
    pub(crate) fn retain_or_release(&self, id: SegmentId, noted: Option<RetainedSegment>) {
        let Some(noted) = noted else { return self.retire(id, SegmentClass::Big) };
        let now_ms = self.clock().unix_ms();
        // Clamps times of a clock that was ahead, so that they do not extend the retention.
        let retained = RetainedSegment { ended_ms: noted.ended_ms.min(now_ms), ..noted };
        if self.retained.window_ms > now_ms.saturating_sub(retained.ended_ms) {
            self.retained.lock().insert(id, retained);
        } else {
            self.release(&[id]);
        }
    }

    /// Loads the retained segments recorded in the index; existing files are retained for the rest of their window.
    pub(crate) fn restore_retained(&self, noted: Vec<(SegmentId, RetainedSegment)>) {
        for (id, noted) in noted {
            let file = self.disk().open(&id.path(SegmentClass::Big));
            match file {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    self.retained.lock().released.push(id);
                }
                _ => self.retain_or_release(id, Some(noted)),
            }
        }
    }

    /// Returns whether the file of a big segment is retained although its object was deleted.
    pub(crate) fn is_retained(&self, id: SegmentId) -> bool {
        self.retained.lock().by_id.contains_key(&id)
    }

    /// Returns the time until which the segment is retained if space does not become short, in milliseconds since
    /// 1970.
    pub(crate) fn retained_until_ms(&self, id: SegmentId) -> Option<u64> {
        let window_ms = self.retained.window_ms;
        let state = self.retained.lock();
        state.by_id.get(&id).map(|retained| retained.ended_ms.saturating_add(window_ms))
    }

    /// Returns the statistics of retained segments.
    pub(crate) fn retained_stats(&self) -> RetainedStats {
        let state = self.retained.lock();
        let first = state.by_end.first().map(|(ended_ms, _)| *ended_ms);
        RetainedStats {
            segments: state.by_id.len() as u64,
            bytes: state.bytes,
            next_release_ms: first.map(|ended| ended.saturating_add(self.retained.window_ms)),
        }
    }

    /// Removes the files whose retention has expired.
    pub(crate) fn release_due(&self) {
        let window_ms = self.retained.window_ms;
        let mut now_ms = None;
        let due = self.retained.take(|retained| {
            let now_ms = *now_ms.get_or_insert_with(|| self.clock().unix_ms());
            now_ms.saturating_sub(retained.ended_ms) < window_ms
        });
        self.release(&due);
    }

    /// Removes the oldest segments until `wanted` bytes are reclaimed or none is left; returns the bytes reclaimed.
    pub(crate) fn release_bytes(&self, wanted: u64) -> u64 {
        let mut given_back = 0_u64;
        let chosen = self.retained.take(|retained| {
            let is_enough = given_back >= wanted;
            given_back += if is_enough { 0 } else { retained.bytes };
            is_enough
        });
        self.release(&chosen);
        given_back
    }

    /// Takes the segments whose files were removed since the last call, to be dropped from the index.
    pub(crate) fn take_released(&self) -> Vec<SegmentId> {
        std::mem::take(&mut self.retained.lock().released)
    }

    /// Removes the files of segments that are no longer retained, and queues them for removal from the index.
    pub(crate) fn release(&self, ids: &[SegmentId]) {
        for id in ids {
            self.retire(*id, SegmentClass::Big);
        }
        // After the names are removed: a checkpoint that drops the entries syncs the removal first.
        self.retained.lock().released.extend(ids);
    }
}
