//! Sizes and times on the command line.

use std::str::FromStr;

use engine::clock::{Clock, SystemClock};
use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{Span, Timestamp, Zoned};
use service::config::{SIZE_UNITS, parse_bytes, parse_seconds};

/// Size limit: bytes with a unit such as `500MB`, `512MiB` or `10G`, or `none`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SizeLimit(pub(crate) Option<u64>);

impl FromStr for SizeLimit {
    type Err = &'static str;

    fn from_str(typed: &str) -> Result<Self, Self::Err> {
        if typed.eq_ignore_ascii_case("none") {
            return Ok(Self(None));
        }
        let bytes =
            parse_bytes(typed).ok_or("not a size such as 500MB, 512MiB or 10G, nor \"none\"")?;
        Ok(Self(Some(bytes)))
    }
}

/// Parses a size, such as `500MB`.
pub(crate) fn size(typed: &str) -> Result<u64, &'static str> {
    parse_bytes(typed).ok_or("not a size such as 500MB, 512MiB or 10G")
}

/// Formats a number of bytes in decimal units, such as `24.0 MB`.
pub(crate) fn bytes_text(bytes: u64) -> String {
    let mut unit = "bytes";
    let (mut whole, mut tenth) = (bytes, 0);
    for larger in SIZE_UNITS {
        if whole < 1_000 {
            break;
        }
        (whole, tenth, unit) = (whole / 1_000, whole % 1_000 / 100, larger);
    }
    if unit == "bytes" { format!("{bytes} bytes") } else { format!("{whole}.{tenth} {unit}") }
}

/// Parses an expiry as RFC 3339: a duration from now, a date, a time, or `never`, which is empty.
pub(crate) fn expiry(typed: &str) -> Result<String, String> {
    if typed.eq_ignore_ascii_case("never") {
        return Ok(String::new());
    }
    time(typed, Zoned::checked_add)
}

/// Parses a past time as RFC 3339: a duration before now, a date, or a time.
pub(crate) fn since(typed: &str) -> Result<String, String> {
    time(typed, Zoned::checked_sub)
}

/// Formats an age in milliseconds in the largest unit of which it has two, such as `90 s` or `26 h`.
#[cfg(feature = "remote")]
pub(crate) fn age_text(age_ms: u64) -> String {
    let seconds = age_ms / 1_000;
    let units = [(86_400, "days"), (3_600, "h"), (60, "min")];
    let unit = units.into_iter().find(|(unit, _)| seconds >= 2 * unit);
    unit.map_or(format!("{seconds} s"), |(unit, name)| format!("{} {name}", seconds / unit))
}

/// Formats a duration in the largest unit that is exact, as [`seconds`] parses it.
pub(crate) fn seconds_text(seconds: u64) -> String {
    let units = [(86_400, "d"), (3_600, "h"), (60, "m")];
    let exact = units.into_iter().find(|(unit, _)| seconds.is_multiple_of(*unit));
    exact.map_or(format!("{seconds}s"), |(unit, letter)| format!("{}{letter}", seconds / unit))
}

/// Parses a duration in seconds, such as `90s`, `15m`, `12h` or `30d`.
pub(crate) fn seconds(typed: &str) -> Result<u64, &'static str> {
    let seconds = parse_seconds(typed).filter(|seconds| *seconds > 0);
    seconds.ok_or("not a duration such as 90s, 15m, 12h or 30d")
}

fn time(
    typed: &str,
    shift: impl FnOnce(&Zoned, Span) -> Result<Zoned, jiff::Error>,
) -> Result<String, String> {
    if typed.parse::<Timestamp>().is_ok() {
        return Ok(typed.to_owned());
    }
    let failure = || "not a duration such as 30d, a date, or a time as 2030-01-31T12:00:00Z";
    let zoned = match typed.parse::<Date>() {
        Ok(date) => date.to_zoned(TimeZone::UTC),
        Err(_) => {
            let now_ms = i64::try_from(SystemClock::new().unix_ms()).unwrap_or(i64::MAX);
            let now = Timestamp::from_millisecond(now_ms).map_err(|error| error.to_string())?;
            let span: Span = typed.parse().map_err(|_| failure())?;
            if !span.is_positive() {
                return Err(failure().to_owned());
            }
            shift(&now.to_zoned(TimeZone::UTC), span)
        }
    };
    Ok(zoned.map_err(|_| failure())?.timestamp().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_units() {
        assert_eq!("1.5GiB".parse(), Ok(SizeLimit(Some(3 << 29))));
        assert_eq!("None".parse(), Ok(SizeLimit(None)));
        assert!("ten".parse::<SizeLimit>().is_err());
        for (bytes, text) in [
            (0, "0 bytes"),
            (999, "999 bytes"),
            (1_000, "1.0 kB"),
            (24_000_000, "24.0 MB"),
            (u64::MAX, "18.4 EB"),
        ] {
            assert_eq!(bytes_text(bytes), text);
        }
    }

    #[test]
    #[cfg(feature = "remote")]
    fn ages_have_one_unit() {
        for (seconds, text) in [(0, "0 s"), (119, "119 s"), (120, "2 min"), (172_800, "2 days")] {
            assert_eq!(age_text(seconds * 1_000 + 999), text);
        }
    }

    #[test]
    fn expiry_is_a_duration_a_date_or_a_time() {
        let time = "2030-01-31T12:00:00Z";
        assert_eq!(expiry(time).unwrap(), time);
        assert_eq!(expiry("2030-01-31").unwrap(), "2030-01-31T00:00:00Z");
        assert_eq!(expiry("Never").unwrap(), "");
        let now = Timestamp::from_millisecond(SystemClock::new().unix_ms() as i64).unwrap();
        let seconds =
            |text: String| text.parse::<Timestamp>().unwrap().as_second() - now.as_second();
        assert!((0..5).contains(&(seconds(expiry("30d").unwrap()) - 30 * 86_400)));
        assert!((0..5).contains(&(seconds(expiry("12h").unwrap()) - 43_200)));
        assert!((0..5).contains(&(seconds(since("90m").unwrap()) + 5_400)));
        for typed in ["", "30", "soon", "-1d", "0s", "2030-13-01"] {
            assert!(expiry(typed).is_err(), "{typed}");
        }
    }
}
