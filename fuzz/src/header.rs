//! File headers: the `STORE` and `BACKUP` files, the header page of a segment with the origin of a compacted one, and
//! segment names.
//!
//! The fields come from the input and their checksums are made valid, because the rules under test apply after the
//! checksum. Two properties. What decodes encodes to the same fields, and every byte of it is significant. Of the two
//! copies on a page the first valid one is read, whatever the state of the other.

use std::fmt::Debug;

use engine::format::origin::ORIGIN_FIXED_BYTES;
use engine::format::segment_header::{SEGMENT_HEADER_COPY_BYTES, SEGMENT_HEADER_FIELD_BYTES};
use engine::format::{
    BIG_FOLDER_SEGMENTS, BackupFile, Checksum, Origin, SEGMENT_HEADER_BYTES, STORE_FILE_BYTES,
    SegmentClass, SegmentContext, SegmentHeader, SegmentId, StoreFile, big_folder_number,
};

use crate::choice_sequence::ChoiceSequence;

/// Length of the checked fields of the `STORE` file in bytes; their checksum follows.
const STORE_CHECKED_BYTES: usize = 40;
/// Length of the checked fields of a segment header copy in bytes.
const CHECKED_BYTES: usize = SEGMENT_HEADER_FIELD_BYTES - 4;

/// Checks the properties.
pub fn run(input: &[u8]) {
    store_file(input);
    backup_file(input);
    page(input);
    if let Ok(text) = std::str::from_utf8(input) {
        names(text);
    }
}

fn store_file(input: &[u8]) {
    let mut bytes = filled(input, STORE_FILE_BYTES);
    let checksum = Checksum::of(&bytes[..STORE_CHECKED_BYTES]);
    bytes[STORE_CHECKED_BYTES..][..4].copy_from_slice(&checksum.0.to_le_bytes());
    for bytes in [input, &bytes] {
        let Ok(store) = StoreFile::decode(bytes) else { continue };
        assert_eq!(store.encode(), bytes);
        for at in 0..bytes.len() {
            assert!(StoreFile::decode(&flipped(bytes, at)).is_err(), "byte {at} does not count");
        }
    }
}

fn backup_file(input: &[u8]) {
    let sealed = [input, &Checksum::of(input).0.to_le_bytes()].concat();
    for bytes in [input, &sealed] {
        let Ok(backup) = BackupFile::decode(bytes) else { continue };
        assert_eq!(backup.encode(), bytes);
        for at in 0..bytes.len() {
            assert!(BackupFile::decode(&flipped(bytes, at)).is_err(), "byte {at} does not count");
        }
    }
}

/// Checks a header page. The input is the fields of the first copy, then those of the second, then the origin of both.
fn page(input: &[u8]) {
    let (first, rest) = input.split_at(CHECKED_BYTES.min(input.len()));
    let (second, origin) = rest.split_at(CHECKED_BYTES.min(rest.len()));
    let copies = [
        with_valid_checksum(first, origin, 0),
        with_valid_checksum(second, origin, SEGMENT_HEADER_COPY_BYTES),
    ];
    let page = copies.concat();
    assert_eq!(page.len(), SEGMENT_HEADER_BYTES);
    let nothing = vec![0xee; SEGMENT_HEADER_COPY_BYTES];
    let alone = [[&copies[0][..], &nothing].concat(), [&nothing[..], &copies[1]].concat()];
    let read_alone = alone.each_ref().map(|page| SegmentHeader::decode_page(page));
    let read = SegmentHeader::decode_page(&page);
    let first_good = read_alone[0].or(read_alone[1]);
    assert_eq!(read.ok(), first_good.ok(), "the first good copy is not the one read");

    for ((header, alone), copy) in read_alone.iter().zip(&alone).zip([0, SEGMENT_HEADER_COPY_BYTES])
    {
        let Ok(header) = header else { continue };
        let whole = if header.class == SegmentClass::Compacted {
            let Ok(read) = Origin::decode_page(alone, header) else { continue };
            let whole = read.encode_page(header);
            let fields = SEGMENT_HEADER_FIELD_BYTES..SEGMENT_HEADER_COPY_BYTES;
            // Only some bytes of a long origin are changed, because one input would otherwise take as long as hundreds.
            let fields = fields.take(origin.len() + 4).step_by(1 + origin.len() / 128);
            either_copy_is_enough(&whole, fields, |page| Origin::decode_page(page, header).ok());
            whole
        } else {
            header.encode_page()
        };
        let copy = copy..copy + SEGMENT_HEADER_COPY_BYTES;
        assert_eq!(whole[copy.clone()], alone[copy], "decoded, and encoded to something else");
        let fields = 0..SEGMENT_HEADER_FIELD_BYTES;
        either_copy_is_enough(&whole, fields, |page| SegmentHeader::decode_page(page).ok());
    }
}

/// Checks that a page decodes to the same value when any of these bytes changes in one copy, and to none when it
/// changes in both.
fn either_copy_is_enough<T: Debug + PartialEq>(
    page: &[u8],
    fields: impl Iterator<Item = usize>,
    read: impl Fn(&[u8]) -> Option<T>,
) {
    let whole = read(page);
    assert!(whole.is_some(), "encoded, and not decoded");
    for at in fields {
        let one = flipped(page, at);
        assert_eq!(read(&one), whole, "one copy is enough");
        let both = flipped(&one, SEGMENT_HEADER_COPY_BYTES + at);
        assert_eq!(read(&both), None, "byte {at} does not count");
    }
}

/// Builds a copy with these fields and this origin at this offset of its page, with valid checksums.
fn with_valid_checksum(fields: &[u8], origin: &[u8], copy: usize) -> Vec<u8> {
    let fields = filled(&fields[..CHECKED_BYTES.min(fields.len())], SEGMENT_HEADER_FIELD_BYTES);
    let mut bytes = filled(&[&fields, origin].concat(), SEGMENT_HEADER_COPY_BYTES);
    let number = |at: usize| bytes[at..].first_chunk().map(|it| u64::from_le_bytes(*it));
    if let (Some(segment), Some(salt)) = (number(32).and_then(SegmentId::new), number(40)) {
        let mut seal = |start: usize, end: usize| {
            let place = SegmentContext { salt, segment }.at((copy + start) as u64);
            let checksum = Checksum::of(&bytes[start..end]).bind(place);
            bytes[end..][..4].copy_from_slice(&checksum.0.to_le_bytes());
        };
        seal(0, CHECKED_BYTES);
        let end = SEGMENT_HEADER_FIELD_BYTES + origin_bytes(origin);
        if !origin.is_empty() && end + 4 <= SEGMENT_HEADER_COPY_BYTES {
            seal(SEGMENT_HEADER_FIELD_BYTES, end);
        }
    }
    bytes
}

/// Returns the offset of an origin's checksum, from the counts at its start.
fn origin_bytes(origin: &[u8]) -> usize {
    let mut choices = ChoiceSequence::new(origin);
    let (inputs, covers) = (usize::from(choices.pair()), usize::from(choices.pair()));
    ORIGIN_FIXED_BYTES - 4 + 8 * inputs + 16 * covers
}

/// Checks that a name parsed as a segment name is the canonical name of that segment.
fn names(text: &str) {
    if let Some(segment) = SegmentId::from_file_name(text) {
        for class in [SegmentClass::Log, SegmentClass::Big, SegmentClass::Compacted] {
            assert_eq!(segment.path(class), format!("{}/{text}", segment.folder(class)));
        }
    }
    if let Some(number) = big_folder_number(text) {
        let segment = SegmentId::new((number * BIG_FOLDER_SEGMENTS).max(1));
        let folder = segment.map(|segment| segment.folder(SegmentClass::Big));
        assert_eq!(folder, Some(format!("big/{text}")));
    }
}

fn filled(bytes: &[u8], length: usize) -> Vec<u8> {
    bytes.iter().copied().chain(std::iter::repeat(0)).take(length).collect()
}

fn flipped(bytes: &[u8], at: usize) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    bytes[at] ^= 1;
    bytes
}
