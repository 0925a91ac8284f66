//! Copies of segments in the remote store: their names, and which exist.
//!
//! Guarantees: a segment is marked as uploaded only when it is whole in the remote store; while the store is
//! replicated, a log or compacted segment is neither replaced nor punched before that.
//! Non-goals: which segments to upload, and when; the removal of copies.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::disk::Disk;
use crate::error::{Error, Result};
use crate::format::{Epoch, RemoteSegment, SegmentClass, SegmentId, remote_segment};
use crate::remote::RemoteStore;

/// Copies of the segments of a store that is replicated.
pub(crate) struct RemoteSegments {
    disk: Arc<dyn Disk>,
    /// `None` if the store is replicated, but opened without its remote store.
    remote: Option<Arc<dyn RemoteStore>>,
    /// Whether big segments are uploaded before their record is committed.
    uploads_before_commit: bool,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Epochs, once this process is the primary.
    epochs: Vec<Epoch>,
    uploaded: BTreeSet<SegmentId>,
    /// Compacted segments that were uploaded and are not committed yet.
    uncommitted: BTreeSet<SegmentId>,
}

impl RemoteSegments {
    /// Creates the list of copies, empty.
    pub(crate) fn new(
        disk: Arc<dyn Disk>,
        remote: Option<Arc<dyn RemoteStore>>,
        uploads_before_commit: bool,
    ) -> Self {
        Self { disk, remote, uploads_before_commit, state: Mutex::default() }
    }

    /// Sets the epochs: from now on this process may upload.
    pub(crate) fn set_epochs(&self, epochs: Vec<Epoch>) {
        self.lock().epochs = epochs;
    }

    /// Returns the object of a segment.
    pub(crate) fn object(&self, id: SegmentId) -> RemoteSegment {
        remote_segment(&self.lock().epochs, id)
    }

    /// Marks a segment as uploaded.
    pub(crate) fn mark_uploaded(&self, id: SegmentId) {
        self.lock().uploaded.insert(id);
    }

    /// Returns whether the segment is known to be in the remote store.
    pub(crate) fn is_uploaded(&self, id: SegmentId) -> bool {
        self.lock().uploaded.contains(&id)
    }

    /// Drops what is known of segments that no longer exist.
    pub(crate) fn forget(&self, is_gone: impl Fn(SegmentId) -> bool) {
        self.lock().uploaded.retain(|id| !is_gone(*id));
    }

    /// Returns whether a copy belongs to a compaction that may still be committed.
    pub(crate) fn is_uncommitted(&self, id: SegmentId) -> bool {
        self.lock().uncommitted.contains(&id)
    }

    /// Uploads a new segment, if the order of writes requires that before its record is committed.
    pub(super) fn upload_before_commit(&self, id: SegmentId, class: SegmentClass) -> Result<()> {
        if class == SegmentClass::Big && !self.uploads_before_commit {
            return Ok(());
        }
        if class == SegmentClass::Compacted {
            self.lock().uncommitted.insert(id);
        }
        self.upload(id, class).map(drop)
    }

    /// Ends the compaction of a segment: it is committed, or removed.
    pub(super) fn end_compaction(&self, id: SegmentId) {
        self.lock().uncommitted.remove(&id);
    }

    /// Uploads the file of a segment whose bytes no longer change. Returns its length. Waits for the network.
    pub(crate) fn upload(&self, id: SegmentId, class: SegmentClass) -> Result<u64> {
        let remote = self.remote.as_ref().filter(|_| !self.lock().epochs.is_empty());
        let remote = remote.ok_or_else(|| {
            Error::RemoteUnavailable("this process is not the primary of the remote store".into())
        })?;
        let path = id.path(class);
        let io = |source| Error::io(format!("reading {path}"), source);
        let file = self.disk.open(&path).map_err(io)?;
        let bytes = file.bytes_len().map_err(io)?;
        let name = self.object(id).object_name();
        let mut failed = None;
        let uploaded = remote.upload(&name, bytes, &mut |offset, piece| {
            file.read_at(offset, piece).inspect_err(|error| failed = Some(error.kind()))
        });
        match (uploaded, failed) {
            (Ok(()), _) => {}
            (Err(source), Some(_)) => return Err(io(source)),
            (Err(source), None) => return Err(Error::remote(format!("uploading {name}"), &source)),
        }
        self.mark_uploaded(id);
        Ok(bytes)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
