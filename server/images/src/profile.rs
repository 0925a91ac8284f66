//! Colours out of a file's profile into sRGB, which every screen takes a picture without a profile to be in.
//!
//! Done after the picture was made smaller, so it costs next to nothing. Relative colorimetric, as browsers do. A
//! profile that is broken, or of another colour space than the picture, counts as none; inks without a profile take
//! their light away one after the other.

use moxcms::{ColorProfile, DataColorSpace, Layout as Channels, RenderingIntent, TransformOptions};

use crate::error::Error;
use crate::picture::{Layout, Picture};

/// The picture in sRGB, without a profile: grey or of red, green and blue.
pub(super) fn to_srgb(mut picture: Picture) -> Result<Picture, Error> {
    let profile = picture.profile.take();
    match profile.and_then(|profile| transformed(&picture, &profile)) {
        Some(made) => made,
        None if picture.layout == Layout::Cmyk => without_inks(&picture),
        None => Ok(picture),
    }
}

/// The picture by its profile; none where that says nothing of it.
fn transformed(picture: &Picture, profile: &[u8]) -> Option<Result<Picture, Error>> {
    let profile = ColorProfile::new_from_slice(profile).ok()?;
    let (from, to, layout) = match (profile.color_space, picture.layout) {
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
    let transform = profile.create_transform_8bit(from, &srgb, to, options).ok()?;
    let pixels = picture.width as usize * picture.height as usize;
    let mut samples = vec![0; pixels * layout.channels()];
    let done = transform.transform(&picture.samples, &mut samples).map_err(Error::failed);
    Some(done.and_then(|()| Picture::new(picture.sides(), layout, samples, None)))
}

/// Light that black lets through, and of it what each of the other inks does.
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
