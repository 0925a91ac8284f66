//! Groups of a segment, walked as recovery walks them, over any bytes.
//!
//! Two properties. Any bytes are walked to the end, and every structure found in them encodes to the same bytes. In a
//! sequence of groups with an overwritten range, all groups before it are found, and those after it whose header is
//! intact, each with its content and offset as written, and nothing else.

use engine::format::{
    Checksum, GROUP_HEADER_BYTES, GroupBuilder, GroupView, SegmentContext, find_group_header,
    salvage,
};

use crate::choice_sequence::ChoiceSequence;
use crate::group::{Unplaced, context, frames};

/// Offset of the first group in bytes.
const OFFSET: u64 = 4_096;
/// Maximum number of groups: more would take longer without covering more.
const GROUPS_MAX: usize = 6;

/// Checks the properties.
pub fn run(input: &[u8]) {
    let Some(context) = context() else { return };
    any_bytes(input, context);
    a_row(input, context);
}

fn any_bytes(bytes: &[u8], context: SegmentContext) {
    let place = context.at(OFFSET);
    if let Some((offset, header)) = find_group_header(bytes, context, OFFSET) {
        let found = &bytes[(offset - OFFSET) as usize..];
        assert!(found.starts_with(&header.encode(context.at(offset))));
    }
    for scanned in salvage(bytes, place) {
        let mut again = Vec::new();
        scanned.record.encode(scanned.address, &mut again);
        assert_eq!(again, scanned.head);
    }
    walk(bytes, context);
}

/// Checks a sequence of groups. The first bytes of the input choose the overwritten range, the rest is the content.
fn a_row(input: &[u8], context: SegmentContext) {
    let mut choices = ChoiceSequence::new(input);
    let (at, length, fill) = (choices.pair(), choices.byte(), choices.byte());
    let mut bytes = Vec::new();
    let mut written: Vec<Found> = Vec::new();
    let (mut lsn, mut previous) = (1, Checksum(0));
    for number in 1..=GROUPS_MAX as u64 {
        let frames: Vec<Vec<Unplaced>> = frames(&mut ChoiceSequence::new(choices.short_bytes()));
        let offset = OFFSET + bytes.len() as u64;
        let mut builder = GroupBuilder::new(context, offset, number, lsn, lsn - 1, previous);
        for frame in &frames {
            builder.frame(frame);
        }
        let built = builder.finish();
        (lsn, previous) = (built.last_lsn + 1, built.header_checksum);
        bytes.extend(built.pieces.concat());
        written.push(Found { offset, number, records: built.records as usize });
        if choices.is_exhausted() {
            break;
        }
    }
    assert_eq!(walk(&bytes, context), written);

    let start = usize::from(at) % bytes.len();
    let end = bytes.len().min(start + usize::from(length));
    let before = bytes.clone();
    bytes[start..end].fill(fill);
    let found = walk(&bytes, context);
    assert!(found.iter().all(|group| written.contains(group)), "{found:?} of {written:?}");
    for (group, next) in written.iter().zip(written.iter().skip(1).map(Some).chain([None])) {
        let first = (group.offset - OFFSET) as usize;
        let last = next.map_or(bytes.len(), |next| (next.offset - OFFSET) as usize);
        // Body bytes may differ and the group still be found: only reading the body detects that.
        let is_whole = bytes[first..last] == before[first..last];
        assert!(!is_whole || found.contains(group), "{group:?} is whole and was not found");
    }
}

/// A group that was found or written.
#[derive(Debug, PartialEq, Eq)]
struct Found {
    offset: u64,
    number: u64,
    records: usize,
}

/// Walks from group to group, skipping bytes that are none.
fn walk(bytes: &[u8], context: SegmentContext) -> Vec<Found> {
    let mut found = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let offset = OFFSET + at as u64;
        if let Ok(view) = GroupView::decode(&bytes[at..], context.at(offset)) {
            let records = view.records().len();
            found.push(Found { offset, number: view.header().number, records });
            let _ = view.verify_bodies();
            at += view.header().group_bytes as usize;
            continue;
        }
        let behind = at + 1;
        match find_group_header(&bytes[behind..], context, offset + 1) {
            Some((next, header)) => {
                assert!(header.group_bytes as usize >= GROUP_HEADER_BYTES);
                at = (next - OFFSET) as usize;
            }
            None => break,
        }
    }
    found
}
