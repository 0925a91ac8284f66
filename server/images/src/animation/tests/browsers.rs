//! Tests of GIF files that violate the format, compared with browsers.

use gif::Repeat;

use super::{Film, GifFrame, film_of, gif_of, image_of, made_of, others_film_of, source_of, wish};
use crate::animation::canvas::CLEAR;
use crate::format::Format;
use crate::picture::PixelLayout;
use crate::transform::TransformOptions;

fn film((width, height): (u32, u32), file: &[u8]) -> Film {
    assert_eq!(source_of(file).unwrap().sides, (width, height));
    let film = film_of(file).unwrap();
    assert!(film.iter().all(|(pixels, _)| pixels.len() == (width * height) as usize));
    film
}

#[test]
fn gif_first_frame_larger_than_screen_is_not_cropped() {
    for (file, frames) in [
        (&include_bytes!("../../../../../tests/fixtures/gif/screen_0x0.gif")[..], 1),
        (include_bytes!("../../../../../tests/fixtures/gif/screen_smaller.gif"), 1),
        (include_bytes!("../../../../../tests/fixtures/gif/screen_smaller_animated.gif"), 2),
    ] {
        let film = film((40, 30), file);
        assert_eq!(film.len(), frames);
        assert!(film.iter().flat_map(|frame| &frame.0).all(|pixel| *pixel != CLEAR));
        let small =
            made_of(file, &TransformOptions { width: Some(20), ..wish(Format::WebP) }).unwrap();
        assert_eq!(source_of(&small).unwrap().sides, (20, 15));
    }
}

#[test]
fn gif_without_palette_or_pixels_is_clear() {
    for (file, sides) in [
        (&include_bytes!("../../../../../tests/fixtures/gif/26_bytes.gif")[..], (1, 1)),
        (include_bytes!("../../../../../tests/fixtures/gif/empty_lzw.gif"), (40, 30)),
    ] {
        let film = film(sides, file);
        assert!(film.len() == 1 && film[0].0.iter().all(|pixel| *pixel == CLEAR));
        assert_eq!(image_of(file).layout, PixelLayout::Rgba);
    }
}

#[test]
fn empty_gif_frame_does_not_end_the_animation() {
    let mut file = include_bytes!("../../../../../tests/fixtures/gif/empty_lzw.gif").to_vec();
    let whole = GifFrame::flat([0, 0, 40, 30], 1);
    let frame = gif_of((40, 30), Repeat::Infinite, &[whole]);
    let start = frame.windows(3).position(|head| head == [b',', 0, 0]).unwrap();
    file.pop();
    file.extend(&frame[start..]);
    let film = film((40, 30), &file);
    assert_eq!(film.len(), 2);
    assert!(film[0].0.iter().all(|pixel| *pixel == CLEAR));
    assert!(film[1].0.iter().all(|pixel| *pixel != CLEAR));
}

#[test]
fn gif_infinite_loop_extensions_are_recognized() {
    for file in [
        &include_bytes!("../../../../../tests/fixtures/gif/loop_after_frame.gif")[..],
        include_bytes!("../../../../../tests/fixtures/gif/animexts.gif"),
    ] {
        for (format, width) in [(Format::WebP, None), (Format::Gif, Some(20))] {
            let made = made_of(file, &TransformOptions { width, ..wish(format) }).unwrap();
            let (film, count) = others_film_of(&made);
            assert!(film.len() > 1);
            assert_eq!(count, None, "{format:?}");
        }
    }
}

#[test]
fn gif_disposal_4_is_read_as_3() {
    let file = include_bytes!("../../../../../tests/fixtures/gif/disposal_4.gif");
    let film = film((40, 30), file);
    assert_eq!(film[2].0[12 * 40 + 15], [255, 0, 0, 255]);
    assert_eq!(film.len(), 3);
}
