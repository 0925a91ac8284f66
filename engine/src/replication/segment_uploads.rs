//! Uploads of segments: those of the time before replication, and each log segment whose end is settled.
//!
//! Guarantees: a log segment is uploaded only after the chunk with the header of its successor (D3), and only sealed.

use std::collections::VecDeque;
use std::sync::{Arc, PoisonError};

use super::chunk_source::log_header;
use super::{Replication, ReplicationState, ReplicationStep, UpkeepState};
use crate::error::{Error, Result};
use crate::format::{LOG_FOLDER, SegmentClass, SegmentId};
use crate::limits;
use crate::remote::{RemoteStore, probe};
use crate::segment::read_footer;

/// Segments that existed before this process became the primary, and are not in the remote store.
#[derive(Default)]
pub(super) struct InitialUpload {
    is_known: bool,
    waiting: VecDeque<(SegmentId, SegmentClass)>,
}

impl Replication {
    pub(super) fn do_upkeep(&self) -> Result<ReplicationStep> {
        let mut upkeep = self.upkeep.lock().unwrap_or_else(PoisonError::into_inner);
        if self.shared().state != ReplicationState::Primary {
            return Ok(ReplicationStep::Idle);
        }
        if self.upload_next(&mut upkeep.initial)? || self.upload_settled()? {
            return Ok(ReplicationStep::Worked);
        }
        let UpkeepState { manifests, collected_ms, is_probed, eviction, mending, .. } =
            &mut *upkeep;
        if manifests.is_pending() {
            if !self.finish_manifest(manifests)? {
                return Ok(ReplicationStep::Idle);
            }
            if self.collection_is_due(*collected_ms) {
                self.collect()?;
                *collected_ms = Some(self.clock.monotonic_ms());
            }
            return Ok(ReplicationStep::Worked);
        }
        let sweep = self.shared().manifest.is_some() && self.collection_is_due(*collected_ms);
        if sweep || self.manifest_is_due(manifests) {
            self.begin_manifest(manifests, sweep)?;
            return Ok(ReplicationStep::Worked);
        }
        if self.mend_next(mending)? || self.evict_next(eviction)? {
            return Ok(ReplicationStep::Worked);
        }
        if self.options.probe && !*is_probed {
            self.observe()?;
            *is_probed = true;
        }
        Ok(ReplicationStep::Idle)
    }

    /// Observes the properties of the remote store.
    fn observe(&self) -> Result<()> {
        let remote = Arc::clone(&self.remote) as Arc<dyn RemoteStore>;
        let observed = probe(&remote, self.clock.as_ref(), self.rng.uuid());
        let observed = observed.map_err(|why| Error::remote("checking its properties", &why))?;
        self.shared().properties = Some(observed);
        Ok(())
    }

    pub(super) fn collection_is_due(&self, collected_ms: Option<u64>) -> bool {
        let since = collected_ms.map(|at| self.clock.monotonic_ms().saturating_sub(at));
        since.is_none_or(|since| since >= limits::COLLECTION_INTERVAL_MS)
    }

    /// Uploads one of the segments that existed before. Returns false if there is none.
    fn upload_next(&self, initial: &mut InitialUpload) -> Result<bool> {
        if !initial.is_known {
            initial.waiting = self.find_initial()?;
            initial.is_known = true;
        }
        self.shared().waiting_segments = initial.waiting.len() as u64;
        let Some((id, class)) = initial.waiting.front().copied() else {
            self.shared().is_complete = true;
            return Ok(false);
        };
        if class == SegmentClass::Log && self.segments.is_unsealed(id) {
            initial.waiting.rotate_left(1);
            return Ok(false);
        }
        match self.copies.upload_if_missing(id, class) {
            Ok(copy) if class == SegmentClass::Log => {
                self.shared().log.insert(id, copy.into());
            }
            Ok(_) => {}
            // Its object was deleted in the meantime, or it is lost on this machine as well.
            Err(Error::Io { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => {}
            Err(Error::Corrupt(_)) => {}
            Err(other) => return Err(other),
        }
        initial.waiting.pop_front();
        Ok(true)
    }

    fn find_initial(&self) -> Result<VecDeque<(SegmentId, SegmentClass)>> {
        let view = self.index.view();
        let mut waiting = VecDeque::new();
        let is_first = !self.shared().is_complete;
        if is_first {
            let io = |source| Error::io(format!("listing {LOG_FOLDER}"), source);
            let names = self.segments.disk().list(LOG_FOLDER).map_err(io)?;
            let ids = names.iter().filter_map(|name| SegmentId::from_file_name(name));
            let begin = self.begin_of_shipping();
            let before = ids.filter(|id| begin.is_some_and(|begin| *id < begin));
            waiting.extend(before.map(|id| (id, SegmentClass::Log)));
            let retained = view.retained()?.into_iter();
            waiting.extend(retained.map(|(id, _)| (id, SegmentClass::Big)));
        }
        for (id, usage) in view.segments()? {
            let is_due = match usage.class {
                SegmentClass::Log => false,
                SegmentClass::Compacted => true,
                SegmentClass::Big => is_first,
            };
            if is_due && !self.copies.is_uploaded(id) {
                waiting.push_back((id, usage.class));
            }
        }
        Ok(waiting)
    }

    /// Returns the log segment with which the chunks begin, or will begin; `None` for an empty log.
    fn begin_of_shipping(&self) -> Option<SegmentId> {
        let shared = self.shared();
        let begun = shared.log.first_key_value().map(|(id, _)| *id);
        begun.or_else(|| shared.position.segment.map(SegmentId::next))
    }

    /// Uploads a log segment whose end is settled. Returns false if there is none.
    fn upload_settled(&self) -> Result<bool> {
        let due: Vec<SegmentId> = {
            let shared = self.shared();
            let last = shared.position.segment;
            let waiting = shared.log.iter().filter(|(_, it)| it.first_chunk.is_some());
            waiting.map(|(id, _)| *id).filter(|id| Some(*id) < last).collect()
        };
        for id in due {
            if !self.is_sealed(id)? {
                continue;
            }
            let copy = self.copies.upload(id, SegmentClass::Log)?;
            self.shared().log.insert(id, copy.into());
            return Ok(true);
        }
        Ok(false)
    }

    fn is_sealed(&self, id: SegmentId) -> Result<bool> {
        if self.segments.is_unsealed(id) {
            return Ok(false);
        }
        let header = log_header(&self.segments, id)?;
        let path = id.path(SegmentClass::Log);
        let file = self.segments.disk().open(&path);
        let file = file.map_err(|source| Error::io(format!("opening {path}"), source))?;
        Ok(read_footer(file.as_ref(), &header)?.is_some())
    }
}
