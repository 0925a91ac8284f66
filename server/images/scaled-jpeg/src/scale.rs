//! Decoding scales, and the selection of a sufficient one.

/// Decoded fraction of the width and height of the source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scale {
    /// 1/8: the mean of each block.
    Eighth,
    /// 2/8.
    Quarter,
    /// 3/8.
    ThreeEighths,
    /// 4/8.
    Half,
    /// 8/8: every component at its stored size.
    Full,
}

impl Scale {
    /// Scales below full size, the smallest first.
    pub const REDUCED: [Self; 4] = [Self::Eighth, Self::Quarter, Self::ThreeEighths, Self::Half];
    /// All scales, the smallest first.
    pub const ALL: [Self; 5] =
        [Self::Eighth, Self::Quarter, Self::ThreeEighths, Self::Half, Self::Full];

    /// Returns the scale in eighths: samples per block in each direction.
    pub fn eighths(self) -> u32 {
        match self {
            Self::Eighth => 1,
            Self::Quarter => 2,
            Self::ThreeEighths => 3,
            Self::Half => 4,
            Self::Full => 8,
        }
    }

    /// Returns a length of the source at this scale, in samples, rounded up.
    pub fn scaled_len(self, length: u32) -> u32 {
        u32::try_from((u64::from(length) * u64::from(self.eighths())).div_ceil(8)).unwrap_or(length)
    }

    /// Returns the maximum number of samples per block in each direction: subsampled components are scaled down
    /// less, up to this.
    pub(super) fn points_max(self) -> usize {
        if self == Self::Full { 8 } else { 4 }
    }

    /// Returns the smallest reduced scale that is sufficient for an output of the size `wanted` (width and height in
    /// pixels); `None` if the picture must be decoded at full size.
    ///
    /// A resizer that gets hardly more samples than it outputs produces soft or jagged edges. The scale therefore
    /// leaves it a margin: 1.125 times as many as wanted at an eighth, 1.25 at a quarter, 1.375 at three eighths,
    /// 1.5 at half, in either direction. A scale of n / 8 is taken where the source is at least 8 / n + 1 times the
    /// wanted size:
    ///
    /// | source / wanted | scale |
    /// | --------------- | ----- |
    /// | 9 and above     | 1/8   |
    /// | 5 to 9          | 1/4   |
    /// | 3 2/3 to 5      | 3/8   |
    /// | 3 to 3 2/3      | 1/2   |
    /// | below 3         | none  |
    pub fn for_size(source: (u32, u32), wanted: (u32, u32)) -> Option<Self> {
        let enough = |scale: Self, source: u32, wanted: u32| {
            let n = u64::from(scale.eighths());
            n * u64::from(source) >= (8 + n) * u64::from(wanted.max(1))
        };
        Self::REDUCED
            .into_iter()
            .find(|scale| enough(*scale, source.0, wanted.0) && enough(*scale, source.1, wanted.1))
    }
}

#[cfg(test)]
mod tests {
    use super::Scale;

    #[test]
    fn scale_leaves_a_margin_for_the_resizer() {
        use Scale::{Eighth, Half, Quarter, ThreeEighths};
        let cases = [
            ((4000, 3000), (400, 300), Some(Eighth)),
            ((3600, 2700), (400, 300), Some(Eighth)),
            ((3599, 2700), (400, 300), Some(Quarter)),
            ((3600, 2699), (400, 300), Some(Quarter)),
            ((3200, 2400), (400, 300), Some(Quarter)),
            ((2000, 1500), (400, 300), Some(Quarter)),
            ((1999, 1500), (400, 300), Some(ThreeEighths)),
            ((1100, 1100), (300, 300), Some(ThreeEighths)),
            ((1099, 1100), (300, 300), Some(Half)),
            ((1200, 900), (400, 300), Some(Half)),
            ((1199, 900), (400, 300), None),
            ((4000, 300), (400, 300), None),
            ((100, 100), (100, 100), None),
            ((100, 100), (200, 200), None),
            ((9, 9), (0, 1), Some(Eighth)),
            ((1, 1), (1, 1), None),
            ((0, 0), (0, 0), None),
            ((u32::MAX, u32::MAX), (1, 1), Some(Eighth)),
            ((u32::MAX, u32::MAX), (u32::MAX, u32::MAX), None),
        ];
        for (source, wanted, scale) in cases {
            assert_eq!(Scale::for_size(source, wanted), scale, "{source:?} to {wanted:?}");
        }
    }

    #[test]
    fn lengths_round_up() {
        for scale in Scale::ALL {
            for length in [0_u32, 1, 7, 8, 9, 15, 16, 17, 65_535, u32::MAX] {
                let exact = f64::from(length) * f64::from(scale.eighths()) / 8.0;
                assert_eq!(
                    f64::from(scale.scaled_len(length)),
                    exact.ceil(),
                    "{length} at {scale:?}"
                );
            }
        }
    }
}
