//! Colours out of a file's profile into sRGB, which every screen takes a picture without a profile to be in.
//!
//! Done after the picture was made smaller, so it costs next to nothing. Relative colorimetric, as browsers do. A
//! profile that is broken, or of another colour space than the picture, counts as none.

use moxcms::{ColorProfile, DataColorSpace, Layout as Channels, RenderingIntent, TransformOptions};

use crate::error::Error;
use crate::picture::{Layout, Picture};

/// The picture in sRGB, without a profile.
pub(super) fn to_srgb(mut picture: Picture) -> Result<Picture, Error> {
    let Some(profile) = picture.profile.take() else { return Ok(picture) };
    let Ok(profile) = ColorProfile::new_from_slice(&profile) else { return Ok(picture) };
    let (from, to, layout) = match (profile.color_space, picture.layout) {
        (DataColorSpace::Rgb, Layout::Rgb) => (Channels::Rgb, Channels::Rgb, Layout::Rgb),
        (DataColorSpace::Rgb, Layout::Rgba) => (Channels::Rgba, Channels::Rgba, Layout::Rgba),
        (DataColorSpace::Gray, Layout::Grey) => (Channels::Gray, Channels::Rgb, Layout::Rgb),
        (DataColorSpace::Gray, Layout::GreyAlpha) => {
            (Channels::GrayAlpha, Channels::Rgba, Layout::Rgba)
        }
        _ => return Ok(picture),
    };
    let options = TransformOptions {
        rendering_intent: RenderingIntent::RelativeColorimetric,
        ..TransformOptions::default()
    };
    let Ok(transform) = profile.create_transform_8bit(from, &ColorProfile::new_srgb(), to, options)
    else {
        return Ok(picture);
    };
    let pixels = picture.width as usize * picture.height as usize;
    let mut samples = vec![0; pixels * layout.channels()];
    transform.transform(&picture.samples, &mut samples).map_err(Error::failed)?;
    Picture::new(picture.sides(), layout, samples, None)
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
}
