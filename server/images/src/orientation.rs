//! Exif orientation: tag 274 of Exif 2.3.

use crate::picture::PixelBuffer;

/// One of the eight Exif orientations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Orientation {
    /// Whether rows and columns are exchanged, as the first step.
    transposed: bool,
    /// Whether left and right are then exchanged.
    mirrored: bool,
    /// Whether top and bottom are then exchanged.
    flipped: bool,
}

impl Orientation {
    /// Creates the orientation of a tag value; values other than 1 to 8 mean no change.
    pub fn from_exif_tag(value: u8) -> Self {
        let (transposed, mirrored, flipped) = match value {
            2 => (false, true, false),
            3 => (false, true, true),
            4 => (false, false, true),
            5 => (true, false, false),
            6 => (true, true, false),
            7 => (true, true, true),
            8 => (true, false, true),
            _ => (false, false, false),
        };
        Self { transposed, mirrored, flipped }
    }

    /// Converts stored to displayed width and height, or the other way round.
    pub fn oriented_size(self, (width, height): (u32, u32)) -> (u32, u32) {
        if self.transposed { (height, width) } else { (width, height) }
    }

    /// Converts a box in the displayed picture (left, top, width, height) to the stored one, which has this size.
    pub fn stored_box(self, seen: [f64; 4], (width, height): (f64, f64)) -> [f64; 4] {
        let [left, top, across, down] = seen;
        let (seen_width, seen_height) =
            if self.transposed { (height, width) } else { (width, height) };
        let left = if self.mirrored { seen_width - left - across } else { left };
        let top = if self.flipped { seen_height - top - down } else { top };
        if self.transposed { [top, left, down, across] } else { [left, top, across, down] }
    }

    /// Applies the orientation to a stored picture.
    pub fn apply(self, picture: PixelBuffer) -> PixelBuffer {
        if self == Self::default() {
            return picture;
        }
        let (width, height) = (picture.width as usize, picture.height as usize);
        let channels = picture.layout.channels();
        let (seen_width, seen_height) = self.oriented_size((picture.width, picture.height));
        let mut samples = Vec::with_capacity(picture.samples.len());
        for y in 0..seen_height as usize {
            let y = if self.flipped { seen_height as usize - 1 - y } else { y };
            for x in 0..seen_width as usize {
                let x = if self.mirrored { seen_width as usize - 1 - x } else { x };
                let (row, column) = if self.transposed { (x, y) } else { (y, x) };
                debug_assert!(row < height && column < width, "inside the picture");
                let at = (row * width + column) * channels;
                samples.extend_from_slice(picture.samples.get(at..at + channels).unwrap_or(&[]));
            }
        }
        PixelBuffer { width: seen_width, height: seen_height, samples, ..picture }
    }
}

/// Returns the orientation in Exif data, which begins with its byte order; no change if there is none or it is
/// broken.
pub(super) fn from_exif(exif: &[u8]) -> Orientation {
    // Some writers put the name of the JPEG segment before it.
    let tiff = exif.strip_prefix(b"Exif\0\0").unwrap_or(exif);
    Orientation::from_exif_tag(scaled_jpeg::exif_orientation(tiff).unwrap_or(1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::picture::PixelLayout;

    /// Displayed form of the picture `ab/cd/ef` for each tag (Exif 2.3, 4.6.4 A).
    const SEEN: [(u8, &[u8], (u32, u32)); 8] = [
        (1, b"abcdef", (2, 3)),
        (2, b"badcfe", (2, 3)),
        (3, b"fedcba", (2, 3)),
        (4, b"efcdab", (2, 3)),
        (5, b"acebdf", (3, 2)),
        (6, b"ecafdb", (3, 2)),
        (7, b"fdbeca", (3, 2)),
        (8, b"bdface", (3, 2)),
    ];

    fn stored() -> PixelBuffer {
        PixelBuffer {
            width: 2,
            height: 3,
            layout: PixelLayout::Grey,
            samples: b"abcdef".to_vec(),
            profile: None,
        }
    }

    #[test]
    fn exif_orientation_is_applied() {
        for (tag, samples, sides) in SEEN {
            let seen = Orientation::from_exif_tag(tag).apply(stored());
            assert_eq!((&*seen.samples, (seen.width, seen.height)), (samples, sides), "{tag}");
        }
        assert_eq!(Orientation::from_exif_tag(0), Orientation::from_exif_tag(1));
        assert_eq!(Orientation::from_exif_tag(9), Orientation::from_exif_tag(1));
    }

    #[test]
    fn crop_box_maps_to_stored_orientation() {
        for (tag, samples, (width, _)) in SEEN {
            let orientation = Orientation::from_exif_tag(tag);
            for (at, letter) in samples.iter().enumerate() {
                let place = (at as u32 % width, at as u32 / width);
                let seen = [f64::from(place.0), f64::from(place.1), 1.0, 1.0];
                let [x, y, across, down] = orientation.stored_box(seen, (2.0, 3.0));
                assert_eq!((across, down), (1.0, 1.0));
                assert_eq!(stored().samples[(y * 2.0 + x) as usize], *letter, "{tag} {place:?}");
            }
        }
    }
}
