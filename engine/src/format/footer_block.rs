//! LZ4-compressed block of a segment footer.
//!
//! | offset | size | field         | meaning                                                   |
//! | ------ | ---- | ------------- | --------------------------------------------------------- |
//! | 0      | 4    | stored_bytes  | length of the data                                        |
//! | 4      | 4    | entries_bytes | length of the uncompressed data                           |
//! | 8      | 4    | checksum      | of bytes 0..8 and of the data, at the offset of the block |
//! | 12     |      | data          | an LZ4 block; plain entries if both lengths are equal     |
//!
//! The entries are cut into pieces of [`FOOTER_BLOCK_BYTES`], the last one shorter, wherever an entry ends.
//! Each piece is compressed alone, in the LZ4 block format without frame, so only one block is in memory at a
//! time.
//!
//! Guarantees: data is decompressed only after its checksum was verified, and to at most
//! [`FOOTER_BLOCK_BYTES`]; incompressible data is stored plain. The same entries may have more than one
//! compressed form: compare uncompressed data, never blocks.
//! Non-goals: the content of the entries.

use super::byte_codec::{ByteReader, ByteWriter};
use super::checksum::{CheckClass, Checksum, DiskAddress, compare};
use super::malformed::Malformed;

/// Uncompressed size of a full block.
pub const FOOTER_BLOCK_BYTES: usize = 65_536;
/// Size of the block header.
pub const FOOTER_BLOCK_HEADER_BYTES: usize = 12;

/// Header of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FooterBlock {
    /// Length of the data.
    pub stored_bytes: u32,
    /// Length of the uncompressed entries.
    pub entries_bytes: u32,
    /// Checksum of both lengths and the data.
    pub checksum: Checksum,
}

impl FooterBlock {
    /// Compresses a piece of at most [`FOOTER_BLOCK_BYTES`] of the entries to a block for `place`.
    pub fn compress(entries: &[u8], place: DiskAddress) -> Vec<u8> {
        let mut packed = vec![0; lz4_flex::block::get_maximum_output_size(entries.len())];
        let length = lz4_flex::block::compress_into(entries, &mut packed).ok();
        let smaller = length.filter(|length| *length < entries.len());
        let data = smaller.and_then(|length| packed.get(..length)).unwrap_or(entries);
        Self::seal(entries.len(), data, place)
    }

    /// Builds a block for `place` from the given data without checking it.
    pub fn seal(entries_bytes: usize, data: &[u8], place: DiskAddress) -> Vec<u8> {
        // Out-of-range lengths are clamped here and rejected by `decode`.
        let block = Self {
            stored_bytes: u32::try_from(data.len()).unwrap_or(u32::MAX),
            entries_bytes: u32::try_from(entries_bytes).unwrap_or(u32::MAX),
            checksum: Checksum::default(),
        };
        let checksum = Checksum::of_parts(&[&block.lengths(), data]).bind(place);
        let mut out = block.lengths();
        ByteWriter::new(&mut out).u32(checksum.0).bytes(data);
        out
    }

    /// Decodes the header at the start of `bytes`.
    pub fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut take = ByteReader::new(bytes);
        let block = Self {
            stored_bytes: take.u32()?,
            entries_bytes: take.u32()?,
            checksum: Checksum(take.u32()?),
        };
        let lengths_are_possible = (1..=block.entries_bytes).contains(&block.stored_bytes)
            && usize::try_from(block.entries_bytes).is_ok_and(|bytes| bytes <= FOOTER_BLOCK_BYTES);
        if lengths_are_possible { Ok(block) } else { Err(Malformed::Length) }
    }

    /// Verifies the data of the block at `place` and decompresses it.
    pub fn decompress(&self, data: &[u8], place: DiskAddress) -> Result<Vec<u8>, Malformed> {
        let found = Checksum::of_parts(&[&self.lengths(), data]).bind(place);
        compare(CheckClass::Footer, self.checksum, found)?;
        let entries_bytes = usize::try_from(self.entries_bytes).map_err(|_| Malformed::Length)?;
        if self.stored_bytes == self.entries_bytes {
            return Ok(data.to_vec());
        }
        let mut entries = vec![0; entries_bytes.min(FOOTER_BLOCK_BYTES)];
        match lz4_flex::block::decompress_into(data, &mut entries) {
            Ok(bytes) if bytes == entries_bytes => Ok(entries),
            _ => Err(Malformed::Decompression),
        }
    }

    fn lengths(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(FOOTER_BLOCK_HEADER_BYTES);
        ByteWriter::new(&mut out).u32(self.stored_bytes).u32(self.entries_bytes);
        out
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::format::testing::{assert_every_byte_is_checked, test_address};

    fn unpack(block: &[u8], offset: u64) -> Result<Vec<u8>, Malformed> {
        let header = FooterBlock::decode(block)?;
        let data = &block[FOOTER_BLOCK_HEADER_BYTES..];
        if data.len() != header.stored_bytes as usize {
            return Err(Malformed::Short);
        }
        header.decompress(data, test_address(offset))
    }

    /// Returns incompressible bytes.
    fn noise(length: usize) -> Vec<u8> {
        let mut seed = 1_u32;
        let bytes = (0..length).map(|_| {
            seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (seed >> 24) as u8
        });
        bytes.collect()
    }

    #[test]
    fn footer_block_round_trips_and_detects_any_byte_change() {
        let like_each_other = b"entry 1, entry 2, entry 3, entry 4, entry 5, entry 6".as_slice();
        for (entries, is_smaller) in [(like_each_other, true), (&noise(50), false), (b"x", false)] {
            let block = FooterBlock::compress(entries, test_address(9_000));
            let stored = block.len() - FOOTER_BLOCK_HEADER_BYTES;
            assert_eq!(stored < entries.len(), is_smaller);
            assert!(stored <= entries.len());
            assert_eq!(unpack(&block, 9_000).as_deref(), Ok(entries));
            assert_every_byte_is_checked(&block, |block| unpack(block, 9_000).is_ok());
            assert_eq!(unpack(&block, 9_001), Err(Malformed::Checksum), "at another place");
        }
    }

    #[test]
    fn footer_block_compressed_by_another_release_is_read() {
        // One literal, a match of 34 bytes one byte back, five literals.
        let data = [0x1f, b'a', 1, 0, 15, 0x50, b'b', b'c', b'd', b'e', b'f'];
        let block = FooterBlock::seal(40, &data, test_address(0));
        assert_eq!(unpack(&block, 0), Ok([vec![b'a'; 35], b"bcdef".to_vec()].concat()));
        let own = FooterBlock::compress(&unpack(&block, 0).unwrap(), test_address(0));
        assert_eq!(unpack(&own, 0), unpack(&block, 0));
    }

    #[test]
    fn longest_footer_block_fits_its_entries() {
        for entries in [noise(FOOTER_BLOCK_BYTES), vec![7; FOOTER_BLOCK_BYTES]] {
            let block = FooterBlock::compress(&entries, test_address(0));
            assert!(block.len() <= FOOTER_BLOCK_HEADER_BYTES + FOOTER_BLOCK_BYTES);
            assert!(unpack(&block, 0).unwrap() == entries);
        }
    }

    #[test]
    fn oversized_lengths_are_rejected_before_decompression() {
        let header = |stored: u32, entries: u32| {
            let mut bytes = Vec::new();
            ByteWriter::new(&mut bytes).u32(stored).u32(entries).u32(0);
            FooterBlock::decode(&bytes).map(|block| block.entries_bytes)
        };
        assert_eq!(header(1, 65_536), Ok(65_536));
        assert_eq!(header(65_536, 65_536), Ok(65_536));
        assert_eq!(header(1, 65_537), Err(Malformed::Length));
        assert_eq!(header(9, 8), Err(Malformed::Length), "packed to more than it was");
        assert_eq!(header(0, 8), Err(Malformed::Length), "packed to nothing");
        assert_eq!(header(0, 0), Err(Malformed::Length), "there is no empty block");
        assert_eq!(FooterBlock::decode(&[0; 11]), Err(Malformed::Short));
    }

    #[test]
    fn decompressed_length_mismatch_is_rejected() {
        let block = FooterBlock::compress(&[7; 1_000], test_address(0));
        let data = &block[FOOTER_BLOCK_HEADER_BYTES..];
        assert_eq!(unpack(&FooterBlock::seal(1_000, data, test_address(0)), 0), Ok(vec![7; 1_000]));
        for wrong in [999, 1_001, FOOTER_BLOCK_BYTES] {
            let block = FooterBlock::seal(wrong, data, test_address(0));
            assert_eq!(unpack(&block, 0), Err(Malformed::Decompression), "{wrong}");
        }
        // Literals that are not there, and a match that begins before the first byte.
        for data in [[0xf0, 0xff, 0xff].as_slice(), &[0x10, b'a', 9, 0, 0]] {
            let block = FooterBlock::seal(40, data, test_address(0));
            assert_eq!(unpack(&block, 0), Err(Malformed::Decompression));
        }
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_decompress_to_declared_length_or_fail(
            data in proptest::collection::vec(any::<u8>(), 1..200),
            entries_bytes in 1..70_000_usize,
        ) {
            let block = FooterBlock::seal(entries_bytes, &data, test_address(0));
            if let Ok(entries) = unpack(&block, 0) {
                prop_assert_eq!(entries.len(), entries_bytes);
            }
        }

        #[test]
        fn any_footer_entries_round_trip(
            pieces in proptest::collection::vec((any::<u8>(), 1..90_usize), 1..200),
        ) {
            let entries: Vec<u8> =
                pieces.iter().flat_map(|(byte, times)| vec![*byte; *times]).collect();
            let block = FooterBlock::compress(&entries, test_address(0));
            prop_assert_eq!(unpack(&block, 0), Ok(entries));
        }
    }
}
