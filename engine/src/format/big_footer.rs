//! Footer of a big segment: block checksums of its body.
//!
//! The body begins at 4,096; the footer follows it. It consists of the block table (four bytes for each 64 KiB
//! block of the body: the block's checksum, bound to its offset) and the trailer, the last 64 bytes of the
//! file:
//!
//! | offset | size | field      | meaning                                     |
//! | ------ | ---- | ---------- | ------------------------------------------- |
//! | 0      | 8    | magic      | [`BIG_MAGIC`] XOR the salt of the segment   |
//! | 8      | 8    | body_bytes | length of the body                          |
//! | 16     | 32   | hash       | BLAKE3 of the body                          |
//! | 48     | 4    | table      | checksum of the table, not address-bound    |
//! | 52     | 8    | reserved   | zero                                        |
//! | 60     | 4    | checksum   | of bytes 0..60 at the offset of the trailer |
//!
//! Guarantees: body length and file length determine each other.
//! Non-goals: the owner of the body. A record in the log names it; without one the segment is an orphan.

use super::byte_codec::{ByteReader, ByteWriter};
use super::checksum::{CheckClass, Checksum, DiskAddress, compare};
use super::malformed::Malformed;
use super::record::block_count;
use super::segment_header::SEGMENT_HEADER_BYTES;
use crate::limits;

/// Magic number of a big segment's trailer before XOR with the salt: `TRUGBIG` and a zero byte, in disk order.
pub const BIG_MAGIC: u64 = 0x0047_4942_4755_5254;
/// Size of the trailer in bytes.
pub const BIG_TRAILER_BYTES: usize = 64;
/// Offset of the body in a big segment.
pub const BIG_BODY_OFFSET: u64 = SEGMENT_HEADER_BYTES as u64;

const CHECKED_BYTES: usize = BIG_TRAILER_BYTES - 4;

/// Trailer at the end of a big segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BigTrailer {
    /// Length of the body.
    pub body_bytes: u64,
    /// BLAKE3 hash of the body.
    pub hash: [u8; 32],
    /// Checksum of the block table.
    pub table: Checksum,
}

impl BigTrailer {
    /// Encodes the trailer for `place`.
    pub fn encode(&self, place: DiskAddress) -> Vec<u8> {
        let mut out = Vec::with_capacity(BIG_TRAILER_BYTES);
        ByteWriter::new(&mut out)
            .u64(BIG_MAGIC ^ place.salt)
            .u64(self.body_bytes)
            .bytes(&self.hash)
            .u32(self.table.0)
            .zeros(8);
        let checksum = Checksum::of(&out).bind(place);
        ByteWriter::new(&mut out).u32(checksum.0);
        out
    }

    /// Decodes the trailer: the last [`BIG_TRAILER_BYTES`] of the file, which start at `place`.
    pub fn decode(bytes: &[u8], place: DiskAddress) -> Result<Self, Malformed> {
        let mut take = ByteReader::new(bytes);
        let checked = take.clone().bytes(CHECKED_BYTES)?;
        if take.u64()? != BIG_MAGIC ^ place.salt {
            return Err(Malformed::Magic);
        }
        let body_bytes = take.u64()?;
        let hash = take.array()?;
        let table = Checksum(take.u32()?);
        let reserved = take.zeros(8);
        Checksum(take.u32()?).verify(CheckClass::Footer, checked, place)?;
        reserved?;
        take.end()?;
        if body_bytes > limits::OBJECT_BYTES_MAX {
            return Err(Malformed::Length);
        }
        if place.offset != Self::offset(body_bytes) {
            return Err(Malformed::Misplaced);
        }
        Ok(Self { body_bytes, hash, table })
    }

    /// Checks length and checksum of a block table.
    pub fn verify_table(&self, table: &[u8]) -> Result<(), Malformed> {
        if table.len() as u64 != Self::table_bytes(self.body_bytes) {
            return Err(Malformed::Length);
        }
        compare(CheckClass::Footer, self.table, Checksum::of(table))
    }

    /// Returns the address-bound checksum of one block from a table; `None` if the table ends before it.
    pub fn block(table: &[u8], block: usize) -> Option<Checksum> {
        let mut take = ByteReader::new(table.get(block.checked_mul(4)?..)?);
        take.u32().ok().map(Checksum)
    }

    /// Returns the offset of the block table after a body of `body_bytes`.
    pub fn table_offset(body_bytes: u64) -> u64 {
        BIG_BODY_OFFSET.saturating_add(body_bytes)
    }

    /// Returns the length of the block table of a body of `body_bytes`.
    pub fn table_bytes(body_bytes: u64) -> u64 {
        block_count(body_bytes).saturating_mul(4)
    }

    /// Returns the offset of the trailer of a body of `body_bytes`.
    pub fn offset(body_bytes: u64) -> u64 {
        Self::table_offset(body_bytes).saturating_add(Self::table_bytes(body_bytes))
    }

    /// Returns the length of the whole segment with a body of `body_bytes`.
    pub fn file_bytes(body_bytes: u64) -> u64 {
        Self::offset(body_bytes).saturating_add(BIG_TRAILER_BYTES as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::testing::{assert_every_byte_is_checked, test_address};

    const TABLE: [u8; 12] = [1, 0, 0, 0, 0, 0, 0, 0, 4, 3, 2, 1];

    fn trailer() -> BigTrailer {
        let body_bytes = 2 * limits::BLOCK_BYTES as u64 + 1;
        BigTrailer { body_bytes, hash: [0x4b; 32], table: Checksum::of(&TABLE) }
    }

    #[test]
    fn big_trailer_round_trips_and_detects_any_byte_change() {
        let at = test_address(BigTrailer::offset(trailer().body_bytes));
        let bytes = trailer().encode(at);
        assert_eq!(bytes.len(), BIG_TRAILER_BYTES);
        assert_eq!(BigTrailer::decode(&bytes, at), Ok(trailer()));
        assert_every_byte_is_checked(&bytes, |bytes| BigTrailer::decode(bytes, at).is_ok());
        assert_eq!(BigTrailer::decode(&bytes, at.plus(1)), Err(Malformed::Checksum));
    }

    #[test]
    fn big_block_table_detects_any_byte_change() {
        assert_eq!(trailer().verify_table(&TABLE), Ok(()));
        assert_every_byte_is_checked(&TABLE, |table| trailer().verify_table(table).is_ok());
        let longer = [TABLE.as_slice(), &[0; 4]].concat();
        assert_eq!(trailer().verify_table(&longer), Err(Malformed::Length));
    }

    #[test]
    fn block_checksums_are_found_in_the_table() {
        let blocks = [Some(Checksum(1)), Some(Checksum(0)), Some(Checksum(0x0102_0304)), None];
        for (block, expected) in blocks.into_iter().enumerate() {
            assert_eq!(BigTrailer::block(&TABLE, block), expected);
        }
        assert_eq!(BigTrailer::block(&TABLE, usize::MAX), None);
    }

    #[test]
    fn big_segment_sections_are_contiguous() {
        for (body_bytes, blocks) in [(0, 0), (1, 1), (65_536, 1), (65_537, 2)] {
            assert_eq!(BigTrailer::table_offset(body_bytes), 4_096 + body_bytes);
            assert_eq!(BigTrailer::offset(body_bytes), 4_096 + body_bytes + 4 * blocks);
            assert_eq!(BigTrailer::file_bytes(body_bytes), 4_160 + body_bytes + 4 * blocks);
        }
    }

    #[test]
    fn invalid_big_trailers_are_rejected_with_their_reason() {
        let decode = |trailer: BigTrailer, offset| {
            BigTrailer::decode(&trailer.encode(test_address(offset)), test_address(offset))
        };
        let offset = BigTrailer::offset(trailer().body_bytes);
        assert_eq!(decode(trailer(), offset - 1), Err(Malformed::Misplaced));
        let body_bytes = limits::OBJECT_BYTES_MAX + 1;
        let huge = BigTrailer { body_bytes, ..trailer() };
        assert_eq!(decode(huge, BigTrailer::offset(body_bytes)), Err(Malformed::Length));
    }
}
