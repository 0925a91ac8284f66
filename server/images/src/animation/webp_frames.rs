//! Decodes the frames of an animated WebP.
//!
//! `image-webp` decodes each frame as a still picture. Frames are located and composited here, by the "WebP
//! Container Specification": the library's own compositing disposes of frames only if a background colour is given,
//! then clears the wrong areas, and rejects truncated files. As in browsers, a disposed frame becomes transparent,
//! whatever the background colour.

use std::io::Cursor;

use image_webp::WebPDecoder;

use super::canvas::{Area, Canvas, Pixel};
use super::frame_source::FrameReader;
use super::loop_count::LoopCount;
use crate::Stop;
use crate::decode::webp::stream_sides;
use crate::error::Error;
use crate::format::Format;
use crate::limits::{JOB_BYTES_MAX, PROFILE_BYTES_MAX};
use crate::orientation;
use crate::picture::{PixelBuffer, PixelLayout};
use crate::riff::{self, Chunks};
use crate::source_info::Source;

/// Animation flag of `VP8X`.
pub(super) const IS_ANIMATED: u8 = 0x02;
/// Alpha flag of `VP8X`.
pub(super) const HAS_ALPHA: u8 = 0x10;
/// Blending flag of `ANMF`: the frame replaces the pixels under it, including alpha.
pub(super) const NOT_BLENDED: u8 = 0x02;
/// Disposal flag of `ANMF`: the area of the frame becomes transparent after its duration.
const DISPOSED: u8 = 0x01;
/// Length of the header in an `ANMF` chunk.
const HEADER_BYTES: usize = 16;

/// Reads the header of an animated file; `None` if it is not animated. Only complete frames are counted.
///
/// # Errors
///
/// [`Error::Undecodable`].
pub(crate) fn read_source(bytes: &[u8]) -> Result<Option<Source>, Error> {
    let mut chunks = Chunks::in_file(bytes)?;
    let sides = match chunks.next() {
        Some((name, [flags, _, _, _, a, b, c, d, e, f, ..]))
            if name == *b"VP8X" && flags & IS_ANIMATED != 0 =>
        {
            (riff::u24([*a, *b, *c]) + 1, riff::u24([*d, *e, *f]) + 1)
        }
        _ => return Ok(None),
    };
    let mut source = Source { frames: 0, is_lossless: true, ..Source::still(Format::WebP, sides) };
    for (name, bytes) in chunks {
        match &name {
            b"ANMF" => {
                let mut chunks = Chunks::new(bytes.get(HEADER_BYTES..).unwrap_or_default());
                source.frames += 1;
                source.is_lossless &= chunks.all(|(name, _)| name != *b"VP8 ");
            }
            b"EXIF" => source.orientation = orientation::from_exif(bytes),
            _ => {}
        }
    }
    match source.frames {
        0 => Err(Error::undecodable("no frames")),
        _ => Ok(Some(source)),
    }
}

pub(super) struct WebPReader<'a> {
    chunks: Chunks<'a>,
    canvas: Canvas,
    plays: LoopCount,
    profile: Option<&'a [u8]>,
    /// Area to be cleared before the next frame.
    disposed: Option<Area>,
    has_shown: bool,
}

/// Header of an `ANMF` chunk.
struct Header<'a> {
    place: [u32; 4],
    delay_ms: u32,
    flags: u8,
    chunks: Chunks<'a>,
}

impl<'a> WebPReader<'a> {
    pub(super) fn new(bytes: &'a [u8], sides: (u32, u32)) -> Result<Self, Error> {
        let find =
            |name| Chunks::in_file(bytes).map(|mut chunks| chunks.find(|chunk| chunk.0 == name));
        let plays = match find(*b"ANIM")? {
            Some((_, [_, _, _, _, low, high, ..])) => u16::from_le_bytes([*low, *high]),
            _ => return Err(Error::undecodable("missing loop count")),
        };
        let profile = find(*b"ICCP")?.map(|(_, profile)| profile);
        Ok(Self {
            chunks: Chunks::in_file(bytes)?,
            canvas: Canvas::new(sides),
            plays: LoopCount::from_webp(plays),
            profile: profile.filter(|profile| profile.len() <= PROFILE_BYTES_MAX),
            disposed: None,
            has_shown: false,
        })
    }

    fn draw(&mut self, frame: &[u8]) -> Result<u32, Error> {
        let header = Header::read(frame)?;
        let [left, top, width, height] = header.place;
        let area = self.canvas.clip(left, top, width, height);
        if (area.width, area.height) != (width as usize, height as usize) {
            return Err(Error::undecodable("frame outside the canvas"));
        }
        let still = decode(header.chunks, (width, height))?;
        let channels = still.layout.channels();
        let rows = still.samples.chunks_exact(area.width * channels);
        for (row, samples) in self.canvas.rows_mut(area).zip(rows) {
            for (under, sample) in row.iter_mut().zip(samples.chunks_exact(channels)) {
                let over = match sample {
                    [r, g, b, a] => [*r, *g, *b, *a],
                    [r, g, b] => [*r, *g, *b, 255],
                    _ => continue,
                };
                *under = if header.flags & NOT_BLENDED != 0 { over } else { blend(over, *under) };
            }
        }
        self.disposed = (header.flags & DISPOSED != 0).then_some(area);
        Ok(header.delay_ms)
    }
}

impl FrameReader for WebPReader<'_> {
    fn next(&mut self, stop: Stop<'_>) -> Result<Option<u32>, Error> {
        if stop() {
            return Err(Error::Cancelled);
        }
        if let Some(area) = self.disposed.take() {
            self.canvas.clear(area);
        }
        let Some((_, frame)) = self.chunks.find(|chunk| chunk.0 == *b"ANMF") else {
            return match self.has_shown {
                true => Ok(None),
                false => Err(Error::undecodable("no frames")),
            };
        };
        match self.draw(frame) {
            Ok(delay_ms) => {
                self.has_shown = true;
                Ok(Some(delay_ms))
            }
            Err(Error::Undecodable(_)) if self.has_shown => {
                self.chunks = Chunks::new(&[]);
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    fn canvas(&self) -> &Canvas {
        &self.canvas
    }

    fn take_changed(&mut self) -> Option<Area> {
        self.canvas.take_changed()
    }

    fn plays(&self) -> LoopCount {
        self.plays
    }

    fn profile(&self) -> Option<&[u8]> {
        self.profile
    }
}

impl<'a> Header<'a> {
    fn read(frame: &'a [u8]) -> Result<Self, Error> {
        let Some((head, chunks)) = frame.split_first_chunk::<HEADER_BYTES>() else {
            return Err(Error::undecodable("missing frame header"));
        };
        let [numbers @ .., flags] = head;
        let [left, top, width, height, delay_ms] =
            [0, 3, 6, 9, 12].map(|at| riff::u24([numbers[at], numbers[at + 1], numbers[at + 2]]));
        let place = [left * 2, top * 2, width + 1, height + 1];
        Ok(Self { place, delay_ms, flags: *flags, chunks: Chunks::new(chunks) })
    }
}

/// Decodes a frame, whose chunks are those of a still file.
fn decode(chunks: Chunks<'_>, sides: (u32, u32)) -> Result<PixelBuffer, Error> {
    let mut still = Vec::new();
    for (name, bytes) in chunks {
        match &name {
            b"ALPH" if still.is_empty() => {
                let [width, height] =
                    [sides.0, sides.1].map(|side| riff::to_u24(side as usize - 1));
                let flags = [HAS_ALPHA, 0, 0, 0];
                riff::push(&mut still, *b"VP8X", &[&flags[..], &width, &height].concat())?;
                riff::push(&mut still, name, bytes)?;
            }
            b"VP8 " | b"VP8L" => {
                riff::push(&mut still, name, bytes)?;
                break;
            }
            _ => {}
        }
    }
    let still = riff::file(&still)?;
    // Checked before allocation: the frame is inside the canvas, whose size is bounded.
    if stream_sides(&still)? != sides {
        return Err(Error::undecodable("frame size differs from its header"));
    }
    let mut decoder = WebPDecoder::new(Cursor::new(&*still)).map_err(Error::undecodable)?;
    decoder.set_memory_limit(JOB_BYTES_MAX as usize);
    let layout = if decoder.has_alpha() { PixelLayout::Rgba } else { PixelLayout::Rgb };
    let mut samples = vec![0; sides.0 as usize * sides.1 as usize * layout.channels()];
    decoder.read_image(&mut samples).map_err(Error::undecodable)?;
    PixelBuffer::new(sides, layout, samples, None)
}

/// Blends a pixel over another, without premultiplied alpha.
fn blend(over: Pixel, under: Pixel) -> Pixel {
    match (over[3], under[3]) {
        (255, _) | (_, 0) => over,
        (0, _) => under,
        (alpha, beneath) => {
            // In units of 1 / (255 * 255).
            let alpha = u32::from(alpha) * 255;
            let beneath = u32::from(beneath) * (255 - u32::from(over[3]));
            let whole = alpha + beneath;
            let mixed = |at: usize| {
                let sum = u32::from(over[at]) * alpha + u32::from(under[at]) * beneath;
                ((sum + whole / 2) / whole) as u8
            };
            [mixed(0), mixed(1), mixed(2), ((whole + 127) / 255) as u8]
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn webp_pixels_are_alpha_blended() {
        assert_eq!(blend([1, 2, 3, 255], [9, 9, 9, 255]), [1, 2, 3, 255]);
        assert_eq!(blend([1, 2, 3, 0], [9, 9, 9, 200]), [9, 9, 9, 200]);
        assert_eq!(blend([1, 2, 3, 4], [9, 9, 9, 0]), [1, 2, 3, 4]);
        assert_eq!(blend([255, 0, 0, 128], [0, 0, 255, 255]), [128, 0, 127, 255]);
        // Half over half: alpha is three quarters, two thirds of it from the upper pixel.
        assert_eq!(blend([255, 0, 0, 128], [0, 0, 255, 128]), [170, 0, 85, 192]);
    }
}
