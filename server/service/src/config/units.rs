//! Sizes and durations with units.

/// Decimal units of sizes, from the smallest.
pub const SIZE_UNITS: &[&str] = &["kB", "MB", "GB", "TB", "PB", "EB"];

/// Parses a size in bytes: digits, possibly a fraction, and a unit in any case, decimal (`500MB`, `10G`) or binary
/// (`512MiB`, `1Gi`). Returns `None` for other text, and for a size beyond 64 bits.
pub fn parse_bytes(text: &str) -> Option<u64> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let unit = unit.trim().to_ascii_lowercase();
    let unit = unit.strip_suffix('b').unwrap_or(&unit);
    let (base, unit) = match unit.strip_suffix('i') {
        Some(unit) => (1_024_u64, unit),
        None => (1_000, unit),
    };
    let is_unit = |name: &str| name.to_ascii_lowercase().trim_end_matches('b') == unit;
    let exponent = match unit {
        "" if base == 1_000 => 0,
        _ => 1 + SIZE_UNITS.iter().position(|name| is_unit(name))?,
    };
    let factor = base.checked_pow(u32::try_from(exponent).ok()?)?;
    let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
    let fraction: f64 = format!("0.{fraction}").parse().ok()?;
    let part = (fraction * factor as f64) as u64;
    whole.parse::<u64>().ok()?.checked_mul(factor)?.checked_add(part)
}

/// Parses a duration in seconds: digits and a unit, such as `90s`, `15m`, `12h` or `30d`. Returns `None` for other
/// text, and for a duration beyond 64 bits.
pub fn parse_seconds(text: &str) -> Option<u64> {
    let (number, seconds) = match text.as_bytes().last()? {
        b's' => (text.strip_suffix('s')?, 1),
        b'm' => (text.strip_suffix('m')?, 60),
        b'h' => (text.strip_suffix('h')?, 3_600),
        b'd' => (text.strip_suffix('d')?, 86_400),
        _ => return None,
    };
    let number: u64 = number.trim_end().parse().ok()?;
    number.checked_mul(seconds)
}

/// Unit of a numeric setting, by the name of the setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unit {
    Bytes,
    Seconds,
    Days,
}

impl Unit {
    pub(super) fn of(setting: &str) -> Option<Self> {
        if setting.split('_').any(|word| word == "bytes") {
            Some(Self::Bytes)
        } else if setting.ends_with("_seconds") {
            Some(Self::Seconds)
        } else {
            setting.ends_with("_days").then_some(Self::Days)
        }
    }

    /// Parses a value with a unit.
    pub(super) fn parse(self, text: &str) -> Option<u64> {
        match self {
            Self::Bytes => parse_bytes(text),
            Self::Seconds => parse_seconds(text),
            Self::Days => parse_seconds(text).filter(|it| it % 86_400 == 0).map(|it| it / 86_400),
        }
    }

    /// Describes valid values.
    pub(super) fn expected(self) -> &'static str {
        match self {
            Self::Bytes => "a size such as 10GB, 512MiB, or a number of bytes",
            Self::Seconds => "a duration such as 90s, 15m, 12h, 30d, or a number of seconds",
            Self::Days => "a duration such as 30d, or a number of days",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_decimal_and_binary_units() {
        for (text, bytes) in [
            ("1000", 1_000),
            ("500MB", 500_000_000),
            ("512MiB", 512 << 20),
            ("10G", 10_000_000_000),
            ("1.5 GiB", 3 << 29),
            ("1k", 1_000),
        ] {
            assert_eq!(parse_bytes(text), Some(bytes), "{text}");
        }
        for text in ["", "GB", "-1", "ten", "1XB", "1.2.3", "1i", "16EiB"] {
            assert_eq!(parse_bytes(text), None, "{text}");
        }
    }

    #[test]
    fn durations_have_units() {
        for (text, seconds) in [("90s", 90), ("15m", 900), ("12h", 43_200), ("30d", 2_592_000)] {
            assert_eq!(parse_seconds(text), Some(seconds), "{text}");
        }
        for text in ["", "s", "30", "soon", "-1d", "1.5h", "99999999999999999d", "ä"] {
            assert_eq!(parse_seconds(text), None, "{text}");
        }
    }

    #[test]
    fn setting_names_end_in_their_units() {
        assert_eq!(Unit::of("body_bytes_max"), Some(Unit::Bytes));
        assert_eq!(Unit::of("scrub_bytes_per_second_max"), Some(Unit::Bytes));
        assert_eq!(Unit::of("drain_seconds"), Some(Unit::Seconds));
        assert_eq!(Unit::of("scrub_days"), Some(Unit::Days));
        assert_eq!(Unit::of("connections_max"), None);
        assert_eq!(Unit::Days.parse("30d"), Some(30));
        assert_eq!(Unit::Days.parse("12h"), None);
    }
}
