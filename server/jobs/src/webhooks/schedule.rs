//! Retry schedule of webhooks. Pure: time and randomness are parameters.

use catalog::NextAttempt;
use catalog::limits::WEBHOOK_BACKOFF_MAX;
use outbound::RetryAfter;

use crate::limits::{
    WEBHOOK_BACKOFF_MIN, WEBHOOK_JITTER_PERCENT, WEBHOOK_RETRY_AFTER_MAX, WEBHOOK_RETRY_WAITS,
};

/// Returns whether `Retry-After` of a response with this status is honored: too many requests, or unavailable.
pub(super) fn should_back_off(status: u16) -> bool {
    matches!(status, 429 | 503)
}

/// Returns the time that a destination requests, in milliseconds since 1970, up to the maximum.
pub(super) fn retry_after_ms(asked: RetryAfter, now_ms: u64) -> u64 {
    let latest_ms = now_ms + millis(WEBHOOK_RETRY_AFTER_MAX);
    let until_ms = match asked {
        RetryAfter::Delay(wait) => now_ms.saturating_add(millis(wait)),
        RetryAfter::Date(unix_ms) => unix_ms,
    };
    until_ms.min(latest_ms)
}

/// Returns the next attempt of an event with this number of earlier failures, after a further one; not before the
/// requested time. `chance` is a random number.
pub(super) fn next_attempt(
    failed_before: u32,
    now_ms: u64,
    asked_ms: u64,
    chance: u64,
) -> NextAttempt {
    let index = usize::try_from(failed_before).unwrap_or(usize::MAX);
    let Some(wait) = WEBHOOK_RETRY_WAITS.get(index) else { return NextAttempt::DeadLetter };
    let percent = 100 - WEBHOOK_JITTER_PERCENT + chance % (2 * WEBHOOK_JITTER_PERCENT + 1);
    NextAttempt::NotBefore((now_ms + millis(*wait) * percent / 100).max(asked_ms))
}

/// Returns the end of the back-off after this number of consecutive failures: at least a time that doubles with each
/// failure, and until the failed event is due again if that is soon, so that it stays first.
pub(super) fn backoff_until_ms(failures: u32, next: NextAttempt, now_ms: u64) -> u64 {
    let longest_ms = millis(WEBHOOK_BACKOFF_MAX);
    let doublings = failures.saturating_sub(1).min(20);
    let rest_ms = (millis(WEBHOOK_BACKOFF_MIN) << doublings).min(longest_ms);
    let due_ms = match next {
        NextAttempt::NotBefore(due_ms) => due_ms.min(now_ms + longest_ms),
        NextAttempt::DeadLetter => now_ms,
    };
    due_ms.max(now_ms + rest_ms)
}

fn millis(time: std::time::Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const NOW_MS: u64 = 1_000_000;

    #[test]
    fn webhook_backoff_has_jitter_and_a_maximum() {
        for (failed_before, wait) in WEBHOOK_RETRY_WAITS.iter().enumerate() {
            let mut seen = Vec::new();
            for chance in 0..1_000 {
                match next_attempt(failed_before as u32, NOW_MS, 0, chance) {
                    NextAttempt::NotBefore(ms) => seen.push(ms - NOW_MS),
                    NextAttempt::DeadLetter => panic!("{failed_before}"),
                }
            }
            let wait_ms = millis(*wait);
            let (least, most) = (seen.iter().min(), seen.iter().max());
            assert_eq!((least, most), (Some(&(wait_ms * 9 / 10)), Some(&(wait_ms * 11 / 10))));
        }
        let over = WEBHOOK_RETRY_WAITS.len() as u32;
        assert_eq!(next_attempt(over, NOW_MS, 0, 0), NextAttempt::DeadLetter);
        assert_eq!(next_attempt(u32::MAX, NOW_MS, u64::MAX, 0), NextAttempt::DeadLetter);
    }

    #[test]
    fn retry_after_is_honored_up_to_a_day() {
        let wait =
            |seconds| retry_after_ms(RetryAfter::Delay(Duration::from_secs(seconds)), NOW_MS);
        assert_eq!(wait(60), NOW_MS + 60_000);
        let latest_ms = NOW_MS + 24 * 60 * 60 * 1_000;
        assert_eq!(
            (wait(u64::MAX), retry_after_ms(RetryAfter::Date(u64::MAX), NOW_MS)),
            (latest_ms, latest_ms)
        );
        assert_eq!(next_attempt(0, NOW_MS, wait(60), 0), NextAttempt::NotBefore(NOW_MS + 60_000));
        // A time in the past changes nothing.
        let past = retry_after_ms(RetryAfter::Date(7), NOW_MS);
        assert_eq!(next_attempt(0, NOW_MS, past, 10), NextAttempt::NotBefore(NOW_MS + 5_000));
        assert!(should_back_off(429) && should_back_off(503) && !should_back_off(500));
    }

    #[test]
    fn webhook_backoff_doubles_per_failure() {
        let rest = |failures, next_ms| {
            backoff_until_ms(failures, NextAttempt::NotBefore(NOW_MS + next_ms), NOW_MS) - NOW_MS
        };
        assert_eq!((rest(1, 5_500), rest(1, 4_500), rest(2, 330_000)), (5_500, 5_000, 330_000));
        assert_eq!((rest(3, 1_800_000), rest(4, 5_000)), (600_000, 40_000));
        assert_eq!((rest(20, 5_000), rest(u32::MAX, 5_000)), (600_000, 600_000));
        assert_eq!(backoff_until_ms(1, NextAttempt::DeadLetter, NOW_MS), NOW_MS + 5_000);
    }
}
