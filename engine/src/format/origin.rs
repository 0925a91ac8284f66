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

use super::bytes::{Put, Take};
use super::checksum::{CheckClass, Checksum, Place};
use super::malformed::Malformed;
use super::record::take_segments;
use super::segment_header::{
    SEGMENT_HEADER_COPY_BYTES, SEGMENT_HEADER_FIELD_BYTES, SegmentHeader, SegmentId,
};
use crate::limits;

/// Size of the fixed part of an origin.
pub const ORIGIN_FIXED_BYTES: usize = 12;

const ORIGIN_BYTES_MAX: usize =
    ORIGIN_FIXED_BYTES + limits::COMPACTION_SEGMENTS_MAX * 8 + limits::COVERS_MAX * 16;
const _: () =
    assert!(SEGMENT_HEADER_FIELD_BYTES + ORIGIN_BYTES_MAX <= SEGMENT_HEADER_COPY_BYTES, "it fits");

/// Origin of the records of a compacted segment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Origin {
    /// Replaced segments, log and compacted ones.
    pub inputs: Vec<SegmentId>,
    /// LSN ranges of the log segments that were replaced, directly or through compacted inputs.
    pub covers: Covers,
}

/// Set of LSN ranges, ascending and not adjacent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Covers(Vec<(u64, u64)>);

impl Covers {
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

    /// Returns whether a whole range is in the set; an empty range is.
    pub fn contain(&self, first: u64, last: u64) -> bool {
        first > last || self.0.iter().any(|&(from, to)| from <= first && last <= to)
    }

    /// Returns the part between two LSNs, both included.
    #[must_use]
    pub fn between(&self, first: u64, last: u64) -> Self {
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
            && self.covers.0.len() <= limits::COVERS_MAX
    }

    fn encode(&self, place: Place) -> Vec<u8> {
        debug_assert!(self.fits());
        let mut out = Vec::new();
        Put::new(&mut out)
            .u16(u16::try_from(self.inputs.len()).unwrap_or(u16::MAX))
            .u16(u16::try_from(self.covers.0.len()).unwrap_or(u16::MAX))
            .zeros(4);
        for input in &self.inputs {
            Put::new(&mut out).u64(input.get());
        }
        for &(first, last) in &self.covers.0 {
            Put::new(&mut out).u64(first).u64(last);
        }
        let checksum = Checksum::of(&out).at(place);
        Put::new(&mut out).u32(checksum.0);
        out
    }

    fn decode(bytes: &[u8], place: Place) -> Result<Self, Malformed> {
        let mut take = Take::new(bytes);
        let input_count = take.u16()?;
        let cover_count = take.u16()?;
        let counted = usize::from(input_count) * 8 + usize::from(cover_count) * 16;
        let checked = Take::new(bytes).bytes(counted.saturating_add(ORIGIN_FIXED_BYTES - 4))?;
        let reserved = take.zeros(4);
        let inputs = take_segments(&mut take, input_count);
        let stretches: Result<Vec<_>, Malformed> =
            (0..cover_count).map(|_| Ok((take.u64()?, take.u64()?))).collect();
        let stretches = stretches?;
        Checksum(take.u32()?).verify(CheckClass::Header, checked, place)?;
        reserved?;
        let inputs = inputs?;
        take.zeros(take.remaining())?;
        let mut covers = Covers::default();
        for &(first, last) in &stretches {
            covers.add(first, last);
        }
        let ascends = inputs.is_sorted_by(|one, next| one < next);
        if !ascends || covers.0 != stretches {
            return Err(Malformed::Order);
        }
        let origin = Self { inputs, covers };
        if origin.fits() { Ok(origin) } else { Err(Malformed::Count) }
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;
    use crate::format::testing::{context, every_byte_counts, place};
    use crate::format::{SEGMENT_HEADER_BYTES, SegmentClass};

    fn ids(ids: &[u64]) -> Vec<SegmentId> {
        ids.iter().map(|id| SegmentId::new(*id).unwrap()).collect()
    }

    fn origin() -> Origin {
        let mut covers = Covers::default();
        covers.add(1, 10);
        covers.add(50, 90);
        Origin { inputs: ids(&[1, 2, 9]), covers }
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
    fn an_origin_survives_its_bytes_and_every_byte_counts() {
        let bytes = origin().encode(place(104));
        assert_eq!(Origin::decode(&bytes, place(104)), Ok(origin()));
        every_byte_counts(&bytes, |bytes| Origin::decode(bytes, place(104)).is_ok());
    }

    #[test]
    fn one_good_copy_of_a_compacted_segments_page_is_enough() {
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
    fn stretches_that_touch_become_one() {
        let mut covers = Covers::default();
        for (first, last) in [(10, 19), (40, 49), (1, 5), (20, 29), (8, 7), (6, 9)] {
            covers.add(first, last);
        }
        assert_eq!(covers.0, [(1, 29), (40, 49)]);
        assert!(covers.contain(3, 29) && covers.contain(9, 8) && !covers.contain(29, 40));
        assert_eq!(covers.between(0, u64::MAX), covers);
        assert_eq!(covers.between(20, 45).0, [(20, 29), (40, 45)]);
        assert_eq!(covers.between(30, 39).count(), 0);
        covers.add(0, u64::MAX);
        assert_eq!(covers.count(), 1);
    }
}
