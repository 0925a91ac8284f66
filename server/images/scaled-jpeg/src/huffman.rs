//! Huffman lookup tables (T.81, C and F.2.2.3), and the values coded with them.
//!
//! Three tables resolve most codes with one lookup of the next bits:
//!
//! | index   | result                                                                    |
//! | ------- | ------------------------------------------------------------------------- |
//! | 10 bits | code of at most 10 bits: its length and symbol                            |
//! | 10 bits | complete coefficient: zeros before it, its value, the bits of both        |
//! | 13 bits | length of several complete coefficients, for blocks whose rest is dropped |
//!
//! Guarantees: invalid codes are an error; at most 32 bits are read for one coefficient.

use super::bit_reader::{BitError, BitReader, extend};
use super::tables::{Class, Code};

const NEAR_BITS: u32 = 10;
const NEAR: usize = 1 << NEAR_BITS;
const LEAP_BITS: u32 = 13;
const LEAPS: usize = 1 << LEAP_BITS;
/// Minimum number of blocks in a scan for which the table of leaps is worthwhile.
const LEAP_BLOCKS_MIN: u64 = 16_384;

/// Maximum memory of the tables of one scan in bytes: two for each of four components.
pub(super) const BYTES_MAX: usize =
    8 * (size_of::<Huffman>() + NEAR * (size_of::<u16>() + size_of::<u32>()) + LEAPS * 2 + 256);

/// Maximum bits of a DC difference: 15 bits are sufficient for 12-bit samples, and 8-bit samples need 11.
const DIFFERENCE_BITS_MAX: u32 = 15;

/// Lookup tables of a Huffman code.
#[derive(Debug)]
pub(super) struct Huffman {
    /// Length << 8 | symbol; zero for longer and invalid codes.
    near: Box<[u16; NEAR]>,
    /// Value << 16 | zeros before it << 8 | bits; zero if it is longer, or no coefficient.
    whole: Box<[u32; NEAR]>,
    leaps: Option<Box<[u16; LEAPS]>>,
    /// First 16-bit prefix beyond the codes of each length.
    beyond: [u32; 17],
    /// Offset from a code of each length to the index of its symbol.
    offsets: [i32; 17],
    symbols: Vec<u8>,
}

/// Entry of the table of leaps.
mod leap {
    /// Number of bits skipped: 4 bits. Number of coefficients skipped: 6 bits.
    pub(super) const FAR_SHIFT: u16 = 4;
    /// Flag: the block ends after it.
    pub(super) const END: u16 = 1 << 10;
    /// Flag: it is a single code, so it cannot continue into the next block.
    pub(super) const SINGLE: u16 = 1 << 11;
}

/// Decoded AC code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Coefficient {
    /// Zeros, then a nonzero value.
    Value { zeros: usize, value: i32 },
    /// Sixteen zeros.
    Zeros,
    /// End of band: the rest of this block is zero, and that of as many further blocks as a run of this many bits
    /// says.
    End { run_bits: u32 },
}

impl Huffman {
    /// Builds the tables for a scan of this many blocks.
    pub(super) fn new(code: &Code, class: Class, blocks: u64) -> Self {
        let mut huffman = Self {
            near: Box::new([0; NEAR]),
            whole: Box::new([0; NEAR]),
            leaps: None,
            beyond: [0; 17],
            offsets: [0; 17],
            symbols: code.values.clone(),
        };
        huffman.fill_near(code);
        huffman.fill_coefficient_table(class);
        if class == Class::Varying && blocks >= LEAP_BLOCKS_MIN {
            huffman.leaps = Some(huffman.leaps());
        }
        huffman
    }

    fn fill_near(&mut self, code: &Code) {
        let (mut next, mut place) = (0_u32, 0_usize);
        let lengths = (1_u32..).zip(code.counts);
        for ((length, count), (beyond, offset)) in
            lengths.zip(self.beyond.iter_mut().zip(&mut self.offsets).skip(1))
        {
            *offset = place as i32 - next as i32;
            for symbol in self.symbols.iter().skip(place).take(usize::from(count)) {
                if length <= NEAR_BITS {
                    let first = (next << (NEAR_BITS - length)) as usize;
                    let entries = self.near.iter_mut().skip(first).take(NEAR >> length);
                    entries.for_each(|entry| *entry = (length as u16) << 8 | u16::from(*symbol));
                }
                next += 1;
            }
            place += usize::from(count);
            *beyond = next << (16 - length);
            next <<= 1;
        }
    }

    fn fill_coefficient_table(&mut self, class: Class) {
        for (bits, (whole, near)) in self.whole.iter_mut().zip(self.near.iter()).enumerate() {
            let (length, symbol) = (u32::from(near >> 8), u32::from(near & 255));
            let (zeros, size) = (symbol >> 4, symbol & 15);
            let is_value = match class {
                Class::Constant => zeros == 0,
                Class::Varying => size > 0,
            };
            if length > 0 && is_value && length + size <= NEAR_BITS {
                let behind = bits as u32 >> (NEAR_BITS - length - size) & ((1 << size) - 1);
                let value = extend(behind as i32, size) as i16 as u16;
                *whole = u32::from(value) << 16 | zeros << 8 | (length + size);
            }
        }
    }

    /// Builds the table of leaps: for each bit pattern, the complete coefficients in it.
    fn leaps(&self) -> Box<[u16; LEAPS]> {
        let mut leaps = Box::new([0; LEAPS]);
        for (pattern, leap) in leaps.iter_mut().enumerate() {
            let (mut used, mut far, mut codes, mut end) = (0, 0, 0_u32, 0);
            while let Some((bits, step)) = self.leap_over_one(pattern, used) {
                if far + step > 63 {
                    break;
                }
                (used, far, codes) = (used + bits, far + step, codes + 1);
                if step == 0 {
                    end = leap::END;
                    break;
                }
            }
            if codes > 0 {
                let single = if codes == 1 { leap::SINGLE } else { 0 };
                *leap = used as u16 | far << leap::FAR_SHIFT | end | single;
            }
        }
        leaps
    }

    /// Returns bits and coefficients of the code after `used` bits of a pattern, if it is complete; zero
    /// coefficients for the end of the block.
    fn leap_over_one(&self, pattern: usize, used: u32) -> Option<(u32, u16)> {
        let left = LEAP_BITS - used;
        let rest = pattern << used & (LEAPS - 1);
        let near = self.near.get(rest >> (LEAP_BITS - NEAR_BITS)).copied().unwrap_or(0);
        let (length, symbol) = (u32::from(near >> 8), near & 255);
        let (zeros, size) = (symbol >> 4, u32::from(symbol & 15));
        if length == 0 || length + size > left {
            return None;
        }
        Some(match (zeros, size) {
            (15, 0) => (length, 16),
            (_, 0) => (length, 0),
            (zeros, size) => (length + size, zeros + 1),
        })
    }

    /// Reads the next symbol; 16 bits must be buffered.
    #[inline(always)]
    fn symbol(&self, bits: &mut BitReader<'_>) -> Result<u32, BitError> {
        let near = self.near.get(bits.next::<NEAR_BITS>()).copied().unwrap_or(0);
        let (length, symbol) = match near {
            0 => self.far_symbol(bits.next::<16>() as u32).ok_or_else(|| bits.broken())?,
            near => (u32::from(near >> 8), u32::from(near & 255)),
        };
        bits.skip_bits(length);
        Ok(symbol)
    }

    /// Looks up length and symbol of the code at the start of sixteen bits.
    #[inline(never)]
    fn far_symbol(&self, sixteen: u32) -> Option<(u32, u32)> {
        let mut lengths = (0_u32..).zip(&self.beyond).zip(&self.offsets).skip(1);
        let ((length, _), offset) = lengths.find(|((_, beyond), _)| sixteen < **beyond)?;
        let place = (sixteen >> (16 - length)) as i32 + offset;
        let symbol = usize::try_from(place).ok().and_then(|place| self.symbols.get(place))?;
        Some((length, u32::from(*symbol)))
    }

    /// Reads a DC difference.
    #[inline(always)]
    pub(super) fn difference(&self, bits: &mut BitReader<'_>) -> Result<i32, BitError> {
        bits.have(32);
        let whole = self.whole.get(bits.next::<NEAR_BITS>()).copied().unwrap_or(0);
        if whole != 0 {
            bits.skip_bits(whole & 255);
            return Ok(whole as i32 >> 16);
        }
        let size = self.symbol(bits)?;
        if size > DIFFERENCE_BITS_MAX {
            return Err(bits.broken());
        }
        Ok(bits.extended(size))
    }

    /// Reads the next AC coefficient.
    #[inline(always)]
    pub(super) fn coefficient(&self, bits: &mut BitReader<'_>) -> Result<Coefficient, BitError> {
        bits.have(32);
        let whole = self.whole.get(bits.next::<NEAR_BITS>()).copied().unwrap_or(0);
        if whole != 0 {
            bits.skip_bits(whole & 255);
            let zeros = (whole >> 8 & 15) as usize;
            return Ok(Coefficient::Value { zeros, value: whole as i32 >> 16 });
        }
        let symbol = self.symbol(bits)?;
        let (zeros, size) = ((symbol >> 4) as usize, symbol & 15);
        Ok(match (zeros, size) {
            (15, 0) => Coefficient::Zeros,
            (run_bits, 0) => Coefficient::End { run_bits: run_bits as u32 },
            _ => Coefficient::Value { zeros, value: bits.extended(size) },
        })
    }

    /// Skips the rest of a block, from a zigzag position on.
    #[inline(always)]
    pub(super) fn skip_block(&self, bits: &mut BitReader<'_>, from: usize) -> Result<(), BitError> {
        let Some(leaps) = &self.leaps else { return self.pass_singly(bits, from) };
        let mut position = from;
        loop {
            bits.have(4 * LEAP_BITS);
            for _ in 0..4 {
                let leap = leaps.get(bits.next::<LEAP_BITS>()).copied().unwrap_or(0);
                let far = usize::from(leap >> leap::FAR_SHIFT & 63);
                if leap == 0 || (position + far > 63 && leap & leap::SINGLE == 0) {
                    position = self.pass_one(bits, position)?;
                    if position > 63 {
                        return at_the_end(position, *bits);
                    }
                    break;
                }
                bits.skip_bits(u32::from(leap & 15));
                position += far;
                if leap & leap::END != 0 {
                    return Ok(());
                }
                if position > 63 {
                    return at_the_end(position, *bits);
                }
            }
        }
    }

    fn pass_singly(&self, bits: &mut BitReader<'_>, from: usize) -> Result<(), BitError> {
        let mut position = from;
        while position < 64 {
            position = self.pass_one(bits, position)?;
        }
        at_the_end(position, *bits)
    }

    /// Skips one code and returns the next position; 64 after the end of the block.
    #[inline(always)]
    fn pass_one(&self, bits: &mut BitReader<'_>, position: usize) -> Result<usize, BitError> {
        Ok(match self.coefficient(bits)? {
            Coefficient::Value { zeros, .. } => position + zeros + 1,
            Coefficient::Zeros => position + 16,
            Coefficient::End { .. } => 64,
        })
    }
}

/// Checks that a block does not exceed 64 coefficients.
#[inline(always)]
fn at_the_end(position: usize, bits: BitReader<'_>) -> Result<(), BitError> {
    if position == 64 { Ok(()) } else { Err(bits.broken()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Builds a code with lengths from 2 to 16, and one unused code.
    fn long_code() -> Code {
        let counts = [0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2];
        let values = vec![
            0x01, 0x02, 0x11, 0x00, 0xf0, 0x03, 0x21, 0x0a, 0x31, 0x12, 0x04, 0x05, 0x41, 0x51,
            0x06, 0x61,
        ];
        Code { counts, values }
    }

    /// Returns every code of a table by the definition of T.81, annex C: bits, length, symbol.
    fn codes(code: &Code) -> Vec<(u32, u32, u8)> {
        let (mut next, mut symbols, mut codes) = (0, code.values.iter(), Vec::new());
        for (length, count) in (1..).zip(code.counts) {
            for _ in 0..count {
                codes.push((next, length, *symbols.next().unwrap()));
                next += 1;
            }
            next <<= 1;
        }
        codes
    }

    fn bytes_of(parts: &[(u32, u32)]) -> Vec<u8> {
        let text: String = parts
            .iter()
            .map(|(bits, length)| format!("{bits:0>width$b}", width = *length as usize))
            .collect();
        let mut bytes = Vec::new();
        for eight in text.as_bytes().chunks(8) {
            let byte =
                (0..8).fold(0, |byte, at| byte << 1 | u8::from(eight.get(at) == Some(&b'1')));
            bytes.push(byte);
            if byte == 0xff {
                bytes.push(0);
            }
        }
        bytes
    }

    #[test]
    fn huffman_codes_decode_to_their_symbols() {
        let code = long_code();
        let huffman = Huffman::new(&code, Class::Varying, 0);
        for (bits, length, symbol) in codes(&code) {
            let size = u32::from(symbol & 15);
            for behind in [0, 1, (1 << size) >> 1, (1 << size) - 1] {
                let behind = behind & ((1 << size) - 1);
                let parts: &[(u32, u32)] =
                    if size == 0 { &[(bits, length)] } else { &[(bits, length), (behind, size)] };
                let bytes = bytes_of(parts);
                let mut reader = BitReader::new(&bytes, 0);
                let expected = match (symbol >> 4, size) {
                    (15, 0) => Coefficient::Zeros,
                    (run, 0) => Coefficient::End { run_bits: u32::from(run) },
                    (zeros, _) => Coefficient::Value {
                        zeros: usize::from(zeros),
                        value: extend(behind as i32, size),
                    },
                };
                assert_eq!(huffman.coefficient(&mut reader), Ok(expected), "{symbol:02x}");
            }
        }
    }

    #[test]
    fn invalid_huffman_code_is_rejected() {
        let huffman = Huffman::new(&long_code(), Class::Varying, 0);
        let mut bits = BitReader::new(&[0xff, 0, 0xff, 0, 0, 0], 0);
        assert_eq!(huffman.coefficient(&mut bits), Err(BitError::Code));
        let none = Code { counts: [0; 16], values: Vec::new() };
        let huffman = Huffman::new(&none, Class::Constant, 0);
        assert_eq!(huffman.difference(&mut BitReader::new(&[0; 9], 0)), Err(BitError::Code));
    }

    #[test]
    fn differences_have_at_most_fifteen_bits() {
        let code = Code {
            counts: [0, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
            values: vec![0, 11, 15, 16],
        };
        let huffman = Huffman::new(&code, Class::Constant, 0);
        let read = |parts: &[(u32, u32)]| {
            huffman.difference(&mut BitReader::new(&[bytes_of(parts), vec![0; 8]].concat(), 0))
        };
        assert_eq!(read(&[(0, 3)]), Ok(0));
        assert_eq!(read(&[(1, 3), (2_047, 11)]), Ok(2_047));
        assert_eq!(read(&[(1, 3), (0, 11)]), Ok(-2_047));
        assert_eq!(read(&[(2, 3), (16_384, 15)]), Ok(16_384));
        assert_eq!(read(&[(3, 3)]), Err(BitError::Code));
    }

    #[test]
    fn multi_block_skip_equals_single_steps() {
        let code = long_code();
        let single = Huffman::new(&code, Class::Varying, 0);
        let leaping = Huffman::new(&code, Class::Varying, LEAP_BLOCKS_MIN);
        assert!(single.leaps.is_none() && leaping.leaps.is_some());
        // Pseudo-random bits, dense in short codes.
        let mut state = 1_u32;
        let bytes: Vec<u8> = (0..40_000)
            .map(|_| {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                ((state >> 24) & (state >> 16)) as u8 & 0xfe
            })
            .collect();
        let (mut slow, mut fast) = (BitReader::new(&bytes, 0), BitReader::new(&bytes, 0));
        let (mut blocks, mut broken) = (0, 0);
        for from in (1..64).cycle() {
            let ended = single.skip_block(&mut slow, from);
            assert_eq!(leaping.skip_block(&mut fast, from), ended);
            if ended == Err(BitError::RanOut) || slow.ran_out() {
                break;
            }
            (blocks, broken) = (blocks + 1, broken + u32::from(ended.is_err()));
            if ended.is_err() {
                // An invalid code is not consumed, so skip a bit.
                assert_eq!(slow.bit(), fast.bit());
            }
            let next = |mut bits: BitReader<'_>| (bits.number(16), bits.number(16));
            assert_eq!(next(fast), next(slow));
        }
        assert!(blocks > 1_000 && broken > 10, "{blocks} blocks, {broken} broken");
    }
}
