//! Usage counters of a bucket or top-level folder.
//!
//! | offset | size | field           | meaning                                 |
//! | ------ | ---- | --------------- | --------------------------------------- |
//! | 0      | 8    | objects         | number of objects, without derived ones |
//! | 8      | 8    | bytes           | of their content                        |
//! | 16     | 8    | derived_objects | number of derived objects               |
//! | 24     | 8    | derived_bytes   | of their content                        |
//! | 32     | 4    | check           | CRC-32 of bytes 0..32                   |
//!
//! The index key is the common prefix of the keys of its objects. An empty bucket or folder has no value.
//!
//! Guarantees: updated in the same batch as the objects.
//! Non-goals: quotas.

use super::byte_codec::{ByteReader, ByteWriter};
use super::entry::{ENTRY_CHECK_BYTES, Entry, append_checksum, verify_checksum};
use super::malformed::Malformed;

/// Size of the encoded value in bytes.
pub const USAGE_BYTES: usize = 36;

const _: () = assert!(USAGE_BYTES == 4 * 8 + ENTRY_CHECK_BYTES);

/// Exact counters of a bucket or top-level folder with everything below it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Number of objects that are not derived.
    pub objects: u64,
    /// Content bytes of objects that are not derived.
    pub bytes: u64,
    /// Number of derived objects.
    pub derived_objects: u64,
    /// Content bytes of derived objects.
    pub derived_bytes: u64,
}

impl Usage {
    /// Returns whether all counters are zero.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Adds an object.
    pub fn add(&mut self, object: &Entry) {
        let (objects, bytes) = self.counters(object);
        *objects = objects.saturating_add(1);
        *bytes = bytes.saturating_add(object.body_bytes());
    }

    /// Subtracts an object.
    pub fn subtract(&mut self, object: &Entry) {
        let (objects, bytes) = self.counters(object);
        *objects = objects.saturating_sub(1);
        *bytes = bytes.saturating_sub(object.body_bytes());
    }

    fn counters(&mut self, object: &Entry) -> (&mut u64, &mut u64) {
        if object.meta.flags.derived {
            (&mut self.derived_objects, &mut self.derived_bytes)
        } else {
            (&mut self.objects, &mut self.bytes)
        }
    }

    /// Encodes the index value.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(USAGE_BYTES);
        ByteWriter::new(&mut out)
            .u64(self.objects)
            .u64(self.bytes)
            .u64(self.derived_objects)
            .u64(self.derived_bytes);
        append_checksum(&[], out)
    }

    /// Decodes the index value.
    pub fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut take = ByteReader::new(verify_checksum(&[], bytes)?);
        let usage = Self {
            objects: take.u64()?,
            bytes: take.u64()?,
            derived_objects: take.u64()?,
            derived_bytes: take.u64()?,
        };
        take.end()?;
        Ok(usage)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::testing::assert_every_byte_is_checked;

    #[test]
    fn usage_round_trips_and_detects_any_byte_change() {
        let usage = Usage { objects: 1, bytes: 2, derived_objects: 3, derived_bytes: u64::MAX };
        let bytes = usage.encode();
        assert_eq!(bytes.len(), USAGE_BYTES);
        assert_eq!(Usage::decode(&bytes), Ok(usage));
        assert_every_byte_is_checked(&bytes, |bytes| Usage::decode(bytes).is_ok());
    }
}
