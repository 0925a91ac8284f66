//! Bit writer, lowest bit first, as for Deflate, GIF and lossless WebP; and compressed long runs of zeros.

/// Bits written so far.
#[derive(Default)]
pub(super) struct Bits {
    bytes: Vec<u8>,
    pending: u64,
    count: u32,
}

impl Bits {
    /// Appends the lowest `count` bits of a value, at most 32.
    pub(super) fn put(&mut self, value: u32, count: u32) {
        self.pending |= u64::from(value) << self.count;
        self.count += count;
        while self.count >= 8 {
            self.bytes.push(self.pending as u8);
            self.pending >>= 8;
            self.count -= 8;
        }
    }

    /// Returns all bytes; the last is filled with zeros.
    pub(super) fn finish(mut self) -> Vec<u8> {
        self.put(0, (8 - self.count % 8) % 8);
        self.bytes
    }
}

/// Returns a zlib stream (RFC 1950) of zeros: at least the given number, 158 for each byte.
pub(super) fn zlib_of_zeros(count: usize) -> Vec<u8> {
    let runs = count.div_ceil(258);
    let mut bits = Bits::default();
    // The last block, with the usual codes. A code's highest bit comes first.
    bits.put(0b011, 3);
    bits.put(0x30_u8.reverse_bits().into(), 8);
    for _ in 0..runs {
        // 258 times the byte before: code 285 and distance 0.
        bits.put(0b1100_0101_u8.reverse_bits().into(), 8);
        bits.put(0, 5);
    }
    bits.put(0, 7);
    let sum = ((1 + 258 * runs) % 65_521) as u32;
    let check = (sum << 16 | 1).to_be_bytes();
    [&[0x78, 0x9c][..], &bits.finish(), &check].concat()
}

/// Clear code of a GIF (GIF89a, appendix F) with a palette of two: it resets the code table.
const CLEAR: u32 = 4;

/// Returns the codes of a GIF's picture of pseudo-random zeros and ones, of a palette of two.
pub(super) fn lzw_of_noise(count: usize) -> Vec<u8> {
    let mut bits = Bits::default();
    let mut state = 1_u32;
    for at in 0..count {
        // Codes have three bits as long as one is learned at most.
        if at % 2 == 0 {
            bits.put(CLEAR, 3);
        }
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        bits.put(state >> 31, 3);
    }
    bits.put(CLEAR + 1, 3);
    bits.finish()
}

/// Returns the codes of a GIF's picture of zeros, of a palette of two.
pub(super) fn lzw_of_zeros(count: usize) -> Vec<u8> {
    let mut bits = Bits::default();
    let mut left = count;
    while left > 0 {
        let (mut next, mut width) = (CLEAR + 2, 3);
        bits.put(CLEAR, if left == count { width } else { 12 });
        bits.put(0, width);
        left -= 1;
        // Each new code is one zero longer than the one before.
        let mut run = 2;
        while left > 0 && next < 4_095 {
            if next == 1 << width {
                width += 1;
            }
            let taken = run.min(left);
            bits.put(if taken == 1 { 0 } else { CLEAR + taken as u32 }, width);
            (left, run, next) = (left - taken, run + 1, next + 1);
        }
        if left == 0 {
            if next == 1 << width {
                width += 1;
            }
            bits.put(CLEAR + 1, width.min(12));
        }
    }
    bits.finish()
}
