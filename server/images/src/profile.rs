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
use crate::picture::{Layout, Picture};

/// Converts a picture to sRGB without a profile: grey, or red, green and blue.
pub(super) fn to_srgb(mut picture: Picture) -> Result<Picture, Error> {
    let profile = picture.profile.take();
    ToSrgb::new(profile.as_deref()).bring(picture)
}

/// Converter of a profile, built once for all frames: its tables cost more than a few pixels.
pub(super) struct ToSrgb {
    profile: Option<ColorProfile>,
    /// Transform per layout seen so far; `None` if the profile does not apply to it.
    transforms: Vec<(Layout, Option<Transform>)>,
}

#[derive(Clone)]
struct Transform {
    made: Layout,
    executor: Arc<Transform8BitExecutor>,
}

impl ToSrgb {
    /// Creates a converter. Colours are unchanged without a profile, or with a broken one.
    pub(super) fn new(profile: Option<&[u8]>) -> Self {
        let profile = profile.and_then(|profile| ColorProfile::new_from_slice(profile).ok());
        Self { profile, transforms: Vec::new() }
    }

    /// Converts a picture to sRGB without a profile: grey, or red, green and blue.
    pub(super) fn bring(&mut self, picture: Picture) -> Result<Picture, Error> {
        match self.transform(picture.layout) {
            Some(transform) => transform.apply(&picture),
            None if picture.layout == Layout::Cmyk => without_inks(&picture),
            None => Ok(Picture { profile: None, ..picture }),
        }
    }

    fn transform(&mut self, layout: Layout) -> Option<Transform> {
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
    fn new(profile: &ColorProfile, layout: Layout) -> Option<Self> {
        let (from, to, made) = match (profile.color_space, layout) {
            (DataColorSpace::Rgb, Layout::Rgb) => (Channels::Rgb, Channels::Rgb, Layout::Rgb),
            (DataColorSpace::Rgb, Layout::Rgba) => (Channels::Rgba, Channels::Rgba, Layout::Rgba),
            (DataColorSpace::Gray, Layout::Grey) => (Channels::Gray, Channels::Rgb, Layout::Rgb),
            (DataColorSpace::Gray, Layout::GreyAlpha) => {
                (Channels::GrayAlpha, Channels::Rgba, Layout::Rgba)
            }
            // Four channels of any meaning.
            (DataColorSpace::Cmyk, Layout::Cmyk) => (Channels::Rgba, Channels::Rgb, Layout::Rgb),
            _ => return None,
        };
        let options = TransformOptions {
            rendering_intent: RenderingIntent::RelativeColorimetric,
            ..TransformOptions::default()
        };
        let srgb = ColorProfile::new_srgb();
        let executor = profile.create_transform_8bit(from, &srgb, to, options).ok()?;
        Some(Self { made, executor })
    }

    fn apply(&self, picture: &Picture) -> Result<Picture, Error> {
        let pixels = picture.width as usize * picture.height as usize;
        let mut samples = vec![0; pixels * self.made.channels()];
        self.executor.transform(&picture.samples, &mut samples).map_err(Error::failed)?;
        Picture::new(picture.sides(), self.made, samples, None)
    }
}

/// Multiplies the transmission of black with that of each of the other inks.
fn without_inks(picture: &Picture) -> Result<Picture, Error> {
    let pixels = picture.samples.as_chunks::<4>().0.iter();
    let through = |ink: u8, black: u8| {
        ((255 - u32::from(ink)) * (255 - u32::from(black)) + 127).div_euclid(255) as u8
    };
    let samples = pixels.flat_map(|[c, m, y, k]| [*c, *m, *y].map(|ink| through(ink, *k)));
    Picture::new(picture.sides(), Layout::Rgb, samples.collect(), None)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn red(profile: Option<Vec<u8>>) -> Picture {
        Picture::new((1, 1), Layout::Rgb, vec![200, 30, 30], profile).unwrap()
    }

    #[test]
    fn a_wide_gamut_is_brought_into_srgb() {
        let profile = ColorProfile::new_display_p3().encode().unwrap();
        let seen = to_srgb(red(Some(profile))).unwrap();
        assert_eq!(seen.profile, None);
        let [r, g, b] = seen.samples.as_chunks::<3>().0[0];
        // Display P3 (200, 30, 30) by its matrix: about (218, 0, 16).
        assert!((215..=222).contains(&r) && g < 8 && b < 28, "{r} {g} {b}");
    }

    #[test]
    fn what_is_srgb_already_stays_as_it_is() {
        let profile = ColorProfile::new_srgb().encode().unwrap();
        let seen = to_srgb(red(Some(profile))).unwrap();
        for (is, was) in seen.samples.iter().zip([200_u8, 30, 30]) {
            assert!(is.abs_diff(was) <= 1, "{is} instead of {was}");
        }
    }

    #[test]
    fn broken_and_foreign_profiles_count_as_none() {
        assert_eq!(to_srgb(red(Some(vec![1, 2, 3]))).unwrap(), red(None));
        let grey = ColorProfile::new_gray_with_gamma(2.2).encode().unwrap();
        assert_eq!(to_srgb(red(Some(grey))).unwrap(), red(None));
        let grey = ColorProfile::new_gray_with_gamma(1.0).encode().unwrap();
        let dark = Picture::new((1, 1), Layout::Grey, vec![55], Some(grey)).unwrap();
        let seen = to_srgb(dark).unwrap();
        assert_eq!(seen.layout, Layout::Rgb);
        assert!(seen.samples.iter().all(|value| (126..=130).contains(value)), "{:?}", seen.samples);
    }

    #[test]
    fn a_profile_is_read_once_for_all_pictures() {
        let profile = ColorProfile::new_display_p3().encode().unwrap();
        let mut known = ToSrgb::new(Some(&profile));
        let clear = Picture::new((1, 1), Layout::Rgba, vec![200, 30, 30, 7], None).unwrap();
        let grey = Picture::new((1, 1), Layout::Grey, vec![55], None).unwrap();
        for picture in [red(None), clear, red(None), grey.clone(), grey] {
            let alone = to_srgb(Picture { profile: Some(profile.clone()), ..picture.clone() });
            assert_eq!(known.bring(picture).unwrap(), alone.unwrap());
        }
        let met: Vec<Layout> = known.transforms.iter().map(|(layout, _)| *layout).collect();
        assert_eq!(met, [Layout::Rgb, Layout::Rgba, Layout::Grey]);
    }

    #[test]
    fn inks_take_light_away() {
        let inks = vec![0, 0, 0, 0, 255, 0, 0, 0, 0, 255, 255, 0, 0, 0, 0, 255, 0, 0, 0, 128];
        let drawn = Picture::new((5, 1), Layout::Cmyk, inks, Some(vec![1, 2, 3])).unwrap();
        let expected =
            [[255, 255, 255], [0, 255, 255], [255, 0, 0], [0, 0, 0], [127, 127, 127]].concat();
        assert_eq!(
            to_srgb(drawn).unwrap(),
            Picture::new((5, 1), Layout::Rgb, expected, None).unwrap()
        );
    }
}
