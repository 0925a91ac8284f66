//! Image decoders, one module per format.

mod avif;
mod gif;
mod jpeg;
mod others;
mod png;
mod qoi;
mod synthetic_profile;
pub(super) mod webp;

pub(super) use self::jpeg::layout_of;
use super::Stop;
use super::error::{Error, LimitKind};
use super::format::Format;
use super::limits::SOURCE_BYTES_MAX;
use super::picture::PixelBuffer;
use super::plan::Plan;
use super::source_info::Source;

/// Decoded picture.
pub(super) enum Decoded {
    /// At its original size.
    Pixels(PixelBuffer),
    /// Planes of a JPEG at a reduced size.
    Planes(scaled_jpeg::Decoded),
}

/// Reads the header.
///
/// # Errors
///
/// [`Error::Undecodable`], and [`Error::TooLarge`] of a file that is too long.
pub(super) fn read_source(format: Format, bytes: &[u8]) -> Result<Source, Error> {
    if bytes.len() as u64 > SOURCE_BYTES_MAX {
        return Err(Error::TooLarge(LimitKind::Bytes));
    }
    let source = match format {
        Format::Jpeg => jpeg::read_source(bytes)?,
        Format::Png => png::read_source(bytes)?,
        Format::WebP => webp::read_source(bytes)?,
        Format::Gif => gif::read_source(bytes)?,
        Format::Avif => avif::read_source(bytes)?,
        Format::Bmp | Format::Ico | Format::Pnm => others::read_source(format, bytes)?,
        Format::Qoi => qoi::read_source(bytes)?,
    };
    match source.sides {
        (0, _) | (_, 0) => Err(Error::undecodable("no pixels")),
        _ => Ok(source),
    }
}

/// Reads the header from the first bytes of a file; `None` if the format, or this file, needs all of it.
pub(super) fn read_source_of_start(format: Format, start: &[u8]) -> Option<Source> {
    let source = match format {
        Format::Jpeg => jpeg::read_source_of_start(start),
        Format::Png => png::read_source(start).ok(),
        _ => None,
    };
    source.filter(|source| source.pixels() > 0)
}

/// Decodes the first picture, at least as large as the plan requires.
pub(super) fn decode(
    bytes: &[u8],
    source: &Source,
    plan: &Plan,
    stop: Stop<'_>,
) -> Result<Decoded, Error> {
    match source.format {
        Format::Jpeg => jpeg::decode(bytes, source, plan, stop),
        Format::Png => png::decode(bytes, stop).map(Decoded::Pixels),
        Format::WebP => webp::decode(bytes, source, stop).map(Decoded::Pixels),
        Format::Gif => gif::decode(bytes, source, stop).map(Decoded::Pixels),
        Format::Avif => avif::decode(bytes, source, stop).map(Decoded::Pixels),
        Format::Qoi => qoi::decode(bytes, stop).map(Decoded::Pixels),
        format @ (Format::Bmp | Format::Ico | Format::Pnm) => {
            others::decode(format, bytes, source, stop).map(Decoded::Pixels)
        }
    }
}
