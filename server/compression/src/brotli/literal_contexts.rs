//! Contexts of literals, and their grouping into prefix codes (RFC 7932 section 7).

use super::bit_writer::BitWriter;
use super::prefix_code::PrefixCode;

/// Number of contexts.
pub(super) const CONTEXTS: usize = 64;
/// Stored number of the context mode: by the kind of the last two characters, in UTF-8.
pub(super) const MODE_UTF8: u32 = 2;
/// Estimated bits of a stored prefix code: per symbol, and in all.
const STORED_SYMBOL_BITS: f32 = 5.0;
const STORED_CODE_BITS: f32 = 25.0;

/// Kind of the last byte, for ASCII: control, white space, punctuation of several kinds, digit, letters, vowels.
#[rustfmt::skip]
const LAST: [u8; 128] = [
     0,  0,  0,  0,  0,  0,  0,  0,  0,  4,  4,  0,  0,  4,  0,  0,
     0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,
     8, 12, 16, 12, 12, 20, 12, 16, 24, 28, 12, 12, 32, 12, 36, 12,
    44, 44, 44, 44, 44, 44, 44, 44, 44, 44, 32, 32, 24, 40, 28, 12,
    12, 48, 52, 52, 52, 48, 52, 52, 52, 48, 52, 52, 52, 52, 52, 48,
    52, 52, 52, 52, 52, 48, 52, 52, 52, 52, 52, 24, 12, 28, 12, 12,
    12, 56, 60, 60, 60, 56, 60, 60, 60, 56, 60, 60, 60, 60, 60, 56,
    60, 60, 60, 60, 60, 56, 60, 60, 60, 60, 60, 24, 12, 28, 12,  0,
];

/// Returns the context of the byte at a position.
pub(super) fn context(bytes: &[u8], position: usize) -> usize {
    let before = |distance| position.checked_sub(distance).map_or(0, |at| bytes[at]);
    let last = match before(1) {
        ascii @ 0..128 => LAST[usize::from(ascii)],
        continuation @ 128..192 => continuation & 1,
        lead => 2 | lead & 1,
    };
    let second = match before(2) {
        b'a'..=b'z' => 3,
        b'A'..=b'Z' | b'0'..=b'9' | 224.. => 2,
        0..=b' ' | 127..224 => 0,
        _ => 1,
    };
    usize::from(last | second)
}

/// Groups of contexts, each with one prefix code.
pub(super) struct ContextGroups {
    /// Group of each context.
    map: [u8; CONTEXTS],
    codes: Vec<PrefixCode>,
}

/// Counts of the bytes in some contexts.
#[derive(Clone)]
struct Histogram {
    /// Occurrences of each of the bytes that occur in the meta-block.
    counts: Vec<u32>,
    /// Estimated bits of these bytes, and of the stored code.
    cost: f32,
}

impl ContextGroups {
    /// Groups the contexts, such that the codes and the bytes take the fewest bits. `counts` has 256 for each context.
    pub(super) fn new(counts: &[[u32; 256]]) -> Self {
        let occurs = |byte: &usize| counts.iter().any(|of| of[*byte] > 0);
        let bytes: Vec<usize> = (0..256).filter(occurs).collect();
        let logs = Logarithms::new();
        let mut map = [0_u8; CONTEXTS];
        let mut groups: Vec<Histogram> = Vec::new();
        for (of, group) in counts.iter().zip(&mut map) {
            let counts: Vec<u32> = bytes.iter().map(|byte| of[*byte]).collect();
            if counts.iter().any(|count| *count > 0) {
                *group = groups.len() as u8;
                let cost = logs.cost(counts.iter().copied());
                groups.push(Histogram { counts, cost });
            }
        }
        merge(&mut groups, &mut map, &logs);
        let code = |group: &Histogram| {
            let mut counts = [0; 256];
            for (byte, count) in bytes.iter().zip(&group.counts) {
                counts[*byte] = *count;
            }
            PrefixCode::of_counts(&counts)
        };
        let mut codes: Vec<PrefixCode> = groups.iter().map(code).collect();
        if codes.is_empty() {
            codes.push(PrefixCode::of_counts(&[0; 256]));
        }
        Self { map, codes }
    }

    /// Returns the code of a context.
    pub(super) fn code(&self, context: usize) -> &PrefixCode {
        &self.codes[usize::from(self.map[context])]
    }

    pub(super) fn codes(&self) -> &[PrefixCode] {
        &self.codes
    }

    /// Stores the map from contexts to codes, if there are several: without runs, and without move-to-front.
    pub(super) fn store_map(&self, writer: &mut BitWriter) {
        if self.codes.len() < 2 {
            return;
        }
        let mut counts = vec![0; self.codes.len()];
        for group in self.map {
            counts[usize::from(group)] += 1;
        }
        let code = PrefixCode::of_counts(&counts);
        writer.write(0, 1);
        code.store(writer);
        for group in self.map {
            code.write(usize::from(group), writer);
        }
        writer.write(0, 1);
    }
}

/// Merges the pair of groups that saves most, as long as one saves any bits.
fn merge(groups: &mut Vec<Histogram>, map: &mut [u8; CONTEXTS], logs: &Logarithms) {
    let saving = |one: &Histogram, other: &Histogram| {
        let sums = one.counts.iter().zip(&other.counts).map(|(one, other)| one + other);
        one.cost + other.cost - logs.cost(sums)
    };
    let mut savings = [[f32::MIN; CONTEXTS]; CONTEXTS];
    for (high, one) in groups.iter().enumerate() {
        for (low, other) in groups.iter().enumerate().take(high) {
            savings[high][low] = saving(one, other);
        }
    }
    loop {
        let pairs = (1..groups.len()).flat_map(|high| (0..high).map(move |low| (high, low)));
        let best = pairs.max_by(|(a, b), (c, d)| savings[*a][*b].total_cmp(&savings[*c][*d]));
        let Some((high, low)) = best.filter(|(high, low)| savings[*high][*low] > 0.0) else {
            return;
        };
        // The last group takes the number of the one that is merged into the lower.
        let last = groups.len() - 1;
        let merged = groups.swap_remove(high);
        for group in map.iter_mut() {
            *group = match usize::from(*group) {
                of if of == high => low as u8,
                of if of == last => high as u8,
                of => of as u8,
            };
        }
        for (sum, count) in groups[low].counts.iter_mut().zip(merged.counts) {
            *sum += count;
        }
        groups[low].cost = logs.cost(groups[low].counts.iter().copied());
        for changed in [low, high] {
            for other in (0..groups.len()).filter(|other| *other != changed) {
                if let (Some(one), Some(two)) = (groups.get(changed), groups.get(other)) {
                    savings[changed.max(other)][changed.min(other)] = saving(one, two);
                }
            }
        }
    }
}

/// Table of `n * log2(n)`.
struct Logarithms(Vec<f32>);

impl Logarithms {
    fn new() -> Self {
        let of = |count: u16| f32::from(count) * f32::from(count.max(1)).log2();
        Self((0..1_024).map(of).collect())
    }

    fn of(&self, count: u32) -> f32 {
        let large = || count as f32 * (count as f32).log2();
        self.0.get(count as usize).copied().unwrap_or_else(large)
    }

    /// Returns the estimated bits of bytes with these counts, and of their stored code.
    fn cost(&self, counts: impl Iterator<Item = u32>) -> f32 {
        let (mut total, mut kinds, mut sum) = (0, 0, 0.0);
        for count in counts {
            total += count;
            kinds += u16::from(count > 0);
            sum += self.of(count);
        }
        self.of(total) - sum + STORED_SYMBOL_BITS * f32::from(kinds) + STORED_CODE_BITS
    }
}
