//! Animated WebP.
//!
//! Each frame is a still picture of what has changed, which libwebp encodes; the container around them is written here,
//! by the "WebP Container Specification". A frame replaces what is under it, alpha and all, and none is disposed of, so
//! that any picture can follow any other.

use super::canvas::{Area, Canvas};
use super::plays::Plays;
use super::webp_frames::{HAS_ALPHA, IS_ANIMATED, NOT_BLENDED};
use super::writer::{Shown, Writer};
use crate::Stop;
use crate::encode::webp;
use crate::error::Error;
use crate::picture::Layout;
use crate::plan::Quality;
use crate::riff::{self, Chunks};

pub(super) struct WebPWriter {
    quality: Quality,
    plays: Plays,
    sides: (u32, u32),
    /// What is seen before the next frame.
    ground: Option<Canvas>,
    has_alpha: bool,
    /// `ANMF` chunks.
    frames: Vec<u8>,
}

impl WebPWriter {
    pub(super) fn new(sides: (u32, u32), quality: Quality, plays: Plays) -> Self {
        Self { quality, plays, sides, ground: None, has_alpha: false, frames: Vec::new() }
    }
}

impl Writer for WebPWriter {
    /// 24 bits.
    const DELAY_MS_MAX: u32 = 0xff_ffff;

    fn round(&self, _: &mut Canvas) {}

    fn write(&mut self, shown: &Shown<'_>, stop: Stop<'_>) -> Result<(), Error> {
        let canvas = shown.canvas;
        let area = match &self.ground {
            None => canvas.whole(),
            // A frame has pixels, even where nothing has changed.
            Some(ground) => even(ground.changed_to(canvas).unwrap_or(canvas.clip(0, 0, 1, 1))),
        };
        let picture = canvas.part(area)?;
        self.has_alpha |= picture.layout == Layout::Rgba;
        let still = webp::encode(&picture, self.quality, stop)?;
        let mut frame = Vec::with_capacity(still.len() + 16);
        let delay = shown.delay_ms as usize;
        for number in [area.left / 2, area.top / 2, area.width - 1, area.height - 1, delay] {
            frame.extend_from_slice(&riff::to_u24(number));
        }
        frame.push(NOT_BLENDED);
        for (name, bytes) in Chunks::of_file(&still)? {
            if matches!(&name, b"ALPH" | b"VP8 " | b"VP8L") {
                riff::push(&mut frame, name, bytes)?;
            }
        }
        riff::push(&mut self.frames, *b"ANMF", &frame)?;
        self.ground = Some(canvas.clone());
        Ok(())
    }

    fn finish(self) -> Result<Vec<u8>, Error> {
        let mut chunks = Vec::with_capacity(self.frames.len() + 64);
        let flags = IS_ANIMATED | if self.has_alpha { HAS_ALPHA } else { 0 };
        let [width, height] =
            [self.sides.0, self.sides.1].map(|side| riff::to_u24(side as usize - 1));
        riff::push(&mut chunks, *b"VP8X", &[&[flags, 0, 0, 0][..], &width, &height].concat())?;
        let [low, high] = self.plays.to_webp().to_le_bytes();
        // The background, which nobody shows, is clear.
        riff::push(&mut chunks, *b"ANIM", &[0, 0, 0, 0, low, high])?;
        chunks.extend_from_slice(&self.frames);
        riff::file(&chunks)
    }
}

/// The smallest area around one that begins at an even column and row: offsets are stored halved.
fn even(area: Area) -> Area {
    let (left, top) = (area.left & !1, area.top & !1);
    Area { left, top, width: area.width + area.left - left, height: area.height + area.top - top }
}
