//! Image encoders, one module per format. Output is sRGB, without metadata and profile.

mod avif;
pub(super) mod colours;
pub(super) mod gif;
mod jpeg;
mod libwebp;
mod png;
pub(super) mod webp;

use super::Stop;
use super::error::Error;
use super::format::Format;
use super::picture::Picture;
use super::plan::Quality;

/// Encodes a still picture in sRGB and ignores its profile.
pub(super) fn encode(
    picture: Picture,
    format: Format,
    quality: Quality,
    stop: Stop<'_>,
) -> Result<Vec<u8>, Error> {
    if stop() {
        return Err(Error::Cancelled);
    }
    let picture = picture.without_idle_alpha();
    match (format, quality) {
        (Format::Jpeg, Quality::Lossy(quality)) => jpeg::encode(&picture.on_white(), quality),
        (Format::Png, _) => png::encode(&picture),
        (Format::Avif, Quality::Lossy(quality)) => {
            avif::encode(&picture.in_colour(), quality, stop)
        }
        (Format::WebP, quality) => webp::encode(&picture.in_colour(), quality, stop),
        (Format::Gif, Quality::Colours(colours)) => {
            gif::encode(&picture.in_colour(), colours, stop)
        }
        (format, quality) => {
            Err(Error::Failed(format!("{} cannot be encoded at {quality:?}", format.extension())))
        }
    }
}
