//! Limits of the crate `catalog`, each with its source; see `limits.rs` of the server.

use std::time::Duration;

/// Maximum accounts, buckets and API keys each: all of them are held in memory, some hundred bytes apiece.
pub const CATALOG_RECORDS_MAX: usize = 100_000;
/// Maximum buckets that one account owns, including those of its organisations.
pub const BUCKETS_PER_ACCOUNT_MAX: usize = 10_000;
/// Maximum API keys of one account. At the limit, a new key replaces the oldest one that is no longer valid.
pub const API_KEYS_PER_ACCOUNT_MAX: usize = 1_000;
/// Maximum organisations that one account owns.
pub const ORGANISATIONS_PER_ACCOUNT_MAX: usize = 100;
/// Maximum members of one organisation: their record is one fact.
pub const MEMBERS_PER_ORGANISATION_MAX: usize = 1_000;
/// Maximum pending invitations of an account to organisations.
pub const INVITATIONS_PER_ACCOUNT_MAX: usize = 100;
/// Maximum commit attempts when concurrent uploads take the free name first.
pub const NAME_TRIES_MAX: usize = 32;
/// Maximum time that an upload waits for concurrent uploads that count towards the same quota.
pub const QUOTA_WAIT_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum origins, and maximum media types, of a bucket: its record is one fact.
pub const BUCKET_LIST_MAX: usize = 100;
/// Maximum CORS rules of a bucket (S3 API).
pub const CORS_RULES_MAX: usize = 100;
/// Maximum bytes of all CORS rules of a bucket, encoded.
pub const CORS_RULES_BYTES_MAX: usize = 8 * 1_024;
/// Facts that are read at a time when the catalog is opened.
pub const CATALOG_PAGE_FACTS: usize = 1_000;
/// Longest free text of a catalog record.
pub const CATALOG_TEXT_BYTES_MAX: usize = 200;
/// Minimum password length in characters, and maximum in bytes.
pub const PASSWORD_CHARS_MIN: usize = 10;
pub const PASSWORD_BYTES_MAX: usize = 128;
/// Idle time after which a session ends.
pub const SESSION_IDLE_TIMEOUT: Duration = Duration::from_secs(7 * 24 * 60 * 60);
/// Maximum lifetime of a session, regardless of its use.
pub const SESSION_LIFETIME: Duration = Duration::from_secs(30 * 24 * 60 * 60);
/// Maximum sessions of one account; a further one replaces the least recently used.
pub const SESSIONS_PER_ACCOUNT_MAX: usize = 50;
/// Maximum active shared links of one account.
pub const SHARED_LINKS_PER_ACCOUNT_MAX: usize = 10_000;
/// Maximum bytes of all paths of a shared link: its record is one fact.
pub const SHARED_LINK_PATHS_BYTES_MAX: usize = 48 * 1_024;
/// Retention of shared links that ended or expired.
pub const SHARED_LINK_RETENTION: Duration = Duration::from_secs(30 * 24 * 60 * 60);
/// Time within which an ended link can be reopened.
pub const SHARED_LINK_REOPEN_TIME: Duration = Duration::from_secs(60);
/// Shared links that are written or deleted in one batch.
pub const SHARED_LINKS_BATCH: usize = 400;
/// Facts of sessions and invitations that are written or removed in one batch.
pub const SESSIONS_BATCH: usize = 500;
/// Lifetime of an invitation.
pub const INVITATION_LIFETIME: Duration = Duration::from_secs(24 * 60 * 60);
/// Time after which the signing key is rotated.
pub const SIGNING_KEY_LIFETIME: Duration = Duration::from_secs(30 * 24 * 60 * 60);
/// Time for which a rotated key still verifies signatures, before it is deleted.
pub const SIGNING_KEY_GRACE_PERIOD: Duration = Duration::from_secs(91 * 24 * 60 * 60);
/// Time for which a used token is remembered after its expiry, so that setting the clock back does not make it valid
/// again.
pub const USED_TOKEN_RETENTION: Duration = Duration::from_secs(24 * 60 * 60);
/// Maximum used tokens that are deleted in one step.
pub const USED_TOKENS_SWEPT_MAX: usize = 1_000;
/// Changes of standing that are remembered per account; the oldest are dropped.
pub const STANDING_CHANGES_MAX: usize = 100;
/// Time after its last request for which a resumable upload is retained.
pub const TUS_EXPIRY_MS: u64 = 24 * 60 * 60 * 1_000;
/// Maximum time that a request waits for another on the same resumable upload to yield.
pub const TUS_LOCK_TIMEOUT: Duration = Duration::from_secs(10);
/// Resumable uploads that are held open for their next request; others are reopened, which reads them whole.
pub const TUS_SUSPENDED_MAX: usize = 64;
/// Interval of the sweep of expired resumable uploads.
pub const TUS_SWEEP_INTERVAL: Duration = Duration::from_secs(60 * 60);
/// Maximum webhooks of one bucket: the events of all of them for every file of a form, or of a folder delete, are part
/// of one batch.
pub const WEBHOOKS_PER_BUCKET_MAX: usize = 8;
/// Maximum webhooks of all buckets that one account owns.
pub const WEBHOOKS_PER_ACCOUNT_MAX: usize = 100;
/// Maximum webhooks in all: all of them are held in memory, some hundred bytes apiece.
pub const WEBHOOKS_MAX: usize = 10_000;
/// Maximum pending events of one webhook. More are dropped, and counted.
pub const WEBHOOK_PENDING_MAX: usize = 100_000;
/// Maximum pending events of all webhooks of one account.
pub const WEBHOOK_PENDING_PER_ACCOUNT_MAX: usize = 200_000;
/// Maximum pending events in all: each takes some 20 bytes of memory, and some 500 of the disk.
pub const WEBHOOK_PENDING_TOTAL_MAX: usize = 1_000_000;
/// Maximum back-off of a webhook, so that an unavailable destination is not contacted for each event.
pub const WEBHOOK_BACKOFF_MAX: Duration = Duration::from_secs(10 * 60);
/// Maximum concurrent webhook deliveries.
pub const WEBHOOK_DELIVERIES_MAX: usize = 64;
/// Maximum concurrent webhook deliveries of one account.
pub const WEBHOOK_DELIVERIES_PER_ACCOUNT_MAX: usize = 4;
/// Interval of checking a webhook that is paused because its account is suspended.
pub const WEBHOOK_SUSPENDED_RECHECK_INTERVAL: Duration = Duration::from_secs(60);
/// Maximum dead letters of one webhook; the oldest are deleted.
pub const WEBHOOK_DEAD_LETTERS_MAX: usize = 1_000;
/// Retention of dead letters.
pub const WEBHOOK_DEAD_LETTER_RETENTION: Duration = Duration::from_secs(30 * 24 * 60 * 60);
/// Event facts that are removed or moved in one batch.
pub const WEBHOOK_BATCH_EVENTS: usize = 250;
/// Days for which daily usage is retained.
pub const USAGE_DAYS_RETENTION: u64 = 400;
/// Usage facts that are written in one batch, plus some more of one bucket.
pub const USAGE_BATCH_RECORDS: usize = 400;
/// Minimum time until an object expires, and minimum age of a lifecycle rule, in seconds.
pub const EXPIRY_SECONDS_MIN: u64 = 60;
/// Maximum time until an object expires, and maximum age of a lifecycle rule, in seconds: ten years of 365 days.
pub const EXPIRY_SECONDS_MAX: u64 = 10 * 365 * 24 * 60 * 60;
/// Maximum lifecycle rules of one bucket.
pub const LIFECYCLE_RULES_MAX: usize = 100;
/// Maximum bytes of all lifecycle rules of a bucket, encoded.
pub const LIFECYCLE_BYTES_MAX: usize = 16 * 1_024;
/// Maximum characters of the id of a lifecycle rule, as S3 has it.
pub const LIFECYCLE_ID_CHARS_MAX: usize = 255;
/// Maximum entries of the audit log.
pub const AUDIT_ENTRIES_MAX: usize = 10_000;
/// Retention of audit log entries.
pub const AUDIT_RETENTION: Duration = Duration::from_secs(400 * 24 * 60 * 60);
/// Maximum audit log entries of rejected sign-ins.
pub const AUDIT_REFUSED_MAX: usize = 1_000;
/// Audit log entries that are deleted in one batch.
pub const AUDIT_BATCH: usize = 500;
/// Maximum characters of the details of an audit log entry.
pub const AUDIT_TEXT_CHARS_MAX: usize = 1_000;
/// Maximum changes of files in the file audit.
pub const FILE_AUDIT_FILES_MAX: usize = 200_000;
/// Maximum changes of files that are collected in memory; more are dropped while the store cannot be written.
pub const FILE_AUDIT_PENDING_MAX: usize = 10_000;
/// Size at which a block of the file audit is complete, in bytes.
pub const FILE_AUDIT_BLOCK_BYTES: usize = 32 * 1_024;
/// Size up to which later changes are added to a stored block, in bytes: what each write may repeat.
pub const FILE_AUDIT_OPEN_BYTES: usize = 4 * 1_024;
/// Maximum failed URLs in a job's report.
pub const IMPORT_FAILURES_MAX: usize = 50;
/// Maximum characters of the error of a failed URL.
pub const IMPORT_FAILURE_CHARS_MAX: usize = 80;
/// Maximum unfinished jobs of one account.
pub const JOBS_PER_ACCOUNT_MAX: usize = 16;
/// Maximum unfinished jobs in all.
pub const JOBS_MAX: usize = 1_000;
/// Finished jobs of one account that are retained; the oldest are deleted.
pub const JOBS_ENDED_MAX: usize = 100;
/// Retention of finished jobs.
pub const JOBS_RETENTION: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// Returns a duration in milliseconds.
pub(crate) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

const _: () = assert!(AUDIT_BATCH <= engine::limits::BATCH_RECORDS_MAX);
const _: () = assert!(
    USAGE_BATCH_RECORDS + 4 * (usage::limits::USAGE_HOURS_RETENTION_DAYS as usize + 2)
        <= engine::limits::BATCH_RECORDS_MAX
);
// Each entry moves from one fact into another, which takes two records.
const _: () = assert!(2 * USAGE_BATCH_RECORDS <= engine::limits::BATCH_RECORDS_MAX);
const _: () = assert!(SESSION_IDLE_TIMEOUT.as_secs() <= SESSION_LIFETIME.as_secs());
// A suspension or a set-up ends all sessions in the same batch.
const _: () = assert!(SESSIONS_PER_ACCOUNT_MAX + 16 <= engine::limits::BATCH_RECORDS_MAX);
const _: () = assert!(2 * SHARED_LINKS_BATCH <= engine::limits::BATCH_RECORDS_MAX);
const _: () = assert!(SESSIONS_BATCH <= engine::limits::BATCH_RECORDS_MAX);
const _: () = assert!(48 * MEMBERS_PER_ORGANISATION_MAX < engine::limits::FACT_BYTES_MAX);
const _: () = assert!(USED_TOKENS_SWEPT_MAX <= engine::limits::BATCH_RECORDS_MAX);
const _: () = assert!(USED_TOKENS_SWEPT_MAX <= engine::limits::LIST_PAGE_MAX);
// A file, its thumbnail, an event of it for each webhook, and the other changes of an upload.
const _: () = assert!(
    protocol::limits::FORM_FILES_MAX * (2 + WEBHOOKS_PER_BUCKET_MAX) + 8
        <= engine::limits::BATCH_RECORDS_MAX
);
const _: () = assert!(WEBHOOK_DEAD_LETTERS_MAX <= engine::limits::LIST_PAGE_MAX);
const _: () = assert!(2 * WEBHOOK_BATCH_EVENTS + 8 <= engine::limits::BATCH_RECORDS_MAX);
