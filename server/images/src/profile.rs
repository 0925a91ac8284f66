//! Converts colours from the ICC profile of a file to sRGB, which viewers assume without a profile.
//!
//! The conversion follows the resizing, so it costs little. The rendering intent is relative colorimetric, as in
//! browsers. A broken profile, or one of another colour space than the picture, is ignored; CMYK without a profile
//! is converted by multiplying the transmission of the inks.

use std::sync::Arc;

use moxcms::{
    ColorProfile, DataColorSpace, Layout as Channels, RenderingIntent, Transform8BitExecutor,
    TransformOptions,
};

use crate::error::Error;
use crate::picture::{PixelBuffer, PixelLayout};

/// Converts a picture to sRGB without a profile: grey, or red, green and blue.
pub(super) fn to_srgb(mut picture: PixelBuffer) -> Result<PixelBuffer, Error> {
    let profile = picture.profile.take();
    ToSrgb::new(profile.as_deref()).convert(picture)
}

/// Converter of a profile, built once for all frames: its tables cost more than a few pixels.
pub(super) struct ToSrgb {
    profile: Option<ColorProfile>,
    /// Transform per layout seen so far; `None` if the profile does not apply to it.
    transforms: Vec<(PixelLayout, Option<Transform>)>,
}

#[derive(Clone)]
struct Transform {
    output_layout: PixelLayout,
    executor: Arc<Transform8BitExecutor>,
}

impl ToSrgb {
    /// Creates a converter. Colours are unchanged without a profile, or with a broken one.
    pub(super) fn new(profile: Option<&[u8]>) -> Self {
        let profile = profile.and_then(|profile| ColorProfile::new_from_slice(profile).ok());
        Self { profile, transforms: Vec::new() }
    }

    /// Converts a picture to sRGB without a profile: grey, or red, green and blue.
    pub(super) fn convert(&mut self, picture: PixelBuffer) -> Result<PixelBuffer, Error> {
        match self.transform(picture.layout) {
            Some(transform) => transform.apply(&picture),
            None if picture.layout == PixelLayout::Cmyk => without_inks(&picture),
            None => Ok(PixelBuffer { profile: None, ..picture }),
        }
    }

    fn transform(&mut self, layout: PixelLayout) -> Option<Transform> {
        let profile = self.profile.as_ref()?;
        if let Some((_, known)) = self.transforms.iter().find(|(of, _)| *of == layout) {
            return known.clone();
        }
        let transform = Transform::new(profile, layout);
        self.transforms.push((layout, transform.clone()));
        transform
    }
}

impl Transform {
    fn new(profile: &ColorProfile, layout: PixelLayout) -> Option<Self> {
        let (from, to, made) = match (profile.color_space, layout) {
            (DataColorSpace::Rgb, PixelLayout::Rgb) => {
                (Channels::Rgb, Channels::Rgb, PixelLayout::Rgb)
            }
            (DataColorSpace::Rgb, PixelLayout::Rgba) => {
                (Channels::Rgba, Channels::Rgba, PixelLayout::Rgba)
            }
            (DataColorSpace::Gray, PixelLayout::Grey) => {
                (Channels::Gray, Channels::Rgb, PixelLayout::Rgb)
            }
            (DataColorSpace::Gray, PixelLayout::GreyAlpha) => {
                (Channels::GrayAlpha, Channels::Rgba, PixelLayout::Rgba)
            }
            // Four channels of any meaning.
            (DataColorSpace::Cmyk, PixelLayout::Cmyk) => {
                (Channels::Rgba, Channels::Rgb, PixelLayout::Rgb)
            }
            _ => return None,
        };
        let options = TransformOptions {
            rendering_intent: RenderingIntent::RelativeColorimetric,
            ..TransformOptions::default()
        };
        let srgb = ColorProfile::new_srgb();
        let executor = profile.create_transform_8bit(from, &srgb, to, options).ok()?;
        Some(Self { output_layout: made, executor })
    }

    fn apply(&self, picture: &PixelBuffer) -> Result<PixelBuffer, Error> {
        let pixels = picture.width as usize * picture.height as usize;
        let mut samples = vec![0; pixels * self.output_layout.channels()];
        self.executor.transform(&picture.samples, &mut samples).map_err(Error::failed)?;
        PixelBuffer::new(picture.dimensions(), self.output_layout, samples, None)
    }
}

/// Multiplies the transmission of black with that of each of the other inks.
fn without_inks(picture: &PixelBuffer) -> Result<PixelBuffer, Error> {
    let pixels = picture.samples.as_chunks::<4>().0.iter();
    let through = |ink: u8, black: u8| {
        ((255 - u32::from(ink)) * (255 - u32::from(black)) + 127).div_euclid(255) as u8
    };
    let samples = pixels.flat_map(|[c, m, y, k]| [*c, *m, *y].map(|ink| through(ink, *k)));
    PixelBuffer::new(picture.dimensions(), PixelLayout::Rgb, samples.collect(), None)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn red(profile: Option<Vec<u8>>) -> PixelBuffer {
        PixelBuffer::new((1, 1), PixelLayout::Rgb, vec![200, 30, 30], profile).unwrap()
    }

    #[test]
    fn wide_gamut_is_converted_to_srgb() {
        let profile = ColorProfile::new_display_p3().encode().unwrap();
        let seen = to_srgb(red(Some(profile))).unwrap();
        assert_eq!(seen.profile, None);
        let [r, g, b] = seen.samples.as_chunks::<3>().0[0];
        // Display P3 (200, 30, 30) by its matrix: about (218, 0, 16).
        assert!((215..=222).contains(&r) && g < 8 && b < 28, "{r} {g} {b}");
    }

    #[test]
    fn srgb_images_are_not_converted() {
        let profile = ColorProfile::new_srgb().encode().unwrap();
        let seen = to_srgb(red(Some(profile))).unwrap();
        for (is, was) in seen.samples.iter().zip([200_u8, 30, 30]) {
            assert!(is.abs_diff(was) <= 1, "{is} instead of {was}");
        }
    }

    #[test]
    fn invalid_icc_profiles_are_ignored() {
        assert_eq!(to_srgb(red(Some(vec![1, 2, 3]))).unwrap(), red(None));
        let grey = ColorProfile::new_gray_with_gamma(2.2).encode().unwrap();
        assert_eq!(to_srgb(red(Some(grey))).unwrap(), red(None));
        let grey = ColorProfile::new_gray_with_gamma(1.0).encode().unwrap();
        let dark = PixelBuffer::new((1, 1), PixelLayout::Grey, vec![55], Some(grey)).unwrap();
        let seen = to_srgb(dark).unwrap();
        assert_eq!(seen.layout, PixelLayout::Rgb);
        assert!(seen.samples.iter().all(|value| (126..=130).contains(value)), "{:?}", seen.samples);
    }

    #[test]
    fn icc_profile_is_parsed_once() {
        let profile = ColorProfile::new_display_p3().encode().unwrap();
        let mut known = ToSrgb::new(Some(&profile));
        let clear =
            PixelBuffer::new((1, 1), PixelLayout::Rgba, vec![200, 30, 30, 7], None).unwrap();
        let grey = PixelBuffer::new((1, 1), PixelLayout::Grey, vec![55], None).unwrap();
        for picture in [red(None), clear, red(None), grey.clone(), grey] {
            let alone = to_srgb(PixelBuffer { profile: Some(profile.clone()), ..picture.clone() });
            assert_eq!(known.convert(picture).unwrap(), alone.unwrap());
        }
        let met: Vec<PixelLayout> = known.transforms.iter().map(|(layout, _)| *layout).collect();
        assert_eq!(met, [PixelLayout::Rgb, PixelLayout::Rgba, PixelLayout::Grey]);
    }

    #[test]
    fn inks_take_light_away() {
        let inks = vec![0, 0, 0, 0, 255, 0, 0, 0, 0, 255, 255, 0, 0, 0, 0, 255, 0, 0, 0, 128];
        let drawn = PixelBuffer::new((5, 1), PixelLayout::Cmyk, inks, Some(vec![1, 2, 3])).unwrap();
        let expected =
            [[255, 255, 255], [0, 255, 255], [255, 0, 0], [0, 0, 0], [127, 127, 127]].concat();
        assert_eq!(
            to_srgb(drawn).unwrap(),
            PixelBuffer::new((5, 1), PixelLayout::Rgb, expected, None).unwrap()
        );
    }
}
