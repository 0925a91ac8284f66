//! Profiles of colours that a file describes by numbers instead.
//!
//! None stands for sRGB, and for what is as near to it as makes no difference.

use moxcms::{Chromaticity, ColorPrimaries, ColorProfile, XyY, curve_from_gamma};

/// A gamma or a coordinate that differs by less is the same: as libpng has it.
const GAMMA_MARGIN: f32 = 0.05;
const PLACE_MARGIN: f32 = 0.01;
/// The gamma that stands for sRGB's curve in PNG, and those that a file can mean.
const SRGB_GAMMA: f32 = 0.454_55;
const GAMMAS: std::ops::RangeInclusive<f32> = 0.1..=10.0;
/// White, red, green and blue of sRGB, as x and y.
const SRGB_PLACES: [(f32, f32); 4] = [(0.3127, 0.329), (0.64, 0.33), (0.3, 0.6), (0.15, 0.06)];

/// Of colours that are named by code points of ITU-T H.273: Display P3, and BT.2020 unless its light is that of high
/// dynamic range, which is shown as if it were not.
pub(super) fn of_code_points(primaries: u8, transfer: u8) -> Option<Vec<u8>> {
    let profile = match (primaries, transfer) {
        (12, 1 | 2 | 13) => ColorProfile::new_display_p3(),
        (9, 1 | 2 | 14 | 15) => ColorProfile::new_bt2020(),
        _ => return None,
    };
    profile.encode().ok()
}

/// Of grey with a gamma, as PNG has it: the exponent from light to samples.
pub(super) fn of_grey_gamma(gamma: f32) -> Option<Vec<u8>> {
    let exponent = exponent(Some(gamma))?;
    ColorProfile::new_gray_with_gamma(exponent).encode().ok()
}

/// Of colours with a gamma, and the places of white, red, green and blue as x and y; sRGB's where one is not told.
pub(super) fn of_gamma(gamma: Option<f32>, places: Option<[(f32, f32); 4]>) -> Option<Vec<u8>> {
    let exponent = exponent(gamma);
    let places = places.filter(|places| is_sensible(places) && !is_srgb(places));
    if exponent.is_none() && places.is_none() {
        return None;
    }
    let mut profile = ColorProfile::new_srgb();
    if let Some([white, red, green, blue]) = places {
        let place = |(x, y)| Chromaticity::new(x, y);
        let primaries = ColorPrimaries { red: place(red), green: place(green), blue: place(blue) };
        let white = XyY { x: white.0.into(), y: white.1.into(), yb: 1.0 };
        profile.update_rgb_colorimetry(white, primaries);
    }
    if let Some(exponent) = exponent {
        profile.cicp = None;
        for curve in [&mut profile.red_trc, &mut profile.green_trc, &mut profile.blue_trc] {
            *curve = Some(curve_from_gamma(exponent));
        }
    }
    profile.encode().ok()
}

/// From samples to light, where that is another curve than sRGB's.
fn exponent(gamma: Option<f32>) -> Option<f32> {
    let gamma = gamma.filter(|gamma| GAMMAS.contains(gamma))?;
    ((gamma / SRGB_GAMMA - 1.0).abs() > GAMMA_MARGIN).then(|| 1.0 / gamma)
}

fn is_srgb(places: &[(f32, f32); 4]) -> bool {
    let is_near = |a: f32, b: f32| (a - b).abs() <= PLACE_MARGIN;
    places.iter().zip(SRGB_PLACES).all(|(is, srgb)| is_near(is.0, srgb.0) && is_near(is.1, srgb.1))
}

/// Whether colours have places of their own, within a triangle that has room.
fn is_sensible([white, red, green, blue]: &[(f32, f32); 4]) -> bool {
    let has_light = |(x, y): &(f32, f32)| (0.0..=1.0).contains(x) && (0.01..=1.0).contains(y);
    let room = (green.0 - red.0) * (blue.1 - red.1) - (blue.0 - red.0) * (green.1 - red.1);
    [white, red, green].into_iter().all(has_light)
        && (0.0..=1.0).contains(&blue.0)
        && (0.001..=1.0).contains(&blue.1)
        && room.abs() > 0.01
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::picture::{Layout, Picture};
    use crate::profile::to_srgb;

    const P3: [(f32, f32); 4] = [(0.3127, 0.329), (0.68, 0.32), (0.265, 0.69), (0.15, 0.06)];

    fn seen(pixel: [u8; 3], profile: Option<Vec<u8>>) -> Vec<u8> {
        let picture = Picture::new((1, 1), Layout::Rgb, pixel.to_vec(), profile).unwrap();
        to_srgb(picture).unwrap().samples
    }

    fn assert_near(found: &[u8], expected: &[u8]) {
        let is_near = found.iter().zip(expected).all(|(a, b)| a.abs_diff(*b) <= 2);
        assert!(is_near && found.len() == expected.len(), "{found:?} {expected:?}");
    }

    #[test]
    fn what_is_srgb_in_other_words_has_no_profile() {
        assert_eq!(of_gamma(None, None), None);
        assert_eq!(of_gamma(Some(0.454_55), Some(SRGB_PLACES)), None);
        assert_eq!(
            of_gamma(Some(0.46), Some([(0.31, 0.33), (0.64, 0.33), (0.3, 0.6), (0.15, 0.06)])),
            None
        );
        assert_eq!(of_grey_gamma(0.45), None);
        assert_eq!((of_code_points(1, 13), of_code_points(9, 16)), (None, None));
    }

    #[test]
    fn a_gamma_changes_how_light_a_sample_is() {
        // Light in proportion to samples: half of it is 188 in sRGB.
        assert_near(&seen([128, 0, 255], of_gamma(Some(1.0), None)), &[188, 0, 255]);
        // 1.8, of old Macintosh: (100 / 255) ^ 1.8 of the light is 120.
        assert_near(&seen([100, 100, 100], of_gamma(Some(1.0 / 1.8), None)), &[120; 3]);
        let grey = Picture::new((1, 1), Layout::Grey, vec![55], of_grey_gamma(1.0)).unwrap();
        assert_near(&to_srgb(grey).unwrap().samples, &[128; 3]);
    }

    #[test]
    fn places_are_those_of_the_profile_that_names_them() {
        let by_name = seen([200, 30, 30], of_code_points(12, 13));
        assert_near(&seen([200, 30, 30], of_gamma(None, Some(P3))), &by_name);
        assert_near(&seen([200, 30, 30], of_gamma(Some(0.4545), Some(P3))), &by_name);
        assert_near(&seen([128; 3], of_gamma(None, Some(P3))), &[128; 3]);
    }

    #[test]
    fn numbers_that_mean_nothing_count_as_none() {
        for gamma in [0.0, -1.0, 0.001, 40_000.0, f32::NAN, f32::INFINITY] {
            assert_eq!(of_gamma(Some(gamma), None), None, "{gamma}");
        }
        for places in [[(0.0, 0.0); 4], [(0.3, 0.3); 4], [(20_000.0, 0.3); 4]] {
            assert_eq!(of_gamma(None, Some(places)), None, "{places:?}");
        }
    }
}
