//! Change feed: created and deleted names of a bucket, for subscribers that cache its names.
//!
//! Guarantees: a subscriber receives every name created or deleted since its view, in order. Pending changes are
//! bounded: beyond [`limits::SUBSCRIPTION_NAMES_MAX`] the subscription is marked as overflowed.
//! Non-goals: the caches of the subscribers.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use imbl::ordmap::DiffItem;

use super::overlay::Overlay;
use crate::format::entry_key::KEY_END;
use crate::limits;
use crate::name::BucketName;

/// Subscriptions by bucket.
#[derive(Default)]
pub(super) struct ChangeFeed(Mutex<HashMap<Box<[u8]>, Weak<Subscription>>>);

/// Subscription: names created and deleted in a bucket since it began.
#[derive(Default)]
pub(crate) struct Subscription(Mutex<Pending>);

#[derive(Default)]
struct Pending {
    changes: Vec<NameChange>,
    has_overflowed: bool,
}

/// Creation or deletion of a name. It may repeat the previous state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NameChange {
    /// Index key of the name.
    pub(crate) key: Arc<[u8]>,
    /// Whether the name exists now.
    pub(crate) exists: bool,
}

impl Subscription {
    /// Returns the number of pending changes.
    pub(crate) fn pending_count(&self) -> usize {
        self.pending().changes.len()
    }

    /// Takes the changes since the last call, in order; `None` after an overflow, when all names must be read again.
    pub(crate) fn take(&self) -> Option<Vec<NameChange>> {
        let mut pending = self.pending();
        let changes = std::mem::take(&mut pending.changes);
        (!pending.has_overflowed).then_some(changes)
    }

    fn push(&self, change: NameChange) {
        let mut pending = self.pending();
        if pending.changes.len() >= limits::SUBSCRIPTION_NAMES_MAX {
            *pending = Pending { has_overflowed: true, ..Pending::default() };
        }
        if !pending.has_overflowed {
            pending.changes.push(change);
        }
    }

    fn pending(&self) -> std::sync::MutexGuard<'_, Pending> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ChangeFeed {
    /// Subscribes to a bucket and replaces an earlier subscription.
    pub(super) fn subscribe(&self, bucket: &BucketName) -> Arc<Subscription> {
        let following = Arc::new(Subscription::default());
        let mut followers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        followers.retain(|_, follower| follower.strong_count() > 0);
        followers.insert(bucket.as_str().as_bytes().into(), Arc::downgrade(&following));
        following
    }

    /// Publishes the changes between an overlay and a later one derived from it.
    pub(super) fn publish(&self, before: &Overlay, after: &Overlay) {
        let followers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if followers.is_empty() {
            return;
        }
        // The shared parts of both maps are skipped at no cost.
        for change in before.entries.diff(&after.entries) {
            let (key, entry) = match change {
                DiffItem::Add(key, entry) => (key, entry),
                DiffItem::Update { old: (_, old), new: (key, entry) }
                    if old.is_some() != entry.is_some() =>
                {
                    (key, entry)
                }
                DiffItem::Update { .. } | DiffItem::Remove(..) => continue,
            };
            let bucket = key.split(|byte| *byte == KEY_END).next().unwrap_or_default();
            if let Some(follower) = followers.get(bucket).and_then(Weak::upgrade) {
                follower.push(NameChange { key: Arc::clone(key), exists: entry.is_some() });
            }
        }
    }
}
