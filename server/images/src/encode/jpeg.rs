//! JPEG, baseline, all colours in one scan, with the usual tables: every reader shows it.
//!
//! Tables of its own would save some per cent of bytes, but this encoder then writes a scan for each component, which
//! readers are known to take for something else where colours are subsampled. Progressive costs three times as much.

use jpeg_encoder::{ChromaSubsamplingMethod, ColorType, Encoder, SamplingFactor};

use crate::error::Error;
use crate::picture::{Layout, Picture};

/// From this quality on colours keep the resolution of brightness; below it they have half of it, as cameras do.
const FULL_COLOUR_QUALITY: u8 = 90;

/// Writes a picture without alpha.
pub(super) fn encode(picture: &Picture, quality: u8) -> Result<Vec<u8>, Error> {
    let side = |side: u32| u16::try_from(side).map_err(Error::failed);
    let (width, height) = (side(picture.width)?, side(picture.height)?);
    let color = match picture.layout {
        Layout::Grey => ColorType::Luma,
        Layout::Rgb => ColorType::Rgb,
        Layout::GreyAlpha | Layout::Rgba | Layout::Cmyk => {
            return Err(Error::failed("JPEG supports neither alpha nor CMYK"));
        }
    };
    let mut bytes = Vec::new();
    let mut encoder = Encoder::new(&mut bytes, quality);
    encoder.set_sampling_factor(match quality {
        FULL_COLOUR_QUALITY.. => SamplingFactor::F_1_1,
        _ => SamplingFactor::F_2_2,
    });
    // Without it colours are those of one pixel in four, which costs three points of SSIMULACRA2.
    encoder.set_chroma_subsampling_method(ChromaSubsamplingMethod::Average);
    encoder.encode(&picture.samples, width, height, color).map_err(Error::failed)?;
    Ok(bytes)
}
