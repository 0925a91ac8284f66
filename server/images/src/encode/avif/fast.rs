//! AVIF encoder using libaom; chroma is subsampled below quality 90. The container is written by `avif-serialize`.

use avif_serialize::Aviffy;
use avif_serialize::constants::MatrixCoefficients;
use kernels::{chroma, luma};

use super::aom::{self, Chroma, Planes};
use super::quality::by_table;
use crate::Stop;
use crate::error::Error;
use crate::picture::{PixelBuffer, PixelLayout};

/// Minimum quality with full chroma resolution.
const FULL_COLOUR_QUALITY: u8 = 90;
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
const QUANTISERS: [(u8, u8); 10] = [
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

/// Encodes a colour picture.
pub(in super::super) fn encode(
    picture: &PixelBuffer,
    quality: u8,
    stop: Stop<'_>,
) -> Result<Vec<u8>, Error> {
    let sides = (picture.width as usize, picture.height as usize);
    let is_full = quality >= FULL_COLOUR_QUALITY;
    let quantiser = by_table(&QUANTISERS, quality).round() as u8;
    let speed = if sides.0 * sides.1 <= SMALL_PIXELS_MAX { SPEED_OF_SMALL } else { SPEED };
    let encode = |luma: &[u8], chroma: Chroma<'_>| {
        if stop() {
            return Err(Error::Cancelled);
        }
        aom::encode(&Planes { sides, luma, chroma }, quantiser, speed).map_err(Error::failed)
    };
    let (colours, alpha) = match picture.layout {
        PixelLayout::Rgb => (Colours::of(picture.samples.as_chunks::<3>().0, sides, is_full), None),
        PixelLayout::Rgba => {
            let pixels = picture.samples.as_chunks::<4>().0;
            let alpha: Vec<u8> = pixels.iter().map(|[.., alpha]| *alpha).collect();
            (Colours::of(pixels, sides, is_full), Some(encode(&alpha, Chroma::None)?))
        }
        PixelLayout::Grey | PixelLayout::GreyAlpha | PixelLayout::Cmyk => {
            return Err(Error::failed("AVIF requires colour"));
        }
    };
    let (blue, red) = (&*colours.blue, &*colours.red);
    let chroma = if is_full { Chroma::Full(blue, red) } else { Chroma::Half(blue, red) };
    let coded = encode(&colours.luma, chroma)?;
    let mut container = Aviffy::new();
    container
        .set_matrix_coefficients(MatrixCoefficients::Bt601)
        .set_full_color_range(true)
        .set_chroma_subsampling((!is_full, !is_full))
        .set_seq_profile(u8::from(is_full));
    Ok(container.to_vec(&coded, alpha.as_deref(), picture.width, picture.height, 8))
}

/// Full range BT.601: luma of every pixel, chroma of every pixel or of four.
struct Colours {
    luma: Vec<u8>,
    blue: Vec<u8>,
    red: Vec<u8>,
}

impl Colours {
    fn of<const N: usize>(pixels: &[[u8; N]], sides: (usize, usize), is_full: bool) -> Self {
        let luma = pixels.iter().map(|pixel| luma(colour(pixel))).collect();
        let (blue, red) = if is_full {
            differences::<N, 1>(pixels, sides)
        } else {
            differences::<N, 2>(pixels, sides)
        };
        Self { luma, blue, red }
    }
}

/// Computes a chroma plane, one sample per square of `SIDE` pixels.
fn differences<const N: usize, const SIDE: usize>(
    pixels: &[[u8; N]],
    (width, height): (usize, usize),
) -> (Vec<u8>, Vec<u8>) {
    let count = width.div_ceil(SIDE) * height.div_ceil(SIDE);
    let (mut blue, mut red) = (Vec::with_capacity(count), Vec::with_capacity(count));
    let mut push = |above: &[[u8; N]; SIDE], below: &[[u8; N]; SIDE]| {
        let mut sum = [0; 3];
        for pixel in above.iter().chain(below) {
            sum.iter_mut().zip(colour(pixel)).for_each(|(sum, value)| *sum += value);
        }
        let [cb, cr] = chroma(sum, 2 * SIDE as i32);
        blue.push(cb);
        red.push(cr);
    };
    for rows in pixels.chunks(width.max(1) * SIDE) {
        let (above, below) = rows.split_at(width.min(rows.len()));
        // A last odd row or column is repeated.
        let below = if below.is_empty() { above } else { below };
        let (above, last_above) = above.as_chunks::<SIDE>();
        let (below, last_below) = below.as_chunks::<SIDE>();
        above.iter().zip(below).for_each(|(above, below)| push(above, below));
        if let ([above], [below]) = (last_above, last_below) {
            push(&[*above; SIDE], &[*below; SIDE]);
        }
    }
    (blue, red)
}

fn colour<const N: usize>(pixel: &[u8; N]) -> [i32; 3] {
    let mut colour = [0; 3];
    colour.iter_mut().zip(pixel).for_each(|(into, value)| *into = i32::from(*value));
    colour
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantizer_falls_as_quality_rises() {
        let all: Vec<f32> = (1..=100).map(|asked| by_table(&QUANTISERS, asked)).collect();
        assert!(all.is_sorted_by(|finer, coarser| finer >= coarser), "{all:?}");
        assert!(all.iter().all(|quantiser| *quantiser <= f32::from(aom::QUANTISER_MAX)));
    }

    #[test]
    fn chroma_averages_four_pixels_at_odd_edges() {
        let (red, blue) = ([255, 0, 0], [0, 0, 255]);
        let pixels = [red, red, blue, red, red, blue, blue, blue, blue];
        let half = Colours::of(&pixels, (3, 3), false);
        assert_eq!(half.luma, [76, 76, 29, 76, 76, 29, 29, 29, 29]);
        assert_eq!(
            (&*half.blue, &*half.red),
            (&[85, 255, 255, 255][..], &[255, 107, 107, 107][..])
        );
        let full = Colours::of(&pixels, (3, 3), true);
        assert_eq!(full.blue, [85, 85, 255, 85, 85, 255, 255, 255, 255]);
        let mixed = Colours::of(&[red, blue], (2, 1), false);
        assert_eq!((&*mixed.blue, &*mixed.red), (&[170][..], &[181][..]));
    }

    #[test]
    fn avif_encodes_images_of_any_size() {
        for (width, height) in [(1, 1), (2, 3), (7, 5), (16, 16), (65, 33)] {
            for layout in [PixelLayout::Rgb, PixelLayout::Rgba] {
                for quality in [1, 60, 90, 100] {
                    let samples = vec![130; (width * height) as usize * layout.channels()];
                    let picture = PixelBuffer::new((width, height), layout, samples, None).unwrap();
                    let file = encode(&picture, quality, &|| false).unwrap();
                    let format = crate::Format::Avif;
                    let source = crate::read_source(format, &file).unwrap();
                    assert_eq!(source.sides, (width, height));
                }
            }
        }
    }

    #[test]
    fn avif_encoding_is_cancellable() {
        let picture = PixelBuffer::new((1, 1), PixelLayout::Rgb, vec![0; 3], None).unwrap();
        assert_eq!(encode(&picture, 60, &|| true).unwrap_err(), Error::Cancelled);
    }
}
