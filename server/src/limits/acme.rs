//! Bounds of certificates that the server gets itself.

use std::time::Duration;

/// Where certificates are asked for, if nothing else is said: Let's Encrypt.
pub const DIRECTORY: &str = "https://acme-v02.api.letsencrypt.org/directory";
/// Names in one certificate.
pub const DOMAINS_MAX: usize = 100;
/// How long an authority has for one answer.
pub const ANSWER_WAIT: Duration = Duration::from_secs(30);
/// Largest answer of it.
pub const ANSWER_BYTES_MAX: usize = 1 << 20;
/// How long it may take to look, and again to make the certificate.
pub const WORK_WAIT: Duration = Duration::from_secs(180);
/// How long all of that may take.
pub const ORDER_WAIT: Duration = Duration::from_secs(900);
/// How long after the first failure it is asked again; after each further one five times as long.
pub const RETRY_WAIT_MIN: Duration = Duration::from_secs(10);
/// And never longer.
pub const RETRY_WAIT_MAX: Duration = Duration::from_secs(6 * 60 * 60);
/// Longest that an authority can have itself left alone (`Retry-After`).
pub const RETRY_AFTER_MAX: Duration = Duration::from_secs(24 * 60 * 60);
/// How long at once is waited for the time of a renewal: clocks are set meanwhile.
pub const LOOK_WAIT: Duration = Duration::from_secs(60 * 60);
