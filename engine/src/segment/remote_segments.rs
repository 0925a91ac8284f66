//! Copies of segments in the remote store: their names, and which exist.
//!
//! Guarantees: a segment is marked as uploaded only when it is whole in the remote store; while the store is
//! replicated, a log or compacted segment is neither replaced nor punched before that.
//! Non-goals: which segments to upload, and when; the removal of copies.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use uuid::Uuid;

use super::open_segment::read_header;
use crate::disk::{Disk, DiskFile};
use crate::error::{Error, Result};
use crate::format::{RemoteSegment, SegmentClass, SegmentId};
use crate::remote::RemoteStore;

/// Copies of the segments of a store that is replicated.
pub(crate) struct RemoteSegments {
    disk: Arc<dyn Disk>,
    store: Uuid,
    /// `None` if the store is replicated, but opened without its remote store.
    remote: Option<Arc<dyn RemoteStore>>,
    /// Whether big segments are uploaded before their record is committed.
    uploads_before_commit: bool,
    state: Mutex<State>,
}

/// Copy of a segment in the remote store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RemoteCopy {
    pub(crate) object: RemoteSegment,
    /// Length.
    pub(crate) bytes: u64,
}

#[derive(Default)]
struct State {
    is_primary: bool,
    uploaded: BTreeMap<SegmentId, RemoteCopy>,
    /// Compacted segments that were uploaded and are not committed yet.
    uncommitted: BTreeSet<SegmentId>,
}

impl RemoteSegments {
    /// Creates the list of copies, empty.
    pub(crate) fn new(
        disk: Arc<dyn Disk>,
        store: Uuid,
        remote: Option<Arc<dyn RemoteStore>>,
        uploads_before_commit: bool,
    ) -> Self {
        Self { disk, store, remote, uploads_before_commit, state: Mutex::default() }
    }

    /// Allows uploads: this process is the primary.
    pub(crate) fn allow_uploads(&self) {
        self.lock().is_primary = true;
    }

    /// Marks a segment as uploaded.
    pub(crate) fn mark_uploaded(&self, copy: RemoteCopy) {
        self.lock().uploaded.insert(copy.object.id, copy);
    }

    /// Returns the copy of a segment that is known to be in the remote store.
    pub(crate) fn uploaded(&self, id: SegmentId) -> Option<RemoteCopy> {
        self.lock().uploaded.get(&id).copied()
    }

    /// Returns the copy of a segment: a known one, or the one that the header of the file names; `None` if the header
    /// is unreadable.
    pub(crate) fn copy_of(&self, id: SegmentId, class: SegmentClass) -> Option<RemoteCopy> {
        self.uploaded(id).or_else(|| self.open(id, class).ok().map(|(_, copy)| copy))
    }

    /// Returns whether the segment is known to be in the remote store.
    pub(crate) fn is_uploaded(&self, id: SegmentId) -> bool {
        self.lock().uploaded.contains_key(&id)
    }

    /// Registers that the copy of a segment was removed.
    pub(crate) fn forget(&self, id: SegmentId) {
        self.lock().uploaded.remove(&id);
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

    /// Uploads the file of a segment whose bytes no longer change. Waits for the network.
    pub(crate) fn upload(&self, id: SegmentId, class: SegmentClass) -> Result<RemoteCopy> {
        let (file, copy) = self.open(id, class)?;
        self.upload_file(file.as_ref(), copy, class)
    }

    /// Uploads a segment like [`RemoteSegments::upload`], unless the remote store has it.
    pub(crate) fn upload_if_missing(
        &self,
        id: SegmentId,
        class: SegmentClass,
    ) -> Result<RemoteCopy> {
        let (file, copy) = self.open(id, class)?;
        let name = copy.object.object_name();
        let listed = self.require_remote()?.list(&name, None, 1);
        let listed = listed.map_err(|source| Error::remote(format!("listing {name}"), &source))?;
        if listed.first().is_some_and(|found| found.name == name && found.bytes == copy.bytes) {
            self.mark_uploaded(copy);
            return Ok(copy);
        }
        self.upload_file(file.as_ref(), copy, class)
    }

    fn open(&self, id: SegmentId, class: SegmentClass) -> Result<(Arc<dyn DiskFile>, RemoteCopy)> {
        let path = id.path(class);
        let io = |source| Error::io(format!("reading {path}"), source);
        let file = self.disk.open(&path).map_err(io)?;
        let header = read_header(file.as_ref(), &path, id, class, self.store)?;
        let object = RemoteSegment { id, salt: header.salt };
        let bytes = file.bytes_len().map_err(io)?;
        Ok((file, RemoteCopy { object, bytes }))
    }

    fn upload_file(
        &self,
        file: &dyn DiskFile,
        copy: RemoteCopy,
        class: SegmentClass,
    ) -> Result<RemoteCopy> {
        let name = copy.object.object_name();
        let mut failed = None;
        let uploaded = self.require_remote()?.upload(&name, copy.bytes, &mut |offset, piece| {
            file.read_at(offset, piece).inspect_err(|error| failed = Some(error.kind()))
        });
        match (uploaded, failed) {
            (Ok(()), _) => {}
            (Err(source), Some(_)) => {
                return Err(Error::io(format!("reading {}", copy.object.id.path(class)), source));
            }
            (Err(source), None) => return Err(Error::remote(format!("uploading {name}"), &source)),
        }
        self.mark_uploaded(copy);
        Ok(copy)
    }

    fn require_remote(&self) -> Result<&dyn RemoteStore> {
        let remote = self.remote.as_deref().filter(|_| self.lock().is_primary);
        remote.ok_or_else(|| {
            Error::RemoteUnavailable("this process is not the primary of the remote store".into())
        })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
