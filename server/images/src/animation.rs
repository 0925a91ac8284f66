//! Animations: decode, resize and encode frame by frame.
//!
//! ```text
//! frame_source  next frame, composited with its predecessors: gif_frames (by gif_blocks), webp_frames
//! canvas        canvas of the compositing
//! frame_resizer resizing of the changed area
//! frame_writer  merging of equal frames, encoding of changes: gif_writer, webp_writer
//! loop_count    loop count
//! ```
//!
//! Only a few frames are in memory: of the source, the canvas, one frame and the pixels under it; of the output,
//! four frames and the file. Space for the file is reserved up to the maximum of the plan, so that it is not copied
//! when it grows; untouched pages use no memory.

mod canvas;
mod frame_resizer;
mod frame_source;
mod frame_writer;
mod gif_blocks;
mod gif_frames;
mod gif_writer;
mod loop_count;
#[cfg(test)]
mod tests;
mod webp_frames;
mod webp_writer;

use self::frame_resizer::FrameScaler;
pub(super) use self::frame_resizer::View;
use self::frame_writer::{FrameMerger, FrameWriter};
pub(super) use self::gif_blocks::GifSummary;
use self::gif_writer::GifWriter;
pub(super) use self::webp_frames::read_source as read_webp_source;
use self::webp_writer::WebPWriter;
use super::Stop;
use super::error::Error;
use super::format::Format;
use super::picture::PixelBuffer;
use super::plan::{Plan, Quality};
use super::source_info::Source;

/// Returns the first frame of a file that may be animated.
pub(super) fn first_frame(
    bytes: &[u8],
    source: &Source,
    stop: Stop<'_>,
) -> Result<PixelBuffer, Error> {
    let mut frames = frame_source::open(bytes, source)?;
    frames.next(stop)?;
    frames.canvas().to_pixels(frames.profile().map(<[u8]>::to_vec))
}

/// Renders an animated plan: a view of the frames of a file.
///
/// # Errors
///
/// Every [`Error`], among them [`Error::TooLarge`] if the output exceeds the maximum of the plan; `stop` is called
/// at least once per frame.
pub(super) fn render(
    bytes: &[u8],
    source: &Source,
    plan: &Plan,
    view: &View,
    stop: Stop<'_>,
) -> Result<Vec<u8>, Error> {
    let frames = frame_source::open(bytes, source)?;
    let plays = frames.plays();
    let bytes_max = plan.animation_bytes_max(source) as usize;
    match (plan.format, plan.quality) {
        (Format::WebP, quality) => {
            let writer = WebPWriter::new(plan.sides, quality, plays, bytes_max)?;
            copy(frames, writer, source.frames, view, stop)
        }
        (Format::Gif, Quality::Colours(colours)) => {
            let writer = GifWriter::new(plan.sides, colours, plays, bytes_max)?;
            copy(frames, writer, source.frames, view, stop)
        }
        (format, quality) => {
            Err(Error::Failed(format!("{} cannot be animated at {quality:?}", format.extension())))
        }
    }
}

/// Copies frames to a writer, at most as many as the plan was made for.
fn copy<W: FrameWriter>(
    mut frames: Box<dyn frame_source::FrameReader + '_>,
    writer: W,
    count: u32,
    view: &View,
    stop: Stop<'_>,
) -> Result<Vec<u8>, Error> {
    let mut shrunk = FrameScaler::new(view, frames.profile());
    let mut sequence = FrameMerger::new(writer);
    for _ in 0..count {
        let Some(delay_ms) = frames.next(stop)? else { break };
        let changed = frames.take_changed();
        sequence.push(shrunk.next(frames.canvas(), changed)?, delay_ms, stop)?;
    }
    sequence.finish(stop)
}
