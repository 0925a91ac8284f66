//! What writes pictures one after the other, and the order in which it is given them.

use super::canvas::Canvas;
use crate::Stop;
use crate::error::Error;

/// A delay up to this, in milliseconds, is shown by every browser as if it were [`HASTY_SHOWN_MS`].
const HASTY_MS: u32 = 10;
const HASTY_SHOWN_MS: u32 = 100;

/// A picture that is to be written.
pub(super) struct Shown<'a> {
    pub(super) canvas: &'a Canvas,
    /// Up to the writer's longest.
    pub(super) delay_ms: u32,
    /// The picture that follows.
    pub(super) next: Option<&'a Canvas>,
}

/// Writes an animation.
pub(super) trait Writer {
    /// How long a frame may stay.
    const DELAY_MS_MAX: u32;

    /// Brings a picture to what the format can hold, colours aside.
    fn round(&self, canvas: &mut Canvas);

    /// Writes the next picture.
    fn write(&mut self, shown: &Shown<'_>, stop: Stop<'_>) -> Result<(), Error>;

    /// The file.
    fn finish(self) -> Result<Vec<u8>, Error>;
}

/// Hands pictures to a writer: equal ones are joined, and what stays longer than the format can say is written several
/// times. Two pictures are held at most.
///
/// Delays stay what they are, though browsers show those of 10 ms and less for 100 ms. Where pictures are joined the
/// time for which they are seen is kept, so there such a delay counts 100 ms.
pub(super) struct Sequence<W> {
    writer: W,
    held: Option<(Canvas, u32)>,
}

impl<W: Writer> Sequence<W> {
    pub(super) fn new(writer: W) -> Self {
        Self { writer, held: None }
    }

    pub(super) fn push(
        &mut self,
        mut canvas: Canvas,
        delay_ms: u32,
        stop: Stop<'_>,
    ) -> Result<(), Error> {
        self.writer.round(&mut canvas);
        if let Some((held, held_ms)) = &mut self.held {
            if *held == canvas {
                *held_ms = seen_ms(*held_ms).saturating_add(seen_ms(delay_ms));
                return Ok(());
            }
            write(&mut self.writer, held, *held_ms, Some(&canvas), stop)?;
        }
        self.held = Some((canvas, delay_ms));
        Ok(())
    }

    pub(super) fn finish(mut self, stop: Stop<'_>) -> Result<Vec<u8>, Error> {
        if let Some((held, held_ms)) = &self.held {
            write(&mut self.writer, held, *held_ms, None, stop)?;
        }
        self.writer.finish()
    }
}

fn write<W: Writer>(
    writer: &mut W,
    canvas: &Canvas,
    mut delay_ms: u32,
    next: Option<&Canvas>,
    stop: Stop<'_>,
) -> Result<(), Error> {
    while delay_ms > W::DELAY_MS_MAX {
        let shown = Shown { canvas, delay_ms: W::DELAY_MS_MAX, next: Some(canvas) };
        writer.write(&shown, stop)?;
        delay_ms -= W::DELAY_MS_MAX;
    }
    writer.write(&Shown { canvas, delay_ms, next }, stop)
}

fn seen_ms(delay_ms: u32) -> u32 {
    if delay_ms <= HASTY_MS { HASTY_SHOWN_MS } else { delay_ms }
}
