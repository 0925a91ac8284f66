//! Decoded picture in memory.

use crate::error::Error;

/// Rows of pixels, eight bits per channel, gamma-encoded, with straight alpha.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Picture {
    /// Width in pixels, at least 1.
    pub width: u32,
    /// Height in pixels, at least 1.
    pub height: u32,
    /// Channels of a pixel.
    pub layout: Layout,
    /// Samples, `width * height * layout.channels()`, row by row.
    pub samples: Vec<u8>,
    /// ICC profile of the samples; sRGB if `None`.
    pub profile: Option<Vec<u8>>,
}

/// Channels of a pixel, in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// Grey.
    Grey,
    /// Grey and alpha.
    GreyAlpha,
    /// Red, green, blue.
    Rgb,
    /// Red, green, blue, alpha.
    Rgba,
    /// Cyan, magenta, yellow and black: 0 is no ink. Only before the conversion to sRGB.
    Cmyk,
}

impl Layout {
    /// Returns the number of samples per pixel.
    pub fn channels(self) -> usize {
        match self {
            Self::Grey => 1,
            Self::GreyAlpha => 2,
            Self::Rgb => 3,
            Self::Rgba | Self::Cmyk => 4,
        }
    }

    /// Returns whether the last channel is alpha.
    pub fn has_alpha(self) -> bool {
        matches!(self, Self::GreyAlpha | Self::Rgba)
    }
}

impl Picture {
    /// Creates a picture after checking the number of samples.
    pub fn new(
        (width, height): (u32, u32),
        layout: Layout,
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
    pub fn sides(&self) -> (u32, u32) {
        (self.width, self.height)
    }

    /// Removes the alpha channel if the picture is opaque.
    pub fn without_idle_alpha(self) -> Self {
        let is_idle = match self.layout {
            Layout::Grey | Layout::Rgb | Layout::Cmyk => return self,
            Layout::GreyAlpha => self.samples.as_chunks::<2>().0.iter().all(|[_, a]| *a == 255),
            Layout::Rgba => self.samples.as_chunks::<4>().0.iter().all(|[.., a]| *a == 255),
        };
        if is_idle { self.map_pixels(|_, color| color) } else { self }
    }

    /// Composites the picture on white.
    pub fn on_white(self) -> Self {
        self.map_pixels(|alpha, color| {
            let over = u32::from(color) * u32::from(alpha) + 255 * (255 - u32::from(alpha));
            ((over + 127) / 255) as u8
        })
    }

    /// Converts grey to red, green and blue, with alpha unchanged.
    pub fn in_colour(self) -> Self {
        let (layout, samples) = match self.layout {
            Layout::Rgb | Layout::Rgba | Layout::Cmyk => return self,
            Layout::Grey => (Layout::Rgb, self.samples.iter().flat_map(|v| [*v; 3]).collect()),
            Layout::GreyAlpha => {
                let pixels = self.samples.as_chunks::<2>().0;
                (Layout::Rgba, pixels.iter().flat_map(|[v, a]| [*v, *v, *v, *a]).collect())
            }
        };
        Self { layout, samples, ..self }
    }

    /// Removes the alpha channel by combining each of the other samples with it.
    fn map_pixels(self, sample: impl Fn(u8, u8) -> u8) -> Self {
        let (layout, samples) = match self.layout {
            Layout::Grey | Layout::Rgb | Layout::Cmyk => return self,
            Layout::GreyAlpha => {
                let pixels = self.samples.as_chunks::<2>().0;
                (Layout::Grey, pixels.iter().map(|[v, a]| sample(*a, *v)).collect())
            }
            Layout::Rgba => {
                let pixels = self.samples.as_chunks::<4>().0;
                let colours = |[r, g, b, a]: &[u8; 4]| [*r, *g, *b].map(|value| sample(*a, value));
                (Layout::Rgb, pixels.iter().flat_map(colours).collect())
            }
        };
        Self { layout, samples, ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn picture(layout: Layout, samples: &[u8]) -> Picture {
        let width = (samples.len() / layout.channels()) as u32;
        Picture::new((width, 1), layout, samples.to_vec(), None).unwrap()
    }

    #[test]
    fn the_number_of_samples_is_checked() {
        assert!(Picture::new((2, 2), Layout::Rgb, vec![0; 12], None).is_ok());
        assert!(Picture::new((2, 2), Layout::Rgb, vec![0; 11], None).is_err());
        assert!(Picture::new((0, 2), Layout::Rgb, Vec::new(), None).is_err());
    }

    #[test]
    fn an_opaque_alpha_is_left_out_and_any_other_stays() {
        let opaque = picture(Layout::Rgba, &[1, 2, 3, 255, 4, 5, 6, 255]);
        assert_eq!(opaque.without_idle_alpha(), picture(Layout::Rgb, &[1, 2, 3, 4, 5, 6]));
        let grey = picture(Layout::GreyAlpha, &[1, 255]);
        assert_eq!(grey.without_idle_alpha(), picture(Layout::Grey, &[1]));
        let clear = picture(Layout::Rgba, &[1, 2, 3, 255, 4, 5, 6, 254]);
        assert_eq!(clear.clone().without_idle_alpha(), clear);
    }

    #[test]
    fn what_is_clear_becomes_white() {
        let drawn = picture(Layout::Rgba, &[10, 20, 30, 255, 10, 20, 30, 0, 0, 0, 0, 128]);
        let expected = picture(Layout::Rgb, &[10, 20, 30, 255, 255, 255, 127, 127, 127]);
        assert_eq!(drawn.on_white(), expected);
        assert_eq!(picture(Layout::GreyAlpha, &[0, 0]).on_white(), picture(Layout::Grey, &[255]));
    }

    #[test]
    fn grey_is_colour_with_equal_parts() {
        assert_eq!(picture(Layout::Grey, &[7]).in_colour(), picture(Layout::Rgb, &[7, 7, 7]));
        let clear = picture(Layout::GreyAlpha, &[7, 9]);
        assert_eq!(clear.in_colour(), picture(Layout::Rgba, &[7, 7, 7, 9]));
    }
}
