//! Big segments whose objects are gone and whose files stay for a while, so that the objects can come back.
//!
//! Promises: one stays for the window, or until room is needed, whichever is first; what has stayed longest goes first.
//! What is known here follows from the index and from which files are there, so losing it loses nothing: the index
//! forgets a segment after its file is gone, never before.
//! Never here: how long the window is, and when room is short.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::set::SegmentSet;
use crate::format::{Retained, SegmentClass, SegmentId};

/// The retained segments of an open store.
#[derive(Default)]
pub(super) struct RetainedSegments {
    window_ms: u64,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    by_id: BTreeMap<SegmentId, Retained>,
    by_end: BTreeSet<(u64, SegmentId)>,
    bytes: u64,
    /// Those whose files are gone since the index was told last.
    released: Vec<SegmentId>,
}

/// How much is retained.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RetainedStats {
    /// Files of deleted or replaced objects.
    pub segments: u64,
    /// Their bytes.
    pub bytes: u64,
    /// When the first of them goes by itself. Milliseconds since 1970.
    pub next_release_ms: Option<u64>,
}

impl RetainedSegments {
    pub(super) fn new(window_ms: u64) -> Self {
        Self { window_ms, state: Mutex::default() }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes out those that are chosen, the one that has stayed longest first, until `is_enough` says so.
    fn take(&self, mut is_enough: impl FnMut(&Retained) -> bool) -> Vec<SegmentId> {
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
    fn insert(&mut self, id: SegmentId, retained: Retained) {
        if self.by_id.insert(id, retained).is_none() {
            self.by_end.insert((retained.ended_ms, id));
            self.bytes += retained.bytes;
        }
    }
}

impl SegmentSet {
    /// No record names this big segment any more: it goes, or stays for a while where the index has noted that.
    pub(crate) fn let_go(&self, id: SegmentId, noted: Option<Retained>) {
        let Some(noted) = noted else { return self.retire(id, SegmentClass::Big) };
        let now_ms = self.clock().unix_ms();
        // Times of a clock that was ahead keep nothing for longer.
        let retained = Retained { ended_ms: noted.ended_ms.min(now_ms), ..noted };
        if self.retained.window_ms > now_ms.saturating_sub(retained.ended_ms) {
            self.retained.lock().insert(id, retained);
        } else {
            self.release(&[id]);
        }
    }

    /// Takes up again what the index says is retained: what is still there stays for the rest of its time.
    pub(crate) fn take_up_retained(&self, noted: Vec<(SegmentId, Retained)>) {
        for (id, noted) in noted {
            let file = self.disk().open(&id.path(SegmentClass::Big));
            match file {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    self.retained.lock().released.push(id);
                }
                _ => self.let_go(id, Some(noted)),
            }
        }
    }

    /// Whether the file of a big segment stays for a while although its object is gone.
    pub(crate) fn is_retained(&self, id: SegmentId) -> bool {
        self.retained.lock().by_id.contains_key(&id)
    }

    /// Until when it stays, if room does not become short.
    pub(crate) fn retained_until_ms(&self, id: SegmentId) -> Option<u64> {
        let window_ms = self.retained.window_ms;
        let state = self.retained.lock();
        state.by_id.get(&id).map(|retained| retained.ended_ms.saturating_add(window_ms))
    }

    /// How much is retained.
    pub(crate) fn retained_stats(&self) -> RetainedStats {
        let state = self.retained.lock();
        let first = state.by_end.first().map(|(ended_ms, _)| *ended_ms);
        RetainedStats {
            segments: state.by_id.len() as u64,
            bytes: state.bytes,
            next_release_ms: first.map(|ended| ended.saturating_add(self.retained.window_ms)),
        }
    }

    /// Removes the files whose time is over.
    pub(crate) fn release_due(&self) {
        let window_ms = self.retained.window_ms;
        let mut now_ms = None;
        let due = self.retained.take(|retained| {
            let now_ms = *now_ms.get_or_insert_with(|| self.clock().unix_ms());
            now_ms.saturating_sub(retained.ended_ms) < window_ms
        });
        self.release(&due);
    }

    /// Removes what has stayed longest, until so many bytes are given back or nothing is left. Tells how many were.
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

    /// The segments whose files are gone since this was asked last: the index is to forget them.
    pub(crate) fn take_released(&self) -> Vec<SegmentId> {
        std::mem::take(&mut self.retained.lock().released)
    }

    /// Removes the files of what is not to come back, and tells the index.
    pub(crate) fn release(&self, ids: &[SegmentId]) {
        for id in ids {
            self.retire(*id, SegmentClass::Big);
        }
        // After their names are gone: a checkpoint that forgets them syncs that first.
        self.retained.lock().released.extend(ids);
    }
}
