//! Decodes progressive files (T.81, G): scans refine the coefficients, which are transformed to samples at the end.
//!
//! 1. The scan headers are parsed, and their entropy-coded data is skipped.
//! 2. From the last scan to the first, the required ones are marked (`needed`).
//! 3. They are decoded to the retained coefficients, 16 bits each. The position of bits in a refining scan depends
//!    on the nonzero coefficients of the block, retained or not, so a component with retained AC coefficients has
//!    a mask of 64 bits per block.
//! 4. The planes are computed, and the coefficients of each component freed.

use std::ops::Range;

use super::Limits;
use super::Stop;
use super::bit_reader::{BitError, BitReader};
use super::error::{Error, Limit};
use super::frame::Frame;
use super::header::{ParsedHead, read_between};
use super::huffman::{Coefficient, Huffman};
use super::idct::{BlockKind, CoefficientBlock, dequantised};
use super::markers::{Segment, Segments, code, end_of_scan};
use super::plane_layout::{Layout, ScaledComponent};
use super::planes::{DecodeStatus, Plane};
use super::restart_intervals::{Entropy, McuReader};
use super::scan::Scan;
use super::tables::{Class, Tables};

/// Decodes the scans of an opened file.
pub(super) fn decode<B: CoefficientBlock>(
    bytes: &[u8],
    opened: &ParsedHead,
    layout: &Layout,
    limits: &Limits,
    stop: Stop<'_>,
) -> Result<(Vec<Plane>, DecodeStatus), Error> {
    let frame = &opened.header.frame;
    let (mut found, mut condition) = find_scans(bytes, opened, limits, stop)?;
    mark_needed(&mut found, layout);
    let needed = found.iter().filter(|found| found.is_needed);
    if needed.map(|found| found.scan.blocks(frame)).sum::<u64>() > limits.blocks_max {
        return Err(Error::OverLimit(Limit::Blocks));
    }
    let mut scans = Scans {
        bytes,
        frame,
        tables: opened.tables.clone(),
        components: layout.parts.iter().map(Coefficients::new).collect(),
        stop,
    };
    let mut tables_at = opened.scan_at;
    let mut is_first = true;
    for found in &found {
        let read = scans.read_tables(tables_at..found.segment.at).and_then(|()| {
            if found.is_needed { scans.read(found) } else { Ok(DecodeStatus::Complete) }
        });
        match read {
            Ok(read) => condition = condition.max(read),
            Err(error) => {
                condition = condition.max(error.after_a_scan(is_first)?);
                break;
            }
        }
        tables_at = found.end;
        is_first = false;
    }
    let mut planes = Vec::with_capacity(4);
    for (part, component) in layout.parts.iter().zip(scans.components) {
        if component.quantiser.is_none() {
            condition = condition.max(DecodeStatus::Damaged);
        }
        planes.push(component.into_plane::<B>(part, stop)?);
    }
    Ok((planes, condition))
}

/// Returns the number of blocks of all scans together.
pub(super) fn scanned_blocks(
    bytes: &[u8],
    opened: &ParsedHead,
    limits: &Limits,
) -> Result<u64, Error> {
    let (found, _) = find_scans(bytes, opened, limits, &|| false)?;
    Ok(found.iter().map(|found| found.scan.blocks(&opened.header.frame)).sum())
}

/// Scan with its location.
struct ScanLocation<'a> {
    scan: Scan,
    segment: Segment<'a>,
    /// Offset of its entropy-coded data, and of the marker after it.
    data_at: usize,
    end: usize,
    is_needed: bool,
}

/// Returns every scan up to the end of the image, and whether there was an end marker.
fn find_scans<'a>(
    bytes: &'a [u8],
    opened: &ParsedHead,
    limits: &Limits,
    stop: Stop<'_>,
) -> Result<(Vec<ScanLocation<'a>>, DecodeStatus), Error> {
    let mut found = Vec::new();
    let mut segments = Segments::new(bytes, opened.scan_at);
    loop {
        let step = segments.next().and_then(|segment| match segment.marker {
            code::SOS => {
                Scan::read(&segment, &opened.header.frame).map(|scan| Some((scan, segment)))
            }
            marker if Frame::is_start_of_frame(marker) => {
                Err(segment.malformed("a second frame header"))
            }
            _ => Ok(None),
        });
        match step {
            Ok(Some((scan, segment))) => {
                if found.len() == limits.scans_max {
                    return Err(Error::OverLimit(Limit::Scans));
                }
                if stop() {
                    return Err(Error::Cancelled);
                }
                let data_at = segments.at;
                segments.at = end_of_scan(bytes, data_at);
                let end = segments.at;
                found.push(ScanLocation { scan, segment, data_at, end, is_needed: false });
            }
            Ok(None) if ends(bytes, segments.at) => return Ok((found, DecodeStatus::Complete)),
            Ok(None) => {}
            Err(error) => {
                let condition = error.after_a_scan(found.is_empty())?;
                return Ok((found, condition));
            }
        }
    }
}

/// Returns whether the segment before an offset was the end of the image.
fn ends(bytes: &[u8], at: usize) -> bool {
    at.checked_sub(2).and_then(|from| bytes.get(from..at)) == Some(&[0xff, code::EOI])
}

/// Marks the required scans: those with retained coefficients, and those with coefficients that a required refining
/// scan depends on.
fn mark_needed(found: &mut [ScanLocation<'_>], layout: &Layout) {
    let mut wanted: Vec<u64> = layout.parts.iter().map(|part| part.mask.mask).collect();
    for found in found.iter_mut().rev() {
        let scan = &found.scan;
        let band = band(scan.first, scan.last);
        for selected in &scan.components {
            let Some(wanted) = wanted.get_mut(selected.component) else { continue };
            if band & *wanted != 0 {
                found.is_needed = true;
                if scan.refines.is_some() {
                    *wanted |= band;
                }
            }
        }
    }
}

/// Returns the bit mask of the positions from the first to the last, which are below 64.
fn band(first: usize, last: usize) -> u64 {
    (u64::MAX << (first & 63)) & (u64::MAX >> (63 - (last & 63)))
}

/// Coefficients of a component.
struct Coefficients {
    /// Retained coefficients, block by block.
    values: Vec<i16>,
    /// Bit mask of nonzero positions per block; empty if only the DC term is retained.
    nonzero: Vec<u64>,
    positions: [u8; 64],
    count: usize,
    /// Blocks per row.
    across: usize,
    /// Quantisation table, set by its first scan.
    quantiser: Option<[u16; 64]>,
}

impl Coefficients {
    fn new(part: &ScaledComponent) -> Self {
        let (count, blocks) = (part.mask.count(), part.blocks.0 * part.blocks.1);
        Self {
            values: vec![0; blocks * count],
            nonzero: vec![0; if count > 1 { blocks } else { 0 }],
            positions: part.mask.positions,
            count,
            across: part.blocks.0,
            quantiser: None,
        }
    }

    /// Returns the DC term of a block.
    #[inline(always)]
    fn constant(&mut self, block: usize) -> Option<&mut i16> {
        self.values.get_mut(block * self.count)
    }

    fn into_plane<B: CoefficientBlock>(
        self,
        part: &ScaledComponent,
        stop: Stop<'_>,
    ) -> Result<Plane, Error> {
        let mut plane = part.plane();
        let Some(quantiser) = self.quantiser else { return Ok(plane) };
        let mut steps = [0; 64];
        for (place, step) in self.positions.iter().zip(quantiser) {
            if let Some(place) = steps.get_mut(usize::from(*place)) {
                *place = step;
            }
        }
        let inverse = B::inverse(part.mask.across, part.mask.down);
        let mut blocks = self.values.chunks_exact(self.count);
        for row in 0..part.blocks.1 {
            if stop() {
                return Err(Error::Cancelled);
            }
            let line = row * part.mask.down * plane.stride;
            for (column, block) in blocks.by_ref().take(part.blocks.0).enumerate() {
                let mut coefficients = B::ZERO;
                for ((place, value), step) in coefficients.as_mut().iter_mut().zip(block).zip(steps)
                {
                    *place = dequantised(i32::from(*value), step);
                }
                let is_flat =
                    coefficients.as_ref().iter().skip(1).all(|coefficient| *coefficient == 0);
                let flatness = if is_flat { BlockKind::DcOnly } else { BlockKind::Varied };
                let at = line + column * part.mask.across;
                inverse(&coefficients, flatness, &mut plane.samples, at, plane.stride);
            }
        }
        Ok(plane)
    }
}

struct Scans<'a> {
    bytes: &'a [u8],
    frame: &'a Frame,
    tables: Tables,
    components: Vec<Coefficients>,
    stop: Stop<'a>,
}

impl Scans<'_> {
    fn read_tables(&mut self, between: Range<usize>) -> Result<(), Error> {
        let mut segments = Segments::new(self.bytes, between.start);
        while segments.at < between.end {
            let segment = segments.next()?;
            if segment.at < between.end {
                read_between(&segment, &mut self.tables)?;
            }
        }
        Ok(())
    }

    fn read(&mut self, found: &ScanLocation<'_>) -> Result<DecodeStatus, Error> {
        let (scan, stop) = (&found.scan, self.stop);
        for selected in &scan.components {
            let component = self.frame.components.get(selected.component);
            let quantiser =
                component.and_then(|component| self.tables.quantiser(component.quantiser));
            let missing = found.segment.malformed("a component without its quantisation table");
            let quantiser = *quantiser.ok_or(missing)?;
            if let Some(coefficients) = self.components.get_mut(selected.component) {
                coefficients.quantiser.get_or_insert(quantiser);
            }
        }
        let rng = Entropy {
            bytes: self.bytes,
            at: found.data_at,
            grid: scan.grid(self.frame),
            restart_interval: self.tables.restart_interval,
        };
        let read = match (scan.first, scan.refines) {
            (0, None) => {
                let components = self.constants(found)?;
                rng.read(&mut Constants { components, shift: scan.shift }, stop)
            }
            (0, Some(_)) => {
                let components = self.refined_constants(scan);
                let one = (1_u16 << scan.shift) as i16;
                rng.read(&mut RefinedConstants { components, one }, stop)
            }
            (_, refines) => {
                let mut band = self.band(found)?;
                match refines {
                    None => rng.read(&mut band, stop),
                    Some(_) => rng.read(&mut Refined(band), stop),
                }
            }
        };
        read.map(|(condition, _)| condition)
    }

    fn code(
        &self,
        found: &ScanLocation<'_>,
        class: Class,
        number: usize,
    ) -> Result<Huffman, Error> {
        let code = self.tables.code(class, number);
        let code = code.ok_or(found.segment.malformed("a scan without its Huffman table"))?;
        Ok(Huffman::new(code, class, 0))
    }

    fn constants(&mut self, found: &ScanLocation<'_>) -> Result<Vec<Constant<'_>>, Error> {
        let mut codes = Vec::with_capacity(4);
        for selected in &found.scan.components {
            codes.push(self.code(found, Class::Constant, selected.constant_code)?);
        }
        let constants = self.refined_constants(&found.scan).into_iter().zip(codes);
        Ok(constants.map(|(blocks, code)| Constant { blocks, code, before: 0 }).collect())
    }

    fn refined_constants(&mut self, scan: &Scan) -> Vec<Blocks<'_>> {
        let mut components: Vec<Option<&mut Coefficients>> =
            self.components.iter_mut().map(Some).collect();
        let is_alone = scan.components.len() == 1;
        let mut blocks = Vec::with_capacity(4);
        for selected in &scan.components {
            let number = selected.component;
            let coefficients = components.get_mut(number).and_then(Option::take);
            if let (Some(coefficients), Some(component)) =
                (coefficients, self.frame.components.get(number))
            {
                let in_mcu = if is_alone { (1, 1) } else { (component.across, component.down) };
                blocks.push(Blocks { coefficients, in_mcu });
            }
        }
        blocks
    }

    fn band(&mut self, found: &ScanLocation<'_>) -> Result<Band<'_>, Error> {
        let scan = &found.scan;
        let nothing = found.segment.malformed("a scan without components");
        let [selected] = *scan.components else { return Err(nothing) };
        let code = self.code(found, Class::Varying, selected.varying_code)?;
        let coefficients = self.components.get_mut(selected.component).ok_or(nothing)?;
        Ok(Band {
            coefficients,
            code,
            first: scan.first,
            last: scan.last,
            shift: scan.shift,
            ended: 0,
        })
    }
}

/// Blocks of a component, by MCU.
struct Blocks<'a> {
    coefficients: &'a mut Coefficients,
    in_mcu: (usize, usize),
}

impl Blocks<'_> {
    /// Returns the numbers of the blocks in an MCU.
    #[inline(always)]
    fn of(&self, x: usize, y: usize) -> impl Iterator<Item = usize> + use<> {
        let ((across, down), in_row) = (self.in_mcu, self.coefficients.across);
        let first = y * down * in_row + x * across;
        (0..down).flat_map(move |row| {
            let start = first + row * in_row;
            start..start + across
        })
    }
}

/// First DC scan (G.1.2.1).
struct Constants<'a> {
    components: Vec<Constant<'a>>,
    shift: u32,
}

struct Constant<'a> {
    blocks: Blocks<'a>,
    code: Huffman,
    before: i32,
}

impl McuReader for Constants<'_> {
    fn restart(&mut self) {
        self.components.iter_mut().for_each(|component| component.before = 0);
    }

    fn read(&mut self, bits: &mut BitReader<'_>, x: usize, y: usize) -> Result<(), BitError> {
        for component in &mut self.components {
            for block in component.blocks.of(x, y) {
                let constant = component.before + component.code.difference(bits)?;
                component.before = constant.clamp(i32::from(i16::MIN), i32::from(i16::MAX));
                if bits.ran_out() {
                    return Err(BitError::RanOut);
                }
                if let Some(place) = component.blocks.coefficients.constant(block) {
                    *place = (component.before << self.shift) as i16;
                }
            }
        }
        Ok(())
    }
}

/// Refining DC scan: one bit per block.
struct RefinedConstants<'a> {
    components: Vec<Blocks<'a>>,
    one: i16,
}

impl McuReader for RefinedConstants<'_> {
    fn restart(&mut self) {}

    fn read(&mut self, bits: &mut BitReader<'_>, x: usize, y: usize) -> Result<(), BitError> {
        for blocks in &mut self.components {
            for block in blocks.of(x, y) {
                let bit = bits.bit();
                if bits.ran_out() {
                    return Err(BitError::RanOut);
                }
                if let (true, Some(place)) = (bit, blocks.coefficients.constant(block)) {
                    *place |= self.one;
                }
            }
        }
        Ok(())
    }
}

/// First AC scan of a band (G.1.2.2).
struct Band<'a> {
    coefficients: &'a mut Coefficients,
    code: Huffman,
    first: usize,
    last: usize,
    shift: u32,
    /// Number of further blocks without coefficients in this band (end-of-band run).
    ended: u32,
}

impl McuReader for Band<'_> {
    fn restart(&mut self) {
        self.ended = 0;
    }

    fn read(&mut self, bits: &mut BitReader<'_>, x: usize, y: usize) -> Result<(), BitError> {
        if self.ended > 0 {
            self.ended -= 1;
            return Ok(());
        }
        let Some(mut block) = Block::of(self.coefficients, x, y) else { return Ok(()) };
        let mut position = self.first;
        while position <= self.last {
            match self.code.coefficient(bits)? {
                Coefficient::Value { zeros, value } => {
                    position += zeros;
                    if position > self.last {
                        return Err(bits.broken());
                    }
                    if bits.ran_out() {
                        return Err(BitError::RanOut);
                    }
                    block.set(position, (value << self.shift) as i16);
                    position += 1;
                }
                Coefficient::Zeros => position += 16,
                Coefficient::End { run_bits } => {
                    self.ended = (1 << run_bits) - 1 + bits.number(run_bits);
                    break;
                }
            }
        }
        if bits.ran_out() { Err(BitError::RanOut) } else { Ok(()) }
    }
}

/// Refining AC scan of a band (G.1.2.3): a bit for each nonzero coefficient, and new ones of one bit.
struct Refined<'a>(Band<'a>);

impl McuReader for Refined<'_> {
    fn restart(&mut self) {
        self.0.ended = 0;
    }

    fn read(&mut self, bits: &mut BitReader<'_>, x: usize, y: usize) -> Result<(), BitError> {
        let Self(scan) = self;
        let Some(mut block) = Block::of(scan.coefficients, x, y) else { return Ok(()) };
        let one = 1 << scan.shift;
        let mut position = scan.first;
        while position <= scan.last && scan.ended == 0 {
            let (zeros, new) = match scan.code.coefficient(bits)? {
                Coefficient::Value { zeros, value } if value.abs() == 1 => (zeros, value * one),
                Coefficient::Value { .. } => return Err(bits.broken()),
                Coefficient::Zeros => (15, 0),
                Coefficient::End { run_bits } => {
                    scan.ended = (1 << run_bits) + bits.number(run_bits);
                    break;
                }
            };
            let end = block.after_zeros(position, scan.last, zeros);
            block.refine(bits, position..end, one)?;
            if end <= scan.last && new != 0 {
                block.set(end, new as i16);
            }
            position = end + 1;
        }
        if scan.ended > 0 {
            block.refine(bits, position..scan.last + 1, one)?;
            scan.ended -= 1;
        }
        if bits.ran_out() { Err(BitError::RanOut) } else { Ok(()) }
    }
}

/// Block of a component with retained AC coefficients.
struct Block<'a> {
    values: &'a mut [i16],
    nonzero: &'a mut u64,
    positions: &'a [u8; 64],
}

impl<'a> Block<'a> {
    #[inline(always)]
    fn of(coefficients: &'a mut Coefficients, x: usize, y: usize) -> Option<Self> {
        let number = y * coefficients.across + x;
        let start = number * coefficients.count;
        Some(Self {
            values: coefficients.values.get_mut(start..start + coefficients.count)?,
            nonzero: coefficients.nonzero.get_mut(number)?,
            positions: &coefficients.positions,
        })
    }

    /// Returns the retained coefficient at a position.
    #[inline(always)]
    fn retained_coefficient(&mut self, position: usize) -> Option<&mut i16> {
        let place = self.positions.get(position)?;
        self.values.get_mut(usize::from(*place))
    }

    #[inline(always)]
    fn set(&mut self, position: usize, value: i16) {
        *self.nonzero |= 1 << (position & 63);
        if let Some(place) = self.retained_coefficient(position) {
            *place = value;
        }
    }

    /// Returns the position of the zero coefficient after `zeros` zero ones, from `from` on; after `last` if there
    /// is none.
    #[inline(always)]
    fn after_zeros(&self, from: usize, last: usize, zeros: usize) -> usize {
        let mut left = !*self.nonzero & band(from, last);
        for _ in 0..zeros {
            left &= left.wrapping_sub(1);
        }
        if left == 0 { last + 1 } else { left.trailing_zeros() as usize }
    }

    /// Reads a bit for each nonzero coefficient in a range: those with a set bit grow by one step.
    #[inline(always)]
    fn refine(
        &mut self,
        bits: &mut BitReader<'_>,
        positions: Range<usize>,
        one: i32,
    ) -> Result<(), BitError> {
        if positions.is_empty() {
            return Ok(());
        }
        let mut left = *self.nonzero & band(positions.start, positions.end - 1);
        while left != 0 {
            let position = left.trailing_zeros() as usize;
            left &= left - 1;
            if !bits.bit() {
                continue;
            }
            if bits.ran_out() {
                return Err(BitError::RanOut);
            }
            if let Some(value) = self.retained_coefficient(position)
                && i32::from(*value) & one == 0
            {
                let grown = i32::from(*value) + if *value < 0 { -one } else { one };
                *value = grown as i16;
            }
        }
        Ok(())
    }
}

/// Returns the memory of the coefficients of a layout in bytes.
#[cfg(test)]
pub(super) fn bytes_of_coefficients(layout: &Layout) -> usize {
    let components = layout.parts.iter().map(Coefficients::new);
    components
        .map(|component| 2 * component.values.capacity() + 8 * component.nonzero.capacity())
        .sum()
}

#[cfg(test)]
mod tests;
