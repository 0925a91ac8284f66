//! Limits of imports and exports by the command line, and of the archives that they read.

use std::time::Duration;

const KIB: u64 = 1_024;
const MIB: u64 = 1_024 * KIB;

/// Longest name of an archive entry; a key is shorter.
pub const NAME_BYTES_MAX: u64 = 64 * KIB;
/// Longest extension header (pax) in an archive.
pub const RECORDS_BYTES_MAX: u64 = 64 * KIB;
/// Maximum blocks of a GNU sparse map that are skipped, 21 holes each.
pub const SPARSE_BLOCKS_MAX: usize = 100_000;
/// Default maximum of files per import: 16 bytes are held in memory for each, to detect duplicate names.
pub const IMPORT_FILES_MAX: u64 = 10_000_000;
/// Maximum folder depth of an import; each level is held open.
pub const IMPORT_FOLDERS_DEEP_MAX: usize = 256;
/// Maximum files of an import that wait for the disk together.
pub const IMPORT_IN_FLIGHT_MAX: usize = 128;
/// Maximum bytes of such files in memory. Far below the budget of all uploads, which continue concurrently.
pub const IMPORT_IN_FLIGHT_BYTES_MAX: u64 = 32 * MIB;
/// Maximum concurrent downloads of an import.
pub const IMPORT_DOWNLOADS_MAX: usize = 6;
/// Maximum pieces that a download is ahead of its turn; a piece is no larger than what a connection holds, tens of KiB.
pub const IMPORT_PREFETCH_CHUNKS_MAX: usize = 16;
/// Threads that download.
pub const IMPORT_FETCH_THREADS: usize = 2;
/// Maximum attempts to download a file.
pub const IMPORT_TRIES_MAX: u32 = 5;
/// Waiting time after the first failed attempt, which then doubles.
pub const IMPORT_BACKOFF_MIN: Duration = Duration::from_millis(500);
/// Maximum waiting time between attempts, whatever the server requests.
pub const IMPORT_BACKOFF_MAX: Duration = Duration::from_secs(60);
/// Maximum bytes of one page of a remote bucket listing: a thousand keys, each letter escaped.
pub const IMPORT_PAGE_BYTES_MAX: usize = 8 * MIB as usize;
/// Time-out of a listing page.
pub const IMPORT_PAGE_WAIT: Duration = Duration::from_secs(120);
/// Maximum bytes read of an error response to a listing request.
pub const IMPORT_REFUSAL_BYTES_MAX: usize = 64 * 1_024;
/// Maximum consecutive listing pages without a file: a listing of nothing but folders, or an endless one.
pub const IMPORT_BARREN_PAGES_MAX: u32 = 1_000;
/// Maximum names that Unicode normalization changes, for which duplicates are detected although the listing has each
/// name once.
pub const IMPORT_RESPELLED_MAX: usize = 100_000;
/// Longest line of a URL list.
pub const IMPORT_LINE_BYTES_MAX: usize = 8 * 1_024;
/// Bytes of a file that an import or export reads at a time.
pub const PIECE_BYTES: usize = 256 * 1_024;
/// Largest file that is exported from memory and read once; longer ones are verified first.
pub const EXPORT_IN_MEMORY_BYTES_MAX: u64 = 8 * MIB;
/// Maximum names in the report of an import or export; more are counted.
pub const LISTED_MAX: usize = 100;

/// Time-out of a file download.
pub const IMPORT_FILE_TIMEOUT: Duration = Duration::from_secs(60 * 60);
/// Interval of checking whether the server is draining.
pub const IMPORT_DRAIN_POLL_INTERVAL: Duration = Duration::from_millis(200);

const _: () = assert!(NAME_BYTES_MAX > engine::limits::KEY_BYTES_MAX as u64);
const _: () = assert!(4 * IMPORT_IN_FLIGHT_BYTES_MAX < engine::limits::UPLOAD_MEMORY_BYTES_MAX);
const _: () = assert!(IMPORT_IN_FLIGHT_MAX < engine::limits::QUEUE_BATCHES_MAX);
