//! The index: what the log says, ready to be looked up.
//!
//! Two layers make one view. At the bottom lies redb, a checkpoint of the log up to some position; over it lie the
//! changes since, in memory: the active overlay, which the committer publishes after each group, and at times a frozen
//! one, which a checkpoint is draining. Acknowledgements never wait for redb.
//!
//! Promises: a [`View`] is one moment: it never changes under its reader, and shows each batch whole or not at all.
//! Losing the index costs time only: it is rebuilt from the segments.
//! Never here: what a segment holds.

mod audit;
mod checkpoint;
mod contents;
mod listing;
mod merge;
mod notes;
mod overlay;
mod plain_walk;
mod tables;
mod view;

use std::sync::{Arc, Condvar, Mutex, PoisonError, RwLock};
use std::time::Duration;

use self::audit::Condemned;
pub use self::listing::{FolderCursor, FolderPage, GroupPage, Grouping, KeyPage, Object};
pub(crate) use self::listing::{list_folder, list_groups, list_keys};
pub use self::notes::DamageList;
use self::notes::Notes;
pub(crate) use self::overlay::Overlay;
use self::tables::Tables;
pub(crate) use self::tables::{INDEX_FILE, damaged};
pub(crate) use self::view::{Fact, Moved, Replaced, View};
use crate::error::Result;
use crate::format::AppliedPosition;

/// The index of an open store.
pub(crate) struct Index {
    tables: Tables,
    published: RwLock<Arc<View>>,
    /// Held by whoever publishes: the committer after a group, the checkpoint when it freezes and when it is done.
    publishing: Mutex<()>,
    /// Held by the one checkpoint that drains.
    draining: Mutex<()>,
    /// Told when it is done.
    drained: Condvar,
    condemned: Condemned,
    notes: Notes,
}

impl Index {
    /// The view as of now.
    pub(crate) fn view(&self) -> Arc<View> {
        Arc::clone(&self.published.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Replaces the active overlay, which was made from the one published last.
    pub(crate) fn publish(&self, active: Overlay) {
        self.update(|view| View { active, ..view });
    }

    /// How many changes are in memory.
    pub(crate) fn changes(&self) -> usize {
        self.view().overlays().map(Overlay::len).sum()
    }

    /// Waits until no overlay is frozen, at most this long.
    pub(crate) fn wait_for_drain(&self, patience: Duration) {
        let publishing = self.publishing.lock().unwrap_or_else(PoisonError::into_inner);
        let _publishing = self
            .drained
            .wait_timeout_while(publishing, patience, |()| self.view().frozen.is_some())
            .unwrap_or_else(PoisonError::into_inner);
    }

    /// The position that the index on disk stands for.
    pub(crate) fn checkpointed(&self) -> Result<Option<AppliedPosition>> {
        self.view().checkpointed.position()
    }

    fn update(&self, change: impl FnOnce(View) -> View) {
        let _publishing = self.publishing.lock().unwrap_or_else(PoisonError::into_inner);
        let next = Arc::new(change(View::clone(&self.view())));
        *self.published.write().unwrap_or_else(PoisonError::into_inner) = next;
    }
}
