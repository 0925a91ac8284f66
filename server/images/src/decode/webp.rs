//! WebP; of an animated one the first picture.

use std::io::Cursor;

use image_webp::{DecodingError, WebPDecoder};

use crate::Stop;
use crate::animation;
use crate::error::{Bound, Error};
use crate::format::Format;
use crate::limits::{JOB_BYTES_MAX, PROFILE_BYTES_MAX};
use crate::orientation;
use crate::picture::{Layout, Picture};
use crate::riff::{self, Chunks};
use crate::source::Source;

/// More than the header of a picture has.
const STREAM_HEAD_BYTES: usize = 32;

pub(super) fn read_source(bytes: &[u8]) -> Result<Source, Error> {
    if let Some(animated) = animation::read_webp_source(bytes)? {
        return Ok(animated);
    }
    let mut decoder = decoder(bytes)?;
    if stream_sides(bytes)? != decoder.dimensions() {
        return Err(Error::undecodable("the picture is not as large as it says"));
    }
    let exif = decoder.exif_metadata().unwrap_or_default();
    Ok(Source {
        orientation: exif.as_deref().map(orientation::of_exif).unwrap_or_default(),
        is_lossless: !decoder.is_lossy(),
        ..Source::still(Format::WebP, decoder.dimensions())
    })
}

pub(super) fn decode(bytes: &[u8], source: &Source, stop: Stop<'_>) -> Result<Picture, Error> {
    if animation::read_webp_source(bytes)?.is_some() {
        return animation::first(bytes, source, stop);
    }
    let mut decoder = decoder(bytes)?;
    let length = decoder.output_buffer_size().filter(|length| *length as u64 <= JOB_BYTES_MAX);
    let mut samples = vec![0; length.ok_or(Error::TooLarge(Bound::Memory))?];
    decoder.read_image(&mut samples).map_err(told)?;
    let layout = if decoder.has_alpha() { Layout::Rgba } else { Layout::Rgb };
    let profile = decoder.icc_profile().unwrap_or_default();
    let profile = profile.filter(|profile| profile.len() <= PROFILE_BYTES_MAX);
    Picture::new(source.sides, layout, samples, profile)
}

/// The width and height that the picture in a still file gives. The container may give others, which the library only
/// compares when it has unpacked the picture.
pub(crate) fn stream_sides(file: &[u8]) -> Result<(u32, u32), Error> {
    let mut chunks = Chunks::of_file(file)?;
    let Some((name, stream)) = chunks.find(|(name, _)| matches!(name, b"VP8 " | b"VP8L")) else {
        return Err(Error::undecodable("it has no picture"));
    };
    let mut head = Vec::new();
    riff::push(&mut head, name, &stream[..stream.len().min(STREAM_HEAD_BYTES)])?;
    let head = riff::file(&head)?;
    Ok(WebPDecoder::new(Cursor::new(&*head)).map_err(told)?.dimensions())
}

fn decoder(bytes: &[u8]) -> Result<WebPDecoder<Cursor<&[u8]>>, Error> {
    let mut decoder = WebPDecoder::new(Cursor::new(bytes)).map_err(told)?;
    decoder.set_memory_limit(JOB_BYTES_MAX as usize);
    Ok(decoder)
}

fn told(error: DecodingError) -> Error {
    match error {
        DecodingError::ImageTooLarge | DecodingError::MemoryLimitExceeded => {
            Error::TooLarge(Bound::Memory)
        }
        other => Error::undecodable(other),
    }
}
