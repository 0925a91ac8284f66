//! Segment footers: pushed entries are read back, in pieces of any size, and nothing else is accepted.
//!
//! Six properties. A footer built from the input in pieces equals the footer built at once, its checksum is the one in
//! its trailer, and the entries read are the entries pushed. Reading through any window gives the same entries. A
//! footer with one changed byte is rejected. Any bytes as the data of a block, with a valid checksum, unpack to exactly
//! the length in the block's header, or are rejected. Any bytes read as entries encode to the same bytes; so do any
//! bytes read as a trailer, of a log segment or of a big segment, when their checksum is valid.

use bytes::Bytes;
use engine::format::{
    BIG_TRAILER_BYTES, BigTrailer, Checksum, FOOTER_BLOCK_BYTES, FOOTER_BLOCK_HEADER_BYTES,
    FOOTER_ENTRY_BYTES_MAX, FOOTER_TRAILER_BYTES, FooterBlock, FooterDigest, FooterEntries,
    FooterEntry, FooterReader, FooterTrailer, FooterWriter, Malformed, Record, SegmentContext,
    footer_bytes_max,
};

use crate::choice_sequence::ChoiceSequence;
use crate::group::{Unplaced, context, frames};

/// Checks the properties.
pub fn run(input: &[u8]) {
    let Some(context) = context() else { return };
    any_entries(input, context);
    any_trailer(input, context);
    any_block(input, context);

    let mut choices = ChoiceSequence::new(input);
    let (at, flip) = (usize::from(choices.pair()), choices.byte().max(1));
    let window = choices.byte();
    let footer_offset = 4_096 + u64::from(choices.pair());
    let records: Vec<Unplaced> = frames(&mut choices).into_iter().flatten().collect();
    let heads = heads(&records, context);

    let footer = footer(&heads, footer_offset, usize::MAX, context);
    let in_pieces = self::footer(&heads, footer_offset, 1 + usize::from(window) % 5, context);
    assert_eq!(footer, in_pieces, "pieces change the footer");
    let entries = entries(&heads);
    assert!(footer.len() as u64 <= footer_bytes_max(entries.len() as u64));
    check_windowed_read(&entries, usize::from(window), context);
    check_round_trip(&footer, &heads, footer_offset, context);
    let mut changed = footer;
    let at = at % changed.len();
    changed[at] ^= flip;
    assert!(!passes(&changed, footer_offset, context), "a change of byte {at} is accepted");
}

/// Returns the heads of the records in sequence, with their offsets.
fn heads(records: &[Unplaced], context: SegmentContext) -> Vec<(u64, Vec<u8>)> {
    let mut offset = 4_096;
    let heads = records.iter().zip(1..).map(|((what, body), lsn)| {
        let place = context.at(offset);
        let mut what = what.clone();
        what.bind(place.plus(what.head_bytes() as u64));
        let mut head = Vec::new();
        Record { lsn, op: what }.encode(place, &mut head);
        offset += (head.len() + body.iter().map(Bytes::len).sum::<usize>()) as u64;
        (place.offset, head)
    });
    heads.collect()
}

/// Builds the footer, drained from its writer after every so many heads.
fn footer(
    heads: &[(u64, Vec<u8>)],
    footer_offset: u64,
    piece: usize,
    context: SegmentContext,
) -> Vec<u8> {
    let mut writer = FooterWriter::new(context, footer_offset);
    let mut footer = Vec::new();
    for (count, (offset, head)) in heads.iter().enumerate() {
        writer.push(*offset, head);
        if (count + 1) % piece == 0 {
            footer.extend(writer.take());
        }
    }
    footer.extend(writer.finish(heads.len() as u64, 2, Checksum(3)));
    footer
}

/// Returns the entries as `FORMAT.md` describes them.
fn entries(heads: &[(u64, Vec<u8>)]) -> Vec<u8> {
    let entry = |(offset, head): &(u64, Vec<u8>)| [&offset.to_le_bytes(), &head[..]].concat();
    heads.iter().flat_map(entry).collect()
}

fn check_round_trip(
    footer: &[u8],
    heads: &[(u64, Vec<u8>)],
    footer_offset: u64,
    context: SegmentContext,
) {
    let (entries, trailer) = unpack(footer, footer_offset, context).expect("a footer is whole");
    let count = heads.len() as u64;
    assert_eq!((trailer.footer_offset, trailer.entry_count), (footer_offset, count));
    let mut sum = FooterDigest::default();
    for (offset, head) in heads {
        sum.push(*offset, head);
    }
    assert!(sum.matches(&trailer, count, 2, Checksum(3)), "the sum is of these entries");
    assert!(entries == self::entries(heads));
    let read: Vec<FooterEntry> =
        FooterEntries::new(&entries, context).map(|it| it.expect("an entry")).collect();
    assert_eq!(read.len(), heads.len());
    for (entry, (offset, head)) in read.iter().zip(heads) {
        assert_eq!((entry.offset, entry.head_bytes as usize), (*offset, head.len()));
        assert_eq!(encoded(entry, context), [&offset.to_le_bytes(), &head[..]].concat());
    }
}

/// Returns the entries of a footer, and its trailer.
fn unpack(
    footer: &[u8],
    footer_offset: u64,
    context: SegmentContext,
) -> Result<(Vec<u8>, FooterTrailer), Malformed> {
    let (stored, trailer) = footer.split_at(footer.len() - FOOTER_TRAILER_BYTES);
    let place = context.at(footer_offset + stored.len() as u64);
    let trailer = FooterTrailer::decode(trailer, place)?;
    let mut reader = FooterReader::new(&trailer, context);
    let mut entries = Vec::new();
    while let Some((offset, bytes)) = reader.next_range() {
        assert!(bytes <= FOOTER_BLOCK_BYTES + FOOTER_BLOCK_HEADER_BYTES, "memory is bounded");
        let at = (offset - footer_offset) as usize;
        entries.extend(reader.feed(&stored[at..at + bytes])?);
    }
    Ok((entries, trailer))
}

/// Reads the entries with at most one window of them available, as a file reader does.
fn check_windowed_read(mut rest: &[u8], window: usize, context: SegmentContext) {
    let mut read = Vec::new();
    let whole: Result<Vec<_>, _> = FooterEntries::new(rest, context).collect();
    while !rest.is_empty() {
        let mut seen = window.min(rest.len());
        let (entry, bytes) = loop {
            match FooterEntry::decode(&rest[..seen], context).expect("an entry, or too little") {
                Some(decoded) => break decoded,
                None => assert!(seen < rest.len().min(FOOTER_ENTRY_BYTES_MAX), "more is needed"),
            }
            seen = (seen + 1 + window).min(rest.len());
        };
        rest = &rest[bytes..];
        read.push(entry);
    }
    assert_eq!(Ok(read), whole);
}

/// Whether a reader accepts the footer: the trailer, the checksum of the entries, then each entry.
fn passes(footer: &[u8], footer_offset: u64, context: SegmentContext) -> bool {
    unpack(footer, footer_offset, context)
        .is_ok_and(|(entries, _)| FooterEntries::new(&entries, context).all(|entry| entry.is_ok()))
}

/// Checks that the entries decoded from any bytes, up to the first invalid one, encode to the same bytes.
fn any_entries(input: &[u8], context: SegmentContext) {
    let entries = FooterEntries::new(input, context).map_while(Result::ok);
    let again: Vec<u8> = entries.flat_map(|entry| encoded(&entry, context)).collect();
    assert!(input.starts_with(&again));
}

fn encoded(entry: &FooterEntry, context: SegmentContext) -> Vec<u8> {
    let mut bytes = entry.offset.to_le_bytes().to_vec();
    entry.record.encode(context.at(entry.offset), &mut bytes);
    bytes
}

/// Checks a block whose data are the input. The first two bytes are its claimed unpacked length.
fn any_block(input: &[u8], context: SegmentContext) {
    let place = context.at(4_096);
    let mut choices = ChoiceSequence::new(input);
    let claimed = usize::from(choices.pair());
    let block = FooterBlock::seal(claimed, choices.remaining(), place);
    if let Ok(header) = FooterBlock::decode(&block)
        && let Ok(entries) = header.decompress(&block[FOOTER_BLOCK_HEADER_BYTES..], place)
    {
        assert_eq!(entries.len(), claimed);
    }
    let entries = &input[..input.len().min(FOOTER_BLOCK_BYTES)];
    if !entries.is_empty() {
        let block = FooterBlock::compress(entries, place);
        let header = FooterBlock::decode(&block).expect("a block has a header");
        let data = &block[FOOTER_BLOCK_HEADER_BYTES..];
        assert!(data.len() <= entries.len(), "it never gets longer");
        assert_eq!(header.decompress(data, place).as_deref(), Ok(entries));
    }
}

/// Checks trailers with numbers from the input, at the offset that they claim.
fn any_trailer(input: &[u8], context: SegmentContext) {
    let mut choices = ChoiceSequence::new(input);
    let numbers: [u64; 3] = std::array::from_fn(|_| choices.number());
    let trailer = FooterTrailer {
        footer_offset: numbers[0],
        stored_bytes: numbers[1],
        entry_count: numbers[2],
        last_lsn: choices.number(),
        next_group: choices.number(),
        previous_group: Checksum(7),
        entries: Checksum(8),
    };
    let bytes = trailer.encode(context);
    assert_eq!(bytes.len(), FOOTER_TRAILER_BYTES);
    if let Ok(decoded) = FooterTrailer::decode(&bytes, context.at(trailer.offset())) {
        assert_eq!(decoded, trailer);
    }
    let big = BigTrailer { body_bytes: numbers[0], hash: [9; 32], table: Checksum(10) };
    let place = context.at(BigTrailer::offset(big.body_bytes));
    let bytes = big.encode(place);
    assert_eq!(bytes.len(), BIG_TRAILER_BYTES);
    if let Ok(decoded) = BigTrailer::decode(&bytes, place) {
        assert_eq!(decoded, big);
        assert_eq!(BigTrailer::file_bytes(big.body_bytes), place.offset + bytes.len() as u64);
    }
    let elsewhere = context.at(numbers[1]);
    assert!(elsewhere == place || BigTrailer::decode(&bytes, elsewhere).is_err());
}
