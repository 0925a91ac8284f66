//! The fact entry: the index's value for a fact, which holds the fact's own value.
//!
//! | offset | size | field      | meaning                                               |
//! | ------ | ---- | ---------- | ----------------------------------------------------- |
//! | 0      | 8    | lsn        | of the record                                         |
//! | 8      | 8    | segment    | that the record is in                                 |
//! | 16     | 8    | offset     | of the record's head                                  |
//! | 24     | 4    | head_bytes | length of the head                                    |
//! | 28     |      | value      | of the fact                                           |
//! | -4     | 4    | check      | CRC-32 of the index key and of everything before this |
//!
//! The index key of a fact is its name in UTF-8.
//!
//! Promises: as in `entry.rs`. Never here: what the value means.

use super::bytes::{Put, Take};
use super::entry::{ENTRY_CHECK_BYTES, Location, open, seal};
use super::malformed::Malformed;
use crate::limits;

/// The fixed part of a fact entry.
pub const FACT_ENTRY_FIXED_BYTES: usize = 28;

/// A fact as the index knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FactEntry {
    /// The LSN of its record.
    pub lsn: u64,
    /// Where its record is.
    pub record: Location,
    /// Its value.
    pub value: Vec<u8>,
}

impl FactEntry {
    /// The value under the index key `key`.
    pub fn encode(&self, key: &[u8]) -> Vec<u8> {
        debug_assert!(self.value.len() <= limits::FACT_BYTES_MAX);
        let capacity =
            (FACT_ENTRY_FIXED_BYTES + ENTRY_CHECK_BYTES).saturating_add(self.value.len());
        let mut out = Vec::with_capacity(capacity);
        Put::new(&mut out).u64(self.lsn);
        self.record.encode(&mut out);
        Put::new(&mut out).bytes(&self.value);
        seal(key, out)
    }

    /// Reads the value that was found under `key`.
    pub fn decode(key: &[u8], bytes: &[u8]) -> Result<Self, Malformed> {
        let mut take = Take::new(open(key, bytes)?);
        let lsn = take.u64()?;
        let record = Location::decode(&mut take)?;
        if take.remaining() > limits::FACT_BYTES_MAX {
            return Err(Malformed::Length);
        }
        Ok(Self { lsn, record, value: take.rest().to_vec() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::segment_header::SegmentId;
    use crate::format::testing::every_byte_counts;

    #[test]
    fn a_fact_entry_survives_its_bytes_and_every_byte_counts() {
        let segment = SegmentId::new(2).unwrap();
        let record = Location { segment, offset: 4_200, head_bytes: 33 };
        for value in [b"".as_slice(), b"issued"] {
            let entry = FactEntry { lsn: 8, record, value: value.to_vec() };
            let bytes = entry.encode(b"token/1");
            assert_eq!(bytes.len(), FACT_ENTRY_FIXED_BYTES + value.len() + ENTRY_CHECK_BYTES);
            assert_eq!(FactEntry::decode(b"token/1", &bytes), Ok(entry));
            every_byte_counts(&bytes, |bytes| FactEntry::decode(b"token/1", bytes).is_ok());
            assert_eq!(FactEntry::decode(b"token/2", &bytes), Err(Malformed::Checksum));
        }
        let long = seal(b"k", vec![1; FACT_ENTRY_FIXED_BYTES + limits::FACT_BYTES_MAX + 1]);
        assert!(FactEntry::decode(b"k", &long).is_err());
    }
}
