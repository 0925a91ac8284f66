//! GIF decoder; for an animation, the first frame.

use crate::Stop;
use crate::animation::{self, GifSummary};
use crate::error::Error;
use crate::format::Format;
use crate::picture::PixelBuffer;
use crate::source_info::Source;

/// Reads the header and counts frames without decompressing them. A truncated or broken file has the frames that
/// begin before the damage.
pub(super) fn read_source(bytes: &[u8]) -> Result<Source, Error> {
    let GifSummary { sides, frames, .. } = GifSummary::read(bytes)?;
    Ok(Source { frames, is_lossless: true, ..Source::still(Format::Gif, sides) })
}

pub(super) fn decode(bytes: &[u8], source: &Source, stop: Stop<'_>) -> Result<PixelBuffer, Error> {
    animation::first_frame(bytes, source, stop)
}
