//! Converts YUV planes to 8-bit RGB (ITU-T H.273, 8.3).
//!
//! Subsampled chroma is assumed to be centred between the pixels it covers, and is interpolated with weights of
//! three to one.

use super::av1::{Frame, Plane};
use super::primary_item::ColorCoding;
use crate::error::Error;

/// Converter of the rows of a picture.
pub(super) struct YuvConverter<'a> {
    frame: &'a Frame,
    matrix: Matrix,
    brightness: Scale,
    colour: Scale,
    /// Row at full width: luma from 0 to 1, chroma from -1/2 to 1/2.
    full: [Vec<f32>; 3],
    /// Buffers for rows of a plane as stored.
    stored: [Vec<f32>; 2],
}

#[derive(Clone, Copy, Debug)]
enum Matrix {
    /// Samples are green, blue, red.
    Identity,
    YCgCo,
    /// Weights of red and blue in luma.
    Parts {
        red: f32,
        blue: f32,
    },
}

/// Offset added to a sample, and factor applied to the sum.
#[derive(Clone, Copy, Debug)]
struct Scale {
    offset: f32,
    factor: f32,
}

impl Scale {
    fn brightness(bits: u32, is_full: bool) -> Self {
        match is_full {
            true => Self { offset: 0.0, factor: 1.0 / ((1 << bits) - 1) as f32 },
            false => {
                let step = (1 << (bits - 8)) as f32;
                Self { offset: -16.0 * step, factor: 1.0 / (219.0 * step) }
            }
        }
    }

    fn colour(bits: u32, is_full: bool) -> Self {
        let offset = -((1 << (bits - 1)) as f32);
        let range = if is_full { ((1 << bits) - 1) as f32 } else { (224 << (bits - 8)) as f32 };
        Self { offset, factor: 1.0 / range }
    }
}

impl<'a> YuvConverter<'a> {
    /// Creates a converter.
    ///
    /// # Errors
    ///
    /// [`Error::Undecodable`] for an unsupported colour coding.
    pub(super) fn new(frame: &'a Frame, coding: ColorCoding) -> Result<Self, Error> {
        let is_whole = frame.planes.iter().all(|plane| plane.sides == frame.sides);
        let parts = |red, blue| Matrix::Parts { red, blue };
        let matrix = match (coding.matrix, coding.primaries) {
            _ if frame.is_grey() => parts(0.299, 0.114),
            (0 | 8, _) if !is_whole => {
                return Err(Error::undecodable("matrix requires 4:4:4 chroma"));
            }
            (0, _) => Matrix::Identity,
            (8, _) => Matrix::YCgCo,
            // 12 derives the matrix from the primaries. Unspecified values are treated as in JPEG.
            (1, _) | (12, 1) => parts(0.2126, 0.0722),
            (2 | 5 | 6, _) => parts(0.299, 0.114),
            (4, _) => parts(0.30, 0.11),
            (7, _) => parts(0.212, 0.087),
            (9, _) | (12, 9) => parts(0.2627, 0.0593),
            (12, 12) => parts(0.2290, 0.0793),
            (other, _) => {
                return Err(Error::Undecodable(format!("unsupported matrix coefficients {other}")));
            }
        };
        let brightness = Scale::brightness(frame.bits, coding.is_full);
        let colour = match matrix {
            Matrix::Identity => brightness,
            _ => Scale::colour(frame.bits, coding.is_full),
        };
        let stored = Default::default();
        Ok(Self { frame, matrix, brightness, colour, full: Default::default(), stored })
    }

    /// Writes the start of a row as grey, one byte per pixel.
    pub(super) fn grey(&mut self, y: u32, to: &mut [u8]) {
        self.read_brightness(y);
        for (to, value) in to.iter_mut().zip(&self.full[0]) {
            *to = byte(*value);
        }
    }

    /// Writes the start of a row as red, green and blue. The picture must not be grey.
    pub(super) fn rgb(&mut self, y: u32, to: &mut [u8]) {
        self.read_brightness(y);
        let frame = self.frame;
        let [_, second, third] = &mut self.full;
        for (plane, full) in frame.planes.iter().skip(1).zip([second, third]) {
            spread(plane, y, frame, self.colour, &mut self.stored, full);
        }
        let [first, second, third] = &self.full;
        let pixels = first.iter().zip(second).zip(third).map(|((a, b), c)| (*a, *b, *c));
        let to = to.as_chunks_mut::<3>().0.iter_mut();
        match self.matrix {
            Matrix::Identity => {
                for (to, (green, blue, red)) in to.zip(pixels) {
                    *to = [byte(red), byte(green), byte(blue)];
                }
            }
            Matrix::YCgCo => {
                for (to, (y, green, orange)) in to.zip(pixels) {
                    let rest = y - green;
                    *to = [byte(rest + orange), byte(y + green), byte(rest - orange)];
                }
            }
            Matrix::Parts { red, blue } => {
                let (of_red, of_blue) = (2.0 * (1.0 - red), 2.0 * (1.0 - blue));
                let green = 1.0 - red - blue;
                let (red, blue) = (of_red * red / green, of_blue * blue / green);
                for (to, (y, cb, cr)) in to.zip(pixels) {
                    *to = [
                        byte(y + of_red * cr),
                        byte(y - blue * cb - red * cr),
                        byte(y + of_blue * cb),
                    ];
                }
            }
        }
    }

    fn read_brightness(&mut self, y: u32) {
        if let Some(plane) = self.frame.planes.first() {
            read_row(plane, y, self.frame.bits, self.brightness, &mut self.full[0]);
        }
    }
}

/// Upsamples a row of a chroma plane to full size.
fn spread(
    plane: &Plane,
    y: u32,
    frame: &Frame,
    scale: Scale,
    [near, far]: &mut [Vec<f32>; 2],
    full: &mut Vec<f32>,
) {
    let is_half_high = plane.sides.1 != frame.sides.1;
    let is_half_wide = plane.sides.0 != frame.sides.0;
    read_row(plane, if is_half_high { y / 2 } else { y }, frame.bits, scale, near);
    if is_half_high {
        let next = if y.is_multiple_of(2) { (y / 2).saturating_sub(1) } else { y / 2 + 1 };
        read_row(plane, next.min(plane.sides.1 - 1), frame.bits, scale, far);
        for (near, far) in near.iter_mut().zip(far.iter()) {
            *near = mixed(*near, *far);
        }
    }
    full.clear();
    if !is_half_wide {
        full.extend_from_slice(near);
        return;
    }
    let mut before = near.first().copied().unwrap_or_default();
    for (at, value) in near.iter().enumerate() {
        let after = near.get(at + 1).unwrap_or(value);
        full.push(mixed(*value, before));
        full.push(mixed(*value, *after));
        before = *value;
    }
    full.truncate(frame.sides.0 as usize);
}

fn mixed(near: f32, far: f32) -> f32 {
    0.75 * near + 0.25 * far
}

fn read_row(plane: &Plane, y: u32, bits: u32, scale: Scale, to: &mut Vec<f32>) {
    let bytes = if bits > 8 { 2 } else { 1 };
    let length = plane.sides.0 as usize * bytes;
    let row = plane.samples.get(y as usize * length..).and_then(|rest| rest.get(..length));
    let row = row.unwrap_or_default();
    let scaled = |value: f32| (value + scale.offset) * scale.factor;
    to.clear();
    match bytes {
        1 => to.extend(row.iter().map(|value| scaled(f32::from(*value)))),
        _ => {
            let samples = row.as_chunks::<2>().0.iter();
            to.extend(samples.map(|two| scaled(f32::from(u16::from_le_bytes(*two)))));
        }
    }
}

/// Converts from 0..=1 to a byte, with clamping.
fn byte(value: f32) -> u8 {
    (value * 255.0 + 0.5) as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(bits: u32, sides: (u32, u32), planes: &[((u32, u32), &[u16])]) -> Frame {
        let plane = |(sides, samples): &((u32, u32), &[u16])| {
            let wide = samples.iter().flat_map(|value| value.to_le_bytes());
            let samples = if bits > 8 { wide.collect() } else { wide.step_by(2).collect() };
            Plane { sides: *sides, samples }
        };
        let coding = ColorCoding { primaries: 1, transfer: 13, matrix: 6, is_full: true };
        Frame { sides, planes: planes.iter().map(plane).collect(), bits, coding }
    }

    /// Converts one pixel without subsampling.
    fn pixel(bits: u32, matrix: u8, is_full: bool, samples: [u16; 3]) -> [u8; 3] {
        let planes = samples.each_ref().map(|sample| ((1, 1), std::slice::from_ref(sample)));
        let frame = frame(bits, (1, 1), &planes);
        let mut found = [0; 3];
        let coding = ColorCoding { matrix, is_full, ..frame.coding };
        YuvConverter::new(&frame, coding).unwrap().rgb(0, &mut found);
        found
    }

    #[test]
    fn black_white_and_grey_are_so_in_every_coding() {
        for bits in [8, 10, 12] {
            let (most, step) = ((1 << bits) - 1, 1 << (bits - 8));
            for matrix in [1, 2, 4, 5, 6, 7, 9] {
                let colour = 128 * step;
                assert_eq!(pixel(bits, matrix, true, [0, colour, colour]), [0; 3]);
                assert_eq!(pixel(bits, matrix, true, [most, colour, colour]), [255; 3]);
                assert_eq!(pixel(bits, matrix, false, [16 * step, colour, colour]), [0; 3]);
                assert_eq!(pixel(bits, matrix, false, [235 * step, colour, colour]), [255; 3]);
            }
        }
    }

    #[test]
    fn red_is_red_by_each_matrix() {
        // By the equations of H.273: luma is the weight of red, its chroma is at the end of the range.
        assert_eq!(pixel(8, 6, true, [76, 85, 255]), [254, 0, 0]);
        assert_eq!(pixel(8, 1, false, [63, 102, 240]), [255, 1, 0]);
        assert_eq!(pixel(10, 9, true, [269, 369, 1023]), [255, 0, 0]);
        assert_eq!(pixel(8, 0, true, [10, 20, 30]), [30, 10, 20]);
        assert_eq!(pixel(8, 12, false, [63, 102, 240]), [255, 1, 0], "by its primaries");
        // A quarter luma, less green than the rest, more red than blue.
        assert_eq!(pixel(8, 8, true, [64, 64, 255]), [255, 0, 1]);
    }

    #[test]
    fn chroma_upsampling_interpolates() {
        let brightness = [128_u16; 15];
        let half: [u16; 6] = [128, 228, 128, 128, 228, 128];
        let frame =
            frame(8, (5, 3), &[((5, 3), &brightness), ((3, 2), &[128; 6]), ((3, 2), &half)]);
        let mut row = [0; 15];
        YuvConverter::new(&frame, frame.coding).unwrap().rgb(1, &mut row);
        let reds: Vec<u8> = row.iter().step_by(3).copied().collect();
        let at = |part: f32| (128.0 + 1.402 * 100.0 * part + 0.5) as u8;
        for (found, part) in reds.iter().zip([0.0, 0.25, 0.75, 0.75, 0.25]) {
            assert!(found.abs_diff(at(part)) <= 1, "{reds:?}");
        }
    }

    #[test]
    fn unknown_matrix_coefficients_are_rejected() {
        let one = [0_u16];
        let known = frame(8, (1, 1), &[((1, 1), &one), ((1, 1), &one), ((1, 1), &one)]);
        assert!(YuvConverter::new(&known, ColorCoding { matrix: 14, ..known.coding }).is_err());
        let half = frame(8, (2, 1), &[((2, 1), &[0, 0]), ((1, 1), &one), ((1, 1), &one)]);
        assert!(YuvConverter::new(&half, ColorCoding { matrix: 0, ..half.coding }).is_err());
        assert!(YuvConverter::new(&half, half.coding).is_ok());
    }
}
