//! Little-endian byte reader and writer.
//!
//! Guarantees: no other file of the format converts integers to or from bytes; [`ByteReader`] never reads past its
//! slice.
//! Non-goals: the meaning of the bytes.

use super::malformed::Malformed;

/// Reader over the front of a byte slice.
#[derive(Clone, Debug)]
pub struct ByteReader<'a> {
    remaining: &'a [u8],
}

impl<'a> ByteReader<'a> {
    /// Creates a reader at the first byte.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { remaining: bytes }
    }

    /// Reads one byte.
    pub fn u8(&mut self) -> Result<u8, Malformed> {
        self.array::<1>().map(|[byte]| byte)
    }

    /// Reads a `u16`.
    pub fn u16(&mut self) -> Result<u16, Malformed> {
        self.array().map(u16::from_le_bytes)
    }

    /// Reads a `u32`.
    pub fn u32(&mut self) -> Result<u32, Malformed> {
        self.array().map(u32::from_le_bytes)
    }

    /// Reads a `u64`.
    pub fn u64(&mut self) -> Result<u64, Malformed> {
        self.array().map(u64::from_le_bytes)
    }

    /// Reads a varint ([`ByteWriter::varint`]); an encoding that is longer than necessary is rejected.
    pub fn varint(&mut self) -> Result<u64, Malformed> {
        let mut value = 0_u64;
        for shift in (0..u64::BITS).step_by(7) {
            let byte = self.u8()?;
            let bits = u64::from(byte & !MORE);
            if (bits << shift) >> shift != bits {
                return Err(Malformed::Length);
            }
            value |= bits << shift;
            if byte & MORE == 0 {
                let is_shortest = byte != 0 || shift == 0;
                return if is_shortest { Ok(value) } else { Err(Malformed::Length) };
            }
        }
        Err(Malformed::Length)
    }

    /// Reads an array of `N` bytes.
    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let (array, rest) = self.remaining.split_first_chunk::<N>().ok_or(Malformed::Short)?;
        self.remaining = rest;
        Ok(*array)
    }

    /// Reads `count` bytes, borrowed.
    pub fn bytes(&mut self, count: usize) -> Result<&'a [u8], Malformed> {
        let (bytes, rest) = self.remaining.split_at_checked(count).ok_or(Malformed::Short)?;
        self.remaining = rest;
        Ok(bytes)
    }

    /// Reads `count` bytes as UTF-8.
    pub fn text(&mut self, count: usize) -> Result<&'a str, Malformed> {
        std::str::from_utf8(self.bytes(count)?).map_err(|_| Malformed::Text)
    }

    /// Skips `count` reserved bytes, which must be zero.
    pub fn zeros(&mut self, count: usize) -> Result<(), Malformed> {
        if is_zero(self.bytes(count)?) { Ok(()) } else { Err(Malformed::Reserved) }
    }

    /// Returns the number of bytes left.
    pub fn remaining(&self) -> usize {
        self.remaining.len()
    }

    /// Returns all bytes that are left.
    pub fn rest(self) -> &'a [u8] {
        self.remaining
    }

    /// Checks that no bytes are left.
    pub fn end(self) -> Result<(), Malformed> {
        if self.remaining.is_empty() { Ok(()) } else { Err(Malformed::Trailing) }
    }
}

/// Writer that appends to a vector.
#[derive(Debug)]
pub struct ByteWriter<'a> {
    out: &'a mut Vec<u8>,
}

impl<'a> ByteWriter<'a> {
    /// Creates a writer that appends to `out`.
    pub fn new(out: &'a mut Vec<u8>) -> Self {
        Self { out }
    }

    /// Appends one byte.
    pub fn u8(&mut self, value: u8) -> &mut Self {
        self.bytes(&[value])
    }

    /// Appends a `u16`.
    pub fn u16(&mut self, value: u16) -> &mut Self {
        self.bytes(&value.to_le_bytes())
    }

    /// Appends a `u32`.
    pub fn u32(&mut self, value: u32) -> &mut Self {
        self.bytes(&value.to_le_bytes())
    }

    /// Appends a `u64`.
    pub fn u64(&mut self, value: u64) -> &mut Self {
        self.bytes(&value.to_le_bytes())
    }

    /// Appends a LEB128 varint of one to ten bytes: seven bits each, lowest first; the highest bit is set in
    /// all but the last byte.
    pub fn varint(&mut self, mut value: u64) -> &mut Self {
        loop {
            let [low, ..] = value.to_le_bytes();
            value >>= 7;
            if value == 0 {
                return self.u8(low);
            }
            self.u8(low | MORE);
        }
    }

    /// Appends raw bytes.
    pub fn bytes(&mut self, bytes: &[u8]) -> &mut Self {
        self.out.extend_from_slice(bytes);
        self
    }

    /// Appends `count` reserved zero bytes.
    pub fn zeros(&mut self, count: usize) -> &mut Self {
        self.out.resize(self.out.len().saturating_add(count), 0);
        self
    }
}

/// Continuation bit of a varint byte.
const MORE: u8 = 0x80;

/// Overwrites the existing four bytes at `at` with a number: a checksum that precedes the bytes it covers.
pub(super) fn overwrite_u32(out: &mut [u8], at: usize, value: u32) {
    let place = out.get_mut(at..).and_then(<[u8]>::first_chunk_mut::<4>);
    debug_assert!(place.is_some(), "the four bytes were appended before");
    if let Some(place) = place {
        *place = value.to_le_bytes();
    }
}

/// Size of the chunks that are compared with zero.
const ZERO_BYTES: usize = 256;

/// Returns whether every byte is zero.
pub fn is_zero(bytes: &[u8]) -> bool {
    // Whole chunks can be vectorized; a loop that may stop at any byte cannot.
    bytes.chunks(ZERO_BYTES).all(|some| some.iter().fold(0, |all, byte| all | byte) == 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nonzero_byte_is_detected_at_every_offset() {
        for length in [0, 1, ZERO_BYTES, 3 * ZERO_BYTES + 7] {
            let mut bytes = vec![0; length];
            assert!(is_zero(&bytes), "{length}");
            for at in 0..length {
                bytes[at] = 0x40;
                assert!(!is_zero(&bytes), "{at} of {length}");
                bytes[at] = 0;
            }
        }
    }

    #[test]
    fn byte_writer_output_is_read_back_in_order() {
        let mut out = vec![9];
        ByteWriter::new(&mut out).u8(1).u16(0x0302).u32(0x0706_0504).u64(8).zeros(2).bytes(b"xy");
        assert_eq!(out, [9, 1, 2, 3, 4, 5, 6, 7, 8, 0, 0, 0, 0, 0, 0, 0, 0, 0, b'x', b'y']);

        let mut take = ByteReader::new(&out);
        assert_eq!((take.u8(), take.u8(), take.u16()), (Ok(9), Ok(1), Ok(0x0302)));
        assert_eq!((take.u32(), take.u64()), (Ok(0x0706_0504), Ok(8)));
        assert_eq!((take.zeros(2), take.text(2)), (Ok(()), Ok("xy")));
        assert_eq!(take.end(), Ok(()));
    }

    #[test]
    fn short_slice_is_rejected_and_not_consumed() {
        let mut take = ByteReader::new(&[1, 2, 3]);
        assert_eq!((take.u32(), take.u64()), (Err(Malformed::Short), Err(Malformed::Short)));
        assert_eq!(take.bytes(usize::MAX), Err(Malformed::Short));
        assert_eq!(take.remaining(), 3);
        assert_eq!(take.clone().end(), Err(Malformed::Trailing));
        assert_eq!(take.clone().zeros(1), Err(Malformed::Reserved));
        assert_eq!(take.rest(), [1, 2, 3]);
        assert_eq!(ByteReader::new(&[0xff]).text(1), Err(Malformed::Text));
    }

    #[test]
    fn varint_encoding_is_minimal_and_canonical() {
        let written = |value| {
            let mut out = Vec::new();
            ByteWriter::new(&mut out).varint(value);
            out
        };
        assert_eq!(written(0), [0]);
        assert_eq!(written(0x7f), [0x7f]);
        assert_eq!(written(0x80), [0x80, 1]);
        assert_eq!(written(300), [0xac, 2]);
        assert_eq!(written(u64::MAX), [[0xff; 9].as_slice(), &[1]].concat());
        for bits in 0..64 {
            for value in [1 << bits, (1 << bits) - 1, u64::MAX >> bits] {
                let bytes = written(value);
                let mut take = ByteReader::new(&bytes);
                assert_eq!((take.varint(), take.remaining()), (Ok(value), 0));
                for short in 0..bytes.len() {
                    assert_eq!(ByteReader::new(&bytes[..short]).varint(), Err(Malformed::Short));
                }
            }
        }
        let refused =
            |bytes: &[u8]| assert_eq!(ByteReader::new(bytes).varint(), Err(Malformed::Length));
        refused(&[0x80, 0]);
        refused(&[0xff, 0x80, 0]);
        refused(&[[0xff; 9].as_slice(), &[2]].concat());
        refused(&[[0x80; 9].as_slice(), &[0]].concat());
        refused(&[0xff; 11]);
    }

    #[test]
    fn overwriting_a_u32_changes_only_its_four_bytes() {
        let mut out = vec![1; 6];
        overwrite_u32(&mut out, 1, 0x0504_0302);
        assert_eq!(out, [1, 2, 3, 4, 5, 1]);
    }
}
