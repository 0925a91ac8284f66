//! Render plan: the output of transform options and a source, exact to the pixel.
//!
//! Pure. Guarantees: options with the same result have the same plan, so a plan identifies a variant; nothing is
//! enlarged; all of [`super::limits`] are checked before a pixel is decoded.

use std::fmt;

use scaled_jpeg::Scale;

use crate::error::{Error, LimitKind};
use crate::format::Format;
use crate::limits::{
    ANIMATION_BYTES_MAX, AVIF_PIXELS_MAX, FRAMES_MAX, FRAMES_PIXELS_MAX, JOB_BYTES_MAX,
    OUTPUT_SIDE_MAX, SCALED_PIXELS_MAX, SOURCE_PIXELS_MAX, SOURCE_SIDE_MAX,
};
use crate::source_info::Source;
use crate::transform::{Fit, OutputFormat, TransformOptions};

/// Encoding time of one million AVIF pixels, in milliseconds.
const AVIF_MS: f64 = if cfg!(feature = "fast-codecs") { 220.0 } else { 300.0 };
/// Size of a frame without its pixels: headers, colours, and in a GIF up to 26 more frames for the duration of one
/// WebP frame.
const FRAME_BYTES: u64 = 4_096;
/// Time of one million additional samples covered by scans, in milliseconds.
const AGAIN_MS: f64 = 0.4;
/// Number of times that the scans of a typical progressive JPEG cover each sample.
const PASSES_USUAL: u64 = 6;

/// Result of planning.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum PlanOutcome {
    /// No change: the stored file satisfies the options.
    Original,
    /// Picture to be rendered.
    Transform(Plan),
}

/// Picture to be rendered.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Plan {
    /// Output format.
    pub format: Format,
    /// Displayed width and height in pixels.
    pub sides: (u32, u32),
    /// Crop in the displayed source: left, top, width, height in pixels; `None` for all of it.
    pub cut: Option<[f64; 4]>,
    /// Output quality.
    pub quality: Quality,
    /// Whether the output is animated.
    pub is_animated: bool,
}

/// Output quality.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quality {
    /// Lossless, within the limits of the format.
    Lossless,
    /// Lossy, 1 to 100.
    Lossy(u8),
    /// Number of colours, for GIF.
    Colours(u16),
}

/// Plans the transformation of a file.
///
/// # Errors
///
/// [`Error::TooLarge`], in which case the stored file is served.
pub fn plan(source: &Source, wish: &TransformOptions) -> Result<PlanOutcome, Error> {
    let named = format_of(source, wish.format);
    let is_bare = (wish.width, wish.height, wish.quality) == (None, None, None);
    if is_bare && named.is_none_or(|named| named == source.format) {
        return Ok(PlanOutcome::Original);
    }
    let format = named.unwrap_or(source.format.retained_output());
    let is_animated = source.is_animated() && format.supports_animation();
    let (sides, cut) = sides_of(source.oriented_size(), wish);
    let quality = quality_of(source, format, wish.quality);
    let plan = Plan { format, sides, cut, quality, is_animated };
    plan.check(source)?;
    Ok(PlanOutcome::Transform(plan))
}

impl Plan {
    /// Returns the minimum size that a decoder must produce, as stored.
    pub(super) fn decode_size_min(&self, source: &Source) -> (u32, u32) {
        let (width, height) = source.oriented_size();
        let [_, _, across, down] =
            self.cut.unwrap_or([0.0, 0.0, f64::from(width), f64::from(height)]);
        let whole = |side: u32, whole: u32, cut: f64| {
            (f64::from(side) * f64::from(whole) / cut).ceil() as u32
        };
        source
            .orientation
            .oriented_size((whole(self.sides.0, width, across), whole(self.sides.1, height, down)))
    }

    /// Returns the scale at which a JPEG is decoded.
    pub(super) fn scale(&self, source: &Source) -> Option<Scale> {
        Scale::for_size(source.sides, self.decode_size_min(source))
            .filter(|_| source.scaled_bytes.is_some())
    }

    /// Returns the maximum memory of the render in bytes, without the file and copies of data other than pixels.
    pub fn memory_bytes(&self, source: &Source) -> u64 {
        // Bytes per pixel: output and memory of the decoder; with possible alpha, the resizer's copy.
        let decoded = match source.format {
            // Canvas, saved areas, current frame.
            _ if self.is_animated => 16 * source.pixels(),
            Format::Jpeg => source.jpeg_bytes(self.scale(source)),
            Format::Gif => 12 * source.pixels(),
            Format::Png | Format::WebP => 8 * source.pixels(),
            Format::Avif => 20 * source.pixels(),
            Format::Bmp | Format::Ico | Format::Pnm | Format::Qoi => {
                source.full_bytes.unwrap_or(8 * source.pixels())
            }
        };
        let made = u64::from(self.sides.0) * u64::from(self.sides.1);
        // Two pictures of the output size, and the memory of the encoder.
        let encoder = match self.format {
            Format::Avif => 48,
            Format::WebP | Format::Gif => 24,
            _ => 8,
        };
        // Previous and next frame.
        let encoder = if self.is_animated { encoder + 12 } else { encoder };
        decoded + made * encoder + self.animation_bytes_max(source)
    }

    /// Returns the maximum size of an animated output: half of its uncompressed pixels, all of them if lossless,
    /// plus the overhead of frames. Zero for a still picture, whose size its pixels determine.
    pub(super) fn animation_bytes_max(&self, source: &Source) -> u64 {
        if !self.is_animated {
            return 0;
        }
        let made = u64::from(self.sides.0) * u64::from(self.sides.1);
        let of_pixel = if self.quality == Quality::Lossless { 4 } else { 2 };
        (u64::from(source.frames) * (made * of_pixel + FRAME_BYTES)).min(ANIMATION_BYTES_MAX)
    }

    /// Estimates the processor time in milliseconds: measured times of each stage per million pixels, and for JPEG
    /// per million samples, of which a photograph has three for two pixels. Scans are counted only for sources with a
    /// [complete cost](Source::has_complete_cost).
    pub fn cost_ms(&self, source: &Source) -> u64 {
        let million = |pixels: u64| pixels as f64 / 1e6;
        let (pixels, samples) = (million(source.pixels()), million(source.samples));
        let read = match (source.format, self.scale(source)) {
            (Format::Jpeg, Some(scale)) if source.is_progressive && scale > Scale::Eighth => {
                3.5 * samples
            }
            (Format::Jpeg, Some(_)) => 1.5 * samples,
            // This crate's decoder does not use SIMD instructions for the inverse transform, unlike the library.
            (Format::Jpeg, None) if source.full_bytes.is_some() => {
                if source.is_progressive {
                    14.0 * samples
                } else {
                    8.0 * samples
                }
            }
            (Format::Jpeg, None) if source.is_progressive => 9.0 * samples,
            (Format::Jpeg, None) => 3.5 * samples,
            (Format::Png | Format::Bmp | Format::Ico, _) => 10.0 * pixels,
            (Format::Pnm | Format::Qoi, _) => 20.0 * pixels,
            (Format::WebP, _) => 16.0 * pixels,
            (Format::Avif, _) => 250.0 * pixels,
            (Format::Gif, _) => 6.0 * pixels,
        };
        let scanned = source.scanned_samples.unwrap_or_default();
        let again = million(scanned.saturating_sub(PASSES_USUAL * source.samples));
        let read = read + AGAIN_MS * again;
        let written = match self.format {
            Format::Jpeg => 10.0,
            Format::Png => 8.0,
            Format::WebP if self.quality == Quality::Lossless => 300.0,
            Format::WebP => 80.0,
            Format::Gif => 45.0,
            Format::Avif => AVIF_MS,
            Format::Bmp | Format::Ico | Format::Pnm | Format::Qoi => 0.0,
        };
        let made = u64::from(self.sides.0) * u64::from(self.sides.1);
        let frames = if self.is_animated { f64::from(source.frames) } else { 1.0 };
        (frames * (read + pixels + million(made) * written)).ceil() as u64
    }

    fn check(&self, source: &Source) -> Result<(), Error> {
        let (width, height) = source.sides;
        if width.max(height) > SOURCE_SIDE_MAX {
            return Err(Error::TooLarge(LimitKind::Side));
        }
        let is_small = self.scale(source).is_some_and(|scale| scale <= Scale::ThreeEighths);
        let pixels_max = if is_small { SCALED_PIXELS_MAX } else { SOURCE_PIXELS_MAX };
        if source.pixels() > pixels_max {
            return Err(Error::TooLarge(LimitKind::Pixels));
        }
        let frames = if self.is_animated { source.frames } else { 1 };
        if frames > FRAMES_MAX
            || source.pixels() * u64::from(frames) > FRAMES_PIXELS_MAX.max(pixels_max)
        {
            return Err(Error::TooLarge(LimitKind::Frames));
        }
        let (width, height) = self.sides;
        let is_large_avif =
            self.format == Format::Avif && u64::from(width) * u64::from(height) > AVIF_PIXELS_MAX;
        if width.max(height) > OUTPUT_SIDE_MAX || is_large_avif {
            return Err(Error::TooLarge(LimitKind::Output));
        }
        if self.memory_bytes(source) > JOB_BYTES_MAX {
            return Err(Error::TooLarge(LimitKind::Memory));
        }
        Ok(())
    }
}

/// Revision of the rendering code: incremented by changes that affect the output of the same plan.
const REVISION: u32 = 4;
/// The feature `fast-codecs` uses another AVIF encoder.
const AVIF_WRITER: &str = if cfg!(feature = "fast-codecs") { "aom" } else { "rav1e" };

impl fmt::Display for Plan {
    /// Formats the name of the variant, of letters, digits, `-` and `.`: unique per plan and revision.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (width, height) = self.sides;
        write!(f, "{width}x{height}")?;
        if let Some(cut) = self.cut {
            write!(f, "-c")?;
            for side in cut {
                write!(f, "{side:.2}x")?;
            }
        }
        match self.quality {
            Quality::Lossless => {}
            Quality::Lossy(quality) => write!(f, "-q{quality}")?,
            Quality::Colours(colours) => write!(f, "-p{colours}")?,
        }
        if self.is_animated {
            write!(f, "-a")?;
        }
        let encoder = if self.format == Format::Avif { AVIF_WRITER } else { "" };
        write!(f, "-r{REVISION}{encoder}.{}", self.format.extension())
    }
}

/// Returns the requested format; `None` for the stored one.
fn format_of(source: &Source, wanted: OutputFormat) -> Option<Format> {
    match wanted {
        OutputFormat::Format(format) => Some(format),
        OutputFormat::Auto { avif: true, .. } if !source.is_animated() => Some(Format::Avif),
        OutputFormat::Auto { webp: true, .. } => Some(Format::WebP),
        OutputFormat::Auto { .. } | OutputFormat::Original => None,
    }
}

/// Returns the quality, with defaults by clients 6.3. The scales of JPEG and WebP agree within a few points. AVIF
/// has its own, that of libvips.
fn quality_of(source: &Source, format: Format, asked: Option<u8>) -> Quality {
    match format {
        Format::Png | Format::Bmp | Format::Ico | Format::Pnm | Format::Qoi => Quality::Lossless,
        Format::WebP if asked == Some(100) && source.is_lossless => Quality::Lossless,
        Format::Jpeg | Format::WebP => Quality::Lossy(asked.unwrap_or(80)),
        Format::Avif => Quality::Lossy(asked.unwrap_or(60)),
        Format::Gif => Quality::Colours(256),
    }
}

/// Returns the output size, and the crop of the source.
fn sides_of(
    (width, height): (u32, u32),
    wish: &TransformOptions,
) -> ((u32, u32), Option<[f64; 4]>) {
    let (whole_width, whole_height) = (f64::from(width), f64::from(height));
    let rounded = |side: f64, most: u32| (side.round() as u32).clamp(1, most.max(1));
    let (box_width, box_height) = match (wish.width, wish.height) {
        (None, None) => return ((width, height), None),
        (Some(w), None) => {
            let w = w.min(width);
            let h = whole_height * f64::from(w) / whole_width;
            return ((w, rounded(h, height)), None);
        }
        (None, Some(h)) => {
            let h = h.min(height);
            let w = whole_width * f64::from(h) / whole_height;
            return ((rounded(w, width), h), None);
        }
        (Some(w), Some(h)) => (f64::from(w), f64::from(h)),
    };
    match wish.fit {
        Fit::Fill => ((rounded(box_width, width), rounded(box_height, height)), None),
        Fit::Contain => {
            let shrink = (box_width / whole_width).min(box_height / whole_height).min(1.0);
            let sides =
                (rounded(whole_width * shrink, width), rounded(whole_height * shrink, height));
            (sides, None)
        }
        Fit::Cover => {
            let shrink = (whole_width / box_width).min(whole_height / box_height).min(1.0);
            let sides = (rounded(box_width * shrink, width), rounded(box_height * shrink, height));
            let (across, down) = (f64::from(sides.0), f64::from(sides.1));
            let zoom = (whole_width / across).min(whole_height / down);
            let (across, down) = (across * zoom, down * zoom);
            let cut = [(whole_width - across) / 2.0, (whole_height - down) / 2.0, across, down];
            let is_cut = across < whole_width || down < whole_height;
            (sides, is_cut.then_some(cut))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::orientation::Orientation;

    /// Creates a source as written by cameras, with subsampled chroma.
    fn source(width: u32, height: u32) -> Source {
        let pixels = u64::from(width) * u64::from(height);
        Source {
            components: 3,
            samples: pixels * 3 / 2,
            scaled_bytes: Some([1, 4, 9, 16].map(|of_64| 4 * pixels * of_64 / 64)),
            ..Source::still(Format::Jpeg, (width, height))
        }
    }

    fn wish(width: Option<u32>, height: Option<u32>, fit: Fit) -> TransformOptions {
        TransformOptions { width, height, fit, ..TransformOptions::default() }
    }

    fn made(source: &Source, wish: &TransformOptions) -> Plan {
        match plan(source, wish).unwrap() {
            PlanOutcome::Transform(plan) => plan,
            PlanOutcome::Original => panic!("nothing to do"),
        }
    }

    #[test]
    fn resize_keeps_aspect_ratio_and_never_enlarges() {
        use Fit::{Contain, Cover, Fill};
        let cases = [
            ((Some(400), None, Contain), (400, 300)),
            ((None, Some(300), Contain), (400, 300)),
            ((Some(401), None, Contain), (401, 301)),
            ((Some(400), Some(400), Contain), (400, 300)),
            ((Some(4_000), Some(100), Contain), (133, 100)),
            ((Some(9_999), None, Contain), (4_000, 3_000)),
            ((Some(9_999), Some(9_999), Contain), (4_000, 3_000)),
            ((Some(1), None, Contain), (1, 1)),
            ((Some(400), Some(400), Cover), (400, 400)),
            ((Some(8_000), Some(8_000), Cover), (3_000, 3_000)),
            ((Some(8_000), Some(4_000), Cover), (4_000, 2_000)),
            ((Some(400), Some(100), Fill), (400, 100)),
            ((Some(9_999), Some(100), Fill), (4_000, 100)),
            ((Some(400), None, Fill), (400, 300)),
        ];
        for ((width, height, fit), sides) in cases {
            let made = made(&source(4_000, 3_000), &wish(width, height, fit));
            assert_eq!(made.sides, sides, "{width:?} {height:?} {fit:?}");
        }
        assert_eq!(made(&source(1, 9_000), &wish(None, Some(3), Fit::Contain)).sides, (1, 3));
    }

    #[test]
    fn orientation_is_applied_before_resizing() {
        let turned = Source { orientation: Orientation::from_exif_tag(6), ..source(4_000, 3_000) };
        let plan = made(&turned, &wish(Some(300), None, Fit::Contain));
        assert_eq!(plan.sides, (300, 400));
        assert_eq!(plan.decode_size_min(&turned), (400, 300));
    }

    #[test]
    fn cover_crops_the_center() {
        let plan = made(&source(4_000, 3_000), &wish(Some(100), Some(100), Fit::Cover));
        assert_eq!(plan.cut, Some([500.0, 0.0, 3_000.0, 3_000.0]));
        assert_eq!(plan.decode_size_min(&source(4_000, 3_000)), (134, 100));
        let plan = made(&source(4_000, 3_000), &wish(Some(400), Some(300), Fit::Cover));
        assert_eq!(plan.cut, None);
    }

    #[test]
    fn matching_source_is_served_unchanged() {
        let stored = source(400, 300);
        let jpeg = TransformOptions {
            format: OutputFormat::Format(Format::Jpeg),
            ..TransformOptions::default()
        };
        assert_eq!(plan(&stored, &jpeg).unwrap(), PlanOutcome::Original);
        let auto = TransformOptions {
            format: OutputFormat::Auto { avif: false, webp: false },
            ..TransformOptions::default()
        };
        assert_eq!(plan(&stored, &auto).unwrap(), PlanOutcome::Original);
        let smaller = TransformOptions { quality: Some(50), ..jpeg };
        assert!(matches!(plan(&stored, &smaller).unwrap(), PlanOutcome::Transform(_)));
        let wide = TransformOptions { width: Some(9_999), ..jpeg };
        assert!(
            matches!(plan(&stored, &wide).unwrap(), PlanOutcome::Transform(_)),
            "metadata is left out"
        );
    }

    #[test]
    fn auto_format_selects_the_best_accepted() {
        let still = source(400, 300);
        let moving = Source { frames: 2, ..Source::still(Format::Gif, (400, 300)) };
        let auto = |avif, webp| TransformOptions {
            format: OutputFormat::Auto { avif, webp },
            width: Some(100),
            ..TransformOptions::default()
        };
        assert_eq!(made(&still, &auto(true, true)).format, Format::Avif);
        assert_eq!(made(&still, &auto(false, true)).format, Format::WebP);
        assert_eq!(made(&still, &auto(false, false)).format, Format::Jpeg);
        assert_eq!(made(&moving, &auto(true, true)).format, Format::WebP);
        assert_eq!(made(&moving, &auto(true, false)).format, Format::Gif);
    }

    #[test]
    fn equivalent_transforms_share_one_cache_key() {
        let name = |wish: TransformOptions| made(&source(1_200, 900), &wish).to_string();
        let wide = wish(Some(1_200), None, Fit::Contain);
        assert_eq!(name(wide), "1200x900-q80-r4.jpg");
        assert_eq!(name(wish(Some(5_000), None, Fit::Contain)), name(wide));
        assert_eq!(name(TransformOptions { quality: Some(80), ..wide }), name(wide));
        assert_eq!(name(TransformOptions { fit: Fit::Fill, ..wide }), name(wide));
        let square = wish(Some(90), Some(90), Fit::Cover);
        assert_eq!(name(square), "90x90-c150.00x0.00x900.00x900.00x-q80-r4.jpg");
        let others = [
            TransformOptions { quality: Some(79), ..wide },
            TransformOptions { width: Some(1_199), ..wide },
            TransformOptions { format: OutputFormat::Format(Format::Png), ..wide },
            wish(Some(90), Some(90), Fit::Contain),
            wish(Some(90), Some(90), Fit::Fill),
            square,
        ];
        let names: std::collections::BTreeSet<String> = others.into_iter().map(name).collect();
        assert_eq!(names.len(), others.len());
        assert!(!names.contains(&name(wide)));
    }

    #[test]
    fn lossless_source_and_format_stay_lossless() {
        let quality = |from: Format, to: Format, asked: Option<u8>| {
            let source = Source { is_lossless: from == Format::Png, ..Source::still(from, (9, 9)) };
            let format = OutputFormat::Format(to);
            made(
                &source,
                &TransformOptions {
                    format,
                    width: Some(3),
                    quality: asked,
                    ..TransformOptions::default()
                },
            )
            .quality
        };
        assert_eq!(quality(Format::Png, Format::WebP, Some(100)), Quality::Lossless);
        assert_eq!(quality(Format::Png, Format::WebP, None), Quality::Lossy(80));
        assert_eq!(quality(Format::Jpeg, Format::WebP, Some(100)), Quality::Lossy(100));
        assert_eq!(quality(Format::Jpeg, Format::Png, Some(10)), Quality::Lossless);
        assert_eq!(quality(Format::Png, Format::Jpeg, None), Quality::Lossy(80));
        assert_eq!(quality(Format::Png, Format::Avif, None), Quality::Lossy(60));
        assert_eq!(quality(Format::Png, Format::Gif, Some(1)), Quality::Colours(256));
    }

    #[test]
    fn formats_without_encoder_become_png() {
        for format in [Format::Bmp, Format::Ico, Format::Pnm, Format::Qoi] {
            let source = Source::still(format, (90, 60));
            let made_of = |wish: TransformOptions| match plan(&source, &wish).unwrap() {
                PlanOutcome::Transform(plan) => Some(plan.format),
                PlanOutcome::Original => None,
            };
            assert_eq!(made_of(TransformOptions::default()), None);
            assert_eq!(made_of(wish(Some(9), None, Fit::Contain)), Some(Format::Png));
            let auto = |avif, webp| TransformOptions {
                format: OutputFormat::Auto { avif, webp },
                ..TransformOptions::default()
            };
            assert_eq!(made_of(auto(false, false)), None);
            assert_eq!(made_of(auto(false, true)), Some(Format::WebP));
            let jpeg = TransformOptions {
                format: OutputFormat::Format(Format::Jpeg),
                ..TransformOptions::default()
            };
            assert_eq!(made_of(jpeg), Some(Format::Jpeg));
        }
    }

    #[test]
    fn images_over_a_limit_are_served_unchanged() {
        let bound = |source: Source, wish: TransformOptions| match plan(&source, &wish) {
            Err(Error::TooLarge(bound)) => Some(bound),
            _ => None,
        };
        let thumb = wish(Some(400), None, Fit::Contain);
        let large = wish(Some(9_000), None, Fit::Contain);
        let jpeg = |width, height| source(width, height);
        assert_eq!(bound(jpeg(10_000, 10_000), thumb), None);
        assert_eq!(bound(jpeg(10_001, 10_000), thumb), Some(LimitKind::Pixels));
        assert_eq!(bound(jpeg(7_072, 7_072), large), Some(LimitKind::Pixels));
        assert_eq!(bound(jpeg(16_385, 10), thumb), Some(LimitKind::Side));
        assert_eq!(bound(jpeg(9_000, 100), large), Some(LimitKind::Output));
        let png = Source::still(Format::Png, (7_000, 7_000));
        assert_eq!(bound(png, thumb), Some(LimitKind::Memory));
        assert_eq!(bound(Source::still(Format::Png, (5_000, 5_000)), thumb), None);
        let gif = |frames| Source { frames, ..Source::still(Format::Gif, (400, 400)) };
        assert_eq!(bound(gif(256), thumb), None);
        assert_eq!(bound(gif(257), thumb), Some(LimitKind::Frames));
        let still = TransformOptions {
            format: OutputFormat::Format(Format::Png),
            ..TransformOptions::default()
        };
        assert_eq!(bound(gif(257), still), None, "one picture of it is made");
        let avif = TransformOptions {
            format: OutputFormat::Format(Format::Avif),
            ..TransformOptions::default()
        };
        assert_eq!(bound(jpeg(2_000, 2_000), avif), None);
        assert_eq!(bound(jpeg(2_001, 2_000), avif), Some(LimitKind::Output));
    }
}
