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
mod counters;
mod feed;
mod filling;
mod listing;
mod merge;
mod notes;
mod overlay;
mod plain_walk;
mod reopen;
mod tables;
mod view;

use std::sync::{Arc, Condvar, Mutex, PoisonError, RwLock};
use std::time::Duration;

use self::audit::Condemned;
pub use self::counters::UsagePage;
use self::feed::Feed;
pub(crate) use self::feed::{Following, NameChange};
pub use self::listing::{FolderCursor, FolderPage, GroupPage, Grouping, KeyPage, Object};
pub(crate) use self::listing::{list_folder, list_groups, list_keys};
pub use self::notes::DamageList;
use self::notes::Notes;
pub(crate) use self::overlay::Overlay;
use self::reopen::Reopening;
use self::tables::Tables;
pub(crate) use self::tables::{INDEX_FILE, damaged};
pub(crate) use self::view::{Fact, Moved, Replaced, Unnamed, View};
use crate::clock::Clock;
use crate::disk::Disk;
use crate::format::AppliedPosition;
use crate::name::BucketName;

/// Where an index lies, whose it is, and how it is held.
pub(crate) struct IndexPlace {
    pub(crate) disk: Arc<dyn Disk>,
    pub(crate) clock: Arc<dyn Clock>,
    /// The id of the store.
    pub(crate) store: uuid::Uuid,
    /// Memory of redb's page cache.
    pub(crate) cache_bytes: usize,
}

#[cfg(test)]
impl IndexPlace {
    /// A place on a simulated disk.
    fn on(disk: &crate::disk::sim::SimDisk) -> Self {
        Self {
            disk: Arc::new(disk.clone()),
            clock: Arc::new(crate::clock::SimClock::at(0)),
            store: uuid::Uuid::from_u128(1),
            cache_bytes: 1 << 20,
        }
    }
}

/// The index of an open store.
pub(crate) struct Index {
    place: IndexPlace,
    tables: Tables,
    published: RwLock<Arc<View>>,
    /// Held by whoever publishes: the committer after a group, the checkpoint when it freezes and when it is done.
    publishing: Mutex<()>,
    /// Held by whoever writes to redb, or opens its file again.
    draining: Mutex<Reopening>,
    /// Told when it is done.
    drained: Condvar,
    condemned: Condemned,
    notes: Notes,
    feed: Feed,
}

impl Index {
    /// The view as it was last published.
    fn published(&self) -> Arc<View> {
        Arc::clone(&self.published.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Replaces the active overlay, which was made from the one published last.
    pub(crate) fn publish(&self, active: Overlay) {
        self.update(|view| {
            self.feed.tell(&view.active, &active);
            View { active, ..view }
        });
    }

    /// A view, and what comes and goes in a bucket from then on.
    pub(crate) fn follow(&self, bucket: &BucketName) -> (Arc<View>, Arc<Following>) {
        let _publishing = self.publishing.lock().unwrap_or_else(PoisonError::into_inner);
        (self.published(), self.feed.follow(bucket))
    }

    /// How many changes are in memory.
    pub(crate) fn changes(&self) -> usize {
        self.published().overlays().map(Overlay::len).sum()
    }

    /// Waits until no overlay is frozen, at most this long.
    pub(crate) fn wait_for_drain(&self, patience: Duration) {
        let publishing = self.publishing.lock().unwrap_or_else(PoisonError::into_inner);
        let _publishing = self
            .drained
            .wait_timeout_while(publishing, patience, |()| self.published().frozen.is_some())
            .unwrap_or_else(PoisonError::into_inner);
    }

    /// The position that the index on disk stands for.
    pub(crate) fn checkpointed(&self) -> Option<AppliedPosition> {
        self.published().checkpointed.position()
    }

    fn update(&self, change: impl FnOnce(View) -> View) {
        let _publishing = self.publishing.lock().unwrap_or_else(PoisonError::into_inner);
        let next = Arc::new(change(View::clone(&self.published())));
        *self.published.write().unwrap_or_else(PoisonError::into_inner) = next;
    }
}
