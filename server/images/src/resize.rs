//! Resizes a picture, or a part of it.
//!
//! The filter is Lanczos3 on gamma-encoded samples with premultiplied alpha, as is the default of libvips and of
//! servers based on it. Filtering in linear light makes fine bright details on dark ground brighter, and halos on
//! text; it takes three times as long.

use fast_image_resize::images::{Image, ImageRef};
use fast_image_resize::{FilterType, PixelType, ResizeAlg, ResizeOptions, Resizer};

use crate::error::Error;
use crate::picture::{Layout, Picture};
use crate::scaled_jpeg::Plane;

/// Reach of the filter in pixels of the smaller picture, in each direction.
pub(super) const REACH: f64 = 3.0;

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
        Layout::Grey => PixelType::U8,
        Layout::GreyAlpha => PixelType::U8x2,
        Layout::Rgb => PixelType::U8x3,
        Layout::Rgba | Layout::Cmyk => PixelType::U8x4,
    };
    let has_alpha = picture.layout.has_alpha();
    let samples = convolve(pixel, has_alpha, picture.sides(), &picture.samples, sides, cut)?;
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
    convolve(PixelType::U8, false, from, &plane.samples, sides, cut)
}

fn convolve(
    pixel: PixelType,
    has_alpha: bool,
    from: (u32, u32),
    samples: &[u8],
    to: (u32, u32),
    [left, top, across, down]: [f64; 4],
) -> Result<Vec<u8>, Error> {
    let source = ImageRef::new(from.0, from.1, samples, pixel).map_err(Error::failed)?;
    let mut made = Image::new(to.0, to.1, pixel);
    // A rounded sum may exceed the picture by the last digit.
    let across = across.min(f64::from(from.0) - left);
    let down = down.min(f64::from(from.1) - top);
    let options = ResizeOptions::new()
        .resize_alg(ResizeAlg::Convolution(FilterType::Lanczos3))
        .crop(left, top, across, down)
        .use_alpha(has_alpha);
    Resizer::new().resize(&source, &mut made, &options).map_err(Error::failed)?;
    Ok(made.into_vec())
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
