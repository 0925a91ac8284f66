//! AVIF encoding by rav1e (pure Rust, here without assembler), with 4:4:4 chroma.

use std::iter;

use ravif::{BitDepth, Encoder, MatrixCoefficients, PixelRange};

use crate::PixelLayout;
use crate::ycbcr::ycbcr;

/// Speed, 1 to 10. Lower speeds take several times as long for a tenth of the bytes.
const SPEED: u8 = 10;

/// Encodes an RGB or RGBA image on one thread.
///
/// `samples` are the rows without padding, `sides` width and height in pixels, `quality` is 1 to 100 for colour and
/// alpha.
///
/// # Errors
///
/// Returns the encoder's message, or that the layout has no colour.
#[inline(never)]
pub fn encode_avif(
    layout: PixelLayout,
    samples: &[u8],
    (width, height): (u32, u32),
    quality: f32,
) -> Result<Vec<u8>, String> {
    let encoder = Encoder::new()
        .with_quality(quality)
        .with_alpha_quality(quality)
        .with_speed(SPEED)
        .with_bit_depth(BitDepth::Eight)
        .with_num_threads(Some(1));
    // Planes instead of `encode_rgb` and `encode_rgba`, which compile all of rav1e for 16-bit samples, too.
    let encode = |planes: &mut (dyn Iterator<Item = [u8; 3]> + Send), alpha: Option<&[u8]>| {
        let (width, height) = (width as usize, height as usize);
        let alpha = alpha.map(|alpha| alpha.iter().copied());
        let (range, matrix) = (PixelRange::Full, MatrixCoefficients::BT601);
        encoder.encode_raw_planes_8_bit(width, height, planes, alpha, range, matrix)
    };
    let encoded = match layout {
        PixelLayout::Rgb => encode(&mut samples.as_chunks().0.iter().copied().map(ycbcr), None),
        PixelLayout::Rgba => {
            let pixels = samples.as_chunks::<4>().0;
            let alpha: Vec<u8> = pixels.iter().map(|[.., alpha]| *alpha).collect();
            let alpha = alpha.iter().any(|alpha| *alpha < u8::MAX).then_some(&*alpha);
            encode(&mut visible_colours(pixels).map(ycbcr), alpha)
        }
        PixelLayout::Grey | PixelLayout::GreyAlpha | PixelLayout::Cmyk => {
            return Err("AVIF requires colour".to_owned());
        }
    };
    Ok(encoded.map_err(|error| error.to_string())?.avif_file)
}

/// Returns the colours of pixels; for a transparent pixel that of the pixel before, which takes fewer bytes and does
/// not blur the edge of what is visible.
fn visible_colours(pixels: &[[u8; 4]]) -> impl Iterator<Item = [u8; 3]> {
    let mut last = pixels.iter().find(|[.., alpha]| *alpha > 0).map_or([0; 3], colour);
    let mut pixels = pixels.iter();
    iter::from_fn(move || {
        let pixel = pixels.next()?;
        if pixel[3] > 0 {
            last = colour(pixel);
        }
        Some(last)
    })
}

fn colour([red, green, blue, _]: &[u8; 4]) -> [u8; 3] {
    [*red, *green, *blue]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transparent_pixels_take_the_colour_before_them() {
        let pixels = [[9, 9, 9, 0], [1, 2, 3, 255], [7, 7, 7, 0], [4, 5, 6, 1]];
        let colours: Vec<_> = visible_colours(&pixels).collect();
        assert_eq!(colours, [[1, 2, 3], [1, 2, 3], [1, 2, 3], [4, 5, 6]]);
        assert_eq!(visible_colours(&[[9, 9, 9, 0]]).collect::<Vec<_>>(), [[0; 3]]);
    }
}
