//! Image encoders, one module per format. Output is sRGB, without metadata and profile.

mod avif;
pub(super) mod gif;
mod jpeg;
mod libwebp;
mod png;
pub(super) mod quantize;
pub(super) mod webp;

use super::Stop;
use super::error::Error;
use super::format::Format;
use super::picture::PixelBuffer;
use super::plan::Quality;

/// Encodes a still picture in sRGB and ignores its profile.
pub(super) fn encode(
    picture: PixelBuffer,
    format: Format,
    quality: Quality,
    stop: Stop<'_>,
) -> Result<Vec<u8>, Error> {
    if stop() {
        return Err(Error::Cancelled);
    }
    let picture = picture.drop_opaque_alpha();
    match (format, quality) {
        (Format::Jpeg, Quality::Lossy(quality)) => {
            jpeg::encode(&picture.flatten_on_white(), quality)
        }
        (Format::Png, _) => png::encode(&picture),
        (Format::Avif, Quality::Lossy(quality)) => avif::encode(&picture.into_rgb(), quality, stop),
        (Format::WebP, quality) => webp::encode(&picture.into_rgb(), quality, stop),
        (Format::Gif, Quality::Colours(colours)) => gif::encode(&picture.into_rgb(), colours, stop),
        (format, quality) => {
            Err(Error::Failed(format!("{} cannot be encoded at {quality:?}", format.extension())))
        }
    }
}
