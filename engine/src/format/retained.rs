//! Index entry of a retained big segment: its object was deleted or replaced, and its file is retained for undelete.
//!
//! | offset | size | field    | meaning                                    |
//! | ------ | ---- | -------- | ------------------------------------------ |
//! | 0      | 8    | ended_ms | deletion or replacement time of its object |
//! | 8      | 8    | bytes    | length of the file                         |
//! | 16     | 4    | check    | CRC-32 of the key and of bytes 0..16       |
//!
//! Non-goals: the retention window.

use super::bytes::{Put, Take};
use super::entry::{ENTRY_CHECK_BYTES, open, seal};
use super::malformed::Malformed;
use super::segment_header::SegmentId;

/// Size of the encoded value in bytes.
pub const RETAINED_BYTES: usize = 20;

const _: () = assert!(RETAINED_BYTES == 2 * 8 + ENTRY_CHECK_BYTES);

/// Big segment that no current object refers to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retained {
    /// Deletion or replacement time of its object, in milliseconds since 1970.
    pub ended_ms: u64,
    /// Length of the file in bytes.
    pub bytes: u64,
}

impl Retained {
    /// Encodes the index value of a segment.
    pub fn encode(&self, segment: SegmentId) -> Vec<u8> {
        let mut out = Vec::with_capacity(RETAINED_BYTES);
        Put::new(&mut out).u64(self.ended_ms).u64(self.bytes);
        seal(&segment.get().to_le_bytes(), out)
    }

    /// Decodes the index value of a segment.
    pub fn decode(segment: SegmentId, bytes: &[u8]) -> Result<Self, Malformed> {
        let mut take = Take::new(open(&segment.get().to_le_bytes(), bytes)?);
        let retained = Self { ended_ms: take.u64()?, bytes: take.u64()? };
        take.end()?;
        Ok(retained)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::testing::every_byte_counts;

    #[test]
    fn what_is_known_of_a_retained_segment_survives_its_bytes_and_belongs_to_it() {
        let segment = SegmentId::new(3).unwrap();
        let retained = Retained { ended_ms: 1_700_000_000_000, bytes: 5 << 30 };
        let bytes = retained.encode(segment);
        assert_eq!(bytes.len(), RETAINED_BYTES);
        assert_eq!(Retained::decode(segment, &bytes), Ok(retained));
        assert!(Retained::decode(segment.next(), &bytes).is_err());
        every_byte_counts(&bytes, |bytes| Retained::decode(segment, bytes).is_ok());
    }
}
