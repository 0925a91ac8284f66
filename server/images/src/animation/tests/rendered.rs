//! Tests of rendered animations.

use gif::{DisposalMethod, Repeat};
use proptest::prelude::{any, prop_assert, prop_assert_eq, proptest};

use super::{
    Film, GifFrame, WebPFrame, assert_alike, colour, drawn, film_of, gif_of, image_of, made_of,
    others_film_of, planned, source_of, webp_of, wish,
};
use crate::animation::canvas::{CLEAR, Canvas, Pixel};
use crate::animation::frame_writer::{FrameMerger, FrameWriter};
use crate::animation::gif_writer::GifWriter;
use crate::animation::loop_count::LoopCount;
use crate::animation::webp_writer::WebPWriter;
use crate::error::{Error, LimitKind};
use crate::format::Format;
use crate::plan::Quality;
use crate::render;
use crate::riff;
use crate::transform::{Fit, TransformOptions};

const SIDES: (u32, u32) = (16, 12);

/// Builds a GIF of frames of different colours, with these durations in hundredths of a second.
fn gif_with(repeat: Repeat, delays: &[u16]) -> Vec<u8> {
    let frame = |(at, delay): (u8, &u16)| GifFrame {
        delay: *delay,
        ..GifFrame::flat([at.into(), 0, 8, 12], 1 + at % 7)
    };
    let frames: Vec<GifFrame> = (0..).zip(delays).map(frame).collect();
    gif_of((16, 12), repeat, &frames)
}

fn webp_with(count: u16, delays: &[u32]) -> Vec<u8> {
    let frame = |(at, delay): (u32, &u32)| WebPFrame {
        place: [at * 2, 0, 4, 12],
        pixels: vec![colour(1 + at as u8 % 7); 48],
        is_lossy: false,
        flags: 0,
        delay_ms: *delay,
    };
    let frames: Vec<WebPFrame> = (0..).zip(delays).map(frame).collect();
    webp_of(SIDES, count, &frames)
}

fn delays(film: &Film) -> Vec<u32> {
    film.iter().map(|(_, delay)| *delay).collect()
}

#[test]
fn delays_and_loop_count_are_preserved() {
    let hundredths = [5, 0, 1, 2, 300, u16::MAX];
    let milliseconds: Vec<u32> = hundredths.iter().map(|delay| u32::from(*delay) * 10).collect();
    let cases =
        [(Repeat::Infinite, None), (Repeat::Finite(0), Some(0)), (Repeat::Finite(7), Some(7))];
    for (repeat, repetitions) in cases {
        let gif = gif_with(repeat, &hundredths);
        let (film, count) = others_film_of(&made_of(&gif, &wish(Format::Gif)).unwrap());
        assert_eq!((delays(&film), count), (milliseconds.clone(), repetitions));
        let (film, count) = others_film_of(&made_of(&gif, &wish(Format::WebP)).unwrap());
        // WebP counts plays, GIF counts repetitions after the first.
        assert_eq!((delays(&film), count), (milliseconds.clone(), repetitions.map(|n| n + 1)));
    }
    for (plays, repetitions) in [(0, None), (1, Some(0)), (8, Some(7)), (u16::MAX, Some(65_534))] {
        let webp = webp_with(plays, &milliseconds);
        let (film, count) = others_film_of(&made_of(&webp, &wish(Format::WebP)).unwrap());
        assert_eq!((delays(&film), count), (milliseconds.clone(), repetitions.map(|n| n + 1)));
        let (film, count) = others_film_of(&made_of(&webp, &wish(Format::Gif)).unwrap());
        assert_eq!((delays(&film), count), (milliseconds.clone(), repetitions));
    }
}

#[test]
fn equal_frames_are_merged_without_losing_time() {
    let frame = |delay, index| GifFrame { delay, ..GifFrame::flat([0, 0, 16, 12], index) };
    // Durations that browsers show for a tenth of a second count as that.
    let frames = [frame(30, 1), frame(20, 1), frame(0, 1), frame(7, 2), frame(0, 3), frame(1, 3)];
    let gif = gif_of((16, 12), Repeat::Infinite, &frames);
    for format in [Format::Gif, Format::WebP] {
        let (film, _) = others_film_of(&made_of(&gif, &wish(format)).unwrap());
        assert_eq!(delays(&film), [600, 70, 200], "{format:?}");
    }
}

#[test]
fn delay_beyond_the_format_maximum_is_split() {
    let frames = vec![GifFrame { delay: u16::MAX, ..GifFrame::flat([0, 0, 16, 12], 1) }; 40];
    let gif = gif_of((16, 12), Repeat::Infinite, &frames);
    let all_ms = 40 * 655_350;
    for (format, most) in [(Format::Gif, 655_350), (Format::WebP, 0xff_ffff)] {
        let exactly = TransformOptions { quality: Some(100), ..wish(format) };
        let (film, _) = others_film_of(&made_of(&gif, &exactly).unwrap());
        assert_eq!(delays(&film).iter().sum::<u32>(), all_ms, "{format:?}");
        assert_eq!(delays(&film)[0], most);
        assert!(film.iter().all(|(pixels, _)| pixels.iter().all(|pixel| *pixel == colour(1))));
    }
    let long = webp_with(0, &[0xff_ffff, 20]);
    let (film, _) = others_film_of(&made_of(&long, &wish(Format::Gif)).unwrap());
    assert_eq!(delays(&film).iter().sum::<u32>(), 0xff_ffff + 20 + 5, "to the hundredth");
}

#[test]
fn still_output_uses_the_first_frame() {
    let frames = [GifFrame::flat([2, 0, 14, 12], 1), GifFrame::flat([0, 0, 16, 12], 2)];
    let gif = gif_of((16, 12), Repeat::Infinite, &frames);
    let webp =
        made_of(&gif, &TransformOptions { quality: Some(100), ..wish(Format::WebP) }).unwrap();
    for file in [gif, webp] {
        let shown = image_of(&file);
        let expected = drawn(SIDES, |x, _| if x < 2 { CLEAR } else { colour(1) });
        assert_eq!(Canvas::from_pixels(shown), expected);
        let jpeg = image_of(&made_of(&file, &wish(Format::Jpeg)).unwrap());
        assert_eq!(jpeg.dimensions(), SIDES);
        let last = jpeg.samples.as_chunks::<3>().0[100];
        assert!(last[0] > 200 && last[1] < 60, "{last:?}");
        assert!(jpeg.samples.iter().step_by(3).take(2).all(|red| *red > 200));
    }
}

#[test]
fn every_frame_is_resized_and_cropped() {
    let frames = [
        GifFrame::flat([0, 0, 40, 20], 1),
        GifFrame::flat([20, 0, 20, 20], 2),
        GifFrame::flat([0, 0, 10, 20], 4),
    ];
    let gif = gif_of((40, 20), Repeat::Infinite, &frames);
    for format in [Format::Gif, Format::WebP] {
        let square = TransformOptions {
            width: Some(10),
            height: Some(10),
            fit: Fit::Cover,
            quality: Some(100),
            ..wish(format)
        };
        let made = made_of(&gif, &square).unwrap();
        assert_eq!(source_of(&made).unwrap().sides, (10, 10));
        let (film, _) = others_film_of(&made);
        // The third frame is in the part that is cropped, except for what the resizer blends in at its edge.
        assert!(film.len() == 2 || film.len() == 3, "{}", film.len());
        let red = vec![colour(1); 100];
        assert_alike(&film[0].0, &red, 1, "first");
        let halves: Vec<Pixel> = film[1].0.clone();
        for y in 0..10 {
            assert_alike(&halves[y * 10..][..3], &red[..3], 1, "left");
            assert_alike(&halves[y * 10 + 7..][..3], &[colour(2); 3], 1, "right");
        }
        assert_eq!(film.iter().map(|(_, delay)| delay).sum::<u32>(), 300);
    }
}

#[test]
fn every_frame_is_rotated() {
    let webp = webp_with(0, &[50, 50]);
    // Exif tag 274: the left column is displayed on top.
    let exif = b"II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0\x06\0\0\0\0\0\0\0";
    let mut chunks = webp[12..].to_vec();
    riff::push(&mut chunks, *b"EXIF", exif).unwrap();
    let turned = riff::file(&chunks).unwrap();
    let (plain, _) = others_film_of(&made_of(&webp, &wish(Format::Gif)).unwrap());
    let made = made_of(&turned, &wish(Format::Gif)).unwrap();
    assert_eq!(source_of(&made).unwrap().sides, (SIDES.1, SIDES.0));
    let (width, height) = (SIDES.0 as usize, SIDES.1 as usize);
    for ((seen, _), (stored, _)) in others_film_of(&made).0.iter().zip(&plain) {
        for (at, pixel) in seen.iter().enumerate() {
            let (x, y) = (at % height, at / height);
            assert_eq!(*pixel, stored[(height - 1 - x) * width + y]);
        }
    }
}

/// Returns frames with some transparent pixels, of which a few change each time.
fn pictures(seed: u64, count: u32) -> Vec<Canvas> {
    let picture = |at: u32| {
        drawn(SIDES, move |x, y| {
            // A pixel changes periodically, to one of 17 values.
            let turn = (seed >> ((x + y * 5) % 48)) as u32 % 4;
            let value = (x * 7 + y * 3 + if turn < at { at / (turn + 1) * 5 } else { 0 }) % 17;
            if value == 16 { CLEAR } else { colour(value as u8) }
        })
    };
    (0..count).map(picture).collect()
}

/// File size limit above that of all test files.
const ROOM: usize = 1 << 20;

fn gif_writer(sides: (u32, u32), colours: u16) -> GifWriter {
    GifWriter::new(sides, colours, LoopCount::Forever, ROOM).unwrap()
}

fn webp_writer(sides: (u32, u32), quality: Quality) -> WebPWriter {
    WebPWriter::new(sides, quality, LoopCount::Forever, ROOM).unwrap()
}

fn written<W: FrameWriter>(writer: W, pictures: &[Canvas]) -> Vec<u8> {
    let mut sequence = FrameMerger::new(writer);
    for (at, picture) in (0..).zip(pictures) {
        sequence.push(picture.clone(), 20 + at * 10, &|| false).unwrap();
    }
    sequence.finish(&|| false).unwrap()
}

/// Returns whether every frame that is cleared has a transparent colour; otherwise some readers use the background
/// colour.
fn background_is_clear(gif: &[u8]) -> bool {
    let mut frames = gif::Decoder::new(gif).unwrap();
    while let Some(frame) = frames.next_frame_info().unwrap() {
        if frame.dispose == DisposalMethod::Background && frame.transparent.is_none() {
            return false;
        }
    }
    true
}

/// Merges equal consecutive frames, with the sum of their durations.
fn joined(film: &[(Vec<Pixel>, u32)]) -> Film {
    let mut joined = Film::new();
    for (pixels, delay) in film {
        match joined.last_mut() {
            Some((last, sum)) if last == pixels => *sum += delay,
            _ => joined.push((pixels.clone(), *delay)),
        }
    }
    joined
}

proptest! {
    #![proptest_config(proptest::test_runner::Config::with_cases(100))]

    #[test]
    fn paletted_output_matches_other_decoders(seed: u64, count in 1..9_u32) {
        let pictures = pictures(seed, count);
        let given: Film = pictures.iter().zip(0..).map(|(picture, at)| {
            (picture.snapshot(picture.full_area()), 20 + at * 10)
        }).collect();
        let gif = written(gif_writer(SIDES, 256), &pictures);
        prop_assert_eq!(joined(&others_film_of(&gif).0), joined(&given));
        prop_assert!(background_is_clear(&gif), "a frame is disposed of to a colour");
        prop_assert_eq!(film_of(&gif).unwrap(), others_film_of(&gif).0);
        let webp = written(webp_writer(SIDES, Quality::Lossless), &pictures);
        let seen: Film = others_film_of(&webp).0.into_iter().map(|(pixels, delay)| {
            (pixels.into_iter().map(|p| if p[3] == 0 { CLEAR } else { p }).collect(), delay)
        }).collect();
        prop_assert_eq!(joined(&seen), joined(&given));
    }

    #[test]
    fn lossy_frames_stay_close_and_palettes_are_exact(seed: u64, alpha: bool) {
        let shade = |at: u32| drawn((32, 32), move |x, y| {
            let wave = (x * 6 + y * 2 + at * 9 + (seed % 97) as u32) % 256;
            let clear = alpha && x + at < 8;
            [wave as u8, 255 - wave as u8 / 2, (y * 8) as u8, if clear { 0 } else { 255 }]
        });
        let pictures: Vec<Canvas> = (0..4).map(shade).collect();
        let webp = written(webp_writer((32, 32), Quality::Lossy(90)), &pictures);
        let gif = written(gif_writer((32, 32), 16), &pictures);
        for (file, far_max) in [(webp, 14.0), (gif, 30.0)] {
            let (film, _) = others_film_of(&file);
            prop_assert_eq!(film.len(), 4);
            for ((seen, _), given) in film.iter().zip(&pictures) {
                let given = given.snapshot(given.full_area());
                let mut far = 0_u64;
                for (seen, given) in seen.iter().zip(&given) {
                    prop_assert_eq!(seen[3], given[3]);
                    if given[3] > 0 {
                        far += (0..3).map(|at| u64::from(seen[at].abs_diff(given[at]))).sum::<u64>();
                    }
                }
                let far = far as f64 / (given.len() * 3) as f64;
                prop_assert!(far < far_max, "{far}");
            }
        }
    }

    #[test]
    fn gif_frames_survive_re_encoding(
        seed: u64, disposal in any::<bool>(), count in 2..6_u16
    ) {
        let frames: Vec<GifFrame> = (0..count).map(|at| {
            let index = |pixel: u16| (seed.rotate_left(u32::from(pixel % 63)) % 9) as u8;
            let place = [at, at, 16 - at * 2, 12 - at];
            GifFrame {
                indices: (0..place[2] * place[3]).map(|pixel| index(pixel + at)).collect(),
                clear: Some(8),
                delay: 3,
                ..GifFrame::flat(place, 0)
            }.disposed(if disposal { DisposalMethod::Background } else { DisposalMethod::Previous })
        }).collect();
        let gif = gif_of((16, 12), Repeat::Infinite, &frames);
        let again = made_of(&gif, &wish(Format::Gif)).unwrap();
        let alike = joined(&film_of(&again).unwrap()) == joined(&film_of(&gif).unwrap());
        prop_assert!(alike, "it shows something else");
    }
}

#[test]
fn static_frame_areas_cost_few_bytes() {
    let noise = |x: u32, y: u32| {
        let [r, g, b, _] = (x * 7_919 + y * 104_729).wrapping_mul(2_654_435_761).to_le_bytes();
        [r, g, b, 255]
    };
    let dot = |at: u32| {
        drawn((64, 64), move |x, y| if (x / 4, y) == (at, 30) { [255; 4] } else { noise(x, y) })
    };
    let pictures: Vec<Canvas> = (0..16).map(dot).collect();
    let sizes = |pictures: &[Canvas]| {
        let gif = written(gif_writer((64, 64), 256), pictures).len();
        let writer = webp_writer((64, 64), Quality::Lossy(80));
        (gif, written(writer, pictures).len())
    };
    let (one, all) = (sizes(&pictures[..1]), sizes(&pictures));
    assert!(all.0 < one.0 * 2, "GIF: {} bytes after {}", all.0, one.0);
    assert!(all.1 < one.1 * 2, "WebP: {} bytes after {}", all.1, one.1);
}

#[test]
fn output_size_limit_is_exact() {
    let noise = |seed: u32| {
        drawn((40, 30), move |x, y| {
            let [r, g, b, a] =
                (x * 7_919 + y * 104_729 + seed).wrapping_mul(0x9e37_79b9).to_le_bytes();
            [r, g, b, if a > 200 { 0 } else { 255 }]
        })
    };
    let pictures: Vec<Canvas> = (1..6).map(noise).collect();
    fn made<W: FrameWriter>(
        writer: Result<W, Error>,
        pictures: &[Canvas],
    ) -> Result<Vec<u8>, Error> {
        let mut sequence = FrameMerger::new(writer?);
        for picture in pictures {
            sequence.push(picture.clone(), 2_000_000, &|| false)?;
        }
        sequence.finish(&|| false)
    }
    let gif = |room| made(GifWriter::new((40, 30), 200, LoopCount::Forever, room), &pictures);
    let webp = |room| {
        made(WebPWriter::new((40, 30), Quality::Lossless, LoopCount::Forever, room), &pictures)
    };
    let (whole_gif, whole_webp) = (gif(ROOM).unwrap(), webp(ROOM).unwrap());
    assert_eq!(whole_gif.capacity(), whole_gif.len());
    assert_eq!(whole_webp.capacity(), whole_webp.len());
    assert_eq!(gif(whole_gif.len()).unwrap(), whole_gif);
    assert_eq!(webp(whole_webp.len()).unwrap(), whole_webp);
    let too_large = Err(Error::TooLarge(LimitKind::Memory));
    assert_eq!(gif(whole_gif.len() - 1), too_large);
    assert_eq!(webp(whole_webp.len() - 1), too_large);
}

#[test]
fn abandoned_animation_render_stops() {
    let gif = gif_with(Repeat::Infinite, &[5, 5, 5]);
    let source = source_of(&gif).unwrap();
    for format in [Format::Gif, Format::WebP, Format::Png] {
        let plan = planned(&source, &wish(format)).unwrap();
        let asked = std::sync::atomic::AtomicU32::new(0);
        for most in [0, 1, 2] {
            asked.store(0, std::sync::atomic::Ordering::Relaxed);
            let stop = || asked.fetch_add(1, std::sync::atomic::Ordering::Relaxed) >= most;
            assert_eq!(render(&gif, &source, &plan, &stop), Err(Error::Cancelled), "{format:?}");
        }
    }
}
