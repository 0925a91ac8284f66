//! Frame header (T.81, B.2.2) and the geometry that follows from it (A.1.1, A.2).
//!
//! Guarantees: sides and sampling factors are not zero, sampling factors at most 4, and sides within the limits.

use super::Limits;
use super::error::{Error, Limit, Unsupported};
use super::markers::{Segment, code};

/// Frame header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Frame {
    pub(super) width: u32,
    pub(super) height: u32,
    pub(super) progressive: bool,
    /// Components: one, three or four.
    pub(super) components: Vec<Component>,
}

/// Component of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Component {
    pub(super) id: u8,
    /// Blocks across an MCU: the horizontal sampling factor.
    pub(super) across: usize,
    /// Blocks down an MCU: the vertical sampling factor.
    pub(super) down: usize,
    /// Number of the quantisation table, 0 to 3.
    pub(super) quantiser: usize,
}

impl Frame {
    /// Returns whether a marker begins a frame of any kind.
    pub(super) fn is_start_of_frame(marker: u8) -> bool {
        matches!(marker, code::SOF0..=code::SOF15)
            && !matches!(marker, code::DHT | code::JPG | code::DAC)
    }

    /// Parses a frame header.
    pub(super) fn read(segment: &Segment<'_>, limits: &Limits) -> Result<Self, Error> {
        let progressive = match segment.marker {
            0xc0 | 0xc1 => false,
            code::SOF2 => true,
            0xc3 => return Err(Error::Unsupported(Unsupported::Lossless)),
            0xc5..=0xc7 => return Err(Error::Unsupported(Unsupported::Hierarchical)),
            _ => return Err(Error::Unsupported(Unsupported::Arithmetic)),
        };
        let [precision, h1, h0, w1, w0, count, specifications @ ..] = segment.payload else {
            return Err(segment.malformed("a frame header that is too short"));
        };
        let side = |high: u8, low: u8| u32::from(u16::from_be_bytes([high, low]));
        let (width, height) = (side(*w1, *w0), side(*h1, *h0));
        if *precision != 8 {
            return Err(Error::Unsupported(Unsupported::Precision(*precision)));
        }
        if !matches!(count, 1 | 3 | 4) {
            return Err(match count {
                0 => segment.malformed("a frame without components"),
                _ => Error::Unsupported(Unsupported::Components(*count)),
            });
        }
        if width == 0 {
            return Err(segment.malformed("a width of zero"));
        }
        if height == 0 {
            return Err(Error::Unsupported(Unsupported::Dnl));
        }
        if width.max(height) > limits.side_max {
            return Err(Error::OverLimit(Limit::Side));
        }
        if u64::from(width) * u64::from(height) > limits.pixels_max {
            return Err(Error::OverLimit(Limit::Pixels));
        }
        let mut components = read_components(segment, specifications)?;
        if components.len() != usize::from(*count) {
            return Err(segment.malformed("another number of components than the frame says"));
        }
        if let [only] = &mut *components {
            // A single component is not interleaved, whatever its factors (A.2.2).
            (only.across, only.down) = (1, 1);
        }
        Ok(Self { width, height, progressive, components })
    }

    /// Returns the largest horizontal and vertical sampling factors.
    pub(super) fn factors_max(&self) -> (usize, usize) {
        self.components.iter().fold((1, 1), |(across, down), component| {
            (across.max(component.across), down.max(component.down))
        })
    }

    /// Returns the number of MCUs across and down an interleaved scan.
    pub(super) fn mcus(&self) -> (usize, usize) {
        let (across, down) = self.factors_max();
        ((self.width as usize).div_ceil(8 * across), (self.height as usize).div_ceil(8 * down))
    }

    /// Returns the number of samples of all components, including MCU padding.
    pub(super) fn samples(&self) -> u64 {
        let (across, down) = self.mcus();
        let blocks: usize = self.components.iter().map(|it| it.across * it.down).sum();
        64 * across as u64 * down as u64 * blocks as u64
    }

    /// Returns the number of blocks across and down a component in a non-interleaved scan (A.2.2), without MCU
    /// padding.
    pub(super) fn unpadded_blocks(&self, component: &Component) -> (usize, usize) {
        let (across, down) = self.factors_max();
        let blocks = |side: u32, factor: usize, max: usize| {
            (side as usize * factor).div_ceil(max).div_ceil(8)
        };
        (blocks(self.width, component.across, across), blocks(self.height, component.down, down))
    }
}

fn read_components(segment: &Segment<'_>, bytes: &[u8]) -> Result<Vec<Component>, Error> {
    let mut components: Vec<Component> = Vec::with_capacity(4);
    for specification in bytes.chunks(3) {
        let [id, factors, quantiser] = *specification else {
            return Err(segment.malformed("a frame header that is too short"));
        };
        let (across, down) = (usize::from(factors >> 4), usize::from(factors & 15));
        if !(1..=4).contains(&across) || !(1..=4).contains(&down) {
            return Err(segment.malformed("a sampling factor that does not exist"));
        }
        if quantiser > 3 {
            return Err(segment.malformed("a quantisation table that does not exist"));
        }
        if components.iter().any(|component| component.id == id) {
            return Err(segment.malformed("two components of one name"));
        }
        components.push(Component { id, across, down, quantiser: usize::from(quantiser) });
    }
    Ok(components)
}
