//! Bit reader of entropy-coded data, without the zeros stuffed after `FF` (T.81, F.1.2.3 and F.2.2.5).
//!
//! Guarantees: never reads past a marker. After a marker or the end of the file zeros follow, and
//! [`BitReader::ran_out`] returns whether one of them was consumed. Non-goals: the meaning of the bits.

use super::markers::code;

/// Bit reader with a buffer of up to 64 bits.
///
/// Rare operations take a copy: a reader whose address is never taken stays in registers.
#[derive(Clone, Copy, Debug)]
pub(super) struct BitReader<'a> {
    bytes: &'a [u8],
    /// Offset of the next byte to load.
    at: usize,
    /// Buffered bits, the next one highest. Below `count` they are those of the byte at `at`, or zeros.
    held: u64,
    /// Number of buffered bits.
    count: u32,
    /// Number of padding bits among all bits loaded.
    made_up: u32,
}

/// Reason why a block could not be decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BitError {
    /// Invalid code, or a coefficient beyond the block.
    Code,
    /// Marker or end of the file before the end of the block.
    RanOut,
}

impl<'a> BitReader<'a> {
    pub(super) fn new(bytes: &'a [u8], at: usize) -> Self {
        Self { bytes, at, held: 0, count: 0, made_up: 0 }
    }

    /// Ensures that at least `wanted` bits, 56 at most, are buffered.
    #[inline(always)]
    pub(super) fn have(&mut self, wanted: u32) {
        if self.count < wanted {
            self.take_in();
        }
    }

    /// Returns the next `N` bits without consuming them.
    #[inline(always)]
    pub(super) fn next<const N: u32>(&self) -> usize {
        (self.held >> (64 - N)) as usize
    }

    /// Skips buffered bits, 63 at most.
    #[inline(always)]
    pub(super) fn skip_bits(&mut self, count: u32) {
        self.held <<= count;
        self.count = self.count.saturating_sub(count);
    }

    /// Reads 0 to 16 bits as a number.
    #[inline(always)]
    pub(super) fn number(&mut self, count: u32) -> u32 {
        self.have(16);
        let number = ((self.held >> 1) >> (63 - count)) as u32;
        self.skip_bits(count);
        number
    }

    /// Reads one bit.
    #[inline(always)]
    pub(super) fn bit(&mut self) -> bool {
        self.have(1);
        let set = self.held >> 63 == 1;
        self.skip_bits(1);
        set
    }

    /// Reads a coefficient of 0 to 16 buffered bits (T.81, F.2.2.1, EXTEND).
    #[inline(always)]
    pub(super) fn extended(&mut self, count: u32) -> i32 {
        let number = ((self.held >> 1) >> (63 - count)) as i32;
        self.skip_bits(count);
        extend(number, count)
    }

    /// Returns whether padding bits were consumed.
    #[inline(always)]
    pub(super) fn ran_out(self) -> bool {
        self.made_up > self.count
    }

    /// Returns the reason of a decoding error.
    #[cold]
    pub(super) fn broken(self) -> BitError {
        if self.ran_out() { BitError::RanOut } else { BitError::Code }
    }

    /// Discards the buffer and advances to the next marker, and returns it; `None` at the end of the file. `FF` and
    /// the marker are not consumed.
    pub(super) fn find_marker(&mut self) -> Option<u8> {
        (self.held, self.count, self.made_up) = (0, 0, 0);
        loop {
            let rest = self.bytes.get(self.at..).unwrap_or_default();
            let Some(found) = memchr::memchr(0xff, rest) else {
                self.at = self.bytes.len();
                return None;
            };
            self.at += found;
            match self.bytes.get(self.at + 1) {
                Some(0x00) => self.at += 2,
                Some(0xff) => self.at += 1,
                Some(marker) => return Some(*marker),
                None => {
                    self.at = self.bytes.len();
                    return None;
                }
            }
        }
    }

    /// Skips the marker that was found.
    pub(super) fn skip_marker(&mut self) {
        self.at += 2;
    }

    /// Returns the offset of the next byte to load: after [`BitReader::find_marker`], that of the marker.
    pub(super) fn at(&self) -> usize {
        self.at
    }

    #[inline(always)]
    fn take_in(&mut self) {
        if let Some(eight) = self.bytes.get(self.at..).and_then(<[u8]>::first_chunk) {
            let word = u64::from_be_bytes(*eight);
            if !has_ff(word) {
                self.held |= word >> self.count;
                self.at += ((63 - self.count) >> 3) as usize;
                self.count |= 56;
                return;
            }
        }
        *self = self.took_in_slowly();
    }

    #[inline(never)]
    fn took_in_slowly(mut self) -> Self {
        while self.count <= 56 {
            let byte = match (self.bytes.get(self.at), self.bytes.get(self.at + 1)) {
                (Some(0xff), Some(0x00)) => {
                    self.at += 2;
                    0xff
                }
                (Some(0xff), Some(0xff)) => {
                    self.at += 1;
                    continue;
                }
                (Some(0xff), _) | (None, _) => {
                    self.made_up = self.made_up.saturating_add(8);
                    0
                }
                (Some(byte), _) => {
                    self.at += 1;
                    *byte
                }
            };
            self.held |= u64::from(byte) << (56 - self.count);
            self.count += 8;
        }
        self
    }
}

/// Returns the value coded by `count` bits: those that begin with 0 are negative.
#[inline(always)]
pub(super) fn extend(number: i32, count: u32) -> i32 {
    let negative = i32::from(count > 0 && number >> (count - 1) == 0);
    number - negative * ((1 << count) - 1)
}

/// Returns the number of a restart marker, 0 to 7; `None` for other markers.
pub(super) fn restart_number(marker: u8) -> Option<u8> {
    matches!(marker, code::RST0..=code::RST7).then_some(marker & 7)
}

/// Returns whether one of the eight bytes is `FF`.
#[inline(always)]
fn has_ff(word: u64) -> bool {
    let zeros = !word;
    zeros.wrapping_sub(0x0101_0101_0101_0101) & !zeros & 0x8080_8080_8080_8080 != 0
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn bit_reader_removes_byte_stuffing(
            data in prop::collection::vec(prop_oneof![Just(0xff_u8), any::<u8>()], 0..60),
            lengths in prop::collection::vec(1_u32..17, 1..80),
        ) {
            let mut stuffed = Vec::new();
            for byte in &data {
                stuffed.push(*byte);
                if *byte == 0xff {
                    stuffed.push(0);
                }
            }
            stuffed.extend([0xff, 0xd9]);
            let mut bits = BitReader::new(&stuffed, 0);
            let mut used = 0;
            for length in lengths {
                let wanted = (used..used + length as usize).fold(0, |number, at| {
                    let byte = data.get(at / 8).copied().unwrap_or(0);
                    number << 1 | u32::from(byte >> (7 - at % 8) & 1)
                });
                prop_assert_eq!(bits.number(length), wanted);
                used += length as usize;
                prop_assert_eq!(bits.ran_out(), used > 8 * data.len());
            }
            prop_assert_eq!(bits.find_marker(), Some(0xd9));
            prop_assert_eq!(bits.at(), stuffed.len() - 2);
        }
    }

    #[test]
    fn numbers_extend_to_both_signs() {
        let table =
            [(0, 0, 0), (0, 1, -1), (1, 1, 1), (0, 2, -3), (1, 2, -2), (2, 2, 2), (3, 2, 3)];
        for (number, count, value) in table {
            assert_eq!(extend(number, count), value);
        }
        assert_eq!((extend(0, 16), extend(0xffff, 16)), (-65_535, 65_535));
    }

    #[test]
    fn next_marker_is_found_after_fill_bytes() {
        let mut bits = BitReader::new(&[1, 0xff, 0, 2, 0xff, 0xff, 0xd3, 9, 0xff], 0);
        assert_eq!(bits.find_marker().and_then(restart_number), Some(3));
        bits.skip_marker();
        assert_eq!(bits.number(8), 9);
        assert_eq!((bits.find_marker(), bits.at()), (None, 9));
    }
}
