//! Lanczos3 resampling of a part of an image.
//!
//! The filter works on gamma-encoded samples with premultiplied alpha, as is the default of libvips and of servers
//! based on it. Filtering in linear light makes fine bright details on dark ground brighter, and halos on text; it
//! takes three times as long.

use fast_image_resize::images::{Image, TypedImageRef};
use fast_image_resize::pixels::{U8, U8x2, U8x3, U8x4};
use fast_image_resize::{FilterType, PixelTrait, ResizeAlg, ResizeOptions, Resizer};

use crate::PixelLayout;

/// Radius of the filter in pixels of the smaller image, in each direction.
pub const KERNEL_RADIUS: f64 = 3.0;

/// Resamples a part of an image.
///
/// `from` and `to` are width and height in pixels; `samples` are the rows of the image without padding; `part` is
/// left, top, width and height in pixels of the image and may exceed it by a rounding error.
///
/// # Errors
///
/// Returns the library's message if `samples` are too few for `from`, or if `part` is outside of the image.
#[inline(never)]
pub fn resample(
    layout: PixelLayout,
    from: (u32, u32),
    samples: &[u8],
    to: (u32, u32),
    part: [f64; 4],
) -> Result<Vec<u8>, String> {
    let convolve = match layout {
        PixelLayout::Grey => convolve::<U8>,
        PixelLayout::GreyAlpha => convolve::<U8x2>,
        PixelLayout::Rgb => convolve::<U8x3>,
        PixelLayout::Rgba | PixelLayout::Cmyk => convolve::<U8x4>,
    };
    convolve(layout.has_alpha(), from, samples, to, part)
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
    // A rounded sum may exceed the image by the last digit.
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
