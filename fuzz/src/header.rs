//! What stands at the beginning of files: the `STORE` file, the header page of a segment, and the names of segments.
//!
//! The fields come from the input, their checksums are made right: behind those are the rules that are to be tested.
//! Two properties. What decodes encodes to the same fields, and every byte of it counts. Of the two copies on a page
//! the first good one is read, whatever became of the other.

use engine::format::segment_header::{SEGMENT_HEADER_COPY_BYTES, SEGMENT_HEADER_FIELD_BYTES};
use engine::format::{
    BIG_FOLDER_SEGMENTS, Checksum, SEGMENT_HEADER_BYTES, STORE_FILE_BYTES, SegmentClass,
    SegmentContext, SegmentHeader, SegmentId, StoreFile, big_folder_number,
};

/// Where the fields of the `STORE` file end and their checksum begins.
const STORE_CHECKED_BYTES: usize = 40;
/// The same of a copy of a segment header.
const CHECKED_BYTES: usize = SEGMENT_HEADER_FIELD_BYTES - 4;

/// The property.
pub fn run(input: &[u8]) {
    store_file(input);
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

/// The input is the fields of the first copy and, behind them, those of the second.
fn page(input: &[u8]) {
    let (first, second) = input.split_at(CHECKED_BYTES.min(input.len()));
    let copies = [mended(first, 0), mended(second, SEGMENT_HEADER_COPY_BYTES)];
    let page = copies.concat();
    assert_eq!(page.len(), SEGMENT_HEADER_BYTES);
    let nothing = vec![0xee; SEGMENT_HEADER_COPY_BYTES];
    let alone = [[&copies[0][..], &nothing].concat(), [&nothing[..], &copies[1]].concat()];
    let alone = alone.map(|page| SegmentHeader::decode_page(&page));
    let read = SegmentHeader::decode_page(&page);
    assert_eq!(read.ok(), alone[0].or(alone[1]).ok(), "the first good copy is not the one read");

    for (of_one, copy) in alone.iter().zip([0, SEGMENT_HEADER_COPY_BYTES]) {
        let Ok(header) = of_one else { continue };
        let whole = header.encode_page();
        assert_eq!(
            whole[copy..][..SEGMENT_HEADER_COPY_BYTES],
            page[copy..][..SEGMENT_HEADER_COPY_BYTES]
        );
        assert_eq!(SegmentHeader::decode_page(&whole), Ok(*header));
        for at in 0..SEGMENT_HEADER_FIELD_BYTES {
            let one = flipped(&whole, at);
            assert_eq!(SegmentHeader::decode_page(&one), Ok(*header), "one copy is enough");
            let both = flipped(&one, SEGMENT_HEADER_COPY_BYTES + at);
            assert!(SegmentHeader::decode_page(&both).is_err(), "byte {at} does not count");
        }
    }
}

/// A copy with these fields, at this place of its page, with the checksum that it ought to have.
fn mended(fields: &[u8], copy: usize) -> Vec<u8> {
    let mut bytes = filled(&fields[..CHECKED_BYTES.min(fields.len())], SEGMENT_HEADER_COPY_BYTES);
    let number = |at: usize| bytes[at..].first_chunk().map(|it| u64::from_le_bytes(*it));
    if let (Some(segment), Some(salt)) = (number(32).and_then(SegmentId::new), number(40)) {
        let place = SegmentContext { salt, segment }.at(copy as u64);
        let checksum = Checksum::of(&bytes[..CHECKED_BYTES]).at(place);
        bytes[CHECKED_BYTES..][..4].copy_from_slice(&checksum.0.to_le_bytes());
    }
    bytes
}

/// A name that is read as a segment's is the name that this segment has.
fn names(text: &str) {
    if let Some(segment) = SegmentId::from_file_name(text) {
        for class in [SegmentClass::Log, SegmentClass::Big] {
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
