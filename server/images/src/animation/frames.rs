//! Where the pictures of an animation come from.

use super::canvas::{Area, Canvas};
use super::gif_frames::GifFrames;
use super::plays::Plays;
use super::webp_frames::WebPFrames;
use crate::Stop;
use crate::error::Error;
use crate::format::Format;
use crate::source::Source;

/// The pictures of a file, one after the other, each composed with those before it.
pub(super) trait Frames {
    /// Composes the next picture on the canvas; how long it stays, in milliseconds, as the file says. None after the
    /// last one.
    ///
    /// A file whose first picture cannot be read is undecodable; one that breaks later ends there.
    fn next(&mut self, stop: Stop<'_>) -> Result<Option<u32>, Error>;

    /// The picture.
    fn canvas(&self) -> &Canvas;

    /// Outside of this, if anywhere, the picture is as it was when this was asked last; at first all of it is clear.
    fn take_changed(&mut self) -> Option<Area>;

    /// How often all of it plays.
    fn plays(&self) -> Plays;

    /// The colour profile that all pictures are in.
    fn profile(&self) -> Option<&[u8]>;
}

/// Opens a file of which the header was read, and whose plan holds its bounds.
pub(super) fn open<'a>(bytes: &'a [u8], source: &Source) -> Result<Box<dyn Frames + 'a>, Error> {
    match source.format {
        Format::Gif => Ok(Box::new(GifFrames::new(bytes, source.sides)?)),
        Format::WebP => Ok(Box::new(WebPFrames::new(bytes, source.sides)?)),
        format => Err(Error::Failed(format!("{} does not move", format.extension()))),
    }
}
