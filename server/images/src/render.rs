//! From a file to another file: the whole of it.

use crate::error::Error;
use crate::format::Format;
use crate::picture::Picture;
use crate::plan::Plan;
use crate::source::Source;
use crate::{Stop, animation, decode, encode, profile, resize};

/// Reads the header of a picture in this format.
///
/// # Errors
///
/// [`Error::Undecodable`], and [`Error::TooLarge`] of a file that is too long.
pub fn read_source(format: Format, bytes: &[u8]) -> Result<Source, Error> {
    decode::read_source(format, bytes)
}

/// The same from the first bytes of a file, where these say all that the whole file says of it. None: they do not.
pub fn read_source_of_start(format: Format, start: &[u8]) -> Option<Source> {
    decode::read_source_of_start(format, start)
}

/// Makes the picture of a plan, out of the file whose header the source is.
///
/// The stored picture is shrunk, brought into sRGB, turned, and written, in this order: what costs by the pixel comes
/// when there are few.
///
/// # Errors
///
/// Every [`Error`]. `stop` is asked now and then, and ends the work with [`Error::Cancelled`].
pub fn render(
    bytes: &[u8],
    source: &Source,
    plan: &Plan,
    stop: Stop<'_>,
) -> Result<Vec<u8>, Error> {
    if plan.is_animated {
        let seen = |picture| as_seen(decode::Decoded::whole(picture), source, plan);
        return animation::make(bytes, source, plan, &seen, stop);
    }
    let decoded = decode::decode(bytes, source, plan, stop)?;
    if stop() {
        return Err(Error::Cancelled);
    }
    encode::encode(as_seen(decoded, source, plan)?, plan.format, plan.quality, stop)
}

fn as_seen(decoded: decode::Decoded, source: &Source, plan: &Plan) -> Result<Picture, Error> {
    let small = shrink(decoded, source, plan)?;
    Ok(source.orientation.apply(profile::to_srgb(small)?))
}

fn shrink(decoded: decode::Decoded, source: &Source, plan: &Plan) -> Result<Picture, Error> {
    let decode::Decoded { picture, covered } = decoded;
    let sides = (f64::from(source.sides.0), f64::from(source.sides.1));
    let seen = source.seen();
    let cut = plan.cut.unwrap_or([0.0, 0.0, f64::from(seen.0), f64::from(seen.1)]);
    let [left, top, across, down] = source.orientation.stored_box(cut, sides);
    let (x, y) = (covered.0 / sides.0, covered.1 / sides.1);
    let cut = [left * x, top * y, across * x, down * y];
    let all = [0.0, 0.0, f64::from(picture.width), f64::from(picture.height)];
    resize::resize(picture, source.orientation.seen(plan.sides), (cut != all).then_some(cut))
}
