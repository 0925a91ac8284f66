//! Lanczos3 resampling of a part of a picture.
//!
//! The filter works on gamma-encoded samples with premultiplied alpha, as is the default of libvips and of servers
//! based on it. Filtering in linear light makes fine bright details on dark ground brighter, and halos on text; it
//! takes three times as long.

use fast_image_resize::images::{Image, TypedImageRef};
use fast_image_resize::pixels::{U8, U8x2, U8x3, U8x4};
use fast_image_resize::{FilterType, PixelTrait, ResizeAlg, ResizeOptions, Resizer};

/// Radius of the filter in pixels of the smaller picture, in each direction.
pub const KERNEL_RADIUS: f64 = 3.0;

/// Number of 8-bit samples of a pixel, and whether the last one is alpha.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Pixel {
    One,
    OneAndAlpha,
    Three,
    ThreeAndAlpha,
    Four,
}

/// Resamples a part of a picture.
///
/// `from` and `to` are width and height in pixels; `samples` are the rows of the picture without padding; `part` is
/// left, top, width and height in pixels of the picture and may exceed it by a rounding error.
///
/// # Errors
///
/// Returns the library's message if `samples` are too few for `from`, or if `part` is outside of the picture.
#[inline(never)]
pub fn resample(
    pixel: Pixel,
    from: (u32, u32),
    samples: &[u8],
    to: (u32, u32),
    part: [f64; 4],
) -> Result<Vec<u8>, String> {
    match pixel {
        Pixel::One => convolve::<U8>(false, from, samples, to, part),
        Pixel::OneAndAlpha => convolve::<U8x2>(true, from, samples, to, part),
        Pixel::Three => convolve::<U8x3>(false, from, samples, to, part),
        Pixel::ThreeAndAlpha => convolve::<U8x4>(true, from, samples, to, part),
        Pixel::Four => convolve::<U8x4>(false, from, samples, to, part),
    }
}

/// Takes the pixel type as a parameter: `Resizer::resize`, which matches on it, compiles the filters of 13 types.
fn convolve<P: PixelTrait>(
    has_alpha: bool,
    from: (u32, u32),
    samples: &[u8],
    to: (u32, u32),
    [left, top, across, down]: [f64; 4],
) -> Result<Vec<u8>, String> {
    let source = TypedImageRef::<P>::from_buffer(from.0, from.1, samples);
    let source = source.map_err(|error| error.to_string())?;
    let mut resampled = Image::new(to.0, to.1, P::pixel_type());
    let mut target = resampled.typed_image_mut::<P>().ok_or("pixel types differ")?;
    // A rounded sum may exceed the picture by the last digit.
    let across = across.min(f64::from(from.0) - left);
    let down = down.min(f64::from(from.1) - top);
    let options = ResizeOptions::new()
        .resize_alg(ResizeAlg::Convolution(FilterType::Lanczos3))
        .crop(left, top, across, down)
        .use_alpha(has_alpha);
    let result = Resizer::new().resize_typed(&source, &mut target, &options);
    result.map_err(|error| error.to_string())?;
    Ok(resampled.into_vec())
}
