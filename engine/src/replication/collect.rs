//! Collection: removes manifests, chunks and segments that no restore point needs.
//!
//! A manifest lists the segments in `seg/` that neither it nor a later one needs. They are removed once it is the
//! oldest retained manifest, or older. A segment is needed if its id is: one that another process uploaded under the id
//! of a needed one remains as long as that.
//!
//! Guarantees: D6. Nothing is removed while another process may be the primary.

use std::collections::BTreeSet;

use super::Replication;
use super::chunk_source::contains;
use super::remote_log::{RemoteLog, list_all, newest_manifest, read_chunk_header, read_manifest};
use crate::error::{Error, Result};
use crate::format::{
    CHUNK_HEADER_BYTES, CHUNK_PREFIX, Chunk, ChunkKind, LOG_FOLDER, MANIFEST_PREFIX, Manifest,
    REMOTE_SEGMENT_PREFIX, RemoteSegment, SegmentId,
};
use crate::index::View;
use crate::limits;
use crate::remote::{RemoteObject, RemoteStore};
use crate::segment::LogPosition;

/// Search for segments in the remote store that the store no longer needs.
pub(super) struct Sweep<'a> {
    replication: &'a Replication,
    needed: BTreeSet<SegmentId>,
    /// Lowest id that may be in use for a later state.
    floor: u64,
}

impl<'a> Sweep<'a> {
    /// Creates the sweep as of a view, with the log segments that exist.
    pub(super) fn new(
        replication: &'a Replication,
        view: &View,
        present: &BTreeSet<SegmentId>,
        floor: u64,
        position: &LogPosition,
    ) -> Result<Self> {
        let mut needed: BTreeSet<_> = view.segments()?.into_iter().map(|(id, _)| id).collect();
        needed.extend(view.retained()?.into_iter().map(|(id, _)| id));
        needed.extend(present);
        let floor = position.segment.map_or(0, SegmentId::get).min(floor);
        Ok(Self { replication, needed, floor })
    }

    /// Returns the segments that are not needed, ascending, at most [`limits::UNREFERENCED_MAX`].
    pub(super) fn find(&self) -> Result<Vec<RemoteSegment>> {
        let mut found: Vec<_> = self.find_objects()?.into_iter().map(|(it, _)| it).collect();
        found.sort_unstable();
        found.truncate(limits::UNREFERENCED_MAX);
        Ok(found)
    }

    /// Returns all segments that are not needed, with their objects.
    fn find_objects(&self) -> Result<Vec<(RemoteSegment, RemoteObject)>> {
        let mut found = Vec::new();
        list_all(self.replication.remote.as_ref(), REMOTE_SEGMENT_PREFIX, None, |object| {
            let segment = RemoteSegment::from_object_name(&object.name);
            let segment = segment.filter(|segment| self.is_unreferenced(*segment));
            found.extend(segment.map(|segment| (segment, object.clone())));
        })?;
        Ok(found)
    }

    fn is_unreferenced(&self, segment: RemoteSegment) -> bool {
        let is_uncommitted = self.replication.copies.is_uncommitted(segment.id);
        segment.id.get() < self.floor && !self.needed.contains(&segment.id) && !is_uncommitted
    }
}

/// Result of a collection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CollectionReport {
    /// Number of removed objects.
    pub objects: u64,
    /// Size of the removed objects in bytes.
    pub bytes: u64,
}

/// Objects of a remote store that no later state needs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RemoteGarbage {
    /// Objects that a collection removes: no restore point needs them.
    pub removable: Vec<RemoteObject>,
    /// Segments that a retained restore point may need. A manifest lists them first; they are removed when it is the
    /// oldest one.
    pub waiting: Vec<RemoteObject>,
}

impl Replication {
    /// Removes what no restore point needs.
    pub(super) fn collect(&self) -> Result<()> {
        self.require_primary()?;
        let mut report = CollectionReport::default();
        for object in self.removable(None)? {
            self.remove(&object.name)?;
            if let Some(segment) = RemoteSegment::from_object_name(&object.name) {
                self.copies.forget(segment.id);
            }
            report.objects += 1;
            report.bytes += object.bytes;
        }
        self.shared().collection = Some(report);
        Ok(())
    }

    /// Returns what a collection would remove if the next manifest was created now, and what waits for it. Reads the
    /// remote store, and changes nothing.
    ///
    /// Fails with [`Error::ReadOnly`] if the remote store has writes that this folder lacks.
    pub(crate) fn garbage(&self) -> Result<RemoteGarbage> {
        let log = RemoteLog::read(self.remote.as_ref(), &self.store)?;
        if !contains(&self.segments, &log.position)? {
            let why = "the remote store has writes that this folder does not have";
            return Err(Error::ReadOnly(why.into()));
        }
        let removable = self.removable(Some(self.clock.unix_ms()))?;
        let floor = self.segments.orphan_floor();
        let view = self.index.view();
        let position = view.position().map_or(LogPosition::START, LogPosition::from);
        let io = |source| Error::io(format!("listing {LOG_FOLDER}"), source);
        let names = self.segments.disk().list(LOG_FOLDER).map_err(io)?;
        let present = names.iter().filter_map(|name| SegmentId::from_file_name(name)).collect();
        let sweep = Sweep::new(self, &view, &present, floor, &position)?;
        let unreferenced = sweep.find_objects()?.into_iter().map(|(_, object)| object);
        let waiting = unreferenced.filter(|object| !removable.contains(object)).collect();
        Ok(RemoteGarbage { removable, waiting })
    }

    /// Fails if the chunk after the last one exists and is another process's.
    fn require_primary(&self) -> Result<()> {
        let next = self.shared().chunk + 1;
        match read_chunk_header(self.remote.as_ref(), next)? {
            Some(chunk) if chunk.primary != self.primary => {
                let (primary, epoch) = (chunk.primary, chunk.epoch);
                Err(self.fence(&format!("process {primary} of epoch {epoch} created chunk {next}")))
            }
            _ => Ok(()),
        }
    }

    /// Returns what no restore point needs, in the order of removal: the segments that a manifest lists before the
    /// manifest. With `next_ms`, a further manifest is counted that would be created at this time.
    fn removable(&self, next_ms: Option<u64>) -> Result<Vec<RemoteObject>> {
        let mut manifests = Vec::new();
        list_all(self.remote.as_ref(), MANIFEST_PREFIX, None, |object| {
            let chunk = Manifest::chunk_of(&object.name);
            manifests.extend(chunk.map(|chunk| (chunk, object.clone())));
        })?;
        let mut times: Vec<_> = manifests.iter().map(|(at, it)| (*at, it.modified_ms)).collect();
        times.extend(next_ms.map(|next_ms| (u64::MAX, next_ms)));
        let retained = retained(&times, self.clock.unix_ms(), self.options.retention_ms);
        let Some(oldest) = retained.first().copied() else { return Ok(Vec::new()) };
        let mut unneeded = BTreeSet::new();
        for (chunk, _) in manifests.iter().filter(|(chunk, _)| *chunk <= oldest) {
            unneeded.extend(self.listed_unneeded(*chunk)?);
        }
        let mut removable = Vec::new();
        if !unneeded.is_empty() {
            list_all(self.remote.as_ref(), REMOTE_SEGMENT_PREFIX, None, |object| {
                let segment = RemoteSegment::from_object_name(&object.name);
                let is_unneeded = segment.is_some_and(|segment| unneeded.contains(&segment));
                removable.extend(is_unneeded.then(|| object.clone()));
            })?;
        }
        let ended = manifests.into_iter().filter(|(chunk, _)| !retained.contains(chunk));
        removable.extend(ended.map(|(_, object)| object));
        removable.extend(self.old_chunks()?);
        Ok(removable)
    }

    /// Returns the segments that a manifest lists as unreferenced and that are not needed now either.
    fn listed_unneeded(&self, chunk: u64) -> Result<Vec<RemoteSegment>> {
        let manifest = match read_manifest(self.remote.as_ref(), chunk) {
            Ok(Some(manifest)) => manifest,
            Ok(None) | Err(Error::Corrupt(_)) => return Ok(Vec::new()),
            Err(other) => return Err(other),
        };
        let view = self.index.view();
        let mut unneeded = Vec::new();
        for segment in manifest.unreferenced {
            let is_needed = view.segment_usage(segment.id)?.is_some()
                || self.copies.is_uncommitted(segment.id)
                || self.segments.is_retained(segment.id);
            unneeded.extend((!is_needed).then_some(segment));
        }
        Ok(unneeded)
    }

    /// Returns the chunks before that of the newest manifest whose bytes are in `seg/`. That of the manifest remains:
    /// therefore a fence on the number of a removed chunk is recognized (`fence.rs`).
    fn old_chunks(&self) -> Result<Vec<RemoteObject>> {
        let Some(newest) = newest_manifest(self.remote.as_ref())? else { return Ok(Vec::new()) };
        let in_chunks = newest.segments.iter().filter_map(|segment| segment.first_chunk).min();
        let end = in_chunks.unwrap_or(u64::MAX).min(newest.chunk);
        let oldest_ms = self.clock.unix_ms().saturating_sub(limits::CHUNK_AGE_MS_MIN);
        let mut old = Vec::new();
        list_all(self.remote.as_ref(), CHUNK_PREFIX, None, |object| {
            let number = Chunk::number_of(&object.name);
            let number = number.filter(|number| *number < end && object.modified_ms <= oldest_ms);
            old.extend(number.map(|number| (number, object.clone())));
        })?;
        let mut chunks = Vec::new();
        for (number, object) in old {
            let is_fence = object.bytes <= CHUNK_HEADER_BYTES as u64
                && read_chunk_header(self.remote.as_ref(), number)?
                    .is_some_and(|chunk| chunk.kind == ChunkKind::Fence);
            chunks.extend((!is_fence).then_some(object));
        }
        Ok(chunks)
    }

    fn remove(&self, name: &str) -> Result<()> {
        let removed = self.remote.remove(name);
        removed.map_err(|source| Error::remote(format!("removing {name}"), &source))
    }
}

/// Returns the manifests to be retained, ascending: the newest two, all of the last day, and before that one per hour
/// within the retention.
fn retained(manifests: &[(u64, u64)], now_ms: u64, retention_ms: u64) -> Vec<u64> {
    let newest = manifests.len().saturating_sub(2);
    let mut hour = None;
    let mut retained = Vec::new();
    for (at, (chunk, modified_ms)) in manifests.iter().enumerate() {
        let age_ms = now_ms.saturating_sub(*modified_ms);
        let is_first_of_hour = hour != Some(modified_ms / HOUR_MS);
        let is_recent = age_ms < limits::MANIFESTS_ALL_MS.min(retention_ms);
        if at >= newest || is_recent || age_ms < retention_ms && is_first_of_hour {
            retained.push(*chunk);
        }
        hour = Some(modified_ms / HOUR_MS);
    }
    retained
}

const HOUR_MS: u64 = 60 * 60 * 1_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_manifest_per_hour_is_retained_after_a_day() {
        let minute = 60_000;
        let all: Vec<_> = (0..60 * 24 * 3 / 10).map(|at| (at, at * 10 * minute)).collect();
        let now_ms = 3 * 24 * 60 * minute;
        let kept = retained(&all, now_ms, 2 * 24 * 60 * minute);
        let (old, recent): (Vec<u64>, Vec<u64>) = kept.into_iter().partition(|it| *it <= 288);
        assert_eq!(recent.len(), 143, "all of the last day");
        assert_eq!(old.len(), 24, "one per hour of the day before");
        assert_eq!(retained(&all, u64::MAX, 1).len(), 2, "the newest two, however old");
    }
}
