//! Limits of the crate `remote`, each with its source.

use std::time::Duration;

/// Largest object that is uploaded by one request, and size of the parts of larger ones. S3 requires at least 5 MiB.
pub const PART_BYTES: u64 = 8 << 20;
/// Most parts of one object: the limit of S3 and Google Cloud Storage. Parts of larger objects are larger.
pub const PARTS_MAX: u64 = 10_000;
/// Time-out of small requests: creations, removals and one page of a listing.
pub const REQUEST_TIMEOUT: Duration = Duration::from_secs(60);
/// Time-out of a read, and of the upload of one part: 8 MiB at 70 KB/s.
pub const TRANSFER_TIMEOUT: Duration = Duration::from_secs(120);
/// Time-out of the completion of a large upload. S3 documents that it may take minutes.
pub const COMPLETE_TIMEOUT: Duration = Duration::from_secs(300);
/// Retries of a request that may be repeated: reads, listings, removals and uploads.
pub const RETRIES_MAX: usize = 3;
/// Largest delay before a retry.
pub const RETRY_DELAY_MAX: Duration = Duration::from_secs(5);
/// Longest text of an error of a store. Some answer with whole HTML pages.
pub const ERROR_BYTES_MAX: usize = 500;
/// Largest file with credentials. A service account takes 2.4 KB.
pub const CREDENTIALS_BYTES_MAX: u64 = 64 << 10;
