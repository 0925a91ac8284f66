//! Becoming the primary: by creating a fence in the first free chunk.
//!
//! Guarantees: a process becomes the primary only if its own log contains the log in the remote store. After the
//! fence it looks at the manifests once more: a fence in the collected past counts for nothing.

use super::chunk_source::{contains, start_of_segment};
use super::mark::{read_mark, write_mark};
use super::remote_log::{RemoteLog, newest_manifest, read_remote_file};
use super::ship::{ChunkOutcome, PendingChunk};
use super::{Replication, ReplicationState};
use crate::error::{Error, Result};
use crate::format::{
    Chunk, ChunkKind, REMOTE_FILE, RemoteMark, RemoteSegment, SegmentClass, encode_remote_file,
};
use crate::remote::RemoteStore;
use crate::segment::RemoteCopy;
use crate::tier::evicted_segments;

impl Replication {
    /// Becomes the primary, or fails. A log that differs fences this process.
    pub(super) fn become_primary(&self) -> Result<()> {
        self.attach()?;
        for _ in 0..ATTEMPTS_MAX {
            let log = match RemoteLog::read(self.remote.as_ref(), &self.store) {
                Ok(log) => log,
                // A chunk that does not follow was superseded if a newer manifest continues the log.
                Err(Error::Corrupt(_)) if self.manifest_was_replaced()? => continue,
                Err(error) => return Err(error),
            };
            if !contains(&self.segments, &log.position)? {
                return Err(self.fence(&format!(
                    "the log in the remote store ends at LSN {} with writes that this folder does not have; restore \
                     it with `trug remote restore`",
                    log.position.lsn
                )));
            }
            let own_epoch = self.own_epoch(&log)?;
            let is_ahead = log.position.lsn < self.opened_at.lsn
                || log.position.segment != self.opened_at.segment;
            if own_epoch < log.epoch && is_ahead {
                return Err(self.fence(&format!(
                    "another process became the primary in epoch {}, and this folder has writes that were never \
                     shipped; restore the store with `trug remote restore`",
                    log.epoch
                )));
            }
            let (store, primary) = (self.store.store, self.primary);
            let mark = RemoteMark { store, epoch: own_epoch, primary };
            write_mark(self.segments.disk(), &mark)?;
            let fence = self.fence_after(&log)?;
            let pending = PendingChunk { chunk: fence, body: Vec::new() };
            match self.put_chunk(&pending)? {
                ChunkOutcome::Ours => {}
                ChunkOutcome::Other(_) => continue,
            }
            if self.is_superseded(&fence)? {
                continue;
            }
            let led = RemoteMark { epoch: fence.epoch, ..mark };
            write_mark(self.segments.disk(), &led)?;
            self.lead(log, &fence);
            return Ok(());
        }
        Err(Error::RemoteUnavailable("another process creates chunks at the same time".into()))
    }

    /// Makes the remote store that of this store, or checks that it is.
    fn attach(&self) -> Result<()> {
        let found = match read_remote_file(self.remote.as_ref())? {
            Some(found) => found,
            None => {
                let evicted = evicted_segments(self.tier.local());
                let evicted = evicted.map_err(|source| Error::io("listing segments", source))?;
                if !evicted.is_empty() {
                    return Err(self.fence(
                        "segments of this folder are only in another remote store; set remote_url to that one",
                    ));
                }
                let content = encode_remote_file(&self.store).into();
                let created = self.remote.create(REMOTE_FILE, &[content]);
                created.map_err(|why| Error::remote(format!("creating {REMOTE_FILE}"), &why))?;
                read_remote_file(self.remote.as_ref())?.unwrap_or(self.store)
            }
        };
        if found.store != self.store.store {
            return Err(self.fence(&format!(
                "the remote store belongs to store {}, this folder contains store {}; use another prefix",
                found.store, self.store.store
            )));
        }
        Ok(())
    }

    fn manifest_was_replaced(&self) -> Result<bool> {
        let newest = newest_manifest(self.remote.as_ref())?;
        let Some(newest) = newest else { return Ok(false) };
        let mut log = RemoteLog::at(Some(newest), &self.store)?;
        Ok(log.follow(self.remote.as_ref(), &self.store, |_| true).is_ok())
    }

    /// Returns the last epoch whose primary had this folder. A folder with unshipped writes must not continue after a
    /// later one, whose primary may have removed what those writes refer to.
    fn own_epoch(&self, log: &RemoteLog) -> Result<u64> {
        let Some(mark) = read_mark(self.segments.disk())? else { return Ok(0) };
        let fences = log.chunks.iter().filter(|chunk| chunk.kind == ChunkKind::Fence);
        let own = fences.filter(|fence| fence.primary == mark.primary).map(|fence| fence.epoch);
        Ok(own.max().unwrap_or(0).max(mark.epoch))
    }

    fn fence_after(&self, log: &RemoteLog) -> Result<Chunk> {
        let is_first = log.chunk == 0;
        // The newest segment is shipped from its beginning: until its end is settled it must not be uploaded (D3).
        let position = match is_first {
            true => start_of_segment(&self.segments, &self.opened_at)?,
            false => log.position,
        };
        {
            let mut shared = self.shared();
            shared.position = position;
            shared.chunk = log.chunk;
            shared.chunk_checksum = log.checksum;
        }
        Ok(Chunk { epoch: log.epoch + 1, ..self.empty_chunk(ChunkKind::Fence) })
    }

    /// Returns whether the fence is in the collected past: on the number of a chunk that was removed, or behind such a
    /// fence. Chunks are removed only before that of the newest manifest, so both are at most that number.
    fn is_superseded(&self, fence: &Chunk) -> Result<bool> {
        let newest = newest_manifest(self.remote.as_ref())?;
        Ok(newest.is_some_and(|manifest| manifest.chunk >= fence.number))
    }

    fn lead(&self, log: RemoteLog, fence: &Chunk) {
        self.copies.allow_uploads();
        let manifest = log.manifest.as_ref();
        for (id, segment) in &log.log {
            if segment.first_chunk.is_none() {
                let object = RemoteSegment { id: *id, salt: segment.salt };
                self.copies.mark_uploaded(RemoteCopy { object, bytes: segment.bytes });
            }
        }
        let listed = manifest.into_iter().flat_map(|manifest| &manifest.segments);
        for segment in listed.filter(|segment| segment.class == SegmentClass::Compacted) {
            self.copies.mark_uploaded(RemoteCopy { object: segment.object, bytes: segment.bytes });
        }
        let mut shared = self.shared();
        shared.epoch = fence.epoch;
        shared.log = log.log;
        shared.is_complete = manifest.is_some();
        shared.manifest = manifest.map(|manifest| (manifest.chunk, manifest.created_ms));
        shared.state = ReplicationState::Primary;
        drop(shared);
        self.created(fence);
    }
}

/// Maximum number of fences that a start tries to create.
const ATTEMPTS_MAX: u32 = 16;
