//! What did not come, and when it is asked for again: each time after a longer rest, and not for ever.
//!
//! Never here: asking.

use std::time::Duration;

use tokio::time::sleep;

use crate::limits;
use crate::outbound::{FetchError, RetryAfter};

/// Why something did not come.
#[derive(Debug)]
pub(super) struct Fault {
    pub(super) why: String,
    /// Whether it may come later, and how long the other side wants to be left alone.
    pub(super) passes: bool,
    pub(super) rest: Duration,
}

/// How often something was asked for.
pub(super) struct Tries {
    count: u32,
    rest: Duration,
}

impl Tries {
    pub(super) fn begin() -> Self {
        Self { count: 1, rest: limits::archives::IMPORT_FIRST_REST }
    }

    /// Rests until it may be tried again. A sentence, where it is not to be.
    pub(super) async fn rest_after(&mut self, fault: Fault) -> Result<(), String> {
        if !fault.passes {
            return Err(fault.why);
        }
        if self.count == limits::archives::IMPORT_TRIES_MAX {
            return Err(format!("{}; {} attempts", fault.why, self.count));
        }
        sleep(self.rest.max(fault.rest).min(limits::archives::IMPORT_LONGEST_REST)).await;
        self.count += 1;
        self.rest *= 2;
        Ok(())
    }
}

impl Fault {
    pub(super) fn passing(why: impl Into<String>) -> Self {
        Self { why: why.into(), passes: true, rest: Duration::ZERO }
    }

    pub(super) fn lasting(why: impl Into<String>) -> Self {
        Self { why: why.into(), passes: false, rest: Duration::ZERO }
    }
}

/// How long an answer wants its sender to be left alone.
pub(super) fn wanted_rest(retry_after: Option<RetryAfter>) -> Duration {
    match retry_after {
        Some(RetryAfter::Wait(rest)) => rest,
        // Whoever names a moment gets the longest rest, which costs no look at a clock.
        Some(RetryAfter::Until(_)) => limits::archives::IMPORT_LONGEST_REST,
        None => Duration::ZERO,
    }
}

impl From<FetchError> for Fault {
    fn from(error: FetchError) -> Self {
        let rest = wanted_rest(error.retry_after());
        Self { why: error.to_string(), passes: error.is_passing(), rest }
    }
}
