//! Origin of a compacted segment: its inputs and the LSN ranges it replaces.
//!
//! The origin is stored in both copies of the header page, at offset 104 of each copy:
//!
//! | offset | size | field       | meaning                                              |
//! | ------ | ---- | ----------- | ---------------------------------------------------- |
//! | 0      | 2    | input_count |                                                      |
//! | 2      | 2    | cover_count |                                                      |
//! | 4      | 4    | reserved    | zero                                                 |
//! | 8      | 8 n  | inputs      | ids of the replaced segments, ascending              |
//! |        | 16 m | covers      | first and last LSN of each replaced range of the log |
//! | -4     | 4    | checksum    | of all before, at the offset of the origin           |
//!
//! Ranges are ascending and not adjacent. Zeros follow up to the end of the copy.
//!
//! Guarantees: one corrupt copy is tolerated.
//! Non-goals: the decision when a segment may be replaced.

use super::byte_codec::{ByteReader, ByteWriter};
use super::checksum::{CheckClass, Checksum, DiskAddress};
use super::malformed::Malformed;
use super::record::take_segments;
use super::segment_header::{SEGMENT_HEADER_COPY_BYTES, SEGMENT_HEADER_FIELD_BYTES, SegmentHeader};
use super::segment_id::SegmentId;
use crate::limits;

/// Size of the fixed part of an origin.
pub const ORIGIN_FIXED_BYTES: usize = 12;

const ORIGIN_BYTES_MAX: usize =
    ORIGIN_FIXED_BYTES + limits::COMPACTION_SEGMENTS_MAX * 8 + limits::LSN_RANGES_MAX * 16;
const _: () =
    assert!(SEGMENT_HEADER_FIELD_BYTES + ORIGIN_BYTES_MAX <= SEGMENT_HEADER_COPY_BYTES, "it fits");

/// Origin of the records of a compacted segment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Origin {
    /// Ids of the replaced log and compacted segments.
    pub inputs: Vec<SegmentId>,
    /// LSN ranges of the log that this segment replaces, directly or through compacted inputs.
    pub lsn_ranges: LsnRanges,
}

/// Set of LSN ranges, ascending and not adjacent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LsnRanges(Vec<(u64, u64)>);

impl LsnRanges {
    /// Adds a range from its first to its last LSN; an empty range adds nothing.
    pub fn add(&mut self, first: u64, last: u64) {
        if first > last {
            return;
        }
        let (mut first, mut last) = (first, last);
        // Overlapping and adjacent ranges are merged.
        self.0.retain(|&(other_first, other_last)| {
            let touches =
                other_first <= last.saturating_add(1) && first <= other_last.saturating_add(1);
            if touches {
                first = first.min(other_first);
                last = last.max(other_last);
            }
            !touches
        });
        let at = self.0.partition_point(|&(other, _)| other < first);
        self.0.insert(at, (first, last));
    }

    /// Adds all ranges of another set.
    pub fn add_all(&mut self, other: &Self) {
        for &(first, last) in &other.0 {
            self.add(first, last);
        }
    }

    /// Returns whether the set contains every LSN from `first` to `last`. An empty range is always contained.
    pub fn contains(&self, first: u64, last: u64) -> bool {
        first > last || self.0.iter().any(|&(from, to)| from <= first && last <= to)
    }

    /// Returns the part of the set from `first` to `last`, both included.
    #[must_use]
    pub fn intersect(&self, first: u64, last: u64) -> Self {
        let cut = self.0.iter().map(|&(from, to)| (from.max(first), to.min(last)));
        Self(cut.filter(|(from, to)| from <= to).collect())
    }

    /// Returns the number of ranges.
    pub fn count(&self) -> usize {
        self.0.len()
    }
}

impl Origin {
    /// Encodes the header page of a compacted segment.
    pub fn encode_page(&self, header: &SegmentHeader) -> Vec<u8> {
        header.encode_page_with(|place| self.encode(place))
    }

    /// Decodes the first intact copy in a header page.
    pub fn decode_page(page: &[u8], header: &SegmentHeader) -> Result<Self, Malformed> {
        let copy = |number: usize| {
            let start = number.saturating_mul(SEGMENT_HEADER_COPY_BYTES);
            let end = start.saturating_add(SEGMENT_HEADER_COPY_BYTES);
            let start = start.saturating_add(SEGMENT_HEADER_FIELD_BYTES);
            let bytes = page.get(start..end).ok_or(Malformed::Short)?;
            Self::decode(bytes, header.context().at(start as u64))
        };
        copy(0).or_else(|why| copy(1).map_err(|_| why))
    }

    /// Returns whether the origin is within the bounds of the format.
    pub fn fits(&self) -> bool {
        self.inputs.len() <= limits::COMPACTION_SEGMENTS_MAX
            && self.lsn_ranges.0.len() <= limits::LSN_RANGES_MAX
    }

    fn encode(&self, place: DiskAddress) -> Vec<u8> {
        debug_assert!(self.fits());
        let mut out = Vec::new();
        ByteWriter::new(&mut out)
            .u16(u16::try_from(self.inputs.len()).unwrap_or(u16::MAX))
            .u16(u16::try_from(self.lsn_ranges.0.len()).unwrap_or(u16::MAX))
            .zeros(4);
        for input in &self.inputs {
            ByteWriter::new(&mut out).u64(input.get());
        }
        for &(first, last) in &self.lsn_ranges.0 {
            ByteWriter::new(&mut out).u64(first).u64(last);
        }
        let checksum = Checksum::of(&out).bind(place);
        ByteWriter::new(&mut out).u32(checksum.0);
        out
    }

    fn decode(bytes: &[u8], place: DiskAddress) -> Result<Self, Malformed> {
        let mut take = ByteReader::new(bytes);
        let input_count = take.u16()?;
        let cover_count = take.u16()?;
        let counted = usize::from(input_count) * 8 + usize::from(cover_count) * 16;
        let checked =
            ByteReader::new(bytes).bytes(counted.saturating_add(ORIGIN_FIXED_BYTES - 4))?;
        let reserved = take.zeros(4);
        let inputs = take_segments(&mut take, input_count);
        let stretches: Result<Vec<_>, Malformed> =
            (0..cover_count).map(|_| Ok((take.u64()?, take.u64()?))).collect();
        let stretches = stretches?;
        Checksum(take.u32()?).verify(CheckClass::Header, checked, place)?;
        reserved?;
        let inputs = inputs?;
        take.zeros(take.remaining())?;
        let mut covers = LsnRanges::default();
        for &(first, last) in &stretches {
            covers.add(first, last);
        }
        let ascends = inputs.is_sorted_by(|one, next| one < next);
        if !ascends || covers.0 != stretches {
            return Err(Malformed::Order);
        }
        let origin = Self { inputs, lsn_ranges: covers };
        if origin.fits() { Ok(origin) } else { Err(Malformed::Count) }
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;
    use crate::format::testing::{assert_every_byte_is_checked, context, test_address};
    use crate::format::{SEGMENT_HEADER_BYTES, SegmentClass};

    fn ids(ids: &[u64]) -> Vec<SegmentId> {
        ids.iter().map(|id| SegmentId::new(*id).unwrap()).collect()
    }

    fn origin() -> Origin {
        let mut covers = LsnRanges::default();
        covers.add(1, 10);
        covers.add(50, 90);
        Origin { inputs: ids(&[1, 2, 9]), lsn_ranges: covers }
    }

    fn header() -> SegmentHeader {
        SegmentHeader {
            store: Uuid::from_u128(7),
            segment: context().segment,
            class: SegmentClass::Compacted,
            salt: context().salt,
            base_lsn: 1,
            predecessor: None,
            first_group: 1,
            previous_group: Checksum::default(),
            created_ms: 5,
        }
    }

    #[test]
    fn origin_round_trips_and_detects_any_byte_change() {
        let bytes = origin().encode(test_address(104));
        assert_eq!(Origin::decode(&bytes, test_address(104)), Ok(origin()));
        assert_every_byte_is_checked(&bytes, |bytes| {
            Origin::decode(bytes, test_address(104)).is_ok()
        });
    }

    #[test]
    fn compacted_segment_header_is_read_from_either_copy() {
        let page = origin().encode_page(&header());
        assert_eq!(page.len(), SEGMENT_HEADER_BYTES);
        for damaged in [110, 104 + SEGMENT_HEADER_COPY_BYTES] {
            let mut page = page.clone();
            page[damaged] ^= 1;
            let found = SegmentHeader::decode_page(&page).unwrap();
            assert_eq!(found, header());
            assert_eq!(Origin::decode_page(&page, &found), Ok(origin()));
        }
        let mut both = page;
        both[104] ^= 1;
        both[104 + SEGMENT_HEADER_COPY_BYTES] ^= 1;
        assert!(Origin::decode_page(&both, &header()).is_err());
    }

    #[test]
    fn adjacent_lsn_ranges_are_merged() {
        let mut covers = LsnRanges::default();
        for (first, last) in [(10, 19), (40, 49), (1, 5), (20, 29), (8, 7), (6, 9)] {
            covers.add(first, last);
        }
        assert_eq!(covers.0, [(1, 29), (40, 49)]);
        assert!(covers.contains(3, 29) && covers.contains(9, 8) && !covers.contains(29, 40));
        assert_eq!(covers.intersect(0, u64::MAX), covers);
        assert_eq!(covers.intersect(20, 45).0, [(20, 29), (40, 45)]);
        assert_eq!(covers.intersect(30, 39).count(), 0);
        covers.add(0, u64::MAX);
        assert_eq!(covers.count(), 1);
    }
}
