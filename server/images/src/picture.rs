//! Decoded picture in memory.

pub(super) use kernels::PixelLayout;

use crate::error::Error;

/// Rows of pixels, eight bits per channel, gamma-encoded, with straight alpha.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PixelBuffer {
    /// Width in pixels, at least 1.
    pub width: u32,
    /// Height in pixels, at least 1.
    pub height: u32,
    /// Channels of a pixel.
    pub layout: PixelLayout,
    /// Samples, `width * height * layout.channels()`, row by row.
    pub samples: Vec<u8>,
    /// ICC profile of the samples; sRGB if `None`.
    pub profile: Option<Vec<u8>>,
}

impl PixelBuffer {
    /// Creates a picture after checking the number of samples.
    pub fn new(
        (width, height): (u32, u32),
        layout: PixelLayout,
        samples: Vec<u8>,
        profile: Option<Vec<u8>>,
    ) -> Result<Self, Error> {
        let expected = width as usize * height as usize * layout.channels();
        if samples.len() != expected || expected == 0 {
            let found = samples.len();
            return Err(Error::Undecodable(format!("{found} samples instead of {expected}")));
        }
        Ok(Self { width, height, layout, samples, profile })
    }

    /// Returns width and height.
    pub fn dimensions(&self) -> (u32, u32) {
        (self.width, self.height)
    }

    /// Removes the alpha channel if the picture is opaque.
    pub fn drop_opaque_alpha(self) -> Self {
        let is_idle = match self.layout {
            PixelLayout::Grey | PixelLayout::Rgb | PixelLayout::Cmyk => return self,
            PixelLayout::GreyAlpha => {
                self.samples.as_chunks::<2>().0.iter().all(|[_, a]| *a == 255)
            }
            PixelLayout::Rgba => self.samples.as_chunks::<4>().0.iter().all(|[.., a]| *a == 255),
        };
        if is_idle { self.map_pixels(|_, color| color) } else { self }
    }

    /// Composites the picture on white.
    pub fn flatten_on_white(self) -> Self {
        self.map_pixels(|alpha, color| {
            let over = u32::from(color) * u32::from(alpha) + 255 * (255 - u32::from(alpha));
            ((over + 127) / 255) as u8
        })
    }

    /// Converts grey to red, green and blue, with alpha unchanged.
    pub fn into_rgb(self) -> Self {
        let (layout, samples) = match self.layout {
            PixelLayout::Rgb | PixelLayout::Rgba | PixelLayout::Cmyk => return self,
            PixelLayout::Grey => {
                (PixelLayout::Rgb, self.samples.iter().flat_map(|v| [*v; 3]).collect())
            }
            PixelLayout::GreyAlpha => {
                let pixels = self.samples.as_chunks::<2>().0;
                (PixelLayout::Rgba, pixels.iter().flat_map(|[v, a]| [*v, *v, *v, *a]).collect())
            }
        };
        Self { layout, samples, ..self }
    }

    /// Removes the alpha channel by combining each of the other samples with it.
    fn map_pixels(self, sample: impl Fn(u8, u8) -> u8) -> Self {
        let (layout, samples) = match self.layout {
            PixelLayout::Grey | PixelLayout::Rgb | PixelLayout::Cmyk => return self,
            PixelLayout::GreyAlpha => {
                let pixels = self.samples.as_chunks::<2>().0;
                (PixelLayout::Grey, pixels.iter().map(|[v, a]| sample(*a, *v)).collect())
            }
            PixelLayout::Rgba => {
                let pixels = self.samples.as_chunks::<4>().0;
                let colours = |[r, g, b, a]: &[u8; 4]| [*r, *g, *b].map(|value| sample(*a, value));
                (PixelLayout::Rgb, pixels.iter().flat_map(colours).collect())
            }
        };
        Self { layout, samples, ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn picture(layout: PixelLayout, samples: &[u8]) -> PixelBuffer {
        let width = (samples.len() / layout.channels()) as u32;
        PixelBuffer::new((width, 1), layout, samples.to_vec(), None).unwrap()
    }

    #[test]
    fn sample_count_is_validated() {
        assert!(PixelBuffer::new((2, 2), PixelLayout::Rgb, vec![0; 12], None).is_ok());
        assert!(PixelBuffer::new((2, 2), PixelLayout::Rgb, vec![0; 11], None).is_err());
        assert!(PixelBuffer::new((0, 2), PixelLayout::Rgb, Vec::new(), None).is_err());
    }

    #[test]
    fn opaque_alpha_channel_is_dropped() {
        let opaque = picture(PixelLayout::Rgba, &[1, 2, 3, 255, 4, 5, 6, 255]);
        assert_eq!(opaque.drop_opaque_alpha(), picture(PixelLayout::Rgb, &[1, 2, 3, 4, 5, 6]));
        let grey = picture(PixelLayout::GreyAlpha, &[1, 255]);
        assert_eq!(grey.drop_opaque_alpha(), picture(PixelLayout::Grey, &[1]));
        let clear = picture(PixelLayout::Rgba, &[1, 2, 3, 255, 4, 5, 6, 254]);
        assert_eq!(clear.clone().drop_opaque_alpha(), clear);
    }

    #[test]
    fn transparent_pixels_flatten_to_white() {
        let drawn = picture(PixelLayout::Rgba, &[10, 20, 30, 255, 10, 20, 30, 0, 0, 0, 0, 128]);
        let expected = picture(PixelLayout::Rgb, &[10, 20, 30, 255, 255, 255, 127, 127, 127]);
        assert_eq!(drawn.flatten_on_white(), expected);
        assert_eq!(
            picture(PixelLayout::GreyAlpha, &[0, 0]).flatten_on_white(),
            picture(PixelLayout::Grey, &[255])
        );
    }

    #[test]
    fn grey_is_colour_with_equal_parts() {
        assert_eq!(
            picture(PixelLayout::Grey, &[7]).into_rgb(),
            picture(PixelLayout::Rgb, &[7, 7, 7])
        );
        let clear = picture(PixelLayout::GreyAlpha, &[7, 9]);
        assert_eq!(clear.into_rgb(), picture(PixelLayout::Rgba, &[7, 7, 7, 9]));
    }
}
