//! AVIF decoder; for a sequence, the primary still image.
//!
//! ```text
//! box_reader    numbers and boxes
//! container     items, properties, references
//! primary_item  resolution of the primary image
//! av1           data of an item into planes
//! yuv_to_rgb    planes into red, green and blue
//! tile_canvas   tiles into a picture
//! ```
//!
//! Supported: 8, 10 and 12 bits, monochrome, subsampled chroma, grids and alpha. Not supported: crops, layer
//! selection, derived images other than grids, and sequences without a still image.

#![allow(clippy::big_endian_bytes, reason = "the fields of its boxes are")]

mod av1;
mod box_reader;
mod container;
mod primary_item;
#[cfg(test)]
mod tests;
mod tile_canvas;
mod yuv_to_rgb;

use self::av1::Frame;
use self::container::Container;
use self::primary_item::{CodedImage, PrimaryImage};
use self::tile_canvas::TileAssembler;
use super::synthetic_profile::{self, VideoCurve};
use crate::Stop;
use crate::error::Error;
use crate::format::Format;
use crate::picture::{PixelBuffer, PixelLayout};
use crate::source_info::Source;

pub(super) fn read_source(bytes: &[u8]) -> Result<Source, Error> {
    let shown = PrimaryImage::from_container(&Container::read(bytes)?)?;
    Ok(Source { orientation: shown.orientation, ..Source::still(Format::Avif, shown.colour.sides) })
}

pub(super) fn decode(bytes: &[u8], source: &Source, stop: Stop<'_>) -> Result<PixelBuffer, Error> {
    let container = Container::read(bytes)?;
    let shown = PrimaryImage::from_container(&container)?;
    if shown.colour.sides != source.sides {
        return Err(Error::undecodable("dimensions differ from the header"));
    }
    let mut canvas = None;
    let mut profile = shown.profile.map(<[u8]>::to_vec);
    for (corner, item) in shown.colour.placed() {
        let frame = decode_tile(&container, &shown.colour, item, stop)?;
        let coding = shown.coding.unwrap_or(frame.coding);
        let (primaries, transfer) = (coding.primaries, coding.transfer);
        let named = || {
            synthetic_profile::icc_from_cicp(primaries, transfer, VideoCurve::Srgb, frame.is_grey())
        };
        profile = profile.or_else(named);
        let layout = match (frame.is_grey(), shown.alpha.is_some()) {
            (true, false) => PixelLayout::Grey,
            (true, true) => PixelLayout::GreyAlpha,
            (false, false) => PixelLayout::Rgb,
            (false, true) => PixelLayout::Rgba,
        };
        let canvas = canvas.get_or_insert_with(|| TileAssembler::new(source.sides, layout));
        canvas.put_colour(&frame, coding, corner)?;
    }
    let mut canvas = canvas.ok_or_else(|| Error::undecodable("no tiles"))?;
    if let Some(alpha) = &shown.alpha {
        for (corner, item) in alpha.placed() {
            canvas.put_alpha(&decode_tile(&container, alpha, item, stop)?, corner)?;
        }
        if shown.is_premultiplied {
            canvas.divide_by_alpha();
        }
    }
    canvas.finish(profile)
}

fn decode_tile(
    container: &Container<'_>,
    coded: &CodedImage,
    item: u32,
    stop: Stop<'_>,
) -> Result<Frame, Error> {
    if stop() {
        return Err(Error::Cancelled);
    }
    av1::decode(&container.data(item)?, coded.tile_sides)
}
