//! Index entry of a fact, including its value.
//!
//! | size | field      | meaning                                               |
//! | ---- | ---------- | ----------------------------------------------------- |
//! | v    | lsn        | of the record                                         |
//! | v    | segment    | that the record is in                                 |
//! | v    | offset     | of the record's head                                  |
//! | v    | head_bytes | length of the head                                    |
//! |      | value      | of the fact: the remaining bytes                      |
//! | 4    | check      | CRC-32 of the index key and of everything before this |
//!
//! Fields are packed without padding; v is a varint, as in `entry.rs`. The index key of a fact is its name in
//! UTF-8.
//!
//! Guarantees: as in `entry.rs`.
//! Non-goals: the meaning of the value.

use super::byte_codec::{ByteReader, ByteWriter};
use super::entry::{ENTRY_CHECK_BYTES, Location, append_checksum, verify_checksum};
use super::malformed::Malformed;
use crate::limits;

/// Index entry of a fact.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FactEntry {
    /// LSN of the record.
    pub lsn: u64,
    /// Location of the record.
    pub record: Location,
    /// Value of the fact.
    pub value: Vec<u8>,
}

impl FactEntry {
    /// Encodes the index value for the index key `key`.
    pub fn encode(&self, key: &[u8]) -> Vec<u8> {
        debug_assert!(self.value.len() <= limits::FACT_BYTES_MAX);
        let mut out = Vec::with_capacity(self.value.len().saturating_add(FIXED_BYTES_MAX));
        ByteWriter::new(&mut out).varint(self.lsn);
        self.record.encode(&mut out);
        ByteWriter::new(&mut out).bytes(&self.value);
        append_checksum(key, out)
    }

    /// Decodes the index value of `key`.
    pub fn decode(key: &[u8], bytes: &[u8]) -> Result<Self, Malformed> {
        let mut take = ByteReader::new(verify_checksum(key, bytes)?);
        let lsn = take.varint()?;
        let record = Location::decode(&mut take)?;
        if take.remaining() > limits::FACT_BYTES_MAX {
            return Err(Malformed::Length);
        }
        Ok(Self { lsn, record, value: take.rest().to_vec() })
    }
}

/// Maximum size of a fact entry without the value: two numbers of up to ten bytes, two of up to five.
const FIXED_BYTES_MAX: usize = 2 * 10 + 2 * 5 + ENTRY_CHECK_BYTES;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::segment_id::SegmentId;
    use crate::format::testing::assert_every_byte_is_checked;

    #[test]
    fn fact_entry_round_trips_and_detects_any_byte_change() {
        let segment = SegmentId::new(2).unwrap();
        let record = Location { segment, offset: 4_200, head_bytes: 33 };
        for value in [b"".as_slice(), b"issued"] {
            let entry = FactEntry { lsn: 8, record, value: value.to_vec() };
            let bytes = entry.encode(b"token/1");
            assert_eq!(bytes.len(), 5 + value.len() + ENTRY_CHECK_BYTES);
            assert_eq!(FactEntry::decode(b"token/1", &bytes), Ok(entry));
            assert_every_byte_is_checked(&bytes, |bytes| {
                FactEntry::decode(b"token/1", bytes).is_ok()
            });
            assert_eq!(FactEntry::decode(b"token/2", &bytes), Err(Malformed::Checksum));
        }
        let of_ones = |value_bytes| {
            FactEntry::decode(b"k", &append_checksum(b"k", vec![1; 4 + value_bytes]))
                .map(|it| it.value.len())
        };
        assert_eq!(of_ones(limits::FACT_BYTES_MAX), Ok(limits::FACT_BYTES_MAX));
        assert_eq!(of_ones(limits::FACT_BYTES_MAX + 1), Err(Malformed::Length));
    }
}
