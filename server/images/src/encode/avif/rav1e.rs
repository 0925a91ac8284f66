//! AV1 encoding by rav1e, in every build without the feature `fast-codecs`.

use kernels::{Planes, encode_av1};

use crate::error::Error;

/// Requested qualities, and the quantisers of rav1e with the same mean similarity to the original, by SSIMULACRA2, as
/// the output of sharp. Measured with six photographs resized to a width of 800 pixels, relative to sharp 0.35.5: range
/// of the difference of the score, and ratio of the file sizes, as mean and range.
///
/// | quality | score        | bytes            |
/// | ------- | ------------ | ---------------- |
/// | 20      | -10.8..+17.7 | 1.45, 1.11..2.17 |
/// | 35      | -6.6..+12.8  | 1.43, 1.12..2.02 |
/// | 50      | -4.0..+7.4   | 1.34, 1.08..1.74 |
/// | 60      | -2.4..+5.1   | 1.28, 1.08..1.58 |
/// | 70      | -1.3..+2.6   | 1.23, 1.10..1.39 |
/// | 80      | -0.7..+1.1   | 1.26, 1.16..1.35 |
/// | 90      | -0.5..+1.3   | 1.26, 1.18..1.42 |
/// | 95      | -0.2..+0.5   | 1.21, 1.15..1.32 |
///
/// At 100 sharp needs a quarter more bytes for one point. Below 20 the table is extrapolated.
pub(super) const QUANTISERS: [(u8, u8); 10] = [
    (1, 255),
    (20, 195),
    (35, 166),
    (50, 130),
    (60, 103),
    (70, 74),
    (80, 45),
    (90, 29),
    (95, 14),
    (100, 4),
];

/// Encodes a picture.
pub(super) fn encode_planes(planes: &Planes<'_>, quantiser: u8) -> Result<Vec<u8>, Error> {
    encode_av1(planes, quantiser).map_err(Error::failed)
}
