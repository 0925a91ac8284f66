//! Limits and defaults of the engine, with the relations that must hold between them.
//!
//! Sizes are in bytes. A limit that can be configured per store is a default here and a field of
//! [`OpenOptions`](crate::OpenOptions); a limit fixed by the format is only a constant.

use std::ops::RangeInclusive;

/// Maximum length of a bucket name, in bytes.
pub const BUCKET_NAME_BYTES_MAX: usize = 63;
/// Minimum length of a bucket name, in bytes.
pub const BUCKET_NAME_BYTES_MIN: usize = 3;
/// Maximum length of an object key, in bytes of UTF-8.
pub const KEY_BYTES_MAX: usize = 1_024;
/// Maximum length of a fact name, in bytes of UTF-8.
pub const FACT_NAME_BYTES_MAX: usize = 512;
/// Maximum size of a fact value in bytes.
pub const FACT_BYTES_MAX: usize = 64 * KIB;
/// Maximum length of a content type, in bytes.
pub const CONTENT_TYPE_BYTES_MAX: usize = 255;
/// Maximum size of the opaque attributes of one object, in bytes.
pub const ATTRIBUTES_BYTES_MAX: usize = 6 * KIB;

/// Size of a body block, the unit of checksums, in bytes.
pub const BLOCK_BYTES: usize = 64 * KIB;
/// Default of [`OpenOptions::inline_bytes_max`](crate::OpenOptions::inline_bytes_max): maximum size of a body in a log
/// segment. A larger body gets a big segment.
pub const INLINE_BYTES_MAX: usize = MIB;
/// Maximum of [`OpenOptions::inline_bytes_max`](crate::OpenOptions::inline_bytes_max), in bytes.
pub const INLINE_BYTES_SETTING_MAX: usize = 8 * MIB;
/// Maximum size of an object body in bytes. Writing or reading it needs 4 bytes of memory per block.
pub const OBJECT_BYTES_MAX: u64 = 64 * GIB;

/// Default and maximum size of a log segment in bytes. The space is preallocated.
pub const SEGMENT_BYTES_MAX: u64 = 256 * MIB as u64;
/// Minimum size of a log segment in bytes, for tests that need many segments.
pub const SEGMENT_BYTES_MIN: u64 = 64 * KIB as u64;
/// Maximum size in bytes of an unsealed segment that opening the store seals; longer ones are sealed in the background.
pub const SEAL_AT_OPENING_BYTES_MAX: u64 = 16 * MIB as u64;
/// Maximum number of corrupt locations that a report lists or a store remembers. Further ones are only counted.
pub const DAMAGE_LISTED_MAX: usize = 256;
/// Maximum number of segments that are open for reading, each with its memory map and the bits of its verified blocks.
pub const OPEN_SEGMENTS_MAX: usize = 1_024;

/// Maximum number of records in a commit group, unless a single batch has more.
pub const GROUP_RECORDS_MAX: usize = 256;
/// Maximum size of a commit group in bytes, unless a single batch is larger.
pub const GROUP_BYTES_MAX: u64 = 16 * MIB as u64;
/// Maximum number of operations in one batch.
pub const BATCH_RECORDS_MAX: usize = 1_024;
/// Maximum size of one batch in the log, in bytes; bodies in big segments do not count. At most half a segment.
pub const BATCH_BYTES_MAX: u64 = 128 * MIB as u64;
/// Maximum number of batches queued for the committer; more are rejected with [`Error::Busy`](crate::Error::Busy).
pub const QUEUE_BATCHES_MAX: usize = 4_096;
/// Numbers of batches in a group after which the committer waits for as many batches, because their writers are about
/// to commit again. With fewer or more writers the wait costs throughput (benches/README.md).
pub const GATHER_BATCHES: RangeInclusive<usize> = 5..=32;
/// Maximum size in bytes of such a group: a large one keeps the disk busy, which would be idle during the wait.
pub const GATHER_BYTES_MAX: u64 = 256 * KIB as u64;
/// Maximum wait for further batches, in microseconds: less than most disks take for a sync.
pub const GATHER_US: u64 = 100;
/// Maximum size of one log write call in bytes. Larger calls cost several times the CPU time (engine/DECISIONS.md,
/// decision 12).
pub const WRITE_BYTES_MAX: usize = 512 * KIB;
/// Maximum buffer of a group that is reused for the next one.
pub const GROUP_BUFFER_BYTES_MAX: usize = 1_024 * KIB;
/// Maximum size of a commit group in bytes that zeros are written after. Larger groups would write many zeros to save
/// one wait for the journal of the file system.
pub const ZEROS_GROUP_BYTES_MAX: u64 = 16 * KIB as u64;
/// Maximum number of zeros that are written at once: so many that fewer than 1 % of the syncs with groups of 4 KiB also
/// wait for zeros.
pub const ZEROS_BYTES_MAX: u64 = MIB as u64;

/// Maximum number of segments that one compaction step reads, and maximum number that it writes.
pub const COMPACTION_SEGMENTS_MAX: usize = 64;
/// Minimum number of reclaimable bytes in the newest log segment for a compaction to close that segment. More than the
/// record that a compaction adds to it, or each compaction would cause the next.
pub const COMPACTION_ROLLOVER_DEAD_BYTES_MIN: u64 = 16 * KIB as u64;
/// Default rate of background compaction, in bytes copied per second.
pub const COMPACTION_BYTES_PER_SECOND: u64 = 32 * MIB as u64;
/// Default interval between checks for background compaction, in milliseconds.
pub const COMPACTION_POLL_MS: u64 = 30_000;
/// Number of index entries that a compaction repoints to its copies in one batch.
pub const REPOINT_BATCH_ENTRIES: usize = 512;
/// Maximum number of separate LSN ranges that one compacted segment may replace.
pub const LSN_RANGES_MAX: usize = 64;

/// Maximum number of corrupt bodies that a replay remembers until it is known whether their records are superseded.
pub const REPLAY_SUSPECTS_MAX: usize = CHECKPOINT_ENTRIES;
/// Maximum number of findings that an fsck report lists; further ones are counted.
pub const FINDINGS_LISTED_MAX: usize = 1_000;
/// Maximum number of objects that a finding lists; further ones are counted.
pub const FINDING_OBJECTS_MAX: usize = 256;
/// Approximate number of names that fsck holds in memory at once, in 64 MiB. A store with more names is read
/// several times, heads only. The value is seven eighths of a power of two, the load at which a hash table doubles.
pub const FSCK_NAMES_MAX: u64 = 7 * 64 * 1_024;
/// Maximum number of corrupt bodies, broken groups of a segment, and lost log ranges that fsck remembers.
pub const FSCK_SUSPECTS_MAX: usize = 4_096;
/// Maximum number of segments that fsck checks in parallel.
pub const FSCK_WORKERS_MAX: usize = 4;
/// Maximum number of referenced big segments that fsck remembers to detect orphans.
pub const FSCK_BIG_REFERENCES_MAX: usize = 4 * MIB;

/// Default memory budget of all uploads together, in bytes. Bodies beyond it are streamed to big segments.
pub const UPLOAD_MEMORY_BYTES_MAX: u64 = 256 * MIB as u64;
/// Maximum number of unused block buffers that are cached for uploads: the size of one group.
pub const UPLOAD_POOL_BLOCKS_MAX: usize = GROUP_BYTES_MAX as usize / BLOCK_BYTES;

/// Number of log bytes since the last checkpoint after which the next is due.
pub const CHECKPOINT_LOG_BYTES: u64 = 64 * MIB as u64;
/// Number of changes in memory after which a checkpoint is due.
pub const CHECKPOINT_ENTRIES: usize = 64 * 1_024;
/// Maximum number of changes of a checkpoint that writes them without first making the pages of the last checkpoint
/// reusable.
pub const CHECKPOINT_SMALL_ENTRIES: usize = 64;
/// Age in milliseconds of the oldest change that is only in memory, after which a checkpoint is due.
pub const CHECKPOINT_MS: u64 = 5_000;
/// Number of changes in memory above which the committer waits for a checkpoint. Bounds memory and recovery time even
/// if redb is slower than the log.
pub const OVERLAY_ENTRIES_MAX: usize = 4 * CHECKPOINT_ENTRIES;
/// Maximum time in milliseconds that the committer waits for a checkpoint. After it, batches are rejected with
/// [`Error::Busy`](crate::Error::Busy).
pub const OVERLAY_WAIT_MS: u64 = 10_000;
/// Idle time in milliseconds after which the committer writes a watermark group, which confirms the last commit.
pub const WATERMARK_IDLE_MS: u64 = 1_000;
/// Default period of the background scrub, in seconds: every segment is verified once per period.
pub const SCRUB_PERIOD_SECONDS: u64 = 30 * 24 * 60 * 60;
/// Minimum rate of a scrub in bytes per second, so that small stores are verified quickly.
pub const SCRUB_BYTES_PER_SECOND_MIN: u64 = MIB as u64;
/// Default maximum rate of a scrub in bytes per second.
pub const SCRUB_BYTES_PER_SECOND_MAX: u64 = 64 * MIB as u64;
/// Interval at which a scrub looks for due segments, in milliseconds.
pub const SCRUB_SCHEDULE_POLL_MS: u64 = 600_000;
/// Maximum interval at which a scrub collects corruption reported by reads, in milliseconds.
pub const SCRUB_REPORTED_POLL_MS: u64 = 60_000;
/// Number of verified bytes after which scrub results are saved. A crash loses the results of at most as many.
pub const SCRUB_SAVE_BYTES: u64 = 256 * MIB as u64;
/// Free disk space in bytes required to save scrub results. Below it they stay in memory.
pub const INTEGRITY_SAVE_FREE_BYTES_MIN: u64 = 16 * MIB as u64;
/// Default size of the page cache of the index in bytes.
pub const INDEX_CACHE_BYTES: usize = 64 * MIB;

/// Part of the default reserve of free disk space for growth of the index, in bytes; two log segments are added.
pub const RESERVE_INDEX_BYTES: u64 = 64 * MIB as u64;
/// Minimum of the default reserve, as a divisor of the disk size: 100 is one percent.
pub const RESERVE_DISK_DIVISOR: u64 = 100;
/// Minimum interval between two queries of the free space, in milliseconds.
pub const FREE_SPACE_POLL_MS: u64 = 1_000;
/// Number of bytes written after which the free space is queried again.
pub const FREE_SPACE_POLL_BYTES: u64 = 16 * MIB as u64;
/// Free disk space in bytes required to begin a checkpoint.
pub const CHECKPOINT_FREE_BYTES_MIN: u64 = 512 * KIB as u64;
/// Additional free disk space in bytes required by a checkpoint for each changed entry: one page of the index, because
/// redb never overwrites a page in place.
pub const CHECKPOINT_FREE_BYTES_PER_ENTRY: u64 = 4 * KIB as u64;
/// Interval in milliseconds after which a checkpoint that failed for lack of space is retried.
pub const CHECKPOINT_RETRY_MS: u64 = 1_000;
/// Minimum interval between two attempts to reopen a failed index file, in milliseconds.
pub const INDEX_REOPEN_MS: u64 = 1_000;
/// Maximum number of versions in a history, and of objects in one restore.
pub const VERSIONS_MAX: usize = 100_000;
/// Maximum memory in bytes of the list of recently deleted or replaced versions: about twenty thousand versions.
pub const RECENT_NONCURRENT_BYTES_MAX: usize = 8 * MIB;
/// Maximum number of items on a listing page.
pub const LIST_PAGE_MAX: usize = 1_000;
/// Number of pending changes above which the subscription to the names of a bucket overflows.
pub const SUBSCRIPTION_NAMES_MAX: usize = 1 << 20;
/// Default size of the body cache in bytes: small, frequently read bodies, and block checksums of larger ones.
pub const BODY_CACHE_BYTES: usize = 16 * MIB;
/// Time in milliseconds for which a page counts as resident after a check or a read. The kernel evicts recently used
/// pages last.
pub const RESIDENCY_TTL_MS: u64 = 1_000;
/// Maximum number of bytes of a body that one read verifies and returns.
pub const READ_BYTES_MAX: usize = 4 * BLOCK_BYTES;

/// Maximum size of the body of a chunk in the remote store in bytes, unless a single group is longer.
pub const CHUNK_BYTES_MAX: u64 = 8 * MIB as u64;
/// Default of [`ReplicationOptions::ship_interval_ms`](crate::replication::ReplicationOptions::ship_interval_ms).
pub const SHIP_INTERVAL_MS: u64 = 1_000;
/// Interval in milliseconds at which an idle primary creates a chunk, as a sign of life.
pub const HEARTBEAT_MS: u64 = 10_000;
/// Interval between two manifests of a store that changes, in milliseconds.
pub const MANIFEST_INTERVAL_MS: u64 = 600_000;
/// Number of chunks after which a manifest is due. Bounds the number of chunks that a start or a restore reads.
pub const MANIFEST_CHUNKS: u64 = 1_000;
/// Age in milliseconds up to which all manifests are retained; later one per hour is.
pub const MANIFESTS_ALL_MS: u64 = 24 * 60 * 60 * 1_000;
/// Minimum age of a chunk that is collected, in milliseconds.
pub const CHUNK_AGE_MS_MIN: u64 = 60 * 60 * 1_000;
/// Interval between two collections of the remote store, in milliseconds.
pub const COLLECTION_INTERVAL_MS: u64 = 60 * 60 * 1_000;
/// Maximum number of unreferenced segments that a manifest lists; further ones are in a later manifest.
pub const UNREFERENCED_MAX: usize = 100_000;
/// Default of [`ReplicationOptions::retention_ms`](crate::replication::ReplicationOptions::retention_ms): seven days.
pub const REMOTE_RETENTION_MS: u64 = 7 * 24 * 60 * 60 * 1_000;
/// Time in milliseconds after which a write that the remote store did not confirm fails, if it has to.
pub const REMOTE_ACK_MS: u64 = 10_000;
/// Maximum pause after a failed call to the remote store, in milliseconds.
pub const REMOTE_RETRY_MS_MAX: u64 = 5_000;
/// Size in bytes of the units in which a segment is fetched from the remote store.
pub const TIER_UNIT_BYTES: u64 = 256 * KIB as u64;
/// Maximum number of bytes that one request of a read fetches.
pub const TIER_READ_AHEAD_BYTES_MAX: u64 = 8 * MIB as u64;
/// Maximum number of bytes in cache files of a process that does not replicate.
pub const UNREPLICATED_CACHE_BYTES_MAX: u64 = 1_024 * MIB as u64;
/// Minimum share of dead bytes, in percent, for the compaction of a segment that is only in the remote store.
pub const COMPACTION_REMOTE_DEAD_PERCENT_MIN: u64 = 75;
/// Free space in bytes that remains when segments are fetched back to this machine.
pub const RECALL_FREE_BYTES_MIN: u64 = 1_024 * MIB as u64;
/// Interval in milliseconds at which known damage is looked at, to repair it from the remote store.
pub const MEND_INTERVAL_MS: u64 = 10_000;
/// Interval in milliseconds at which the local size of a store is compared with its limit.
pub const EVICTION_INTERVAL_MS: u64 = 10_000;
/// Maximum time in milliseconds for which closing a store waits for the last chunks.
pub const SHIP_AT_CLOSE_MS: u64 = 10_000;

const KIB: usize = 1_024;
const MIB: usize = 1_024 * KIB;
const GIB: u64 = 1_024 * MIB as u64;

const _: () = assert!(KEY_BYTES_MAX <= u16::MAX as usize, "a key's length is a u16 on disk");
const _: () = assert!(BUCKET_NAME_BYTES_MAX <= u8::MAX as usize, "a bucket name's length is a u8");
const _: () =
    assert!(CONTENT_TYPE_BYTES_MAX <= u8::MAX as usize, "a content type's length is a u8");
const _: () = assert!(INLINE_BYTES_MAX <= INLINE_BYTES_SETTING_MAX);
const _: () = assert!(INLINE_BYTES_SETTING_MAX as u64 <= BATCH_BYTES_MAX);
const _: () = assert!(BATCH_BYTES_MAX < u32::MAX as u64, "a group's length is a u32");
const _: () = assert!(2 * BATCH_BYTES_MAX <= SEGMENT_BYTES_MAX, "a batch fits in any segment");
const _: () = assert!(GROUP_BYTES_MAX <= BATCH_BYTES_MAX);
const _: () = assert!(READ_BYTES_MAX.is_multiple_of(BLOCK_BYTES));
