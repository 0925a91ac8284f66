//! Geometry and memory of each component of a frame at a scale.

use super::coefficient_mask::CoefficientMask;
use super::frame::Frame;
use super::huffman;
use super::planes::Plane;
use super::scale::Scale;

/// Components of a frame at a scale.
#[derive(Clone, Debug)]
pub(super) struct Layout {
    pub(super) parts: Vec<ScaledComponent>,
    progressive: bool,
}

/// Component at a scale.
#[derive(Clone, Debug)]
pub(super) struct ScaledComponent {
    pub(super) mask: CoefficientMask,
    /// Blocks across and down, including MCU padding.
    pub(super) blocks: (usize, usize),
    /// Columns and rows of the plane that the picture covers.
    covered: (f64, f64),
}

impl Layout {
    pub(super) fn new(frame: &Frame, scale: Scale) -> Self {
        let (wanted, points_max) = (scale.eighths() as usize, scale.points_max());
        let (across_max, down_max) = frame.factors_max();
        let mcus = frame.mcus();
        let parts = frame.components.iter().map(|component| {
            let across = (wanted * across_max / component.across).min(points_max);
            let down = (wanted * down_max / component.down).min(points_max);
            let covered = |side: u32, factor: usize, samples: usize, max: usize| {
                f64::from(side) * (factor * samples) as f64 / (8 * max) as f64
            };
            ScaledComponent {
                mask: CoefficientMask::new(across, down),
                blocks: (mcus.0 * component.across, mcus.1 * component.down),
                covered: (
                    covered(frame.width, component.across, across, across_max),
                    covered(frame.height, component.down, down, down_max),
                ),
            }
        });
        Self { parts: parts.collect(), progressive: frame.progressive }
    }

    /// Returns the maximum memory of decoding in bytes.
    pub(super) fn memory_bytes(&self) -> u64 {
        let parts = self.parts.iter().map(|part| {
            let coefficients = if self.progressive { part.coefficient_bytes() } else { 0 };
            (part.stride() * part.rows()) as u64 + coefficients
        });
        parts.sum::<u64>() + huffman::BYTES_MAX as u64
    }
}

impl ScaledComponent {
    /// Returns the number of samples from one row of the plane to the next.
    pub(super) fn stride(&self) -> usize {
        self.blocks.0 * self.mask.across
    }

    /// Returns the number of rows of the plane in memory.
    fn rows(&self) -> usize {
        self.blocks.1 * self.mask.down
    }

    /// Returns the coefficient memory of a progressive file in bytes, used until its last scan.
    fn coefficient_bytes(&self) -> u64 {
        let count = self.mask.count();
        let history = if count > 1 { size_of::<u64>() } else { 0 };
        (self.blocks.0 * self.blocks.1 * (count * size_of::<i16>() + history)) as u64
    }

    /// Returns the plane, filled with mid-grey.
    pub(super) fn plane(&self) -> Plane {
        Plane {
            width: self.covered.0.ceil() as usize,
            height: self.covered.1.ceil() as usize,
            covered: self.covered,
            stride: self.stride(),
            samples: vec![128; self.stride() * self.rows()],
        }
    }
}
