//! Renders a plan: decode, resize, convert, orient, encode.

use scaled_jpeg::Header;

use crate::animation::View;
use crate::decode::{Decoded, layout_of};
use crate::error::Error;
use crate::format::Format;
use crate::picture::PixelBuffer;
use crate::plan::Plan;
use crate::source_info::Source;
use crate::{Stop, animation, decode, encode, profile, resize};

/// Reads the header of a picture in this format.
///
/// # Errors
///
/// [`Error::Undecodable`], and [`Error::TooLarge`] of a file that is too long.
pub fn read_source(format: Format, bytes: &[u8]) -> Result<Source, Error> {
    decode::read_source(format, bytes)
}

/// Reads the header from the first bytes of a file; `None` if they do not contain everything that a plan depends on.
/// [`Source::scanned_samples`] may be missing.
pub fn read_source_of_start(format: Format, start: &[u8]) -> Option<Source> {
    decode::read_source_of_start(format, start)
}

/// Renders a plan from a file with the header `source`.
///
/// The picture is resized, converted to sRGB, oriented and encoded, in this order, so that steps with a cost per
/// pixel follow the reduction.
///
/// # Errors
///
/// Every [`Error`]. `stop` is called from time to time, and cancels the work with [`Error::Cancelled`].
pub fn render(
    bytes: &[u8],
    source: &Source,
    plan: &Plan,
    stop: Stop<'_>,
) -> Result<Vec<u8>, Error> {
    let cut = stored_cut(source, plan);
    let sides = source.orientation.oriented_size(plan.sides);
    if plan.is_animated {
        let view = View { cut, sides, orientation: source.orientation };
        return animation::render(bytes, source, plan, &view, stop);
    }
    let decoded = decode::decode(bytes, source, plan, stop)?;
    if stop() {
        return Err(Error::Cancelled);
    }
    let small = shrink(decoded, source, cut, sides)?;
    let seen = source.orientation.apply(profile::to_srgb(small)?);
    encode::encode(seen, plan.format, plan.quality, stop)
}

/// Returns the visible part of the stored picture: left, top, width, height in its pixels.
fn stored_cut(source: &Source, plan: &Plan) -> [f64; 4] {
    let (width, height) = source.oriented_size();
    let cut = plan.cut.unwrap_or([0.0, 0.0, f64::from(width), f64::from(height)]);
    let sides = (f64::from(source.sides.0), f64::from(source.sides.1));
    source.orientation.stored_box(cut, sides)
}

/// Resizes a part of the decoded picture.
fn shrink(
    decoded: Decoded,
    source: &Source,
    [left, top, across, down]: [f64; 4],
    sides: (u32, u32),
) -> Result<PixelBuffer, Error> {
    // Scales the part to something that shows the whole stored picture in this many columns and rows.
    let part = |covered: (f64, f64)| {
        let (x, y) = (covered.0 / f64::from(source.sides.0), covered.1 / f64::from(source.sides.1));
        [left * x, top * y, across * x, down * y]
    };
    match decoded {
        Decoded::Pixels(picture) => {
            let cut = part((f64::from(picture.width), f64::from(picture.height)));
            resize::resize_pixels(picture, sides, cut)
        }
        // Planes are smaller than pixels, and only the colours of the few resized pixels are converted.
        Decoded::Planes(decoded) => {
            let mut planes = Vec::with_capacity(decoded.planes.len());
            for plane in decoded.planes {
                let cut = part(plane.covered);
                planes.push(resize::resize_plane(plane, sides, cut)?);
            }
            let Header { colour, profile, .. } = decoded.header;
            let planes: Vec<&[u8]> = planes.iter().map(Vec::as_slice).collect();
            let (layout, samples) = (layout_of(colour), scaled_jpeg::to_pixels(colour, &planes));
            PixelBuffer::new(sides, layout, samples, profile)
        }
    }
}
