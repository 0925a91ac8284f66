//! The data of an item into planes: AV1 (AV1 Bitstream & Decoding Process Specification, 5), by `oxideav-av1`.
//!
//! That decoder is safe Rust, so that the worst a crafted file finds in it is a panic, which can be caught. It takes
//! three to four times as long as `rav1d` without assembler, whose released interface is C's: there a panic ends the
//! process.
//!
//! Only the units that a picture consists of reach it, and only as many pictures as an item may have layers.

use oxideav_av1::decoder::{SpecDecodeSession, SpecFrame};
use oxideav_av1::sequence_header::{SequenceHeader, parse_sequence_header};
use oxideav_av1::{ObuType, parse_obu};

use super::items::Coding;
use crate::error::{Bound, Error};
use crate::limits::SOURCE_PIXELS_MAX;

/// Pictures that refine one another, the last of which is shown.
const LAYERS_MAX: usize = 4;

/// A decoded picture.
#[derive(Debug)]
pub(super) struct Frame {
    pub(super) sides: (u32, u32),
    /// Brightness alone, or brightness and two of colour.
    pub(super) planes: Vec<Plane>,
    /// Of a sample: 8, 10, or 12.
    pub(super) bits: u32,
    /// What the data itself says.
    pub(super) coding: Coding,
}

/// Samples row by row: a byte each, or two, the lower one first, where they have more than eight bits.
#[derive(Debug)]
pub(super) struct Plane {
    pub(super) sides: (u32, u32),
    pub(super) samples: Vec<u8>,
}

/// Decodes an item whose sides the container says.
///
/// # Errors
///
/// [`Error::Undecodable`], also where the data has other sides; [`Error::TooLarge`].
pub(super) fn decode(data: &[u8], sides: (u32, u32)) -> Result<Frame, Error> {
    let (units, header) = picture_units(data)?;
    let colour = &header.color_config;
    let coding = Coding {
        primaries: colour.color_primaries,
        transfer: colour.transfer_characteristics,
        matrix: colour.matrix_coefficients,
        is_full: colour.color_range,
    };
    // A tile may be larger than the picture, and the data may claim other sides than the container does.
    let pixels = u64::from(sides.0) * u64::from(sides.1);
    let pixels = u32::try_from(pixels).ok().filter(|_| pixels <= SOURCE_PIXELS_MAX);
    let mut session = SpecDecodeSession::new();
    session.set_max_picture_size(pixels.ok_or(Error::TooLarge(Bound::Pixels))?);
    let frames = session.decode_temporal_unit(&units).map_err(Error::undecodable)?;
    let frame = frames.into_iter().next_back();
    let frame = frame.ok_or_else(|| Error::undecodable("no visible frame"))?;
    if (frame.width, frame.height) != sides {
        return Err(Error::undecodable("dimensions differ from the container"));
    }
    Frame::new(frame, coding)
}

/// The data without what no picture needs, and its first sequence header.
fn picture_units(mut data: &[u8]) -> Result<(Vec<u8>, SequenceHeader), Error> {
    let mut units = Vec::with_capacity(data.len());
    let (mut header, mut pictures) = (None, 0);
    while !data.is_empty() {
        let (unit, length) = parse_obu(data).map_err(Error::undecodable)?;
        let whole = data.get(..length).filter(|whole| !whole.is_empty());
        let whole = whole.ok_or_else(|| Error::undecodable("unexpected end of data"))?;
        match unit.obu_type {
            ObuType::SequenceHeader if header.is_none() => {
                header = Some(parse_sequence_header(unit.payload).map_err(Error::undecodable)?);
                units.extend_from_slice(whole);
            }
            ObuType::Frame | ObuType::FrameHeader => {
                pictures += 1;
                units.extend_from_slice(whole);
            }
            ObuType::TileGroup => units.extend_from_slice(whole),
            _ => {}
        }
        data = data.get(length..).unwrap_or_default();
    }
    if pictures > LAYERS_MAX {
        return Err(Error::undecodable("too many layers"));
    }
    let header = header.ok_or_else(|| Error::undecodable("missing sequence header"))?;
    Ok((units, header))
}

impl Frame {
    fn new(frame: SpecFrame, coding: Coding) -> Result<Self, Error> {
        let sides = (frame.width, frame.height);
        let bits = u32::from(frame.bit_depth);
        let bytes = if bits > 8 { 2 } else { 1 };
        let planes = frame.plane_dims.into_iter().zip(frame.planes);
        let planes: Vec<Plane> = planes.map(|(sides, samples)| Plane { sides, samples }).collect();
        let is_whole = |plane: &Plane| {
            plane.samples.len() as u64
                == u64::from(plane.sides.0) * u64::from(plane.sides.1) * bytes
        };
        // Colour has as many columns, and rows, as brightness, or half as many.
        let is_half = |part: u32, whole: u32| part == whole || part == whole.div_ceil(2);
        let is_sound = matches!(bits, 8 | 10 | 12)
            && matches!(planes.len(), 1 | 3)
            && planes.iter().all(is_whole)
            && planes.first().is_some_and(|plane| plane.sides == sides)
            && planes
                .iter()
                .skip(1)
                .all(|plane| is_half(plane.sides.0, sides.0) && is_half(plane.sides.1, sides.1));
        if !is_sound {
            return Err(Error::undecodable("inconsistent plane dimensions"));
        }
        Ok(Self { sides, planes, bits, coding })
    }

    /// Whether there is brightness alone.
    pub(super) fn is_grey(&self) -> bool {
        self.planes.len() == 1
    }
}
