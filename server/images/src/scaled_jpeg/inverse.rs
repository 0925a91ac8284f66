//! Kept coefficients into samples: inverse transforms of 1 to 4 points in each direction (T.81, A.3.3, at n points).
//!
//! The inverse of 8 x 8 points, evaluated where n x n samples lie, with the frequencies from n on left out. With a
//! gain of one for the constant term, one direction of n points is
//!
//! ```text
//! y(x) = f(0) + sqrt(2) * sum over k from 1 to n - 1 of f(k) * cos((2 x + 1) k pi / 2 n)
//! ```
//!
//! and the two of them together are divided by 8. For n = 2 that is a sum and a difference. Constants have 13 bits
//! behind the point, the numbers between both directions 2. Coefficients are within [`COEFFICIENT_MAX`], which keeps
//! all of it within 32 bits; those of 8-bit samples are below 2,048.
//!
//! Promises: within 1 of the exact result, rounded and cut off to 0..=255.

/// Dequantised coefficients are cut off here. 4,095 * 3.85 * 4 * 3.85 * 8,192 is below 2^31.
pub(super) const COEFFICIENT_MAX: i32 = 4_095;

/// Turns one block into samples at an offset of a plane with a stride. An offset outside does nothing.
pub(super) type Inverse = fn(&[i32; 16], Flatness, &mut [u8], usize, usize);

/// Whether a block has more than its constant term.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Flatness {
    Flat,
    Varied,
}

const POINT_BITS: u32 = 13;
const BETWEEN_BITS: u32 = 2;

/// A constant as an integer with `POINT_BITS` behind the point.
const fn fixed(value: f64) -> i32 {
    (value * (1 << POINT_BITS) as f64 + 0.5) as i32
}

/// sqrt(2) * cos(pi / 8), of four points.
const FOUR_1: i32 = fixed(1.306_562_964_876_376_6);
/// sqrt(2) * cos(3 pi / 8), of four points.
const FOUR_3: i32 = fixed(0.541_196_100_146_197);
/// sqrt(2) * cos(pi / 6), of three points.
const THREE_1: i32 = fixed(1.224_744_871_391_589);
/// sqrt(2) * cos(pi / 3), of three points.
const THREE_2: i32 = fixed(std::f64::consts::FRAC_1_SQRT_2);
/// sqrt(2), of three points.
const THREE_MIDDLE: i32 = fixed(std::f64::consts::SQRT_2);

/// The inverse of `across` x `down` points, each 1 to 4.
pub(super) fn of(across: usize, down: usize) -> Inverse {
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

/// A quantised coefficient times its step, within the bound.
#[inline(always)]
pub(super) fn dequantised(coefficient: i32, step: u16) -> i32 {
    // A coefficient has 16 bits and a step has 16: the product has 32 at most, and its sign.
    let exact = coefficient.wrapping_mul(i32::from(step));
    exact.clamp(-COEFFICIENT_MAX, COEFFICIENT_MAX)
}

fn block<const ACROSS: usize, const DOWN: usize>(
    coefficients: &[i32; 16],
    flatness: Flatness,
    samples: &mut [u8],
    at: usize,
    stride: usize,
) {
    let rows = if flatness == Flatness::Flat || ACROSS * DOWN == 1 {
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

/// Loops, and no `map`: that is called for each line where it is not inlined.
#[inline(always)]
fn varied<const ACROSS: usize, const DOWN: usize>(coefficients: &[i32; 16]) -> [[u8; 4]; 4] {
    let mut between = [[0; 4]; 4];
    for (row, kept) in between.iter_mut().zip(coefficients.chunks_exact(ACROSS)).take(DOWN) {
        let mut line = [0; 4];
        line.iter_mut().zip(kept).for_each(|(into, kept)| *into = *kept);
        const SHIFT: u32 = POINT_BITS - BETWEEN_BITS;
        for (into, value) in row.iter_mut().zip(direction::<ACROSS>(line)) {
            *into = (value + (1 << (SHIFT - 1))) >> SHIFT;
        }
    }
    let mut rows = [[0; 4]; 4];
    let [first, second, third, fourth] = &between;
    let lines = first.iter().zip(second).zip(third).zip(fourth);
    for (x, (((first, second), third), fourth)) in lines.enumerate().take(ACROSS) {
        let line = direction::<DOWN>([*first, *second, *third, *fourth]);
        const SHIFT: u32 = POINT_BITS + BETWEEN_BITS + 3;
        for (row, value) in rows.iter_mut().zip(line).take(DOWN) {
            if let Some(into) = row.get_mut(x) {
                *into = sample((value + (1 << (SHIFT - 1))) >> SHIFT);
            }
        }
    }
    rows
}

/// One direction of `N` points; results have `POINT_BITS` more behind the point.
#[inline(always)]
fn direction<const N: usize>([f0, f1, f2, f3]: [i32; 4]) -> [i32; 4] {
    match N {
        1 => [f0 << POINT_BITS, 0, 0, 0],
        2 => [(f0 + f1) << POINT_BITS, (f0 - f1) << POINT_BITS, 0, 0],
        3 => {
            let (even, odd) = ((f0 << POINT_BITS) + f2 * THREE_2, f1 * THREE_1);
            [even + odd, (f0 << POINT_BITS) - f2 * THREE_MIDDLE, even - odd, 0]
        }
        _ => {
            let (outer, inner) = ((f0 + f2) << POINT_BITS, (f0 - f2) << POINT_BITS);
            let (far, near) = (f1 * FOUR_1 + f3 * FOUR_3, f1 * FOUR_3 - f3 * FOUR_1);
            [outer + far, inner + near, inner - near, outer - far]
        }
    }
}

/// A sample of a value around zero.
#[inline(always)]
fn sample(value: i32) -> u8 {
    (value + 128).clamp(0, 255) as u8
}

#[cfg(test)]
mod tests {
    use std::f64::consts::{PI, SQRT_2};

    use proptest::prelude::*;

    use super::*;

    /// The definition, in floating point.
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
        of(across, down)(coefficients, Flatness::Varied, &mut samples, 0, across);
        samples.into_iter().map(f64::from).collect()
    }

    proptest! {
        #[test]
        fn every_size_is_within_one_of_the_definition(
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
    fn a_reduced_transform_is_the_block_at_a_smaller_size() {
        // A ramp of 8 columns, forward at 8 points, back at n: a ramp of n columns with the same ends and the same
        // mean.
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
    fn flat_blocks_are_the_mean_and_strides_are_kept() {
        let mut coefficients = [0; 16];
        coefficients[0] = 801;
        for (across, down) in [(1, 1), (2, 4), (4, 4), (3, 1)] {
            let mut samples = [9; 64];
            of(across, down)(&coefficients, Flatness::Flat, &mut samples, 8, 8);
            for (at, sample) in samples.iter().enumerate() {
                let inside = at % 8 < across && (1..=down).contains(&(at / 8));
                assert_eq!(*sample, if inside { 228 } else { 9 }, "{at}");
            }
        }
        let mut short = [9; 3];
        of(4, 4)(&coefficients, Flatness::Flat, &mut short, 0, 4);
        of(4, 4)(&coefficients, Flatness::Flat, &mut short, 1 << 40, 4);
        assert_eq!(short, [9; 3], "what is outside is left alone");
    }

    #[test]
    fn steps_and_coefficients_of_any_size_stay_within_the_bound() {
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
