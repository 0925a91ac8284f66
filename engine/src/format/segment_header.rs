//! Segment header page.
//!
//! The page is 4,096 bytes: two copies of the header, at 0 and at 2,048, each followed by zeros.
//!
//! | offset | size | field           | meaning                                                             |
//! | ------ | ---- | --------------- | ------------------------------------------------------------------- |
//! | 0      | 8    | magic           | `TRUGSEG` and a zero                                                |
//! | 8      | 4    | version         | format version                                                      |
//! | 12     | 4    | features        | feature bits                                                        |
//! | 16     | 16   | store           | uuid of the store                                                   |
//! | 32     | 8    | segment         | id, not zero                                                        |
//! | 40     | 8    | salt            | random; mixed into magic numbers and checksums of this segment      |
//! | 48     | 8    | base_lsn        | lowest LSN that the segment may contain                             |
//! | 56     | 8    | predecessor     | id of the log segment before this one, zero for none                |
//! | 64     | 8    | predecessor_end | exact end of its groups                                             |
//! | 72     | 8    | first_group     | number of the first group of this segment                           |
//! | 80     | 8    | created_ms      | milliseconds since 1970                                             |
//! | 88     | 4    | block_bytes     | 65,536                                                              |
//! | 92     | 4    | previous_group  | checksum of the last group header before this segment, zero if none |
//! | 96     | 1    | class           | 1 log, 2 big, 3 compacted                                           |
//! | 97     | 3    | reserved        | zero                                                                |
//! | 100    | 4    | checksum        | of bytes 0..100 at the offset of the copy                           |
//!
//! In a compacted segment the origin (`origin.rs`) follows these fields in both copies; in others zeros follow.
//!
//! Guarantees: one corrupt copy is tolerated; a page of zeros is reported as [`Malformed::Blank`].
//! Non-goals: opening, creating or selecting segments.

use uuid::Uuid;

use super::byte_codec::{ByteReader, ByteWriter, is_zero};
use super::checksum::{CheckClass, Checksum, DiskAddress, SegmentContext};
use super::malformed::Malformed;
use super::segment_id::{SegmentClass, SegmentId};
use super::{FEATURES_KNOWN, FORMAT_VERSION, check_features, check_version};
use crate::limits;

/// Magic number at the start of each copy of a segment header.
pub const SEGMENT_MAGIC: [u8; 8] = *b"TRUGSEG\0";
/// Size of the header page, after which the groups of a log segment or the body of a big one begin.
pub const SEGMENT_HEADER_BYTES: usize = 4_096;
/// Offset of the second copy from the first.
pub const SEGMENT_HEADER_COPY_BYTES: usize = 2_048;
/// Size of the header fields in a copy.
pub const SEGMENT_HEADER_FIELD_BYTES: usize = 104;
/// Size of the checksummed blocks of bodies, as stated in the header.
pub const HEADER_BLOCK_BYTES: u32 = 65_536;

const CHECKED_BYTES: usize = SEGMENT_HEADER_FIELD_BYTES - 4;

const _: () = assert!(SEGMENT_HEADER_BYTES == 2 * SEGMENT_HEADER_COPY_BYTES);
const _: () = assert!(SEGMENT_HEADER_FIELD_BYTES <= 512, "a copy lies within one sector");
const _: () = assert!(HEADER_BLOCK_BYTES as usize == limits::BLOCK_BYTES);

/// Preceding log segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Predecessor {
    /// Id of the segment.
    pub segment: SegmentId,
    /// Offset at which its groups end. Bytes after it are a footer or an ignored torn tail.
    pub end: u64,
}

/// Header of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SegmentHeader {
    /// Store that the segment belongs to.
    pub store: Uuid,
    /// Segment id, the same as in the file name.
    pub segment: SegmentId,
    /// Class of the segment.
    pub class: SegmentClass,
    /// Random number of this segment, so that checksums of an earlier file with the same id do not match.
    pub salt: u64,
    /// Lowest LSN that the segment may contain.
    pub base_lsn: u64,
    /// Preceding log segment; `None` for the first, and for big segments.
    pub predecessor: Option<Predecessor>,
    /// Number of the first group of this segment.
    pub first_group: u64,
    /// Checksum of the last group header before this segment; zero if there is none.
    pub previous_group: Checksum,
    /// Creation time, in milliseconds since 1970.
    pub created_ms: u64,
}

impl SegmentHeader {
    /// Returns the segment part of disk addresses.
    pub fn context(&self) -> SegmentContext {
        SegmentContext { salt: self.salt, segment: self.segment }
    }

    /// Returns the end of this segment's groups according to the header in `others` that names it as predecessor.
    pub(crate) fn end_from_successors(&self, others: &[Self]) -> Option<u64> {
        let mut predecessors = others.iter().filter_map(|later| later.predecessor);
        predecessors.find(|before| before.segment == self.segment).map(|before| before.end)
    }

    /// Encodes the page, with both copies, of a log or big segment.
    pub fn encode_page(&self) -> Vec<u8> {
        self.encode_page_with(|_| Vec::new())
    }

    /// Encodes the page, with `rest` providing the bytes after the fields of each copy.
    pub(super) fn encode_page_with(&self, rest: impl Fn(DiskAddress) -> Vec<u8>) -> Vec<u8> {
        let mut page = Vec::with_capacity(SEGMENT_HEADER_BYTES);
        for copy in [0, SEGMENT_HEADER_COPY_BYTES] {
            self.encode_copy(copy, &mut page);
            let behind = copy.saturating_add(SEGMENT_HEADER_FIELD_BYTES);
            page.extend(rest(self.context().at(behind as u64)));
            page.resize(copy.saturating_add(SEGMENT_HEADER_COPY_BYTES), 0);
        }
        page
    }

    /// Decodes the first intact copy of a page of exactly [`SEGMENT_HEADER_BYTES`].
    pub fn decode_page(page: &[u8]) -> Result<Self, Malformed> {
        if page.len() > SEGMENT_HEADER_BYTES {
            return Err(Malformed::Trailing);
        }
        let mut take = ByteReader::new(page);
        let first = take.bytes(SEGMENT_HEADER_COPY_BYTES)?;
        let second = take.bytes(SEGMENT_HEADER_COPY_BYTES)?;
        if is_zero(page) {
            return Err(Malformed::Blank);
        }
        Self::decode_copy(first, 0).or_else(|why| {
            let of_second = Self::decode_copy(second, SEGMENT_HEADER_COPY_BYTES);
            match (why, of_second) {
                (_, Ok(header)) => Ok(header),
                // An intact copy of an unsupported version is more specific than a corrupt copy.
                (_, Err(other @ (Malformed::Version(_) | Malformed::Features(_)))) => Err(other),
                _ => Err(why),
            }
        })
    }

    fn encode_copy(&self, copy: usize, page: &mut Vec<u8>) {
        let (predecessor, end) = self.predecessor.map_or((0, 0), |p| (p.segment.get(), p.end));
        let mut fields = Vec::with_capacity(SEGMENT_HEADER_FIELD_BYTES);
        ByteWriter::new(&mut fields)
            .bytes(&SEGMENT_MAGIC)
            .u32(FORMAT_VERSION)
            .u32(FEATURES_KNOWN)
            .bytes(self.store.as_bytes())
            .u64(self.segment.get())
            .u64(self.salt)
            .u64(self.base_lsn)
            .u64(predecessor)
            .u64(end)
            .u64(self.first_group)
            .u64(self.created_ms)
            .u32(HEADER_BLOCK_BYTES)
            .u32(self.previous_group.0)
            .u8(self.class.to_byte())
            .zeros(3);
        let checksum = Checksum::of(&fields).bind(self.context().at(copy as u64));
        ByteWriter::new(page).bytes(&fields).u32(checksum.0);
    }

    fn decode_copy(bytes: &[u8], copy: usize) -> Result<Self, Malformed> {
        let mut take = ByteReader::new(bytes);
        let checked = take.clone().bytes(CHECKED_BYTES)?;
        if take.array()? != SEGMENT_MAGIC {
            return Err(Malformed::Magic);
        }
        // Another version may have another layout, so its checksum cannot be verified first.
        check_version(take.u32()?)?;
        let features = take.u32()?;
        let store = Uuid::from_bytes(take.array()?);
        let segment = take.u64()?;
        let salt = take.u64()?;
        let base_lsn = take.u64()?;
        let predecessor = take.u64()?;
        let predecessor_end = take.u64()?;
        let first_group = take.u64()?;
        let created_ms = take.u64()?;
        let block_bytes = take.u32()?;
        let previous_group = Checksum(take.u32()?);
        let class = take.u8()?;
        let reserved = take.zeros(3);
        let checksum = Checksum(take.u32()?);

        let segment = SegmentId::new(segment).ok_or(Malformed::Misplaced)?;
        let place = SegmentContext { salt, segment }.at(copy as u64);
        checksum.verify(CheckClass::Header, checked, place)?;
        check_features(features)?;
        reserved?;
        let class = SegmentClass::from_byte(class)?;
        if class != SegmentClass::Compacted {
            take.zeros(SEGMENT_HEADER_COPY_BYTES - SEGMENT_HEADER_FIELD_BYTES)?;
            take.end()?;
        }
        if block_bytes != HEADER_BLOCK_BYTES {
            return Err(Malformed::Length);
        }
        let predecessor = match (predecessor, predecessor_end) {
            (0, 0) => None,
            (0, _) => return Err(Malformed::Reserved),
            (id, end) => {
                let segment = SegmentId::new(id).ok_or(Malformed::Misplaced)?;
                Some(Predecessor { segment, end })
            }
        };
        Ok(Self {
            store,
            segment,
            class,
            salt,
            base_lsn,
            predecessor,
            first_group,
            previous_group,
            created_ms,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header() -> SegmentHeader {
        SegmentHeader {
            store: Uuid::from_u128(0x0123_4567_89ab_cdef_0123_4567_89ab_cdef),
            segment: SegmentId::new(12).unwrap(),
            class: SegmentClass::Log,
            salt: 0xfeed_f00d_1234_5678,
            base_lsn: 1_000,
            predecessor: Some(Predecessor { segment: SegmentId::new(9).unwrap(), end: 77_777 }),
            first_group: 55,
            previous_group: Checksum(0xabcd_ef01),
            created_ms: 1_760_000_000_000,
        }
    }

    #[test]
    fn segment_header_round_trips() {
        let first = SegmentHeader { predecessor: None, class: SegmentClass::Big, ..header() };
        for header in [header(), first] {
            let page = header.encode_page();
            assert_eq!(page.len(), SEGMENT_HEADER_BYTES);
            assert_eq!(SegmentHeader::decode_page(&page), Ok(header));
        }
    }

    #[test]
    fn header_is_read_from_either_copy() {
        let page = header().encode_page();
        for at in 0..SEGMENT_HEADER_BYTES {
            let mut changed = page.clone();
            changed[at] ^= 0x41;
            assert_eq!(SegmentHeader::decode_page(&changed), Ok(header()), "byte {at}");
        }
    }

    #[test]
    fn second_header_copy_detects_any_byte_change() {
        let page = header().encode_page();
        for (gone, kept) in [(0..2_048, 2_048..4_096), (2_048..4_096, 0..2_048)] {
            let mut lone = page.clone();
            lone[gone].fill(0);
            assert_eq!(SegmentHeader::decode_page(&lone), Ok(header()));
            for at in kept {
                for bit in 0..8 {
                    lone[at] ^= 1 << bit;
                    assert!(SegmentHeader::decode_page(&lone).is_err(), "byte {at} bit {bit}");
                    lone[at] ^= 1 << bit;
                }
            }
        }
    }

    #[test]
    fn second_header_copy_is_not_accepted_as_the_first() {
        let page = header().encode_page();
        let mut moved = vec![0; SEGMENT_HEADER_BYTES];
        moved[..2_048].copy_from_slice(&page[2_048..]);
        assert_eq!(SegmentHeader::decode_page(&moved), Err(Malformed::Checksum));
    }

    #[test]
    fn invalid_header_pages_are_rejected_with_their_reason() {
        let decode = SegmentHeader::decode_page;
        assert_eq!(decode(&[0; SEGMENT_HEADER_BYTES]), Err(Malformed::Blank));
        assert_eq!(decode(&[7; SEGMENT_HEADER_BYTES]), Err(Malformed::Magic));
        assert_eq!(decode(&[0; SEGMENT_HEADER_BYTES - 1]), Err(Malformed::Short));
        assert_eq!(decode(&[0; SEGMENT_HEADER_BYTES + 1]), Err(Malformed::Trailing));

        let mut newer = header().encode_page();
        newer[8] = 2;
        newer[2_048 + 8] = 2;
        assert_eq!(decode(&newer), Err(Malformed::Version(2)));

        let mut feature = header().encode_page();
        for copy in [0, 2_048] {
            feature[copy + 12] = 4;
            let sum =
                Checksum::of(&feature[copy..copy + 100]).bind(header().context().at(copy as u64));
            feature[copy + 100..copy + 104].copy_from_slice(&sum.0.to_le_bytes());
        }
        assert_eq!(decode(&feature), Err(Malformed::Features(4)));
    }
}
