//! PNG decoder, 1 to 16 bits per channel, converted to 8; for an animation, the default image.

use std::io::Cursor;

use png::{BitDepth, ColorType, DecodeOptions, Decoder, Info, ScaledFloat, Transformations};

use super::synthetic_profile::{self, VideoCurve};
use crate::Stop;
use crate::error::{Error, LimitKind};
use crate::format::Format;
use crate::limits::{JOB_BYTES_MAX, PNG_OTHER_BYTES_MAX, PROFILE_BYTES_MAX};
use crate::orientation;
use crate::picture::{PixelBuffer, PixelLayout};
use crate::source_info::Source;

pub(super) fn read_source(bytes: &[u8]) -> Result<Source, Error> {
    let reader = decoder(bytes).read_info().map_err(decode_error)?;
    let info = reader.info();
    let exif = info.exif_metadata.as_deref();
    Ok(Source {
        orientation: exif.map(orientation::from_exif).unwrap_or_default(),
        is_lossless: true,
        is_progressive: info.interlaced,
        ..Source::still(Format::Png, (info.width, info.height))
    })
}

pub(super) fn decode(bytes: &[u8], stop: Stop<'_>) -> Result<PixelBuffer, Error> {
    let mut reader = decoder(bytes).read_info().map_err(decode_error)?;
    let layout = match reader.output_color_type() {
        (ColorType::Grayscale, BitDepth::Eight) => PixelLayout::Grey,
        (ColorType::GrayscaleAlpha, BitDepth::Eight) => PixelLayout::GreyAlpha,
        (ColorType::Rgb, BitDepth::Eight) => PixelLayout::Rgb,
        (ColorType::Rgba, BitDepth::Eight) => PixelLayout::Rgba,
        (color, depth) => return Err(Error::Undecodable(format!("{color:?} of {depth:?}"))),
    };
    let sides = (reader.info().width, reader.info().height);
    let too_large = || Error::TooLarge(LimitKind::Memory);
    let length = reader.output_buffer_size().filter(|length| *length as u64 <= JOB_BYTES_MAX);
    let mut samples = vec![0; length.ok_or_else(too_large)?];
    if reader.info().interlaced {
        reader.next_frame(&mut samples).map_err(decode_error)?;
    } else {
        let row_bytes = reader.output_line_size(sides.0).ok_or_else(too_large)?;
        for row in samples.chunks_exact_mut(row_bytes.max(1)) {
            if stop() {
                return Err(Error::Cancelled);
            }
            reader.read_row(row).map_err(decode_error)?;
        }
    }
    let is_grey = matches!(layout, PixelLayout::Grey | PixelLayout::GreyAlpha);
    PixelBuffer::new(sides, layout, samples, profile(reader.info(), is_grey))
}

/// Returns the colour profile by the precedence of PNG 3, 4.3: code points, ICC profile, sRGB, gamma and
/// chromaticities.
fn profile(info: &Info<'_>, is_grey: bool) -> Option<Vec<u8>> {
    if let Some(points) = &info.coding_independent_code_points {
        let (primaries, transfer) = (points.color_primaries, points.transfer_function);
        return synthetic_profile::icc_from_cicp(primaries, transfer, VideoCurve::Display, is_grey);
    }
    if let Some(profile) = info.icc_profile.as_deref() {
        return Some(profile.to_vec()).filter(|profile| profile.len() <= PROFILE_BYTES_MAX);
    }
    if info.srgb.is_some() {
        return None;
    }
    let gamma = info.gama_chunk.map(ScaledFloat::into_value);
    if is_grey {
        return gamma.and_then(synthetic_profile::icc_from_grey_gamma);
    }
    let places = info.chrm_chunk.map(|places| {
        [places.white, places.red, places.green, places.blue]
            .map(|(x, y)| (x.into_value(), y.into_value()))
    });
    synthetic_profile::icc_from_gamma(gamma, places)
}

fn decoder(bytes: &[u8]) -> Decoder<Cursor<&[u8]>> {
    let mut options = DecodeOptions::default();
    options.set_ignore_text_chunk(true);
    let mut decoder = Decoder::new_with_options(Cursor::new(bytes), options);
    decoder.set_limits(png::Limits { bytes: PNG_OTHER_BYTES_MAX });
    decoder.set_transformations(Transformations::normalize_to_color8());
    decoder
}

fn decode_error(error: png::DecodingError) -> Error {
    match error {
        png::DecodingError::LimitsExceeded => Error::TooLarge(LimitKind::Memory),
        other => Error::undecodable(other),
    }
}
