//! JPEG: our own decoder at a fraction of the size, or where it must be whole, a library's.
//!
//! A file that breaks off is decoded as far as it goes. Inks stay inks: the profile says what they look like.

use zune_core::bytestream::ZCursor;
use zune_core::colorspace::ColorSpace;
use zune_core::options::DecoderOptions;
use zune_jpeg::JpegDecoder;

use super::Decoded;
use crate::Stop;
use crate::error::{Bound, Error};
use crate::format::Format;
use crate::limits::{PROFILE_BYTES_MAX, SCALED_PIXELS_MAX, SCANS_MAX, SOURCE_SIDE_MAX};
use crate::orientation::{self, Orientation};
use crate::picture::{Layout, Picture};
use crate::plan::Plan;
use crate::scaled_jpeg::{self, Limits, Scale};
use crate::source::Source;

/// Larger sides than are worked on are read, so that it can be said what is too large.
const LIMITS: Limits = Limits {
    pixels_max: u64::MAX,
    side_max: u32::MAX,
    scans_max: SCANS_MAX,
    blocks_max: SCALED_PIXELS_MAX / 2,
    profile_bytes_max: PROFILE_BYTES_MAX,
};

/// The source, if our own decoder reads the file: it sees all that it asks for before the first scan.
pub(super) fn read_source_of_start(start: &[u8]) -> Option<Source> {
    scaled_jpeg::read_header(start, &LIMITS).ok().map(source_of)
}

fn source_of(header: scaled_jpeg::Header) -> Source {
    Source {
        orientation: Orientation::of_tag(header.orientation),
        is_progressive: header.progressive,
        is_scalable: true,
        ..Source::still(Format::Jpeg, (header.width, header.height))
    }
}

pub(super) fn read_source(bytes: &[u8]) -> Result<Source, Error> {
    match scaled_jpeg::read_header(bytes, &LIMITS) {
        Ok(header) => Ok(source_of(header)),
        Err(ours) => {
            let mut decoder = whole_decoder(bytes, ColorSpace::RGB);
            // What neither reads is told as the first has it, which says where.
            decoder.decode_headers().map_err(|_| Error::undecodable(ours))?;
            let info = decoder.info().ok_or_else(|| Error::undecodable(ours))?;
            Ok(Source {
                orientation: decoder
                    .exif()
                    .map(|exif| orientation::of_exif(exif))
                    .unwrap_or_default(),
                is_progressive: true,
                ..Source::still(Format::Jpeg, (info.width.into(), info.height.into()))
            })
        }
    }
}

pub(super) fn decode(
    bytes: &[u8],
    source: &Source,
    plan: &Plan,
    stop: Stop<'_>,
) -> Result<Decoded, Error> {
    let decode_scaled =
        |scale| scaled_jpeg::decode(bytes, scale, &LIMITS, stop).map(Decoded::Planes).map_err(told);
    if let Some(scale) = plan.scale(source) {
        return decode_scaled(scale);
    }
    // The library takes components that are subsampled and come in scans of their own for others.
    let is_misread = source.is_scalable
        && scaled_jpeg::read_header(bytes, &LIMITS).is_ok_and(|header| header.is_in_parts());
    if is_misread {
        return decode_scaled(Scale::Half);
    }
    decode_whole(bytes).map(Decoded::Pixels)
}

fn told(error: scaled_jpeg::Error) -> Error {
    match error {
        scaled_jpeg::Error::Cancelled => Error::Cancelled,
        scaled_jpeg::Error::OverLimit(_) => Error::TooLarge(Bound::Pixels),
        other => Error::undecodable(other),
    }
}

fn decode_whole(bytes: &[u8]) -> Result<Picture, Error> {
    let mut headers = whole_decoder(bytes, ColorSpace::RGB);
    headers.decode_headers().map_err(Error::undecodable)?;
    let (layout, space) = match headers.input_colorspace() {
        Some(ColorSpace::Luma) => (Layout::Grey, ColorSpace::Luma),
        Some(space @ (ColorSpace::CMYK | ColorSpace::YCCK)) => (Layout::Cmyk, space),
        _ => (Layout::Rgb, ColorSpace::RGB),
    };
    let mut decoder = whole_decoder(bytes, space);
    let mut samples = decoder.decode().map_err(Error::undecodable)?;
    if layout == Layout::Cmyk {
        to_inks(&mut samples, space, scaled_jpeg::adobe_transform(bytes).is_some());
    }
    let info = decoder.info().ok_or_else(|| Error::undecodable("it has no frame"))?;
    let profile = decoder.icc_profile().filter(|profile| profile.len() <= PROFILE_BYTES_MAX);
    Picture::new((info.width.into(), info.height.into()), layout, samples, profile)
}

/// Four samples a pixel, as they are stored, into inks. Adobe's programs store what the inks leave; what they call
/// YCCK is YCbCr of the colours that three inks are opposite to, and black (Technical Note 5116).
fn to_inks(samples: &mut [u8], space: ColorSpace, is_adobes: bool) {
    for pixel in samples.as_chunks_mut::<4>().0 {
        let [a, b, c, k] = *pixel;
        *pixel = match (space, is_adobes) {
            (ColorSpace::YCCK, _) => {
                let [cyan, magenta, yellow] = scaled_jpeg::from_ycbcr(a, b, c);
                [cyan, magenta, yellow, 255 - k]
            }
            (_, true) => pixel.map(|left| 255 - left),
            (_, false) => [a, b, c, k],
        };
    }
}

fn whole_decoder(bytes: &[u8], space: ColorSpace) -> JpegDecoder<ZCursor<&[u8]>> {
    let side_max = SOURCE_SIDE_MAX as usize;
    let options = DecoderOptions::default()
        .set_strict_mode(false)
        .set_max_width(side_max)
        .set_max_height(side_max)
        .jpeg_set_max_scans(SCANS_MAX)
        .jpeg_set_out_colorspace(space);
    JpegDecoder::new_with_options(ZCursor::new(bytes), options)
}
