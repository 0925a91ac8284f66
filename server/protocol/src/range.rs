//! `Range` header: parsing, and the byte ranges that it selects.
//!
//! Pure. Guarantees: every resulting range is within the object and holds at least one byte; several ranges are sorted,
//! disjoint, and at most [`RANGES_MAX`]; an invalid header selects the whole object, as in RFC 9110 section 14.2.
//! Non-goals: If-Range, status codes, bodies.

use std::fmt::Write;
use std::ops::Range;

use bytes::Bytes;
use http::HeaderMap;
use http::header::RANGE;

use crate::limits::{RANGE_SPECS_MAX, RANGES_MAX};

/// Selected bytes of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ByteRange {
    /// All of it: no range, or an invalid one.
    Whole,
    /// One range, end exclusive.
    Single(Range<u64>),
    /// Several ranges in ascending order, none adjacent to the next.
    Multiple(Vec<Range<u64>>),
    /// None of the requested ranges exists.
    Unsatisfiable,
}

/// Parses the `Range` header of a request for an object of `total` bytes.
pub fn parse_range(headers: &HeaderMap, total: u64) -> ByteRange {
    let mut values = headers.get_all(RANGE).iter();
    match (values.next(), values.next()) {
        (Some(value), None) => value.to_str().map_or(ByteRange::Whole, |text| parse(text, total)),
        // No header, or two contradictory ones.
        _ => ByteRange::Whole,
    }
}

/// Parses the value of a `Range` header for an object of `total` bytes.
pub fn parse(value: &str, total: u64) -> ByteRange {
    let Some((unit, list)) = value.split_once('=') else { return ByteRange::Whole };
    if !unit.trim().eq_ignore_ascii_case("bytes") {
        return ByteRange::Whole;
    }
    let specs = list.split(',').map(|spec| spec.trim_matches([' ', '\t']));
    let mut wanted = Vec::new();
    let mut spec_count = 0;
    for spec in specs.filter(|spec| !spec.is_empty()) {
        spec_count += 1;
        match parse_spec(spec, total) {
            _ if spec_count > RANGE_SPECS_MAX => return ByteRange::Whole,
            RangeSpec::Malformed => return ByteRange::Whole,
            RangeSpec::Unsatisfiable => {}
            RangeSpec::Satisfiable(range) => wanted.push(range),
        }
    }
    match (spec_count, wanted.as_slice()) {
        (0, _) => ByteRange::Whole,
        (_, []) => ByteRange::Unsatisfiable,
        (_, [one]) => ByteRange::Single(one.clone()),
        _ => several(wanted, total),
    }
}

enum RangeSpec {
    Malformed,
    Unsatisfiable,
    Satisfiable(Range<u64>),
}

fn parse_spec(spec: &str, total: u64) -> RangeSpec {
    let Some((first, last)) = spec.split_once('-') else { return RangeSpec::Malformed };
    match (number(first), number(last)) {
        _ if first.is_empty() && last.is_empty() => RangeSpec::Malformed,
        // `-n`: the last n bytes.
        (None, Some(suffix)) if first.is_empty() => {
            if suffix == 0 || total == 0 {
                return RangeSpec::Unsatisfiable;
            }
            RangeSpec::Satisfiable(total.saturating_sub(suffix)..total)
        }
        // `a-`: from a on.
        (Some(start), None) if last.is_empty() => {
            if start >= total {
                RangeSpec::Unsatisfiable
            } else {
                RangeSpec::Satisfiable(start..total)
            }
        }
        (Some(start), Some(last)) if start > last => RangeSpec::Malformed,
        (Some(start), Some(_)) if start >= total => RangeSpec::Unsatisfiable,
        (Some(start), Some(last)) => {
            RangeSpec::Satisfiable(start..last.saturating_add(1).min(total))
        }
        _ => RangeSpec::Malformed,
    }
}

/// Parses digits only; a number too large for a u64 is beyond the end of any object.
fn number(text: &str) -> Option<u64> {
    if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    Some(text.parse().unwrap_or(u64::MAX))
}

fn several(mut wanted: Vec<Range<u64>>, total: u64) -> ByteRange {
    let asked: u64 = wanted.iter().fold(0, |sum, range| sum.saturating_add(bytes_of(range)));
    if asked > total {
        return ByteRange::Whole;
    }
    wanted.sort_by_key(|range| range.start);
    let mut merged: Vec<Range<u64>> = Vec::with_capacity(wanted.len());
    for range in wanted {
        match merged.last_mut() {
            Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
            _ => merged.push(range),
        }
    }
    match merged.as_slice() {
        [one] => ByteRange::Single(one.clone()),
        _ if merged.len() > RANGES_MAX => ByteRange::Whole,
        _ => ByteRange::Multiple(merged),
    }
}

/// Returns the value of `Content-Range` for a range of an object of `total` bytes.
pub fn content_range(range: &Range<u64>, total: u64) -> String {
    format!("bytes {}-{}/{total}", range.start, range.end.saturating_sub(1))
}

/// `multipart/byteranges` body: the text before each range and after the last.
#[derive(Clone, Debug)]
pub struct MultipartRanges {
    /// `Content-Type` of the response.
    pub content_type: String,
    /// `Content-Length` of the response.
    pub content_length: u64,
    /// Ranges, each with the text before it.
    pub parts: Vec<(Bytes, Range<u64>)>,
    /// Text after the last range.
    pub end: Bytes,
}

impl MultipartRanges {
    /// Lays out the ranges of an object of `total` bytes. The boundary must not occur in the object: 32 random or
    /// hashed hex digits satisfy this.
    pub fn new(ranges: &[Range<u64>], total: u64, content_type: &str, boundary: &str) -> Self {
        let mut parts = Vec::with_capacity(ranges.len());
        for range in ranges {
            let mut head = String::with_capacity(128);
            let lead = if parts.is_empty() { "" } else { "\r\n" };
            let place = content_range(range, total);
            let _ = write!(head, "{lead}--{boundary}\r\nContent-Type: {content_type}\r\n");
            let _ = write!(head, "Content-Range: {place}\r\n\r\n");
            parts.push((Bytes::from(head), range.clone()));
        }
        let end = Bytes::from(format!("\r\n--{boundary}--\r\n"));
        let pieces: u64 =
            parts.iter().map(|(head, range)| head.len() as u64 + bytes_of(range)).sum();
        Self {
            content_type: format!("multipart/byteranges; boundary={boundary}"),
            content_length: pieces + end.len() as u64,
            parts,
            end,
        }
    }
}

fn bytes_of(range: &Range<u64>) -> u64 {
    range.end.saturating_sub(range.start)
}

#[cfg(test)]
mod tests {
    use super::ByteRange::{Multiple, Single, Unsatisfiable, Whole};
    use super::*;
    use http::HeaderValue;

    #[test]
    fn single_range_is_clamped_to_the_object() {
        for (value, total, want) in [
            ("bytes=0-0", 10, Single(0..1)),
            ("bytes=0-1", 10, Single(0..2)),
            ("bytes=0-", 10, Single(0..10)),
            ("bytes=9-", 10, Single(9..10)),
            ("bytes=2-5", 10, Single(2..6)),
            ("bytes=2-500", 10, Single(2..10)),
            ("bytes=-3", 10, Single(7..10)),
            ("bytes=-30", 10, Single(0..10)),
            ("BYTES=0-1", 10, Single(0..2)),
            ("bytes= 0-1 ", 10, Single(0..2)),
            ("bytes=0-1,", 10, Single(0..2)),
            ("bytes=5-99999999999999999999999", 10, Single(5..10)),
            ("bytes=0-18446744073709551615", 10, Single(0..10)),
        ] {
            assert_eq!(parse(value, total), want, "{value}");
        }
    }

    #[test]
    fn range_beyond_end_is_unsatisfiable() {
        for (value, total) in [
            ("bytes=10-", 10),
            ("bytes=10-20", 10),
            ("bytes=-0", 10),
            ("bytes=0-", 0),
            ("bytes=-5", 0),
            ("bytes=0-0", 0),
            ("bytes=10-,20-30", 10),
            ("bytes=99999999999999999999999-", 10),
        ] {
            assert_eq!(parse(value, total), Unsatisfiable, "{value} of {total}");
        }
    }

    #[test]
    fn malformed_range_is_ignored() {
        for value in [
            "",
            "bytes",
            "bytes=",
            "bytes=,",
            "bytes=-",
            "bytes=a-b",
            "bytes=5-2",
            "bytes=1",
            "items=0-1",
            "bytes=+1-2",
            "bytes=1-2-3",
            "bytes=0x1-2",
            "bytes=1 - 2",
            "bytes=--1",
            "bytes=0-1,x",
            "bytes=0-1;2-3",
            "bytes=١-٢",
        ] {
            assert_eq!(parse(value, 10), Whole, "{value:?}");
        }
    }

    #[test]
    fn several_ranges_are_sorted_and_merged() {
        assert_eq!(parse("bytes=0-1,4-5", 10), Multiple(vec![0..2, 4..6]));
        assert_eq!(parse("bytes=4-5,0-1", 10), Multiple(vec![0..2, 4..6]));
        assert_eq!(parse("bytes=0-1, 1-3", 10), Single(0..4));
        assert_eq!(parse("bytes=0-1,2-3", 10), Single(0..4));
        assert_eq!(parse("bytes=0-1,20-30", 10), Single(0..2));
        assert_eq!(parse("bytes=0-1,-1", 10), Multiple(vec![0..2, 9..10]));
        assert_eq!(parse("bytes=0-,0-", 10), Whole, "more than there is");
    }

    #[test]
    fn too_many_ranges_return_the_whole_object() {
        let list = |count: u64| {
            let specs: Vec<_> = (0..count).map(|at| format!("{}-{}", at * 10, at * 10)).collect();
            format!("bytes={}", specs.join(","))
        };
        assert!(matches!(parse(&list(8), 1_000), Multiple(ranges) if ranges.len() == 8));
        assert_eq!(parse(&list(9), 1_000), Whole);
        assert_eq!(parse(&list(5_000), 1_000_000), Whole);
    }

    #[test]
    fn duplicate_range_headers_return_the_whole_object() {
        let mut headers = HeaderMap::new();
        assert_eq!(parse_range(&headers, 10), Whole);
        headers.append(RANGE, HeaderValue::from_static("bytes=0-1"));
        assert_eq!(parse_range(&headers, 10), Single(0..2));
        headers.append(RANGE, HeaderValue::from_static("bytes=2-3"));
        assert_eq!(parse_range(&headers, 10), Whole);
    }

    #[test]
    fn multipart_byteranges_length_is_exact() {
        let layout = MultipartRanges::new(&[0..2, 4..6], 10, "text/plain", "xyz");
        let mut sent = Vec::new();
        for (head, range) in &layout.parts {
            sent.extend_from_slice(head);
            sent.extend_from_slice(&b"0123456789"[range.start as usize..range.end as usize]);
        }
        sent.extend_from_slice(&layout.end);
        assert_eq!(sent.len() as u64, layout.content_length);
        let text = String::from_utf8(sent).unwrap();
        assert_eq!(
            text,
            "--xyz\r\nContent-Type: text/plain\r\nContent-Range: bytes 0-1/10\r\n\r\n01\r\n\
             --xyz\r\nContent-Type: text/plain\r\nContent-Range: bytes 4-5/10\r\n\r\n45\r\n--xyz--\r\n"
        );
    }
}
