//! The segment header: the first page of every segment, and how a segment's id becomes a file name and back.
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
//! | 40     | 8    | salt            | random; goes into magic numbers and checksums of this segment       |
//! | 48     | 8    | base_lsn        | LSN of the first record that may lie here                           |
//! | 56     | 8    | predecessor     | id of the log segment before this one, zero for none                |
//! | 64     | 8    | predecessor_end | where its groups end, exactly                                       |
//! | 72     | 8    | first_group     | number of the first group here                                      |
//! | 80     | 8    | created_ms      | milliseconds since 1970                                             |
//! | 88     | 4    | block_bytes     | 65,536                                                              |
//! | 92     | 4    | previous_group  | checksum of the last group header before this segment, zero if none |
//! | 96     | 1    | class           | 1 log, 2 big, 3 compacted                                           |
//! | 97     | 3    | reserved        | zero                                                                |
//! | 100    | 4    | checksum        | of bytes 0..100 at the offset of the copy                           |
//!
//! A compacted segment has its origin (`origin.rs`) behind these fields, in both copies; in others zeros follow.
//!
//! Promises: one damaged copy does no harm; a page of zeros is told apart as [`Malformed::Blank`].
//! Never here: opening, creating or choosing segments.

use std::fmt;

use uuid::Uuid;

use super::bytes::{Put, Take, is_zero};
use super::checksum::{CheckClass, Checksum, Place, SegmentContext};
use super::malformed::Malformed;
use super::{FEATURES_KNOWN, FORMAT_VERSION, check_features, check_version};
use crate::limits;

/// First bytes of each copy of a segment header.
pub const SEGMENT_MAGIC: [u8; 8] = *b"TRUGSEG\0";
/// Size of the header page; groups of a log segment and the body of a big one begin here.
pub const SEGMENT_HEADER_BYTES: usize = 4_096;
/// Distance of the two copies.
pub const SEGMENT_HEADER_COPY_BYTES: usize = 2_048;
/// How many bytes of a copy hold fields.
pub const SEGMENT_HEADER_FIELD_BYTES: usize = 104;
/// Size of the blocks that bodies are checksummed in, as the header states it.
pub const HEADER_BLOCK_BYTES: u32 = 65_536;
/// Largest segment id: ten digits, so that file names sort as their ids do.
pub const SEGMENT_ID_MAX: u64 = 9_999_999_999;
/// How many ids share one folder of big segments.
pub const BIG_FOLDER_SEGMENTS: u64 = 4_096;
/// End of every segment's file name.
pub const SEGMENT_SUFFIX: &str = ".seg";

const CHECKED_BYTES: usize = SEGMENT_HEADER_FIELD_BYTES - 4;

const _: () = assert!(SEGMENT_HEADER_BYTES == 2 * SEGMENT_HEADER_COPY_BYTES);
const _: () = assert!(SEGMENT_HEADER_FIELD_BYTES <= 512, "a copy lies within one sector");
const _: () = assert!(HEADER_BLOCK_BYTES as usize == limits::BLOCK_BYTES);

/// The number of a segment. Never zero, never used twice in a store.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SegmentId(u64);

/// What a segment holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SegmentClass {
    /// Groups of records, with small bodies among them.
    Log = 1,
    /// The body of one large object.
    Big = 2,
    /// What was still wanted of other segments: groups of records with the numbers that they always had.
    Compacted = 3,
}

/// The log segment before this one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Predecessor {
    /// Which it is.
    pub segment: SegmentId,
    /// Where its groups end; bytes after that are a footer, or a torn tail that means nothing.
    pub end: u64,
}

/// What a segment says about itself before anything else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SegmentHeader {
    /// The store that the segment belongs to.
    pub store: Uuid,
    /// Its id, the same as in its file name.
    pub segment: SegmentId,
    /// What it holds.
    pub class: SegmentClass,
    /// A random number of this segment's own: bytes of another incarnation never look like its own.
    pub salt: u64,
    /// The LSN of the first record that may lie here.
    pub base_lsn: u64,
    /// The log segment before this one; none for the first, and for big segments.
    pub predecessor: Option<Predecessor>,
    /// The number of the first group here.
    pub first_group: u64,
    /// The checksum of the last group header before this segment; zero when there is none.
    pub previous_group: Checksum,
    /// When it was created.
    pub created_ms: u64,
}

impl SegmentHeader {
    /// The segment as checksums know it.
    pub fn context(&self) -> SegmentContext {
        SegmentContext { salt: self.salt, segment: self.segment }
    }

    /// Where the groups of this segment end according to the one of `others` that was begun after it.
    pub(crate) fn end_named_by(&self, others: &[Self]) -> Option<u64> {
        let mut predecessors = others.iter().filter_map(|later| later.predecessor);
        predecessors.find(|before| before.segment == self.segment).map(|before| before.end)
    }

    /// The whole page, with both copies, of a log or big segment.
    pub fn encode_page(&self) -> Vec<u8> {
        self.encode_page_with(|_| Vec::new())
    }

    /// The whole page with what follows the fields of the copy at a place.
    pub(super) fn encode_page_with(&self, rest: impl Fn(Place) -> Vec<u8>) -> Vec<u8> {
        let mut page = Vec::with_capacity(SEGMENT_HEADER_BYTES);
        for copy in [0, SEGMENT_HEADER_COPY_BYTES] {
            self.encode_copy(copy, &mut page);
            let behind = copy.saturating_add(SEGMENT_HEADER_FIELD_BYTES);
            page.extend(rest(self.context().at(behind as u64)));
            page.resize(copy.saturating_add(SEGMENT_HEADER_COPY_BYTES), 0);
        }
        page
    }

    /// The first good copy of a page of exactly [`SEGMENT_HEADER_BYTES`].
    pub fn decode_page(page: &[u8]) -> Result<Self, Malformed> {
        if page.len() > SEGMENT_HEADER_BYTES {
            return Err(Malformed::Trailing);
        }
        let mut take = Take::new(page);
        let first = take.bytes(SEGMENT_HEADER_COPY_BYTES)?;
        let second = take.bytes(SEGMENT_HEADER_COPY_BYTES)?;
        if is_zero(page) {
            return Err(Malformed::Blank);
        }
        Self::decode_copy(first, 0).or_else(|why| {
            let of_second = Self::decode_copy(second, SEGMENT_HEADER_COPY_BYTES);
            match (why, of_second) {
                (_, Ok(header)) => Ok(header),
                // A copy that is whole but of another version says more than one that is broken.
                (_, Err(other @ (Malformed::Version(_) | Malformed::Features(_)))) => Err(other),
                _ => Err(why),
            }
        })
    }

    fn encode_copy(&self, copy: usize, page: &mut Vec<u8>) {
        let (predecessor, end) = self.predecessor.map_or((0, 0), |p| (p.segment.get(), p.end));
        let mut fields = Vec::with_capacity(SEGMENT_HEADER_FIELD_BYTES);
        Put::new(&mut fields)
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
        let checksum = Checksum::of(&fields).at(self.context().at(copy as u64));
        Put::new(page).bytes(&fields).u32(checksum.0);
    }

    fn decode_copy(bytes: &[u8], copy: usize) -> Result<Self, Malformed> {
        let mut take = Take::new(bytes);
        let checked = take.clone().bytes(CHECKED_BYTES)?;
        if take.array()? != SEGMENT_MAGIC {
            return Err(Malformed::Magic);
        }
        // Another version may lie differently, so its checksum cannot be asked first.
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

        let segment = SegmentId::new(segment).ok_or(Malformed::Place)?;
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
                let segment = SegmentId::new(id).ok_or(Malformed::Place)?;
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

impl SegmentClass {
    /// The class as it stands on disk.
    pub fn to_byte(self) -> u8 {
        match self {
            Self::Log => 1,
            Self::Big => 2,
            Self::Compacted => 3,
        }
    }

    /// The class that a byte on disk means.
    pub fn from_byte(byte: u8) -> Result<Self, Malformed> {
        match byte {
            1 => Ok(Self::Log),
            2 => Ok(Self::Big),
            3 => Ok(Self::Compacted),
            other => Err(Malformed::Kind(other)),
        }
    }
}

impl SegmentId {
    /// The segment with this number; none for zero and for numbers beyond [`SEGMENT_ID_MAX`].
    pub fn new(number: u64) -> Option<Self> {
        (1..=SEGMENT_ID_MAX).contains(&number).then_some(Self(number))
    }

    /// The number.
    pub fn get(self) -> u64 {
        self.0
    }

    /// The next id. The last one is its own successor: ten thousand million segments are more than any store makes.
    #[must_use]
    pub fn next(self) -> Self {
        Self(self.0.saturating_add(1).min(SEGMENT_ID_MAX))
    }

    /// The file, relative to the data folder: `log/0000000001.seg`, `big/00/0000000002.seg` or
    /// `compacted/0000000003.seg`.
    pub fn path(self, class: SegmentClass) -> String {
        format!("{}/{self}{SEGMENT_SUFFIX}", self.folder(class))
    }

    /// The folder that the file lies in, relative to the data folder: `log`, `big/00` or `compacted`.
    pub fn folder(self, class: SegmentClass) -> String {
        match class {
            SegmentClass::Log => "log".to_owned(),
            SegmentClass::Big => format!("big/{:02}", self.0 / BIG_FOLDER_SEGMENTS),
            SegmentClass::Compacted => "compacted".to_owned(),
        }
    }

    /// The id in a file name; none unless the name is exactly the one that [`path`](Self::path) would give.
    pub fn from_file_name(name: &str) -> Option<Self> {
        let digits = name.strip_suffix(SEGMENT_SUFFIX)?;
        let segment = Self::new(digits.parse().ok()?)?;
        (segment.to_string() == digits).then_some(segment)
    }
}

/// The number of a folder of big segments; none unless the name is exactly one that [`SegmentId::folder`] would give.
pub fn big_folder_number(name: &str) -> Option<u64> {
    let number = name.parse().ok()?;
    let last = SEGMENT_ID_MAX / BIG_FOLDER_SEGMENTS;
    (number <= last && format!("{number:02}") == name).then_some(number)
}

impl fmt::Display for SegmentId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:010}", self.0)
    }
}

impl fmt::Debug for SegmentId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
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
    fn a_header_survives_its_bytes() {
        let first = SegmentHeader { predecessor: None, class: SegmentClass::Big, ..header() };
        for header in [header(), first] {
            let page = header.encode_page();
            assert_eq!(page.len(), SEGMENT_HEADER_BYTES);
            assert_eq!(SegmentHeader::decode_page(&page), Ok(header));
        }
    }

    #[test]
    fn either_copy_is_enough() {
        let page = header().encode_page();
        for at in 0..SEGMENT_HEADER_BYTES {
            let mut changed = page.clone();
            changed[at] ^= 0x41;
            assert_eq!(SegmentHeader::decode_page(&changed), Ok(header()), "byte {at}");
        }
    }

    #[test]
    fn with_one_copy_gone_every_byte_of_the_other_counts() {
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
    fn the_second_copy_does_not_pass_for_the_first() {
        let page = header().encode_page();
        let mut moved = vec![0; SEGMENT_HEADER_BYTES];
        moved[..2_048].copy_from_slice(&page[2_048..]);
        assert_eq!(SegmentHeader::decode_page(&moved), Err(Malformed::Checksum));
    }

    #[test]
    fn pages_that_are_no_header_say_why() {
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
                Checksum::of(&feature[copy..copy + 100]).at(header().context().at(copy as u64));
            feature[copy + 100..copy + 104].copy_from_slice(&sum.0.to_le_bytes());
        }
        assert_eq!(decode(&feature), Err(Malformed::Features(4)));
    }

    #[test]
    fn ids_and_file_names_are_one_to_one() {
        for number in [1, 4_095, 4_096, 409_600, SEGMENT_ID_MAX] {
            let id = SegmentId::new(number).unwrap();
            let path = id.path(SegmentClass::Big);
            let (folder, name) = path.rsplit_once('/').unwrap();
            assert_eq!(SegmentId::from_file_name(name), Some(id));
            assert_eq!(folder, id.folder(SegmentClass::Big));
            let number = folder.strip_prefix("big/").unwrap();
            assert_eq!(big_folder_number(number), Some(id.get() / 4_096));
        }
        let id = SegmentId::new(1).unwrap();
        assert_eq!(id.path(SegmentClass::Log), "log/0000000001.seg");
        assert_eq!(id.next().path(SegmentClass::Big), "big/00/0000000002.seg");
        assert_eq!(SegmentId::new(0), None);
        assert_eq!(SegmentId::new(SEGMENT_ID_MAX + 1), None);
        for name in [
            "1.seg",
            "+000000001.seg",
            "0000000000.seg",
            "00000000001.seg",
            "0000000001",
            "0000000001.seg.seg",
            "0000000001.SEG",
            " 000000001.seg",
        ] {
            assert_eq!(SegmentId::from_file_name(name), None, "{name}");
        }
        for name in ["0", "000", "+1", "", "x0", "99999999"] {
            assert_eq!(big_folder_number(name), None, "{name}");
        }
    }
}
