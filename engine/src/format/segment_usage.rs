//! Segment usage: how much of a segment is still wanted.
//!
//! | offset | size | field        | meaning                                                  |
//! | ------ | ---- | ------------ | -------------------------------------------------------- |
//! | 0      | 8    | record_bytes | of all records ever appended, heads and bodies           |
//! | 8      | 8    | live_bytes   | of those that the index points to                        |
//! | 16     | 8    | record_count | how many were appended                                   |
//! | 24     | 8    | live_count   | to how many the index points                             |
//! | 32     | 8    | removals     | how many are tombstones and ends of facts, never live    |
//! | 40     | 8    | punched      | bytes of dead bodies whose space was given back          |
//! | 48     | 1    | class        | 1 log, 2 big, 3 compacted                                |
//! | 49     | 3    | reserved     | zero                                                     |
//! | 52     | 4    | check        | CRC-32 of bytes 0..52                                    |
//!
//! Promises: plain counters; that live is no more than all is fsck's to say. Never here: what to compact.

use super::bytes::{Put, Take};
use super::entry::{ENTRY_CHECK_BYTES, open, seal};
use super::malformed::Malformed;
use super::record::Record;
use super::segment_header::SegmentClass;

/// Size of the value.
pub const SEGMENT_USAGE_BYTES: usize = 56;

const _: () = assert!(SEGMENT_USAGE_BYTES == 6 * 8 + 1 + 3 + ENTRY_CHECK_BYTES);

/// How much was written to a segment, and how much of it is still wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SegmentUsage {
    /// What the segment holds.
    pub class: SegmentClass,
    /// Bytes of all records, heads and bodies.
    pub record_bytes: u64,
    /// Bytes of the records that the index points to.
    pub live_bytes: u64,
    /// How many records there are.
    pub record_count: u64,
    /// To how many the index points.
    pub live_count: u64,
    /// How many say that something is gone: tombstones and ends of facts. The index never points to them.
    pub removals: u64,
    /// Bytes of dead bodies whose space was given back already: they read as zeros.
    pub punched_bytes: u64,
}

impl SegmentUsage {
    /// The usage of a segment to which nothing was written.
    pub fn empty(class: SegmentClass) -> Self {
        Self {
            class,
            record_bytes: 0,
            live_bytes: 0,
            record_count: 0,
            live_count: 0,
            removals: 0,
            punched_bytes: 0,
        }
    }

    /// One more record that nothing points to yet.
    pub fn add(&mut self, record: &Record) {
        let bytes = (record.head_bytes() as u64).saturating_add(record.body_bytes());
        self.record_bytes = self.record_bytes.saturating_add(bytes);
        self.record_count = self.record_count.saturating_add(1);
        self.removals = self.removals.saturating_add(u64::from(record.what.is_removal()));
    }

    /// Bytes of records that nobody can ask for.
    pub fn dead_bytes(&self) -> u64 {
        self.record_bytes.saturating_sub(self.live_bytes)
    }

    /// Whether there may be records in it that a newer one took the place of: what a tombstone keeps dead.
    pub fn may_hold_replaced(&self) -> bool {
        self.record_count > self.live_count.saturating_add(self.removals)
    }

    /// The value as the index keeps it.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(SEGMENT_USAGE_BYTES);
        Put::new(&mut out)
            .u64(self.record_bytes)
            .u64(self.live_bytes)
            .u64(self.record_count)
            .u64(self.live_count)
            .u64(self.removals)
            .u64(self.punched_bytes)
            .u8(self.class.to_byte())
            .zeros(3);
        seal(&[], out)
    }

    /// Reads the value as the index keeps it.
    pub fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut take = Take::new(open(&[], bytes)?);
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
            removals,
            punched_bytes,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::testing::every_byte_counts;

    #[test]
    fn segment_usage_survives_its_bytes_and_every_byte_counts() {
        let usage = SegmentUsage {
            class: SegmentClass::Big,
            record_bytes: 1,
            live_bytes: 2,
            record_count: 3,
            live_count: u64::MAX,
            removals: 5,
            punched_bytes: 6,
        };
        let bytes = usage.encode();
        assert_eq!(bytes.len(), SEGMENT_USAGE_BYTES);
        assert_eq!(SegmentUsage::decode(&bytes), Ok(usage));
        every_byte_counts(&bytes, |bytes| SegmentUsage::decode(bytes).is_ok());
    }
}
