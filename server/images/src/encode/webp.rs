//! WebP, by libwebp: C, which sees nothing but pixels that were made here.

use super::libwebp::{self, Config};
use crate::Stop;
use crate::error::Error;
use crate::picture::{Layout, Picture};
use crate::plan::Quality;

/// How hard libwebp tries, 0 to 6. At 4, its own default, a picture costs twice the time of 2 and has 4 % less bytes.
const METHOD: u8 = 4;
/// How hard it tries where nothing may be lost: above 2 a per cent of bytes costs as much time again.
const LOSSLESS_METHOD: u8 = 2;

/// Writes a picture in colour.
pub(crate) fn encode(
    picture: &Picture,
    quality: Quality,
    stop: Stop<'_>,
) -> Result<Vec<u8>, Error> {
    let config = match quality {
        Quality::Lossy(quality) => Config { quality: Some(quality), method: METHOD },
        Quality::Lossless | Quality::Colours(_) => {
            Config { quality: None, method: LOSSLESS_METHOD }
        }
    };
    let (sides, samples) = (picture.sides(), &picture.samples);
    match picture.layout {
        Layout::Rgba => libwebp::encode(sides, samples.as_chunks().0.iter().copied(), config, stop),
        Layout::Rgb => {
            let pixels = samples.as_chunks().0.iter().map(|[r, g, b]| [*r, *g, *b, 255]);
            libwebp::encode(sides, pixels, config, stop)
        }
        Layout::Grey | Layout::GreyAlpha | Layout::Cmyk => {
            Err(Error::failed("WebP requires colour"))
        }
    }
}
