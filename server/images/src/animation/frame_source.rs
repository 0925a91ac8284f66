//! Frame source: common interface of the animation decoders.

use super::canvas::{Area, Canvas};
use super::gif_frames::GifReader;
use super::loop_count::LoopCount;
use super::webp_frames::WebPReader;
use crate::Stop;
use crate::error::Error;
use crate::format::Format;
use crate::source_info::Source;

/// Frames of a file, each composited with its predecessors.
pub(super) trait FrameReader {
    /// Composites the next frame on the canvas and returns its duration in milliseconds, as stated in the file;
    /// `None` after the last one.
    ///
    /// A file with an unreadable first frame is undecodable; one that breaks later ends there.
    fn next(&mut self, stop: Stop<'_>) -> Result<Option<u32>, Error>;

    /// Returns the canvas with the current frame.
    fn canvas(&self) -> &Canvas;

    /// Returns the area outside of which the frame is unchanged since the last call; initially everything is
    /// transparent.
    fn take_changed(&mut self) -> Option<Area>;

    /// Returns the loop count.
    fn plays(&self) -> LoopCount;

    /// Returns the colour profile of all frames.
    fn profile(&self) -> Option<&[u8]>;
}

/// Opens a file whose header was read, and whose plan is within the limits.
pub(super) fn open<'a>(
    bytes: &'a [u8],
    source: &Source,
) -> Result<Box<dyn FrameReader + 'a>, Error> {
    match source.format {
        Format::Gif => Ok(Box::new(GifReader::new(bytes, source.sides)?)),
        Format::WebP => Ok(Box::new(WebPReader::new(bytes, source.sides)?)),
        format => Err(Error::Failed(format!("{} does not move", format.extension()))),
    }
}
