//! Tests of animations, compared with libwebp and the `image` crate.

mod browsers;
mod compositing;
mod malformed_input;
mod rendered;

use std::borrow::Cow;
use std::io::Cursor;

use gif::{DisposalMethod, Encoder, Frame, Repeat};
use image::AnimationDecoder as _;
use image::codecs::gif::GifDecoder;
use webpx::AnimationDecoder;

use super::canvas::{Canvas, Pixel};
use crate::decode::{Decoded, decode};
use crate::error::Error;
use crate::format::Format;
use crate::picture::PixelBuffer;
use crate::plan::{Plan, PlanOutcome, plan};
use crate::riff;
use crate::source_info::Source;
use crate::transform::{OutputFormat, TransformOptions};
use crate::{read_source, render};

/// Returns the colours of the test files: 0 to 7 are the corners of the cube, the rest greys.
fn palette() -> Vec<[u8; 3]> {
    let corner = |at: u8| [at & 1, at >> 1 & 1, at >> 2 & 1].map(|bit| bit * 255);
    (0..16).map(|at| if at < 8 { corner(at) } else { [at * 16; 3] }).collect()
}

fn colour(index: u8) -> Pixel {
    let [r, g, b] = palette()[usize::from(index)];
    [r, g, b, 255]
}

/// Frame of a GIF.
#[derive(Clone, Debug)]
struct GifFrame {
    /// Left, top, width, height.
    place: [u16; 4],
    indices: Vec<u8>,
    clear: Option<u8>,
    has_own_palette: bool,
    is_interlaced: bool,
    disposal: DisposalMethod,
    /// Duration in hundredths of a second.
    delay: u16,
}

impl GifFrame {
    /// Creates a frame of one colour without disposal.
    fn flat(place: [u16; 4], index: u8) -> Self {
        let pixels = usize::from(place[2]) * usize::from(place[3]);
        Self {
            place,
            indices: vec![index; pixels],
            clear: None,
            has_own_palette: false,
            is_interlaced: false,
            disposal: DisposalMethod::Keep,
            delay: 10,
        }
    }

    fn disposed(self, disposal: DisposalMethod) -> Self {
        Self { disposal, ..self }
    }

    fn stored_rows(&self) -> Vec<u8> {
        let [_, _, width, height] = self.place.map(usize::from);
        let passes = [(0, 8), (4, 8), (2, 4), (1, 2)];
        let order: Vec<usize> = match self.is_interlaced {
            false => (0..height).collect(),
            true => passes.iter().flat_map(|(at, step)| (*at..height).step_by(*step)).collect(),
        };
        order.iter().flat_map(|y| &self.indices[y * width..][..width]).copied().collect()
    }
}

fn gif_of(sides: (u16, u16), repeat: Repeat, frames: &[GifFrame]) -> Vec<u8> {
    let global = palette().concat();
    let mut encoder = Encoder::new(Vec::new(), sides.0, sides.1, &global).unwrap();
    encoder.set_repeat(repeat).unwrap();
    for frame in frames {
        let [left, top, width, height] = frame.place;
        let reversed = || palette().iter().rev().flatten().copied().collect();
        let frame = Frame {
            delay: frame.delay,
            dispose: frame.disposal,
            transparent: frame.clear,
            needs_user_input: false,
            top,
            left,
            width,
            height,
            interlaced: frame.is_interlaced,
            palette: frame.has_own_palette.then(reversed),
            buffer: Cow::Owned(frame.stored_rows()),
        };
        encoder.write_frame(&frame).unwrap();
    }
    encoder.into_inner().unwrap()
}

/// Frame of a WebP.
#[derive(Clone, Debug)]
struct WebPFrame {
    /// Left, top, width, height; left and top are even.
    place: [u32; 4],
    pixels: Vec<Pixel>,
    is_lossy: bool,
    flags: u8,
    delay_ms: u32,
}

fn webp_of(sides: (u32, u32), count: u16, frames: &[WebPFrame]) -> Vec<u8> {
    let mut chunks = Vec::new();
    let side = |side: u32| riff::to_u24(side as usize - 1);
    let head = [&[0x12, 0, 0, 0][..], &side(sides.0), &side(sides.1)].concat();
    riff::push(&mut chunks, *b"VP8X", &head).unwrap();
    // Background colour, which must not be visible.
    let [low, high] = count.to_le_bytes();
    riff::push(&mut chunks, *b"ANIM", &[9, 99, 199, 255, low, high]).unwrap();
    for frame in frames {
        let [left, top, width, height] = frame.place;
        let numbers = [left / 2, top / 2, width - 1, height - 1, frame.delay_ms];
        let mut anmf = numbers.map(|number| riff::to_u24(number as usize)).concat();
        anmf.push(frame.flags);
        let encoder = webpx::Encoder::new_rgba(frame.pixels.as_flattened(), width, height);
        let encoder = match frame.is_lossy {
            true => encoder.quality(80.0),
            false => encoder.lossless(true),
        };
        let still = encoder.encode(enough::Unstoppable).unwrap();
        for (name, bytes) in riff::Chunks::in_file(&still).unwrap() {
            if name != *b"VP8X" {
                riff::push(&mut anmf, name, bytes).unwrap();
            }
        }
        riff::push(&mut chunks, *b"ANMF", &anmf).unwrap();
    }
    riff::file(&chunks).unwrap()
}

/// Frames with their durations in milliseconds.
type Film = Vec<(Vec<Pixel>, u32)>;

/// Decodes a file with this crate.
fn film_of(bytes: &[u8]) -> Result<Film, Error> {
    let source = source_of(bytes)?;
    let mut frames = super::frame_source::open(bytes, &source)?;
    let mut film = Film::new();
    while let Some(delay_ms) = frames.next(&|| false)? {
        film.push((frames.canvas().snapshot(frames.canvas().full_area()), delay_ms));
    }
    Ok(film)
}

/// Decodes a file with the reference decoders, and returns the loop count in the unit of the format.
fn others_film_of(bytes: &[u8]) -> (Film, Option<u32>) {
    match Format::detect(bytes).unwrap() {
        Format::Gif => {
            let frames = GifDecoder::new(Cursor::new(bytes)).unwrap().into_frames();
            let film = frames.map(|frame| {
                let frame = frame.unwrap();
                let (numerator, denominator) = frame.delay().numer_denom_ms();
                let pixels = frame.buffer().pixels().map(|pixel| pixel.0).collect();
                (pixels, numerator / denominator)
            });
            let repeat = gif::Decoder::new(bytes).unwrap().repeat();
            let count = match repeat {
                Repeat::Infinite => None,
                Repeat::Finite(count) => Some(count.into()),
            };
            (film.collect(), count)
        }
        _ => {
            let (mode, limits) = (webpx::ColorMode::Rgba, webpx::Limits::none());
            let mut decoder =
                AnimationDecoder::with_options_limits(bytes, mode, false, &limits).unwrap();
            let count = decoder.info().loop_count;
            let frames = decoder.decode_all().unwrap();
            let film = frames
                .into_iter()
                .map(|frame| (frame.data.as_chunks::<4>().0.to_vec(), frame.duration_ms));
            (film.collect(), (count > 0).then_some(count))
        }
    }
}

fn source_of(bytes: &[u8]) -> Result<Source, Error> {
    read_source(Format::detect(bytes).ok_or_else(|| Error::undecodable("unknown"))?, bytes)
}

fn wish(format: Format) -> TransformOptions {
    TransformOptions { format: OutputFormat::Format(format), ..TransformOptions::default() }
}

fn planned(source: &Source, wish: &TransformOptions) -> Result<Plan, Error> {
    match plan(source, wish)? {
        PlanOutcome::Transform(plan) => Ok(plan),
        // The stored format and size are requested: re-encoded nevertheless.
        PlanOutcome::Original => {
            planned(source, &TransformOptions { width: Some(source.sides.0), ..*wish })
        }
    }
}

fn made_of(bytes: &[u8], wish: &TransformOptions) -> Result<Vec<u8>, Error> {
    let source = source_of(bytes)?;
    render(bytes, &source, &planned(&source, wish)?, &|| false)
}

/// Returns the picture that a still format gets from a file.
fn image_of(bytes: &[u8]) -> PixelBuffer {
    let png = made_of(bytes, &wish(Format::Png)).unwrap();
    let source = source_of(&png).unwrap();
    let plan = planned(&source, &wish(Format::Png)).unwrap();
    match decode(&png, &source, &plan, &|| false).unwrap() {
        Decoded::Pixels(picture) => picture,
        Decoded::Planes(_) => panic!("planes of a PNG"),
    }
}

/// Compares pixels as seen on black and on white: the more transparent a pixel, the less its colour counts.
fn assert_alike(is: &[Pixel], should: &[Pixel], most: u8, what: &str) {
    assert_eq!(is.len(), should.len(), "{what}");
    let on = |ground: u16, [r, g, b, alpha]: Pixel| {
        let alpha = u16::from(alpha);
        [r, g, b].map(|colour| (u16::from(colour) * alpha + ground * (255 - alpha) + 127) / 255)
    };
    for (at, (is, should)) in is.iter().zip(should).enumerate() {
        for ground in [0, 255] {
            let mut pairs = on(ground, *is).into_iter().zip(on(ground, *should));
            let is_far = pairs.any(|(is, should)| is.abs_diff(should) > u16::from(most));
            assert!(!is_far, "{what}, pixel {at}: {is:?} instead of {should:?}");
        }
    }
}

/// Returns a canvas filled by a function of column and row.
fn drawn((width, height): (u32, u32), pixel: impl Fn(u32, u32) -> Pixel) -> Canvas {
    let mut canvas = Canvas::new((width, height));
    for (at, into) in (0..).zip(canvas.pixels_mut()) {
        *into = pixel(at % width, at / width);
    }
    canvas
}
