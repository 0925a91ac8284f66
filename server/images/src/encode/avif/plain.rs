//! AVIF encoder using rav1e (pure Rust, here without assembler), with 4:4:4 chroma.

use ravif::{BitDepth, Encoder, Img, RGB8, RGBA8};

use super::quality::by_table;
use crate::Stop;
use crate::error::Error;
use crate::picture::{Layout, Picture};

/// Speed, 1 to 10. Lower speeds take several times as long for a tenth of the bytes.
const SPEED: u8 = 10;

/// Encodes a colour picture.
pub(in super::super) fn encode(
    picture: &Picture,
    quality: u8,
    stop: Stop<'_>,
) -> Result<Vec<u8>, Error> {
    if stop() {
        return Err(Error::Cancelled);
    }
    let quality = by_table(&QUALITIES, quality);
    let encoder = Encoder::new()
        .with_quality(quality)
        .with_alpha_quality(quality)
        .with_speed(SPEED)
        .with_bit_depth(BitDepth::Eight)
        .with_num_threads(Some(1));
    let (width, height) = (picture.width as usize, picture.height as usize);
    let encoded = match picture.layout {
        Layout::Rgb => {
            let pixels = picture.samples.as_chunks::<3>().0.iter();
            let pixels: Vec<RGB8> = pixels.map(|[r, g, b]| RGB8::new(*r, *g, *b)).collect();
            encoder.encode_rgb(Img::new(&pixels, width, height))
        }
        Layout::Rgba => {
            let pixels = picture.samples.as_chunks::<4>().0.iter();
            let pixels: Vec<RGBA8> =
                pixels.map(|[r, g, b, a]| RGBA8::new(*r, *g, *b, *a)).collect();
            encoder.encode_rgba(Img::new(&pixels, width, height))
        }
        Layout::Grey | Layout::GreyAlpha | Layout::Cmyk => {
            return Err(Error::failed("AVIF requires colour"));
        }
    };
    Ok(encoded.map_err(Error::failed)?.avif_file)
}

/// Requested qualities and those of this encoder with the same SSIMULACRA2 score as the output of libvips; measured
/// between 50 and 70 with a few photographs, extrapolated beyond.
const QUALITIES: [(u8, u8); 10] = [
    (1, 1),
    (20, 28),
    (35, 50),
    (50, 74),
    (60, 84),
    (70, 88),
    (80, 91),
    (90, 95),
    (95, 97),
    (100, 100),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn qualities_rise_from_one_to_a_hundred() {
        let all: Vec<f32> = (1..=100).map(|asked| by_table(&QUALITIES, asked)).collect();
        assert!(all.is_sorted(), "{all:?}");
        assert_eq!((all[0], all[99]), (1.0, 100.0));
    }
}
