//! Every bound of the engine, with the relations that must hold between them.
//!
//! Sizes are in bytes. A bound that a store may choose for itself is the default here and is a field of
//! [`OpenOptions`](crate::OpenOptions); a bound that the format fixes is a constant only.

/// Longest bucket name, in bytes.
pub const BUCKET_NAME_BYTES_MAX: usize = 63;
/// Shortest bucket name, in bytes.
pub const BUCKET_NAME_BYTES_MIN: usize = 3;
/// Longest object key, in bytes of UTF-8.
pub const KEY_BYTES_MAX: usize = 1_024;
/// Longest fact name, in bytes of UTF-8.
pub const FACT_NAME_BYTES_MAX: usize = 512;
/// Largest fact value.
pub const FACT_BYTES_MAX: usize = 64 * KIB;
/// Longest content type, in bytes.
pub const CONTENT_TYPE_BYTES_MAX: usize = 255;
/// Largest attributes of one object: small, opaque to the engine.
pub const ATTRIBUTES_BYTES_MAX: usize = 6 * KIB;

/// A body is checksummed in blocks of this many bytes.
pub const BLOCK_BYTES: usize = 64 * KIB;
/// Default for the largest body that lies inside a log segment; a larger one gets a big segment of its own.
pub const INLINE_BYTES_MAX: usize = MIB;
/// Largest value that the bound above may be set to.
pub const INLINE_BYTES_CEILING: usize = 8 * MIB;
/// Largest object. Its block table, 4 bytes a block, is held in memory while it is written and read.
pub const OBJECT_BYTES_MAX: u64 = 64 * GIB;

/// Default size of a log segment, preallocated.
pub const SEGMENT_BYTES_MAX: u64 = 256 * MIB as u64;
/// Smallest log segment that may be asked for; tests use it to see many segments.
pub const SEGMENT_BYTES_MIN: u64 = 64 * KIB as u64;
/// Opening a store seals unsealed segments up to this size at once, longer ones beside the first requests.
pub const SEAL_AT_OPENING_BYTES_MAX: u64 = 16 * MIB as u64;
/// Reports on damage list this many places and count the rest; a store remembers no more.
pub const DAMAGE_LISTED_MAX: usize = 256;
/// How many segments are kept open, each with its memory map and its verified blocks.
pub const OPEN_SEGMENTS_MAX: usize = 1_024;

/// A commit group takes no further batch beyond this many records.
pub const GROUP_RECORDS_MAX: usize = 256;
/// A commit group takes no further batch beyond this many bytes.
pub const GROUP_BYTES_MAX: u64 = 16 * MIB as u64;
/// Most records of one batch.
pub const BATCH_RECORDS_MAX: usize = 1_024;
/// Most bytes of one batch, bodies in big segments not counted. Half a segment, where segments are smaller.
pub const BATCH_BYTES_MAX: u64 = 128 * MIB as u64;
/// Batches that may wait for the committer; more are refused as [`Error::Busy`](crate::Error::Busy).
pub const QUEUE_BATCHES_MAX: usize = 4_096;
/// One call to the disk writes at most this much: larger calls cost several times the CPU (engine/DECISIONS.md).
pub const WRITE_BYTES_MAX: usize = 512 * KIB;

/// Most segments that one step of a compaction reads, and that it writes.
pub const COMPACTION_SEGMENTS_MAX: usize = 64;
/// The newest segment is ended for a compaction when so many bytes of it can be given back: more than the record that
/// a compaction itself leaves there, or each would make work for the next.
pub const COMPACTION_NEWEST_BYTES_MIN: u64 = 16 * KIB as u64;
/// Default for how fast a store compacts itself, in bytes copied in a second.
pub const COMPACTION_BYTES_PER_SECOND: u64 = 32 * MIB as u64;
/// Default for how often a store looks whether to compact itself, in milliseconds.
pub const COMPACTION_LOOK_MS: u64 = 30_000;
/// The index is pointed to the copies of a compaction in batches of this many.
pub const REPOINT_BATCH: usize = 512;
/// Most separate stretches of the log that one compacted segment may stand for.
pub const COVERS_MAX: usize = 64;

/// A replay remembers this many damaged bodies of records that may be replaced further on in the log.
pub const REPLAY_SUSPECTS_MAX: usize = CHECKPOINT_ENTRIES;
/// A report of fsck lists this many findings and counts the rest.
pub const FINDINGS_LISTED_MAX: usize = 1_000;
/// A finding names this many objects and counts the rest.
pub const FINDING_OBJECTS_MAX: usize = 256;
/// fsck holds about this many names in memory at once, in 64 MiB; a store with more takes several passes over its
/// record heads. A table of names doubles when it is filled to seven eighths.
pub const FSCK_NAMES_MAX: u64 = 7 * 64 * 1_024;
/// fsck remembers this many damaged bodies, broken groups of a segment, and stretches of the log that are lost.
pub const FSCK_SUSPECTS_MAX: usize = 4_096;
/// fsck looks at so many segments beside one another, at most.
pub const FSCK_WORKERS_MAX: usize = 4;
/// fsck looks for big segments that nothing names while it has to remember no more of them than this.
pub const FSCK_BIG_NAMED_MAX: usize = 4 * MIB;

/// Default for the memory of all bodies on their way in; beyond it they stream to big segments.
pub const UPLOAD_MEMORY_BYTES_MAX: u64 = 256 * MIB as u64;
/// Memory of so many blocks is kept for bodies to come: what one group takes.
pub const UPLOAD_BLOCKS_KEPT: usize = GROUP_BYTES_MAX as usize / BLOCK_BYTES;

/// A checkpoint is due after this much log,
pub const CHECKPOINT_LOG_BYTES: u64 = 64 * MIB as u64;
/// or this many changed index entries,
pub const CHECKPOINT_ENTRIES: usize = 64 * 1_024;
/// or this much time, in milliseconds, since the first change not in the index.
pub const CHECKPOINT_MS: u64 = 5_000;
/// The committer waits while the overlay holds this many changes: memory and the time to open after a crash have a
/// bound even where redb is slower than the log.
pub const OVERLAY_ENTRIES_MAX: usize = 4 * CHECKPOINT_ENTRIES;
/// It waits at most this long, in milliseconds; then batches are refused as [`Error::Busy`](crate::Error::Busy).
pub const OVERLAY_WAIT_MS: u64 = 10_000;
/// After this long without a commit, in milliseconds, an empty group vouches for the last one.
pub const WATERMARK_IDLE_MS: u64 = 1_000;
/// Default for the time after which every byte is verified again.
pub const SCRUB_PERIOD_SECONDS: u64 = 30 * 24 * 60 * 60;
/// A scrub reads at least this many bytes in a second: what is small is done soon.
pub const SCRUB_BYTES_PER_SECOND_MIN: u64 = MIB as u64;
/// Default for how many it reads at most.
pub const SCRUB_BYTES_PER_SECOND_MAX: u64 = 64 * MIB as u64;
/// It looks for segments that are due this often, in milliseconds,
pub const SCRUB_LOOK_MS: u64 = 600_000;
/// and for damage that reads have met at least this often.
pub const SCRUB_IDLE_MS: u64 = 60_000;
/// What it has verified is written down after this many bytes; a crash forgets no more.
pub const SCRUB_NOTES_BYTES: u64 = 256 * MIB as u64;
/// Notes are written while the disk has this much room; below it they stay in memory.
pub const NOTES_FREE_BYTES_MIN: u64 = 16 * MIB as u64;
/// Default memory of the index's page cache.
pub const INDEX_CACHE_BYTES: usize = 64 * MIB;

/// The default reserve of free space holds two log segments, this much growth of the index,
pub const RESERVE_INDEX_BYTES: u64 = 64 * MIB as u64;
/// and at least this part of the disk: one in so many bytes.
pub const RESERVE_DISK_SHARE: u64 = 100;
/// The disk is asked for its free space at most once in so many milliseconds,
pub const SPACE_LOOK_MS: u64 = 1_000;
/// or once in so many bytes written.
pub const SPACE_LOOK_BYTES: u64 = 16 * MIB as u64;
/// A checkpoint begins only with this much room,
pub const CHECKPOINT_ROOM_BYTES: u64 = 512 * KIB as u64;
/// and this much more for each entry that it changes: a page of the index, since redb never writes a page in place.
pub const CHECKPOINT_ENTRY_ROOM_BYTES: u64 = 4 * KIB as u64;
/// A checkpoint for which there was no room is tried again after so many milliseconds.
pub const CHECKPOINT_RETRY_MS: u64 = 1_000;
/// An index file that could not be read, or had no room, is opened again at most once in so many milliseconds.
pub const INDEX_REOPEN_MS: u64 = 1_000;
/// Versions that a history shows, and objects that are brought back, at once.
pub const VERSIONS_MAX: usize = 100_000;
/// Versions that were deleted or replaced lately are remembered in so many bytes of memory: some twenty thousand.
pub const LATELY_BYTES_MAX: usize = 8 * MIB;
/// Largest page of a listing.
pub const LIST_PAGE_MAX: usize = 1_000;
/// A search shows the first so many of its hits, page by page, and holds no more of them in memory.
pub const SEARCH_WINDOW_MAX: usize = 10_000;
/// A search that has to walk over the index looks at this many names and says then that there may be more,
pub const SEARCH_NAMES_MAX: usize = 4_000_000;
/// and at so many while names are being read into memory, where the next search will look at all of them: the first
/// search of a bucket takes about as long for ten million names as for ten thousand.
pub const SEARCH_NAMES_MEANWHILE_MAX: usize = 8_192;
/// Names of a bucket with at least so many objects are kept in memory once it is searched,
pub const SEARCH_OBJECTS_MIN: u64 = 1_000;
/// those of all buckets together in so much of it.
pub const SEARCH_NAMES_BYTES_MAX: u64 = 512 * MIB as u64;
/// Names that made room for those of other buckets are read again where there is none only if one of these was not
/// asked for in so many searches.
pub const SEARCHES_BEFORE_ROOM: u64 = 64;
/// A search of more names than these uses two threads.
pub const SEARCH_ALONE_NAMES_MAX: usize = 64 * 1_024;
/// Names that came and went since a bucket was searched last, before they are put in their places without a search,
pub const FOLLOWED_NAMES_WAIT: usize = 4 * 1_024;
/// and before they are given up, to be read anew: nobody takes them.
pub const FOLLOWED_NAMES_MAX: usize = 1 << 20;
/// So often it is looked whether many wait, in milliseconds.
pub const FOLLOWED_LOOK_MS: u64 = 500;
/// It looks this often, in names, whether anybody still waits for it.
pub const SEARCH_STEP_NAMES: usize = 256;
/// Small bodies that are read often, and what describes larger ones, are kept in so many bytes of memory.
pub const KEPT_BODIES_BYTES_MAX: usize = 16 * MIB;
/// Pages of a map that were in memory are believed to be there for so many milliseconds: what was just sent is the last
/// that the kernel takes away.
pub const RESIDENT_BELIEVED_MS: u64 = 100;
/// Largest piece of a body that is read, verified and handed out at once.
pub const READ_BYTES_MAX: usize = 4 * BLOCK_BYTES;

const KIB: usize = 1_024;
const MIB: usize = 1_024 * KIB;
const GIB: u64 = 1_024 * MIB as u64;

const _: () = assert!(KEY_BYTES_MAX <= u16::MAX as usize, "a key's length is a u16 on disk");
const _: () = assert!(BUCKET_NAME_BYTES_MAX <= u8::MAX as usize, "a bucket name's length is a u8");
const _: () =
    assert!(CONTENT_TYPE_BYTES_MAX <= u8::MAX as usize, "a content type's length is a u8");
const _: () = assert!(INLINE_BYTES_MAX <= INLINE_BYTES_CEILING);
const _: () = assert!(INLINE_BYTES_CEILING as u64 <= BATCH_BYTES_MAX);
const _: () = assert!(BATCH_BYTES_MAX < u32::MAX as u64, "a group's length is a u32");
const _: () = assert!(2 * BATCH_BYTES_MAX <= SEGMENT_BYTES_MAX, "a batch fits in any segment");
const _: () = assert!(GROUP_BYTES_MAX <= BATCH_BYTES_MAX);
const _: () = assert!(READ_BYTES_MAX.is_multiple_of(BLOCK_BYTES));
