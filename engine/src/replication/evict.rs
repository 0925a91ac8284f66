//! Eviction: segments whose files are removed from this machine because the remote store has them.
//!
//! The least recently read segments are evicted while those on this machine, with the cache files of evicted ones, have
//! more than [`ReplicationOptions::local_bytes_max`](super::ReplicationOptions::local_bytes_max) bytes. A cache file
//! into which the whole segment was read becomes its file again. Without a limit, all are fetched back.
//!
//! Guarantees: a file is removed only after the remote store listed its copy with the same length. The log from the
//! last checkpoint on, which the next opening replays, remains.

use std::collections::BTreeMap;
use std::io::ErrorKind;

use super::Replication;
use super::status::TierStatus;
use crate::disk::{Disk, DiskFile};
use crate::error::{Error, Result};
use crate::format::{RemoteReference, SegmentClass, SegmentId};
use crate::limits;
use crate::tier::{reference_of, segment_folders};

/// State of the eviction.
#[derive(Default)]
pub(super) struct EvictionState {
    /// Monotonic time of the last listing.
    listed_ms: Option<u64>,
    /// Whether the segments listed then are still compared with the limit.
    is_active: bool,
    local: BTreeMap<SegmentId, LocalSegment>,
    /// Segments that are only in the remote store.
    remote: BTreeMap<SegmentId, RemoteOnly>,
    evictions: u64,
}

/// Segment with a file on this machine.
#[derive(Clone, Copy)]
struct LocalSegment {
    class: SegmentClass,
    bytes: u64,
    /// Monotonic time of the last read, or of the first listing; 0 if it existed when the store was opened.
    used_ms: u64,
}

/// Segment that is only in the remote store.
#[derive(Clone, Copy)]
struct RemoteOnly {
    class: SegmentClass,
    bytes: u64,
}

/// What can be removed from this machine.
#[derive(Clone, Copy)]
enum Candidate {
    File(SegmentId, LocalSegment),
    Cache(SegmentId),
}

impl Replication {
    /// Evicts one segment if those on this machine are larger than the limit. Returns false if there is nothing to do
    /// now.
    pub(super) fn evict_next(&self, state: &mut EvictionState) -> Result<bool> {
        let limit = self.options.local_bytes_max;
        let now_ms = self.clock.monotonic_ms();
        let since = state.listed_ms.map(|at| now_ms.saturating_sub(at));
        let is_due = match since {
            None => true,
            Some(since) => {
                since >= limits::EVICTION_INTERVAL_MS && (limit > 0 || !state.remote.is_empty())
            }
        };
        if !is_due && !state.is_active {
            return Ok(false);
        }
        if !state.is_active {
            self.list_segments(state, now_ms)?;
            self.promote_complete(state)?;
        }
        self.publish_tier(state);
        state.is_active = if limit == 0 { self.recall(state)? } else { self.evict(state, limit)? };
        Ok(state.is_active)
    }

    fn publish_tier(&self, state: &EvictionState) {
        self.shared().tier = TierStatus {
            local_bytes: state.local.values().map(|segment| segment.bytes).sum(),
            cached_bytes: self.tier.cached().iter().map(|cache| cache.bytes).sum(),
            remote_segments: state.remote.len() as u64,
            remote_bytes: state.remote.values().map(|segment| segment.bytes).sum(),
            evictions: state.evictions,
            ..TierStatus::default()
        };
    }

    /// Evicts the least recently read segment if the limit is exceeded. Returns false if it is not.
    fn evict(&self, state: &mut EvictionState, limit: u64) -> Result<bool> {
        let cached_bytes: u64 = self.tier.cached().iter().map(|cache| cache.bytes).sum();
        let local_bytes: u64 = state.local.values().map(|segment| segment.bytes).sum();
        let is_above = local_bytes.saturating_add(cached_bytes) > limit;
        let candidate = if is_above { self.least_recently_read(state)? } else { None };
        match candidate {
            Some(Candidate::File(id, segment)) => self.evict_file(state, id, segment)?,
            Some(Candidate::Cache(id)) => {
                let io = |source| Error::io(format!("emptying the cache of segment {id}"), source);
                self.tier.trim(id).map_err(io)?;
            }
            None => return Ok(false),
        }
        Ok(true)
    }

    /// Fetches one segment back to this machine. Returns false if there is none, or not enough space.
    fn recall(&self, state: &mut EvictionState) -> Result<bool> {
        let Some((id, segment)) = state.remote.first_key_value() else { return Ok(false) };
        let (id, RemoteOnly { class, bytes }) = (*id, *segment);
        let free_bytes = self.tier.free_bytes();
        let free_bytes = free_bytes.map_err(|source| Error::io("measuring free space", source))?;
        if free_bytes < bytes.saturating_add(limits::RECALL_FREE_BYTES_MIN) {
            return Ok(false);
        }
        let path = id.path(class);
        match self.tier.open(&path) {
            Ok(file) => fetch_whole(file.as_ref(), &path)?,
            // It was removed in the meantime.
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(source) => return Err(Error::io(format!("opening {path}"), source)),
        }
        self.promote_complete(state)?;
        // A segment that was removed, or that could not be written, waits for the next listing.
        state.remote.remove(&id);
        Ok(true)
    }

    /// Lists the segments by where they are.
    fn list_segments(&self, state: &mut EvictionState, now_ms: u64) -> Result<()> {
        let first_ms = if state.listed_ms.is_none() { 0 } else { now_ms };
        let (known_local, known_remote) =
            (std::mem::take(&mut state.local), std::mem::take(&mut state.remote));
        let list = |folder: &str| {
            let names = self.tier.local().list(folder);
            names.map_err(|source| Error::io(format!("listing {folder}"), source))
        };
        let folders = segment_folders(self.tier.local());
        let folders = folders.map_err(|source| Error::io("listing folders of segments", source))?;
        for (folder, class) in folders {
            for name in list(&folder)? {
                if let Some(id) = SegmentId::from_file_name(&name) {
                    let known = known_local.get(&id).copied();
                    let found = known.or_else(|| self.local_segment(id, class, first_ms));
                    state.local.extend(found.map(|segment| (id, segment)));
                } else if let Some(id) = reference_of(&name) {
                    let known = known_remote.get(&id).copied();
                    let found = known.or_else(|| self.remote_only(id, class));
                    state.remote.extend(found.map(|segment| (id, segment)));
                }
            }
        }
        let EvictionState { local, remote, .. } = state;
        remote.retain(|id, _| !local.contains_key(id));
        for (id, segment) in local {
            let read_ms = self.segments.last_read_ms(*id).unwrap_or(0);
            segment.used_ms = segment.used_ms.max(read_ms);
        }
        state.listed_ms = Some(now_ms);
        Ok(())
    }

    /// Returns the length of a file; `None` if it was removed in the meantime.
    fn local_segment(
        &self,
        id: SegmentId,
        class: SegmentClass,
        used_ms: u64,
    ) -> Option<LocalSegment> {
        let bytes = self.tier.local().open(&id.path(class)).and_then(|file| file.bytes_len());
        bytes.ok().map(|bytes| LocalSegment { class, bytes, used_ms })
    }

    fn remote_only(&self, id: SegmentId, class: SegmentClass) -> Option<RemoteOnly> {
        let reference = self.tier.reference(&id.path(class)).ok().flatten();
        reference.map(|(reference, _)| RemoteOnly { class, bytes: reference.bytes })
    }

    /// Makes segments local that were read entirely.
    fn promote_complete(&self, state: &mut EvictionState) -> Result<()> {
        for cache in self.tier.cached().into_iter().filter(|cache| cache.is_complete) {
            let Some(RemoteOnly { class, bytes }) = state.remote.get(&cache.id).copied() else {
                continue;
            };
            match self.tier.promote(cache.id, class) {
                // It was removed in the meantime.
                Err(error) if error.kind() == ErrorKind::NotFound => continue,
                other => other.map_err(|source| {
                    Error::io(format!("making segment {} local", cache.id), source)
                })?,
            }
            self.segments.reopen(cache.id);
            state.remote.remove(&cache.id);
            let used_ms = cache.last_read_ms;
            state.local.insert(cache.id, LocalSegment { class, bytes, used_ms });
        }
        Ok(())
    }

    fn least_recently_read(&self, state: &EvictionState) -> Result<Option<Candidate>> {
        let view = self.index.view();
        let replayed = view.checkpointed_position().and_then(|position| position.segment);
        let mut oldest: Option<(u64, Candidate)> = None;
        let mut consider = |used_ms: u64, candidate| {
            if oldest.is_none_or(|(oldest_ms, _)| used_ms < oldest_ms) {
                oldest = Some((used_ms, candidate));
            }
        };
        for (id, segment) in &state.local {
            let is_replayed = segment.class == SegmentClass::Log && Some(*id) >= replayed;
            // A segment of neither kind is in flight.
            let is_in_use = || -> Result<bool> {
                Ok(view.segment_usage(*id)?.is_some() || self.segments.is_retained(*id))
            };
            if !is_replayed && !self.segments.is_unsealed(*id) && is_in_use()? {
                consider(segment.used_ms, Candidate::File(*id, *segment));
            }
        }
        for cache in self.tier.cached().into_iter().filter(|cache| cache.bytes > 0) {
            consider(cache.last_read_ms, Candidate::Cache(cache.id));
        }
        Ok(oldest.map(|(_, candidate)| candidate))
    }

    fn evict_file(
        &self,
        state: &mut EvictionState,
        id: SegmentId,
        segment: LocalSegment,
    ) -> Result<()> {
        let LocalSegment { class, bytes, .. } = segment;
        // Whatever happens, the next listing decides.
        state.local.remove(&id);
        let object = match self.copies.upload_if_missing(id, class) {
            // It was removed in the meantime, or is damaged.
            Err(Error::Corrupt(_)) => return Ok(()),
            Err(Error::Io { source, .. }) if source.kind() == ErrorKind::NotFound => return Ok(()),
            other => other?.object,
        };
        let reference = RemoteReference { store: self.store.store, object, bytes };
        match self.tier.evict(class, &reference) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
            other => other.map_err(|source| Error::io(format!("evicting segment {id}"), source))?,
        }
        self.segments.reopen(id);
        state.remote.insert(id, RemoteOnly { class, bytes });
        state.evictions += 1;
        Ok(())
    }
}

/// Reads a file of the remote store to its end, so that its cache file has all of it.
pub(super) fn fetch_whole(file: &dyn DiskFile, path: &str) -> Result<()> {
    let io = |source| Error::io(format!("reading {path}"), source);
    let end = file.bytes_len().map_err(io)?;
    let piece_bytes = limits::TIER_READ_AHEAD_BYTES_MAX;
    let mut buffer = vec![0; usize::try_from(end.min(piece_bytes)).unwrap_or(0)];
    let mut at = 0;
    while at < end {
        let length = usize::try_from((end - at).min(piece_bytes)).unwrap_or(0);
        let piece = buffer.get_mut(..length).unwrap_or_default();
        file.read_at(at, piece).map_err(io)?;
        at += length as u64;
    }
    Ok(())
}
