//! Scrub result of a segment: verification time and damage count of its live data.
//!
//! | offset | size | field        | meaning                              |
//! | ------ | ---- | ------------ | ------------------------------------ |
//! | 0      | 8    | verified_ms  | completion time of the verification  |
//! | 8      | 8    | damage_count | corrupt locations, listed or not     |
//! | 16     | 4    | check        | CRC-32 of the key and of bytes 0..16 |
//!
//! Non-goals: the corrupt locations (`damage.rs`).

use super::byte_codec::{ByteReader, ByteWriter};
use super::entry::{ENTRY_CHECK_BYTES, append_checksum, verify_checksum};
use super::malformed::Malformed;
use super::segment_id::SegmentId;

/// Size of the encoded value in bytes.
pub const SCRUB_RESULT_BYTES: usize = 20;

const _: () = assert!(SCRUB_RESULT_BYTES == 2 * 8 + ENTRY_CHECK_BYTES);

/// Result of the last verification of a whole segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScrubResult {
    /// Completion time, in milliseconds since 1970.
    pub verified_ms: u64,
    /// Number of corrupt locations.
    pub damage_count: u64,
}

impl ScrubResult {
    /// Encodes the index value of a segment.
    pub fn encode(&self, segment: SegmentId) -> Vec<u8> {
        let mut out = Vec::with_capacity(SCRUB_RESULT_BYTES);
        ByteWriter::new(&mut out).u64(self.verified_ms).u64(self.damage_count);
        append_checksum(&segment.get().to_le_bytes(), out)
    }

    /// Decodes the index value of a segment.
    pub fn decode(segment: SegmentId, bytes: &[u8]) -> Result<Self, Malformed> {
        let mut take = ByteReader::new(verify_checksum(&segment.get().to_le_bytes(), bytes)?);
        let result = Self { verified_ms: take.u64()?, damage_count: take.u64()? };
        take.end()?;
        Ok(result)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::testing::assert_every_byte_is_checked;

    #[test]
    fn scrub_result_round_trips_and_is_bound_to_its_segment() {
        let segment = SegmentId::new(3).unwrap();
        let result = ScrubResult { verified_ms: 1_700_000_000_000, damage_count: 2 };
        let bytes = result.encode(segment);
        assert_eq!(bytes.len(), SCRUB_RESULT_BYTES);
        assert_eq!(ScrubResult::decode(segment, &bytes), Ok(result));
        assert!(ScrubResult::decode(segment.next(), &bytes).is_err());
        assert_every_byte_is_checked(&bytes, |bytes| ScrubResult::decode(segment, bytes).is_ok());
    }
}
