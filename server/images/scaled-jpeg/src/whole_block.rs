//! Inverse DCT of a whole block: 8 x 8 points (T.81, A.3.3), for the full size.
//!
//! As in [`super::inverse`], in floating point. At 8 points the even frequencies are symmetric around the middle and
//! the odd ones antisymmetric, so each half is summed once for two samples.

use super::idct::{BlockKind, rounded, sample};

/// sqrt(2) * cos(k * pi / 16), by k; the DC term has weight 1.
const C1: f32 = 1.387_039_8;
const C2: f32 = 1.306_563;
const C3: f32 = 1.175_875_6;
const C4: f32 = 1.0;
const C5: f32 = 0.785_694_96;
const C6: f32 = 0.541_196_1;
const C7: f32 = 0.275_899_38;

/// Weights of frequencies 0, 2, 4 and 6 at the first four samples.
const EVEN: [[f32; 4]; 4] = [[1.0; 4], [C2, C6, -C6, -C2], [C4, -C4, -C4, C4], [C6, -C2, C2, -C6]];
/// Weights of frequencies 1, 3, 5 and 7 at the first four samples.
const ODD: [[f32; 4]; 4] =
    [[C1, C3, C5, C7], [C3, -C7, -C1, -C5], [C5, -C1, C7, C3], [C7, -C5, C3, -C1]];

/// Turns one block of dequantised coefficients into 8 x 8 samples. An offset outside the plane does nothing.
pub(super) fn inverse(
    coefficients: &[i32; 64],
    flatness: BlockKind,
    samples: &mut [u8],
    at: usize,
    stride: usize,
) {
    let rows = if flatness == BlockKind::DcOnly {
        let [constant, ..] = coefficients;
        [[sample((*constant + 4) >> 3); 8]; 8]
    } else {
        varied(coefficients)
    };
    let mut at = at;
    for row in rows {
        if let Some(place) = samples.get_mut(at..).and_then(<[u8]>::first_chunk_mut) {
            *place = row;
        }
        at += stride;
    }
}

#[inline(always)]
fn varied(coefficients: &[i32; 64]) -> [[u8; 8]; 8] {
    let mut kept = [[0.0_f32; 8]; 8];
    for (line, row) in kept.iter_mut().zip(coefficients.as_chunks::<8>().0) {
        line.iter_mut().zip(row).for_each(|(into, kept)| *into = *kept as f32);
    }
    let between = columns(&kept);
    let mut rows = [[0; 8]; 8];
    for (samples, row) in rows.iter_mut().zip(&between) {
        *samples = line(row);
    }
    rows
}

/// Transforms all columns: eight numbers of a row at once.
#[inline(always)]
fn columns(kept: &[[f32; 8]; 8]) -> [[f32; 8]; 8] {
    let (mut even, mut odd) = ([[0.0; 8]; 4], [[0.0; 8]; 4]);
    for (pair, (of_even, of_odd)) in kept.as_chunks::<2>().0.iter().zip(EVEN.iter().zip(&ODD)) {
        let [even_line, odd_line] = pair;
        for (sums, weight) in even.iter_mut().zip(of_even) {
            sums.iter_mut().zip(even_line).for_each(|(sum, value)| *sum += value * weight);
        }
        for (sums, weight) in odd.iter_mut().zip(of_odd) {
            sums.iter_mut().zip(odd_line).for_each(|(sum, value)| *sum += value * weight);
        }
    }
    let mut between = [[0.0; 8]; 8];
    let (above, below) = between.split_at_mut(4);
    let halves = above.iter_mut().zip(below.iter_mut().rev());
    for ((first, last), (even, odd)) in halves.zip(even.iter().zip(&odd)) {
        let places = first.iter_mut().zip(last.iter_mut());
        for ((first, last), (even, odd)) in places.zip(even.iter().zip(odd)) {
            (*first, *last) = (even + odd, even - odd);
        }
    }
    between
}

/// Transforms one row to samples; values are scaled by eight, around zero, before rounding.
#[inline(always)]
fn line(row: &[f32; 8]) -> [u8; 8] {
    let (mut even, mut odd) = ([0.0; 4], [0.0; 4]);
    for (pair, (of_even, of_odd)) in row.as_chunks::<2>().0.iter().zip(EVEN.iter().zip(&ODD)) {
        let [even_value, odd_value] = pair;
        even.iter_mut().zip(of_even).for_each(|(sum, weight)| *sum += even_value * weight);
        odd.iter_mut().zip(of_odd).for_each(|(sum, weight)| *sum += odd_value * weight);
    }
    let mut samples = [0; 8];
    let (left, right) = samples.split_at_mut(4);
    let halves = left.iter_mut().zip(right.iter_mut().rev());
    for ((first, last), (even, odd)) in halves.zip(even.iter().zip(&odd)) {
        *first = rounded((even + odd) * 0.125 + 128.0);
        *last = rounded((even - odd) * 0.125 + 128.0);
    }
    samples
}

#[cfg(test)]
mod tests {
    use std::f64::consts::{PI, SQRT_2};

    use proptest::prelude::*;

    use super::*;
    use crate::idct::COEFFICIENT_MAX;

    /// Computes the definition in floating point, as the reference.
    fn exact(coefficients: &[i32; 64]) -> Vec<f64> {
        let weight = |x: usize, k: usize| {
            let angle = (2 * x + 1) as f64 * k as f64 * PI / 16.0;
            if k == 0 { 1.0 } else { SQRT_2 * angle.cos() }
        };
        let sample = |x: usize, y: usize| {
            let terms = coefficients.iter().enumerate().map(|(at, coefficient)| {
                f64::from(*coefficient) * weight(x, at % 8) * weight(y, at / 8)
            });
            (terms.sum::<f64>() / 8.0 + 128.0).round().clamp(0.0, 255.0)
        };
        (0..64).map(|at| sample(at % 8, at / 8)).collect()
    }

    fn assert_within_one(coefficients: &[i32; 64]) {
        let mut samples = [0; 64];
        inverse(coefficients, BlockKind::Varied, &mut samples, 0, 8);
        for (ours, exact) in samples.into_iter().zip(exact(coefficients)) {
            assert!((f64::from(ours) - exact).abs() <= 1.0, "{ours} for {exact}");
        }
    }

    proptest! {
        #[test]
        fn full_size_idct_is_within_one_of_the_reference(
            coefficients in prop::collection::vec(-300_i32..300, 64),
        ) {
            assert_within_one(&coefficients.try_into().unwrap());
        }

        #[test]
        fn full_size_idct_clamps_extreme_coefficients(signs in any::<u64>()) {
            assert_within_one(&std::array::from_fn(|at| {
                if signs >> at & 1 == 1 { COEFFICIENT_MAX } else { -COEFFICIENT_MAX }
            }));
        }
    }

    #[test]
    fn full_size_idct_of_dc_only_block_is_its_mean() {
        let mut coefficients = [0; 64];
        coefficients[0] = 801;
        let mut samples = [9; 200];
        inverse(&coefficients, BlockKind::DcOnly, &mut samples, 10, 10);
        for (at, sample) in samples.into_iter().enumerate() {
            let is_inside = at % 10 < 8 && (1..9).contains(&(at / 10));
            assert_eq!(sample, if is_inside { 228 } else { 9 }, "{at}");
        }
        inverse(&coefficients, BlockKind::DcOnly, &mut samples[..7], 0, 8);
        inverse(&coefficients, BlockKind::DcOnly, &mut samples, 1 << 40, 8);
        assert_eq!(samples[..10], [9; 10]);
    }
}
