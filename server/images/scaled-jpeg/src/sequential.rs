//! Decodes baseline and extended sequential files (T.81, F.2): each block is complete in one scan and is written
//! directly to its plane.

use super::Limits;
use super::Stop;
use super::bit_reader::{BitError, BitReader};
use super::coefficient_mask::CoefficientMask;
use super::error::{Error, Limit};
use super::frame::{Component, Frame};
use super::header::{ParsedHead, read_between};
use super::huffman::{Coefficient, Huffman};
use super::idct::{BlockKind, CoefficientBlock, IdctFn, dequantised};
use super::markers::{Segment, Segments, code};
use super::plane_layout::Layout;
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
    let mut scans = Scans {
        frame: &opened.header.frame,
        layout,
        tables: opened.tables.clone(),
        planes: layout.parts.iter().map(|part| part.plane()).collect(),
        missing: layout.parts.iter().map(|_| true).collect(),
        blocks_left: limits.blocks_max,
        condition: DecodeStatus::Complete,
        stop,
    };
    let mut segments = Segments::new(bytes, opened.scan_at);
    let mut is_first = true;
    while scans.missing.contains(&true) {
        let step = segments.next().and_then(|segment| match segment.marker {
            code::SOS => scans.read::<B>(bytes, &segment, &mut segments),
            code::EOI => Err(segment.malformed("a picture that ends before its scans")),
            marker if Frame::is_start_of_frame(marker) => {
                Err(segment.malformed("a second frame header"))
            }
            _ => read_between(&segment, &mut scans.tables),
        });
        if let Err(error) = step {
            scans.condition = scans.condition.max(error.after_a_scan(is_first)?);
            break;
        }
        is_first = false;
    }
    Ok((scans.planes, scans.condition))
}

struct Scans<'a> {
    frame: &'a Frame,
    layout: &'a Layout,
    tables: Tables,
    planes: Vec<Plane>,
    /// Components that were in no scan yet.
    missing: Vec<bool>,
    blocks_left: u64,
    condition: DecodeStatus,
    stop: Stop<'a>,
}

impl Scans<'_> {
    fn read<B: CoefficientBlock>(
        &mut self,
        bytes: &[u8],
        segment: &Segment<'_>,
        segments: &mut Segments<'_>,
    ) -> Result<(), Error> {
        let scan = Scan::read(segment, self.frame)?;
        let blocks = scan.blocks(self.frame);
        self.blocks_left =
            self.blocks_left.checked_sub(blocks).ok_or(Error::OverLimit(Limit::Blocks))?;
        let code = |class, number| {
            let code = self.tables.code_or_standard(class, number);
            let code = code.ok_or(segment.malformed("a scan without its Huffman table"))?;
            Ok(Huffman::new(&code, class, blocks))
        };
        let mut codes = Vec::with_capacity(4);
        for selected in &scan.components {
            let constant = code(Class::Constant, selected.constant_code)?;
            codes.push((constant, code(Class::Varying, selected.varying_code)?));
        }
        let mut planes: Vec<Option<&mut Plane>> = self.planes.iter_mut().map(Some).collect();
        let mut components = Vec::with_capacity(4);
        for (selected, (constant, varying)) in scan.components.iter().zip(&codes) {
            let number = selected.component;
            let component = self.frame.components.get(number);
            let (Some(component), Some(part), Some(plane), Some(missing)) = (
                component,
                self.layout.parts.get(number),
                planes.get_mut(number).and_then(Option::take),
                self.missing.get_mut(number).filter(|missing| **missing),
            ) else {
                return Err(segment.malformed("a component in two scans"));
            };
            let quantiser = self.tables.quantiser(component.quantiser);
            let quantiser =
                quantiser.ok_or(segment.malformed("a component without its quantisation table"))?;
            *missing = false;
            let is_alone = scan.components.len() == 1;
            components.push(Part::new(
                plane,
                &part.mask,
                if is_alone { Component { across: 1, down: 1, ..*component } } else { *component },
                quantiser,
                (constant, varying),
            ));
        }
        let rng = Entropy {
            bytes,
            at: segments.at,
            grid: scan.grid(self.frame),
            restart_interval: self.tables.restart_interval,
        };
        let (condition, next) =
            rng.read(&mut Interleaved { components, row: [Block::<B>::EMPTY; 4] }, self.stop)?;
        self.condition = self.condition.max(condition);
        segments.at = next;
        Ok(())
    }
}

/// Components of a scan.
struct Interleaved<'a, B> {
    components: Vec<Part<'a, B>>,
    /// Blocks of a row of one component of an MCU. All are decoded before the first is transformed: numbers that
    /// were stored individually cannot be loaded immediately as vectors of four.
    row: [Block<B>; 4],
}

/// Retained part of a block.
#[derive(Clone, Copy)]
struct Block<B> {
    coefficients: B,
    flatness: BlockKind,
}

impl<B: CoefficientBlock> Block<B> {
    const EMPTY: Self = Self { coefficients: B::ZERO, flatness: BlockKind::DcOnly };
}

/// Component of a scan.
struct Part<'a, B> {
    samples: &'a mut [u8],
    stride: usize,
    /// Blocks in an MCU, and samples in a block.
    blocks: (usize, usize),
    size: (usize, usize),
    /// Index among the retained coefficients and quantisation step, by zigzag position.
    steps: [(u8, u16); 64],
    /// Last retained zigzag position.
    last: usize,
    constant: &'a Huffman,
    varying: &'a Huffman,
    inverse: IdctFn<B>,
    /// DC term of the previous block.
    before: i32,
}

impl<'a, B: CoefficientBlock> Part<'a, B> {
    fn new(
        plane: &'a mut Plane,
        kept: &CoefficientMask,
        component: Component,
        quantiser: &[u16; 64],
        (constant, varying): (&'a Huffman, &'a Huffman),
    ) -> Self {
        let mut steps = kept.positions.map(|place| (place, 0));
        steps.iter_mut().zip(quantiser).for_each(|(step, quantiser)| step.1 = *quantiser);
        Self {
            samples: &mut plane.samples,
            stride: plane.stride,
            blocks: (component.across, component.down),
            size: (kept.across, kept.down),
            steps,
            last: kept.last,
            constant,
            varying,
            inverse: B::inverse(kept.across, kept.down),
            before: 0,
        }
    }

    /// Decodes one block.
    #[inline(always)]
    fn read(&mut self, bits: &mut BitReader<'_>, block: &mut Block<B>) -> Result<(), BitError> {
        let constant = self.before + self.constant.difference(bits)?;
        self.before = constant.clamp(i32::from(i16::MIN), i32::from(i16::MAX));
        let coefficients = &mut block.coefficients;
        *coefficients = B::ZERO;
        let coefficients = coefficients.as_mut();
        let [(_, step), ..] = self.steps;
        if let Some(first) = coefficients.first_mut() {
            *first = dequantised(self.before, step);
        }
        let (mut position, mut flatness) = (1, BlockKind::DcOnly);
        while position <= self.last {
            match self.varying.coefficient(bits)? {
                Coefficient::Value { zeros, value } => {
                    position += zeros;
                    let (place, step) = *self.steps.get(position).ok_or_else(|| bits.broken())?;
                    if let Some(coefficient) = coefficients.get_mut(usize::from(place)) {
                        *coefficient = dequantised(value, step);
                        flatness = BlockKind::Varied;
                    }
                    position += 1;
                }
                Coefficient::Zeros => position += 16,
                Coefficient::End { .. } => position = 64,
            }
        }
        if position < 64 {
            self.varying.skip_block(bits, position)?;
        } else if position > 64 {
            return Err(bits.broken());
        }
        if bits.ran_out() {
            return Err(BitError::RanOut);
        }
        block.flatness = flatness;
        Ok(())
    }

    /// Transforms a block to an offset of the plane.
    #[inline(always)]
    fn write_block(&mut self, block: &Block<B>, at: usize) {
        (self.inverse)(&block.coefficients, block.flatness, self.samples, at, self.stride);
    }
}

impl<B: CoefficientBlock> McuReader for Interleaved<'_, B> {
    fn restart(&mut self) {
        self.components.iter_mut().for_each(|part| part.before = 0);
    }

    #[inline(always)]
    fn read(&mut self, bits: &mut BitReader<'_>, x: usize, y: usize) -> Result<(), BitError> {
        for part in &mut self.components {
            let ((across, down), (columns, rows)) = (part.blocks, part.size);
            let mut line = y * down * rows * part.stride + x * across * columns;
            for _ in 0..down {
                let (mut read, mut whole) = (Ok(()), 0);
                for block in self.row.iter_mut().take(across) {
                    read = part.read(bits, block);
                    if read.is_err() {
                        break;
                    }
                    whole += 1;
                }
                for (at, block) in self.row.iter().take(whole).enumerate() {
                    part.write_block(block, line + at * columns);
                }
                read?;
                line += rows * part.stride;
            }
        }
        Ok(())
    }
}
