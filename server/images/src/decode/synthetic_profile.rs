//! Builds ICC profiles from colour parameters (CICP, gamma, chromaticities).
//!
//! No profile is built for sRGB, nor for parameters that are indistinguishable from it.

use moxcms::{
    Chromaticity, CicpColorPrimaries, CicpProfile, ColorPrimaries, ColorProfile,
    MatrixCoefficients, TransferCharacteristics, XyY, curve_from_gamma,
};

/// Tolerance for gammas and coordinates, as in libpng.
const GAMMA_MARGIN: f32 = 0.05;
const CHROMATICITY_TOLERANCE: f32 = 0.01;
/// Gamma that represents the sRGB curve in PNG; `GAMMAS` are the valid ones.
const SRGB_GAMMA: f32 = 0.454_55;
const GAMMAS: std::ops::RangeInclusive<f32> = 0.1..=10.0;
/// Gamma of BT.1886, with which displays show content coded by the BT.709 curve.
const DISPLAY_GAMMA: f32 = 2.4;
/// Code point of primaries that are the axes of CIE XYZ (SMPTE ST 428-1). The library divides by their y, so a value
/// close to 0 is used.
const XYZ: u8 = 10;
const XYZ_PRIMARIES: ColorPrimaries = ColorPrimaries {
    red: Chromaticity::new(1.0, 1e-5),
    green: Chromaticity::new(0.0, 1.0),
    blue: Chromaticity::new(0.0, 1e-5),
};
const XYZ_WHITE: XyY = XyY { x: 1.0 / 3.0, y: 1.0 / 3.0, yb: 1.0 };
/// White, red, green and blue of sRGB, as x and y.
const SRGB_CHROMATICITIES: [(f32, f32); 4] =
    [(0.3127, 0.329), (0.64, 0.33), (0.3, 0.6), (0.15, 0.06)];

/// Interpretation of BT.709 curves (code points 1, 6, 14 and 15 of table 3), as browsers do for each format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum VideoCurve {
    /// As sRGB; unspecified primaries and curves (2) are also those of sRGB: AVIF.
    Srgb,
    /// As a display (BT.1886, gamma 2.4); unspecified code points are ignored: PNG.
    Display,
}

/// Builds a profile from code points of ITU-T H.273, tables 2 and 3. `None` if browsers ignore them: reserved
/// values, and curves 9, 10 and 12. High dynamic range curves (16, 18) are treated as sRGB.
pub(super) fn icc_from_cicp(
    primaries: u8,
    transfer: u8,
    video: VideoCurve,
    is_grey: bool,
) -> Option<Vec<u8>> {
    let (primaries, transfer) = match (video, primaries, transfer) {
        (VideoCurve::Display, ..) => (primaries, transfer),
        (VideoCurve::Srgb, 2, _) => (1, srgb_of_video(transfer)),
        (VideoCurve::Srgb, ..) => (primaries, srgb_of_video(transfer)),
    };
    let is_read = matches!(primaries, 1 | 4..=12 | 22)
        && matches!(transfer, 1 | 4..=8 | 11 | 13 | 14 | 15 | 17);
    if !is_read || (primaries, transfer) == (1, 13) {
        return None;
    }
    let curve = match transfer {
        1 | 6 | 11 | 14 | 15 => curve_from_gamma(DISPLAY_GAMMA),
        _ => TransferCharacteristics::try_from(transfer).ok()?.try_into().ok()?,
    };
    let mut profile = if is_grey {
        let mut grey = ColorProfile::new_gray_with_gamma(1.0);
        grey.gray_trc = Some(curve);
        grey
    } else {
        let mut colours = ColorProfile::new_from_cicp(CicpProfile {
            color_primaries: CicpColorPrimaries::try_from(primaries).ok()?,
            transfer_characteristics: TransferCharacteristics::Linear,
            matrix_coefficients: MatrixCoefficients::Identity,
            full_range: true,
        });
        if primaries == XYZ {
            colours.update_rgb_colorimetry(XYZ_WHITE, XYZ_PRIMARIES);
        }
        colours.red_trc = Some(curve.clone());
        colours.green_trc = Some(curve.clone());
        colours.blue_trc = Some(curve);
        colours
    };
    // Curves and primaries are sufficient.
    profile.cicp = None;
    profile.encode().ok()
}

fn srgb_of_video(transfer: u8) -> u8 {
    if matches!(transfer, 1 | 2 | 6 | 14 | 15) { 13 } else { transfer }
}

/// Builds a grey profile with a PNG gamma: the exponent from light to samples.
pub(super) fn icc_from_grey_gamma(gamma: f32) -> Option<Vec<u8>> {
    let exponent = exponent(Some(gamma))?;
    ColorProfile::new_gray_with_gamma(exponent).encode().ok()
}

/// Builds a profile with a gamma and the chromaticities of white, red, green and blue as x and y; those of sRGB if
/// one is missing.
pub(super) fn icc_from_gamma(
    gamma: Option<f32>,
    places: Option<[(f32, f32); 4]>,
) -> Option<Vec<u8>> {
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

/// Returns the exponent from samples to light, if the curve differs from that of sRGB.
fn exponent(gamma: Option<f32>) -> Option<f32> {
    let gamma = gamma.filter(|gamma| GAMMAS.contains(gamma))?;
    ((gamma / SRGB_GAMMA - 1.0).abs() > GAMMA_MARGIN).then(|| 1.0 / gamma)
}

fn is_srgb(places: &[(f32, f32); 4]) -> bool {
    let is_near = |a: f32, b: f32| (a - b).abs() <= CHROMATICITY_TOLERANCE;
    places
        .iter()
        .zip(SRGB_CHROMATICITIES)
        .all(|(is, srgb)| is_near(is.0, srgb.0) && is_near(is.1, srgb.1))
}

/// Returns whether the chromaticities are in range and span a triangle of sufficient area.
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
    use crate::picture::{PixelBuffer, PixelLayout};
    use crate::profile::to_srgb;

    const P3: [(f32, f32); 4] = [(0.3127, 0.329), (0.68, 0.32), (0.265, 0.69), (0.15, 0.06)];

    fn seen(pixel: [u8; 3], profile: Option<Vec<u8>>) -> Vec<u8> {
        let picture = PixelBuffer::new((1, 1), PixelLayout::Rgb, pixel.to_vec(), profile).unwrap();
        to_srgb(picture).unwrap().samples
    }

    fn assert_near(found: &[u8], expected: &[u8]) {
        let is_near = found.iter().zip(expected).all(|(a, b)| a.abs_diff(*b) <= 2);
        assert!(is_near && found.len() == expected.len(), "{found:?} {expected:?}");
    }

    #[test]
    fn srgb_code_points_yield_no_profile() {
        assert_eq!(icc_from_gamma(None, None), None);
        assert_eq!(icc_from_gamma(Some(0.454_55), Some(SRGB_CHROMATICITIES)), None);
        assert_eq!(
            icc_from_gamma(
                Some(0.46),
                Some([(0.31, 0.33), (0.64, 0.33), (0.3, 0.6), (0.15, 0.06)])
            ),
            None
        );
        assert_eq!(icc_from_grey_gamma(0.45), None);
        for video in [VideoCurve::Srgb, VideoCurve::Display] {
            for (primaries, transfer) in [(1, 13), (9, 16), (9, 18), (9, 9), (3, 13), (9, 3)] {
                let profile = icc_from_cicp(primaries, transfer, video, false);
                assert_eq!(profile, None, "{primaries} {transfer}");
            }
        }
        for (primaries, transfer) in [(1, 1), (2, 2), (2, 6), (1, 14)] {
            assert_eq!(icc_from_cicp(primaries, transfer, VideoCurve::Srgb, false), None);
        }
        assert_eq!(icc_from_cicp(2, 8, VideoCurve::Display, false), None);
        assert_eq!(icc_from_cicp(9, 2, VideoCurve::Display, false), None);
    }

    #[test]
    fn gamma_changes_sample_brightness() {
        // Linear light: half of it is 188 in sRGB.
        assert_near(&seen([128, 0, 255], icc_from_gamma(Some(1.0), None)), &[188, 0, 255]);
        // 1.8, of old Macintosh: (100 / 255) ^ 1.8 of the light is 120.
        assert_near(&seen([100, 100, 100], icc_from_gamma(Some(1.0 / 1.8), None)), &[120; 3]);
        let grey = PixelBuffer::new((1, 1), PixelLayout::Grey, vec![55], icc_from_grey_gamma(1.0))
            .unwrap();
        assert_near(&to_srgb(grey).unwrap().samples, &[128; 3]);
    }

    /// Compares with Chromium 156 for a PNG with these code points, at (200, 60, 30), (30, 200, 90), grey of 128 and
    /// (40, 60, 220). Colours outside of sRGB are clipped there before rounding.
    #[test]
    fn png_cicp_matches_browsers() {
        let pixels = [[200, 60, 30], [30, 200, 90], [128; 3], [40, 60, 220]];
        let table = [
            ((1, 1), [[197, 49, 18], [18, 197, 81], [121, 121, 121], [28, 49, 218]]),
            ((1, 4), [[201, 57, 24], [24, 201, 90], [129, 129, 129], [35, 57, 221]]),
            ((1, 5), [[189, 36, 8], [8, 189, 66], [106, 106, 106], [17, 36, 212]]),
            ((1, 7), [[206, 77, 48], [48, 206, 106], [141, 141, 141], [58, 77, 224]]),
            ((1, 8), [[229, 133, 96], [96, 229, 160], [188, 188, 188], [110, 133, 239]]),
            ((1, 11), [[197, 49, 18], [18, 197, 81], [121, 121, 121], [28, 49, 218]]),
            ((1, 14), [[197, 49, 18], [18, 197, 81], [121, 121, 121], [28, 49, 218]]),
            ((1, 15), [[197, 49, 18], [18, 197, 81], [121, 121, 121], [28, 49, 218]]),
            ((1, 17), [[200, 44, 13], [13, 200, 76], [118, 118, 118], [23, 44, 224]]),
            ((5, 13), [[204, 60, 31], [0, 200, 92], [128, 128, 128], [39, 60, 219]]),
            ((5, 5), [[192, 36, 9], [0, 189, 69], [106, 106, 106], [16, 36, 211]]),
            ((6, 13), [[195, 66, 28], [58, 197, 89], [128, 128, 128], [48, 67, 221]]),
            ((7, 13), [[195, 66, 28], [58, 197, 89], [128, 128, 128], [48, 67, 221]]),
            ((4, 13), [[236, 48, 0], [0, 197, 82], [128, 128, 128], [0, 86, 226]]),
            ((8, 13), [[226, 39, 0], [0, 205, 77], [128, 128, 128], [22, 52, 227]]),
            ((9, 13), [[247, 0, 0], [0, 211, 67], [128, 128, 128], [0, 58, 231]]),
            ((9, 1), [[244, 0, 0], [0, 208, 53], [121, 121, 121], [0, 46, 229]]),
            ((9, 8), [[255, 114, 86], [0, 240, 152], [188, 188, 188], [69, 134, 248]]),
            ((10, 8), [[255, 0, 103], [0, 255, 136], [188, 188, 188], [0, 157, 250]]),
            ((11, 13), [[212, 42, 1], [0, 204, 73], [128, 128, 128], [34, 59, 229]]),
            ((12, 13), [[217, 42, 0], [0, 204, 73], [128, 128, 128], [34, 61, 229]]),
            ((12, 8), [[244, 127, 87], [0, 233, 154], [188, 188, 188], [104, 134, 247]]),
            ((22, 13), [[202, 66, 29], [0, 196, 90], [128, 128, 128], [40, 73, 220]]),
            ((22, 6), [[199, 57, 15], [0, 193, 81], [121, 121, 121], [29, 65, 218]]),
        ];
        for ((primaries, transfer), expected) in table {
            let profile = icc_from_cicp(primaries, transfer, VideoCurve::Display, false);
            for (pixel, expected) in pixels.into_iter().zip(expected) {
                let found = seen(pixel, profile.clone());
                let is_near = found.iter().zip(&expected).all(|(a, b)| a.abs_diff(*b) <= 3);
                assert!(is_near, "{found:?} {expected:?} of {primaries} {transfer}");
            }
            let grey = icc_from_cicp(primaries, transfer, VideoCurve::Display, true);
            let picture = PixelBuffer::new((1, 1), PixelLayout::Grey, vec![128], grey).unwrap();
            let found = to_srgb(picture).unwrap().samples;
            assert_near(&found, &expected[2][..found.len()]);
        }
    }

    /// Compares with Chromium 156 for the sample (43, 39, 220) of an AVIF.
    #[test]
    fn avif_cicp_matches_browsers() {
        for ((primaries, transfer), expected) in [
            ((1, 4), [39, 34, 221]),
            ((1, 5), [20, 16, 212]),
            ((2, 8), [114, 109, 239]),
            ((5, 2), [43, 39, 219]),
            ((9, 1), [0, 31, 231]),
            ((9, 6), [0, 31, 231]),
            ((9, 13), [0, 31, 231]),
            ((12, 14), [44, 39, 229]),
        ] {
            let profile = icc_from_cicp(primaries, transfer, VideoCurve::Srgb, false);
            let found = seen([43, 39, 220], profile);
            let is_near = found.iter().zip(&expected).all(|(a, b)| a.abs_diff(*b) <= 3);
            assert!(is_near, "{found:?} {expected:?} of {primaries} {transfer}");
        }
    }

    #[test]
    fn chromaticities_identify_known_profiles() {
        let by_name = seen([200, 30, 30], icc_from_cicp(12, 13, VideoCurve::Display, false));
        assert_near(&seen([200, 30, 30], icc_from_gamma(None, Some(P3))), &by_name);
        assert_near(&seen([200, 30, 30], icc_from_gamma(Some(0.4545), Some(P3))), &by_name);
        assert_near(&seen([128; 3], icc_from_gamma(None, Some(P3))), &[128; 3]);
    }

    #[test]
    fn invalid_chromaticities_are_ignored() {
        for gamma in [0.0, -1.0, 0.001, 40_000.0, f32::NAN, f32::INFINITY] {
            assert_eq!(icc_from_gamma(Some(gamma), None), None, "{gamma}");
        }
        for places in [[(0.0, 0.0); 4], [(0.3, 0.3); 4], [(20_000.0, 0.3); 4]] {
            assert_eq!(icc_from_gamma(None, Some(places)), None, "{places:?}");
        }
    }
}
