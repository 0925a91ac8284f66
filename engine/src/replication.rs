//! Continuous replication of a store to a remote store, and restore from it.
//!
//! The *primary*, the process that has the store open, ships its log as one sequence of create-only objects, the
//! *chunks*, and every sealed segment as it is. A *manifest* names the segments of which the store consists as of a
//! chunk. A process becomes the primary by creating a *fence*, the chunk that begins an *epoch*. `FORMAT.md` has the
//! objects.
//!
//! Guarantees:
//!
//! - D1: The log is the chunks from a manifest on, in order, up to the first number that does not exist.
//! - D2: Nothing that a chunk refers to is missing: a big segment and the outputs of a compaction are in the remote
//!   store before the chunk with their record, unless a durable record has ended the object. Then no manifest is made
//!   as of a chunk before that record.
//! - D3: A log segment is uploaded only when its end is settled: after the chunk with the header of its successor.
//! - D4: With [`RemoteAck::Remote`] no batch is acknowledged before the chunk that covers it was created by this
//!   process.
//! - D5: A chunk is retried with the same bytes or not at all. If its name exists, it is read: the same bytes are
//!   success, no object means to retry, anything else fences this process.
//! - D6: A chunk or segment is removed only if a manifest that does not need it was created before, and no retained
//!   manifest needs it. A fence is never removed.
//! - D8: No log segment is compacted or punched before it is in the remote store, and no file is evicted before its
//!   copy was listed there with its length.
//! - D9: A manifest describes the store as of a chunk that its creator created, and contains the checksum of that
//!   chunk.
//!
//! Non-goals: consensus, copies and repair of objects: the remote store does that; several primaries; the network.

mod acknowledgements;
mod chunk_source;
mod collect;
mod evict;
mod fence;
mod folder;
mod inspect;
mod manifests;
mod mark;
mod mend;
mod refer;
mod remote_log;
mod restore;
mod segment_uploads;
mod ship;
mod status;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use uuid::Uuid;

use self::acknowledgements::Acknowledgements;
pub use self::collect::{CollectionReport, RemoteGarbage};
use self::evict::EvictionState;
pub use self::folder::{
    detach_folder, folder_needs_remote, restore_folder, restore_folder_references,
};
pub use self::inspect::{
    FolderStatus, LastChunk, PrefixSize, RemoteStatus, folder_status, remote_sizes, remote_status,
};
use self::manifests::ManifestState;
pub use self::mark::detach;
pub(crate) use self::mark::protect_unreplicated;
use self::mend::MendState;
pub use self::restore::{RestorePoint, RestoreReport, restore, restore_points, restore_references};
use self::segment_uploads::InitialUpload;
use self::ship::PendingChunk;
use self::status::Shared;
pub use self::status::{
    RemoteAck, ReplicationOptions, ReplicationState, ReplicationStatus, TierStatus,
};
use crate::clock::Clock;
use crate::commit::HealthState;
use crate::disk::Disk;
use crate::format::StoreFile;
use crate::index::Index;
use crate::remote::{CountedRemote, RemoteStore};
use crate::rng::Rng;
use crate::segment::{LogPosition, RemoteSegments, SegmentSet};
use crate::tier::TieredDisk;

/// Replication of an open store.
pub(crate) struct Replication {
    options: ReplicationOptions,
    tier: Arc<TieredDisk>,
    remote: Arc<CountedRemote>,
    segments: Arc<SegmentSet>,
    copies: Arc<RemoteSegments>,
    index: Arc<Index>,
    health: Arc<HealthState>,
    clock: Arc<dyn Clock>,
    rng: Arc<dyn Rng>,
    store: StoreFile,
    /// Id of this process.
    primary: Uuid,
    /// End of the log when the store was opened.
    opened_at: LogPosition,
    acknowledgements: Acknowledgements,
    shared: Mutex<Shared>,
    /// Chunk whose creation is not confirmed yet. Locked during a step of shipping.
    pending: Mutex<Option<PendingChunk>>,
    /// Locked during a step of uploads, manifests and collection.
    upkeep: Mutex<UpkeepState>,
}

/// State of uploads, manifests and collection.
#[derive(Default)]
struct UpkeepState {
    initial: InitialUpload,
    is_probed: bool,
    manifests: ManifestState,
    collected_ms: Option<u64>,
    eviction: EvictionState,
    mending: MendState,
}

/// Result of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplicationStep {
    /// Did something; there may be more to do.
    Worked,
    /// Nothing to do now.
    Idle,
}

/// Parts of an open store that replication uses.
pub(crate) struct ReplicationContext {
    pub(crate) tier: Arc<TieredDisk>,
    pub(crate) remote: Arc<CountedRemote>,
    pub(crate) segments: Arc<SegmentSet>,
    pub(crate) index: Arc<Index>,
    pub(crate) health: Arc<HealthState>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) rng: Arc<dyn Rng>,
    pub(crate) store: StoreFile,
    pub(crate) position: LogPosition,
}

impl Replication {
    /// Creates the replication of a store that was just opened, before its first write.
    pub(crate) fn new(context: ReplicationContext, options: ReplicationOptions) -> Arc<Self> {
        let ReplicationContext { tier, remote, segments, index, health, .. } = context;
        let ReplicationContext { clock, rng, store, position, .. } = context;
        let uploads_before_commit = options.ack == RemoteAck::Remote;
        let uploader = Arc::clone(&remote) as Arc<dyn RemoteStore>;
        let copies = Arc::new(RemoteSegments::new(
            Arc::clone(&tier) as Arc<dyn Disk>,
            segments.store(),
            Some(uploader),
            uploads_before_commit,
        ));
        segments.replicate(Arc::clone(&copies));
        Arc::new(Self {
            tier,
            remote,
            copies,
            index,
            health,
            store,
            primary: rng.uuid(),
            rng,
            opened_at: position,
            acknowledgements: Acknowledgements::default(),
            shared: Mutex::new(Shared::new(clock.monotonic_ms())),
            pending: Mutex::default(),
            upkeep: Mutex::default(),
            segments,
            clock,
            options,
        })
    }

    fn shared(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn end_of_log(&self) -> LogPosition {
        self.index.view().position().map_or(LogPosition::START, LogPosition::from)
    }
}
