//! Conversion of sRGB to full-range YCbCr (ITU-R BT.601), in fixed point.

/// Returns the luma of a pixel.
#[inline]
pub fn luma([red, green, blue]: [i32; 3]) -> u8 {
    ((19_595 * red + 38_470 * green + 7_471 * blue + (1 << 15)) >> 16) as u8
}

/// Returns blue and red chroma, Cb and Cr, of the mean of `count` pixels whose samples have this sum.
#[inline]
pub fn chroma([red, green, blue]: [i32; 3], count: i32) -> [u8; 2] {
    let mean = |weighted: i32| {
        ((weighted + count * ((128 << 16) + (1 << 15))) / (count << 16)).clamp(0, 255) as u8
    };
    [
        mean(-11_059 * red - 21_709 * green + 32_768 * blue),
        mean(32_768 * red - 27_439 * green - 5_329 * blue),
    ]
}

/// Converts a pixel.
pub(crate) fn ycbcr(rgb: [u8; 3]) -> [u8; 3] {
    let rgb = rgb.map(i32::from);
    let [cb, cr] = chroma(rgb, 1);
    [luma(rgb), cb, cr]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ycbcr_is_full_range_bt_601() {
        for (rgb, expected) in [
            ([0, 0, 0], [0, 128, 128]),
            ([255, 255, 255], [255, 128, 128]),
            ([255, 0, 0], [76, 85, 255]),
            ([0, 255, 0], [150, 44, 21]),
            ([0, 0, 255], [29, 255, 107]),
        ] {
            assert_eq!(ycbcr(rgb), expected, "{rgb:?}");
        }
    }
}
