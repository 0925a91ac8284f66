//! Encodes animated WebP.
//!
//! Each frame is a still picture of the changed area, encoded by libwebp; the container is written here, by the
//! "WebP Container Specification". A frame replaces the pixels under it, including alpha, and none is disposed of,
//! so that any frame can follow any other.

use super::canvas::{Area, Canvas};
use super::frame_writer::{FrameWriter, TimedFrame, check_file_size};
use super::loop_count::LoopCount;
use super::webp_frames::{HAS_ALPHA, IS_ANIMATED, NOT_BLENDED};
use crate::Stop;
use crate::encode::webp;
use crate::error::Error;
use crate::picture::{PixelBuffer, PixelLayout};
use crate::plan::Quality;
use crate::riff::{self, CHUNK_HEAD_BYTES, Chunks, FILE_HEAD_BYTES};

/// Offset of the file flags, at the start of the first chunk.
const FLAGS_AT: usize = FILE_HEAD_BYTES + CHUNK_HEAD_BYTES;

pub(super) struct WebPWriter {
    quality: Quality,
    /// Canvas before the next frame.
    ground: Option<Canvas>,
    /// File written so far; its flags and its length are set at the end.
    file: Vec<u8>,
    bytes_max: usize,
    has_alpha: bool,
}

impl WebPWriter {
    /// Creates a writer with a maximum file size.
    pub(super) fn new(
        sides: (u32, u32),
        quality: Quality,
        plays: LoopCount,
        bytes_max: usize,
    ) -> Result<Self, Error> {
        let mut file = riff::start_file(bytes_max);
        let [width, height] = [sides.0, sides.1].map(|side| riff::to_u24(side as usize - 1));
        riff::push(&mut file, *b"VP8X", &[&[0; 4][..], &width, &height].concat())?;
        let [low, high] = plays.to_webp().to_le_bytes();
        // The background colour, which is never shown, is transparent.
        riff::push(&mut file, *b"ANIM", &[0, 0, 0, 0, low, high])?;
        Ok(Self { quality, ground: None, file, bytes_max, has_alpha: false })
    }

    /// Writes a frame at a position on the canvas, whose column and row are even.
    fn put(
        &mut self,
        picture: &PixelBuffer,
        area: Area,
        delay_ms: u32,
        stop: Stop<'_>,
    ) -> Result<(), Error> {
        self.has_alpha |= picture.layout == PixelLayout::Rgba;
        let still = webp::encode(picture, self.quality, stop)?;
        let mut frame = Vec::with_capacity(still.len() + 16);
        let delay = delay_ms as usize;
        for number in [area.left / 2, area.top / 2, area.width - 1, area.height - 1, delay] {
            frame.extend_from_slice(&riff::to_u24(number));
        }
        frame.push(NOT_BLENDED);
        for (name, bytes) in Chunks::in_file(&still)? {
            if matches!(&name, b"ALPH" | b"VP8 " | b"VP8L") {
                riff::push(&mut frame, name, bytes)?;
            }
        }
        check_file_size(&self.file, CHUNK_HEAD_BYTES + frame.len(), self.bytes_max)?;
        riff::push(&mut self.file, *b"ANMF", &frame)
    }
}

impl FrameWriter for WebPWriter {
    /// Maximum of 24 bits.
    const DELAY_MS_MAX: u32 = 0xff_ffff;

    fn round(&self, _: &mut Canvas) {}

    fn write(&mut self, shown: &TimedFrame<'_>, stop: Stop<'_>) -> Result<(), Error> {
        let canvas = shown.canvas;
        let area = match &self.ground {
            None => canvas.full_area(),
            // A frame must have pixels, even if nothing changed.
            Some(ground) => even(ground.changed_to(canvas).unwrap_or(canvas.clip(0, 0, 1, 1))),
        };
        self.put(&canvas.part(area)?, area, shown.delay_ms, stop)?;
        self.ground = Some(canvas.clone());
        Ok(())
    }

    fn stay(&mut self, delay_ms: u32, stop: Stop<'_>) -> Result<(), Error> {
        let Some(ground) = &self.ground else { return Ok(()) };
        let dot = ground.clip(0, 0, 1, 1);
        let picture = ground.part(dot)?;
        self.put(&picture, dot, delay_ms, stop)
    }

    fn finish(mut self) -> Result<Vec<u8>, Error> {
        if let Some(flags) = self.file.get_mut(FLAGS_AT) {
            *flags = IS_ANIMATED | if self.has_alpha { HAS_ALPHA } else { 0 };
        }
        self.file.shrink_to_fit();
        riff::finish_file(self.file)
    }
}

/// Extends an area to even offsets, which are stored halved.
fn even(area: Area) -> Area {
    let (left, top) = (area.left & !1, area.top & !1);
    Area { left, top, width: area.width + area.left - left, height: area.height + area.top - top }
}
