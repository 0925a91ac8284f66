//! Encodes animated GIF.
//!
//! Each frame contains only the changed area, with its own palette; unchanged pixels are transparent, which
//! compresses better and leaves the palette to the others. An opaque pixel can become transparent only if the
//! previous frame is disposed of. A frame that is followed by such a change therefore covers the pixels to be
//! cleared and is disposed of.

use gif::{DisposalMethod, Encoder};

use super::canvas::{Area, CLEAR, Canvas, Pixel};
use super::frame_writer::{FrameWriter, TimedFrame, check_file_size};
use super::loop_count::LoopCount;
use crate::Stop;
use crate::encode::gif::frame;
use crate::encode::quantize::{Dither, OPAQUE_FROM, PalettedImage, quantize};
use crate::error::Error;

/// Minimum duration in hundredths of a second that browsers honour; shorter ones are shown for a tenth of a second.
const DELAY_UNITS_MIN: u32 = 2;
/// Size of a frame without colours and pixels (two headers and a terminator), plus the file trailer.
const FRAME_OTHER_BYTES: usize = 8 + 10 + 1 + 1;

pub(super) struct GifWriter {
    encoder: Encoder<Vec<u8>>,
    bytes_max: usize,
    colours: u16,
    /// Canvas before the next frame, after disposal of the previous one; `None` before the first.
    ground: Option<Canvas>,
    /// Rounding error of the durations so far in milliseconds: they are stored in hundredths of a second.
    owed_ms: i32,
}

impl GifWriter {
    /// Creates a writer with a maximum file size.
    pub(super) fn new(
        sides: (u32, u32),
        colours: u16,
        plays: LoopCount,
        bytes_max: usize,
    ) -> Result<Self, Error> {
        let side = |side: u32| u16::try_from(side).map_err(Error::failed);
        let (width, height) = (side(sides.0)?, side(sides.1)?);
        let file = Vec::with_capacity(bytes_max);
        let mut encoder = Encoder::new(file, width, height, &[]).map_err(Error::failed)?;
        encoder.set_repeat(plays.to_gif()).map_err(Error::failed)?;
        Ok(Self { encoder, bytes_max, colours, ground: None, owed_ms: 0 })
    }

    /// Writes a frame at a position on the canvas, with or without disposal.
    fn put(
        &mut self,
        indexed: PalettedImage,
        area: Area,
        is_cleared: bool,
        delay_ms: u32,
    ) -> Result<(), Error> {
        let mut frame = frame(indexed, (area.width as u16, area.height as u16));
        frame.left = area.left as u16;
        frame.top = area.top as u16;
        frame.delay = self.units(delay_ms);
        frame.dispose = match is_cleared {
            true => DisposalMethod::Background,
            false => DisposalMethod::Keep,
        };
        frame.make_lzw_pre_encoded();
        let colours = frame.palette.as_ref().map_or(0, |palette| palette.len() / 3);
        // Colour tables have a power of two entries; data after the first byte is in length-prefixed sub-blocks.
        let blocks = frame.buffer.len().saturating_sub(1).div_ceil(255);
        let colours = colours.next_power_of_two().max(2);
        let bytes = 3 * colours + frame.buffer.len() + blocks + FRAME_OTHER_BYTES;
        check_file_size(self.encoder.get_ref(), bytes, self.bytes_max)?;
        self.encoder.write_lzw_pre_encoded_frame(&frame).map_err(Error::failed)
    }

    /// Converts a duration to hundredths of a second so that the sum of all is exact. A duration that browsers
    /// honour is not shortened below their minimum.
    fn units(&mut self, delay_ms: u32) -> u16 {
        let due = i64::from(delay_ms) + i64::from(self.owed_ms);
        let least = if delay_ms > 10 { DELAY_UNITS_MIN } else { 0 };
        let units = ((due + 5).max(0) / 10).clamp(least.into(), u16::MAX.into());
        self.owed_ms = (due - units * 10).clamp(-10, 10) as i32;
        units as u16
    }
}

impl FrameWriter for GifWriter {
    /// Maximum of 16 bits of hundredths of a second.
    const DELAY_MS_MAX: u32 = 655_350;

    fn round(&self, canvas: &mut Canvas) {
        for pixel in canvas.pixels_mut() {
            *pixel = match *pixel {
                [.., alpha] if alpha < OPAQUE_FROM => CLEAR,
                [r, g, b, _] => [r, g, b, 255],
            };
        }
    }

    fn write(&mut self, shown: &TimedFrame<'_>, stop: Stop<'_>) -> Result<(), Error> {
        let canvas = shown.canvas;
        let area = match &self.ground {
            None => canvas.full_area(),
            // A frame must have pixels, even if nothing changed.
            Some(ground) => ground.changed_to(canvas).unwrap_or(canvas.clip(0, 0, 1, 1)),
        };
        let cleared = shown.next.and_then(|next| canvas.newly_cleared_area(next));
        let area = cleared.map_or(area, |cleared| area.with(cleared));
        let pixels: Vec<Pixel> = match &self.ground {
            None => canvas.snapshot(area),
            Some(ground) => {
                let pairs = canvas.rows(area).flatten().zip(ground.rows(area).flatten());
                pairs.map(|(pixel, under)| if pixel == under { CLEAR } else { *pixel }).collect()
            }
        };
        // Some readers clear to the background colour if a frame has no transparent colour.
        let indexed = match cleared {
            Some(_) => {
                quantize(&pixels, area.width, self.colours.saturating_sub(1), Dither::None, stop)?
                    .with_clear()
            }
            None => quantize(&pixels, area.width, self.colours, Dither::None, stop)?,
        };
        self.put(indexed, area, cleared.is_some(), shown.delay_ms)?;
        let mut ground = canvas.clone();
        if cleared.is_some() {
            ground.clear(area);
        }
        self.ground = Some(ground);
        Ok(())
    }

    fn stay(&mut self, delay_ms: u32, stop: Stop<'_>) -> Result<(), Error> {
        let dot = Area { left: 0, top: 0, width: 1, height: 1 };
        let nothing = quantize(&[CLEAR], dot.width, self.colours, Dither::None, stop)?;
        self.put(nothing, dot, false, delay_ms)
    }

    fn finish(self) -> Result<Vec<u8>, Error> {
        let mut file = self.encoder.into_inner().map_err(Error::failed)?;
        file.shrink_to_fit();
        Ok(file)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn units(delays: &[u32]) -> Vec<u16> {
        let mut writer = GifWriter::new((1, 1), 256, LoopCount::Forever, 99).unwrap();
        delays.iter().map(|delay| writer.units(*delay)).collect()
    }

    #[test]
    fn frame_delay_rounding_error_is_carried_over() {
        assert_eq!(units(&[100, 0, 10, 20]), [10, 0, 1, 2]);
        assert_eq!(units(&[33; 6]), [3, 4, 3, 3, 4, 3]);
        assert_eq!(units(&[655_350, 655_350]), [u16::MAX; 2]);
    }

    #[test]
    fn gif_frame_durations_are_preserved() {
        assert!(units(&[12, 11, 15, 14, 16]).iter().all(|units| *units >= 2));
        // The added time is taken from a later frame, at most one unit per frame.
        assert_eq!(units(&[12, 12, 12, 12, 100]), [2, 2, 2, 2, 9]);
    }
}
