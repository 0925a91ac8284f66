//! Limits of buckets with versions.

/// Batches that copy the versions that they replace at once; others wait.
pub const COPIES_MAX: usize = 32;
/// How often a batch is tried again whose replaced versions change meanwhile.
pub const TRIES_MAX: usize = 8;
/// Turns for removals of the latest versions of keys, which share them by a hash.
#[cfg(feature = "s3")]
pub const TURNS: usize = 64;
