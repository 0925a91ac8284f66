//! Limits of versioned buckets.

/// Maximum concurrent batches that copy the versions that they replace; others wait.
pub const COPIES_MAX: usize = 32;
/// Maximum attempts of a batch whose replaced versions change concurrently.
pub const TRIES_MAX: usize = 8;
/// Number of locks for removals of current versions, which keys share by a hash.
pub const LOCK_COUNT: usize = 64;
