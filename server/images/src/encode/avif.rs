//! AVIF, eight bits, colours at full size, alpha beside them: by rav1e, which is Rust, here without assembler.

use ravif::{BitDepth, Encoder, Img, RGB8, RGBA8};

use crate::error::Error;
use crate::picture::{Layout, Picture};

/// How fast, 1 to 10. Everything below costs several times as much for a tenth of the bytes.
const SPEED: u8 = 10;

/// Writes a picture in colour.
pub(super) fn encode(picture: &Picture, quality: u8) -> Result<Vec<u8>, Error> {
    let quality = encoder_quality(quality);
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
        Layout::Grey | Layout::GreyAlpha => return Err(Error::failed("AVIF is written in colour")),
    };
    Ok(encoded.map_err(Error::failed)?.avif_file)
}

/// Qualities as they are asked for, which are JPEG's, and those of this encoder that look the same: means by
/// SSIMULACRA2 of five photographs, 600 pixels wide.
const QUALITIES: [(u8, u8); 12] = [
    (1, 1),
    (30, 38),
    (40, 49),
    (50, 59),
    (60, 65),
    (70, 76),
    (75, 81),
    (80, 84),
    (85, 86),
    (90, 93),
    (95, 97),
    (100, 100),
];

/// The encoder's quality for one that is asked for: on the line between two that were measured.
fn encoder_quality(asked: u8) -> f32 {
    let asked = asked.clamp(1, 100);
    let pair = QUALITIES.windows(2).find_map(|pair| match pair {
        [low, high] if asked <= high.0 => Some((*low, *high)),
        _ => None,
    });
    let ((from, low), (to, high)) = pair.unwrap_or(((0, 0), (100, 100)));
    let part = f32::from(asked - from) / f32::from(to - from);
    f32::from(low) + part * f32::from(high - low)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn qualities_rise_from_one_to_a_hundred() {
        let all: Vec<f32> = (0..=101).map(encoder_quality).collect();
        assert!(all.is_sorted(), "{all:?}");
        assert_eq!((all[0], all[101]), (1.0, 100.0));
        for (asked, expected) in QUALITIES {
            assert_eq!(encoder_quality(asked), f32::from(expected));
        }
        assert_eq!(encoder_quality(55), 62.0);
    }
}
