//! Prefix codes of limited length, and their stored form (RFC 7932 section 3).

use super::bit_writer::BitWriter;

/// Longest code of a symbol.
const CODE_BITS_MAX: u32 = 15;
/// Longest code of a code length.
const LENGTH_CODE_BITS_MAX: u32 = 5;
/// Code lengths are 0 to 15; these repeat the last one other than 0, or 0.
const REPEAT: usize = 16;
const REPEAT_ZERO: usize = 17;
/// Order in which the lengths of the codes of code lengths are stored.
const LENGTH_CODE_ORDER: [usize; 18] =
    [1, 2, 3, 4, 0, 5, 17, 6, 16, 7, 8, 9, 10, 11, 12, 13, 14, 15];
/// Value and bits in which a length of up to 5 is stored.
const STORED_LENGTH: [(u32, u32); 6] = [(0, 2), (7, 4), (3, 3), (2, 2), (1, 2), (15, 4)];

/// Prefix code of an alphabet.
pub(super) struct PrefixCode {
    /// Length of the code of each symbol; 0 if it does not occur, or is the only one.
    lengths: Vec<u8>,
    codes: Vec<u16>,
    /// Symbols that occur, ascending.
    used: Vec<usize>,
}

impl PrefixCode {
    /// Creates the code for the number of occurrences of each symbol of the alphabet.
    pub(super) fn of_counts(counts: &[u32]) -> Self {
        Self::limited(counts, CODE_BITS_MAX)
    }

    fn limited(counts: &[u32], bits_max: u32) -> Self {
        let used: Vec<usize> = (0..counts.len()).filter(|symbol| counts[*symbol] > 0).collect();
        let mut lengths = vec![0_u8; counts.len()];
        let mut count_min = 1;
        while used.len() > 1 {
            let leaves = used.iter().map(|symbol| (counts[*symbol].max(count_min), *symbol));
            if assign_lengths(leaves.collect(), &mut lengths) <= bits_max {
                break;
            }
            // Flattens the code; equal counts have codes of at most ten bits.
            count_min *= 2;
        }
        let codes = canonical_codes(&lengths);
        Self { lengths, codes, used }
    }

    /// Writes the code of a symbol.
    pub(super) fn write(&self, symbol: usize, writer: &mut BitWriter) {
        writer.write(u32::from(self.codes[symbol]), u32::from(self.lengths[symbol]));
    }

    /// Stores the code itself.
    pub(super) fn store(&self, writer: &mut BitWriter) {
        if self.used.len() <= 4 { self.store_simple(writer) } else { self.store_complex(writer) }
    }

    /// Stores a code of up to four symbols: the symbols, by length.
    fn store_simple(&self, writer: &mut BitWriter) {
        let symbol_bits = usize::BITS - (self.lengths.len() - 1).leading_zeros();
        let mut symbols = if self.used.is_empty() { vec![0] } else { self.used.clone() };
        symbols.sort_by_key(|symbol| self.lengths[*symbol]);
        writer.write(1, 2);
        writer.write(symbols.len() as u32 - 1, 2);
        for symbol in &symbols {
            writer.write(*symbol as u32, symbol_bits);
        }
        if let [first, _, _, _] = symbols[..] {
            writer.write(u32::from(self.lengths[first] == 1), 1);
        }
    }

    fn store_complex(&self, writer: &mut BitWriter) {
        let tokens = run_length_encode(&self.lengths);
        let mut counts = [0; 18];
        for (token, _) in &tokens {
            counts[*token] += 1;
        }
        let code = Self::limited(&counts, LENGTH_CODE_BITS_MAX);
        let mut stored = LENGTH_CODE_ORDER.map(|token| code.lengths[token]);
        let is_single = code.used.len() == 1;
        if let (true, Some(only)) = (is_single, code.used.first()) {
            let at = LENGTH_CODE_ORDER.iter().position(|token| token == only);
            stored[at.unwrap_or_default()] = 1;
        }
        let skipped = match stored {
            [0, 0, 0, ..] => 3,
            [0, 0, ..] => 2,
            _ => 0,
        };
        writer.write(skipped as u32, 2);
        let last = stored.iter().rposition(|length| *length > 0).unwrap_or_default();
        let end = if is_single { stored.len() } else { last + 1 };
        for length in stored.get(skipped..end).unwrap_or_default() {
            let (value, bits) = STORED_LENGTH[usize::from(*length)];
            writer.write(value, bits);
        }
        for (token, extra) in tokens {
            code.write(token, writer);
            match token {
                REPEAT => writer.write(extra, 2),
                REPEAT_ZERO => writer.write(extra, 3),
                _ => {}
            }
        }
    }
}

/// Assigns the lengths of a Huffman code to at least two symbols, given with their counts, and returns the longest.
fn assign_lengths(mut leaves: Vec<(u32, usize)>, lengths: &mut [u8]) -> u32 {
    leaves.sort_unstable();
    let count = leaves.len();
    let mut weights: Vec<u64> = leaves.iter().map(|(weight, _)| u64::from(*weight)).collect();
    let mut parents = vec![0_usize; 2 * count - 1];
    // Leaves and inner nodes are both in ascending order.
    let (mut leaf, mut inner) = (0, count);
    for node in count..2 * count - 1 {
        let mut weight = 0;
        for _ in 0..2 {
            let is_leaf = leaf < count && (inner >= node || weights[leaf] <= weights[inner]);
            let child = if is_leaf { &mut leaf } else { &mut inner };
            weight += weights[*child];
            parents[*child] = node;
            *child += 1;
        }
        weights.push(weight);
    }
    let mut depths = vec![0_u32; 2 * count - 1];
    for node in (0..2 * count - 2).rev() {
        depths[node] = depths[parents[node]] + 1;
    }
    for ((_, symbol), depth) in leaves.iter().zip(&depths) {
        lengths[*symbol] = u8::try_from(*depth).unwrap_or(u8::MAX);
    }
    depths.iter().copied().max().unwrap_or_default()
}

/// Returns the canonical codes of these lengths, the first bit lowest.
fn canonical_codes(lengths: &[u8]) -> Vec<u16> {
    let mut codes = vec![0; lengths.len()];
    let mut next = 0_u16;
    for bits in 1..=CODE_BITS_MAX as u8 {
        next <<= 1;
        for (code, _) in codes.iter_mut().zip(lengths).filter(|(_, length)| **length == bits) {
            *code = next.reverse_bits() >> (16 - bits);
            next += 1;
        }
    }
    codes
}

/// Returns the code lengths as tokens with their extra bits; zeros at the end are implied.
fn run_length_encode(lengths: &[u8]) -> Vec<(usize, u32)> {
    let mut tokens = Vec::new();
    let mut rest = match lengths.iter().rposition(|length| *length > 0) {
        Some(last) => lengths.get(..=last).unwrap_or_default(),
        None => &[],
    };
    let mut repeated = 8;
    while let [length, ..] = *rest {
        let run = rest.iter().take_while(|next| **next == length).count();
        rest = rest.get(run..).unwrap_or_default();
        let mut left = run;
        if length != 0 && length != repeated {
            tokens.push((usize::from(length), 0));
            repeated = length;
            left -= 1;
        }
        let (token, radix) = if length == 0 { (REPEAT_ZERO, 8) } else { (REPEAT, 4) };
        if left < 3 {
            tokens.extend(std::iter::repeat_n((usize::from(length), 0), left));
            continue;
        }
        // Consecutive repetitions are the digits of one number.
        let start = tokens.len();
        left -= 3;
        loop {
            tokens.push((token, (left % radix) as u32));
            left /= radix;
            if left == 0 {
                break;
            }
            left -= 1;
        }
        if let Some(digits) = tokens.get_mut(start..) {
            digits.reverse();
        }
    }
    tokens
}
