//! Commit group: header, frames of records, trailer; written by one append, made durable by one sync.
//!
//! | offset | size | field        | meaning                                                           |
//! | ------ | ---- | ------------ | ----------------------------------------------------------------- |
//! | 0      | 8    | magic        | [`GROUP_MAGIC`] XOR the salt of the segment                       |
//! | 8      | 8    | number       | of the group, ascending by one through the whole log              |
//! | 16     | 8    | first_lsn    | record i of the group has LSN first_lsn + i                       |
//! | 24     | 8    | durable_lsn  | every record up to this LSN was durable before this was written   |
//! | 32     | 4    | group_bytes  | of the whole group, header and trailer included                   |
//! | 36     | 4    | record_count | zero for a watermark, which only confirms earlier records         |
//! | 40     | 4    | frame_count  |                                                                   |
//! | 44     | 4    | previous     | checksum of the group header before this one, zero for the first  |
//! | 48     | 4    | checksum     | of bytes 0..48 at the offset of the group                         |
//! | 52     |      | frames       | one for each batch; the records of a batch are atomic             |
//! | -4     | 4    | trailer      | checksum of all frame headers and record heads, at its own offset |
//!
//! A frame:
//!
//! | offset | size | field        | meaning                                  |
//! | ------ | ---- | ------------ | ---------------------------------------- |
//! | 0      | 4    | frame_bytes  | of the frame, this header included       |
//! | 4      | 4    | record_count | not zero                                 |
//! | 8      | 4    | checksum     | of bytes 0..8 at the offset of the frame |
//! | 12     |      | records      | pairs of head and body, without padding  |
//!
//! Guarantees: the fields of a decoded header are consistent with each other.
//! Non-goals: building groups (`group_builder.rs`), iterating over them (`group_view.rs`).

use super::byte_codec::{ByteReader, ByteWriter};
use super::checksum::{CheckClass, Checksum, DiskAddress};
use super::malformed::Malformed;
use super::record::HEAD_COMMON_BYTES;

/// Magic number of a group before XOR with its segment's salt: `TRUGGRP` and a zero byte, in disk order.
pub const GROUP_MAGIC: u64 = 0x0050_5247_4755_5254;
/// Size of a group header in bytes.
pub const GROUP_HEADER_BYTES: usize = 52;
/// Size of a frame header in bytes.
pub const FRAME_HEADER_BYTES: usize = 12;
/// Size of a group trailer in bytes.
pub const GROUP_TRAILER_BYTES: usize = 4;
/// Size of a group without its frames; also the size of a watermark.
pub const GROUP_OVERHEAD_BYTES: usize = GROUP_HEADER_BYTES + GROUP_TRAILER_BYTES;

const CHECKED_BYTES: usize = GROUP_HEADER_BYTES - 4;

const _: () = assert!(GROUP_OVERHEAD_BYTES == 56);

/// Header of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupHeader {
    /// Number of the group in the log.
    pub number: u64,
    /// LSN of the first record, or the next LSN if the group has no records.
    pub first_lsn: u64,
    /// LSN up to which all records were durable before the group was written.
    pub durable_lsn: u64,
    /// Length of the whole group in bytes.
    pub group_bytes: u32,
    /// Number of records; zero for a watermark.
    pub record_count: u32,
    /// Number of frames.
    pub frame_count: u32,
    /// Checksum of the previous group header.
    pub previous: Checksum,
}

/// Header of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameHeader {
    /// Length of the whole frame, this header included.
    pub frame_bytes: u32,
    /// Number of records, at least one.
    pub record_count: u32,
}

impl GroupHeader {
    /// Encodes the header for `place`.
    pub fn encode(&self, place: DiskAddress) -> [u8; GROUP_HEADER_BYTES] {
        let fields = self.fields(place);
        let mut out = Vec::with_capacity(GROUP_HEADER_BYTES);
        ByteWriter::new(&mut out).bytes(&fields).u32(Checksum::of(&fields).bind(place).0);
        out.first_chunk().copied().unwrap_or([0; GROUP_HEADER_BYTES])
    }

    /// Returns the checksum of the header at `place`, which the next group refers to.
    pub fn checksum(&self, place: DiskAddress) -> Checksum {
        Checksum::of(&self.fields(place)).bind(place)
    }

    /// Decodes the header at the start of `bytes` and returns it with its checksum.
    pub fn decode(bytes: &[u8], place: DiskAddress) -> Result<(Self, Checksum), Malformed> {
        let mut take = ByteReader::new(bytes);
        let checked = take.clone().bytes(CHECKED_BYTES)?;
        if take.u64()? != GROUP_MAGIC ^ place.salt {
            return Err(Malformed::Magic);
        }
        let header = Self {
            number: take.u64()?,
            first_lsn: take.u64()?,
            durable_lsn: take.u64()?,
            group_bytes: take.u32()?,
            record_count: take.u32()?,
            frame_count: take.u32()?,
            previous: Checksum(take.u32()?),
        };
        let checksum = Checksum(take.u32()?);
        checksum.verify(CheckClass::Group, checked, place)?;
        header.check()?;
        Ok((header, checksum))
    }

    /// Returns the LSN of the last record up to and including this group.
    pub fn last_lsn(&self) -> u64 {
        self.next_lsn().saturating_sub(1)
    }

    /// Returns the LSN of the first record after this group.
    pub fn next_lsn(&self) -> u64 {
        self.first_lsn.saturating_add(u64::from(self.record_count))
    }

    /// Returns whether the group has no records and only confirms that earlier ones are durable.
    pub fn is_watermark(&self) -> bool {
        self.record_count == 0
    }

    /// Checks that the fields are consistent with each other.
    pub fn check(&self) -> Result<(), Malformed> {
        // A frame has at least one record, and a record is at least as long as the common part of a head.
        let least = (GROUP_OVERHEAD_BYTES as u64)
            .saturating_add(u64::from(self.frame_count) * FRAME_HEADER_BYTES as u64)
            .saturating_add(u64::from(self.record_count) * HEAD_COMMON_BYTES as u64);
        if u64::from(self.group_bytes) < least {
            return Err(Malformed::Length);
        }
        if self.frame_count > self.record_count || (self.record_count > 0 && self.frame_count == 0)
        {
            return Err(Malformed::Count);
        }
        let lsns_end = self.first_lsn.checked_add(u64::from(self.record_count));
        if lsns_end.is_none() || self.durable_lsn >= self.first_lsn {
            return Err(Malformed::Order);
        }
        Ok(())
    }

    fn fields(&self, place: DiskAddress) -> Vec<u8> {
        let mut fields = Vec::with_capacity(CHECKED_BYTES);
        ByteWriter::new(&mut fields)
            .u64(GROUP_MAGIC ^ place.salt)
            .u64(self.number)
            .u64(self.first_lsn)
            .u64(self.durable_lsn)
            .u32(self.group_bytes)
            .u32(self.record_count)
            .u32(self.frame_count)
            .u32(self.previous.0);
        fields
    }
}

impl FrameHeader {
    /// Appends the encoded header for `place`.
    pub fn encode(&self, place: DiskAddress, out: &mut Vec<u8>) {
        let mut fields = Vec::with_capacity(FRAME_HEADER_BYTES);
        ByteWriter::new(&mut fields).u32(self.frame_bytes).u32(self.record_count);
        let checksum = Checksum::of(&fields).bind(place);
        ByteWriter::new(out).bytes(&fields).u32(checksum.0);
    }

    /// Decodes the header at the start of `bytes`.
    pub fn decode(bytes: &[u8], place: DiskAddress) -> Result<Self, Malformed> {
        let mut take = ByteReader::new(bytes);
        let checked = take.clone().bytes(FRAME_HEADER_BYTES - 4)?;
        let header = Self { frame_bytes: take.u32()?, record_count: take.u32()? };
        Checksum(take.u32()?).verify(CheckClass::Group, checked, place)?;
        let least = (FRAME_HEADER_BYTES as u64)
            .saturating_add(u64::from(header.record_count) * HEAD_COMMON_BYTES as u64);
        if header.record_count == 0 {
            return Err(Malformed::Count);
        }
        if u64::from(header.frame_bytes) < least {
            return Err(Malformed::Length);
        }
        Ok(header)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::testing::{assert_every_byte_is_checked, test_address};

    fn header() -> GroupHeader {
        GroupHeader {
            number: 3,
            first_lsn: 10,
            durable_lsn: 9,
            group_bytes: 400,
            record_count: 4,
            frame_count: 2,
            previous: Checksum(0x1234_5678),
        }
    }

    #[test]
    fn group_header_round_trips_and_detects_any_byte_change() {
        let bytes = header().encode(test_address(4_096));
        let own = header().checksum(test_address(4_096));
        assert_eq!(GroupHeader::decode(&bytes, test_address(4_096)), Ok((header(), own)));
        assert_every_byte_is_checked(&bytes, |bytes| {
            GroupHeader::decode(bytes, test_address(4_096)).is_ok()
        });
        assert_eq!(GroupHeader::decode(&bytes, test_address(4_097)), Err(Malformed::Checksum));
        let mut other = test_address(4_096);
        other.salt ^= 1;
        assert_eq!(GroupHeader::decode(&bytes, other), Err(Malformed::Magic));
    }

    #[test]
    fn invalid_group_headers_are_rejected_with_their_reason() {
        let decode = |header: GroupHeader| {
            GroupHeader::decode(&header.encode(test_address(0)), test_address(0))
                .map(|(header, _)| header)
        };
        let watermark =
            GroupHeader { group_bytes: 56, record_count: 0, frame_count: 0, ..header() };
        assert_eq!(decode(watermark), Ok(watermark));
        assert!(watermark.is_watermark() && watermark.last_lsn() == 9);
        let short = GroupHeader { group_bytes: 55, ..watermark };
        assert_eq!(decode(short), Err(Malformed::Length));
        let crowded = GroupHeader { record_count: u32::MAX, ..header() };
        assert_eq!(decode(crowded), Err(Malformed::Length));
        let frameless = GroupHeader { frame_count: 0, ..header() };
        assert_eq!(decode(frameless), Err(Malformed::Count));
        let empty_frames = GroupHeader { frame_count: 5, ..header() };
        assert_eq!(decode(empty_frames), Err(Malformed::Count));
        let foresight = GroupHeader { durable_lsn: 10, ..header() };
        assert_eq!(decode(foresight), Err(Malformed::Order));
        let overflow = GroupHeader { first_lsn: u64::MAX, ..header() };
        assert_eq!(decode(overflow), Err(Malformed::Order));
    }

    #[test]
    fn frame_header_round_trips_and_detects_any_byte_change() {
        let encode = |header: FrameHeader| {
            let mut out = Vec::new();
            header.encode(test_address(70), &mut out);
            out
        };
        let header = FrameHeader { frame_bytes: 44, record_count: 2 };
        let bytes = encode(header);
        assert_eq!(bytes.len(), FRAME_HEADER_BYTES);
        assert_eq!(FrameHeader::decode(&bytes, test_address(70)), Ok(header));
        assert_every_byte_is_checked(&bytes, |bytes| {
            FrameHeader::decode(bytes, test_address(70)).is_ok()
        });
        let none = encode(FrameHeader { frame_bytes: 44, record_count: 0 });
        assert_eq!(FrameHeader::decode(&none, test_address(70)), Err(Malformed::Count));
        let short = encode(FrameHeader { frame_bytes: 43, record_count: 2 });
        assert_eq!(FrameHeader::decode(&short, test_address(70)), Err(Malformed::Length));
    }
}
