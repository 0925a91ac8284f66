//! Resizes a picture, or a part of it.

use kernels::{PixelLayout, resample};
use scaled_jpeg::Plane;

use crate::error::Error;
use crate::picture::PixelBuffer;

/// Resizes a part of a picture: left, top, width, height in its pixels.
pub(super) fn resize_pixels(
    picture: PixelBuffer,
    sides: (u32, u32),
    cut: [f64; 4],
) -> Result<PixelBuffer, Error> {
    let all = [0.0, 0.0, f64::from(picture.width), f64::from(picture.height)];
    if picture.dimensions() == sides && cut == all {
        return Ok(picture);
    }
    let samples = resample(picture.layout, picture.dimensions(), &picture.samples, sides, cut);
    let samples = samples.map_err(Error::failed)?;
    Ok(PixelBuffer { width: sides.0, height: sides.1, samples, ..picture })
}

/// Resizes a part of a plane: left, top, width, height in its samples.
pub(super) fn resize_plane(
    mut plane: Plane,
    sides: (u32, u32),
    cut: [f64; 4],
) -> Result<Vec<u8>, Error> {
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
    resample(PixelLayout::Grey, from, &plane.samples, sides, cut).map_err(Error::failed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resize_premultiplies_alpha() {
        // Opaque red next to transparent green.
        let samples: Vec<u8> = (0..64)
            .flat_map(|at| if at % 8 < 4 { [255, 0, 0, 255] } else { [0, 255, 0, 0] })
            .collect();
        let pixels = PixelBuffer::new((8, 8), PixelLayout::Rgba, samples, None).unwrap();
        let small = resize_pixels(pixels, (2, 2), [0.0, 0.0, 8.0, 8.0]).unwrap();
        for [red, green, _, alpha] in small.samples.as_chunks::<4>().0 {
            assert!(*alpha == 0 || (*red > 250 && *green < 5), "{red} {green} {alpha}");
        }
    }

    #[test]
    fn resize_crops_the_source_area() {
        let samples: Vec<u8> =
            (0..16).flat_map(|at: u8| [if at % 4 < 2 { 0 } else { 255 }]).collect();
        let pixels = PixelBuffer::new((4, 4), PixelLayout::Grey, samples, None).unwrap();
        let right = resize_pixels(pixels.clone(), (2, 4), [2.0, 0.0, 2.0, 4.0]).unwrap();
        assert_eq!((right.dimensions(), &*right.samples), ((2, 4), &[255; 8][..]));
        let all = [0.0, 0.0, 4.0, 4.0];
        assert_eq!(resize_pixels(pixels.clone(), (4, 4), all).unwrap(), pixels);
    }

    #[test]
    fn mcu_padding_does_not_leak_into_resize() {
        let samples = (0..48).map(|at| if at % 8 < 6 && at < 40 { 70 } else { 255 }).collect();
        let filled = Plane { width: 6, height: 5, covered: (6.0, 5.0), stride: 8, samples };
        let all = [0.0, 0.0, 6.0, 5.0];
        assert_eq!(resize_plane(filled.clone(), (6, 5), all).unwrap(), [70; 30]);
        assert_eq!(resize_plane(filled, (3, 2), all).unwrap(), [70; 6]);
    }
}
