//! Index: redb checkpoint plus in-memory overlays, read through consistent views.
//!
//! redb contains a checkpoint of the log up to some position. Later changes are in memory: in the active overlay,
//! which the committer publishes after each group, and at times in a frozen overlay, which a checkpoint is writing.
//! Acknowledgements never wait for redb.
//!
//! Guarantees: a [`View`] is a consistent snapshot: it never changes, and shows each batch entirely or not at all. A
//! lost index costs only time: it is rebuilt from the segments.
//! Non-goals: the content of the segments.

mod background_verify;
mod byte_order_iter;
mod change_feed;
mod checkpoint;
mod entry_writer;
mod fact;
mod full_scan;
mod integrity;
mod listing;
mod merge_iter;
mod object;
mod overlay;
mod redb_panics;
mod reopen;
mod tables;
mod usage_counters;
mod view;

use std::sync::{Arc, Condvar, Mutex, PoisonError, RwLock};
use std::time::Duration;

use self::background_verify::CorruptFlag;
use self::change_feed::ChangeFeed;
pub use self::change_feed::{NameChange, Subscription};
pub(crate) use self::fact::Fact;
pub use self::integrity::DamageList;
use self::integrity::IntegrityState;
pub use self::listing::{FolderCursor, FolderPage, KeyGroupPage, KeyGrouping, KeyPage};
pub(crate) use self::listing::{list_folder, list_key_groups, list_keys};
pub use self::object::Object;
pub(crate) use self::overlay::Overlay;
use self::reopen::ReopenState;
use self::tables::Tables;
pub(crate) use self::tables::{INDEX_FILE, damaged};
pub use self::usage_counters::UsagePage;
pub(crate) use self::view::{RelocatedRecord, ReplacedEntry, UnreferencedSegment, View};
use crate::clock::Clock;
use crate::disk::Disk;
use crate::format::AppliedPosition;
use crate::name::BucketName;

/// Location, store and cache size of an index.
pub(crate) struct IndexLocation {
    pub(crate) disk: Arc<dyn Disk>,
    pub(crate) clock: Arc<dyn Clock>,
    /// Id of the store.
    pub(crate) store: uuid::Uuid,
    /// Size of redb's page cache in bytes.
    pub(crate) cache_bytes: usize,
}

#[cfg(test)]
impl IndexLocation {
    /// Returns an index location on a simulated disk.
    fn on(disk: &crate::disk::sim::SimDisk) -> Self {
        Self {
            disk: Arc::new(disk.clone()),
            clock: Arc::new(crate::clock::SimClock::at(0)),
            store: uuid::Uuid::from_u128(1),
            cache_bytes: 1 << 20,
        }
    }
}

/// Index of an open store.
pub(crate) struct Index {
    place: IndexLocation,
    tables: Tables,
    published: RwLock<Arc<View>>,
    /// Locked while a view is published: by the committer after a group, by the checkpoint when it freezes and when
    /// it ends.
    publishing: Mutex<()>,
    /// Locked while redb is written to or its file is reopened.
    draining: Mutex<ReopenState>,
    /// Signalled at the end of a checkpoint.
    drained: Condvar,
    condemned: CorruptFlag,
    integrity: IntegrityState,
    feed: ChangeFeed,
}

impl Index {
    /// Returns the last published view.
    fn published(&self) -> Arc<View> {
        Arc::clone(&self.published.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Replaces the active overlay, which was derived from the last published one.
    pub(crate) fn publish(&self, active: Overlay) {
        self.update(|view| {
            self.feed.publish(&view.active, &active);
            View { active, ..view }
        });
    }

    /// Returns a view and a subscription to the later changes of a bucket.
    pub(crate) fn subscribe(&self, bucket: &BucketName) -> (Arc<View>, Arc<Subscription>) {
        let _publishing = self.publishing.lock().unwrap_or_else(PoisonError::into_inner);
        (self.published(), self.feed.subscribe(bucket))
    }

    /// Returns the number of changes in memory.
    pub(crate) fn changes(&self) -> usize {
        self.published().overlays().map(Overlay::len).sum()
    }

    /// Waits until no overlay is frozen, at most `patience`.
    pub(crate) fn wait_for_drain(&self, patience: Duration) {
        let publishing = self.publishing.lock().unwrap_or_else(PoisonError::into_inner);
        let _publishing = self
            .drained
            .wait_timeout_while(publishing, patience, |()| self.published().frozen.is_some())
            .unwrap_or_else(PoisonError::into_inner);
    }

    /// Returns the log position of the index on disk.
    pub(crate) fn checkpointed(&self) -> Option<AppliedPosition> {
        self.published().checkpointed.position()
    }

    fn update(&self, change: impl FnOnce(View) -> View) {
        let _publishing = self.publishing.lock().unwrap_or_else(PoisonError::into_inner);
        let next = Arc::new(change(View::clone(&self.published())));
        *self.published.write().unwrap_or_else(PoisonError::into_inner) = next;
    }
}
