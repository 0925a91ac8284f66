//! Change feed: created and deleted names of a bucket, for subscribers that cache its names.
//!
//! Guarantees: a subscriber receives every name created or deleted since its view, in order. Pending changes are
//! bounded: beyond [`limits::SUBSCRIPTION_NAMES_MAX`] the subscription is marked as overflowed.
//! Non-goals: the caches of the subscribers.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use imbl::ordmap::DiffItem;

use super::overlay::Overlay;
use crate::format::entry_key::{self, KEY_END};
use crate::limits;
use crate::name::{BucketName, ObjectKey};

/// Subscriptions by bucket.
#[derive(Default)]
pub(super) struct ChangeFeed(Mutex<HashMap<Box<[u8]>, Subscribers>>);

type Subscribers = Vec<Weak<Subscription>>;

/// Subscription: names created and deleted in a bucket since it began.
#[derive(Default)]
pub struct Subscription(Mutex<Pending>);

#[derive(Default)]
struct Pending {
    changes: Vec<Change>,
    has_overflowed: bool,
}

/// Change under an index key.
struct Change {
    key: Arc<[u8]>,
    exists: bool,
}

/// Creation or deletion of an object. It may repeat the previous state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NameChange {
    /// Key of the object.
    pub key: ObjectKey,
    /// Whether the object exists now.
    pub exists: bool,
}

impl Subscription {
    /// Returns the number of pending changes.
    pub fn pending_count(&self) -> usize {
        self.pending().changes.len()
    }

    /// Takes the changes since the last call, in order; `None` after an overflow, when all names must be read again.
    pub fn take(&self) -> Option<Vec<NameChange>> {
        let changes = {
            let mut pending = self.pending();
            let changes = std::mem::take(&mut pending.changes);
            (!pending.has_overflowed).then_some(changes)
        };
        let decode = |Change { key, exists }| {
            Some(NameChange { key: entry_key::decode(&key).ok()?.key, exists })
        };
        changes?.into_iter().map(decode).collect()
    }

    fn push(&self, change: Change) {
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
    /// Subscribes to a bucket.
    pub(super) fn subscribe(&self, bucket: &BucketName) -> Arc<Subscription> {
        let subscription = Arc::new(Subscription::default());
        let mut feed = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        feed.retain(|_, of_bucket| {
            of_bucket.retain(|it| it.strong_count() > 0);
            !of_bucket.is_empty()
        });
        let of_bucket = feed.entry(bucket.as_str().as_bytes().into()).or_default();
        of_bucket.push(Arc::downgrade(&subscription));
        subscription
    }

    /// Publishes the changes between an overlay and a later one derived from it.
    pub(super) fn publish(&self, before: &Overlay, after: &Overlay) {
        let feed = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if feed.is_empty() {
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
            for subscription in feed.get(bucket).into_iter().flatten().filter_map(Weak::upgrade) {
                subscription.push(Change { key: Arc::clone(key), exists: entry.is_some() });
            }
        }
    }
}
