//! Retries of failed downloads, with increasing delays and a limit.
//!
//! Non-goals: requests.

use std::time::Duration;

use outbound::{FetchError, RetryAfter};
use tokio::time::sleep;

use crate::archive::limits;

/// Failed request.
#[derive(Debug)]
pub(super) struct DownloadFailure {
    pub(super) why: String,
    /// Whether the error is transient, and the delay that the server requested.
    pub(super) passes: bool,
    pub(super) rest: Duration,
}

/// Attempts of a request.
pub(super) struct Tries {
    count: u32,
    rest: Duration,
}

impl Tries {
    pub(super) fn begin() -> Self {
        Self { count: 1, rest: limits::IMPORT_BACKOFF_MIN }
    }

    /// Waits before the next attempt. Returns the error, a sentence, if there is none.
    pub(super) async fn rest_after(&mut self, fault: DownloadFailure) -> Result<(), String> {
        if !fault.passes {
            return Err(fault.why);
        }
        if self.count == limits::IMPORT_TRIES_MAX {
            return Err(format!("{}; {} attempts", fault.why, self.count));
        }
        sleep(self.rest.max(fault.rest).min(limits::IMPORT_BACKOFF_MAX)).await;
        self.count += 1;
        self.rest *= 2;
        Ok(())
    }
}

impl DownloadFailure {
    pub(super) fn passing(why: impl Into<String>) -> Self {
        Self { why: why.into(), passes: true, rest: Duration::ZERO }
    }

    pub(super) fn lasting(why: impl Into<String>) -> Self {
        Self { why: why.into(), passes: false, rest: Duration::ZERO }
    }
}

/// Returns the delay that a response requests.
pub(super) fn requested_delay(retry_after: Option<RetryAfter>) -> Duration {
    match retry_after {
        Some(RetryAfter::Delay(rest)) => rest,
        // A date gets the longest delay, which avoids a look at the clock.
        Some(RetryAfter::Date(_)) => limits::IMPORT_BACKOFF_MAX,
        None => Duration::ZERO,
    }
}

impl From<FetchError> for DownloadFailure {
    fn from(error: FetchError) -> Self {
        let rest = requested_delay(error.retry_after());
        Self { why: error.to_string(), passes: error.is_transient(), rest }
    }
}
