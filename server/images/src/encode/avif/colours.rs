//! Luma and chroma of sRGB pixels: full-range YCbCr (ITU-R BT.601), in fixed point.

/// Planes of a picture: luma of every pixel, chroma of every pixel or of four.
pub(super) struct Colours {
    pub(super) luma: Vec<u8>,
    pub(super) blue: Vec<u8>,
    pub(super) red: Vec<u8>,
}

impl Colours {
    pub(super) fn of(pixels: &[[u8; 3]], sides: (usize, usize), is_full: bool) -> Self {
        let luma = pixels.iter().map(|pixel| luma(pixel.map(i32::from))).collect();
        let (blue, red) =
            if is_full { differences::<1>(pixels, sides) } else { differences::<2>(pixels, sides) };
        Self { luma, blue, red }
    }
}

/// Computes the chroma planes, one sample per square of `SIDE` pixels.
fn differences<const SIDE: usize>(
    pixels: &[[u8; 3]],
    (width, height): (usize, usize),
) -> (Vec<u8>, Vec<u8>) {
    let count = width.div_ceil(SIDE) * height.div_ceil(SIDE);
    let (mut blue, mut red) = (Vec::with_capacity(count), Vec::with_capacity(count));
    let mut push = |above: &[[u8; 3]; SIDE], below: &[[u8; 3]; SIDE]| {
        let mut sum = [0; 3];
        for pixel in above.iter().chain(below) {
            sum.iter_mut().zip(pixel).for_each(|(sum, value)| *sum += i32::from(*value));
        }
        let [cb, cr] = chroma(sum, 2 * SIDE as i32);
        blue.push(cb);
        red.push(cr);
    };
    for rows in pixels.chunks(width.max(1) * SIDE) {
        let (above, below) = rows.split_at(width.min(rows.len()));
        // A last odd row or column is repeated.
        let below = if below.is_empty() { above } else { below };
        let (above, last_above) = above.as_chunks::<SIDE>();
        let (below, last_below) = below.as_chunks::<SIDE>();
        above.iter().zip(below).for_each(|(above, below)| push(above, below));
        if let ([above], [below]) = (last_above, last_below) {
            push(&[*above; SIDE], &[*below; SIDE]);
        }
    }
    (blue, red)
}

/// Returns the luma of a pixel.
fn luma([red, green, blue]: [i32; 3]) -> u8 {
    ((19_595 * red + 38_470 * green + 7_471 * blue + (1 << 15)) >> 16) as u8
}

/// Returns blue and red chroma, Cb and Cr, of the mean of `count` pixels whose samples have this sum.
fn chroma([red, green, blue]: [i32; 3], count: i32) -> [u8; 2] {
    let mean = |weighted: i32| {
        ((weighted + count * ((128 << 16) + (1 << 15))) / (count << 16)).clamp(0, 255) as u8
    };
    [
        mean(-11_059 * red - 21_709 * green + 32_768 * blue),
        mean(32_768 * red - 27_439 * green - 5_329 * blue),
    ]
}

/// Returns the colours of pixels; for a transparent pixel that of the pixel before, which takes fewer bytes and does
/// not blur the edge of what is visible.
pub(super) fn visible_colours(pixels: &[[u8; 4]]) -> Vec<[u8; 3]> {
    let colour = |[red, green, blue, _]: &[u8; 4]| [*red, *green, *blue];
    let mut last = pixels.iter().find(|[.., alpha]| *alpha > 0).map_or([0; 3], colour);
    let visible = pixels.iter().map(|pixel| {
        if pixel[3] > 0 {
            last = colour(pixel);
        }
        last
    });
    visible.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_are_full_range_bt_601() {
        for (rgb, expected) in [
            ([0, 0, 0], [0, 128, 128]),
            ([255, 255, 255], [255, 128, 128]),
            ([255, 0, 0], [76, 85, 255]),
            ([0, 255, 0], [150, 44, 21]),
            ([0, 0, 255], [29, 255, 107]),
        ] {
            let planes = Colours::of(&[rgb], (1, 1), true);
            assert_eq!([planes.luma, planes.blue, planes.red].concat(), expected, "{rgb:?}");
        }
    }

    #[test]
    fn transparent_pixels_take_the_colour_before_them() {
        let pixels = [[9, 9, 9, 0], [1, 2, 3, 255], [7, 7, 7, 0], [4, 5, 6, 1]];
        assert_eq!(visible_colours(&pixels), [[1, 2, 3], [1, 2, 3], [1, 2, 3], [4, 5, 6]]);
        assert_eq!(visible_colours(&[[9, 9, 9, 0]]), [[0; 3]]);
    }

    #[test]
    fn chroma_averages_four_pixels_at_odd_edges() {
        let (red, blue) = ([255, 0, 0], [0, 0, 255]);
        let pixels = [red, red, blue, red, red, blue, blue, blue, blue];
        let half = Colours::of(&pixels, (3, 3), false);
        assert_eq!(half.luma, [76, 76, 29, 76, 76, 29, 29, 29, 29]);
        assert_eq!(
            (&*half.blue, &*half.red),
            (&[85, 255, 255, 255][..], &[255, 107, 107, 107][..])
        );
        let full = Colours::of(&pixels, (3, 3), true);
        assert_eq!(full.blue, [85, 85, 255, 85, 85, 255, 255, 255, 255]);
        let mixed = Colours::of(&[red, blue], (2, 1), false);
        assert_eq!((&*mixed.blue, &*mixed.red), (&[170][..], &[181][..]));
    }
}
