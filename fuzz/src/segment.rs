//! Whole pieces of segments: header pages, groups, footers.
//!
//! Three properties. Any bytes are read to an end, and every structure found in them encodes to the same bytes. A group
//! that was built from the input reads back as it was built. A group in which one byte was changed is refused, or
//! its bodies are: no changed byte passes for what was written.

use bytes::Bytes;
use engine::format::{
    BigTrailer, Checksum, FooterEntries, FooterTrailer, GroupBuilder, GroupHeader, GroupView,
    SegmentContext, SegmentHeader, SegmentId, StoreFile, What, find_group_header, salvage,
};
use engine::name::FactName;

const OFFSET: u64 = 4_096;
/// A group of more records would show nothing new and take longer.
const RECORDS_MAX: usize = 64;

/// The properties.
pub fn run(input: &[u8]) {
    let Some(segment) = SegmentId::new(1) else { return };
    let context = SegmentContext { salt: 0x5EED, segment };
    any_bytes(input, context);
    built_group(input, context);
}

fn any_bytes(bytes: &[u8], context: SegmentContext) {
    let place = context.at(OFFSET);
    if let Ok(header) = SegmentHeader::decode_page(bytes) {
        assert_eq!(SegmentHeader::decode_page(&header.encode_page()), Ok(header));
    }
    if let Ok(store) = StoreFile::decode(bytes) {
        assert_eq!(store.encode(), bytes);
    }
    if let Ok(trailer) = FooterTrailer::decode(bytes, place) {
        assert_eq!(trailer.encode(context), bytes);
    }
    if let Ok(trailer) = BigTrailer::decode(bytes, place) {
        assert_eq!(trailer.encode(place), bytes);
    }
    assert!(FooterEntries::new(bytes, context).count() <= bytes.len());
    if let Some((offset, header)) = find_group_header(bytes, context, OFFSET) {
        let start = usize::try_from(offset - OFFSET).unwrap_or(usize::MAX);
        let found = bytes.get(start..).unwrap_or_default();
        assert!(found.starts_with(&header.encode(context.at(offset))));
    }
    for scanned in salvage(bytes, place) {
        let mut again = Vec::new();
        scanned.record.encode(scanned.place, &mut again);
        assert_eq!(again, scanned.head);
    }
    if let Ok(view) = GroupView::decode(bytes, place) {
        let _ = view.verify_bodies();
    }
}

/// The first two bytes choose what to change, the rest are facts: each as long as its first byte says.
fn built_group(input: &[u8], context: SegmentContext) {
    let Some(([low, high], script)) = input.split_first_chunk::<2>() else { return };
    let place = context.at(OFFSET);
    let mut builder = GroupBuilder::new(context, OFFSET, 9, 100, 99, Checksum(7));
    let values = values(script);
    for frame in values.chunks(3) {
        let records: Vec<_> = frame.iter().filter_map(|value| fact(value)).collect();
        builder.frame(&records);
    }
    let built = builder.finish();
    let mut bytes = built.pieces.concat();
    assert_eq!(bytes.len() as u64, built.bytes);

    let view = GroupView::decode(&bytes, place).expect("a built group is a group");
    assert_eq!(view.verify_bodies(), Ok(()));
    assert_eq!(view.header_checksum(), built.header_checksum);
    assert!(view.records().map(|scanned| scanned.body).eq(values.iter().copied()));
    assert_eq!(salvage(&bytes, place), view.into_records());
    let header = GroupHeader::decode(&bytes, place).map(|(header, _)| header).ok();
    assert_eq!(find_group_header(&bytes, context, OFFSET), header.map(|header| (OFFSET, header)));

    let at = usize::from(*low) * bytes.len() / 256;
    if let Some(byte) = bytes.get_mut(at) {
        *byte ^= (*high).max(1);
    }
    let passes = GroupView::decode(&bytes, place).is_ok_and(|view| view.verify_bodies().is_ok());
    assert!(!passes, "byte {at} was changed and nobody noticed");
}

fn values(mut script: &[u8]) -> Vec<&[u8]> {
    let mut values = Vec::new();
    while let Some((length, rest)) = script.split_first() {
        let (value, rest) = rest.split_at(usize::from(*length).min(rest.len()));
        values.push(value);
        script = if values.len() < RECORDS_MAX { rest } else { &[] };
    }
    values
}

fn fact(value: &[u8]) -> Option<(What, Vec<Bytes>)> {
    let name = FactName::parse("fuzzed").ok()?;
    let bytes = u32::try_from(value.len()).ok()?;
    let what = What::Fact { name, bytes, check: Checksum::of(value) };
    Some((what, vec![Bytes::copy_from_slice(value)]))
}
