//! Planes to pixels, for pictures on a screen and for comparisons.
//!
//! Full range BT.601, as JFIF 1.02 has it. A plane that has fewer samples than the first is interpolated between the
//! middles of its samples.

use super::header::Colour;
use super::planes::{Decoded, Plane};

/// Interleaved red, green and blue, one byte each, row by row, as wide and high as the first plane; empty without
/// planes.
pub fn to_rgb(decoded: &Decoded) -> Vec<u8> {
    let Some(first) = decoded.planes.first() else { return Vec::new() };
    let mut pixels = Vec::with_capacity(first.width * first.height * 3);
    let others: Vec<Stretched<'_>> =
        decoded.planes.iter().skip(1).map(|plane| Stretched::new(plane, first)).collect();
    let mut lines = [vec![0; first.width], vec![0; first.width]];
    for (y, row) in first.rows().enumerate() {
        for (line, other) in lines.iter_mut().zip(&others) {
            other.fill(y, line);
        }
        let [second, third] = &lines;
        for ((a, b), c) in row.iter().zip(second).zip(third) {
            pixels.extend(match decoded.header.colour {
                Colour::Grey => [*a; 3],
                Colour::Rgb => [*a, *b, *c],
                Colour::YCbCr => from_ycbcr(*a, *b, *c),
            });
        }
    }
    pixels
}

/// A plane as if it had the size of another.
struct Stretched<'a> {
    plane: &'a Plane,
    columns: Vec<(usize, usize, u32)>,
    rows: Vec<(usize, usize, u32)>,
}

impl<'a> Stretched<'a> {
    fn new(plane: &'a Plane, onto: &Plane) -> Self {
        Self {
            plane,
            columns: neighbours(onto.width, plane.width, plane.covered.0 / onto.covered.0),
            rows: neighbours(onto.height, plane.height, plane.covered.1 / onto.covered.1),
        }
    }

    fn fill(&self, y: usize, line: &mut [u8]) {
        let Some((above, below, down)) = self.rows.get(y).copied() else { return };
        let row = |y: usize| self.plane.samples.get(y * self.plane.stride..).unwrap_or_default();
        let (above, below) = (row(above), row(below));
        for (sample, (left, right, across)) in line.iter_mut().zip(&self.columns) {
            let at = |row: &[u8], x: &usize| u32::from(row.get(*x).copied().unwrap_or(128));
            let mix = |row: &[u8]| at(row, left) * (256 - across) + at(row, right) * across;
            *sample = ((mix(above) * (256 - down) + mix(below) * down + (1 << 15)) >> 16) as u8;
        }
    }
}

/// For each of so many places, the two samples that it lies between, and how near the second is, in 256ths.
fn neighbours(places: usize, samples: usize, ratio: f64) -> Vec<(usize, usize, u32)> {
    let last = samples.saturating_sub(1);
    let place = |place: usize| {
        let middle = ((place as f64 + 0.5) * ratio - 0.5).clamp(0.0, last as f64);
        let near = (middle.fract() * 256.0) as u32;
        (middle as usize, (middle as usize + 1).min(last), near)
    };
    (0..places).map(place).collect()
}

fn from_ycbcr(y: u8, cb: u8, cr: u8) -> [u8; 3] {
    let (y, cb, cr) = (i32::from(y) << 16, i32::from(cb) - 128, i32::from(cr) - 128);
    let byte = |value: i32| ((value + (1 << 15)) >> 16).clamp(0, 255) as u8;
    [byte(y + 91_881 * cr), byte(y - 22_554 * cb - 46_802 * cr), byte(y + 116_130 * cb)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_are_those_of_jfif() {
        let table = [
            ((0, 128, 128), [0, 0, 0]),
            ((255, 128, 128), [255, 255, 255]),
            ((76, 85, 255), [254, 0, 0]),
            ((150, 44, 21), [0, 255, 1]),
            ((29, 255, 107), [0, 0, 254]),
        ];
        for ((y, cb, cr), rgb) in table {
            assert_eq!(from_ycbcr(y, cb, cr), rgb, "{y} {cb} {cr}");
        }
    }

    #[test]
    fn a_smaller_plane_is_interpolated_between_middles() {
        assert_eq!(neighbours(4, 2, 0.5), [(0, 1, 0), (0, 1, 64), (0, 1, 192), (1, 1, 0)]);
        assert_eq!(neighbours(3, 3, 1.0), [(0, 1, 0), (1, 2, 0), (2, 2, 0)]);
        assert_eq!(neighbours(1, 1, 0.6), [(0, 0, 0)]);
        assert_eq!(neighbours(1, 0, 1.0), [(0, 0, 0)]);
    }
}
