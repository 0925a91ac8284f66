//! Manifests: the segments of which the store consists as of a chunk.
//!
//! A manifest is a consistent image: its segments are those of one view of the index, and a chunk ends exactly at the
//! log position of that view.
//!
//! Guarantees: a manifest is created only when everything that it needs is in the remote store.

use std::collections::BTreeSet;

use bytes::Bytes;

use super::collect::Sweep;
use super::status::{Shared, error_text};
use super::{Replication, ReplicationStep};
use crate::error::{Error, Result};
use crate::format::{
    Checksum, LOG_FOLDER, Manifest, ManifestSegment, Predecessor, RemoteSegment, SegmentClass,
    SegmentId,
};
use crate::index::View;
use crate::limits;
use crate::remote::RemoteStore;
use crate::segment::{LogPosition, RemoteCopy};

/// Log position at which a chunk must end.
pub(super) struct Cut {
    position: LogPosition,
    /// Chunk that ends there, with its checksum.
    reached: Option<(u64, Checksum)>,
}

impl Cut {
    /// Returns the position up to which the next chunk may reach.
    pub(super) fn target(&self, end: &LogPosition) -> LogPosition {
        if self.is_reached() { *end } else { self.position }
    }

    /// Returns whether a chunk ends there.
    pub(super) fn is_reached(&self) -> bool {
        self.reached.is_some()
    }

    /// Records a created chunk.
    pub(super) fn note(&mut self, position: &LogPosition, chunk: u64, checksum: Checksum) {
        if !self.is_reached() && *position == self.position {
            self.reached = Some((chunk, checksum));
        }
    }
}

/// State of the manifests of this process.
#[derive(Default)]
pub(super) struct ManifestState {
    pending: Option<PendingManifest>,
    /// Monotonic time of the last manifest, and number of the group after it.
    last: Option<(u64, u64)>,
}

/// Manifest whose position is not in the remote store yet.
struct PendingManifest {
    position: LogPosition,
    /// Log segments that exist.
    present: BTreeSet<SegmentId>,
    compacted: Vec<ManifestSegment>,
    unreferenced: Vec<RemoteSegment>,
}

impl ManifestState {
    pub(super) fn is_pending(&self) -> bool {
        self.pending.is_some()
    }
}

impl Replication {
    /// Returns whether a manifest is due.
    pub(super) fn manifest_is_due(&self, state: &ManifestState) -> bool {
        let now_ms = self.clock.monotonic_ms();
        let shared = self.shared();
        let Some((chunk, _)) = shared.manifest.filter(|_| shared.is_complete) else {
            return shared.is_complete;
        };
        if shared.chunk.saturating_sub(chunk) >= limits::MANIFEST_CHUNKS {
            return true;
        }
        match state.last {
            None => shared.chunk > chunk + 1,
            Some((made_ms, next_group)) => {
                next_group != shared.position.next_group
                    && now_ms.saturating_sub(made_ms) >= limits::MANIFEST_INTERVAL_MS
            }
        }
    }

    /// Begins a manifest of the current state. With `sweep`, it lists the segments that are no longer needed.
    pub(super) fn begin_manifest(&self, state: &mut ManifestState, sweep: bool) -> Result<()> {
        // Before the view: segments above it may have been uploaded for a later state.
        let floor = self.segments.orphan_floor();
        let (view, position) = {
            let mut shared = self.shared();
            let view = self.index.view();
            let position = view.position().map_or(LogPosition::START, LogPosition::from);
            let is_reached = shared.position == position;
            let reached = is_reached.then_some((shared.chunk, shared.chunk_checksum));
            shared.cut = Some(Cut { position, reached });
            (view, position)
        };
        let begun = self.image_of(&view, position).and_then(|mut pending| {
            if sweep {
                let sweep = Sweep::new(self, &view, &pending.present, floor, &position)?;
                pending.unreferenced = sweep.find()?;
            }
            Ok(pending)
        });
        state.pending = Some(begun.inspect_err(|_| self.shared().cut = None)?);
        Ok(())
    }

    fn image_of(&self, view: &View, position: LogPosition) -> Result<PendingManifest> {
        let disk = self.segments.disk();
        let io = |source| Error::io(format!("listing {LOG_FOLDER}"), source);
        let names = disk.list(LOG_FOLDER).map_err(io)?;
        let mut present: BTreeSet<_> =
            names.iter().filter_map(|name| SegmentId::from_file_name(name)).collect();
        let mut compacted = Vec::new();
        for (id, usage) in view.segments()? {
            match usage.class {
                SegmentClass::Big => {}
                SegmentClass::Log => drop(present.insert(id)),
                // One that is not uploaded was lost on this machine before that.
                class @ SegmentClass::Compacted => {
                    compacted.extend(self.copies.uploaded(id).map(
                        |RemoteCopy { object, bytes }| ManifestSegment {
                            object,
                            class,
                            bytes,
                            first_chunk: None,
                        },
                    ));
                }
            }
        }
        Ok(PendingManifest { position, present, compacted, unreferenced: Vec::new() })
    }

    /// Creates the pending manifest, once its position is in the remote store. Returns whether it was created.
    pub(super) fn finish_manifest(&self, state: &mut ManifestState) -> Result<bool> {
        let Some(pending) = &state.pending else { return Ok(false) };
        let manifest = {
            let shared = self.shared();
            let Some(cut) = &shared.cut else {
                // It was dropped in favour of the log.
                drop(shared);
                state.pending = None;
                return Ok(false);
            };
            let Some((chunk, checksum)) = cut.reached else { return Ok(false) };
            self.manifest(&shared, pending, chunk, checksum)
        };
        let name = Manifest::object_name(manifest.chunk);
        // An existing one is that of an earlier attempt whose reply was lost.
        let created = self.remote.create(&name, &[Bytes::from(manifest.encode())]);
        created.map_err(|source| Error::remote(format!("creating {name}"), &source))?;
        let mut shared = self.shared();
        shared.cut = None;
        shared.manifest = Some((manifest.chunk, manifest.created_ms));
        drop(shared);
        state.last = Some((self.clock.monotonic_ms(), manifest.next_group));
        let present = state.pending.take().map(|pending| pending.present).unwrap_or_default();
        let last = manifest.end.map(|end| end.segment);
        self.shared().log.retain(|id, _| present.contains(id) || Some(*id) > last);
        Ok(true)
    }

    fn manifest(
        &self,
        shared: &Shared,
        pending: &PendingManifest,
        chunk: u64,
        chunk_checksum: Checksum,
    ) -> Manifest {
        let position = pending.position;
        let of_log = shared
            .log
            .iter()
            .filter(|(id, _)| Some(**id) <= position.segment && pending.present.contains(id));
        let mut segments: Vec<_> = of_log
            .map(|(id, segment)| ManifestSegment {
                object: RemoteSegment { id: *id, salt: segment.salt },
                class: SegmentClass::Log,
                bytes: match segment.first_chunk {
                    Some(_) if Some(*id) == position.segment => position.offset,
                    _ => segment.bytes,
                },
                first_chunk: segment.first_chunk,
            })
            .collect();
        segments.extend(&pending.compacted);
        segments.sort_by_key(|segment| segment.object.id);
        Manifest {
            store: self.store.store,
            chunk,
            chunk_checksum,
            created_ms: self.clock.unix_ms(),
            last_lsn: position.lsn,
            end: position.segment.map(|segment| Predecessor { segment, end: position.offset }),
            next_group: position.next_group,
            previous_group: position.previous_group,
            epoch: shared.epoch,
            segments,
            unreferenced: pending.unreferenced.clone(),
        }
    }

    /// Performs one step of uploads, manifests and collection. Waits for the network.
    pub(crate) fn step_upkeep(&self) -> Result<ReplicationStep> {
        let stepped = self.do_upkeep();
        self.shared().upkeep_error = error_text(&stepped);
        stepped
    }
}
