//! Limits of the endpoints and of maintenance, each with its source where it has one (`service::limits`). Sizes are in
//! bytes.

pub mod control_socket;

use std::time::Duration;

use service::limits::MIB;

/// Maximum subfolders that `trug du` lists.
pub const USAGE_FOLDERS_MAX: usize = 10_000;
/// Assumed copy rate of a compaction for time estimates, in bytes per second: what a disk achieves that is read,
/// verified and written under other load.
pub const COMPACTION_BYTES_PER_SECOND_EXPECTED: u64 = 100 * MIB;
/// Maximum accounts listed by the check of a set-up link.
pub const SET_UP_ACCOUNTS_MAX: usize = 20;
/// Interval of persisting the last-used times of API keys, and of retrying failed removals.
pub const CATALOG_MAINTENANCE_INTERVAL: Duration = Duration::from_secs(60);
/// Largest expiry that counts seconds from now; a larger one counts from 1970. Clients 3.4.
pub const PRESIGN_RELATIVE_SECONDS_MAX: f64 = 1e9;
/// Smallest expiry that counts milliseconds since 1970. Clients 3.4.
pub const PRESIGN_UNIX_MS_MIN: f64 = 1e12;
/// Interval of deleting expired used tokens and checking whether to rotate the signing key.
pub const PRESIGN_SWEEP_INTERVAL: Duration = Duration::from_secs(10 * 60);
/// Default page size of a search. Spec 8.
pub const SEARCH_HITS_DEFAULT: usize = 20;
/// Maximum run time of a search in milliseconds, after which it is cancelled.
pub const SEARCH_TIME_MS_MAX: u64 = 10_000;
/// Interval of the fair-use sweep, if enabled.
pub const FAIR_USE_SWEEP_INTERVAL: Duration = Duration::from_secs(24 * 60 * 60);
/// Interval of logging newly detected corruption.
pub const CORRUPTION_CHECK_INTERVAL: Duration = Duration::from_secs(30);
/// Interval in bytes at which an incoming resumable upload is made durable.
pub const TUS_SYNC_EVERY_BYTES: u64 = 64 * MIB;
/// Interval of deleting old dead letters.
pub const WEBHOOK_SWEEP_INTERVAL: Duration = Duration::from_secs(60 * 60);
/// Interval of persisting usage counters, in minutes: the maximum that a crash loses.
pub const USAGE_WRITE_INTERVAL_MINUTES: u64 = 10;
/// Delay until changes of files are in the stored audit log: the maximum that a crash loses.
pub const FILE_AUDIT_DELAY: Duration = Duration::from_secs(1);
/// Default page size of the audit log.
pub const AUDIT_PAGE_DEFAULT: usize = 100;
/// Maximum page size of the audit log.
pub const AUDIT_PAGE_MAX: usize = 500;
/// Maximum segments that the storage page lists.
pub const STORAGE_SEGMENTS_MAX: usize = 500;
/// Maximum URLs of one import job.
pub const IMPORT_URLS_MAX: usize = 500;
/// Maximum bytes of the URLs in a job record; the rest of the record is for the results.
pub const IMPORT_URLS_BYTES_MAX: usize = 40 * 1_024;
/// Maximum records that one page of deleted versions reads of a long log: a second or two.
pub const UNDELETE_SCAN_RECORDS_MAX: usize = 1_000_000;
/// Maximum side of previews of images on the pages of shared links, in pixels; of links with a maximum of downloads.
pub const PREVIEW_SIDE_MAX: u32 = 1_600;
pub const LIMITED_PREVIEW_SIDE_MAX: u32 = 1_024;
/// Maximum bytes of a text that the page of a file shows.
pub const PREVIEW_TEXT_BYTES_MAX: u64 = 64 * 1_024;
/// Maximum objects that the preview of lifecycle rules reads: some tenths of a second.
pub const LIFECYCLE_PREVIEW_OBJECTS_MAX: usize = 200_000;
/// Maximum files and folders of a shared link.
pub const LINK_PATHS_MAX: usize = 500;
/// Maximum characters of the title, and of the message, of a shared link.
pub const LINK_TITLE_CHARS_MAX: usize = 100;
pub const LINK_MESSAGE_CHARS_MAX: usize = 500;
/// Highest maximum of downloads of a shared link.
pub const LINK_DOWNLOADS_MAX: u64 = 1_000_000;
/// Highest maximum, and default maximum, of files that are uploaded to a shared link.
pub const LINK_FILES_MAX: u64 = 10_000;
pub const LINK_FILES_DEFAULT: u64 = 100;
/// Default maximum bytes that are uploaded to a shared link.
pub const LINK_BYTES_DEFAULT: u64 = 10_000_000_000;
/// Maximum entries on a page of a shared link.
pub const LINK_PAGE_ENTRIES: usize = 200;
