//! Limits of jobs, object operations, webhook delivery and fair use, each with its source; see `limits.rs` of the
//! server.

use std::time::Duration;

/// Maximum running object jobs.
pub const JOBS_RUNNING_MAX: usize = 4;
/// Maximum running jobs of one account.
pub const JOBS_RUNNING_PER_ACCOUNT_MAX: usize = 2;
/// Interval of deleting old jobs.
pub const JOBS_SWEEP_INTERVAL: Duration = Duration::from_secs(60 * 60);
/// Interval of persisting the progress of a job.
pub const JOB_SAVE_INTERVAL: Duration = Duration::from_secs(5);
/// Pause after the end of a job could not be recorded, before the job runs again.
pub const JOB_SAVE_RETRY_DELAY: Duration = Duration::from_secs(60);
/// Maximum retries of one batch of a job after concurrent changes.
pub const JOB_TRIES_MAX: usize = 20;
/// Waiting time of an import that is over the rate limit of its account.
pub const IMPORT_RATE_LIMIT_DELAY: Duration = Duration::from_secs(1);

/// Maximum files of one delete request. Spec 8.
pub const DELETE_FILES_MAX: usize = 100;
/// Maximum concurrent body copies for move requests; others wait.
pub const COPIES_MAX: usize = 8;
/// Interval of the sweeps that delete expired objects.
pub const EXPIRY_SWEEP_INTERVAL: Duration = Duration::from_secs(5);
/// Additional delay after a failed sweep.
pub const EXPIRY_RETRY_DELAY: Duration = Duration::from_secs(30);
/// Entries of the expiry schedule that are read at once.
pub const EXPIRY_ENTRIES_MAX: usize = 256;
/// Maximum interval of the scans for objects that lifecycle rules expire, in milliseconds.
pub const EXPIRY_SCAN_INTERVAL_MS: u64 = 60 * 60 * 1_000;
/// Objects of a bucket that a scan remembers because they expire before the next one: some 10 MB.
pub const EXPIRY_UPCOMING_MAX: usize = 65_536;
/// Minimum interval between audit records of expired objects, in milliseconds.
pub const EXPIRY_AUDIT_INTERVAL_MS: u64 = 10 * 60 * 1_000;
/// Maximum attempts to move a file that changes concurrently.
pub const MOVE_TRIES_MAX: usize = 5;
/// Files that are moved or restored in one batch, each with its thumbnail, that of the object it replaces, and events.
pub const MOVE_BATCH_FILES_MAX: usize = 40;
/// Approximate bytes that are moved or restored in one batch.
pub const MOVE_BATCH_BYTES_MAX: u64 = 4 * 1_024 * 1_024;
/// Maximum time that one request scans the log.
pub const LOG_SCAN_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum requests that wait to scan the log.
pub const LOG_SCANS_QUEUED_MAX: usize = 16;

/// Waiting times between the delivery attempts of an event; after the last one it becomes a dead letter. Standard
/// Webhooks, "Deliverability and reliability".
pub const WEBHOOK_RETRY_WAITS: &[Duration] = &[
    Duration::from_secs(5),
    Duration::from_secs(5 * 60),
    Duration::from_secs(30 * 60),
    Duration::from_secs(2 * 60 * 60),
    Duration::from_secs(5 * 60 * 60),
    Duration::from_secs(10 * 60 * 60),
    Duration::from_secs(14 * 60 * 60),
    Duration::from_secs(20 * 60 * 60),
    Duration::from_secs(24 * 60 * 60),
];
/// Jitter of these waiting times in percent, so that deliveries that failed together are not retried together.
pub const WEBHOOK_JITTER_PERCENT: u64 = 10;
/// Longest `Retry-After` that is honored.
pub const WEBHOOK_RETRY_AFTER_MAX: Duration = Duration::from_secs(24 * 60 * 60);
/// Back-off of a webhook after its first failure, doubled with each consecutive one.
pub const WEBHOOK_BACKOFF_MIN: Duration = Duration::from_secs(5);
/// Maximum characters of a delivery error: a certificate may name any number of hosts.
pub const WEBHOOK_ERROR_CHARS_MAX: usize = 300;
/// Consecutive events of a webhook before waiting webhooks get their turn.
pub const WEBHOOK_LEASE_EVENTS_MAX: usize = 32;
/// Maximum concurrent webhook tests.
pub const WEBHOOK_TESTS_MAX: usize = 8;
/// Interval of checking for due deliveries.
pub const WEBHOOK_POLL_INTERVAL: Duration = Duration::from_secs(1);

/// Rejected requests per day beyond which a rate is far over plan. Each exceeds a rate limit, so an account at twice
/// the rate of the plan Free gets there in 100 minutes. Spec 8, fair use.
pub const FAIR_USE_REFUSED_PER_DAY: u64 = 10_000;
/// Requests per day below which nothing is a spike. Spec 8, fair use.
pub const FAIR_USE_SPIKE_REQUESTS_MIN: u64 = 100_000;
/// Minimum days of history for a baseline of usual requests.
pub const FAIR_USE_BASELINE_DAYS_MIN: usize = 3;
/// Maximum days of history for the baseline.
pub const FAIR_USE_BASELINE_DAYS_MAX: usize = 7;
/// Ratio of a spike to the usual requests per day.
pub const FAIR_USE_SPIKE_FACTOR: u64 = 10;
/// Minimum time of an account in a standing before the sweep escalates it.
pub const FAIR_USE_STEP_DELAY: Duration = Duration::from_secs(3 * 24 * 60 * 60);

const _: () = assert!(
    DELETE_FILES_MAX * (2 + catalog::limits::WEBHOOKS_PER_BUCKET_MAX) + 8
        <= engine::limits::BATCH_RECORDS_MAX
);
// A file put and deleted, two thumbnails, an expiry, and two events for each webhook.
const _: () = assert!(
    MOVE_BATCH_FILES_MAX * (5 + 2 * catalog::limits::WEBHOOKS_PER_BUCKET_MAX) + 8
        <= engine::limits::BATCH_RECORDS_MAX
);
const _: () = assert!(2 * DELETE_FILES_MAX < engine::limits::LIST_PAGE_MAX);
