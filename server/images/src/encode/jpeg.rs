//! Baseline JPEG encoder, one interleaved scan with the standard Huffman tables, which every reader supports.
//!
//! Optimized tables would save a few percent, but this encoder then writes one scan per component, which some
//! readers decode incorrectly with subsampled chroma. Progressive encoding takes three times as long.

use jpeg_encoder::{ChromaSubsamplingMethod, ColorType, Encoder, SamplingFactor};

use crate::error::Error;
use crate::picture::{PixelBuffer, PixelLayout};

/// Minimum quality with full chroma resolution; below it chroma is subsampled by two in each direction, as in
/// cameras.
const FULL_COLOUR_QUALITY: u8 = 90;

/// Encodes a picture without alpha.
pub(super) fn encode(picture: &PixelBuffer, quality: u8) -> Result<Vec<u8>, Error> {
    let side = |side: u32| u16::try_from(side).map_err(Error::failed);
    let (width, height) = (side(picture.width)?, side(picture.height)?);
    let color = match picture.layout {
        PixelLayout::Grey => ColorType::Luma,
        PixelLayout::Rgb => ColorType::Rgb,
        PixelLayout::GreyAlpha | PixelLayout::Rgba | PixelLayout::Cmyk => {
            return Err(Error::failed("JPEG supports neither alpha nor CMYK"));
        }
    };
    let mut bytes = Vec::new();
    let mut encoder = Encoder::new(&mut bytes, quality);
    encoder.set_sampling_factor(match quality {
        FULL_COLOUR_QUALITY.. => SamplingFactor::F_1_1,
        _ => SamplingFactor::F_2_2,
    });
    // Otherwise chroma is that of one pixel in four, which costs three points of SSIMULACRA2.
    encoder.set_chroma_subsampling_method(ChromaSubsamplingMethod::Average);
    encoder.encode(&picture.samples, width, height, color).map_err(Error::failed)?;
    Ok(bytes)
}
