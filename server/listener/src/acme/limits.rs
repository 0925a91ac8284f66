//! Limits of ACME certificates.

use std::time::Duration;

/// Default ACME directory: Let's Encrypt.
pub const DIRECTORY: &str = "https://acme-v02.api.letsencrypt.org/directory";
/// Maximum names in one certificate.
pub const DOMAINS_MAX: usize = 100;
/// Time-out of one response of the certification authority.
pub const RESPONSE_TIMEOUT: Duration = Duration::from_secs(30);
/// Largest response of the certification authority.
pub const RESPONSE_BYTES_MAX: usize = 1 << 20;
/// Time-out of the validation, and again of the issuance.
pub const CHALLENGE_TIMEOUT: Duration = Duration::from_secs(180);
/// Time-out of a whole order.
pub const ORDER_TIMEOUT: Duration = Duration::from_secs(900);
/// Waiting time after the first failure; five times as long after each further one.
pub const BACKOFF_MIN: Duration = Duration::from_secs(10);
/// Maximum waiting time after a failure.
pub const BACKOFF_MAX: Duration = Duration::from_secs(6 * 60 * 60);
/// Longest `Retry-After` of a certification authority that is honored.
pub const RETRY_AFTER_MAX: Duration = Duration::from_secs(24 * 60 * 60);
/// Maximum uninterrupted wait for the time of a renewal, since the clock may be set in the meantime.
pub const RENEWAL_CHECK_INTERVAL: Duration = Duration::from_secs(60 * 60);
