//! Object body: the bytes after a record head, checksummed in blocks of 64 KiB.
//!
//! | offset in the body | size           | checksum                                                             |
//! | ------------------ | -------------- | -------------------------------------------------------------------- |
//! | 65,536 i           | 65,536 or rest | entry i of the record's block table, bound to the address of block i |
//!
//! The value of a fact is one block, which has a checksum even if it is empty. The body of a big segment has
//! the same blocks; their checksums are in its footer.
//!
//! Guarantees: a fault names the corrupt block.
//! Non-goals: record heads, reading.

use std::ops::Range;

use super::checksum::{CheckClass, DiskAddress};
use super::record::{Record, RecordContent, RecordOp, block_count};
use crate::limits;

const BLOCK: u64 = limits::BLOCK_BYTES as u64;

/// Corrupt block of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BodyFault {
    /// LSN of the record that the body belongs to.
    pub lsn: u64,
    /// Offset of the block in the file.
    pub offset: u64,
}

/// Returns the blocks of a body that begins at `body`: the byte range of each in the body, and its disk
/// address.
pub fn block_addresses(
    body: DiskAddress,
    bytes: u64,
) -> impl ExactSizeIterator<Item = (Range<u64>, DiskAddress)> + Clone {
    // An `ExactSizeIterator` needs a `usize` range; bodies have far fewer than 2^32 blocks.
    let count = u32::try_from(block_count(bytes)).unwrap_or(u32::MAX);
    (0..count as usize).map(move |block| {
        let start = (block as u64).saturating_mul(BLOCK);
        let end = start.saturating_add(BLOCK).min(bytes);
        (start..end, body.plus(start))
    })
}

impl Record {
    /// Verifies every block of the body that follows the head at `head`.
    pub fn verify_body(&self, head: DiskAddress, body: &[u8]) -> Result<(), BodyFault> {
        match self.damaged_blocks(head, body).next() {
            Some(block) => {
                let at = head.plus(self.head_bytes() as u64);
                Err(BodyFault { lsn: self.lsn, offset: at.plus(block.start).offset })
            }
            None => Ok(()),
        }
    }

    /// Returns the byte ranges of the corrupt blocks of the body that follows the head at `head`. A block of
    /// the wrong length is corrupt.
    pub fn damaged_blocks<'a>(
        &'a self,
        head: DiskAddress,
        body: &'a [u8],
    ) -> impl Iterator<Item = Range<u64>> + 'a {
        let (bytes, at) = (self.body_bytes(), head.plus(self.head_bytes() as u64));
        let (checks, count) = match &self.op {
            RecordOp::Put { content: RecordContent::Inline { blocks, .. }, .. } => {
                (blocks.as_slice(), block_count(bytes))
            }
            // The value of a fact is one block, even if it is empty.
            RecordOp::PutFact { check, .. } => (std::slice::from_ref(check), 1),
            _ => ([].as_slice(), 0),
        };
        let is_length = body.len() as u64 == bytes && checks.len() as u64 == count;
        let of_wrong_length = (!is_length).then_some(0..bytes);
        let checks = if is_length { checks } else { &[] };
        let blocks =
            (0..).step_by(limits::BLOCK_BYTES).zip(checks).filter_map(move |(start, check)| {
                let end = bytes.min(start + BLOCK);
                let piece = usize::try_from(start).ok().zip(usize::try_from(end).ok());
                let piece = piece.and_then(|(start, end)| body.get(start..end)).unwrap_or_default();
                let verified = check.verify(CheckClass::Block, piece, at.plus(start));
                verified.is_err().then_some(start..end)
            });
        of_wrong_length.into_iter().chain(blocks)
    }
}

impl RecordOp {
    /// Binds the block checksums to their disk addresses, or unbinds them if they are bound.
    pub fn bind(&mut self, body: DiskAddress) {
        match self {
            Self::Put { content: RecordContent::Inline { bytes, blocks }, .. } => {
                for (check, (_, place)) in blocks.iter_mut().zip(block_addresses(body, *bytes)) {
                    *check = check.bind(place);
                }
            }
            Self::PutFact { check, .. } => *check = check.bind(body),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::checksum::Checksum;
    use crate::format::object_meta::{ObjectFlags, ObjectMeta};
    use crate::format::testing::test_address;
    use crate::name::{BucketName, FactName, ObjectKey, ObjectName};

    fn meta() -> ObjectMeta {
        ObjectMeta {
            content_type: String::new(),
            hash: [0; 32],
            created_ms: 0,
            modified_ms: 0,
            flags: ObjectFlags::default(),
            attributes: Vec::new(),
        }
    }

    fn name() -> ObjectName {
        ObjectName::new(BucketName::parse("abc").unwrap(), ObjectKey::parse("a").unwrap())
    }

    #[test]
    fn fact_value_is_one_block() {
        for value in [b"".as_slice(), b"value"] {
            let name = FactName::parse("fact").unwrap();
            let bytes = u32::try_from(value.len()).unwrap();
            let what = RecordOp::PutFact { name, bytes, check: Checksum::of(value) };
            let mut record = Record { lsn: 2, op: what };
            let at = test_address(100).plus(record.head_bytes() as u64);
            assert!(record.verify_body(test_address(100), value).is_err(), "not bound yet");
            record.op.bind(at);
            assert_eq!(record.verify_body(test_address(100), value), Ok(()));
            assert!(record.verify_body(test_address(101), value).is_err());
            assert!(record.verify_body(test_address(100), b"other").is_err());
        }
    }

    #[test]
    fn body_checksums_are_per_block_and_address() {
        let mut body = vec![3; 2 * limits::BLOCK_BYTES + 5];
        let blocks = body.chunks(limits::BLOCK_BYTES).map(Checksum::of).collect();
        let content = RecordContent::Inline { bytes: body.len() as u64, blocks };
        let what = RecordOp::Put { name: name(), meta: meta(), content };
        let mut record = Record { lsn: 4, op: what };
        let at = test_address(9_000).plus(record.head_bytes() as u64);
        record.op.bind(at);
        assert_eq!(record.verify_body(test_address(9_000), &body), Ok(()));

        let fault = |block: usize| {
            let offset = at.offset + (block * limits::BLOCK_BYTES) as u64;
            Err(BodyFault { lsn: 4, offset })
        };
        assert_eq!(
            record.verify_body(test_address(9_001), &body),
            Err(BodyFault { lsn: 4, offset: at.offset + 1 })
        );
        assert_eq!(record.verify_body(test_address(9_000), &body[1..]), fault(0));
        for (block, byte) in [(0, 0), (1, limits::BLOCK_BYTES), (2, body.len() - 1)] {
            body[byte] ^= 1;
            assert_eq!(record.verify_body(test_address(9_000), &body), fault(block));
            body[byte] ^= 1;
        }
    }

    #[test]
    fn blocks_cover_a_body_exactly_once() {
        let block = limits::BLOCK_BYTES as u64;
        let ranges = |bytes| {
            block_addresses(test_address(10), bytes).map(|(r, p)| (r, p.offset)).collect::<Vec<_>>()
        };
        assert_eq!(ranges(0), []);
        assert_eq!(ranges(1), [(0..1, 10)]);
        assert_eq!(ranges(block), [(0..block, 10)]);
        assert_eq!(ranges(block + 1), [(0..block, 10), (block..block + 1, 10 + block)]);
    }
}
