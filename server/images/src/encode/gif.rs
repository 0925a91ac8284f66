//! GIF encoder for a single frame.

use std::borrow::Cow;

use gif::{Encoder, Frame};

use super::quantize::{Dither, PalettedImage, quantize};
use crate::Stop;
use crate::error::Error;
use crate::picture::{PixelBuffer, PixelLayout};

/// Encodes a colour picture with at most `colours` colours.
pub(super) fn encode(
    picture: &PixelBuffer,
    colours: u16,
    stop: Stop<'_>,
) -> Result<Vec<u8>, Error> {
    let side = |side: u32| u16::try_from(side).map_err(Error::failed);
    let (width, height) = (side(picture.width)?, side(picture.height)?);
    let opaque: Vec<[u8; 4]>;
    let pixels = match picture.layout {
        PixelLayout::Rgba => picture.samples.as_chunks::<4>().0,
        PixelLayout::Rgb => {
            let pixels = picture.samples.as_chunks::<3>().0;
            opaque = pixels.iter().map(|[r, g, b]| [*r, *g, *b, 255]).collect();
            &opaque
        }
        PixelLayout::Grey | PixelLayout::GreyAlpha | PixelLayout::Cmyk => {
            return Err(Error::failed("GIF requires colour"));
        }
    };
    let indexed = quantize(pixels, width.into(), colours, Dither::Diffusion, stop)?;
    let mut bytes = Vec::new();
    let mut encoder = Encoder::new(&mut bytes, width, height, &[]).map_err(Error::failed)?;
    encoder.write_frame(&frame(indexed, (width, height))).map_err(Error::failed)?;
    encoder.into_inner().map_err(Error::failed)?;
    Ok(bytes)
}

/// Creates a frame with this content at the upper left corner, without duration.
pub(crate) fn frame(indexed: PalettedImage, (width, height): (u16, u16)) -> Frame<'static> {
    Frame {
        width,
        height,
        palette: Some(indexed.palette),
        transparent: indexed.clear,
        buffer: Cow::Owned(indexed.indices),
        ..Frame::default()
    }
}
