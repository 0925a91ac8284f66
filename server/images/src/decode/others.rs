//! BMP, ICO and PNM decoders of the `image` crate: formats that browsers or programs store, and that are not encoded
//! here.
//!
//! 16 bits per channel are reduced to eight. Of several pictures in an ICO the largest is decoded.
//!
//! Not supported: TGA, which has no signature, so that it cannot be detected by content; HDR and other high dynamic
//! range formats, which need a tone curve that no standard defines; TIFF, whose decoder has four dependencies that
//! the advisory database snapshot does not cover, and which only one browser shows.
//!
//! Guarantees: size and memory are bounded before pixels are allocated.

use std::borrow::Cow;
use std::io::Cursor;

use image::error::LimitErrorKind;
use image::{ColorType, ImageDecoder, ImageError, ImageFormat, ImageReader, Limits};

use super::png;
use crate::Stop;
use crate::error::{Error, LimitKind};
use crate::format::Format;
use crate::limits::{JOB_BYTES_MAX, PROFILE_BYTES_MAX, SOURCE_SIDE_MAX};
use crate::picture::{PixelBuffer, PixelLayout};
use crate::source_info::Source;

/// Number of copies of the stored pixels in memory: the decoder's, and that of this crate.
const COPIES: u64 = 2;
/// Maximum size of an icon picture that is not a PNG: 256 x 256 pixels of 32 bits, a mask, a palette.
const ICON_BYTES_MAX: usize = 1 << 19;
/// Maximum memory of a decoder in addition to pixels: palettes, tables, a profile.
const OTHER_BYTES_MAX: u64 = 4 << 20;

pub(super) fn read_source(format: Format, bytes: &[u8]) -> Result<Source, Error> {
    let file = match Chosen::of(format, bytes)? {
        Chosen::Png(png) => return Ok(Source { format, ..png::read_source(png)? }),
        Chosen::File(file) => file,
    };
    let decoder = decoder(format, &file)?;
    let (width, height) = decoder.dimensions();
    if u64::from(width.max(height)) > u64::from(SOURCE_SIDE_MAX) {
        return Err(Error::TooLarge(LimitKind::Side));
    }
    let pixels = u64::from(width) * u64::from(height);
    Ok(Source {
        is_lossless: true,
        full_bytes: Some(COPIES * decoder.total_bytes() + 4 * pixels + OTHER_BYTES_MAX),
        ..Source::still(format, (width, height))
    })
}

pub(super) fn decode(
    format: Format,
    bytes: &[u8],
    source: &Source,
    stop: Stop<'_>,
) -> Result<PixelBuffer, Error> {
    let file = match Chosen::of(format, bytes)? {
        Chosen::Png(png) => return png::decode(png, stop),
        Chosen::File(file) => file,
    };
    let mut decoder = decoder(format, &file)?;
    if decoder.dimensions() != source.sides {
        return Err(Error::undecodable("dimensions differ from the header"));
    }
    let profile = decoder.icc_profile().map_err(decoding_error)?;
    let color = decoder.color_type();
    let length = usize::try_from(decoder.total_bytes()).map_err(Error::undecodable)?;
    let mut samples = vec![0; length];
    decoder.read_image(&mut samples).map_err(decoding_error)?;
    let layout = match color {
        ColorType::L8 | ColorType::L16 => PixelLayout::Grey,
        ColorType::La8 | ColorType::La16 => PixelLayout::GreyAlpha,
        ColorType::Rgb8 | ColorType::Rgb16 => PixelLayout::Rgb,
        ColorType::Rgba8 | ColorType::Rgba16 => PixelLayout::Rgba,
        other => return Err(Error::Undecodable(format!("{other:?} samples"))),
    };
    if length == 2 * source.pixels() as usize * layout.channels() {
        to_eight_bits(&mut samples);
    }
    let profile = profile.filter(|profile| profile.len() <= PROFILE_BYTES_MAX);
    PixelBuffer::new(source.sides, layout, samples, profile)
}

/// Input of a decoder.
enum Chosen<'a> {
    /// File of the format with one picture.
    File(Cow<'a, [u8]>),
    /// PNG inside an icon, which is decoded as PNG.
    Png(&'a [u8]),
}

impl<'a> Chosen<'a> {
    fn of(format: Format, file: &'a [u8]) -> Result<Self, Error> {
        match format {
            Format::Ico => Self::of_icon(file),
            _ => Ok(Self::File(file.into())),
        }
    }

    /// Returns the picture of an icon with the most pixels and, among those, the most bits per pixel.
    fn of_icon(file: &'a [u8]) -> Result<Self, Error> {
        let broken = || Error::undecodable("icon without images");
        let (count, entries) = match file {
            [0, 0, 1, 0, low, high, entries @ ..] => (u16::from_le_bytes([*low, *high]), entries),
            _ => return Err(broken()),
        };
        let side = |side: u8| if side == 0 { 256 } else { u32::from(side) };
        let size = |entry: &&[u8; 16]| {
            let [width, height, _, _, _, _, bits, ..] = **entry;
            (side(width) * side(height), bits)
        };
        let entries = entries.as_chunks::<16>().0.iter().take(count.into());
        let entry = entries.max_by_key(size).ok_or_else(broken)?;
        let (kind, place) = entry.split_at(8);
        let [l0, l1, l2, l3, o0, o1, o2, o3] = *place else { return Err(broken()) };
        let offset = u32::from_le_bytes([o0, o1, o2, o3]) as usize;
        let data = file.get(offset..).ok_or_else(broken)?;
        let length = u32::from_le_bytes([l0, l1, l2, l3]) as usize;
        let data = data.get(..length).unwrap_or(data);
        if Format::detect(data) == Some(Format::Png) {
            return Ok(Self::Png(data));
        }
        // Builds an icon of only this picture, because the decoder would select by another rule.
        let data = &data[..data.len().min(ICON_BYTES_MAX)];
        let numbers = [data.len() as u32, 6 + 16].map(u32::to_le_bytes);
        let icon = [&[0, 0, 1, 0, 1, 0], kind, numbers.as_flattened(), data].concat();
        Ok(Self::File(icon.into()))
    }
}

fn decoder(format: Format, bytes: &[u8]) -> Result<impl ImageDecoder + '_, Error> {
    let format = match format {
        Format::Bmp => ImageFormat::Bmp,
        Format::Ico => ImageFormat::Ico,
        Format::Pnm => ImageFormat::Pnm,
        other => {
            return Err(Error::undecodable(format!("{} by another decoder", other.extension())));
        }
    };
    let mut limits = Limits::no_limits();
    limits.max_image_width = Some(SOURCE_SIDE_MAX);
    limits.max_image_height = Some(SOURCE_SIDE_MAX);
    limits.max_alloc = Some(JOB_BYTES_MAX);
    let mut reader = ImageReader::with_format(Cursor::new(bytes), format);
    reader.limits(limits);
    reader.into_decoder().map_err(decoding_error)
}

/// Reduces 16-bit samples in native byte order to 8 bits, in place.
#[allow(clippy::host_endian_bytes, reason = "`image` gives them so")]
fn to_eight_bits(samples: &mut Vec<u8>) {
    let count = samples.len() / 2;
    for at in 0..count {
        let sample = u16::from_ne_bytes([samples[2 * at], samples[2 * at + 1]]);
        samples[at] = ((u32::from(sample) * 255 + 32_767) / 65_535) as u8;
    }
    samples.truncate(count);
    samples.shrink_to_fit();
}

fn decoding_error(error: ImageError) -> Error {
    match error {
        ImageError::Limits(limit) => match limit.kind() {
            LimitErrorKind::DimensionError => Error::TooLarge(LimitKind::Side),
            _ => Error::TooLarge(LimitKind::Memory),
        },
        other => Error::undecodable(other),
    }
}

#[cfg(test)]
mod tests {
    use image::{DynamicImage, ImageBuffer, Luma, Rgb, Rgba};

    use super::*;

    fn colours() -> DynamicImage {
        DynamicImage::ImageRgb8(ImageBuffer::from_fn(7, 5, |x, y| {
            Rgb([x as u8 * 30, y as u8 * 50, (x * y) as u8])
        }))
    }

    fn with_alpha() -> DynamicImage {
        DynamicImage::ImageRgba8(ImageBuffer::from_fn(7, 5, |x, y| {
            Rgba([x as u8 * 30, 9, y as u8 * 50, (x * 36) as u8])
        }))
    }

    fn file(picture: &DynamicImage, format: ImageFormat) -> Vec<u8> {
        let mut file = Cursor::new(Vec::new());
        picture.write_to(&mut file, format).unwrap();
        file.into_inner()
    }

    fn read(bytes: &[u8]) -> Result<PixelBuffer, Error> {
        let format = Format::detect(bytes).unwrap();
        let source = read_source(format, bytes)?;
        decode(format, bytes, &source, &|| false)
    }

    #[test]
    fn rare_formats_are_read_pixel_by_pixel() {
        for (picture, layout) in [(colours(), PixelLayout::Rgb), (with_alpha(), PixelLayout::Rgba)]
        {
            for format in [ImageFormat::Bmp, ImageFormat::Ico, ImageFormat::Pnm] {
                if (format, layout) == (ImageFormat::Pnm, PixelLayout::Rgba) {
                    continue;
                }
                let read = read(&file(&picture, format)).unwrap();
                assert_eq!((read.dimensions(), read.layout), ((7, 5), layout), "{format:?}");
                assert_eq!(read.samples, picture.as_bytes(), "{format:?}");
            }
        }
    }

    #[test]
    fn pnm_of_16_bits_becomes_8_bits() {
        let samples = [0, 128, 129, 257, 32_768, 65_406, 65_407, u16::MAX];
        let deep = ImageBuffer::<Luma<u16>, _>::from_vec(8, 1, samples.to_vec()).unwrap();
        let read = read(&file(&deep.into(), ImageFormat::Pnm)).unwrap();
        assert_eq!(
            (read.layout, &*read.samples),
            (PixelLayout::Grey, &[0, 0, 1, 1, 128, 254, 255, 255][..])
        );
    }

    #[test]
    fn icon_decodes_to_its_largest_image() {
        let png = file(&with_alpha(), ImageFormat::Png);
        let icon = file(&with_alpha(), ImageFormat::Ico);
        assert_eq!(read(&icon).unwrap().samples, with_alpha().as_bytes());
        // A small entry of no known type before the PNG.
        let entry = |side: u8, length: usize, offset: usize| {
            let numbers = [length as u32, offset as u32].map(u32::to_le_bytes).concat();
            [&[side, side, 0, 0, 1, 0, 32, 0][..], &numbers].concat()
        };
        let entries = [entry(4, 3, 38), entry(7, png.len(), 41)].concat();
        let both = [&[0, 0, 1, 0, 2, 0][..], &entries, b"???", &png].concat();
        assert_eq!(read(&both).unwrap().samples, with_alpha().as_bytes());
        assert!(read(&both[..60]).is_err());
        assert!(read_source(Format::Ico, &[0, 0, 1, 0, 0, 0]).is_err());
    }

    #[test]
    fn rare_formats_cut_off_anywhere_do_not_panic() {
        for format in [ImageFormat::Bmp, ImageFormat::Pnm, ImageFormat::Ico] {
            let file = file(&colours(), format);
            for end in 8..file.len() {
                if Format::detect(&file[..end]).is_some() {
                    let _ = read(&file[..end]);
                }
            }
        }
    }
}
