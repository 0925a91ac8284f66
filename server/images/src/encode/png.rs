//! PNG encoder, eight bits per channel.

use png::{BitDepth, ColorType, Compression, Encoder};

use crate::error::Error;
use crate::picture::{PixelBuffer, PixelLayout};

/// Encodes a picture.
pub(super) fn encode(picture: &PixelBuffer) -> Result<Vec<u8>, Error> {
    let mut bytes = Vec::new();
    let mut encoder = Encoder::new(&mut bytes, picture.width, picture.height);
    encoder.set_color(match picture.layout {
        PixelLayout::Grey => ColorType::Grayscale,
        PixelLayout::GreyAlpha => ColorType::GrayscaleAlpha,
        PixelLayout::Rgb => ColorType::Rgb,
        PixelLayout::Rgba => ColorType::Rgba,
        PixelLayout::Cmyk => return Err(Error::failed("PNG does not support CMYK")),
    });
    encoder.set_depth(BitDepth::Eight);
    encoder.set_compression(Compression::Fast);
    let mut writer = encoder.write_header().map_err(Error::failed)?;
    writer.write_image_data(&picture.samples).map_err(Error::failed)?;
    writer.finish().map_err(Error::failed)?;
    Ok(bytes)
}
