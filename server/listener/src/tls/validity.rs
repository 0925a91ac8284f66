//! Validity period of a certificate: a minimal DER parser (RFC 5280 section 4.1).
//!
//! Guarantees: invalid bytes yield no period, and are never read out of bounds. Non-goals: trust.
//!
//! Own code: `x509-parser` adds 148 kB to a stripped binary and `x509-cert` 74 kB for two fields; rustls and
//! `rustls-webpki` do not expose them.

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;

/// Validity period of a certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Validity {
    start: Timestamp,
    end: Timestamp,
}

const SEQUENCE: u8 = 0x30;
/// Tag of the version, which precedes all other fields unless it is version 1.
const VERSION: u8 = 0xa0;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;
/// Fields between the version and the validity: serial number, algorithm, issuer.
const BEFORE_TIMES: usize = 3;
/// Maximum bytes of a length.
const LENGTH_BYTES_MAX: usize = 4;

impl Validity {
    /// Parses the period of a certificate in DER.
    pub(super) fn from_der(certificate: &[u8]) -> Option<Self> {
        let (certificate, _) = value(certificate, SEQUENCE)?;
        let (mut fields, _) = value(certificate, SEQUENCE)?;
        if let Some((_, rest)) = value(fields, VERSION) {
            fields = rest;
        }
        for _ in 0..BEFORE_TIMES {
            (_, _, fields) = any_value(fields)?;
        }
        let (times, _) = value(fields, SEQUENCE)?;
        let (start, rest) = time(times)?;
        let (end, _) = time(rest)?;
        Some(Self { start, end })
    }

    pub(super) fn warning(&self, now_ms: u64) -> Option<String> {
        let now = Timestamp::from_millisecond(i64::try_from(now_ms).ok()?).ok()?;
        if now > self.end {
            return Some(format!("the certificate has expired at {}", self.end));
        }
        (now < self.start).then(|| format!("the certificate is not valid before {}", self.start))
    }

    /// Returns when two thirds of the period are over, in milliseconds since 1970.
    #[cfg(feature = "acme")]
    pub(super) fn renewal_ms(&self) -> u64 {
        let (start, end) = (self.start.as_millisecond(), self.end.as_millisecond());
        u64::try_from(end - (end - start) / 3).unwrap_or(0)
    }

    /// Returns the end in milliseconds since 1970; zero for earlier ones.
    pub(super) fn not_after_ms(&self) -> u64 {
        u64::try_from(self.end.as_millisecond()).unwrap_or(0)
    }

    pub(super) fn end(&self) -> String {
        self.end.to_string()
    }
}

/// Splits the bytes after a leading value with this tag.
fn value(bytes: &[u8], wanted: u8) -> Option<(&[u8], &[u8])> {
    let (tag, value, rest) = any_value(bytes)?;
    (tag == wanted).then_some((value, rest))
}

fn any_value(bytes: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (&tag, rest) = bytes.split_first()?;
    let (&first, mut rest) = rest.split_first()?;
    let mut length = usize::from(first);
    if first & 0x80 != 0 {
        let digits;
        (digits, rest) = rest.split_at_checked(usize::from(first & 0x7f))?;
        if digits.len() > LENGTH_BYTES_MAX {
            return None;
        }
        length = digits.iter().fold(0, |length, digit| length << 8 | usize::from(*digit));
    }
    let (value, rest) = rest.split_at_checked(length)?;
    Some((tag, value, rest))
}

/// Parses `YYMMDDHHMMSSZ` of the years 1950 to 2049, or `YYYYMMDDHHMMSSZ`.
fn time(bytes: &[u8]) -> Option<(Timestamp, &[u8])> {
    let (tag, value, rest) = any_value(bytes)?;
    let year_digits = match tag {
        UTC_TIME => 2,
        GENERALIZED_TIME => 4,
        _ => return None,
    };
    let text = std::str::from_utf8(value).ok()?.strip_suffix('Z')?;
    if !text.bytes().all(|digit| digit.is_ascii_digit()) || text.len() != year_digits + 10 {
        return None;
    }
    let mut year: i16 = text[..year_digits].parse().ok()?;
    if tag == UTC_TIME {
        year += if year < 50 { 2_000 } else { 1_900 };
    }
    let number = |at: usize| text[year_digits + at..][..2].parse::<i8>().ok();
    let (month, day) = (number(0)?, number(2)?);
    let (hour, minute, second) = (number(4)?, number(6)?, number(8)?);
    let civil = DateTime::new(year, month, day, hour, minute, second, 0).ok()?;
    Some((civil.to_zoned(TimeZone::UTC).ok()?.timestamp(), rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn der(tag: u8, value: &[u8]) -> Vec<u8> {
        let length = u8::try_from(value.len()).unwrap();
        let head = if length < 0x80 { vec![tag, length] } else { vec![tag, 0x81, length] };
        [head.as_slice(), value].concat()
    }

    fn certificate(version: bool, times: &[Vec<u8>]) -> Vec<u8> {
        let mut fields = if version { der(VERSION, &der(2, &[2])) } else { Vec::new() };
        fields.extend(der(2, &[7; 20]));
        fields.extend(der(SEQUENCE, &[6, 1, 1]));
        fields.extend(der(SEQUENCE, &[0x31; 60]));
        fields.extend(der(SEQUENCE, &times.concat()));
        fields.extend(der(SEQUENCE, &[]));
        der(SEQUENCE, &der(SEQUENCE, &fields))
    }

    #[test]
    fn both_ways_of_writing_times_are_read() {
        let early = der(UTC_TIME, b"991231235959Z");
        let late = der(GENERALIZED_TIME, b"20500101000000Z");
        for version in [true, false] {
            let found = Validity::from_der(&certificate(version, &[early.clone(), late.clone()]));
            let found = found.unwrap();
            assert_eq!(found.start.to_string(), "1999-12-31T23:59:59Z");
            assert_eq!(found.end(), "2050-01-01T00:00:00Z");
            assert_eq!(found.not_after_ms(), 2_524_608_000_000);
        }
    }

    #[test]
    fn certificate_outside_its_validity_warns() {
        let times = [der(UTC_TIME, b"300101000000Z"), der(UTC_TIME, b"310101000000Z")];
        let validity = Validity::from_der(&certificate(true, &times)).unwrap();
        let at = |text: &str| text.parse::<Timestamp>().unwrap().as_millisecond() as u64;
        assert!(validity.warning(at("2029-12-31T23:59:59Z")).unwrap().contains("2030-01-01"));
        assert_eq!(validity.warning(at("2030-06-01T00:00:00Z")), None);
        assert!(validity.warning(at("2031-01-01T00:00:01Z")).unwrap().contains("expired"));
    }

    #[cfg(feature = "acme")]
    #[test]
    fn certificate_renews_at_two_thirds_of_lifetime() {
        let times = [der(UTC_TIME, b"300101000000Z"), der(UTC_TIME, b"300401000000Z")];
        let validity = Validity::from_der(&certificate(true, &times)).unwrap();
        let expected: Timestamp = "2030-03-02T00:00:00Z".parse().unwrap();
        assert_eq!(validity.renewal_ms(), expected.as_millisecond() as u64);
    }

    #[test]
    fn truncated_certificates_have_no_validity() {
        let times = [der(UTC_TIME, b"300101000000Z"), der(UTC_TIME, b"310101000000Z")];
        let whole = certificate(true, &times);
        for end in 0..whole.len() {
            assert_eq!(Validity::from_der(&whole[..end]), None, "{end}");
        }
        for bad in ["3001010000Z", "300101000000", "30010100000aZ", "301301000000Z", "é0101000000Z"]
        {
            let times = [der(UTC_TIME, bad.as_bytes()), times[1].clone()];
            assert_eq!(Validity::from_der(&certificate(true, &times)), None, "{bad}");
        }
        for bad in [&[0x30, 0x85, 1, 1, 1, 1, 1][..], &[0x30, 0x84, 255, 255, 255, 255, 0]] {
            assert_eq!(Validity::from_der(bad), None);
        }
    }
}
