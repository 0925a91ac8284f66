//! The `Range` header: two parsers agree, and the resulting ranges are in order.
//!
//! The input is the length of an object and a header. Three properties. Any header gives ranges that lie inside the
//! object, in ascending order, disjoint and few. They are the bytes that evaluation byte by byte selects. The resulting
//! ranges, written as a header, parse to the same ranges.

use std::ops::Range;

use engine::limits::OBJECT_BYTES_MAX;
use protocol::limits::{RANGE_SPECS_MAX, RANGES_MAX};
use protocol::range::{ByteRange, MultipartRanges, content_range, parse};

use crate::choice_sequence::ChoiceSequence;

/// Checks the properties.
pub fn run(input: &[u8]) {
    let mut choices = ChoiceSequence::new(input);
    let total = match choices.byte() {
        small @ 0..=127 => u64::from(small),
        _ => choices.number() % (OBJECT_BYTES_MAX + 1),
    };
    if let Ok(value) = std::str::from_utf8(choices.clone().remaining()) {
        check(value, total);
    }
    check(&well_formed(&mut choices), total);
}

/// Writes a well-formed header from the input's numbers.
fn well_formed(choices: &mut ChoiceSequence<'_>) -> String {
    let specs: Vec<String> = std::iter::from_fn(|| {
        let (first, last) = (choices.byte(), choices.byte());
        let spec = match choices.byte() % 4 {
            0 => format!("{first}-"),
            1 => format!("-{last}"),
            _ => format!("{first}-{last}"),
        };
        (!choices.is_exhausted()).then_some(spec)
    })
    .take(RANGE_SPECS_MAX + 1)
    .collect();
    format!("bytes={}", specs.join(", "))
}

fn check(value: &str, total: u64) {
    let outcome = parse(value, total);
    let ranges = match &outcome {
        ByteRange::Whole => return,
        ByteRange::Unsatisfiable => &[][..],
        ByteRange::Single(range) => std::slice::from_ref(range),
        ByteRange::Multiple(ranges) => {
            assert!((2..=RANGES_MAX).contains(&ranges.len()), "{} ranges", ranges.len());
            ranges
        }
    };
    for range in ranges {
        assert!(range.start < range.end && range.end <= total, "{range:?} of {total}");
        let written = content_range(range, total);
        assert_eq!(written, format!("bytes {}-{}/{total}", range.start, range.end - 1));
    }
    assert!(ranges.windows(2).all(|two| two[0].end < two[1].start), "{ranges:?}");
    byte_by_byte(value, total, ranges);
    if !ranges.is_empty() {
        assert_eq!(parse(&written(ranges), total), outcome, "{value} asks for something else");
        let pieces: u64 = ranges.iter().map(|range| range.end - range.start).sum();
        assert!(pieces <= total);
        let layout = MultipartRanges::new(ranges, total, "text/plain", "boundary");
        let heads: usize = layout.parts.iter().map(|(head, _)| head.len()).sum();
        assert_eq!(layout.content_length - pieces, (heads + layout.end.len()) as u64);
    }
}

fn written(ranges: &[Range<u64>]) -> String {
    let specs: Vec<String> =
        ranges.iter().map(|range| format!("{}-{}", range.start, range.end - 1)).collect();
    format!("bytes={}", specs.join(","))
}

/// Evaluates each range specification for the first byte, the last, and those around the parsed ranges.
fn byte_by_byte(value: &str, total: u64, ranges: &[Range<u64>]) {
    let (_, specs) = value.split_once('=').expect("what has ranges has a unit");
    let specs: Vec<&str> = specs.split(',').map(|it| it.trim_matches([' ', '\t'])).collect();
    let number = |text: &str| text.parse::<u128>().unwrap_or(u128::MAX);
    let selects = |spec: &&str, byte: u64| match spec.split_once('-') {
        None => false,
        Some(("", last)) => u128::from(total - byte) <= number(last),
        Some((first, "")) => u128::from(byte) >= number(first),
        Some((first, last)) => (number(first)..=number(last)).contains(&u128::from(byte)),
    };
    let edges = ranges
        .iter()
        .flat_map(|range| [range.start.saturating_sub(1), range.start, range.end - 1, range.end]);
    let ends = [0, total / 2, total.saturating_sub(1)];
    for byte in edges.chain(ends).chain(0..64).filter(|byte| *byte < total) {
        let asked = specs.iter().any(|spec| selects(spec, byte));
        let given = ranges.iter().any(|range| range.contains(&byte));
        assert_eq!(asked, given, "byte {byte} of {total} under {value}");
    }
}
