//! Resizes a picture, or a part of it.

use kernels::{Pixel, resample};

use crate::error::Error;
use crate::picture::{Layout, Picture};
use crate::scaled_jpeg::Plane;

/// Resizes a part of a picture: left, top, width, height in its pixels.
pub(super) fn picture(
    picture: Picture,
    sides: (u32, u32),
    cut: [f64; 4],
) -> Result<Picture, Error> {
    let all = [0.0, 0.0, f64::from(picture.width), f64::from(picture.height)];
    if picture.sides() == sides && cut == all {
        return Ok(picture);
    }
    let pixel = match picture.layout {
        Layout::Grey => Pixel::One,
        Layout::GreyAlpha => Pixel::OneAndAlpha,
        Layout::Rgb => Pixel::Three,
        Layout::Rgba => Pixel::ThreeAndAlpha,
        Layout::Cmyk => Pixel::Four,
    };
    let samples = resample(pixel, picture.sides(), &picture.samples, sides, cut);
    let samples = samples.map_err(Error::failed)?;
    Ok(Picture { width: sides.0, height: sides.1, samples, ..picture })
}

/// Resizes a part of a plane: left, top, width, height in its samples.
pub(super) fn plane(mut plane: Plane, sides: (u32, u32), cut: [f64; 4]) -> Result<Vec<u8>, Error> {
    // Padding at the end of rows is not part of the picture.
    if plane.stride > plane.width {
        for row in 1..plane.height {
            let from = row * plane.stride;
            plane.samples.copy_within(from..from + plane.width, row * plane.width);
        }
    }
    plane.samples.truncate(plane.width * plane.height);
    let from = (plane.width as u32, plane.height as u32);
    if from == sides && cut == [0.0, 0.0, f64::from(from.0), f64::from(from.1)] {
        return Ok(plane.samples);
    }
    resample(Pixel::One, from, &plane.samples, sides, cut).map_err(Error::failed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_clear_does_not_colour_its_neighbours() {
        // Opaque red next to transparent green.
        let samples: Vec<u8> = (0..64)
            .flat_map(|at| if at % 8 < 4 { [255, 0, 0, 255] } else { [0, 255, 0, 0] })
            .collect();
        let pixels = Picture::new((8, 8), Layout::Rgba, samples, None).unwrap();
        let small = picture(pixels, (2, 2), [0.0, 0.0, 8.0, 8.0]).unwrap();
        for [red, green, _, alpha] in small.samples.as_chunks::<4>().0 {
            assert!(*alpha == 0 || (*red > 250 && *green < 5), "{red} {green} {alpha}");
        }
    }

    #[test]
    fn a_part_is_cut_out() {
        let samples: Vec<u8> =
            (0..16).flat_map(|at: u8| [if at % 4 < 2 { 0 } else { 255 }]).collect();
        let pixels = Picture::new((4, 4), Layout::Grey, samples, None).unwrap();
        let right = picture(pixels.clone(), (2, 4), [2.0, 0.0, 2.0, 4.0]).unwrap();
        assert_eq!((right.sides(), &*right.samples), ((2, 4), &[255; 8][..]));
        let all = [0.0, 0.0, 4.0, 4.0];
        assert_eq!(picture(pixels.clone(), (4, 4), all).unwrap(), pixels);
    }

    #[test]
    fn what_fills_up_the_blocks_of_a_plane_is_not_seen() {
        let samples = (0..48).map(|at| if at % 8 < 6 && at < 40 { 70 } else { 255 }).collect();
        let filled = Plane { width: 6, height: 5, covered: (6.0, 5.0), stride: 8, samples };
        let all = [0.0, 0.0, 6.0, 5.0];
        assert_eq!(plane(filled.clone(), (6, 5), all).unwrap(), [70; 30]);
        assert_eq!(plane(filled, (3, 2), all).unwrap(), [70; 6]);
    }
}
