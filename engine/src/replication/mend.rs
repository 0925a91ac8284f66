//! Repair of damaged segments on this machine from their copies in the remote store.
//!
//! Guarantees: a file is replaced only by a copy of the same segment that was verified whole.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::Replication;
use super::evict::fetch_whole;
use crate::disk::DiskFile;
use crate::error::{Error, Result};
use crate::format::{RemoteReference, ScrubResult, SegmentClass, SegmentId};
use crate::limits;
use crate::segment::{RemoteCopy, SegmentCopy};

/// State of the repair.
#[derive(Default)]
pub(super) struct MendState {
    /// Monotonic time of the last look at the known damage.
    looked_ms: Option<u64>,
    /// Segments whose copies are damaged as well.
    hopeless: BTreeSet<SegmentId>,
}

impl Replication {
    /// Repairs one damaged segment. Returns false if there is none that can be repaired.
    pub(super) fn mend_next(&self, state: &mut MendState) -> Result<bool> {
        let now_ms = self.clock.monotonic_ms();
        let since = state.looked_ms.map(|at| now_ms.saturating_sub(at));
        if since.is_some_and(|since| since < limits::MEND_INTERVAL_MS) {
            return Ok(false);
        }
        for damage in self.index.damage().places {
            let (id, class) = (damage.segment, damage.class);
            let is_sealed = class != SegmentClass::Log || !self.segments.is_unsealed(id);
            if !is_sealed || state.hopeless.contains(&id) || !self.segments.is_local(id, class) {
                continue;
            }
            let Some(copy) = self.copies.copy_of(id, class) else { continue };
            if !self.mend(copy, class)? {
                state.hopeless.insert(id);
            }
            return Ok(true);
        }
        state.looked_ms = Some(now_ms);
        Ok(false)
    }

    /// Replaces the file of a segment by its copy. Returns false if the copy is damaged.
    fn mend(&self, copy: RemoteCopy, class: SegmentClass) -> Result<bool> {
        let RemoteCopy { object, bytes } = copy;
        let (id, path) = (object.id, object.id.path(class));
        let reference = RemoteReference { store: self.store.store, object, bytes };
        let file: Arc<dyn DiskFile> = Arc::new(self.tier.open_copy(class, &reference));
        let mut is_intact = true;
        match fetch_whole(file.as_ref(), &path) {
            Err(Error::Io { .. } | Error::Corrupt(_)) => is_intact = false,
            other => other?,
        }
        let verified =
            SegmentCopy { file: &file, path: &path, id, class, store: self.store.store, end: None };
        // A body that was punched before the upload is dead.
        verified.verify(&|_| Ok(true), &mut |_| {}, &mut |_| is_intact = false)?;
        let io = |source| Error::io(format!("replacing {path}"), source);
        if !is_intact {
            self.tier.trim(id).map_err(io)?;
            return Ok(false);
        }
        self.tier.promote(id, class).map_err(io)?;
        self.segments.reopen(id);
        let result = ScrubResult { verified_ms: self.clock.unix_ms(), damage_count: 0 };
        self.index.record_scrub(id, result, &[]);
        Ok(true)
    }
}
