//! Shipping: the log of the primary as chunks.
//!
//! One chunk is under way. What is committed in between gathers for the next one, as batches do behind a sync.

use std::sync::{Arc, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;

use super::chunk_source::{LogBytes, next_bytes};
use super::remote_log::{add_log_bytes, damaged, end_of};
use super::status::error_text;
use super::{RemoteAck, Replication, ReplicationState, ReplicationStep};
use crate::error::{Error, Result};
use crate::format::{
    CHUNK_HEADER_BYTES, Checksum, Chunk, ChunkKind, Malformed, RunningChecksum, SegmentClass,
    SegmentId,
};
use crate::limits;
use crate::remote::{Created, Part, RemoteStore};
use crate::segment::LogPosition;

/// Chunk to be created, with its body.
pub(super) struct PendingChunk {
    pub(super) chunk: Chunk,
    pub(super) body: Vec<Bytes>,
}

/// Result of the creation of a chunk.
pub(super) enum ChunkOutcome {
    /// The chunk exists, created by this process.
    Ours,
    /// Another chunk has this number.
    Other(Box<Chunk>),
}

impl Replication {
    /// Performs one step of shipping: becomes the primary, or creates one chunk. Waits for the network.
    ///
    /// Fails with [`Error::RemoteUnavailable`] if the remote store does not answer; the next step retries.
    pub(crate) fn step_ship(&self) -> Result<ReplicationStep> {
        let mut pending = self.pending.lock().unwrap_or_else(PoisonError::into_inner);
        let stepped = self.ship(&mut pending);
        self.shared().ship_error = error_text(&stepped);
        if let Err(error) = &stepped {
            let now_ms = self.clock.monotonic_ms();
            self.acknowledgements.fail_expired(now_ms, error);
        }
        stepped
    }

    /// Ships what is published now. What is committed in the meantime gathers for the next call.
    pub(crate) fn ship_published(&self) -> Result<()> {
        let target = self.end_of_log().next_group;
        while self.step_ship()? == ReplicationStep::Worked {
            if self.shared().position.next_group >= target {
                break;
            }
        }
        Ok(())
    }

    fn ship(&self, pending: &mut MutexGuard<'_, Option<PendingChunk>>) -> Result<ReplicationStep> {
        let state = self.shared().state.clone();
        match state {
            ReplicationState::Connecting => self.become_primary()?,
            ReplicationState::Primary => {}
            ReplicationState::Fenced(why) => return Err(Error::ReadOnly(why)),
        }
        if pending.is_none() {
            **pending = self.next_chunk()?;
        }
        let Some(next) = pending.as_ref() else { return Ok(ReplicationStep::Idle) };
        match self.put_chunk(next)? {
            ChunkOutcome::Ours => {
                if let Some(created) = pending.take() {
                    self.created(&created.chunk);
                }
                Ok(ReplicationStep::Worked)
            }
            ChunkOutcome::Other(other) => Err(self.fence(&format!(
                "process {} of epoch {} created chunk {}; this process is no longer the primary",
                other.primary, other.epoch, other.number
            ))),
        }
    }

    /// Creates a chunk, or finds that it exists (D5).
    pub(super) fn put_chunk(&self, next: &PendingChunk) -> Result<ChunkOutcome> {
        let name = Chunk::object_name(next.chunk.number);
        let remote = |source| Error::remote(format!("creating {name}"), &source);
        let mut pieces = vec![Bytes::from(next.chunk.encode())];
        pieces.extend(next.body.iter().cloned());
        if self.remote.create(&name, &pieces).map_err(remote)? == Created::New {
            return Ok(ChunkOutcome::Ours);
        }
        let header = Part::Range(0..CHUNK_HEADER_BYTES as u64);
        let Some(found) = self.remote.read(&name, header).map_err(remote)? else {
            // Concurrent creations that the store did not decide.
            return Err(Error::RemoteUnavailable(format!("{name}: conflict, retrying").into()));
        };
        // The header contains the checksum of the body, and the id of the process.
        if Some(&found.bytes) == pieces.first() {
            return Ok(ChunkOutcome::Ours);
        }
        match Chunk::decode_header(&found.bytes) {
            Ok(other) if other.number == next.chunk.number => {
                Ok(ChunkOutcome::Other(Box::new(other)))
            }
            Ok(_) => Err(damaged(&name, Malformed::Misplaced)),
            Err(reason) => Err(damaged(&name, reason)),
        }
    }

    /// Returns a chunk of the next log bytes, or a heartbeat if one is due.
    fn next_chunk(&self) -> Result<Option<PendingChunk>> {
        let now_ms = self.clock.monotonic_ms();
        let (shipped, target) = {
            let mut shared = self.shared();
            let end = self.end_of_log();
            if shared.position == end {
                shared.behind_since_ms = None;
            } else {
                shared.behind_since_ms.get_or_insert(now_ms);
            }
            (shared.position, shared.cut.as_ref().map_or(end, |cut| cut.target(&end)))
        };
        if let Some(read) = next_bytes(&self.segments, &shipped, &target)? {
            self.upload_references(&read)?;
            if read.end == target {
                self.shared().read_ms = now_ms;
            }
            return Ok(Some(self.log_chunk(read)));
        }
        let is_silent = now_ms.saturating_sub(self.shared().created_ms) >= self.heartbeat_ms();
        Ok(is_silent.then(|| PendingChunk {
            chunk: self.empty_chunk(ChunkKind::Heartbeat),
            body: Vec::new(),
        }))
    }

    /// Returns the interval of heartbeats: several within a lease.
    fn heartbeat_ms(&self) -> u64 {
        match u64::from(self.options.lease_seconds) * 1_000 / 3 {
            0 => limits::HEARTBEAT_MS,
            third_ms => third_ms.min(limits::HEARTBEAT_MS),
        }
    }

    fn log_chunk(&self, read: LogBytes) -> PendingChunk {
        let mut checksum = RunningChecksum::new();
        read.pieces.iter().for_each(|piece| checksum.update(piece));
        let chunk = Chunk {
            segment: Some(read.segment),
            salt: read.salt,
            from: read.from,
            bytes: read.pieces.iter().map(|piece| piece.len() as u64).sum(),
            last_lsn: read.end.lsn,
            next_group: read.end.next_group,
            previous_group: read.end.previous_group,
            body: checksum.finish(),
            ..self.empty_chunk(ChunkKind::Log)
        };
        PendingChunk { chunk, body: read.pieces }
    }

    /// Returns the next chunk without a body.
    pub(super) fn empty_chunk(&self, kind: ChunkKind) -> Chunk {
        let shared = self.shared();
        let LogPosition { lsn, segment, offset, next_group, previous_group } = shared.position;
        Chunk {
            store: self.store.store,
            number: shared.chunk + 1,
            epoch: shared.epoch,
            primary: self.primary,
            segment,
            from: offset,
            bytes: 0,
            last_lsn: lsn,
            next_group,
            previous_group,
            previous: shared.chunk_checksum,
            sent_ms: self.clock.unix_ms(),
            salt: 0,
            kind,
            lease_seconds: self.options.lease_seconds,
            body: Checksum::of(&[]),
        }
    }

    /// Uploads the big segments that the records name and that are not in the remote store yet (D2).
    fn upload_references(&self, read: &LogBytes) -> Result<()> {
        for id in &read.big {
            if self.copies.is_uploaded(*id) {
                continue;
            }
            match self.copies.upload_if_missing(*id, SegmentClass::Big) {
                Err(Error::Io { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => {
                    self.skip_missing(*id)?;
                }
                other => drop(other?),
            }
        }
        Ok(())
    }

    /// Accepts that a big segment no longer exists: its object was deleted by a later record, and a manifest as of this
    /// chunk is given up; otherwise it is lost on this machine as well, which reads and scrub report.
    fn skip_missing(&self, id: SegmentId) -> Result<()> {
        let view = self.index.view();
        if view.segment_usage(id)?.is_none() {
            self.shared().cut.take_if(|cut| !cut.is_reached());
        }
        Ok(())
    }

    /// Records that a chunk of this process exists, and acknowledges what it covers.
    pub(super) fn created(&self, chunk: &Chunk) {
        let now_ms = self.clock.monotonic_ms();
        let mut shared = self.shared();
        shared.chunk = chunk.number;
        shared.chunk_checksum = chunk.checksum();
        shared.position = end_of(chunk);
        shared.created_ms = now_ms;
        add_log_bytes(&mut shared.log, chunk);
        // The chunks have everything up to the time at which one of them last reached the end of the log.
        shared.behind_since_ms = shared.behind_since_ms.map(|_| shared.read_ms);
        let (position, number, checksum) = (shared.position, shared.chunk, shared.chunk_checksum);
        if let Some(cut) = shared.cut.as_mut() {
            cut.note(&position, number, checksum);
        }
        drop(shared);
        self.acknowledgements.shipped(chunk.last_lsn);
    }

    /// Calls `callback` once the remote store has the log up to this LSN, or with an error if that is not confirmed
    /// within [`limits::REMOTE_ACK_MS`].
    pub(crate) fn when_shipped(
        &self,
        lsn: u64,
        callback: impl FnOnce(Result<()>) + Send + 'static,
    ) {
        self.acknowledgements.add(lsn, self.clock.monotonic_ms(), Box::new(callback));
    }

    /// Fails the batches that have waited for too long, also while a call to the remote store is under way.
    pub(crate) fn expire_acknowledgements(&self) {
        let now_ms = self.clock.monotonic_ms();
        let known = self.shared().ship_error.clone();
        let why = known.unwrap_or_else(|| {
            format!("no response within {} s", limits::REMOTE_ACK_MS / 1_000).into()
        });
        let error = Error::RemoteUnavailable(Arc::clone(&why));
        if self.acknowledgements.fail_expired(now_ms, &error) {
            // Later writes are rejected at once.
            self.shared().ship_error.get_or_insert(why);
        }
    }

    /// Returns whether batches are acknowledged only when the remote store has them.
    pub(crate) fn acknowledges_remotely(&self) -> bool {
        self.options.ack == RemoteAck::Remote
    }

    /// Waits until there may be something to ship.
    pub(crate) fn wait_to_ship(&self, pause: &dyn Fn(Duration) -> bool) -> bool {
        let interval = Duration::from_millis(self.options.ship_interval_ms);
        match self.options.ack {
            RemoteAck::Local => pause(interval),
            RemoteAck::Remote => {
                self.acknowledgements.wait(interval.min(ACK_POLL));
                pause(Duration::ZERO)
            }
        }
    }

    /// Ships what is left when the store closes, while the remote store answers.
    pub(crate) fn finish(&self) {
        let begun_ms = self.clock.monotonic_ms();
        while self.shared().state == ReplicationState::Primary
            && self.clock.monotonic_ms().saturating_sub(begun_ms) < limits::SHIP_AT_CLOSE_MS
        {
            // A manifest that is not made yet must not hold back the log.
            self.shared().cut = None;
            match self.step_ship() {
                Ok(ReplicationStep::Worked) => {}
                Ok(ReplicationStep::Idle) | Err(_) => break,
            }
        }
        self.acknowledgements.fail_all(&Error::Closed);
    }
}

/// Interval at which a store that acknowledges remotely looks for writes that nobody waits for.
const ACK_POLL: Duration = Duration::from_millis(50);
