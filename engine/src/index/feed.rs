//! Which names came and went, for whoever keeps the names of a bucket in memory.
//!
//! Promises: whoever follows a bucket from a view on hears of every name that came or went since, in order. What nobody
//! takes is bounded: beyond [`limits::FOLLOWED_NAMES_MAX`] the follower is told that it lost count.
//! Never here: what is kept of it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use imbl::ordmap::DiffItem;

use super::overlay::Overlay;
use crate::format::entry_key::KEY_END;
use crate::limits;
use crate::name::BucketName;

/// Who follows which bucket.
#[derive(Default)]
pub(super) struct Feed(Mutex<HashMap<Box<[u8]>, Weak<Following>>>);

/// What came and went in a bucket since somebody began to follow it.
#[derive(Default)]
pub(crate) struct Following(Mutex<Pending>);

#[derive(Default)]
struct Pending {
    changes: Vec<NameChange>,
    has_lost_count: bool,
}

/// A name came, or went. It may have been there, or gone, before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NameChange {
    /// The key in the index.
    pub(crate) key: Arc<[u8]>,
    /// Whether it is there now.
    pub(crate) is_there: bool,
}

impl Following {
    /// How many changes wait to be taken.
    pub(crate) fn waiting(&self) -> usize {
        self.pending().changes.len()
    }

    /// What happened since the last call, in order. None when so much did that it was not kept: then the names must be
    /// read anew.
    pub(crate) fn take(&self) -> Option<Vec<NameChange>> {
        let mut pending = self.pending();
        let changes = std::mem::take(&mut pending.changes);
        (!pending.has_lost_count).then_some(changes)
    }

    fn push(&self, change: NameChange) {
        let mut pending = self.pending();
        if pending.changes.len() >= limits::FOLLOWED_NAMES_MAX {
            *pending = Pending { has_lost_count: true, ..Pending::default() };
        }
        if !pending.has_lost_count {
            pending.changes.push(change);
        }
    }

    fn pending(&self) -> std::sync::MutexGuard<'_, Pending> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Feed {
    /// Begins to tell of a bucket, in place of whoever followed it before.
    pub(super) fn follow(&self, bucket: &BucketName) -> Arc<Following> {
        let following = Arc::new(Following::default());
        let mut followers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        followers.retain(|_, follower| follower.strong_count() > 0);
        followers.insert(bucket.as_str().as_bytes().into(), Arc::downgrade(&following));
        following
    }

    /// Tells of what one overlay holds beyond an earlier one, from which it was made.
    pub(super) fn tell(&self, before: &Overlay, after: &Overlay) {
        let followers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if followers.is_empty() {
            return;
        }
        // What both share costs nothing here.
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
                follower.push(NameChange { key: Arc::clone(key), is_there: entry.is_some() });
            }
        }
    }
}
