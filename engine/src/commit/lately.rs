//! What was deleted or replaced lately: so that bringing it back takes no look through the log, however large that is.
//!
//! Promises: only what is durably gone, in the order in which it went; memory is bounded by
//! [`limits::LATELY_BYTES_MAX`], and what went longest ago is forgotten first. Nothing depends on it: after a start it
//! is empty, and the log tells the same.
//! Never here: whether the bytes of a version are still there.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::format::{Entry, EntryContent};
use crate::index::Object;
use crate::limits;
use crate::name::ObjectName;

/// A version of an object that counts no more.
#[derive(Clone, Debug)]
pub struct GoneVersion {
    /// The object as it was.
    pub object: Object,
    /// What became of it.
    pub end: VersionEnd,
    /// When that was, as far as it was found; milliseconds since 1970.
    pub ended_ms: Option<u64>,
}

/// What becomes of a version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VersionEnd {
    /// It was deleted.
    Deleted,
    /// Another one was put in its place.
    Replaced,
}

/// One of these versions, with the number of the record that ended it.
pub(crate) struct EndedVersion {
    pub(crate) version: GoneVersion,
    pub(crate) ended_lsn: u64,
}

/// The versions that went last, the oldest first.
#[derive(Default)]
pub(crate) struct Lately(Mutex<Kept>);

#[derive(Default)]
struct Kept {
    versions: VecDeque<Arc<EndedVersion>>,
    bytes: usize,
}

impl EndedVersion {
    /// A version that a record of this number ends. None for what could not be brought back, or is made again from
    /// something else.
    pub(crate) fn new(
        name: &ObjectName,
        entry: Arc<Entry>,
        end: VersionEnd,
        ended_lsn: u64,
        ended_ms: u64,
    ) -> Option<Self> {
        let is_lost = matches!(entry.content, EntryContent::Lost { .. });
        let is_kept = !is_lost && !entry.meta.flags.derived;
        is_kept.then(|| {
            let object = Object { name: name.clone(), entry };
            Self { version: GoneVersion { object, end, ended_ms: Some(ended_ms) }, ended_lsn }
        })
    }

    /// About what it takes in memory.
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

impl Lately {
    /// Keeps versions, the last of which went last.
    pub(crate) fn add(&self, ended: Vec<EndedVersion>) {
        if ended.is_empty() {
            return;
        }
        let mut kept = self.kept();
        for version in ended {
            kept.bytes += version.bytes();
            kept.versions.push_back(Arc::new(version));
        }
        while kept.bytes > limits::LATELY_BYTES_MAX {
            let Some(oldest) = kept.versions.pop_front() else { return };
            kept.bytes -= oldest.bytes();
        }
    }

    /// Those that are wanted, the last that went first, and at most so many: only what went before the record of
    /// a number, where there is one.
    pub(crate) fn newest(
        &self,
        before_lsn: Option<u64>,
        limit: usize,
        is_wanted: impl Fn(&GoneVersion) -> bool,
    ) -> Vec<Arc<EndedVersion>> {
        let kept = self.kept();
        let newest = kept.versions.iter().rev();
        newest
            .filter(|it| before_lsn.is_none_or(|before| it.ended_lsn < before))
            .filter(|it| is_wanted(&it.version))
            .take(limit)
            .cloned()
            .collect()
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
