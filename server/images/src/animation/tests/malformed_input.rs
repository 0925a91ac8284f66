//! Tests of malformed and hostile animations.

use gif::Repeat;
use proptest::prelude::{any, proptest};

use super::{GifFrame, WebPFrame, colour, film_of, gif_of, made_of, source_of, webp_of, wish};
use crate::animation::frame_source;
use crate::error::{Error, LimitKind};
use crate::format::Format;
use crate::limits::PROFILE_BYTES_MAX;
use crate::plan::plan;
use crate::riff;
use crate::transform::TransformOptions;

fn small_gif() -> Vec<u8> {
    let frames = [
        GifFrame::flat([0, 0, 9, 7], 1),
        GifFrame { is_interlaced: true, clear: Some(3), ..GifFrame::flat([2, 1, 5, 5], 2) },
        GifFrame { has_own_palette: true, ..GifFrame::flat([4, 4, 3, 3], 4) },
    ];
    gif_of((9, 7), Repeat::Finite(2), &frames)
}

fn small_webp() -> Vec<u8> {
    let frame = |place: [u32; 4], is_lossy, flags| WebPFrame {
        place,
        pixels: (0..place[2] * place[3]).map(|at| [at as u8, 9, 200, 90 + at as u8]).collect(),
        is_lossy,
        flags,
        delay_ms: 50,
    };
    let frames = [
        frame([0, 0, 12, 10], true, 0),
        frame([2, 2, 8, 8], false, 1),
        frame([4, 0, 5, 5], true, 3),
    ];
    webp_of((12, 10), 0, &frames)
}

#[test]
fn oversized_gif_profile_is_ignored() {
    let file = small_gif();
    let source = source_of(&file).unwrap();
    // After the screen descriptor and the palette.
    let at = 13 + 3 * (2 << (file[10] & 7));
    let with = |length: usize| {
        let mut block = b"\x21\xff\x0bICCRGBG1012".to_vec();
        for piece in vec![7; length].chunks(255) {
            block.push(piece.len() as u8);
            block.extend_from_slice(piece);
        }
        block.push(0);
        let file = [&file[..at], &block, &file[at..]].concat();
        frame_source::open(&file, &source).unwrap().profile().map(<[u8]>::len)
    };
    assert_eq!(with(PROFILE_BYTES_MAX), Some(PROFILE_BYTES_MAX));
    assert_eq!(with(PROFILE_BYTES_MAX + 1), None);
}

#[test]
fn truncated_animation_keeps_complete_frames() {
    for (file, others) in [(small_gif(), Format::WebP), (small_webp(), Format::Gif)] {
        let whole = film_of(&file).unwrap();
        let mut most = 0;
        for end in 0..=file.len() {
            let cut = &file[..end];
            let film = film_of(cut).unwrap_or_default();
            // The first frame is shown as far as it was decoded, later ones only if complete.
            assert!(film.len() >= most, "{end} bytes");
            most = film.len();
            for (picture, should) in film.iter().zip(&whole).skip(1) {
                assert_eq!(picture, should, "{end} bytes");
            }
            let made = made_of(cut, &wish(others));
            assert_eq!(made.is_ok(), !film.is_empty(), "{end} bytes: {:?}", made.err());
            assert_eq!(made_of(cut, &wish(Format::Png)).is_ok(), !film.is_empty());
        }
        assert_eq!(most, 3);
    }
}

#[test]
fn truncated_first_frame_is_decoded_partially() {
    let mut frame = GifFrame::flat([0, 0, 64, 64], 0);
    frame.indices =
        (0..64 * 64).map(|at: u32| (at.wrapping_mul(2_654_435_761) >> 28) as u8).collect();
    let gif = gif_of((64, 64), Repeat::Infinite, std::slice::from_ref(&frame));
    let film = film_of(&gif[..gif.len() / 2]).unwrap();
    let rows = film[0].0.chunks(64).take_while(|row| row.iter().all(|pixel| pixel[3] == 255));
    let rows = rows.count();
    assert!((20..50).contains(&rows), "{rows} rows");
    for (pixel, index) in film[0].0.iter().zip(&frame.indices).take(rows * 64) {
        assert_eq!(*pixel, colour(*index));
    }
}

#[test]
fn header_without_frames_is_rejected() {
    let head = |width: u16, height: u16| {
        [&b"GIF89a"[..], &width.to_le_bytes(), &height.to_le_bytes(), &[0, 0, 0]].concat()
    };
    for bytes in [head(9, 9), [&head(9, 9)[..], b";"].concat(), head(u16::MAX, u16::MAX)] {
        assert!(matches!(source_of(&bytes), Err(Error::Undecodable(_))));
    }
    let empty = gif_of((0, 0), Repeat::Infinite, &[GifFrame::flat([0, 0, 0, 0], 1)]);
    assert!(matches!(source_of(&empty), Err(Error::Undecodable(_))));
    let webp = small_webp();
    assert!(source_of(&webp[..50]).and_then(|_| film_of(&webp[..50])).is_err());
}

#[test]
fn gif_canvas_size_is_checked_before_allocation() {
    let vast = gif_of((u16::MAX, u16::MAX), Repeat::Infinite, &[GifFrame::flat([0, 0, 1, 1], 1)]);
    let source = source_of(&vast).unwrap();
    assert_eq!(plan(&source, &wish(Format::Png)), Err(Error::TooLarge(LimitKind::Side)));
    let large = gif_of((16_384, 16_384), Repeat::Infinite, &[GifFrame::flat([0, 0, 1, 1], 1)]);
    let source = source_of(&large).unwrap();
    assert_eq!(plan(&source, &wish(Format::Png)), Err(Error::TooLarge(LimitKind::Pixels)));
    let mut frame = gif_of((4, 4), Repeat::Infinite, &[GifFrame::flat([0, 0, 4, 4], 1)]);
    let at = frame.windows(10).position(|head| head == [b',', 0, 0, 0, 0, 4, 0, 4, 0, 0]).unwrap();
    frame[at + 5..at + 9].fill(0xff);
    let source = source_of(&frame).unwrap();
    assert_eq!(source.sides, (0xffff, 0xffff), "the first frame enlarges the screen");
    assert_eq!(plan(&source, &wish(Format::Png)), Err(Error::TooLarge(LimitKind::Side)));
}

/// Builds a GIF whose frames, after a small one, state the maximum size, with this compressed data.
fn gif_with_vast_frame(canvas: (u16, u16), data: &[u8], frames: usize) -> Vec<u8> {
    let mut gif = gif_of(canvas, Repeat::Infinite, &[GifFrame::flat([0, 0, 1, 1], 1)]);
    gif.pop();
    for _ in 0..frames {
        gif.extend_from_slice(&[b',', 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0, 8]);
        for block in data.chunks(255) {
            gif.push(block.len() as u8);
            gif.extend_from_slice(block);
        }
        gif.push(0);
    }
    gif.push(b';');
    gif
}

#[test]
fn oversized_frame_is_rejected_cheaply() {
    // A single colour: codes of ever longer runs.
    let mut packed = weezl_of(&vec![1; 3_000_000]);
    let film = film_of(&gif_with_vast_frame((8, 8), &packed, 1)).unwrap();
    assert_eq!(film[1].0[1..], [colour(1); 63]);
    packed.truncate(packed.len() / 2);
    assert_eq!(film_of(&gif_with_vast_frame((8, 8), &packed, 3)).unwrap().len(), 4);
    // 50 of them exceed the pixel limit of an animation of this size.
    let packed = weezl_of(&vec![1; 3_000_000]);
    let bomb = gif_with_vast_frame((8, 8), &packed, 50);
    assert_eq!(made_of(&bomb, &wish(Format::WebP)), Err(Error::TooLarge(LimitKind::Frames)));
}

/// Compresses as in a GIF, with eight bits per pixel.
fn weezl_of(indices: &[u8]) -> Vec<u8> {
    let mut frame = gif::Frame {
        width: 1_000,
        height: (indices.len() / 1_000) as u16,
        buffer: indices.into(),
        ..gif::Frame::default()
    };
    // The first index determines the initial code size.
    frame.buffer.to_mut()[0] = 255;
    frame.make_lzw_pre_encoded();
    assert_eq!(frame.buffer[0], 8);
    frame.buffer[1..].to_vec()
}

#[test]
fn excess_frame_data_is_ignored() {
    let gif = gif_of((8, 8), Repeat::Infinite, &vec![GifFrame::flat([0, 0, 8, 8], 1); 2]);
    let mut cut = gif.clone();
    let at = gif.windows(10).position(|head| head == [b',', 0, 0, 0, 0, 8, 0, 8, 0, 0]).unwrap();
    for (width, height) in [(1, 1), (8, 1), (3, 7), (0, 0)] {
        cut[at + 5] = width;
        cut[at + 7] = height;
        let film = film_of(&cut).unwrap();
        assert_eq!(film.len(), 2);
        assert_eq!(film[0].0.iter().filter(|p| p[3] == 255).count(), usize::from(width * height));
        assert_eq!(film[1].0, [colour(1); 64]);
    }
}

#[test]
fn overflowing_dimensions_are_rejected() {
    let frames = vec![GifFrame::flat([0, 0, 1, 1], 1); 257];
    let gif = gif_of((4, 4), Repeat::Finite(u16::MAX), &frames);
    let source = source_of(&gif).unwrap();
    assert_eq!(source.frames, 257);
    assert_eq!(plan(&source, &wish(Format::WebP)), Err(Error::TooLarge(LimitKind::Frames)));
    assert!(made_of(&gif, &wish(Format::Png)).is_ok(), "one picture of it");
    let gif = gif_of((4, 4), Repeat::Finite(u16::MAX), &frames[..256]);
    assert!(made_of(&gif, &wish(Format::WebP)).is_ok());
    assert!(made_of(&gif, &TransformOptions { width: Some(2), ..wish(Format::Gif) }).is_ok());
}

#[test]
fn frame_count_beyond_the_plan_is_rejected() {
    let gif = small_gif();
    let source = crate::Source { frames: 2, ..source_of(&gif).unwrap() };
    let plan = super::planned(&source, &wish(Format::WebP)).unwrap();
    let made = crate::render(&gif, &source, &plan, &|| false).unwrap();
    assert_eq!(source_of(&made).unwrap().frames, 2);
}

#[test]
fn webp_frame_position_and_size_are_validated() {
    let webp = small_webp();
    let at = webp.windows(4).position(|name| name == b"ANMF").unwrap() + 8;
    for (byte, value) in [(0, 1), (3, 1), (6, 3), (6, 200), (8, 9), (9, 8), (11, 255)] {
        let mut broken = webp.clone();
        broken[at + byte] = value;
        assert!(film_of(&broken).is_err(), "byte {byte}");
    }
}

#[test]
fn frame_larger_than_the_container_is_rejected() {
    let large = webpx::Encoder::new_rgba(&[90; 4 * 200 * 200], 200, 200).quality(50.0);
    let large = large.encode(enough::Unstoppable).unwrap();
    let parts: Vec<_> = riff::Chunks::in_file(&large).unwrap().skip(1).collect();
    assert_eq!(parts.iter().map(|part| part.0).collect::<Vec<_>>(), [*b"ALPH", *b"VP8 "]);
    let with = |flags: u8, wrap: fn(&[u8]) -> Vec<u8>| {
        let mut chunks = Vec::new();
        riff::push(&mut chunks, *b"VP8X", &[flags, 0, 0, 0, 11, 0, 0, 9, 0, 0]).unwrap();
        let mut still = Vec::new();
        parts.iter().for_each(|(name, bytes)| riff::push(&mut still, *name, bytes).unwrap());
        chunks.extend_from_slice(&wrap(&still));
        riff::file(&chunks).unwrap()
    };
    let still = with(0x10, <[u8]>::to_vec);
    assert!(matches!(source_of(&still), Err(Error::Undecodable(_))));
    let moving = with(0x12, |still| {
        let mut chunks = Vec::new();
        riff::push(&mut chunks, *b"ANIM", &[0; 6]).unwrap();
        let frame = [&[0, 0, 0, 0, 0, 0, 11, 0, 0, 9, 0, 0, 5, 0, 0, 0], still].concat();
        riff::push(&mut chunks, *b"ANMF", &frame).unwrap();
        chunks
    });
    assert_eq!(source_of(&moving).unwrap().sides, (12, 10));
    assert!(matches!(film_of(&moving), Err(Error::Undecodable(_))));
}

proptest! {
    #![proptest_config(proptest::test_runner::Config::with_cases(1_500))]

    #[test]
    fn arbitrary_bytes_do_not_panic(
        is_gif: bool,
        changes in proptest::collection::vec((any::<proptest::sample::Index>(), any::<u8>()), 1..8)
    ) {
        let mut bytes = if is_gif { small_gif() } else { small_webp() };
        for (at, value) in changes {
            let at = at.index(bytes.len());
            bytes[at] = value;
        }
        for format in [Format::Gif, Format::WebP, Format::Png] {
            let _ = made_of(&bytes, &wish(format));
        }
    }
}
