//! In-memory ring of recently deleted or overwritten versions, so that restoring them needs no scan of the log.
//!
//! Guarantees: contains only durable changes, in commit order; memory is bounded by
//! [`limits::RECENT_NONCURRENT_BYTES_MAX`], and the oldest are evicted first. The ring is only a cache: it is empty
//! after an open, and the log has the same information.
//! Non-goals: whether the content of a version still exists.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::format::{Entry, EntryContent};
use crate::index::Object;
use crate::limits;
use crate::name::ObjectName;

/// Version of an object that was deleted or overwritten.
#[derive(Clone, Debug)]
pub struct NoncurrentVersion {
    /// Name, metadata and LSN of the version.
    pub object: Object,
    /// Reason why the version is noncurrent.
    pub reason: NoncurrentReason,
    /// Time of the deletion or overwrite, in milliseconds since 1970; `None` if unknown.
    pub noncurrent_since_ms: Option<u64>,
}

/// Reason why a version is noncurrent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoncurrentReason {
    /// The object was deleted.
    Deleted,
    /// The object was overwritten.
    Replaced,
}

/// Noncurrent version with the LSN of the record that replaced or deleted it.
pub(crate) struct RecentVersion {
    pub(crate) version: NoncurrentVersion,
    pub(crate) noncurrent_lsn: u64,
}

/// Recent noncurrent versions, oldest first.
#[derive(Default)]
pub(crate) struct RecentNoncurrent(Mutex<RecentState>);

#[derive(Default)]
struct RecentState {
    versions: VecDeque<Arc<RecentVersion>>,
    bytes: usize,
}

impl RecentVersion {
    /// Creates the entry of a version ended by the record with this LSN. `None` for a version that cannot be
    /// restored or can be regenerated.
    pub(crate) fn new(
        name: &ObjectName,
        entry: Arc<Entry>,
        end: NoncurrentReason,
        ended_lsn: u64,
        ended_ms: u64,
    ) -> Option<Self> {
        let is_lost = matches!(entry.content, EntryContent::Lost { .. });
        let is_kept = !is_lost && !entry.meta.flags.derived;
        is_kept.then(|| {
            let object = Object { name: name.clone(), entry };
            Self {
                version: NoncurrentVersion {
                    object,
                    reason: end,
                    noncurrent_since_ms: Some(ended_ms),
                },
                noncurrent_lsn: ended_lsn,
            }
        })
    }

    /// Returns the approximate memory use.
    fn bytes(&self) -> usize {
        let Object { name, entry } = &self.version.object;
        let texts = name.key.as_str().len() + name.bucket.as_str().len();
        size_of::<Self>()
            + size_of::<Entry>()
            + texts
            + entry.meta.content_type.len()
            + entry.meta.attributes.len()
    }
}

impl RecentNoncurrent {
    /// Adds versions in commit order.
    pub(crate) fn add(&self, ended: Vec<RecentVersion>) {
        if ended.is_empty() {
            return;
        }
        let mut kept = self.lock();
        for version in ended {
            kept.bytes += version.bytes();
            kept.versions.push_back(Arc::new(version));
        }
        while kept.bytes > limits::RECENT_NONCURRENT_BYTES_MAX {
            let Some(oldest) = kept.versions.pop_front() else { return };
            kept.bytes -= oldest.bytes();
        }
    }

    /// Returns at most the given number of matching versions, newest first; with an LSN, only versions that ended
    /// before it.
    pub(crate) fn newest(
        &self,
        before_lsn: Option<u64>,
        limit: usize,
        is_wanted: impl Fn(&NoncurrentVersion) -> bool,
    ) -> Vec<Arc<RecentVersion>> {
        let kept = self.lock();
        let newest = kept.versions.iter().rev();
        newest
            .filter(|it| before_lsn.is_none_or(|before| it.noncurrent_lsn < before))
            .filter(|it| is_wanted(&it.version))
            .take(limit)
            .cloned()
            .collect()
    }

    fn lock(&self) -> MutexGuard<'_, RecentState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
