//! AVIF encoding by rav1e (pure Rust, here without assembler), with 4:4:4 chroma.

use ravif::{BitDepth, Encoder, Img, RGB8, RGBA8};

use crate::PixelLayout;

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
    sides: (u32, u32),
    quality: f32,
) -> Result<Vec<u8>, String> {
    let encoder = Encoder::new()
        .with_quality(quality)
        .with_alpha_quality(quality)
        .with_speed(SPEED)
        .with_bit_depth(BitDepth::Eight)
        .with_num_threads(Some(1));
    let (width, height) = (sides.0 as usize, sides.1 as usize);
    let encoded = match layout {
        PixelLayout::Rgb => {
            let pixels = samples.as_chunks::<3>().0.iter();
            let pixels: Vec<RGB8> = pixels.map(|[r, g, b]| RGB8::new(*r, *g, *b)).collect();
            encoder.encode_rgb(Img::new(&pixels, width, height))
        }
        PixelLayout::Rgba => {
            let pixels = samples.as_chunks::<4>().0.iter();
            let pixels: Vec<RGBA8> =
                pixels.map(|[r, g, b, a]| RGBA8::new(*r, *g, *b, *a)).collect();
            encoder.encode_rgba(Img::new(&pixels, width, height))
        }
        PixelLayout::Grey | PixelLayout::GreyAlpha | PixelLayout::Cmyk => {
            return Err("AVIF requires colour".to_owned());
        }
    };
    Ok(encoded.map_err(|error| error.to_string())?.avif_file)
}
