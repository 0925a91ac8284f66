//! Applied position: how far the index has followed the log.
//!
//! | offset | size | field          | meaning                                                        |
//! | ------ | ---- | -------------- | -------------------------------------------------------------- |
//! | 0      | 8    | lsn            | of the last record applied, zero for none                      |
//! | 8      | 8    | segment        | log segment in which replay resumes, zero for none             |
//! | 16     | 8    | offset         | in that segment, of the next group                             |
//! | 24     | 8    | next_group     | number of that group                                           |
//! | 32     | 8    | next_segment   | smallest unused segment id                                     |
//! | 40     | 8    | orphan_floor   | segments below this id were examined before: none is an orphan |
//! | 48     | 4    | previous_group | checksum of the last group header applied                      |
//! | 52     | 4    | check          | CRC-32 of bytes 0..52                                          |
//!
//! Guarantees: written in the same transaction as the applied changes.
//! Non-goals: the replay itself.

use super::byte_codec::{ByteReader, ByteWriter};
use super::checksum::Checksum;
use super::entry::{ENTRY_CHECK_BYTES, append_checksum, verify_checksum};
use super::malformed::Malformed;
use super::segment_id::SegmentId;

/// Size of the encoded value in bytes.
pub const APPLIED_POSITION_BYTES: usize = 56;

const _: () = assert!(APPLIED_POSITION_BYTES == 6 * 8 + 4 + ENTRY_CHECK_BYTES);

/// Position in the log up to which the index has applied records, and at which replay resumes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AppliedPosition {
    /// LSN of the last record applied; zero if there is none.
    pub lsn: u64,
    /// Log segment in which replay resumes; `None` before the first segment exists.
    pub segment: Option<SegmentId>,
    /// Offset of the next group in that segment.
    pub offset: u64,
    /// Number of the next group.
    pub next_group: u64,
    /// Checksum of the last group header applied.
    pub previous_group: Checksum,
    /// Smallest segment id that was never used.
    pub next_segment: u64,
    /// Segment id below which no segment is an orphan.
    pub orphan_floor: u64,
}

impl AppliedPosition {
    /// Encodes the index value.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(APPLIED_POSITION_BYTES);
        ByteWriter::new(&mut out)
            .u64(self.lsn)
            .u64(self.segment.map_or(0, SegmentId::get))
            .u64(self.offset)
            .u64(self.next_group)
            .u64(self.next_segment)
            .u64(self.orphan_floor)
            .u32(self.previous_group.0);
        append_checksum(&[], out)
    }

    /// Decodes the index value.
    pub fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut take = ByteReader::new(verify_checksum(&[], bytes)?);
        let lsn = take.u64()?;
        let segment = match take.u64()? {
            0 => None,
            id => Some(SegmentId::new(id).ok_or(Malformed::Misplaced)?),
        };
        let offset = take.u64()?;
        let next_group = take.u64()?;
        let next_segment = take.u64()?;
        let orphan_floor = take.u64()?;
        let previous_group = Checksum(take.u32()?);
        take.end()?;
        Ok(Self { lsn, segment, offset, next_group, previous_group, next_segment, orphan_floor })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::testing::assert_every_byte_is_checked;

    #[test]
    fn applied_position_round_trips_and_detects_byte_changes() {
        let position = AppliedPosition {
            lsn: 100,
            segment: SegmentId::new(3),
            offset: 8_000,
            next_group: 17,
            previous_group: Checksum(0xffff_0000),
            next_segment: 9,
            orphan_floor: 8,
        };
        for position in [position, AppliedPosition::default()] {
            let bytes = position.encode();
            assert_eq!(bytes.len(), APPLIED_POSITION_BYTES);
            assert_eq!(AppliedPosition::decode(&bytes), Ok(position));
            assert_every_byte_is_checked(&bytes, |b| AppliedPosition::decode(b).is_ok());
        }
    }

    #[test]
    fn impossible_applied_positions_are_rejected() {
        let mut bytes = AppliedPosition::default().encode();
        bytes.truncate(APPLIED_POSITION_BYTES - ENTRY_CHECK_BYTES);
        bytes[8..16].fill(0xff);
        assert_eq!(
            AppliedPosition::decode(&append_checksum(&[], bytes)),
            Err(Malformed::Misplaced)
        );
    }
}
