//! Unit tests of the segment footer.

use super::*;
use crate::format::footer_reader::FooterReader;
use crate::format::record::RecordOp;
use crate::format::testing::{assert_every_byte_is_checked, context, test_address};
use crate::name::FactName;

fn head(lsn: u64, offset: u64) -> Vec<u8> {
    let name = FactName::parse(&format!("fact/{lsn}")).unwrap();
    let mut head = Vec::new();
    Record { lsn, op: RecordOp::DeleteFact { name } }.encode(test_address(offset), &mut head);
    head
}

fn finish(writer: FooterWriter) -> Vec<u8> {
    writer.finish(12, 5, Checksum(6))
}

const RECORDS: [(u64, u64); 3] = [(10, 4_200), (11, 4_300), (12, 4_400)];

fn writer() -> FooterWriter {
    let mut writer = FooterWriter::new(context(), 9_000);
    for (lsn, offset) in RECORDS {
        writer.push(offset, &head(lsn, offset));
    }
    writer
}

fn entries() -> Vec<u8> {
    RECORDS.iter().flat_map(|(lsn, offset)| entry(*offset, &head(*lsn, *offset))).collect()
}

fn parts(footer: &[u8]) -> (&[u8], FooterTrailer) {
    let (stored, trailer) = footer.split_at(footer.len() - FOOTER_TRAILER_BYTES);
    let at = test_address(9_000 + stored.len() as u64);
    (stored, FooterTrailer::decode(trailer, at).unwrap())
}

/// Decompresses the entries of the footer with this trailer, whose bytes begin at 9,000.
fn unpack(stored: &[u8], trailer: &FooterTrailer) -> Result<Vec<u8>, Malformed> {
    let mut reader = FooterReader::new(trailer, context());
    let mut entries = Vec::new();
    while let Some((offset, bytes)) = reader.next_range() {
        assert!(bytes <= FOOTER_BLOCK_BYTES + FOOTER_BLOCK_HEADER_BYTES, "memory is bounded");
        let at = offset as usize - 9_000;
        let bytes = stored.get(at..at + bytes).ok_or(Malformed::Short)?;
        entries.extend(reader.feed(bytes)?);
    }
    Ok(entries)
}

fn read(stored: &[u8], trailer: &FooterTrailer) -> Result<Vec<FooterEntry>, Malformed> {
    let entries = unpack(stored, trailer)?;
    FooterEntries::new(&entries, context()).collect()
}

#[test]
fn footer_round_trips() {
    let footer = finish(writer());
    let (stored, trailer) = parts(&footer);
    assert_eq!((trailer.footer_offset, trailer.last_lsn), (9_000, 12));
    assert_eq!((trailer.next_group, trailer.previous_group), (5, Checksum(6)));
    assert_eq!(trailer.stored_bytes, stored.len() as u64);
    assert_eq!(trailer.entries, Checksum::of(&entries()));
    let read = read(stored, &trailer).unwrap();
    assert_eq!(read.len() as u64, trailer.entry_count);
    assert_eq!(read.iter().map(|e| e.offset).collect::<Vec<_>>(), [4_200, 4_300, 4_400]);
    assert_eq!(read.iter().map(|e| e.record.lsn).collect::<Vec<_>>(), [10, 11, 12]);
}

#[test]
fn compressed_footer_is_smaller_and_spans_blocks() {
    let mut writer = FooterWriter::new(context(), 9_000);
    let mut in_pieces = writer.clone();
    let (mut footer, mut plain) = (Vec::new(), Vec::new());
    for lsn in 1..=4_000 {
        let offset = 4_096 + lsn * 50;
        let head = head(lsn, offset);
        plain.extend(entry(offset, &head));
        writer.push(offset, &head);
        in_pieces.push(offset, &head);
        if in_pieces.buffered_bytes() > 0 {
            footer.extend(in_pieces.take());
        }
    }
    footer.extend(finish(in_pieces));
    assert!(footer == finish(writer), "pieces change nothing");
    let (stored, trailer) = parts(&footer);
    assert!(stored.len() < plain.len(), "{} of {}", stored.len(), plain.len());
    assert!(
        plain.len() > 2 * FOOTER_BLOCK_BYTES
            && footer.len() as u64 <= footer_bytes_max(plain.len() as u64)
    );
    assert!(unpack(stored, &trailer).unwrap() == plain);
    // The two blocks are swapped: each is intact, but bound to the other address.
    let first =
        FOOTER_BLOCK_HEADER_BYTES + FooterBlock::decode(stored).unwrap().stored_bytes as usize;
    let swapped = [&stored[first..], &stored[..first]].concat();
    assert!(unpack(&swapped, &trailer).is_err());
}

#[test]
fn footer_detects_any_byte_change() {
    let footer = finish(writer());
    let (stored, trailer) = parts(&footer);
    assert_every_byte_is_checked(stored, |bytes| read(bytes, &trailer).is_ok());
    let at = test_address(trailer.offset());
    let bytes = trailer.encode(context());
    assert_every_byte_is_checked(&bytes, |bytes| FooterTrailer::decode(bytes, at).is_ok());
}

#[test]
fn invalid_footer_trailers_are_rejected_with_their_reason() {
    let decode =
        |t: FooterTrailer| FooterTrailer::decode(&t.encode(context()), test_address(t.offset()));
    let good = parts(&finish(writer())).1;
    assert_eq!(decode(good), Ok(good));
    let early = FooterTrailer { footer_offset: 4_095, ..good };
    assert_eq!(decode(early), Err(Malformed::Misplaced));
    for entry_count in [0, u64::MAX] {
        let wrong = FooterTrailer { entry_count, ..good };
        assert_eq!(decode(wrong), Err(Malformed::Count));
    }
    let none = FooterTrailer { entry_count: 0, stored_bytes: 0, ..good };
    assert_eq!(decode(none), Ok(none), "a segment without records has a footer too");
    let overflow = FooterTrailer { stored_bytes: u64::MAX, ..good };
    assert_eq!(decode(overflow), Err(Malformed::Misplaced));
    let long = FooterTrailer { stored_bytes: 40_000, ..good };
    assert_eq!(decode(long), Err(Malformed::Count), "three entries take less");

    let at = test_address(good.offset());
    for encoding in [0, 2] {
        let mut bytes = good.encode(context());
        bytes.truncate(FOOTER_TRAILER_BYTES - 8);
        ByteWriter::new(&mut bytes).u32(encoding);
        let checksum = Checksum::of(&bytes).bind(at);
        ByteWriter::new(&mut bytes).u32(checksum.0);
        assert_eq!(FooterTrailer::decode(&bytes, at), Err(Malformed::Reserved), "{encoding}");
    }
}

/// Returns the trailer of a footer that consists of these blocks.
fn trailer_of(stored: &[u8], entries: &[u8], entry_count: u64) -> FooterTrailer {
    let entries = Checksum::of(entries);
    FooterTrailer {
        stored_bytes: stored.len() as u64,
        entries,
        entry_count,
        ..parts(&finish(writer())).1
    }
}

#[test]
fn intact_blocks_not_forming_the_footer_are_rejected() {
    let entries = entries();
    let trailer = |stored: &[u8], count| trailer_of(stored, &entries, count);
    let whole = FooterBlock::compress(&entries, test_address(9_000));
    assert_eq!(unpack(&whole, &trailer(&whole, 3)).as_ref(), Ok(&entries));
    assert_eq!(unpack(&whole, &trailer(&whole, 200)), Err(Malformed::Count), "too many records");
    let other = FooterBlock::compress(&entries[1..], test_address(9_000));
    assert_eq!(unpack(&other, &trailer(&other, 3)), Err(Malformed::Checksum));
    // Cut in two blocks, neither of them full.
    let first = FooterBlock::compress(&entries[..40], test_address(9_000));
    let second = FooterBlock::compress(&entries[40..], test_address(9_000 + first.len() as u64));
    let cut = [first, second].concat();
    assert_eq!(unpack(&cut, &trailer(&cut, 3)), Err(Malformed::Length));
    // The last block is cut short or extends beyond the footer.
    for missing in 1..whole.len() {
        let short = &whole[..whole.len() - missing];
        assert!(unpack(short, &trailer(short, 3)).is_err(), "{missing}");
    }
    let long = [&whole[..], &[0; 20]].concat();
    assert_eq!(unpack(&long, &trailer(&long, 3)), Err(Malformed::Length));
}

#[test]
fn footer_digest_matches_its_footer_only() {
    let sum = |records: &[(u64, u64)]| {
        let mut sum = FooterDigest::default();
        for (lsn, offset) in records {
            sum.push(*offset, &head(*lsn, *offset));
        }
        sum
    };
    let trailer = parts(&finish(writer())).1;
    let is_of = |records: &[(u64, u64)]| sum(records).matches(&trailer, 12, 5, Checksum(6));
    assert!(is_of(&RECORDS));
    assert!(!is_of(&RECORDS[..2]) && !is_of(&[RECORDS[0], RECORDS[2], RECORDS[1]]));
    assert!(!sum(&RECORDS).matches(&trailer, 11, 5, Checksum(6)));
    assert!(!sum(&RECORDS).matches(&trailer, 12, 4, Checksum(6)));
    assert!(!sum(&RECORDS).matches(&trailer, 12, 5, Checksum(7)));
}

#[test]
fn footer_entries_are_read_through_a_window() {
    let entries = entries();
    let (first, bytes) = FooterEntry::decode(&entries, context()).unwrap().unwrap();
    assert_eq!(first.record.lsn, 10);
    for short in 0..bytes {
        assert_eq!(FooterEntry::decode(&entries[..short], context()), Ok(None));
    }
    let cut = &entries[..entries.len() - 1];
    let last = FooterEntries::new(cut, context()).last();
    assert_eq!(last, Some(Err(Malformed::Short)));
}

#[test]
fn unsorted_footer_entries_are_rejected() {
    let bytes = [entries(), entry(4_350, &head(13, 4_350))].concat();
    let read: Vec<_> = FooterEntries::new(&bytes, context()).collect();
    assert_eq!(read.len(), 4);
    assert_eq!(read[3], Err(Malformed::Order));
}
