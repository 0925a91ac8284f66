//! Coefficients of a block that a scale needs.

/// Zigzag position -> row * 8 + column (T.81, figure A.6).
#[rustfmt::skip]
pub(super) const ZIGZAG: [u8; 64] = [
    0, 1, 8, 16, 9, 2, 3, 10, 17, 24, 32, 25, 18, 11, 4, 5,
    12, 19, 26, 33, 40, 48, 41, 34, 27, 20, 13, 6, 7, 14, 21, 28,
    35, 42, 49, 56, 57, 50, 43, 36, 29, 22, 15, 23, 30, 37, 44, 51,
    58, 59, 52, 45, 38, 31, 39, 46, 53, 60, 61, 54, 47, 55, 62, 63,
];

/// Index of a dropped coefficient: beyond every block.
pub(super) const DROPPED: u8 = u8::MAX;

/// Mask of the retained coefficients: the lowest `across` x `down` ones, row by row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CoefficientMask {
    /// Retained columns, and samples per block across: 1 to 4, or 8.
    pub(super) across: usize,
    /// Retained rows, and samples per block down: 1 to 4, or 8.
    pub(super) down: usize,
    /// Index among the retained coefficients by zigzag position, or [`DROPPED`].
    pub(super) positions: [u8; 64],
    /// Last retained zigzag position.
    pub(super) last: usize,
    /// Bit mask of the retained zigzag positions.
    pub(super) mask: u64,
}

impl CoefficientMask {
    pub(super) fn new(across: usize, down: usize) -> Self {
        let (mut places, mut last, mut mask) = ([DROPPED; 64], 0, 0);
        for (position, (place, natural)) in places.iter_mut().zip(ZIGZAG).enumerate() {
            let (row, column) = (usize::from(natural / 8), usize::from(natural % 8));
            if row < down && column < across {
                *place = (row * across + column) as u8;
                last = position;
                mask |= 1 << position;
            }
        }
        Self { across, down, positions: places, last, mask }
    }

    /// Returns the number of retained coefficients: 1 to 16, or 64.
    pub(super) fn count(&self) -> usize {
        self.across * self.down
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn coefficient_mask_retains_low_frequencies() {
        let kept = CoefficientMask::new(2, 2);
        assert_eq!((kept.last, kept.mask, kept.count()), (4, 0b1_0111, 4));
        assert_eq!(kept.positions[..6], [0, 1, 2, DROPPED, 3, DROPPED]);
        assert_eq!((CoefficientMask::new(1, 1).last, CoefficientMask::new(1, 1).mask), (0, 1));
        assert_eq!((CoefficientMask::new(3, 3).last, CoefficientMask::new(4, 4).last), (12, 24));
        assert_eq!(CoefficientMask::new(2, 1).mask, 0b11);
        let mut natural = ZIGZAG;
        natural.sort_unstable();
        assert!((0..64).eq(natural), "each position once");
    }
}
