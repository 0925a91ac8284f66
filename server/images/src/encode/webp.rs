//! WebP, by libwebp: C, which sees nothing but pixels that were made here.

use enough::{Stop as StopEncoder, StopReason};
use webpx::Encoder;

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
    let encoder = match picture.layout {
        Layout::Rgba => Encoder::new_rgba(&picture.samples, picture.width, picture.height),
        Layout::Rgb => Encoder::new_rgb(&picture.samples, picture.width, picture.height),
        Layout::Grey | Layout::GreyAlpha | Layout::Cmyk => {
            return Err(Error::failed("WebP is written in colour"));
        }
    };
    let encoder = match quality {
        Quality::Lossy(quality) => encoder.quality(f32::from(quality)).method(METHOD),
        Quality::Lossless | Quality::Colours(_) => encoder.lossless(true).method(LOSSLESS_METHOD),
    };
    encoder.encode(Asked(stop)).map_err(|error| match error.error() {
        webpx::Error::Stopped(_) => Error::Cancelled,
        other => Error::failed(other),
    })
}

/// Our question whether to go on, as libwebp asks it.
struct Asked<'a>(Stop<'a>);

impl StopEncoder for Asked<'_> {
    fn check(&self) -> Result<(), StopReason> {
        if (self.0)() { Err(StopReason::Cancelled) } else { Ok(()) }
    }
}
