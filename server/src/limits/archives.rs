//! Bounds of imports and exports with the command line, and of the archives that they read.

use std::time::Duration;

use super::{KIB, MIB};

/// Longest name of an entry of an archive that is read; a key is shorter.
pub const NAME_BYTES_MAX: u64 = 64 * KIB;
/// Longest extension header (pax) in an archive.
pub const RECORDS_BYTES_MAX: u64 = 64 * KIB;
/// Blocks of a GNU map of holes that are passed over, 21 holes each.
pub const SPARSE_BLOCKS_MAX: usize = 100_000;
/// Default for the files that one import takes: 16 bytes are held in memory for each, to find a name that comes twice.
pub const IMPORT_FILES_MAX: u64 = 10_000_000;
/// Folders in folders that an import goes into; each is held open.
pub const IMPORT_FOLDERS_DEEP_MAX: usize = 256;
/// Files of an import that wait for the disk together.
pub const IMPORT_IN_FLIGHT_MAX: usize = 128;
/// Bytes of such files in memory. Far below the budget of all uploads, which go on meanwhile.
pub const IMPORT_IN_FLIGHT_BYTES_MAX: u64 = 32 * MIB;
/// Files that an import has on their way from other machines at once,
pub const IMPORT_FETCHES_MAX: usize = 6;
/// each so many pieces ahead of its turn; a piece is no larger than what a connection holds, tens of KiB.
pub const IMPORT_PIECES_AHEAD_MAX: usize = 16;
/// Threads that fetch them.
pub const IMPORT_FETCH_THREADS: usize = 2;
/// A file is asked for so often,
pub const IMPORT_TRIES_MAX: u32 = 5;
/// with a rest in between that doubles, from this one
pub const IMPORT_FIRST_REST: Duration = Duration::from_millis(500);
/// to this one, whatever the other side asks for.
pub const IMPORT_LONGEST_REST: Duration = Duration::from_secs(60);
/// A page of the listing of a bucket elsewhere has at most so many bytes: a thousand keys, each letter escaped,
pub const IMPORT_PAGE_BYTES_MAX: usize = 8 * MIB as usize;
/// and comes within this time.
pub const IMPORT_PAGE_WAIT: Duration = Duration::from_secs(120);
/// So much of the refusal of a page is read.
pub const IMPORT_REFUSAL_BYTES_MAX: usize = 64 * 1_024;
/// Pages of such a listing that one after another add no file: a listing that holds nothing but folders, or none that
/// ends.
pub const IMPORT_BARREN_PAGES_MAX: u32 = 1_000;
/// Names that a listing has once, but that are written in another way here, so that two may become one: as many are
/// remembered.
pub const IMPORT_RESPELLED_MAX: usize = 100_000;
/// Longest line of a list of addresses.
pub const IMPORT_LINE_BYTES_MAX: usize = 8 * 1_024;
/// Bytes of a file that an import or export reads at once.
pub const PIECE_BYTES: usize = 256 * 1_024;
/// Files up to this size are exported from memory: read once, where longer ones are verified first.
pub const EXPORT_WHOLE_BYTES_MAX: u64 = 8 * MIB;
/// Names that a report on an import or export lists; more are counted.
pub const LISTED_MAX: usize = 100;

const _: () = assert!(NAME_BYTES_MAX > engine::limits::KEY_BYTES_MAX as u64);
const _: () = assert!(4 * IMPORT_IN_FLIGHT_BYTES_MAX < engine::limits::UPLOAD_MEMORY_BYTES_MAX);
const _: () = assert!(IMPORT_IN_FLIGHT_MAX < engine::limits::QUEUE_BATCHES_MAX);
