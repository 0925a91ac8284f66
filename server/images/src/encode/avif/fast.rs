//! AV1 encoding by libaom, with the feature `fast-codecs`.

use kernels::Planes;

use super::aom;
use crate::error::Error;

/// Speed, 0 to 9. Speed 8 has a quarter more bytes than 7 for a fifth less time; 6 takes half as long again for a
/// twentieth of the bytes; 9 takes a quarter of the time of 8.
const SPEED: u8 = 9;
const SPEED_OF_SMALL: u8 = 7;
/// Maximum number of pixels of a small picture.
const SMALL_PIXELS_MAX: usize = 500_000;

/// Requested qualities, and the libaom quantisers with the same similarity to the original, by SSIMULACRA2, as the
/// output of sharp. Measured with six photographs of 12 to 16 megapixels resized to a width of 800 pixels, relative
/// to sharp 0.35.5: difference of the score, and ratio of the file sizes, as mean and range.
///
/// | quality | score             | bytes            |
/// | ------- | ----------------- | ---------------- |
/// | 30      | +1.5, -7.5..+12.6 | 1.31, 1.00..1.82 |
/// | 40      | +0.1, -7.1..+9.3  | 1.25, 0.97..1.73 |
/// | 50      | -0.6, -6.2..+5.2  | 1.19, 0.96..1.57 |
/// | 60      | -1.3, -5.4..+1.7  | 1.09, 0.92..1.30 |
/// | 70      | -0.6, -3.5..+0.6  | 1.11, 0.98..1.22 |
/// | 80      | +0.0, -2.3..+1.3  | 1.12, 0.99..1.21 |
/// | 90      | -0.8, -2.5..+1.3  | 0.88, 0.76..0.99 |
/// | 95      | -0.1, -1.8..+2.5  | 0.81, 0.72..0.92 |
///
/// Sharp uses fewer bits for detailed areas and more for smooth ones, so a single quantiser per picture matches it
/// only on average. Quantisation matrices and other tunings of libaom 3.11 needed at least as many bytes for the
/// same score. At 100 sharp needs half as many bytes again for 1.3 points. Below 30 the table is extrapolated.
pub(super) const QUANTISERS: [(u8, u8); 10] = [
    (1, 63),
    (20, 43),
    (35, 36),
    (50, 27),
    (60, 21),
    (70, 14),
    (80, 9),
    (90, 6),
    (95, 3),
    (100, 1),
];

/// Encodes a picture.
pub(super) fn encode_planes(planes: &Planes<'_>, quantiser: u8) -> Result<Vec<u8>, Error> {
    let (width, height) = planes.sides;
    let speed = if width * height <= SMALL_PIXELS_MAX { SPEED_OF_SMALL } else { SPEED };
    aom::encode(planes, quantiser, speed).map_err(Error::failed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantisers_are_in_the_range_of_libaom() {
        assert!(QUANTISERS.iter().all(|(_, quantiser)| *quantiser <= aom::QUANTISER_MAX));
    }
}
