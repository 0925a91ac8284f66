//! GIF; of an animated one the first picture.

use gif::{DecodeOptions, Decoder};

use crate::Stop;
use crate::animation;
use crate::error::Error;
use crate::format::Format;
use crate::picture::Picture;
use crate::source::Source;

/// Counts frames without unpacking them. A file that ends early, or breaks, has those that begin before.
pub(super) fn read_source(bytes: &[u8]) -> Result<Source, Error> {
    let mut options = DecodeOptions::new();
    options.skip_frame_decoding(true);
    let mut decoder = options.read_info(bytes).map_err(Error::undecodable)?;
    let frames = count(&mut decoder)?;
    let sides = (decoder.width().into(), decoder.height().into());
    Ok(Source { frames, is_lossless: true, ..Source::still(Format::Gif, sides) })
}

pub(super) fn decode(bytes: &[u8], source: &Source, stop: Stop<'_>) -> Result<Picture, Error> {
    animation::first(bytes, source, stop)
}

fn count(decoder: &mut Decoder<&[u8]>) -> Result<u32, Error> {
    let mut frames: u32 = 0;
    loop {
        match decoder.next_frame_info() {
            Ok(Some(_)) => frames += 1,
            Ok(None) if frames == 0 => return Err(Error::undecodable("it has no frames")),
            Err(error) if frames == 0 => return Err(Error::undecodable(error)),
            Ok(None) | Err(_) => return Ok(frames),
        }
    }
}
