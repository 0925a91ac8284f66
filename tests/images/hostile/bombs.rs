//! Decompression bombs: small files of huge pictures, of endless ones, and of large non-image data.

use std::fs;

use fuzz::synthetic_photo::{Encoding, SamplingFactor, SyntheticPhoto, Tables};
use images::{Format, TransformOptions};
use tempfile::TempDir;

use super::child::{Files, Outcome, render_apart, to};
use super::{avif, gif, jpeg, png, rare, webp};

/// Memory of a process apart from the pixels: code pages loaded on demand, tables, the output picture.
const OTHER_BYTES_MAX: u64 = 12 << 20;
/// Maximum copies of the non-image data of a file.
const COPIES_MAX: u64 = 2;

const SMALL: Option<u32> = Some(64);

/// Renders files in separate processes: each has the expected outcome, and takes no more memory than planned for it, or
/// next to none where nothing was planned.
fn check<'a>(
    format: Format,
    bombs: impl IntoIterator<Item = (&'a str, Vec<u8>, &'a TransformOptions, Outcome)>,
) {
    let folder = TempDir::new().unwrap();
    let mut complaints = Vec::new();
    for (name, file, wish, expected) in bombs {
        let path = folder.path().join(format!("{name}.{}", format.extension()));
        fs::write(&path, &file).unwrap();
        let report = render_apart(&path, Files::Itself, wish);
        let [outcome] = &report.outcomes[..] else { panic!("{name}: {report:?}") };
        let (peak, planned) = (report.peak_bytes >> 10, report.planned_bytes >> 10);
        let (length, whys) = (file.len(), &report.whys);
        let found =
            format!("{name}: {length} bytes, {outcome:?} {whys:?}, {peak} KiB of {planned}");
        let copies = COPIES_MAX * length as u64;
        if *outcome != expected
            || report.peak_bytes > report.planned_bytes + copies + OTHER_BYTES_MAX
        {
            complaints.push(found.clone());
        }
        println!("{found}");
    }
    assert!(complaints.is_empty(), "\n{}\n", complaints.join("\n"));
}

fn large(bound: &str) -> Outcome {
    Outcome::Large(bound.to_owned())
}

use Outcome::{Corrupt, Rendered};

#[test]
fn png_bombs() {
    const GREY: [u8; 3] = [8, 0, 0];
    const RGBA_16: [u8; 3] = [16, 6, 0];
    let packed = super::bits::zlib_of_zeros(256 << 20);
    let named = |name: &[u8; 4], head: &[u8]| vec![png::chunk(name, &[head, &packed].concat())];
    let small = (100, 100);
    let webp = to(Format::WebP, SMALL);
    let bombs = [
        ("sides", png::file((i32::MAX as u32, i32::MAX as u32), GREY, &[], 9), large("memory")),
        ("side", png::file((30_000, 30_000), GREY, &[], 9), large("side")),
        ("pixels", png::file((16_384, 16_384), GREY, &[], 9), large("pixels")),
        ("memory", png::file((7_000, 7_000), GREY, &[], 9), large("memory")),
        ("no rows", png::file((6_000, 6_000), RGBA_16, &[], 9), Corrupt),
        ("clear", png::file((4_000, 4_000), RGBA_16, &[], 8 * 4_000 * 4_000 + 4_000), Rendered),
        ("rows", png::file((4_000, 4_000), [16, 6, 1], &[], 8 * 4_000 * 4_000 + 9_000), Rendered),
        ("bits", png::file((6_000, 6_000), [1, 0, 0], &[], 751 * 6_000), Rendered),
        ("too many rows", png::file(small, GREY, &[], 256 << 20), Rendered),
        ("profile", png::file(small, GREY, &named(b"iCCP", b"p\0\0"), 10_100), Rendered),
        ("text", png::file(small, GREY, &named(b"zTXt", b"t\0\0"), 10_100), Rendered),
        ("words", png::file(small, GREY, &named(b"iTXt", b"t\0\x01\0\0\0"), 10_100), Rendered),
        (
            "exif",
            png::file(small, GREY, &[png::chunk(b"eXIf", &vec![b'I'; 20 << 20])], 10_100),
            large("memory"),
        ),
        (
            "chunks",
            png::file(small, GREY, &vec![png::chunk(b"teXt", b""); 200_000], 10_100),
            Rendered,
        ),
        (
            "frames",
            png::file(
                small,
                GREY,
                &[png::chunk(b"acTL", &[0x7f, 0xff, 0xff, 0xff, 0, 0, 0, 0])],
                10_100,
            ),
            Rendered,
        ),
    ];
    check(Format::Png, bombs.map(|(name, file, expected)| (name, file, &webp, expected)));
}

#[test]
fn gif_bombs() {
    let (webp, still) = (to(Format::WebP, SMALL), to(Format::Png, SMALL));
    let dot = |removed| gif::frame([0, 0, 1, 1], removed, 1);
    let long = [&[0x21, 0xfe][..], &gif::blocks(&vec![b'c'; 20 << 20])].concat();
    let all = |side: u16| gif::frame([0, 0, side, side], 0, usize::from(side).pow(2));
    let bombs = [
        ("sides", gif::file((65_535, 65_535), &[dot(0)]), &webp, large("side")),
        ("pixels", gif::file((16_384, 16_384), &[dot(0)]), &webp, large("pixels")),
        ("a canvas", gif::file((5_000, 5_000), &[dot(0)]), &webp, Rendered),
        ("canvases", gif::file((4_000, 4_000), &vec![dot(3); 3]), &webp, Rendered),
        ("full canvases", gif::file((2_000, 2_000), &vec![all(2_000); 12]), &webp, Rendered),
        (
            "canvases of 256",
            gif::file((2_000, 2_000), &vec![all(2_000); 13]),
            &webp,
            large("frames"),
        ),
        ("one of them", gif::file((2_000, 2_000), &vec![all(2_000); 13]), &still, Rendered),
        ("frames", gif::file((1, 1), &vec![dot(2); 257]), &webp, large("frames")),
        ("a hundred thousand frames", gif::file((9, 9), &vec![dot(2); 100_000]), &still, Rendered),
        (
            "a huge frame",
            gif::file((9, 9), &[gif::frame([0, 0, 65_535, 65_535], 0, 9)]),
            &webp,
            large("side"),
        ),
        (
            "a huge later frame",
            gif::file((9, 9), &[dot(0), gif::frame([0, 0, 65_535, 65_535], 0, 9)]),
            &webp,
            Rendered,
        ),
        (
            "a frame elsewhere",
            gif::file((9, 9), &[dot(0), gif::frame([65_000, 65_000, 500, 500], 3, 250_000)]),
            &webp,
            Rendered,
        ),
        (
            "too many pixels",
            gif::file((9, 9), &[gif::frame([0, 0, 9, 9], 0, 64 << 20)]),
            &webp,
            Rendered,
        ),
        ("a long comment", gif::file((9, 9), &[long, dot(0)]), &webp, Rendered),
    ];
    check(Format::Gif, bombs);
}

/// A small animation that is large when rendered: noise that returns after each black frame.
#[test]
fn animation_frames_are_buffered_once_during_render() {
    const SIDE: u16 = 1_000;
    let all = [0, 0, SIDE, SIDE];
    let black = gif::frame(all, 3, usize::from(SIDE).pow(2));
    let noise_again = gif::frame([0, 0, 1, 1], 1, 1);
    let pairs = [black, noise_again].concat();
    let film = gif::file((SIDE, SIDE), &[vec![gif::noise(all)], vec![pairs; 24]].concat());
    check(Format::Gif, [("noise", film, &to(Format::WebP, None), Rendered)]);
}

#[test]
fn webp_bombs() {
    let (png, gif) = (to(Format::Png, SMALL), to(Format::Gif, SMALL));
    let moving = |side: u32, frames: Vec<Vec<u8>>| {
        webp::file(&[vec![webp::extended(webp::MOVES, side, side), webp::plays()], frames].concat())
    };
    let frame = |side: u32| webp::frame([0, 0, side, side], &webp::lossless(side, side));
    let lying = {
        let mut file = webp::file(&[webp::lossless(9, 9)]);
        file[4..8].copy_from_slice(&u32::MAX.to_le_bytes());
        file
    };
    let extended = |flags, side, chunks: Vec<Vec<u8>>| {
        webp::file(&[vec![webp::extended(flags, side, side)], chunks].concat())
    };
    let (dot, nothing) = (webp::lossless(9, 9), webp::chunk(b"none", b""));
    let large_chunk = |name| webp::chunk(name, &vec![b'I'; 20 << 20]);
    let bombs = [
        ("pixels", webp::file(&[webp::lossless(16_383, 16_383)]), &png, large("pixels")),
        ("memory", webp::file(&[webp::lossless(7_000, 7_000)]), &png, large("memory")),
        ("one colour", webp::file(&[webp::lossless(6_000, 6_000)]), &png, Rendered),
        ("lossy pixels", webp::file(&[webp::lossy_head(16_383, 16_383)]), &png, large("pixels")),
        ("lossy", webp::file(&[webp::lossy_head(6_000, 6_000)]), &png, Corrupt),
        ("another canvas", extended(0, 16_384, vec![dot.clone()]), &png, Corrupt),
        (
            "profile",
            extended(webp::HAS_PROFILE, 9, vec![large_chunk(b"ICCP"), dot.clone()]),
            &png,
            Rendered,
        ),
        (
            "exif",
            extended(webp::HAS_EXIF, 9, vec![dot.clone(), large_chunk(b"EXIF")]),
            &png,
            Rendered,
        ),
        ("chunks", extended(0, 9, [vec![nothing; 500_000], vec![dot]].concat()), &png, Rendered),
        ("length", lying, &png, Rendered),
        ("a canvas", moving(1 << 24, vec![frame(1); 2]), &gif, large("side")),
        ("canvases", moving(4_000, vec![frame(4_000); 3]), &gif, Rendered),
        ("frames", moving(1, vec![frame(1); 257]), &gif, large("frames")),
        ("a hundred thousand frames", moving(1, vec![frame(1); 100_000]), &png, Rendered),
        ("a huge frame", moving(9, vec![frame(16_384); 2]), &gif, Corrupt),
    ];
    check(Format::WebP, bombs);
}

#[test]
fn jpeg_bombs() {
    let webp = to(Format::WebP, SMALL);
    let (plain, progressive) = (jpeg::small(None), jpeg::small(Some(4)));
    let with_sides = |width, height| jpeg::with_sides(&plain, width, height);
    let coded_as = |marker: u8| {
        let mut file = plain.clone();
        file[jpeg::frame_at(&plain) + 1] = marker;
        file
    };
    let sampled = |first: u8| {
        let mut file = plain.clone();
        file[jpeg::frame_at(&plain) + 11] = first;
        file
    };
    let profile: Vec<Vec<u8>> = (1..=255)
        .map(|part| [&b"ICC_PROFILE\0"[..], &[part, 255], &vec![7; 65_000]].concat())
        .collect();
    // An Exif directory with the maximum number of entries, whose next directory is itself.
    let exif = [&b"Exif\0\0II*\0\x08\0\0\0\xff\xff"[..], &vec![8; 60_000]].concat();
    let long = vec![vec![b'c'; 65_000]; 300];
    let bombs = [
        ("sides", with_sides(65_535, 65_535), large("side")),
        ("pixels", with_sides(16_384, 16_384), large("pixels")),
        ("a hundred million pixels", with_sides(10_000, 10_000), Rendered),
        ("a column", with_sides(1, 16_384), large("output")),
        ("no height", with_sides(96, 0), Corrupt),
        ("progressive", jpeg::with_sides(&progressive, 10_000, 10_000), Rendered),
        ("a thousand scans", jpeg::with_scans(&progressive, 1_000), large("pixels")),
        (
            "large scans",
            jpeg::with_sides(&jpeg::with_scans(&progressive, 80), 8_000, 8_000),
            Rendered,
        ),
        ("profile", jpeg::with_segments(&plain, 0xe2, &profile), Rendered),
        ("exif", jpeg::with_segments(&plain, 0xe1, &vec![exif; 100]), Rendered),
        ("comments", jpeg::with_segments(&plain, 0xfe, &long), Rendered),
        ("no tables", jpeg::without(&plain, 0xc4), Rendered),
        ("no quantisation", jpeg::without(&plain, 0xdb), Corrupt),
        ("lossless", coded_as(0xc3), Corrupt),
        ("arithmetic", coded_as(0xc9), Corrupt),
        ("hierarchical", coded_as(0xc5), Corrupt),
        ("eighteen blocks", sampled(0x44), Corrupt),
        ("more chroma than luma", jpeg::with_sides(&sampled(0x11), 6_000, 6_000), Rendered),
        ("no samples", sampled(0x00), Corrupt),
    ];
    check(Format::Jpeg, bombs.map(|(name, file, expected)| (name, file, &webp, expected)));
}

/// Not bombs: files of nine megapixels, of every kind with a different memory layout.
#[test]
fn whole_jpegs_are_decoded_within_limits() {
    const SIDES: (u16, u16) = (3_600, 2_400);
    let waves = |x: u16, y: u16| [x / 9 + y / 5, x / 7 + y / 4, y / 6].map(|it| it as u8);
    let rgb = (0..SIDES.1).flat_map(|y| (0..SIDES.0).flat_map(move |x| waves(x, y)));
    let photograph = SyntheticPhoto { width: SIDES.0, height: SIDES.1, rgb: rgb.collect() };
    let (full, across, half) =
        (SamplingFactor::R_4_4_4, SamplingFactor::R_4_2_2, SamplingFactor::R_4_2_0);
    let kinds = [
        ("one scan", full, None, Tables::Usual),
        ("scans of components", full, None, Tables::Own),
        ("scans of components 4:2:0", half, None, Tables::Own),
        ("progressive", full, Some(4), Tables::Usual),
        ("progressive 4:2:2", across, Some(4), Tables::Usual),
        ("progressive 4:2:0", half, Some(4), Tables::Usual),
    ];
    // Just too large to be made from half of the file's size, and just small enough.
    let wishes = [1_300, 1_150].map(|width| to(Format::Png, Some(width)));
    for (name, sampling, progressive, tables) in kinds {
        let file = photograph.jpeg(&Encoding { sampling, progressive, tables, ..crate::PLAIN });
        check(Format::Jpeg, wishes.iter().map(|wish| (name, file.clone(), wish, Rendered)));
    }
}

#[test]
fn avif_bombs() {
    let png = to(Format::Png, SMALL);
    let small = avif::small();
    let bombs = [
        ("whole", small.clone(), Rendered),
        ("sides", avif::with_sides(&small, u32::MAX, u32::MAX), large("side")),
        ("pixels", avif::with_sides(&small, 16_384, 16_384), large("pixels")),
        ("memory", avif::with_sides(&small, 5_000, 5_000), large("memory")),
        ("another size", avif::with_sides(&small, 3_000, 3_000), Corrupt),
        ("meta in meta", avif::nested(&small, b"meta", 100_000), Corrupt),
        ("properties", avif::nested(&small, b"iprp", 100_000), Corrupt),
    ];
    check(Format::Avif, bombs.map(|(name, file, expected)| (name, file, &png, expected)));
}

#[test]
fn rare_format_bombs() {
    let png = to(Format::Png, SMALL);
    let bombs = [
        (Format::Bmp, "sides", rare::bmp(30_000, 30_000, 24, &[]), large("side")),
        (Format::Bmp, "pixels", rare::bmp(16_384, 16_384, 24, &[]), large("pixels")),
        (Format::Bmp, "memory", rare::bmp(7_000, 7_000, 24, &[]), large("memory")),
        (Format::Bmp, "no rows", rare::bmp(4_000, 4_000, 24, &[]), Corrupt),
        (Format::Bmp, "rows", rare::bmp(4_000, 4_000, 24, &vec![7; 48_000_000]), Rendered),
        (Format::Pnm, "sides", b"P6 30000 30000 255\n".to_vec(), large("side")),
        (Format::Pnm, "numbers", [&b"P5 "[..], &[b'9'; 1 << 20]].concat(), Corrupt),
        (Format::Pnm, "pixels", b"P4 16384 16384\n".to_vec(), large("pixels")),
        (Format::Pnm, "memory", b"P6 6000 6000 65535\n".to_vec(), large("memory")),
        (Format::Pnm, "no rows", b"P6 4000 4000 255\n".to_vec(), Corrupt),
        (Format::Pnm, "comments", [&b"P5\n#"[..], &vec![b'c'; 20 << 20]].concat(), Corrupt),
        (Format::Qoi, "sides", rare::qoi(30_000, 30_000, &[]), large("side")),
        (Format::Qoi, "pixels", rare::qoi(16_384, 16_384, &[]), large("pixels")),
        (Format::Qoi, "memory", rare::qoi(7_000, 7_000, &[]), large("memory")),
        (Format::Qoi, "runs", rare::qoi(4_000, 4_000, &vec![0xfd; 16_000_000 / 62 + 1]), Rendered),
        (Format::Qoi, "no pixels", rare::qoi(4_000, 4_000, &[]), Corrupt),
        (
            Format::Ico,
            "a png",
            rare::icon(&super::png::file((16_384, 16_384), [8, 0, 0], &[], 9)),
            large("pixels"),
        ),
        (
            Format::Ico,
            "a bitmap",
            rare::icon(&rare::bmp(16_384, 16_384, 24, &[])[14..]),
            large("pixels"),
        ),
        (Format::Ico, "entries", rare::icons(60_000), Corrupt),
    ];
    for (format, name, file, expected) in bombs {
        check(format, [(name, file, &png, expected)]);
    }
}
