//! Decodes an AV1 image item into planes (AV1 Bitstream & Decoding Process Specification, 5), with `oxideav-av1`.
//!
//! The decoder is safe Rust, so a crafted file can at worst cause a panic, which is caught. It is three to four
//! times as slow as `rav1d` without assembler, whose released interface is that of C, where a panic aborts the
//! process.
//!
//! The decoder gets only the OBUs of the picture, and at most as many frames as an item may have layers.

use oxideav_av1::decoder::{SpecDecodeSession, SpecFrame};
use oxideav_av1::sequence_header::{SequenceHeader, parse_sequence_header};
use oxideav_av1::{ObuType, parse_obu};

use super::primary_item::ColorCoding;
use crate::error::{Error, LimitKind};
use crate::limits::SOURCE_PIXELS_MAX;

/// Maximum number of layers (frames that refine one another, the last of which is shown).
const LAYERS_MAX: usize = 4;

/// Decoded frame.
#[derive(Debug)]
pub(super) struct Frame {
    pub(super) sides: (u32, u32),
    /// Luma plane alone, or with two chroma planes.
    pub(super) planes: Vec<Plane>,
    /// Bits per sample: 8, 10, or 12.
    pub(super) bits: u32,
    /// Colour coding according to the bitstream.
    pub(super) coding: ColorCoding,
}

/// Samples row by row: one byte each, or two (little-endian) if they have more than eight bits.
#[derive(Debug)]
pub(super) struct Plane {
    pub(super) sides: (u32, u32),
    pub(super) samples: Vec<u8>,
}

/// Decodes an item of the size given by the container.
///
/// # Errors
///
/// [`Error::Undecodable`], also if the size of the data differs; [`Error::TooLarge`].
pub(super) fn decode(data: &[u8], sides: (u32, u32)) -> Result<Frame, Error> {
    let (units, header) = required_obus(data)?;
    let colour = &header.color_config;
    let coding = ColorCoding {
        primaries: colour.color_primaries,
        transfer: colour.transfer_characteristics,
        matrix: colour.matrix_coefficients,
        is_full: colour.color_range,
    };
    // A tile may be larger than the picture, and the data may state another size than the container.
    let pixels = u64::from(sides.0) * u64::from(sides.1);
    let pixels = u32::try_from(pixels).ok().filter(|_| pixels <= SOURCE_PIXELS_MAX);
    let mut session = SpecDecodeSession::new();
    session.set_max_picture_size(pixels.ok_or(Error::TooLarge(LimitKind::Pixels))?);
    let frames = session.decode_temporal_unit(&units).map_err(Error::undecodable)?;
    let frame = frames.into_iter().next_back();
    let frame = frame.ok_or_else(|| Error::undecodable("no visible frame"))?;
    if (frame.width, frame.height) != sides {
        return Err(Error::undecodable("dimensions differ from the container"));
    }
    Frame::new(frame, coding)
}

/// Returns the data without OBUs that the picture does not need, and its first sequence header.
fn required_obus(mut data: &[u8]) -> Result<(Vec<u8>, SequenceHeader), Error> {
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
    fn new(frame: SpecFrame, coding: ColorCoding) -> Result<Self, Error> {
        let sides = (frame.width, frame.height);
        let bits = u32::from(frame.bit_depth);
        let bytes = if bits > 8 { 2 } else { 1 };
        let planes = frame.plane_dims.into_iter().zip(frame.planes);
        let planes: Vec<Plane> = planes.map(|(sides, samples)| Plane { sides, samples }).collect();
        let is_whole = |plane: &Plane| {
            plane.samples.len() as u64
                == u64::from(plane.sides.0) * u64::from(plane.sides.1) * bytes
        };
        // Chroma has as many columns and rows as luma, or half as many.
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

    /// Returns whether there is only luma.
    pub(super) fn is_grey(&self) -> bool {
        self.planes.len() == 1
    }
}
