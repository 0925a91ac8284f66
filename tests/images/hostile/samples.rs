//! Third-party files: valid ones of many kinds, damaged ones, and valid ones that are damaged here.

use std::fs;
use std::path::{Path, PathBuf};

use image::{DynamicImage, ImageFormat};
use images::{Format, OutputFormat, PlanOutcome, TransformOptions, plan, read_source, render};
use tempfile::TempDir;
use tests::pictures::{
    MIXED, PHOTOGRAPHS, PNG_SUITE, SCREENSHOTS, WEBP, all_fetched, fetched, vips,
};

use super::child::{ChildReport, Files, Outcome, render_apart, to};

/// Memory limit of a process for pictures of less than half a million pixels, whatever their damage.
const BYTES_MAX: u64 = 64 << 20;

/// Every valid PNG and lossless WebP: lossless WebP rendered from it equals what `image` decodes, which ignores gamma.
#[test]
fn lossless_formats_are_decoded_exactly() {
    let mut count = 0;
    for path in [all_fetched(PNG_SUITE), all_fetched(WEBP)].concat() {
        let is_broken = path.to_string_lossy().contains("corrupted");
        let file = fs::read(&path).unwrap();
        let Some(format @ (Format::Png | Format::WebP)) = Format::detect(&file) else { continue };
        if is_broken {
            continue;
        }
        let file = if format == Format::Png { without_gamma(&file) } else { file };
        let source = read_source(format, &file).unwrap();
        if !source.is_lossless {
            continue;
        }
        let wish = match format {
            Format::Png => TransformOptions { quality: Some(100), ..to(Format::WebP, None) },
            _ => to(Format::Png, None),
        };
        let PlanOutcome::Transform(plan) = plan(&source, &wish).unwrap() else { panic!("a plan") };
        let made = render(&file, &source, &plan, &|| false).unwrap();
        let (made, seen) = (image::load_from_memory(&made).unwrap(), shown(&file, format));
        assert!(is_same(&made, &seen), "{}", path.display());
        count += 1;
    }
    assert!(count > 150, "{count} files");
}

/// Returns a valid PNG without the chunks that define the meaning of its samples.
fn without_gamma(file: &[u8]) -> Vec<u8> {
    let (mut plain, mut rest) = (file[..8].to_vec(), &file[8..]);
    while let Some(length) = rest.first_chunk() {
        let (chunk, behind) = rest.split_at(u32::from_be_bytes(*length) as usize + 12);
        if !matches!(&chunk[4..8], b"gAMA" | b"cHRM" | b"cICP") {
            plain.extend_from_slice(chunk);
        }
        rest = behind;
    }
    plain
}

fn shown(file: &[u8], format: Format) -> DynamicImage {
    let format = if format == Format::Png { ImageFormat::Png } else { ImageFormat::WebP };
    image::load_from_memory_with_format(file, format).unwrap()
}

/// Whether two pictures are equal except for the rounding of sixteen bits to eight, and for transparent pixels.
fn is_same(one: &DynamicImage, other: &DynamicImage) -> bool {
    let (one, other) = (one.to_rgba8(), other.to_rgba8());
    let near = |(a, b): (&u8, &u8)| a.abs_diff(*b) <= 1;
    one.dimensions() == other.dimensions()
        && one.pixels().zip(other.pixels()).all(|(one, other)| {
            (one[3] == 0 && other[3] == 0) || one.0.iter().zip(&other.0).all(near)
        })
}

#[test]
fn corrupt_png_suite_files_are_rejected() {
    let broken = all_fetched(&format!("{PNG_SUITE}/corrupted"));
    assert!(broken.len() > 10, "{broken:?}");
    for path in broken {
        let report = render_apart(&path, Files::Itself, &to(Format::WebP, Some(16)));
        // The only fault of one is a checksum after its last pixel.
        let expected =
            if path.ends_with("xcsn0g01.png") { Outcome::Rendered } else { Outcome::Corrupt };
        assert_eq!(report.outcomes, [expected], "{}", path.display());
    }
}

#[test]
fn foreign_sample_files_are_encoded_to_every_format() {
    let avif = [format!("{MIXED}/avif.avif"), format!("{MIXED}/avifsequence.avif")];
    let mixed = [format!("{MIXED}/apng.png"), format!("{MIXED}/jpg.jpg")];
    let mut files: Vec<PathBuf> = avif.iter().chain(&mixed).map(|path| fetched(path)).collect();
    files.extend(all_fetched(WEBP));
    files.extend(all_fetched(SCREENSHOTS));
    for path in files.iter().filter(|path| Format::detect(&fs::read(path).unwrap()).is_some()) {
        let file = fs::read(path).unwrap();
        let source = read_source(Format::detect(&file).unwrap(), &file).unwrap();
        for format in [Format::Jpeg, Format::WebP, Format::Gif] {
            let wish = TransformOptions {
                format: OutputFormat::Format(format),
                width: Some(40),
                ..TransformOptions::default()
            };
            let PlanOutcome::Transform(plan) = plan(&source, &wish).unwrap() else { continue };
            let made = render(&file, &source, &plan, &|| false);
            assert!(made.is_ok(), "{} as {format:?}: {:?}", path.display(), made.err());
        }
    }
}

/// Returns files of each format, still and animated, written by libvips: 40 pixels wide so many times, and 30 high.
fn written_by_vips(folder: &Path, times: u32) -> Vec<PathBuf> {
    let photograph = fetched(&format!("{PHOTOGRAPHS}/Picture_1A_by_freespace.jpg"));
    let small = folder.join("small.v");
    let [from, to] = [&photograph, &small].map(|path| path.to_str().unwrap());
    let [width, height] = [40 * times, 30 * times].map(|side| side.to_string());
    // An animation of ten strips.
    let film = format!("[page-height={}]", 3 * times);
    vips(&["thumbnail", from, to, &width, "--height", &height, "--size", "force"]);
    let made = [
        "baseline.jpg[Q=85,optimize-coding]",
        "progressive.jpg[Q=85,interlace]",
        "restarts.jpg[Q=85,restart-interval=4]",
        "plain.png[compression=9]",
        "interlaced.png[interlace]",
        "palette.png[palette]",
        "lossy.webp[Q=85]",
        "lossless.webp[lossless]",
        "still.gif",
        "still.avif[Q=60,effort=0]",
        &format!("film.gif{film}"),
        &format!("film.webp{film}"),
        "pixels.ppm",
    ];
    for made in made {
        vips(&["copy", to, folder.join(made).to_str().unwrap()]);
    }
    let mut files = made.map(|made| folder.join(made.split('[').next().unwrap())).to_vec();
    // libvips does not write these without other libraries.
    let plain = image::open(folder.join("plain.png")).unwrap();
    for name in ["pixels.bmp", "pixels.ico"] {
        let is_icon = name.ends_with("ico");
        let picture = if is_icon { plain.thumbnail(256, 256) } else { plain.clone() };
        picture.save(folder.join(name)).unwrap();
        files.push(folder.join(name));
    }
    files
}

/// Prints the outcomes of a file, and returns the number of rendered pictures.
fn said(path: &Path, report: &ChildReport) -> usize {
    let made = report.outcomes.iter().filter(|outcome| **outcome == Outcome::Rendered).count();
    let (all, peak_kib) = (report.outcomes.len(), report.peak_bytes >> 10);
    println!("{}: {made} of {all}, {peak_kib} KiB", path.display());
    made
}

#[test]
fn truncated_files_are_handled_safely() {
    let folder = TempDir::new().unwrap();
    for path in written_by_vips(folder.path(), 8) {
        let report = render_apart(&path, Files::Cut, &to(Format::WebP, Some(160)));
        said(&path, &report);
        assert!(report.outcomes.contains(&Outcome::Corrupt), "{}: an empty file", path.display());
        assert!(report.peak_bytes < BYTES_MAX, "{}: {}", path.display(), report.peak_bytes);
    }
}

#[test]
fn files_with_mutated_header_bytes_are_handled_safely() {
    let folder = TempDir::new().unwrap();
    for path in written_by_vips(folder.path(), 3) {
        let report = render_apart(&path, Files::Changed, &to(Format::Jpeg, Some(32)));
        let made = said(&path, &report);
        assert!(made > 0, "{}", path.display());
        let bound = report.planned_bytes.max(BYTES_MAX);
        assert!(report.peak_bytes < bound, "{}: {}", path.display(), report.peak_bytes);
    }
}
