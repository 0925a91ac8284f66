//! Limits of searches and of the name cache.

/// Maximum of offset plus limit of a search: the number of hits that it holds in memory, and that it counts.
pub const WINDOW_MAX: usize = 10_000;
/// Maximum number of names that a search scans in the index. Beyond it the result is marked as incomplete.
pub const SCAN_NAMES_MAX: usize = 4_000_000;
/// Maximum number of names that a search scans while the names of the bucket are being cached. Keeps the first search
/// of a large bucket fast; searches after it use all names.
pub const SCAN_NAMES_WHILE_LOADING_MAX: usize = 8_192;
/// Minimum number of objects in a bucket whose names are cached.
pub const NAME_CACHE_OBJECTS_MIN: u64 = 1_000;
/// Default memory limit of the cached names of all buckets, in bytes.
pub const NAME_CACHE_BYTES_MAX: u64 = 512 << 20;
/// Number of searches for which a bucket must not have been searched before its names may be evicted to cache those of
/// another bucket again.
pub const NAME_CACHE_IDLE_SEARCHES_MIN: u64 = 64;
/// Number of names above which a search uses two threads instead of one.
pub const SINGLE_THREAD_NAMES_MAX: usize = 64 * 1_024;
/// Number of pending changes of a bucket above which they are applied to its cached names without waiting for a search.
pub const APPLY_NAMES: usize = 4 * 1_024;
/// Interval at which name caches are checked for pending changes, in milliseconds.
pub const POLL_MS: u64 = 500;
/// Number of names between two checks for cancellation of a search.
pub const CANCEL_CHECK_NAMES: usize = 256;
