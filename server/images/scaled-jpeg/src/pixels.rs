//! Converts component samples to pixels.
//!
//! YCbCr is full range BT.601, as in JFIF 1.02. Inks are stored inverted: Adobe's programs write them so, and every
//! reader interprets four components so, with or without the Adobe segment (Technical Note 5116).

use super::header::ColorModel;

/// Interleaves planes of one size to pixels: grey, red green blue, or four inks, of which 0 is none.
pub fn to_pixels(colour: ColorModel, planes: &[&[u8]]) -> Vec<u8> {
    let count = planes.iter().map(|plane| plane.len()).min().unwrap_or(0);
    let mut pixels = vec![0; planes.len() * count];
    interleave(colour, planes, &mut pixels);
    pixels
}

/// Writes as many pixels as all planes and the destination have.
pub(super) fn interleave(colour: ColorModel, planes: &[&[u8]], pixels: &mut [u8]) {
    match (colour, planes) {
        (ColorModel::YCbCr, [a, b, c]) => interleave_three([a, b, c], pixels, from_ycbcr),
        (_, [a, b, c]) => interleave_three([a, b, c], pixels, |a, b, c| [a, b, c]),
        (ColorModel::Ycck, [a, b, c, d]) => {
            // YCbCr of inverted inks is, inverted, YCbCr of red, green and blue: so these are the inks.
            interleave_four([a, b, c, d], pixels, |y, cb, cr, k| {
                let [cyan, magenta, yellow] = from_ycbcr(y, cb, cr);
                [cyan, magenta, yellow, 255 - k]
            });
        }
        (_, [a, b, c, d]) => {
            interleave_four([a, b, c, d], pixels, |c, m, y, k| [c, m, y, k].map(|left| 255 - left));
        }
        (_, [grey]) => {
            pixels.iter_mut().zip(*grey).for_each(|(pixel, sample)| *pixel = *sample);
        }
        _ => {}
    }
}

#[inline(always)]
fn interleave_three(planes: [&[u8]; 3], pixels: &mut [u8], of: impl Fn(u8, u8, u8) -> [u8; 3]) {
    let [first, second, third] = planes;
    let samples = first.iter().zip(second).zip(third);
    for (place, ((a, b), c)) in pixels.as_chunks_mut().0.iter_mut().zip(samples) {
        *place = of(*a, *b, *c);
    }
}

#[inline(always)]
fn interleave_four(planes: [&[u8]; 4], pixels: &mut [u8], of: impl Fn(u8, u8, u8, u8) -> [u8; 4]) {
    let [first, second, third, fourth] = planes;
    let samples = first.iter().zip(second).zip(third).zip(fourth);
    for (place, (((a, b), c), d)) in pixels.as_chunks_mut().0.iter_mut().zip(samples) {
        *place = of(*a, *b, *c, *d);
    }
}

/// Converts one pixel to red, green and blue.
#[inline(always)]
fn from_ycbcr(y: u8, cb: u8, cr: u8) -> [u8; 3] {
    let (y, cb, cr) = (i32::from(y) << 16, i32::from(cb) - 128, i32::from(cr) - 128);
    let byte = |value: i32| ((value + (1 << 15)) >> 16).clamp(0, 255) as u8;
    [byte(y + 91_881 * cr), byte(y - 22_554 * cb - 46_802 * cr), byte(y + 116_130 * cb)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ycbcr_conversion_follows_jfif() {
        let table = [
            ((0, 128, 128), [0, 0, 0]),
            ((255, 128, 128), [255, 255, 255]),
            ((76, 85, 255), [254, 0, 0]),
            ((150, 44, 21), [0, 255, 1]),
            ((29, 255, 107), [0, 0, 254]),
        ];
        for ((y, cb, cr), rgb) in table {
            assert_eq!(to_pixels(ColorModel::YCbCr, &[&[y], &[cb], &[cr]]), rgb, "{y} {cb} {cr}");
        }
    }

    #[test]
    fn rgb_and_cmyk_planes_are_interleaved() {
        let planes: [&[u8]; 4] = [&[255, 1], &[128, 2], &[128, 3], &[250, 4]];
        assert_eq!(to_pixels(ColorModel::Grey, &planes[..1]), [255, 1]);
        assert_eq!(to_pixels(ColorModel::Rgb, &planes[..3]), [255, 128, 128, 1, 2, 3]);
        assert_eq!(to_pixels(ColorModel::Cmyk, &planes), [0, 127, 127, 5, 254, 253, 252, 251]);
        assert_eq!(to_pixels(ColorModel::Ycck, &planes)[..4], [255, 255, 255, 5]);
    }
}
