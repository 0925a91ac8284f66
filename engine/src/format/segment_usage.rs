//! Segment usage: total, live and punched bytes of a segment.
//!
//! | offset | size | field        | meaning                                             |
//! | ------ | ---- | ------------ | --------------------------------------------------- |
//! | 0      | 8    | record_bytes | of all appended records, heads and bodies           |
//! | 8      | 8    | live_bytes   | of the records that the index refers to             |
//! | 16     | 8    | record_count | number of appended records                          |
//! | 24     | 8    | live_count   | number of records that the index refers to          |
//! | 32     | 8    | removals     | number of tombstones and fact deletions, never live |
//! | 40     | 8    | punched      | bytes of dead bodies whose space was reclaimed      |
//! | 48     | 1    | class        | 1 log, 2 big, 3 compacted                           |
//! | 49     | 3    | reserved     | zero                                                |
//! | 52     | 4    | check        | CRC-32 of bytes 0..52                               |
//!
//! Guarantees: plain counters; only fsck checks that live values do not exceed totals.
//! Non-goals: the selection of segments for compaction.

use super::byte_codec::{ByteReader, ByteWriter};
use super::entry::{ENTRY_CHECK_BYTES, append_checksum, verify_checksum};
use super::malformed::Malformed;
use super::record::Record;
use super::segment_id::SegmentClass;

/// Size of the encoded value in bytes.
pub const SEGMENT_USAGE_BYTES: usize = 56;

const _: () = assert!(SEGMENT_USAGE_BYTES == 6 * 8 + 1 + 3 + ENTRY_CHECK_BYTES);

/// Total and live records of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SegmentUsage {
    /// Class of the segment.
    pub class: SegmentClass,
    /// Bytes of all records, heads and bodies.
    pub record_bytes: u64,
    /// Bytes of live records, which the index refers to.
    pub live_bytes: u64,
    /// Number of all records.
    pub record_count: u64,
    /// Number of live records, which the index refers to.
    pub live_count: u64,
    /// Number of tombstones and fact deletions. The index never refers to them.
    pub tombstone_count: u64,
    /// Bytes of dead bodies that were punched and read as zeros.
    pub punched_bytes: u64,
}

impl SegmentUsage {
    /// Returns the usage of an empty segment.
    pub fn empty(class: SegmentClass) -> Self {
        Self {
            class,
            record_bytes: 0,
            live_bytes: 0,
            record_count: 0,
            live_count: 0,
            tombstone_count: 0,
            punched_bytes: 0,
        }
    }

    /// Adds a record that the index does not refer to yet.
    pub fn add(&mut self, record: &Record) {
        let bytes = (record.head_bytes() as u64).saturating_add(record.body_bytes());
        self.record_bytes = self.record_bytes.saturating_add(bytes);
        self.record_count = self.record_count.saturating_add(1);
        self.tombstone_count =
            self.tombstone_count.saturating_add(u64::from(record.op.is_tombstone()));
    }

    /// Returns the bytes of dead records.
    pub fn dead_bytes(&self) -> u64 {
        self.record_bytes.saturating_sub(self.live_bytes)
    }

    /// Returns whether the segment may contain superseded records, for which a tombstone must be retained.
    pub fn may_hold_dead_records(&self) -> bool {
        self.record_count > self.live_count.saturating_add(self.tombstone_count)
    }

    /// Encodes the index value.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(SEGMENT_USAGE_BYTES);
        ByteWriter::new(&mut out)
            .u64(self.record_bytes)
            .u64(self.live_bytes)
            .u64(self.record_count)
            .u64(self.live_count)
            .u64(self.tombstone_count)
            .u64(self.punched_bytes)
            .u8(self.class.to_byte())
            .zeros(3);
        append_checksum(&[], out)
    }

    /// Decodes the index value.
    pub fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut take = ByteReader::new(verify_checksum(&[], bytes)?);
        let record_bytes = take.u64()?;
        let live_bytes = take.u64()?;
        let record_count = take.u64()?;
        let live_count = take.u64()?;
        let removals = take.u64()?;
        let punched_bytes = take.u64()?;
        let class = SegmentClass::from_byte(take.u8()?)?;
        take.zeros(3)?;
        take.end()?;
        Ok(Self {
            class,
            record_bytes,
            live_bytes,
            record_count,
            live_count,
            tombstone_count: removals,
            punched_bytes,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::testing::assert_every_byte_is_checked;

    #[test]
    fn segment_usage_round_trips_and_detects_any_byte_change() {
        let usage = SegmentUsage {
            class: SegmentClass::Big,
            record_bytes: 1,
            live_bytes: 2,
            record_count: 3,
            live_count: u64::MAX,
            tombstone_count: 5,
            punched_bytes: 6,
        };
        let bytes = usage.encode();
        assert_eq!(bytes.len(), SEGMENT_USAGE_BYTES);
        assert_eq!(SegmentUsage::decode(&bytes), Ok(usage));
        assert_every_byte_is_checked(&bytes, |bytes| SegmentUsage::decode(bytes).is_ok());
    }
}
