//! Limits of the S3 gateway. Sizes are in bytes.

use std::time::Duration;

/// Largest XML body of an S3 client: a list of all parts of an upload, or of a thousand keys.
pub(crate) const S3_XML_BYTES_MAX: usize = 4 * 1_024 * 1_024;
/// Maximum parts of a multipart upload (S3 API).
pub(crate) const S3_PARTS_MAX: u32 = 10_000;
/// Smallest part of a multipart upload, except the last one.
pub(crate) const S3_PART_BYTES_MIN: u64 = 5 * 1_024 * 1_024;
/// Maximum time for assembling parts before the response head is sent, after which the body keeps the connection alive.
pub(crate) const S3_COMPLETE_KEEPALIVE_DELAY: Duration = Duration::from_secs(5);
