//! Options and status of replication.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use uuid::Uuid;

use super::Replication;
use super::collect::CollectionReport;
use super::manifests::Cut;
use crate::error::{Error, Result};
use crate::format::{Checksum, SegmentId};
use crate::limits;
use crate::remote::{ProbeReport, RemoteStore, RequestCounts};
use crate::segment::{LogPosition, RemoteCopy};

/// Options of replication.
#[derive(Clone)]
pub struct ReplicationOptions {
    /// Remote store.
    pub remote: Arc<dyn RemoteStore>,
    /// When a batch is acknowledged.
    pub ack: RemoteAck,
    /// Pause between two chunks with [`RemoteAck::Local`], in milliseconds: about the time whose writes are lost with
    /// the machine.
    pub ship_interval_ms: u64,
    /// Time in seconds without a created chunk after which writes are rejected; 0: they are not.
    pub lease_seconds: u16,
    /// Time in milliseconds for which the store can be restored to an earlier state.
    pub retention_ms: u64,
    /// Number of bytes of segments on this machine above which the least recently read ones are evicted: they are then
    /// read from the remote store. 0: none is, and evicted ones are fetched back.
    pub local_bytes_max: u64,
    /// Whether the properties of the remote store are observed once ([`probe`](crate::remote::probe)).
    pub probe: bool,
}

/// When a batch is acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RemoteAck {
    /// When it is durable on this machine.
    Local,
    /// When the remote store has it as well.
    Remote,
}

impl ReplicationOptions {
    /// Creates options with the defaults of [`limits`].
    pub fn new(remote: Arc<dyn RemoteStore>) -> Self {
        Self {
            remote,
            ack: RemoteAck::Local,
            ship_interval_ms: limits::SHIP_INTERVAL_MS,
            lease_seconds: 0,
            retention_ms: limits::REMOTE_RETENTION_MS,
            local_bytes_max: 0,
            probe: true,
        }
    }
}

impl fmt::Debug for ReplicationOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReplicationOptions")
            .field("ack", &self.ack)
            .field("ship_interval_ms", &self.ship_interval_ms)
            .field("lease_seconds", &self.lease_seconds)
            .field("retention_ms", &self.retention_ms)
            .field("local_bytes_max", &self.local_bytes_max)
            .finish_non_exhaustive()
    }
}

/// State of replication.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReplicationState {
    /// The remote store was not reached since the store was opened.
    Connecting,
    /// This process is the primary.
    Primary,
    /// Another process is the primary, or the logs differ, with the reason: nothing is shipped.
    Fenced(Arc<str>),
}

/// Status of replication.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplicationStatus {
    /// State.
    pub state: ReplicationState,
    /// When a batch is acknowledged.
    pub ack: RemoteAck,
    /// Id of this process.
    pub primary: Uuid,
    /// Epoch of this process; 0 if it is not the primary.
    pub epoch: u64,
    /// Number of the last chunk.
    pub chunk: u64,
    /// LSN of the last record in the remote store.
    pub shipped_lsn: u64,
    /// LSN of the last record of the store.
    pub last_lsn: u64,
    /// Number of log bytes that are not in the remote store, as far as they are in the newest log segment; a lower
    /// bound.
    pub unshipped_bytes: u64,
    /// Age of the oldest write that is not in the remote store, in milliseconds; 0 if there is none.
    pub lag_ms: u64,
    /// Whether everything that existed before replication began was uploaded. Until then there is no restore point.
    pub is_complete: bool,
    /// Number of segments that wait for their upload.
    pub waiting_segments: u64,
    /// Time of the last manifest, in milliseconds since 1970; `None` if there is none.
    pub last_manifest_ms: Option<u64>,
    /// Last error of a call; `None` if the last call succeeded.
    pub last_error: Option<Arc<str>>,
    /// Time in milliseconds since the last created chunk.
    pub since_chunk_ms: u64,
    /// Properties of the remote store; `None` if they were not observed yet.
    pub properties: Option<ProbeReport>,
    /// Last collection of this process; `None` before the first.
    pub collection: Option<CollectionReport>,
    /// Calls to the remote store.
    pub requests: RequestCounts,
    /// Segments by where they are; `None` if all are on this machine and no limit is set.
    pub tier: Option<TierStatus>,
}

/// Segments by where they are, as of the last comparison with [`ReplicationOptions::local_bytes_max`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TierStatus {
    /// Limit of bytes on this machine.
    pub local_bytes_max: u64,
    /// Bytes of segments on this machine.
    pub local_bytes: u64,
    /// Bytes of cache files on this machine.
    pub cached_bytes: u64,
    /// Number of segments that are only in the remote store, apart from cache files.
    pub remote_segments: u64,
    /// Bytes of these segments.
    pub remote_bytes: u64,
    /// Number of requests of reads to the remote store since the store was opened.
    pub fetches: u64,
    /// Bytes fetched by them.
    pub fetched_bytes: u64,
    /// Number of segments evicted since the store was opened.
    pub evictions: u64,
}

/// State that shipping, uploads and the status share.
pub(super) struct Shared {
    pub(super) state: ReplicationState,
    /// Last epoch; 0 for none.
    pub(super) epoch: u64,
    /// Last chunk, with its checksum.
    pub(super) chunk: u64,
    pub(super) chunk_checksum: Checksum,
    /// End of the log in the remote store.
    pub(super) position: LogPosition,
    /// Log segments of which the remote store has something.
    pub(super) log: BTreeMap<SegmentId, RemoteLogSegment>,
    /// Position at which a chunk must end, for a manifest.
    pub(super) cut: Option<Cut>,
    pub(super) manifest: Option<(u64, u64)>,
    pub(super) is_complete: bool,
    pub(super) waiting_segments: u64,
    pub(super) tier: TierStatus,
    /// Errors of the last step of shipping, and of uploads, manifests and collection.
    pub(super) ship_error: Option<Arc<str>>,
    pub(super) upkeep_error: Option<Arc<str>>,
    /// Monotonic time of the last created chunk.
    pub(super) created_ms: u64,
    /// Monotonic time since which the remote store lacks something.
    pub(super) behind_since_ms: Option<u64>,
    pub(super) properties: Option<ProbeReport>,
    pub(super) collection: Option<CollectionReport>,
    /// Monotonic time at which the log was last read to its end.
    pub(super) read_ms: u64,
}

/// Log segment of which the remote store has something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RemoteLogSegment {
    /// Salt of its header.
    pub(super) salt: u64,
    /// First chunk with its bytes; `None` once it is in `seg/`.
    pub(super) first_chunk: Option<u64>,
    /// Length of the object in `seg/`, or end of its groups in the chunks.
    pub(super) bytes: u64,
}

impl From<RemoteCopy> for RemoteLogSegment {
    fn from(RemoteCopy { object, bytes }: RemoteCopy) -> Self {
        Self { salt: object.salt, first_chunk: None, bytes }
    }
}

impl Shared {
    pub(super) fn new(now_ms: u64) -> Self {
        Self {
            state: ReplicationState::Connecting,
            epoch: 0,
            chunk: 0,
            chunk_checksum: Checksum::default(),
            position: LogPosition::START,
            log: BTreeMap::new(),
            cut: None,
            manifest: None,
            is_complete: false,
            waiting_segments: 0,
            tier: TierStatus::default(),
            ship_error: None,
            upkeep_error: None,
            created_ms: now_ms,
            behind_since_ms: None,
            properties: None,
            collection: None,
            read_ms: now_ms,
        }
    }
}

impl Replication {
    /// Returns the status.
    pub(crate) fn status(&self) -> ReplicationStatus {
        let end = self.end_of_log();
        let now_ms = self.clock.monotonic_ms();
        let mut shared = self.shared();
        let is_primary = shared.state == ReplicationState::Primary;
        let is_behind = shared.position != end;
        if is_behind {
            // Shipping does not notice a write while a call is under way.
            shared.behind_since_ms.get_or_insert(now_ms);
        }
        let in_segment = if shared.position.segment == end.segment {
            end.offset.saturating_sub(shared.position.offset)
        } else {
            end.offset
        };
        ReplicationStatus {
            state: shared.state.clone(),
            ack: self.options.ack,
            primary: self.primary,
            epoch: if is_primary { shared.epoch } else { 0 },
            chunk: shared.chunk,
            shipped_lsn: shared.position.lsn,
            last_lsn: end.lsn,
            unshipped_bytes: if is_behind { in_segment } else { 0 },
            lag_ms: match shared.behind_since_ms {
                Some(since_ms) if is_behind => now_ms.saturating_sub(since_ms),
                _ => 0,
            },
            is_complete: shared.is_complete,
            waiting_segments: shared.waiting_segments,
            last_manifest_ms: shared.manifest.map(|(_, created_ms)| created_ms),
            last_error: shared.ship_error.clone().or_else(|| shared.upkeep_error.clone()),
            since_chunk_ms: now_ms.saturating_sub(shared.created_ms),
            properties: shared.properties.clone(),
            collection: shared.collection,
            requests: self.remote.counts(),
            tier: (self.options.local_bytes_max > 0 || shared.tier.remote_segments > 0).then(
                || {
                    let local_bytes_max = self.options.local_bytes_max;
                    let [fetches, fetched_bytes] = self.tier.fetches();
                    TierStatus { local_bytes_max, fetches, fetched_bytes, ..shared.tier }
                },
            ),
        }
    }

    /// Fails if a write could not be acknowledged: the process is fenced, its lease has expired, or the remote store
    /// has to confirm writes and does not.
    pub(crate) fn require_available(&self) -> Result<()> {
        let acks_remotely = self.options.ack == RemoteAck::Remote;
        let lease_ms = u64::from(self.options.lease_seconds) * 1_000;
        if !acks_remotely && lease_ms == 0 {
            return Ok(());
        }
        let now_ms = self.clock.monotonic_ms();
        let shared = self.shared();
        let silent_ms = now_ms.saturating_sub(shared.created_ms);
        match &shared.state {
            ReplicationState::Fenced(why) => {
                return Err(Error::ReadOnly(Arc::clone(why)));
            }
            // The first moments after opening: writes wait for the remote store.
            ReplicationState::Connecting if silent_ms < limits::REMOTE_ACK_MS => return Ok(()),
            ReplicationState::Connecting => {
                let why = shared.ship_error.clone();
                let why = why.unwrap_or_else(|| "it was not reached yet".into());
                return Err(Error::RemoteUnavailable(why));
            }
            ReplicationState::Primary => {}
        }
        let is_failing = shared.ship_error.is_some() && silent_ms >= limits::REMOTE_ACK_MS;
        let is_expired = lease_ms > 0 && silent_ms >= lease_ms;
        if is_expired || acks_remotely && is_failing {
            let why = shared.ship_error.clone();
            return Err(Error::RemoteUnavailable(why.unwrap_or_else(|| "no reply".into())));
        }
        Ok(())
    }

    /// Ends shipping for ever: another process is the primary, or the logs differ.
    pub(super) fn fence(&self, why: &str) -> Error {
        let why: Arc<str> = why.into();
        let error = Error::ReadOnly(Arc::clone(&why));
        self.health.fail(&error);
        self.shared().state = ReplicationState::Fenced(why);
        self.acknowledgements.fail_all(&error);
        error
    }
}

/// Returns the text of the error of a step; `None` if it succeeded.
pub(super) fn error_text<T>(stepped: &Result<T>) -> Option<Arc<str>> {
    stepped.as_ref().err().map(|error| error.to_string().into())
}
