//! JPEG decoder: scaled decoding by this crate; full decoding by a library for common files, and by this crate for
//! the rest.
//!
//! The header parser of this crate decides about a file at any size, so that the same files are supported and their
//! components are interpreted equally. A truncated file is decoded as far as possible. CMYK is not converted here:
//! the profile determines its colours.

use scaled_jpeg::{ColorModel, Header, Limits, Scale};
use zune_core::bytestream::ZCursor;
use zune_core::colorspace::ColorSpace;
use zune_core::options::DecoderOptions;
use zune_jpeg::JpegDecoder;

use super::Decoded;
use crate::Stop;
use crate::error::{Error, LimitKind};
use crate::format::Format;
use crate::limits::{PROFILE_BYTES_MAX, SCALED_PIXELS_MAX, SCANS_MAX, SOURCE_SIDE_MAX};
use crate::orientation::Orientation;
use crate::picture::{PixelBuffer, PixelLayout};
use crate::plan::Plan;
use crate::source_info::Source;

/// Files above the size limit are parsed too, so that the error can state the size.
const LIMITS: Limits = Limits {
    pixels_max: u64::MAX,
    side_max: u32::MAX,
    scans_max: SCANS_MAX,
    blocks_max: SCALED_PIXELS_MAX / 2,
    profile_bytes_max: PROFILE_BYTES_MAX,
};

/// Returns the source if this crate's decoder supports the file, which is known before the first scan.
pub(super) fn read_source_of_start(start: &[u8]) -> Option<Source> {
    let header = scaled_jpeg::read_header(start, &LIMITS).ok()?;
    let scanned_samples = (!header.progressive).then_some(0);
    Some(source_of(header, scanned_samples))
}

fn source_of(header: Header, scanned_samples: Option<u64>) -> Source {
    let (width, height) = (header.width, header.height);
    // The resizer has one intermediate plane, at most as large as its largest input.
    let scaled_bytes = Scale::REDUCED.map(|scale| {
        let plane = u64::from(scale.scaled_len(width)) * u64::from(scale.scaled_len(height));
        scaled_jpeg::memory_bytes(&header, scale) + plane
    });
    let samples = scaled_jpeg::samples(&header);
    let full_bytes = (!is_read_by_library(&header)).then(|| {
        let pixels = u64::from(width) * u64::from(height) * header.sampling.len() as u64;
        // First planes with coefficients or pixels; later pixels and those of the resizer.
        scaled_jpeg::memory_bytes(&header, Scale::Full).max(samples + pixels).max(2 * pixels)
    });
    Source {
        orientation: Orientation::from_exif_tag(header.orientation),
        is_progressive: header.progressive || header.is_in_parts(),
        components: header.sampling.len() as u8,
        samples,
        scaled_bytes: Some(scaled_bytes),
        full_bytes,
        scanned_samples,
        ..Source::still(Format::Jpeg, (width, height))
    }
}

pub(super) fn read_source(bytes: &[u8]) -> Result<Source, Error> {
    let header = scaled_jpeg::read_header(bytes, &LIMITS).map_err(Error::undecodable)?;
    // A file whose scans cannot be counted is not decoded either.
    let scanned = scaled_jpeg::scanned_samples(bytes, &LIMITS).unwrap_or(0);
    Ok(source_of(header, Some(scanned)))
}

pub(super) fn decode(
    bytes: &[u8],
    source: &Source,
    plan: &Plan,
    stop: Stop<'_>,
) -> Result<Decoded, Error> {
    if let Some(scale) = plan.scale(source) {
        let decoded = scaled_jpeg::decode(bytes, scale, &LIMITS, stop);
        return decoded.map(Decoded::Planes).map_err(decode_error);
    }
    let header = scaled_jpeg::read_header(bytes, &LIMITS).map_err(decode_error)?;
    if is_read_by_library(&header)
        && let Ok(picture) = decode_by_library(bytes, header)
    {
        return Ok(Decoded::Pixels(picture));
    }
    // A file that the library rejects is decoded here, as at any other size.
    decode_full_size(bytes, stop).map(Decoded::Pixels)
}

/// Returns whether the library, which is faster at full size, decodes such a file like libjpeg. zune-jpeg 0.5.15
/// counts restart intervals by rows in sequential scans of single components (etemesi254/zune-image #341, #422),
/// assumes that the first component is the largest (#273), rejects factors of three (#276), and uses other rules for
/// the colour space (#426).
fn is_read_by_library(header: &Header) -> bool {
    let is_usual = matches!(
        (header.colour, &*header.sampling),
        (ColorModel::Grey, _) | (ColorModel::YCbCr, [(1 | 2, 1 | 2), (1, 1), (1, 1)])
    );
    is_usual && header.colour_is_undisputed && !header.is_in_parts()
}

fn decode_error(error: scaled_jpeg::Error) -> Error {
    match error {
        scaled_jpeg::Error::Cancelled => Error::Cancelled,
        scaled_jpeg::Error::OverLimit(_) => Error::TooLarge(LimitKind::Pixels),
        other => Error::undecodable(other),
    }
}

fn decode_full_size(bytes: &[u8], stop: Stop<'_>) -> Result<PixelBuffer, Error> {
    let decoded = scaled_jpeg::decode(bytes, Scale::Full, &LIMITS, stop).map_err(decode_error)?;
    let samples = scaled_jpeg::full_size_pixels(&decoded, stop).map_err(decode_error)?;
    let header = decoded.header;
    let layout = layout_of(header.colour);
    PixelBuffer::new((header.width, header.height), layout, samples, header.profile)
}

/// Returns the pixel layout of such components.
pub(crate) fn layout_of(colour: ColorModel) -> PixelLayout {
    match colour {
        ColorModel::Grey => PixelLayout::Grey,
        ColorModel::YCbCr | ColorModel::Rgb => PixelLayout::Rgb,
        ColorModel::Cmyk | ColorModel::Ycck => PixelLayout::Cmyk,
    }
}

fn decode_by_library(bytes: &[u8], header: Header) -> Result<PixelBuffer, Error> {
    let layout = layout_of(header.colour);
    let space = if layout == PixelLayout::Grey { ColorSpace::Luma } else { ColorSpace::RGB };
    let side_max = SOURCE_SIDE_MAX as usize;
    let options = DecoderOptions::default()
        .set_strict_mode(false)
        .set_max_width(side_max)
        .set_max_height(side_max)
        .jpeg_set_max_scans(SCANS_MAX)
        .jpeg_set_out_colorspace(space);
    let mut decoder = JpegDecoder::new_with_options(ZCursor::new(bytes), options);
    let samples = decoder.decode().map_err(Error::undecodable)?;
    PixelBuffer::new((header.width, header.height), layout, samples, header.profile)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transform::{OutputFormat, TransformOptions};
    use crate::{PlanOutcome, plan, render};
    use jpeg_encoder::{ColorType, Encoder, SamplingFactor};

    const SAMPLINGS: [SamplingFactor; 5] = [
        SamplingFactor::R_4_4_4,
        SamplingFactor::R_4_2_0,
        SamplingFactor::R_4_2_2,
        SamplingFactor::R_4_4_0,
        SamplingFactor::R_4_1_1,
    ];

    /// Scan structure of a file.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    enum Scans {
        One,
        /// One scan per component.
        Parts,
        Progressive,
    }

    /// Builds a picture with smooth colours.
    fn file((width, height): (u16, u16), sampling: SamplingFactor, scans: Scans) -> Vec<u8> {
        let wave = |place: u16, length: f32| (f32::from(place) / length).sin() * 50.0;
        let pixel = |x, y| {
            let light = 128.0 + wave(x, 9.0) + wave(y, 7.0);
            [light + wave(y, 23.0) / 3.0, light, light - wave(x, 31.0) / 3.0].map(|it| it as u8)
        };
        let rows = (0..height).flat_map(|y| (0..width).flat_map(move |x| pixel(x, y)));
        let mut file = Vec::new();
        let mut encoder = Encoder::new(&mut file, 90);
        encoder.set_sampling_factor(sampling);
        match scans {
            Scans::One => {}
            Scans::Parts => encoder.set_optimized_huffman_tables(true),
            Scans::Progressive => encoder.set_progressive_scans(4),
        }
        encoder.encode(&rows.collect::<Vec<_>>(), width, height, ColorType::Rgb).unwrap();
        file
    }

    fn planned(file: &[u8], width: u32) -> (Source, Plan) {
        let source = read_source(file).unwrap();
        let wish = TransformOptions {
            width: Some(width),
            format: OutputFormat::Format(Format::Png),
            ..TransformOptions::default()
        };
        let PlanOutcome::Transform(plan) = plan(&source, &wish).unwrap() else {
            panic!("it is as wanted")
        };
        (source, plan)
    }

    #[test]
    fn jpeg_memory_plan_matches_the_decoder() {
        for scans in [Scans::One, Scans::Parts, Scans::Progressive] {
            for sampling in SAMPLINGS {
                let file = file((1_003, 501), sampling, scans);
                let header = scaled_jpeg::read_header(&file, &LIMITS).unwrap();
                for width in [90, 170, 240, 330, 1_003] {
                    let (source, plan) = planned(&file, width);
                    let what = format!("{scans:?} {sampling:?} at {width}");
                    let taken = match plan.scale(&source) {
                        Some(scale) => scaled_jpeg::memory_bytes(&header, scale),
                        // Pixels, and two bytes per coefficient, which are in memory until the last scan.
                        None if source.full_bytes.is_some() => {
                            let planes = scaled_jpeg::samples(&header);
                            scaled_jpeg::memory_bytes(&header, Scale::Full)
                                .max(planes + 3 * source.pixels())
                        }
                        None => {
                            assert_eq!(width, 1_003, "{what}");
                            let held = if scans == Scans::One { 0 } else { 2 };
                            3 * source.pixels() + held * scaled_jpeg::samples(&header)
                        }
                    };
                    assert!(source.jpeg_bytes(plan.scale(&source)) >= taken, "{what}");
                    assert!(plan.memory_bytes(&source) > taken, "{what}");
                }
            }
        }
    }

    #[test]
    fn more_samples_cost_more() {
        let cost = |sampling, scans, width| {
            let (source, plan) = planned(&file((2_000, 1_000), sampling, scans), width);
            plan.cost_ms(&source)
        };
        let (full, half) = (SamplingFactor::R_4_4_4, SamplingFactor::R_4_2_0);
        for scans in [Scans::One, Scans::Progressive] {
            assert!(cost(full, scans, 600) > cost(half, scans, 600), "{scans:?}");
        }
        assert!(cost(half, Scans::Progressive, 600) > cost(half, Scans::One, 600));
    }

    #[test]
    fn extra_progressive_scans_raise_the_cost() {
        let whole = file((2_000, 1_000), SamplingFactor::R_4_2_0, Scans::Progressive);
        let is_scan = |pair: &[u8]| pair == [0xff, 0xda];
        let last = whole.windows(2).rposition(is_scan).unwrap();
        let (scan, end) = (&whole[last..whole.len() - 2], &whole[whole.len() - 2..]);
        let scanned = |times: usize| {
            let many = [&whole[..last], &scan.repeat(times), end].concat();
            let (source, plan) = planned(&many, 600);
            let early = read_source_of_start(&many[..last]).unwrap();
            assert!(source.has_complete_cost() && !early.has_complete_cost());
            assert_eq!(Source { scanned_samples: source.scanned_samples, ..early }, source);
            (source.scanned_samples.unwrap(), plan.cost_ms(&source))
        };
        // Four scans of each component, of which one is repeated: chroma is half as wide and high.
        let (samples, usual_ms) = scanned(1);
        let own = u64::from(2_000_u32.next_multiple_of(16))
            * u64::from(1_000_u32.next_multiple_of(16))
            / 4;
        let (more, same_ms) = scanned(3);
        assert_eq!((more - samples).abs_diff(2 * own) * 100 / own, 0, "{more} after {samples}");
        assert_eq!(usual_ms, same_ms);
        assert!(scanned(80).1 >= usual_ms + 5);
        // Scans beyond the limit cost no time.
        assert_eq!(scanned(SCANS_MAX).0, 0);
        let baseline = file((200, 100), SamplingFactor::R_4_2_0, Scans::One);
        assert_eq!(read_source_of_start(&baseline), read_source(&baseline).ok());
    }

    #[test]
    fn subsampled_separate_scans_decode_identically() {
        for (sampling, width) in SAMPLINGS.into_iter().flat_map(|it| [203, 120].map(|to| (it, to)))
        {
            let made = |scans| {
                let file = file((203, 117), sampling, scans);
                let (source, plan) = planned(&file, width);
                render(&file, &source, &plan, &|| false).unwrap()
            };
            let pixels = |png: &[u8]| crate::decode::png::decode(png, &|| false).unwrap();
            let (parts, one) = (pixels(&made(Scans::Parts)), pixels(&made(Scans::One)));
            assert_eq!((parts.dimensions(), parts.layout), (one.dimensions(), one.layout));
            let pairs = parts.samples.iter().zip(&one.samples);
            let far = pairs.map(|(a, b)| u64::from(a.abs_diff(*b))).sum::<u64>();
            let far = far as f64 / one.samples.len() as f64;
            assert!(far < 2.0, "{sampling:?} at {width}: {far:.2}");
        }
    }

    #[test]
    fn noninterleaved_scans_decode_identically() {
        for (sides, width) in [((203, 117), 203), ((203, 117), 120), ((64, 64), 64)] {
            let made = |scans| {
                let file = file(sides, SamplingFactor::R_4_4_4, scans);
                let (source, plan) = planned(&file, width);
                assert_eq!(plan.scale(&source), None);
                render(&file, &source, &plan, &|| false).unwrap()
            };
            let pixels = |png: &[u8]| crate::decode::png::decode(png, &|| false).unwrap().samples;
            // The library rounds differently.
            let (parts, one) = (pixels(&made(Scans::Parts)), pixels(&made(Scans::One)));
            let far = parts.iter().zip(&one).map(|(a, b)| a.abs_diff(*b)).max().unwrap();
            assert!(far <= 3 && parts.len() == one.len(), "{far} of {sides:?} at {width}");
        }
    }

    #[test]
    fn cmyk_separate_scans_decode_identically() {
        let file = |colours, sampling, in_parts| {
            let inks = |x: u16, y: u16| [2 * x, 2 * y, x + y, x / 2].map(|ink| ink as u8);
            let rows = (0..60).flat_map(|y| (0..100).flat_map(move |x| inks(x, y)));
            let mut file = Vec::new();
            let mut encoder = Encoder::new(&mut file, 90);
            encoder.set_sampling_factor(sampling);
            encoder.set_optimized_huffman_tables(in_parts);
            encoder.encode(&rows.collect::<Vec<_>>(), 100, 60, colours).unwrap();
            file
        };
        for colours in [ColorType::Cmyk, ColorType::CmykAsYcck] {
            for (width, sampling) in SAMPLINGS.iter().flat_map(|it| [100, 20].map(|to| (to, *it))) {
                let made = |in_parts| {
                    let file = file(colours, sampling, in_parts);
                    let (source, plan) = planned(&file, width);
                    render(&file, &source, &plan, &|| false).unwrap()
                };
                assert!(made(true) == made(false), "{sampling:?} at {width}");
            }
        }
    }
}
