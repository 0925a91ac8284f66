//! Scan header (T.81, B.2.3), and the blocks that it covers.

use super::error::Error;
use super::frame::Frame;
use super::markers::Segment;

/// Scan header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Scan {
    /// Components: one in a non-interleaved scan, else the interleaved ones.
    pub(super) components: Vec<Selected>,
    /// First and last zigzag position.
    pub(super) first: usize,
    pub(super) last: usize,
    /// Bit position reached by earlier scans of these coefficients; `None` for a first scan.
    pub(super) refines: Option<u32>,
    /// Bits that later scans add: 0 to 13.
    pub(super) shift: u32,
}

/// Component in a scan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Selected {
    /// Index of the component in the frame.
    pub(super) component: usize,
    /// Numbers of its DC and AC Huffman tables, 0 to 3.
    pub(super) constant_code: usize,
    pub(super) varying_code: usize,
}

/// MCUs of a scan, row by row. A scan of one component has one block per MCU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Grid {
    pub(super) across: usize,
    pub(super) down: usize,
}

impl Scan {
    /// Parses a scan header.
    pub(super) fn read(segment: &Segment<'_>, frame: &Frame) -> Result<Self, Error> {
        let short = segment.malformed("a scan header of another length");
        let (count, rest) = segment.payload.split_first().ok_or(short)?;
        let (selectors, behind) = rest.split_at_checked(2 * usize::from(*count)).ok_or(short)?;
        let [first, last, bits] = *behind else { return Err(short) };
        let mut components: Vec<Selected> = Vec::with_capacity(3);
        for [id, codes] in selectors.as_chunks().0 {
            let component = frame.components.iter().position(|component| component.id == *id);
            let component = component
                .filter(|component| components.iter().all(|other| other.component != *component))
                .ok_or(segment.malformed("a scan of a component that is not there"))?;
            let (constant_code, varying_code) = (usize::from(codes >> 4), usize::from(codes & 15));
            components.push(Selected { component, constant_code, varying_code });
        }
        if components.is_empty() {
            return Err(segment.malformed("a scan without components"));
        }
        let refines = (bits >> 4 > 0).then_some(u32::from(bits >> 4));
        let (first, last) = (usize::from(first), usize::from(last));
        let scan = Self { components, first, last, refines, shift: u32::from(bits & 15) };
        if scan.blocks_in_mcu(frame) > 10 && scan.components.len() > 1 {
            return Err(segment.malformed("a scan with more than ten blocks in an MCU"));
        }
        if frame.progressive && !scan.is_a_step() {
            return Err(segment.malformed("a scan with coefficients that do not go together"));
        }
        Ok(scan)
    }

    /// Returns whether the scan is valid in a progressive file (T.81, G.1.1.1).
    fn is_a_step(&self) -> bool {
        let band = match self.first {
            0 => self.last == 0,
            first => first <= self.last && self.last < 64 && self.components.len() == 1,
        };
        band && self.shift <= 13 && self.refines.is_none_or(|before| before == self.shift + 1)
    }

    /// Returns the MCUs of the scan.
    pub(super) fn grid(&self, frame: &Frame) -> Grid {
        let (across, down) = match &*self.components {
            [only] => frame
                .components
                .get(only.component)
                .map_or((0, 0), |component| frame.unpadded_blocks(component)),
            _ => frame.mcus(),
        };
        Grid { across, down }
    }

    /// Returns the number of blocks of the scan.
    pub(super) fn blocks(&self, frame: &Frame) -> u64 {
        let Grid { across, down } = self.grid(frame);
        let in_mcu = if self.components.len() == 1 { 1 } else { self.blocks_in_mcu(frame) };
        across as u64 * down as u64 * in_mcu as u64
    }

    fn blocks_in_mcu(&self, frame: &Frame) -> usize {
        let components = self.components.iter().filter_map(|s| frame.components.get(s.component));
        components.map(|component| component.across * component.down).sum()
    }
}
