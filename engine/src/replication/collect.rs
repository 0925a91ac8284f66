//! Collection: removes manifests, chunks and segments that no restore point needs.
//!
//! A manifest lists the segments in `seg/` that neither it nor a later one needs. They are removed once it is the
//! oldest retained manifest, or older. A segment is needed if its id is: one that another process uploaded under the id
//! of a needed one remains as long as that.
//!
//! Guarantees: D6. Nothing is removed while another process may be the primary.

use std::collections::BTreeSet;

use super::Replication;
use super::remote_log::{
    list_all, list_manifests, newest_manifest, read_chunk_header, read_manifest,
};
use crate::error::{Error, Result};
use crate::format::{
    CHUNK_HEADER_BYTES, CHUNK_PREFIX, Chunk, ChunkKind, Manifest, REMOTE_SEGMENT_PREFIX,
    RemoteSegment, SegmentId,
};
use crate::index::View;
use crate::limits;
use crate::remote::RemoteStore;
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
        let mut found = Vec::new();
        list_all(self.replication.remote.as_ref(), REMOTE_SEGMENT_PREFIX, None, |object| {
            let segment = RemoteSegment::from_object_name(&object.name);
            found.extend(segment.filter(|segment| self.is_unreferenced(*segment)));
        })?;
        found.sort_unstable();
        found.truncate(limits::UNREFERENCED_MAX);
        Ok(found)
    }

    fn is_unreferenced(&self, segment: RemoteSegment) -> bool {
        let is_uncommitted = self.replication.copies.is_uncommitted(segment.id);
        segment.id.get() < self.floor && !self.needed.contains(&segment.id) && !is_uncommitted
    }
}

impl Replication {
    /// Removes what no restore point needs.
    pub(super) fn collect(&self) -> Result<()> {
        self.require_primary()?;
        let manifests = list_manifests(self.remote.as_ref())?;
        let retained = retained(&manifests, self.clock.unix_ms(), self.options.retention_ms);
        let Some(oldest) = retained.first().copied() else { return Ok(()) };
        for (chunk, _) in &manifests {
            if *chunk <= oldest {
                self.remove_unreferenced(*chunk)?;
            }
            if !retained.contains(chunk) {
                self.remove(&Manifest::object_name(*chunk))?;
            }
        }
        self.collect_chunks()
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

    fn remove_unreferenced(&self, chunk: u64) -> Result<()> {
        let manifest = match read_manifest(self.remote.as_ref(), chunk) {
            Ok(Some(manifest)) => manifest,
            Ok(None) | Err(Error::Corrupt(_)) => return Ok(()),
            Err(other) => return Err(other),
        };
        let view = self.index.view();
        for segment in manifest.unreferenced {
            let is_needed = view.segment_usage(segment.id)?.is_some()
                || self.copies.is_uncommitted(segment.id)
                || self.segments.is_retained(segment.id);
            if !is_needed {
                self.remove(&segment.object_name())?;
                self.copies.forget(segment.id);
            }
        }
        Ok(())
    }

    /// Removes chunks before that of the newest manifest whose bytes are in `seg/`. That of the manifest remains:
    /// therefore a fence on the number of a removed chunk is recognized (`fence.rs`).
    fn collect_chunks(&self) -> Result<()> {
        let Some(newest) = newest_manifest(self.remote.as_ref())? else { return Ok(()) };
        let in_chunks = newest.segments.iter().filter_map(|segment| segment.first_chunk).min();
        let end = in_chunks.unwrap_or(u64::MAX).min(newest.chunk);
        let oldest_ms = self.clock.unix_ms().saturating_sub(limits::CHUNK_AGE_MS_MIN);
        let mut old = Vec::new();
        list_all(self.remote.as_ref(), CHUNK_PREFIX, None, |object| {
            let number = Chunk::number_of(&object.name);
            let number = number.filter(|number| *number < end && object.modified_ms <= oldest_ms);
            old.extend(number.map(|number| (number, object.bytes > CHUNK_HEADER_BYTES as u64)));
        })?;
        for (number, has_body) in old {
            let is_fence = !has_body
                && read_chunk_header(self.remote.as_ref(), number)?
                    .is_some_and(|chunk| chunk.kind == ChunkKind::Fence);
            if !is_fence {
                self.remove(&Chunk::object_name(number))?;
            }
        }
        Ok(())
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
