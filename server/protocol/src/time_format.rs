//! Times in responses: RFC 3339, UTC, with milliseconds.

use jiff::Timestamp;

/// Formats a time for responses: `2026-01-31T12:00:00.000Z`.
pub fn iso_time(unix_ms: u64) -> String {
    timestamp(unix_ms).strftime("%Y-%m-%dT%H:%M:%S.%3fZ").to_string()
}

/// Returns a time of the clock as a timestamp; the latest one for times beyond it.
pub fn timestamp(unix_ms: u64) -> Timestamp {
    let ms = i64::try_from(unix_ms).unwrap_or(i64::MAX);
    Timestamp::from_millisecond(ms).unwrap_or(Timestamp::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn iso_time_has_milliseconds_and_utc_suffix() {
        assert_eq!(iso_time(0), "1970-01-01T00:00:00.000Z");
        assert_eq!(iso_time(1_769_860_800_007), "2026-01-31T12:00:00.007Z");
        assert!(iso_time(u64::MAX).starts_with("9999-"));
    }
}
