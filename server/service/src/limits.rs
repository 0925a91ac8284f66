//! Limits of the HTTP side, each with its source.
//!
//! "Spec 8" is section 8 of the service's specification, "clients 3.2" a section of the study of real clients; a limit
//! without a source is our own choice. Sizes are in bytes. A configurable limit has its default here and a field in the
//! configuration. Non-goals: limits of names and objects, which the engine defines.

use std::ops::RangeInclusive;
use std::time::Duration;

/// Largest request body on the basic endpoint. Spec 8 (100 MB), clients 3.2.
pub const BODY_BYTES_MAX: u64 = 104_857_600;
/// Largest request body that an operator may configure. Clients 3.2.
pub const CONFIGURED_BODY_BYTES_MAX: u64 = 5 * 1_024 * MIB;
/// Largest request body on the premium endpoint. Clients 3.2, 13.14.
pub const UPLOAD_BODY_BYTES_MAX: u64 = 5 * 1_024 * MIB;

/// Maximum bytes of all tags of a bucket.
pub const BUCKET_TAGS_BYTES_MAX: usize = 12 * 1_024;

/// Maximum concurrent password hashes: each takes 19 MiB and a tenth of a second of a processor.
pub const PASSWORD_HASHES_CONCURRENT_MAX: usize = 2;
/// Maximum password hashes that wait; more are rejected immediately.
pub const PASSWORD_HASHES_QUEUED_MAX: usize = 64;
/// Lifetime of the device cookie of a browser in which an account has signed in.
pub const DEVICE_LIFE: Duration = Duration::from_secs(90 * 24 * 60 * 60);
/// Lifetime of a set-up link.
pub const SETUP_LINK_LIFETIME: Duration = Duration::from_secs(30 * 60);
/// Maximum wrong passwords per minute from one address.
pub const FAILED_SIGN_INS_PER_MINUTE: u32 = 20;
/// Burst size of wrong passwords for one account name.
pub const FAILED_SIGN_INS_PER_NAME_BURST: u32 = 10;
/// Time after which one more wrong password is allowed for an account name.
pub const FAILED_SIGN_IN_REFILL_INTERVAL: Duration = Duration::from_secs(30);
/// Maximum dashboard hosts besides that of the public URL.
pub const DASHBOARD_HOSTS_MAX: usize = 32;

/// Recent uploads that are remembered per bucket.
pub const RECENT_UPLOADS_MAX: usize = 12;

/// Maximum lifetime of a presigned token or URL. Spec 8.
pub const PRESIGN_SECONDS_MAX: u64 = 3_600;
/// Default lifetime of a presigned token or URL. Spec 4.4, clients 3.4.
pub const PRESIGN_SECONDS_DEFAULT: u64 = 3_600;
/// Maximum lifetime of a download link.
pub const DOWNLOAD_LINK_SECONDS_MAX: u64 = 7 * 24 * 60 * 60;
/// Maximum entries of a zip archive.
pub const ZIP_ENTRIES_MAX: usize = 200_000;
/// Maximum entries of all zip archives that are being sent: about 400 bytes each.
pub const ZIP_ENTRIES_OPEN_MAX: usize = 2 * ZIP_ENTRIES_MAX;
/// Maximum zip archives that are sent concurrently.
pub const ZIPS_CONCURRENT_MAX: usize = 8;
/// Maximum files and folders of a zip archive that are named one by one.
pub const ZIP_PATHS_MAX: usize = 10_000;
/// Largest request body that names the files of a zip archive.
pub const ZIP_BODY_BYTES_MAX: u64 = 2 * MIB;
/// Time in which a prepared zip archive may be downloaded.
pub const ZIP_DOWNLOAD_LIFETIME: Duration = Duration::from_secs(5 * 60);
/// Maximum prepared zip archives of one account.
pub const ZIP_DOWNLOADS_PER_ACCOUNT_MAX: usize = 16;
/// Maximum memory of all prepared zip archives.
pub const ZIP_DOWNLOADS_BYTES_MAX: usize = 32 * MIB as usize;
/// Default lifetime of a shared link.
pub const LINK_SECONDS_DEFAULT: u64 = 7 * 24 * 60 * 60;
/// Largest maximum lifetime of shared links that an operator may configure, in days.
pub const LINK_DAYS_MAX: u64 = 3_650;
/// Maximum characters of the name that a person who uploads to a link gives.
pub const LINK_NAME_CHARS_MAX: usize = 100;
/// Time for which a browser has access to a shared link after its password was entered.
pub const LINK_UNLOCK_LIFETIME: Duration = Duration::from_secs(12 * 60 * 60);
/// Maximum and default page size of a listing. Spec 8.
pub const LIST_KEYS_MAX: usize = 1_000;
/// Maximum page size of a search. Clients 3.5.
pub const SEARCH_HITS_MAX: usize = 1_000;
/// Maximum searches that wait; more are rejected immediately.
pub const SEARCHES_QUEUED_MAX: usize = 512;
/// Maximum waiting time of a search, which is then rejected.
pub const SEARCH_QUEUE_TIMEOUT: Duration = Duration::from_secs(2);

/// Maximum declared bytes of the unfinished uploads of one account: four of the largest files.
pub const UNFINISHED_BYTES_MAX: u64 = 4 * engine::limits::OBJECT_BYTES_MAX;

/// Maximum files of an upload whose names are looked up on the async worker, as for a GET; more are looked up on a
/// blocking thread.
pub const INLINE_LOOKUPS_MAX: usize = 4;

/// Maximum max-age of HSTS: two years, which HSTS preload lists ask for.
pub const HSTS_MAX: Duration = Duration::from_secs(2 * 365 * 24 * 60 * 60);
/// Maximum configurable drain time.
pub const DRAIN_TIMEOUT_MAX: Duration = Duration::from_secs(24 * 60 * 60);
/// Default minimum retention of deleted or replaced large files, unless space runs short: long enough to notice a
/// mistake, and short enough that an operator who deletes to free space sees the effect on the same day.
pub const UNDELETE_WINDOW: Duration = Duration::from_secs(60 * 60);
/// Configurable pauses between two chunks that are shipped to the remote store, in milliseconds.
pub const REMOTE_SHIP_MS: RangeInclusive<u64> = 10..=60_000;
/// Configurable leases of the remote store, in seconds, besides 0.
pub const REMOTE_LEASE_SECONDS: RangeInclusive<u16> = 5..=3_600;
/// Minimum configurable `local_cache_bytes`, besides 0.
pub const LOCAL_CACHE_BYTES_MIN: u64 = 1 << 30;
/// Maximum configurable undelete window.
pub const UNDELETE_WINDOW_MAX: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// Uploads per minute on the plan Free, and burst size. Spec 8.
pub const UPLOADS_PER_MINUTE_FREE: u32 = 100;
/// Uploads per minute on the plan Starter, and burst size. Spec 8.
pub const UPLOADS_PER_MINUTE_STARTER: u32 = 300;
/// Uploads per minute on the plan Pro, and burst size. Spec 8.
pub const UPLOADS_PER_MINUTE_PRO: u32 = 1_000;
/// Default uploads per minute on the plan Business, and burst size, which spec 8 leaves to the operator.
pub const UPLOADS_PER_MINUTE_BUSINESS: u32 = 10_000;
/// Requests per minute of an account, not counting uploads and delivery. Spec 8 ("per user").
pub const MANAGEMENT_PER_MINUTE: u32 = 1_000;
/// Divisor of the rate limits of a throttled account. Clients 13.13.
pub const THROTTLED_DIVISOR: u32 = 10;
/// Default for invalid API keys per minute from one address. Clients 8.2.
pub const FAILED_AUTHENTICATIONS_PER_MINUTE: u32 = 60;
/// Default for requests per second from one address. Product 0.
pub const ADDRESS_REQUESTS_PER_SECOND: u32 = 2_000;
/// Default burst size of the per-address request limit. Product 0.
pub const ADDRESS_REQUESTS_BURST: u32 = 10_000;
/// Maximum addresses in each rate-limit table: 1 MiB. At the limit, those with the fewest requests are evicted.
pub const RATE_LIMIT_IPS_MAX: usize = 65_536;
/// Highest rate that an operator may configure.
pub const CONFIGURED_RATE_MAX: u32 = 1_000_000;
/// Interval of dropping idle accounts from the rate-limit tables.
pub const RATE_LIMIT_PRUNE_INTERVAL: Duration = Duration::from_secs(60);

/// Slots of the response-header cache: up to 2 KiB each.
pub const HEADER_CACHE_ENTRIES_MAX: usize = 16_384;

/// Maximum unfinished resumable uploads of one account.
pub const TUS_PENDING_MAX: usize = 1_000;
/// Bytes of a large upload that are written at a time, on a blocking thread.
pub const UPLOAD_CHUNK_BYTES: usize = 256 * 1_024;
/// Threads that write large uploads concurrently; more wait. Each has buffers, and memory that its allocator retains.
pub const UPLOAD_WRITES_MAX: usize = 8;

/// Minimum characters of a secret in the configuration.
pub const SECRET_CHARS_MIN: usize = 16;
/// Maximum characters of a secret in the configuration.
pub const SECRET_CHARS_MAX: usize = 256;
/// Maximum bytes of a secret file.
pub const SECRET_FILE_BYTES_MAX: u64 = 4 * KIB;

/// Maximum queued image jobs; more are rejected.
pub const IMAGE_JOBS_QUEUED_MAX: usize = 256;
/// Maximum waiting time of an image job.
pub const IMAGE_QUEUE_TIMEOUT: Duration = Duration::from_secs(5);
/// Expected milliseconds up to which an image job is short, and never waits behind longer ones.
pub const IMAGE_LONG_JOB_MS: u64 = 100;
/// Maximum restarts of an image job that was cancelled just when a request joined it.
pub const IMAGE_JOBS_RETRIED_MAX: usize = 4;
/// Bytes that are read of an image file at first: they contain the header, unless a camera put a preview before it.
pub const IMAGE_HEAD_BYTES: u64 = 128 * KIB;
/// Cached image headers and failed image jobs: some hundred bytes each.
pub const IMAGE_HEADER_CACHE_ENTRIES: usize = 20_000;
/// Time for which a failed image is not retried.
pub const IMAGE_FAILURE_CACHE_TTL: Duration = Duration::from_secs(10 * 60);
/// Default size of the variant cache on the disk.
pub const VARIANTS_BYTES_MAX: u64 = 5 * 1_024 * MIB;
/// Maximum cached variants of one file; further ones are rendered for each request.
pub const VARIANTS_PER_OBJECT_MAX: usize = 64;
/// Variants that are read at a time when the server starts.
pub const VARIANTS_PAGE: usize = 1_000;
/// Variants that are removed in one batch.
pub const VARIANTS_BATCH: usize = 500;
/// Interval of removing variants of deleted files.
pub const VARIANTS_SWEEP_INTERVAL: Duration = Duration::from_secs(60);
/// Smallest file that is compressed: below it, headers are most of the response.
pub const COMPRESSED_BYTES_MIN: u64 = KIB;
/// Largest file that is compressed: about half a second of a processor.
pub const COMPRESSED_BYTES_MAX: u64 = compression::INPUT_BYTES_MAX as u64;
/// Maximum time that a request waits for its compressed form; then the file is sent as it is.
pub const COMPRESSION_WAIT: Duration = Duration::from_millis(100);
/// Maximum files that are compressed or wait for it, so that images find room in the queue of the render pool.
pub const COMPRESSION_JOBS_MAX: usize = 16;
/// Bytes that are compressed in a millisecond of CPU, by the slowest coding.
pub const COMPRESSION_BYTES_PER_MS: u64 = 16 * KIB;
/// Inverse of the share of a file that compression must save.
pub const COMPRESSION_SAVED_DIVISOR: u64 = 20;
/// Longer side of a thumbnail, in pixels. Clients 3.2.
pub const THUMBNAIL_SIDE_MAX: u32 = 400;
/// Quality of a thumbnail. Clients 3.2.
pub const THUMBNAIL_QUALITY: u8 = 78;
/// Maximum time that a request waits for the thumbnails of all its files; the rest get none.
pub const THUMBNAILS_TIMEOUT: Duration = Duration::from_secs(20);
/// Default image processing time of one address, in milliseconds of CPU per second: a few images at any moment, and
/// after a pause, with the burst, a page of a thousand thumbnails of photographs at about 60 ms each.
pub const IMAGE_MS_PER_SECOND_PER_ADDRESS: u32 = 250;
/// Default image processing time of one bucket, in milliseconds of CPU per second: one processor, which leaves the rest
/// to others.
pub const IMAGE_MS_PER_SECOND_PER_BUCKET: u32 = 1_000;
/// Burst of the image processing limits, as time at the full rate.
pub const IMAGE_BURST_WINDOW: Duration = Duration::from_secs(5 * 60);
/// Inverse of the share of the machine's memory for all image processing at once.
pub const IMAGE_MEMORY_DIVISOR: u64 = 4;

const KIB: u64 = 1_024;
pub const MIB: u64 = 1_024 * KIB;

/// Maximum entries of the user metadata of an object.
pub const METADATA_ENTRIES_MAX: usize = 64;
/// Maximum characters of a key of user metadata.
pub const METADATA_KEY_CHARS_MAX: usize = 64;
/// Maximum bytes of the keys and values of user metadata, as S3 has it.
pub const METADATA_BYTES_MAX: usize = 2_048;
/// Maximum characters of a response header that is stored with an object.
pub const HEADER_VALUE_CHARS_MAX: usize = 512;

const _: () = assert!(TUS_PENDING_MAX <= engine::limits::LIST_PAGE_MAX);
const _: () = assert!(
    2 * catalog::limits::BUCKET_LIST_MAX * (catalog::limits::CATALOG_TEXT_BYTES_MAX + 8)
        + BUCKET_TAGS_BYTES_MAX
        + catalog::limits::CORS_RULES_BYTES_MAX
        + 3 * 1_024
        < engine::limits::FACT_BYTES_MAX
);
const _: () = assert!(BODY_BYTES_MAX <= CONFIGURED_BODY_BYTES_MAX);
const _: () = assert!(UPLOAD_BODY_BYTES_MAX <= engine::limits::OBJECT_BYTES_MAX);
const _: () = assert!(PRESIGN_SECONDS_DEFAULT <= PRESIGN_SECONDS_MAX);
const _: () = assert!(catalog::limits::SIGNING_KEY_GRACE_PERIOD.as_secs() > PRESIGN_SECONDS_MAX);
const _: () = assert!(catalog::limits::SIGNING_KEY_GRACE_PERIOD.as_secs() > DEVICE_LIFE.as_secs());
const _: () =
    assert!(catalog::limits::SIGNING_KEY_GRACE_PERIOD.as_secs() > LINK_UNLOCK_LIFETIME.as_secs());
const _: () =
    assert!(catalog::limits::SIGNING_KEY_GRACE_PERIOD.as_secs() > DOWNLOAD_LINK_SECONDS_MAX);
const _: () = assert!(protocol::limits::FILE_NAME_BYTES_MAX <= engine::limits::KEY_BYTES_MAX);
const _: () =
    assert!(2 * protocol::limits::FORM_FILES_MAX + 8 <= engine::limits::BATCH_RECORDS_MAX);
const _: () = assert!(LIST_KEYS_MAX <= engine::limits::LIST_PAGE_MAX);
const _: () = assert!(SEARCH_HITS_MAX <= search::limits::WINDOW_MAX);
const _: () = assert!(UPLOADS_PER_MINUTE_FREE >= THROTTLED_DIVISOR);
const _: () = assert!(UPLOADS_PER_MINUTE_BUSINESS <= CONFIGURED_RATE_MAX);
const _: () = assert!(ADDRESS_REQUESTS_PER_SECOND <= ADDRESS_REQUESTS_BURST);
const _: () = assert!(
    listener::limits::HEADER_READ_TIMEOUT.as_secs() <= 10
        && protocol::limits::BODY_THROUGHPUT_WINDOW.as_secs() <= 10
);
