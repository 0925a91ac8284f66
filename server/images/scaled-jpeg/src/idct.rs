//! Inverse DCT of 1 to 4 points in each direction, from the retained coefficients (T.81, A.3.3, at n points).
//!
//! It is the inverse DCT of 8 x 8 points, evaluated at the positions of n x n samples, without the frequencies from
//! n on. With a gain of one for the DC term, one direction of n points is
//!
//! ```text
//! y(x) = f(0) + sqrt(2) * sum over k from 1 to n - 1 of f(k) * cos((2 x + 1) k pi / 2 n)
//! ```
//!
//! and the product of both directions is divided by 8. It uses floating-point vectors of four, because compilers can
//! vectorize them with only baseline x86-64, where 32-bit integer multiplication is slow.
//!
//! Guarantees: within 1 of the exact result, rounded and clamped to 0..=255; the same on every machine.

use super::whole_block;

/// Clamping limit of dequantised coefficients; those of 8-bit samples are below 2,048.
pub(super) const COEFFICIENT_MAX: i32 = 4_095;

/// Transforms one block to samples at an offset of a plane with a stride. An offset outside the plane does nothing.
pub(super) type IdctFn<B> = fn(&B, BlockKind, &mut [u8], usize, usize);

/// Retained coefficients of a block, row by row: 16 at the reduced scales, 64 at full size.
pub(super) trait CoefficientBlock: Copy + AsRef<[i32]> + AsMut<[i32]> {
    /// Block of zeros.
    const ZERO: Self;

    /// Returns the inverse DCT of `across` x `down` points, at most the size of the block.
    fn inverse(across: usize, down: usize) -> IdctFn<Self>;
}

impl CoefficientBlock for [i32; 16] {
    const ZERO: Self = [0; 16];

    fn inverse(across: usize, down: usize) -> IdctFn<Self> {
        for_size(across, down)
    }
}

impl CoefficientBlock for [i32; 64] {
    const ZERO: Self = [0; 64];

    fn inverse(_: usize, _: usize) -> IdctFn<Self> {
        whole_block::inverse
    }
}

/// Whether a block has AC coefficients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BlockKind {
    DcOnly,
    Varied,
}

/// Four numbers of one row.
type Line = [f32; 4];

/// sqrt(2) * cos(pi / 8), of four points.
const FOUR_1: f32 = 1.306_563;
/// sqrt(2) * cos(3 pi / 8), of four points.
const FOUR_3: f32 = 0.541_196_1;
/// sqrt(2) * cos(pi / 6), of three points.
const THREE_1: f32 = 1.224_744_9;
/// sqrt(2) * cos(pi / 3), of three points.
const THREE_2: f32 = std::f32::consts::FRAC_1_SQRT_2;
/// sqrt(2), of three points.
const THREE_MIDDLE: f32 = std::f32::consts::SQRT_2;

/// Returns the weights of frequencies 1 to 3 at each of `N` points; the DC term has weight 1.
const fn weights<const N: usize>() -> [Line; 3] {
    match N {
        1 => [[0.0; 4]; 3],
        2 => [[1.0, -1.0, 0.0, 0.0], [0.0; 4], [0.0; 4]],
        3 => [[THREE_1, 0.0, -THREE_1, 0.0], [THREE_2, -THREE_MIDDLE, THREE_2, 0.0], [0.0; 4]],
        _ => [
            [FOUR_1, FOUR_3, -FOUR_3, -FOUR_1],
            [1.0, -1.0, -1.0, 1.0],
            [FOUR_3, -FOUR_1, FOUR_1, -FOUR_3],
        ],
    }
}

/// Returns the inverse DCT of `across` x `down` points, each 1 to 4.
fn for_size(across: usize, down: usize) -> IdctFn<[i32; 16]> {
    match (across, down) {
        (1, 1) => block::<1, 1>,
        (1, 2) => block::<1, 2>,
        (1, 3) => block::<1, 3>,
        (1, _) => block::<1, 4>,
        (2, 1) => block::<2, 1>,
        (2, 2) => block::<2, 2>,
        (2, 3) => block::<2, 3>,
        (2, _) => block::<2, 4>,
        (3, 1) => block::<3, 1>,
        (3, 2) => block::<3, 2>,
        (3, 3) => block::<3, 3>,
        (3, _) => block::<3, 4>,
        (_, 1) => block::<4, 1>,
        (_, 2) => block::<4, 2>,
        (_, 3) => block::<4, 3>,
        (_, _) => block::<4, 4>,
    }
}

/// Multiplies a coefficient with its quantisation step, with clamping.
#[inline(always)]
pub(super) fn dequantised(coefficient: i32, step: u16) -> i32 {
    // Both factors have 16 bits: the product has at most 32, and a sign.
    let exact = coefficient.wrapping_mul(i32::from(step));
    exact.clamp(-COEFFICIENT_MAX, COEFFICIENT_MAX)
}

fn block<const ACROSS: usize, const DOWN: usize>(
    coefficients: &[i32; 16],
    flatness: BlockKind,
    samples: &mut [u8],
    at: usize,
    stride: usize,
) {
    let rows = if flatness == BlockKind::DcOnly || ACROSS * DOWN == 1 {
        let [constant, ..] = coefficients;
        [[sample((*constant + 4) >> 3); 4]; 4]
    } else {
        varied::<ACROSS, DOWN>(coefficients)
    };
    let mut at = at;
    for row in rows.iter().take(DOWN) {
        let place = samples.get_mut(at..).and_then(<[u8]>::first_chunk_mut::<ACROSS>);
        if let (Some(place), Some(row)) = (place, row.first_chunk()) {
            *place = *row;
        }
        at += stride;
    }
}

/// Uses loops instead of `map`, which is called for each line if it is not inlined.
#[inline(always)]
fn varied<const ACROSS: usize, const DOWN: usize>(coefficients: &[i32; 16]) -> [[u8; 4]; 4] {
    let mut kept = [[0.0; 4]; 4];
    for (line, row) in kept.iter_mut().zip(coefficients.chunks_exact(ACROSS)).take(DOWN) {
        line.iter_mut().zip(row).for_each(|(into, kept)| *into = *kept as f32);
    }
    // Down: each line of samples is the DC line plus the weighted others.
    let [constant, varying @ ..] = &kept;
    let mut between = [*constant; 4];
    for (line, weights) in varying.iter().zip(const { weights::<DOWN>() }).take(DOWN - 1) {
        for (into, weight) in between.iter_mut().zip(weights) {
            into.iter_mut().zip(line).for_each(|(into, value)| *into += value * weight);
        }
    }
    // Across: each number of a line contributes to all of its samples. Scaled by eight, around zero.
    let mut rows = [[0; 4]; 4];
    for (row, [constant, varying @ ..]) in rows.iter_mut().zip(&between).take(DOWN) {
        let mut sums = [*constant; 4];
        for (value, weights) in varying.iter().zip(const { weights::<ACROSS>() }).take(ACROSS - 1) {
            sums.iter_mut().zip(weights).for_each(|(sum, weight)| *sum += value * weight);
        }
        row.iter_mut().zip(sums).for_each(|(sample, sum)| *sample = rounded(sum * 0.125 + 128.0));
    }
    rows
}

/// Rounds to the nearest sample.
#[inline(always)]
pub(super) fn rounded(value: f32) -> u8 {
    // Adding this number rounds away the fraction and leaves the integer in the lowest bits.
    const POINTLESS: f32 = (1_u32 << 23) as f32;
    // In this order each comparison is one instruction: there are no NaNs here.
    let value = if value > 0.0 { value } else { 0.0 };
    let value = if value < 255.0 { value } else { 255.0 };
    (value + POINTLESS).to_bits() as u8
}

/// Converts a value around zero to a sample.
#[inline(always)]
pub(super) fn sample(value: i32) -> u8 {
    (value + 128).clamp(0, 255) as u8
}

#[cfg(test)]
mod tests {
    use std::f64::consts::{PI, SQRT_2};

    use proptest::prelude::*;

    use super::*;

    /// Computes the definition in floating point, as the reference.
    fn exact(coefficients: &[i32; 16], across: usize, down: usize) -> Vec<f64> {
        let weight = |n: usize, x: usize, k: usize| {
            let angle = (2 * x + 1) as f64 * k as f64 * PI / (2 * n) as f64;
            if k == 0 { 1.0 } else { SQRT_2 * angle.cos() }
        };
        let mut samples = Vec::new();
        for y in 0..down {
            for x in 0..across {
                let mut sum = 0.0;
                for v in 0..down {
                    for u in 0..across {
                        let coefficient = f64::from(coefficients[v * across + u]);
                        sum += coefficient * weight(across, x, u) * weight(down, y, v);
                    }
                }
                samples.push((sum / 8.0 + 128.0).round().clamp(0.0, 255.0));
            }
        }
        samples
    }

    fn ours(coefficients: &[i32; 16], across: usize, down: usize) -> Vec<f64> {
        let mut samples = vec![0; across * down];
        <[i32; 16]>::inverse(across, down)(
            coefficients,
            BlockKind::Varied,
            &mut samples,
            0,
            across,
        );
        samples.into_iter().map(f64::from).collect()
    }

    proptest! {
        #[test]
        fn idct_is_within_one_of_the_reference(
            coefficients in prop::array::uniform16(-600_i32..600),
            across in 1_usize..5,
            down in 1_usize..5,
        ) {
            let exact = exact(&coefficients, across, down);
            for (ours, exact) in ours(&coefficients, across, down).iter().zip(&exact) {
                prop_assert!((ours - exact).abs() <= 1.0, "{ours} for {exact}");
            }
        }

        #[test]
        fn no_coefficients_overflow(
            signs in any::<u16>(),
            across in 1_usize..5,
            down in 1_usize..5,
        ) {
            let coefficients = std::array::from_fn(|at| {
                if signs >> at & 1 == 1 { COEFFICIENT_MAX } else { -COEFFICIENT_MAX }
            });
            let exact = exact(&coefficients, across, down);
            for (ours, exact) in ours(&coefficients, across, down).iter().zip(&exact) {
                prop_assert!((ours - exact).abs() <= 1.0, "{ours} for {exact}");
            }
        }
    }

    #[test]
    fn scaled_idct_equals_downscaled_block() {
        // A ramp of 8 columns, transformed at 8 points and back at n: a ramp of n columns with the same ends and the
        // same mean.
        let ramp: [f64; 8] = std::array::from_fn(|x| (x as f64 - 3.5) * 16.0);
        let forward = |k: usize| -> f64 {
            let scale = if k == 0 { (1.0 / 8.0_f64).sqrt() } else { 0.5 };
            let terms = ramp.iter().enumerate().map(|(x, value)| {
                value * scale * ((2 * x + 1) as f64 * k as f64 * PI / 16.0).cos()
            });
            terms.sum::<f64>() * 8.0_f64.sqrt()
        };
        for n in 2..=4 {
            let mut coefficients = [0; 16];
            for (k, place) in coefficients.iter_mut().enumerate().take(n) {
                *place = forward(k).round() as i32;
            }
            for (x, sample) in ours(&coefficients, n, 1).iter().enumerate() {
                let middle = (x as f64 + 0.5) * 8.0 / n as f64 - 0.5;
                let wanted = 128.0 + (middle - 3.5) * 16.0;
                assert!((sample - wanted).abs() <= 5.0, "{sample} for {wanted} at {x} of {n}");
            }
        }
    }

    #[test]
    fn dc_only_block_is_its_mean() {
        let mut coefficients = [0; 16];
        coefficients[0] = 801;
        for (across, down) in [(1, 1), (2, 4), (4, 4), (3, 1)] {
            let mut samples = [9; 64];
            for_size(across, down)(&coefficients, BlockKind::DcOnly, &mut samples, 8, 8);
            for (at, sample) in samples.iter().enumerate() {
                let inside = at % 8 < across && (1..=down).contains(&(at / 8));
                assert_eq!(*sample, if inside { 228 } else { 9 }, "{at}");
            }
        }
        let mut short = [9; 3];
        for_size(4, 4)(&coefficients, BlockKind::DcOnly, &mut short, 0, 4);
        for_size(4, 4)(&coefficients, BlockKind::DcOnly, &mut short, 1 << 40, 4);
        assert_eq!(short, [9; 3], "what is outside is left alone");
    }

    #[test]
    fn extreme_coefficients_do_not_overflow() {
        for coefficient in [i16::MIN, -1, 0, 1, i16::MAX] {
            for step in [1, 255, u16::MAX] {
                let exact = i64::from(coefficient) * i64::from(step);
                let bound = i64::from(COEFFICIENT_MAX);
                let value = dequantised(i32::from(coefficient), step);
                assert_eq!(i64::from(value), exact.clamp(-bound, bound));
            }
        }
    }
}
