//! Frame writer trait, and merging of identical frames.

use super::canvas::Canvas;
use crate::Stop;
use crate::error::{Error, LimitKind};

/// Maximum duration in milliseconds that every browser shows as [`SHORT_DELAY_SHOWN_MS`].
const HASTY_MS: u32 = 10;
const SHORT_DELAY_SHOWN_MS: u32 = 100;

/// Frame to be written.
pub(super) struct TimedFrame<'a> {
    pub(super) canvas: &'a Canvas,
    /// Duration, at most the maximum of the writer.
    pub(super) delay_ms: u32,
    /// Following frame, if there is one.
    pub(super) next: Option<&'a Canvas>,
}

/// Encoder of an animation.
pub(super) trait FrameWriter {
    /// Maximum duration of a frame in milliseconds.
    const DELAY_MS_MAX: u32;

    /// Reduces a frame to what the format can store, except for colours.
    fn round(&self, canvas: &mut Canvas);

    /// Writes the next frame.
    fn write(&mut self, shown: &TimedFrame<'_>, stop: Stop<'_>) -> Result<(), Error>;

    /// Extends the duration of the last frame, if none follows, by writing a minimal frame of one pixel.
    fn stay(&mut self, delay_ms: u32, stop: Stop<'_>) -> Result<(), Error>;

    /// Returns the file.
    fn finish(self) -> Result<Vec<u8>, Error>;
}

/// Passes frames to a writer: equal ones are merged, and durations above the maximum of the format are split. At
/// most two frames are in memory.
///
/// Durations are unchanged, although browsers show those of 10 ms and less for 100 ms. When frames are merged, the
/// time for which they are visible is preserved, so such a duration counts as 100 ms.
pub(super) struct FrameMerger<W> {
    writer: W,
    held: Option<(Canvas, u32)>,
}

impl<W: FrameWriter> FrameMerger<W> {
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
                *held_ms = displayed_ms(*held_ms).saturating_add(displayed_ms(delay_ms));
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

fn write<W: FrameWriter>(
    writer: &mut W,
    canvas: &Canvas,
    mut delay_ms: u32,
    next: Option<&Canvas>,
    stop: Stop<'_>,
) -> Result<(), Error> {
    if delay_ms > W::DELAY_MS_MAX {
        writer.write(&TimedFrame { canvas, delay_ms: W::DELAY_MS_MAX, next: None }, stop)?;
        delay_ms -= W::DELAY_MS_MAX;
    }
    while delay_ms > W::DELAY_MS_MAX {
        writer.stay(W::DELAY_MS_MAX, stop)?;
        delay_ms -= W::DELAY_MS_MAX;
    }
    writer.write(&TimedFrame { canvas, delay_ms, next }, stop)
}

/// Checks that a file may grow by this many bytes.
pub(super) fn check_file_size(file: &[u8], more: usize, bytes_max: usize) -> Result<(), Error> {
    match file.len().saturating_add(more) <= bytes_max {
        true => Ok(()),
        false => Err(Error::TooLarge(LimitKind::Memory)),
    }
}

fn displayed_ms(delay_ms: u32) -> u32 {
    if delay_ms <= HASTY_MS { SHORT_DELAY_SHOWN_MS } else { delay_ms }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Log of the calls: durations of frames and of extensions.
    #[derive(Default)]
    struct Asked(Vec<(&'static str, u32)>);

    impl FrameWriter for &mut Asked {
        const DELAY_MS_MAX: u32 = 100;

        fn round(&self, _: &mut Canvas) {}

        fn write(&mut self, shown: &TimedFrame<'_>, _: Stop<'_>) -> Result<(), Error> {
            let what = if shown.next.is_some() { "followed" } else { "alone" };
            self.0.push((what, shown.delay_ms));
            Ok(())
        }

        fn stay(&mut self, delay_ms: u32, _: Stop<'_>) -> Result<(), Error> {
            self.0.push(("stays", delay_ms));
            Ok(())
        }

        fn finish(self) -> Result<Vec<u8>, Error> {
            Ok(Vec::new())
        }
    }

    #[test]
    fn frame_merging_compares_each_frame_at_most_twice() {
        let asked_for = |delays: [u32; 2]| {
            let mut asked = Asked::default();
            let mut sequence = FrameMerger::new(&mut asked);
            for (side, delay_ms) in (1..).zip(delays) {
                sequence.push(Canvas::new((side, 1)), delay_ms, &|| false).unwrap();
            }
            sequence.finish(&|| false).unwrap();
            asked.0
        };
        let (stays, last) = (("stays", 100), ("alone", 7));
        assert_eq!(asked_for([100, 7]), [("followed", 100), last]);
        assert_eq!(asked_for([101, 7]), [("alone", 100), ("followed", 1), last]);
        assert_eq!(asked_for([400, 7]), [("alone", 100), stays, stays, ("followed", 100), last]);
        assert_eq!(asked_for([7, 201]), [("followed", 7), ("alone", 100), stays, ("alone", 1)]);
        let long = asked_for([1_000_000, 1]);
        assert_eq!(long.iter().filter(|(what, _)| *what != "stays").count(), 3);
    }
}
