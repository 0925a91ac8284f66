//! Tests of frame compositing.

use gif::{DisposalMethod, Repeat};
use proptest::prelude::{Just, Strategy, any, prop_assert, prop_assert_eq, prop_oneof, proptest};

use super::{
    GifFrame, WebPFrame, assert_alike, colour, film_of, gif_of, others_film_of, source_of, webp_of,
};
use crate::animation::canvas::{CLEAR, Pixel};
use crate::animation::webp_frames::NOT_BLENDED;

const RED: u8 = 1;
const GREEN: u8 = 2;
const BLUE: u8 = 4;

/// Formats each pixel as a letter: `.` is transparent.
fn letters(pixels: &[Pixel]) -> String {
    let letter = |pixel: &Pixel| match *pixel {
        CLEAR => '.',
        [255, 0, 0, 255] => 'r',
        [0, 255, 0, 255] => 'g',
        [0, 0, 255, 255] => 'b',
        _ => '?',
    };
    pixels.iter().map(letter).collect()
}

fn seen(bytes: &[u8]) -> Vec<String> {
    film_of(bytes).unwrap().iter().map(|(pixels, _)| letters(pixels)).collect()
}

#[test]
fn gif_disposal_methods_are_applied() {
    let film = |disposal| {
        let frames = [
            GifFrame::flat([0, 0, 5, 1], RED),
            GifFrame::flat([1, 0, 3, 1], GREEN).disposed(disposal),
            GifFrame::flat([2, 0, 1, 1], BLUE),
        ];
        seen(&gif_of((5, 1), Repeat::Infinite, &frames))
    };
    assert_eq!(film(DisposalMethod::Keep), ["rrrrr", "rgggr", "rgbgr"]);
    assert_eq!(film(DisposalMethod::Any), ["rrrrr", "rgggr", "rgbgr"]);
    assert_eq!(film(DisposalMethod::Background), ["rrrrr", "rgggr", "r.b.r"]);
    assert_eq!(film(DisposalMethod::Previous), ["rrrrr", "rgggr", "rrbrr"]);
}

#[test]
fn disposal_previous_of_first_frame_clears_it() {
    let frames = [
        GifFrame::flat([0, 0, 2, 1], RED).disposed(DisposalMethod::Previous),
        GifFrame::flat([1, 0, 1, 1], GREEN).disposed(DisposalMethod::Previous),
        GifFrame::flat([2, 0, 1, 1], BLUE),
    ];
    assert_eq!(seen(&gif_of((3, 1), Repeat::Infinite, &frames)), ["rr.", ".g.", "..b"]);
}

#[test]
fn transparent_pixels_show_the_previous_frame() {
    let mut over = GifFrame::flat([0, 0, 3, 1], GREEN);
    over.indices = vec![GREEN, RED, GREEN];
    over.clear = Some(RED);
    let frames = [GifFrame::flat([1, 0, 2, 1], BLUE), over];
    assert_eq!(seen(&gif_of((3, 1), Repeat::Infinite, &frames)), [".bb", "gbg"]);
}

#[test]
fn frame_outside_the_canvas_is_clipped() {
    let frames = [
        // As the first frame it would extend the canvas.
        GifFrame::flat([2, 1, 1, 1], RED),
        GifFrame::flat([1, 1, 9, 9], RED),
        GifFrame::flat([7, 0, 2, 2], GREEN),
        GifFrame::flat([0, 1, 2, 1], BLUE),
        GifFrame::flat([0, 0, 0, 0], BLUE),
    ];
    let gif = gif_of((3, 2), Repeat::Infinite, &frames);
    assert_eq!(seen(&gif), [".....r", "....rr", "....rr", "...bbr", "...bbr"]);
}

#[test]
fn local_palette_is_used() {
    let mut frame = GifFrame::flat([0, 0, 1, 1], 15 - RED);
    frame.has_own_palette = true;
    let frames = [frame, GifFrame::flat([1, 0, 1, 1], RED)];
    assert_eq!(seen(&gif_of((2, 1), Repeat::Infinite, &frames)), ["r.", "rr"]);
}

#[test]
fn interlaced_gif_rows_are_decoded() {
    for height in 1..20 {
        let mut frame = GifFrame::flat([0, 0, 2, height], 0);
        frame.is_interlaced = true;
        frame.indices = (0..height).flat_map(|y| [(y % 16) as u8; 2]).collect();
        let expected: Vec<Pixel> = frame.indices.iter().map(|index| colour(*index)).collect();
        let gif = gif_of((2, height), Repeat::Infinite, &[frame]);
        assert_eq!(film_of(&gif).unwrap(), [(expected, 100)]);
    }
}

fn disposals() -> impl Strategy<Value = DisposalMethod> {
    use DisposalMethod::{Any, Background, Keep, Previous};
    prop_oneof![Just(Any), Just(Keep), Just(Background), Just(Previous)]
}

fn gif_frames() -> impl Strategy<Value = GifFrame> {
    let place = (0..14_u16, 0..14_u16, 1..14_u16, 1..14_u16);
    let flags = (any::<bool>(), any::<bool>(), proptest::option::of(0..16_u8), any::<u16>());
    (place, flags, disposals(), any::<u64>()).prop_map(
        |((left, top, width, height), (palette, interlaced, clear, delay), disposal, seed)| {
            let pixels = u64::from(width) * u64::from(height);
            let index = |at: u64| (seed.rotate_left((at % 61) as u32).wrapping_add(at) % 16) as u8;
            GifFrame {
                place: [left, top, width, height],
                indices: (0..pixels).map(index).collect(),
                clear,
                has_own_palette: palette,
                is_interlaced: interlaced,
                disposal,
                delay,
            }
        },
    )
}

fn webp_frames(sides: u32) -> impl Strategy<Value = WebPFrame> {
    let place = (0..sides / 2, 0..sides / 2, 1..=sides, 1..=sides);
    (place, any::<bool>(), 0..4_u8, 0..0x100_0000_u32, any::<u32>()).prop_map(
        move |((left, top, width, height), is_lossy, flags, delay_ms, seed)| {
            let (left, top) = (left * 2, top * 2);
            let (width, height) = (width.min(sides - left), height.min(sides - top));
            let pixel = |at: u32| {
                let [r, g, b, _] = seed.rotate_left(at / 7 % 31).to_le_bytes();
                [r, g, b, [0, 255, 128, 3, 250][(seed.wrapping_add(at) / 3 % 5) as usize]]
            };
            let pixels = (0..width * height).map(pixel).collect();
            WebPFrame { place: [left, top, width, height], pixels, is_lossy, flags, delay_ms }
        },
    )
}

proptest! {
    #![proptest_config(proptest::test_runner::Config::with_cases(200))]

    #[test]
    fn gif_frames_match_the_image_crate(
        frames in proptest::collection::vec(gif_frames(), 1..7)
    ) {
        // The first frame fits the canvas: it would extend it, which that crate does not support.
        let [left, top, width, height] = frames[0].place;
        let sides = ((left + width).max(13), (top + height).max(11));
        let gif = gif_of(sides, Repeat::Finite(3), &frames);
        prop_assert_eq!(source_of(&gif).unwrap().frames as usize, frames.len());
        // That crate loses rows of interlaced frames.
        let plain: Vec<GifFrame> =
            frames.into_iter().map(|frame| GifFrame { is_interlaced: false, ..frame }).collect();
        let (others, _) = others_film_of(&gif_of(sides, Repeat::Finite(3), &plain));
        prop_assert!(film_of(&gif).unwrap() == others, "it is seen otherwise");
    }

    #[test]
    fn webp_frames_match_libwebp(
        frames in proptest::collection::vec(webp_frames(12), 1..5)
    ) {
        let webp = webp_of((12, 12), 3, &frames);
        let (ours, (others, count)) = (film_of(&webp).unwrap(), others_film_of(&webp));
        prop_assert_eq!((ours.len(), count), (others.len(), Some(3)));
        for (at, (ours, others)) in ours.iter().zip(&others).enumerate() {
            prop_assert_eq!(ours.1, others.1);
            // libwebp rounds down whenever it blends, and rounds colours of lossy frames differently.
            assert_alike(&ours.0, &others.0, 6, &format!("picture {at}"));
        }
    }
}

#[test]
fn webp_blend_and_dispose_are_applied() {
    let flat = |place: [u32; 4], pixel: Pixel, flags| WebPFrame {
        place,
        pixels: vec![pixel; (place[2] * place[3]) as usize],
        is_lossy: false,
        flags,
        delay_ms: 40,
    };
    let (r, g, b) = (colour(RED), colour(GREEN), colour(BLUE));
    let frames = [
        flat([0, 0, 6, 1], r, 0),
        flat([2, 0, 2, 1], CLEAR, 0),
        flat([2, 0, 2, 1], CLEAR, NOT_BLENDED),
        flat([0, 0, 3, 1], g, 1),
        flat([4, 0, 1, 1], b, 0),
    ];
    let webp = webp_of((6, 1), 0, &frames);
    assert_eq!(seen(&webp), ["rrrrrr", "rrrrrr", "rr..rr", "ggg.rr", "....br"]);
}
