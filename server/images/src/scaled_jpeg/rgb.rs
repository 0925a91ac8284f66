//! Planes of one size to pixels.
//!
//! Full range BT.601, as JFIF 1.02 has it.

use super::header::Colour;

/// Interleaved red, green and blue, one byte each, of as many pixels as every plane has.
pub fn to_rgb(colour: Colour, planes: &[Vec<u8>; 3]) -> Vec<u8> {
    match colour {
        Colour::YCbCr => interleaved(planes, from_ycbcr),
        Colour::Grey | Colour::Rgb => interleaved(planes, |a, b, c| [a, b, c]),
    }
}

fn interleaved(
    [first, second, third]: &[Vec<u8>; 3],
    pixel: impl Fn(u8, u8, u8) -> [u8; 3],
) -> Vec<u8> {
    let count = first.len().min(second.len()).min(third.len());
    let mut pixels = vec![0; 3 * count];
    let samples = first.iter().zip(second).zip(third);
    for (place, ((a, b), c)) in pixels.as_chunks_mut().0.iter_mut().zip(samples) {
        *place = pixel(*a, *b, *c);
    }
    pixels
}

/// Red, green and blue of one pixel.
#[inline(always)]
pub fn from_ycbcr(y: u8, cb: u8, cr: u8) -> [u8; 3] {
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
}
