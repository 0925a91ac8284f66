//! Rendered pictures compared with those that libvips makes of the same file: as similar to the original, in no more
//! bytes.
//!
//! The original is the file decoded in full by `image`, or the source of the file, scaled down by Lanczos in floating
//! point. Both pictures are read by libvips, which also checks that third-party decoders read the output. Similarity is
//! measured by SSIMULACRA2. Each test states how much lower the similarity may be and how many bytes the output may
//! have relative to libvips; `-- --nocapture` prints the results. The last test shows that a visible fault is detected.

use std::fs;
use std::path::{Path, PathBuf};

use image::imageops::FilterType;
use image::{DynamicImage, Rgb, RgbImage, Rgba, RgbaImage};
use images::{Format, OutputFormat, PlanOutcome, TransformOptions, plan, read_source, render};
use tempfile::TempDir;
use tests::pictures::{
    PHOTOGRAPHS, SCREENSHOTS, WEBP, fetched, likeness, seen_by_vips, vips, vips_thumbnail,
};

/// A file, and its decoded picture.
struct Original {
    file: PathBuf,
    seen: RgbaImage,
    /// Additional options for libvips.
    more: &'static [&'static str],
}

/// Transform of the file.
#[derive(Clone, Copy)]
struct Task {
    width: u32,
    format: Format,
    quality: Option<u8>,
    /// Options of libvips' encoder, in brackets.
    options: &'static str,
    /// Points by which the similarity to the original may be lower.
    margin: f64,
    /// Ratio of the output's bytes to those of libvips.
    bytes: f64,
}

const WEBP_400: Task = Task {
    width: 400,
    format: Format::WebP,
    quality: None,
    options: "[Q=80,strip]",
    margin: 1.0,
    bytes: 1.05,
};

impl Original {
    /// Creates an original whose file is complete by itself: sRGB, upright.
    fn plain(file: PathBuf) -> Self {
        let seen = image::open(&file).unwrap().to_rgba8();
        Self { file, seen, more: &[] }
    }

    fn photograph(name: &str) -> Self {
        Self::plain(fetched(&format!("{PHOTOGRAPHS}/{name}")))
    }

    /// Returns the picture scaled down on a background.
    fn shrunk(&self, (width, height): (u32, u32), ground: u8) -> RgbImage {
        let seen = DynamicImage::from(on_ground(&self.seen, ground));
        seen.resize_exact(width, height, FilterType::Lanczos3).into_rgb8()
    }

    fn grounds(&self) -> &'static [u8] {
        if is_opaque(&self.seen) { &[0] } else { &[0, 128, 255] }
    }

    /// Renders the picture with both and compares.
    fn compare(&self, task: &Task) {
        let folder = TempDir::new().unwrap();
        let in_folder =
            |name: &str| folder.path().join(format!("{name}.{}", task.format.extension()));
        let (ours, theirs) = (in_folder("ours"), in_folder("theirs"));
        fs::write(&ours, self.made(task)).unwrap();
        let asked = format!("{}{}", theirs.display(), task.options);
        vips_thumbnail(&self.file, task.width, &asked, self.more);
        let bytes = [&ours, &theirs].map(|file| fs::metadata(file).unwrap().len());
        let [ours, theirs] = [ours, theirs].map(|file| seen_by_vips(&file, folder.path()));
        assert_eq!(ours.dimensions(), theirs.dimensions());
        for ground in self.grounds() {
            let original = self.shrunk(ours.dimensions(), *ground);
            let [ours, theirs] =
                [&ours, &theirs].map(|picture| likeness(&original, &on_ground(picture, *ground)));
            let found = format!(
                "{:34} {:4} {:4}: {ours:5.1} and {theirs:5.1}, {:6} and {:6} bytes",
                self.file.file_name().unwrap().display(),
                task.format.extension(),
                task.width,
                bytes[0],
                bytes[1],
            );
            println!("{found}");
            assert!(ours >= theirs - task.margin, "less like: {found}");
            assert!(bytes[0] as f64 <= bytes[1] as f64 * task.bytes, "more bytes: {found}");
        }
    }

    fn made(&self, task: &Task) -> Vec<u8> {
        let file = fs::read(&self.file).unwrap();
        let wish = TransformOptions {
            format: OutputFormat::Format(task.format),
            width: Some(task.width),
            quality: task.quality,
            ..TransformOptions::default()
        };
        let source = read_source(Format::detect(&file).unwrap(), &file).unwrap();
        let PlanOutcome::Transform(plan) = plan(&source, &wish).unwrap() else {
            panic!("it is as wanted")
        };
        render(&file, &source, &plan, &|| false).unwrap()
    }
}

fn is_opaque(picture: &RgbaImage) -> bool {
    picture.as_raw().iter().skip(3).step_by(4).all(|alpha| *alpha == u8::MAX)
}

/// Methods of `DynamicImage`, unlike functions on generic images, are compiled with optimizations.
fn on_ground(picture: &RgbaImage, ground: u8) -> RgbImage {
    if is_opaque(picture) {
        return DynamicImage::from(picture.clone()).into_rgb8();
    }
    RgbImage::from_fn(picture.width(), picture.height(), |x, y| {
        let Rgba([red, green, blue, alpha]) = *picture.get_pixel(x, y);
        Rgb([red, green, blue].map(|value| {
            let alpha = u32::from(alpha);
            let sum = u32::from(value) * alpha + u32::from(ground) * (255 - alpha);
            ((sum + 127) / 255) as u8
        }))
    })
}

/// Converts a photograph: an operation of libvips, the output with options, more arguments.
fn converted(folder: &Path, name: &str, operation: &[&str], made: &str, more: &[&str]) -> PathBuf {
    let photograph = fetched(&format!("{PHOTOGRAPHS}/{name}"));
    let made_path = folder.join(made);
    let (photograph, to) = (photograph.to_str().unwrap(), made_path.to_str().unwrap());
    vips(&[operation, &[photograph, to], more].concat());
    folder.join(made.split('[').next().unwrap())
}

#[test]
fn photo_to_small_webp_meets_quality() {
    for name in [
        // Progressive 4:2:0, 13, 12 and 16 megapixels; the second is smooth.
        "Dragonfly_by_Bolly.jpg",
        "sunset_by_Aitzol_Berasategi.jpg",
        "seeding_by_Clements_Engelhardt.jpg",
        // Baseline 4:2:0 and 4:4:4.
        "analogpattern_by_Peter_Nerlich.jpg",
        "free_by_Peter_Nerlich.jpg",
        // Progressive 4:4:4, small.
        "Picture_1A_by_freespace.jpg",
    ] {
        Original::photograph(name).compare(&WEBP_400);
    }
}

#[test]
fn photo_to_large_jpeg_meets_quality() {
    let task = Task {
        width: 1_200,
        format: Format::Jpeg,
        quality: Some(80),
        options: "[Q=80,optimize-coding,strip]",
        margin: 1.0,
        bytes: 1.05,
    };
    for name in ["Dragonfly_by_Bolly.jpg", "analogpattern_by_Peter_Nerlich.jpg"] {
        Original::photograph(name).compare(&task);
    }
}

#[test]
fn photo_to_png_meets_quality() {
    let task = Task { format: Format::Png, quality: None, options: "[strip]", ..WEBP_400 };
    Original::photograph("picosdeeuropa_by_Aitzol_Berasategi.jpg").compare(&task);
}

#[test]
fn photo_to_gif_meets_quality() {
    let task =
        Task { format: Format::Gif, quality: None, options: "[strip]", bytes: 1.15, ..WEBP_400 };
    Original::photograph("Picture_1A_by_freespace.jpg").compare(&task);
}

#[test]
fn photo_to_small_avif_meets_quality() {
    let task = Task {
        width: 256,
        format: Format::Avif,
        quality: Some(60),
        options: "[Q=60,strip]",
        margin: 2.0,
        bytes: 1.35,
    };
    for name in ["Dragonfly_by_Bolly.jpg", "picosdeeuropa_by_Aitzol_Berasategi.jpg"] {
        Original::photograph(name).compare(&task);
    }
}

#[test]
fn screenshot_to_webp_meets_quality() {
    for name in ["dlgedit2.png", "pathfinder.png"] {
        let file = fetched(&format!("{SCREENSHOTS}/{name}"));
        Original::plain(file).compare(&Task { width: 256, ..WEBP_400 });
    }
}

#[test]
fn alpha_image_meets_quality_on_any_background() {
    let file = fetched(&format!("{WEBP}/tux.png"));
    let webp = Task { width: 150, ..WEBP_400 };
    Original::plain(file.clone()).compare(&webp);
    let png = Task { format: Format::Png, options: "[strip]", bytes: 1.25, ..webp };
    Original::plain(file).compare(&png);
}

#[test]
fn photo_from_other_formats_meets_quality() {
    let folder = TempDir::new().unwrap();
    for made in ["large.webp[Q=90]", "large.avif[Q=80]", "large.png"] {
        let size = ["thumbnail"];
        let file = converted(folder.path(), "Picture_1A_by_freespace.jpg", &size, made, &["1000"]);
        let seen = seen_by_vips(&file, folder.path());
        Original { file, seen, more: &[] }.compare(&WEBP_400);
    }
}

#[test]
fn photo_with_exif_orientation_meets_quality() {
    let folder = TempDir::new().unwrap();
    let name = "Dragonfly_by_Bolly.jpg";
    let upright = Original::photograph(name);
    let plain = fs::read(&upright.file).unwrap();
    // Rotated by a quarter, clockwise, when displayed: TIFF 6.0, tag 274.
    let tag = b"Exif\0\0II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0\x06\0\0\0\0\0\0\0";
    let head = [0xff, 0xd8, 0xff, 0xe1, 0, tag.len() as u8 + 2];
    let file = folder.path().join("turned.jpg");
    fs::write(&file, [&head[..], tag, &plain[2..]].concat()).unwrap();
    let seen = DynamicImage::from(upright.seen.clone()).rotate90().into_rgba8();
    Original { file, seen, more: &[] }.compare(&Task { width: 300, ..WEBP_400 });
}

/// The picture was sRGB before it was given another profile, so the expected result is known.
#[test]
fn photo_in_other_colour_space_meets_quality() {
    let folder = TempDir::new().unwrap();
    let name = "Picture_1A_by_freespace.jpg";
    let seen = Original::photograph(name).seen;
    for made in ["wide.jpg[Q=95]", "wide.png"] {
        let transform = ["icc_transform", "--input-profile", "srgb"];
        let file = converted(folder.path(), name, &transform, made, &["p3"]);
        let more = &["--export-profile", "srgb"];
        Original { file, seen: seen.clone(), more }.compare(&WEBP_400);
    }
}

/// Colours outside the gamut of inks are lost, for both.
#[test]
fn photo_in_cmyk_meets_quality() {
    let folder = TempDir::new().unwrap();
    let name = "Picture_1A_by_freespace.jpg";
    let seen = Original::photograph(name).seen;
    let transform = ["icc_transform", "--input-profile", "srgb"];
    let file = converted(folder.path(), name, &transform, "inks.jpg[Q=95]", &["cmyk"]);
    Original { file, seen, more: &["--export-profile", "srgb"] }.compare(&WEBP_400);
}

#[test]
fn quality_check_detects_visible_defects() {
    let original = Original::photograph("Dragonfly_by_Bolly.jpg");
    let folder = TempDir::new().unwrap();
    let theirs = folder.path().join("theirs.webp");
    let asked = format!("{}{}", theirs.display(), WEBP_400.options);
    vips_thumbnail(&original.file, 400, &asked, original.more);
    let theirs = on_ground(&seen_by_vips(&theirs, folder.path()), 0);
    let shrunk = original.shrunk(theirs.dimensions(), 0);
    let least = likeness(&shrunk, &theirs) - WEBP_400.margin;
    let seen = DynamicImage::from(on_ground(&original.seen, 0));
    let (width, height) = shrunk.dimensions();
    let resized =
        |seen: &DynamicImage, filter| seen.resize_exact(width, height, filter).into_rgb8();
    let lower = original.made(&Task { quality: Some(70), ..WEBP_400 });
    let lower = image::load_from_memory(&lower).unwrap().to_rgb8();
    // Shifted by half a pixel of the small picture.
    let shifted = seen.crop_imm(5, 0, seen.width() - 5, seen.height());
    let whole = DynamicImage::from(shrunk.clone());
    for (fault, picture) in [
        ("less quality", lower),
        ("nothing averaged", resized(&seen, FilterType::Nearest)),
        ("blurred", whole.blur(0.8).into_rgb8()),
        ("shifted", resized(&shifted, FilterType::Lanczos3)),
        ("too dark", whole.brighten(-8).into_rgb8()),
    ] {
        let found = likeness(&shrunk, &picture);
        println!("{fault}: {found:.1}, where {least:.1} is wanted");
        assert!(found < least, "{fault}: {found:.1} is enough for {least:.1}");
    }
}
