//! Index entry of a retained big segment: its object was deleted or replaced, and its file is retained for undelete.
//!
//! | offset | size | field    | meaning                                    |
//! | ------ | ---- | -------- | ------------------------------------------ |
//! | 0      | 8    | ended_ms | deletion or replacement time of its object |
//! | 8      | 8    | bytes    | length of the file                         |
//! | 16     | 4    | check    | CRC-32 of the key and of bytes 0..16       |
//!
//! Non-goals: the retention window.

use super::byte_codec::{ByteReader, ByteWriter};
use super::entry::{ENTRY_CHECK_BYTES, append_checksum, verify_checksum};
use super::malformed::Malformed;
use super::segment_id::SegmentId;

/// Size of the encoded value in bytes.
pub const RETAINED_SEGMENT_BYTES: usize = 20;

const _: () = assert!(RETAINED_SEGMENT_BYTES == 2 * 8 + ENTRY_CHECK_BYTES);

/// Big segment of a deleted or replaced object, retained for undelete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetainedSegment {
    /// Deletion or replacement time of its object, in milliseconds since 1970.
    pub ended_ms: u64,
    /// Length of the file in bytes.
    pub bytes: u64,
}

impl RetainedSegment {
    /// Encodes the index value of a segment.
    pub fn encode(&self, segment: SegmentId) -> Vec<u8> {
        let mut out = Vec::with_capacity(RETAINED_SEGMENT_BYTES);
        ByteWriter::new(&mut out).u64(self.ended_ms).u64(self.bytes);
        append_checksum(&segment.get().to_le_bytes(), out)
    }

    /// Decodes the index value of a segment.
    pub fn decode(segment: SegmentId, bytes: &[u8]) -> Result<Self, Malformed> {
        let mut take = ByteReader::new(verify_checksum(&segment.get().to_le_bytes(), bytes)?);
        let retained = Self { ended_ms: take.u64()?, bytes: take.u64()? };
        take.end()?;
        Ok(retained)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::testing::assert_every_byte_is_checked;

    #[test]
    fn retained_segment_round_trips_and_is_bound_to_its_id() {
        let segment = SegmentId::new(3).unwrap();
        let retained = RetainedSegment { ended_ms: 1_700_000_000_000, bytes: 5 << 30 };
        let bytes = retained.encode(segment);
        assert_eq!(bytes.len(), RETAINED_SEGMENT_BYTES);
        assert_eq!(RetainedSegment::decode(segment, &bytes), Ok(retained));
        assert!(RetainedSegment::decode(segment.next(), &bytes).is_err());
        assert_every_byte_is_checked(&bytes, |bytes| {
            RetainedSegment::decode(segment, bytes).is_ok()
        });
    }
}
