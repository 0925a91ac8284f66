//! Opens a store: options, environment, start-up order.

use std::path::Path;
use std::sync::{Arc, Mutex};

use super::background_threads::{CompactionThreadContext, ThreadContext, Threads};
use super::{Store, StoreInner};
use crate::clock::{Clock, SystemClock};
use crate::commit::{
    CommitLatency, Committer, CommitterContext, HealthState, Queue, RecentNoncurrent, Rollover,
};
use crate::compaction::{CompactionOptions, Compactor, CompactorContext};
use crate::disk::{Disk, RealDisk};
use crate::error::{Error, Result};
use crate::format::{Damage, SegmentClass};
use crate::free_space::FreeSpace;
use crate::limits;
use crate::metrics::Metrics;
use crate::recovery::{CacheSizes, Create, RecoveryReport, recover};
use crate::remote::{CountedRemote, RemoteStore};
use crate::replication::{
    Replication, ReplicationContext, ReplicationOptions, protect_unreplicated,
};
use crate::rng::{Rng, SystemRng};
use crate::scrub::{ScrubContext, ScrubOptions, Scrubber};
use crate::segment::Verification;
use crate::tier::TieredDisk;
use crate::upload::Uploads;
use crate::upload_memory::UploadMemoryBudget;

/// Options for opening a store.
#[derive(Clone, Debug)]
pub struct OpenOptions {
    /// Whether a folder without a store may be initialized.
    pub create: Create,
    /// Maximum size in bytes of a body in the log; a larger one goes to a big segment. At most
    /// [`limits::INLINE_BYTES_SETTING_MAX`] and an eighth of `segment_bytes`.
    pub inline_bytes_max: usize,
    /// Size of a log segment in bytes, from [`limits::SEGMENT_BYTES_MIN`] to [`limits::SEGMENT_BYTES_MAX`].
    pub segment_bytes: u64,
    /// Size of the page cache of the index in bytes.
    pub index_cache_bytes: usize,
    /// Maximum size in bytes of the cache of small, frequently read bodies, and of the block checksums of larger ones.
    pub body_cache_bytes: usize,
    /// Memory budget of all uploads together, in bytes: bodies in memory use at most three quarters of it, further ones
    /// go to big segments, whatever their size; the rest is for write buffers. Beyond it, an upload has one block.
    pub upload_memory_bytes: u64,
    /// Background compaction. `None`: compaction runs only when [`Store::compact`] is called.
    pub compaction: Option<CompactionOptions>,
    /// Free disk space in bytes that bodies may not use, so that deletions, log and index can still be written. `None`:
    /// two log segments and 64 MiB, or one percent of the disk, whichever is more. 0: no reserve.
    pub reserve_bytes: Option<u64>,
    /// Time in milliseconds for which the files of deleted or replaced large objects are retained for undelete. They
    /// are removed earlier if space is short. 0: they are removed immediately.
    pub retention_window_ms: u64,
    /// Execution of background work: threads or steps.
    pub background: Background,
    /// Background scrub, which verifies all stored data periodically. `None`: no background scrub.
    pub scrub: Option<ScrubOptions>,
    /// Whether reads verify what they return.
    pub verification: Verification,
    /// Replication to a remote store. `None`: none; the segments of a store that was replicated before are then
    /// neither compacted nor punched, see [`replication::detach`](crate::replication::detach).
    pub replication: Option<ReplicationOptions>,
}

/// Execution of background work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Background {
    /// On threads of the store.
    Threads,
    /// Without threads: [`Store::commit`] runs the committer, and the caller steps all other work. For tests and
    /// offline tools.
    Manual,
}

/// Environment of a store: disk, clock and random numbers.
#[derive(Clone)]
pub struct Environment {
    /// Disk.
    pub disk: Arc<dyn Disk>,
    /// Clock.
    pub clock: Arc<dyn Clock>,
    /// Source of random numbers.
    pub rng: Arc<dyn Rng>,
    /// Remote store with the segments that are not on the disk
    /// ([`ReplicationOptions::local_bytes_max`](crate::replication::ReplicationOptions::local_bytes_max)). Without it,
    /// reading them fails with [`Error::RemoteUnavailable`]. Not used by a store that replicates: it has its own.
    pub remote: Option<Arc<dyn RemoteStore>>,
}

impl Environment {
    /// Creates the environment of a disk with the system clock and random numbers, and without a remote store.
    pub fn new(disk: Arc<dyn Disk>) -> Self {
        let (clock, rng) = (Arc::new(SystemClock::new()), Arc::new(SystemRng));
        Self { disk, clock, rng, remote: None }
    }

    /// Creates the environment of a folder of the local file system, like [`Environment::new`].
    ///
    /// The folder is created, with missing parents, if `create` is [`Create::IfMissing`]; otherwise fails with
    /// [`Error::NotAStore`] if there is none.
    pub fn of_folder(path: &Path, create: Create) -> Result<Self> {
        let opened = match create {
            Create::IfMissing => RealDisk::open(path),
            Create::Never => RealDisk::open_existing(path),
        };
        let disk = opened.map_err(|source| match source.kind() {
            std::io::ErrorKind::NotFound => {
                Error::NotAStore(format!("folder {} does not exist", path.display()))
            }
            _ => Error::io(format!("opening {}", path.display()), source),
        })?;
        Ok(Self::new(Arc::new(disk)))
    }
}

impl OpenOptions {
    /// Creates options with the defaults of [`limits`]: threads, background compaction, no background scrub, no
    /// retention.
    pub fn new(create: Create) -> Self {
        Self {
            create,
            inline_bytes_max: limits::INLINE_BYTES_MAX,
            segment_bytes: limits::SEGMENT_BYTES_MAX,
            index_cache_bytes: limits::INDEX_CACHE_BYTES,
            body_cache_bytes: limits::BODY_CACHE_BYTES,
            upload_memory_bytes: limits::UPLOAD_MEMORY_BYTES_MAX,
            compaction: Some(CompactionOptions {
                bytes_per_second_max: limits::COMPACTION_BYTES_PER_SECOND,
                poll_ms: limits::COMPACTION_POLL_MS,
            }),
            reserve_bytes: None,
            retention_window_ms: 0,
            background: Background::Threads,
            scrub: None,
            verification: Verification::default(),
            replication: None,
        }
    }

    fn check(&self) -> Result<()> {
        if self.inline_bytes_max > limits::INLINE_BYTES_SETTING_MAX {
            return Err(Error::TooLarge("inline_bytes_max is at most 8 MiB"));
        }
        let sizes = limits::SEGMENT_BYTES_MIN..=limits::SEGMENT_BYTES_MAX;
        if !sizes.contains(&self.segment_bytes) {
            return Err(Error::TooLarge("segment_bytes is 64 KiB to 256 MiB"));
        }
        if self.inline_bytes_max as u64 > self.segment_bytes / 8 {
            return Err(Error::TooLarge("inline_bytes_max is at most an eighth of segment_bytes"));
        }
        Ok(())
    }
}

impl Store {
    /// Opens the store in a folder of the local file system, with the system clock and random numbers. See
    /// [`Store::open`].
    ///
    /// The folder is created, with missing parents, if `options.create` is [`Create::IfMissing`].
    pub fn open_folder(path: &Path, options: OpenOptions) -> Result<(Self, RecoveryReport)> {
        Self::open(Environment::of_folder(path, options.create)?, options)
    }

    /// Opens a store and returns it with the recovery report. Waits for the disk: replays the log since the last
    /// checkpoint, or the whole log if the index is missing or damaged.
    ///
    /// Damage is not an error: it is in the report. Fails with [`Error::InUse`] if another process has the store open,
    /// with [`Error::NotAStore`] if there is none or this version cannot read it, and with [`Error::TooLarge`] for
    /// options out of bounds.
    pub fn open(surroundings: Environment, options: OpenOptions) -> Result<(Self, RecoveryReport)> {
        options.check()?;
        let Environment { disk, clock, rng, remote: of_segments } = surroundings;
        let opened_ms = clock.unix_ms();
        let lock = disk.lock().map_err(|source| Error::locking(disk.as_ref(), source))?;
        let counted =
            |it: &ReplicationOptions| Arc::new(CountedRemote::new(Arc::clone(&it.remote)));
        let remote = options.replication.as_ref().map(counted);
        let tier = match remote.clone() {
            Some(remote) => TieredDisk::new(disk, remote, Arc::clone(&clock)),
            None => TieredDisk::unreplicated(disk, of_segments, Arc::clone(&clock)),
        };
        let tier = Arc::new(tier);
        tier.empty_cache().map_err(|source| Error::io("emptying the cache", source))?;
        let disk: Arc<dyn Disk> = Arc::clone(&tier) as _;
        let recovered = recover(
            &disk,
            &clock,
            &rng,
            options.create,
            CacheSizes { index: options.index_cache_bytes, bodies: options.body_cache_bytes },
            options.verification,
            options.retention_window_ms,
        )?;
        let segments = recovered.segments;
        let index = Arc::new(recovered.index);
        let queue = Arc::new(Queue::default());
        let space = FreeSpace::new(
            Arc::clone(&disk),
            Arc::clone(&clock),
            options.reserve_bytes,
            options.segment_bytes,
        )?;
        let space = Arc::new(space);
        {
            let segments = Arc::clone(&segments);
            space.set_reclaimer(move |bytes| segments.release_bytes(bytes));
        }
        let health = Arc::new(HealthState::new(Arc::clone(&space)));
        let replication = match options.replication.clone().zip(remote) {
            None => {
                protect_unreplicated(&disk, &segments)?;
                None
            }
            Some((replication, remote)) => {
                let context = ReplicationContext {
                    tier,
                    remote,
                    segments: Arc::clone(&segments),
                    index: Arc::clone(&index),
                    health: Arc::clone(&health),
                    clock: Arc::clone(&clock),
                    rng,
                    store: recovered.store,
                    position: recovered.position,
                };
                Some(Replication::new(context, replication))
            }
        };
        let rollover = Arc::new(Rollover::new(Arc::clone(&segments), options.segment_bytes));
        for (header, end) in segments.take_unsealed() {
            rollover.close_segment(header, end);
        }
        let load = Arc::new(CommitLatency::default());
        let lately = Arc::new(RecentNoncurrent::default());
        let metrics = Arc::new(Metrics::new(Arc::clone(&clock)));
        metrics.replayed_records.set(recovered.report.replayed_records);
        metrics.damage_at_opening.set(recovered.report.damage_count());
        let desk = CommitterContext {
            queue: Arc::clone(&queue),
            segments: Arc::clone(&segments),
            index: Arc::clone(&index),
            rollover: Arc::clone(&rollover),
            health: Arc::clone(&health),
            commit_latency: Arc::clone(&load),
            recent_noncurrent: Arc::clone(&lately),
            metrics: Arc::clone(&metrics),
            clock: Arc::clone(&clock),
            segment_bytes: options.segment_bytes,
        };
        let committer = Committer::new(desk, recovered.position);
        let batch_bytes_max = committer.batch_bytes_max();
        let committer = Arc::new(Mutex::new(committer));
        let compactor = Arc::new(Compactor::new(CompactorContext {
            segments: Arc::clone(&segments),
            index: Arc::clone(&index),
            queue: Arc::clone(&queue),
            committer: Arc::clone(&committer),
            health: Arc::clone(&health),
            rollover: Arc::clone(&rollover),
            metrics: Arc::clone(&metrics),
            clock: Arc::clone(&clock),
            segment_bytes: options.segment_bytes,
            steps_committer: options.background == Background::Manual,
        }));
        let scrubbed = ScrubContext {
            segments: Arc::clone(&segments),
            index: Arc::clone(&index),
            metrics: Arc::clone(&metrics),
            clock: Arc::clone(&clock),
        };
        record_open_damage(&scrubbed, &recovered.report)?;
        let scrubber = Scrubber::new(scrubbed.clone(), options.scrub.clone().unwrap_or_default());
        let scrubber = Arc::new(Mutex::new(scrubber));
        let threads = match options.background {
            Background::Manual => Threads::none(),
            Background::Threads => Threads::start(ThreadContext {
                committer: Arc::clone(&committer),
                queue: Arc::clone(&queue),
                rollover: Arc::clone(&rollover),
                index: Arc::clone(&index),
                segments: Arc::clone(&segments),
                health: Arc::clone(&health),
                metrics: Arc::clone(&metrics),
                needs_index_verify: recovered.needs_index_verify,
                scrubber: options.scrub.as_ref().map(|_| Arc::clone(&scrubber)),
                replication: replication.clone(),
                compaction: options.compaction.map(|by_itself| CompactionThreadContext {
                    compactor: Arc::clone(&compactor),
                    load: Arc::clone(&load),
                    health: Arc::clone(&health),
                    clock: Arc::clone(&clock),
                    options: by_itself,
                }),
            })?,
        };
        let uploads = Uploads {
            segments: Arc::clone(&segments),
            space: Arc::clone(&space),
            memory: Arc::new(UploadMemoryBudget::new(options.upload_memory_bytes)),
            blocks: Arc::default(),
            inline_bytes_max: options.inline_bytes_max as u64,
        };
        let store = Self(Arc::new(StoreInner {
            segments,
            index,
            queue,
            rollover,
            health,
            space,
            uploads,
            options,
            batch_bytes_max,
            committer,
            compactor,
            load,
            recent_noncurrent: lately,
            metrics,
            clock,
            opened_ms,
            scrubbed,
            scrubber,
            replication,
            threads,
            lock: Mutex::new(Some(lock)),
        }));
        Ok((store, recovered.report))
    }
}

/// Records the damage found during recovery, because the next open may have no reason to read there.
fn record_open_damage(store: &ScrubContext, report: &RecoveryReport) -> Result<()> {
    if report.damage_count() == 0 {
        return Ok(());
    }
    for found in &report.damage {
        let usage = store.read_checked(|view| view.segment_usage(found.segment))?;
        store.index.record_damage(Damage {
            segment: found.segment,
            class: usage.map_or(SegmentClass::Log, |usage| usage.class),
            offset: found.offset,
            lsn: found.first_lsn,
            reason: found.reason,
            name: None,
            found_ms: store.clock.unix_ms(),
        });
    }
    store.index.record_unlisted_damage(report.damage_unlisted);
    store.save();
    Ok(())
}
