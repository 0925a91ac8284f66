//! A picture, or a part of it, at another size.
//!
//! Lanczos with three lobes over the gamma-encoded samples, alpha multiplied in meanwhile: what libvips, and so every
//! server that is built on it, does unless it is told otherwise. Averaging linear light makes fine bright detail on
//! dark ground brighter, and halos on text; it costs three times as much.

use fast_image_resize::images::{Image, ImageRef};
use fast_image_resize::{FilterType, PixelType, ResizeAlg, ResizeOptions, Resizer};

use crate::error::Error;
use crate::picture::{Layout, Picture};

/// The picture at a size. `cut` is the part of it that is shown: left, top, width, height in its pixels.
pub(super) fn resize(
    picture: Picture,
    (width, height): (u32, u32),
    cut: Option<[f64; 4]>,
) -> Result<Picture, Error> {
    if picture.sides() == (width, height) && cut.is_none() {
        return Ok(picture);
    }
    let pixel = match picture.layout {
        Layout::Grey => PixelType::U8,
        Layout::GreyAlpha => PixelType::U8x2,
        Layout::Rgb => PixelType::U8x3,
        Layout::Rgba => PixelType::U8x4,
    };
    let from = ImageRef::new(picture.width, picture.height, &picture.samples, pixel)
        .map_err(Error::failed)?;
    let mut to = Image::new(width, height, pixel);
    let algorithm = ResizeAlg::Convolution(FilterType::Lanczos3);
    let mut options = ResizeOptions::new().resize_alg(algorithm);
    if let Some([left, top, across, down]) = cut {
        // A sum that was rounded may stand out of the picture by the last digit.
        let across = across.min(f64::from(picture.width) - left);
        let down = down.min(f64::from(picture.height) - top);
        options = options.crop(left, top, across, down);
    }
    Resizer::new().resize(&from, &mut to, &options).map_err(Error::failed)?;
    Ok(Picture { width, height, samples: to.into_vec(), ..picture })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_clear_does_not_colour_its_neighbours() {
        // Red that is seen beside green that is not.
        let samples: Vec<u8> = (0..64)
            .flat_map(|at| if at % 8 < 4 { [255, 0, 0, 255] } else { [0, 255, 0, 0] })
            .collect();
        let picture = Picture::new((8, 8), Layout::Rgba, samples, None).unwrap();
        let small = resize(picture, (2, 2), None).unwrap();
        for [red, green, _, alpha] in small.samples.as_chunks::<4>().0 {
            assert!(*alpha == 0 || (*red > 250 && *green < 5), "{red} {green} {alpha}");
        }
    }

    #[test]
    fn a_part_is_cut_out() {
        let samples: Vec<u8> =
            (0..16).flat_map(|at: u8| [if at % 4 < 2 { 0 } else { 255 }]).collect();
        let picture = Picture::new((4, 4), Layout::Grey, samples, None).unwrap();
        let right = resize(picture.clone(), (2, 4), Some([2.0, 0.0, 2.0, 4.0])).unwrap();
        assert_eq!((right.sides(), &*right.samples), ((2, 4), &[255; 8][..]));
        assert_eq!(resize(picture.clone(), (4, 4), None).unwrap(), picture);
    }
}
