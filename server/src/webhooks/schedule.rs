//! Retry schedule of webhooks. Pure: time and randomness are parameters.

use crate::catalog::NextTry;
use crate::limits::{
    WEBHOOK_JITTER_PERCENT, WEBHOOK_REST_MAX, WEBHOOK_REST_MIN, WEBHOOK_RETRY_AFTER_MAX,
    WEBHOOK_RETRY_WAITS,
};
use crate::outbound::RetryAfter;

/// Returns whether `Retry-After` of a response with this status is honored: too many requests, or unavailable.
pub(super) fn wants_rest(status: u16) -> bool {
    matches!(status, 429 | 503)
}

/// Returns the time that a destination requests, in milliseconds since 1970, up to the maximum.
pub(super) fn asked_until_ms(asked: RetryAfter, now_ms: u64) -> u64 {
    let latest_ms = now_ms + millis(WEBHOOK_RETRY_AFTER_MAX);
    let until_ms = match asked {
        RetryAfter::Wait(wait) => now_ms.saturating_add(millis(wait)),
        RetryAfter::Until(unix_ms) => unix_ms,
    };
    until_ms.min(latest_ms)
}

/// Returns the next attempt of an event with this number of earlier failures, after a further one; not before the
/// requested time. `chance` is a random number.
pub(super) fn next_try(failed_before: u32, now_ms: u64, asked_ms: u64, chance: u64) -> NextTry {
    let index = usize::try_from(failed_before).unwrap_or(usize::MAX);
    let Some(wait) = WEBHOOK_RETRY_WAITS.get(index) else { return NextTry::Never };
    let percent = 100 - WEBHOOK_JITTER_PERCENT + chance % (2 * WEBHOOK_JITTER_PERCENT + 1);
    NextTry::NotBefore((now_ms + millis(*wait) * percent / 100).max(asked_ms))
}

/// Returns the end of the back-off after this number of consecutive failures: at least a time that doubles with each
/// failure, and until the failed event is due again if that is soon, so that it stays first.
pub(super) fn rest_until_ms(failures: u32, next: NextTry, now_ms: u64) -> u64 {
    let longest_ms = millis(WEBHOOK_REST_MAX);
    let doublings = failures.saturating_sub(1).min(20);
    let rest_ms = (millis(WEBHOOK_REST_MIN) << doublings).min(longest_ms);
    let due_ms = match next {
        NextTry::NotBefore(due_ms) => due_ms.min(now_ms + longest_ms),
        NextTry::Never => now_ms,
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
    fn waits_grow_with_some_chance_and_end() {
        for (failed_before, wait) in WEBHOOK_RETRY_WAITS.iter().enumerate() {
            let mut seen = Vec::new();
            for chance in 0..1_000 {
                match next_try(failed_before as u32, NOW_MS, 0, chance) {
                    NextTry::NotBefore(ms) => seen.push(ms - NOW_MS),
                    NextTry::Never => panic!("{failed_before}"),
                }
            }
            let wait_ms = millis(*wait);
            let (least, most) = (seen.iter().min(), seen.iter().max());
            assert_eq!((least, most), (Some(&(wait_ms * 9 / 10)), Some(&(wait_ms * 11 / 10))));
        }
        let over = WEBHOOK_RETRY_WAITS.len() as u32;
        assert_eq!(next_try(over, NOW_MS, 0, 0), NextTry::Never);
        assert_eq!(next_try(u32::MAX, NOW_MS, u64::MAX, 0), NextTry::Never);
    }

    #[test]
    fn what_a_destination_asks_for_is_heeded_within_reason() {
        let wait = |seconds| asked_until_ms(RetryAfter::Wait(Duration::from_secs(seconds)), NOW_MS);
        assert_eq!(wait(60), NOW_MS + 60_000);
        let latest_ms = NOW_MS + 24 * 60 * 60 * 1_000;
        assert_eq!(
            (wait(u64::MAX), asked_until_ms(RetryAfter::Until(u64::MAX), NOW_MS)),
            (latest_ms, latest_ms)
        );
        assert_eq!(next_try(0, NOW_MS, wait(60), 0), NextTry::NotBefore(NOW_MS + 60_000));
        // A time in the past changes nothing.
        let past = asked_until_ms(RetryAfter::Until(7), NOW_MS);
        assert_eq!(next_try(0, NOW_MS, past, 10), NextTry::NotBefore(NOW_MS + 5_000));
        assert!(wants_rest(429) && wants_rest(503) && !wants_rest(500));
    }

    #[test]
    fn a_webhook_rests_until_what_failed_is_due_and_longer_with_each_failure() {
        let rest = |failures, next_ms| {
            rest_until_ms(failures, NextTry::NotBefore(NOW_MS + next_ms), NOW_MS) - NOW_MS
        };
        assert_eq!((rest(1, 5_500), rest(1, 4_500), rest(2, 330_000)), (5_500, 5_000, 330_000));
        assert_eq!((rest(3, 1_800_000), rest(4, 5_000)), (600_000, 40_000));
        assert_eq!((rest(20, 5_000), rest(u32::MAX, 5_000)), (600_000, 600_000));
        assert_eq!(rest_until_ms(1, NextTry::Never, NOW_MS), NOW_MS + 5_000);
    }
}
