//! WebP decoder; for an animation, the first frame.

use std::io::{self, BufRead, Cursor, Read, Seek, SeekFrom};

use image_webp::{DecodingError, WebPDecoder};

use crate::Stop;
use crate::animation;
use crate::error::{Error, LimitKind};
use crate::format::Format;
use crate::limits::{JOB_BYTES_MAX, PROFILE_BYTES_MAX};
use crate::orientation;
use crate::picture::{PixelBuffer, PixelLayout};
use crate::riff::{self, Chunks};
use crate::source_info::Source;

/// Upper bound of the header length of a bitstream.
const STREAM_HEAD_BYTES: usize = 32;

pub(super) fn read_source(bytes: &[u8]) -> Result<Source, Error> {
    if let Some(animated) = animation::read_webp_source(bytes)? {
        return Ok(animated);
    }
    let mut decoder = decoder(bytes)?;
    if stream_sides(bytes)? != decoder.dimensions() {
        return Err(Error::undecodable("dimensions differ from the header"));
    }
    let exif = decoder.exif_metadata().unwrap_or_default();
    Ok(Source {
        orientation: exif.as_deref().map(orientation::from_exif).unwrap_or_default(),
        is_lossless: !decoder.is_lossy(),
        ..Source::still(Format::WebP, decoder.dimensions())
    })
}

pub(super) fn decode(bytes: &[u8], source: &Source, stop: Stop<'_>) -> Result<PixelBuffer, Error> {
    if animation::read_webp_source(bytes)?.is_some() {
        return animation::first_frame(bytes, source, stop);
    }
    let mut decoder = decoder(bytes)?;
    let length = decoder.output_buffer_size().filter(|length| *length as u64 <= JOB_BYTES_MAX);
    let mut samples = vec![0; length.ok_or(Error::TooLarge(LimitKind::Memory))?];
    decoder.read_image(&mut samples).map_err(decode_error)?;
    let layout = if decoder.has_alpha() { PixelLayout::Rgba } else { PixelLayout::Rgb };
    let profile = decoder.icc_profile().unwrap_or_default();
    let profile = profile.filter(|profile| profile.len() <= PROFILE_BYTES_MAX);
    PixelBuffer::new(source.sides, layout, samples, profile)
}

/// Returns the width and height according to the bitstream of a still file. The container may state others, which
/// the library compares only after decompression.
pub(crate) fn stream_sides(file: &[u8]) -> Result<(u32, u32), Error> {
    let mut chunks = Chunks::in_file(file)?;
    let Some((name, stream)) = chunks.find(|(name, _)| matches!(name, b"VP8 " | b"VP8L")) else {
        return Err(Error::undecodable("no image"));
    };
    let mut head = Vec::new();
    riff::push(&mut head, name, &stream[..stream.len().min(STREAM_HEAD_BYTES)])?;
    let head = riff::file(&head)?;
    Ok(WebPDecoder::new(Cursor::new(&*head)).map_err(decode_error)?.dimensions())
}

fn decoder(bytes: &[u8]) -> Result<WebPDecoder<WithFlags<'_>>, Error> {
    let mut decoder = WebPDecoder::new(WithFlags::of_chunks(bytes)).map_err(decode_error)?;
    decoder.set_memory_limit(JOB_BYTES_MAX as usize);
    Ok(decoder)
}

/// Offset of the flags of `VP8X`, which is the first chunk.
const FLAGS_AT: usize = riff::FILE_HEAD_BYTES + riff::CHUNK_HEAD_BYTES;
/// Flags of `VP8X`: alpha, Exif and XMP.
const HAS_ALPHA: u8 = 0x10;
const HAS_EXIF: u8 = 0x08;
const HAS_XMP: u8 = 0x04;

/// File whose header flags are cleared for missing chunks: in RFC 9649, 2.7, the flags are hints, libwebp ignores
/// such flags, and `image-webp` 0.2.4 rejects the file (image-rs/image-webp #143).
struct WithFlags<'a> {
    bytes: &'a [u8],
    flags: Option<[u8; 1]>,
    at: usize,
}

impl<'a> WithFlags<'a> {
    fn of_chunks(bytes: &'a [u8]) -> Self {
        let flags = Self::missing(bytes).zip(bytes.get(FLAGS_AT));
        Self { bytes, flags: flags.map(|(missing, flags)| [flags & !missing]), at: 0 }
    }

    /// Returns the flags of a still picture that have no chunk.
    fn missing(bytes: &[u8]) -> Option<u8> {
        let mut chunks = Chunks::in_file(bytes).ok()?;
        let mut missing = match chunks.next()? {
            (name, [flags, ..]) if name == *b"VP8X" => flags & (HAS_ALPHA | HAS_EXIF | HAS_XMP),
            _ => return None,
        };
        for (name, _) in chunks {
            missing &= match &name {
                // The bitstream contains the alpha.
                b"ALPH" | b"VP8L" => !HAS_ALPHA,
                b"EXIF" => !HAS_EXIF,
                b"XMP " => !HAS_XMP,
                _ => u8::MAX,
            };
        }
        Some(missing).filter(|missing| *missing != 0)
    }
}

impl BufRead for WithFlags<'_> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        Ok(match &self.flags {
            Some(_) if self.at < FLAGS_AT => rest.get(..FLAGS_AT - self.at).unwrap_or(rest),
            Some(flags) if self.at == FLAGS_AT => flags,
            _ => rest,
        })
    }

    fn consume(&mut self, count: usize) {
        self.at = self.at.saturating_add(count);
    }
}

impl Read for WithFlags<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let count = self.fill_buf()?.read(into)?;
        self.consume(count);
        Ok(count)
    }
}

impl Seek for WithFlags<'_> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let mut cursor = Cursor::new(self.bytes);
        cursor.set_position(self.at as u64);
        let at = cursor.seek(to)?;
        self.at = usize::try_from(at).unwrap_or(usize::MAX);
        Ok(at)
    }
}

fn decode_error(error: DecodingError) -> Error {
    match error {
        DecodingError::ImageTooLarge | DecodingError::MemoryLimitExceeded => {
            Error::TooLarge(LimitKind::Memory)
        }
        other => Error::undecodable(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn webp_flags_of_missing_chunks_are_ignored() {
        for (name, file) in [
            (
                "Exif",
                &include_bytes!("../../../../tests/fixtures/webp/exif_flag_no_chunk.webp")[..],
            ),
            ("alpha", include_bytes!("../../../../tests/fixtures/webp/alpha_flag_no_alph.webp")),
        ] {
            let source = read_source(file).unwrap();
            let picture = decode(file, &source, &|| false).unwrap();
            assert_eq!(picture.layout, PixelLayout::Rgb, "{name}");
            let chunks = Chunks::in_file(file).unwrap();
            let (_, stream) = chunks.into_iter().find(|(name, _)| name == b"VP8 ").unwrap();
            let mut plain = Vec::new();
            riff::push(&mut plain, *b"VP8 ", stream).unwrap();
            let plain = riff::file(&plain).unwrap();
            let source = read_source(&plain).unwrap();
            assert_eq!(decode(&plain, &source, &|| false).unwrap(), picture, "{name}");
        }
    }
}
