//! What the header of a picture says.

use crate::format::Format;
use crate::orientation::Orientation;
use crate::scaled_jpeg::Scale;

/// A file, read as far as a decision about it needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Source {
    /// Its format.
    pub format: Format,
    /// Width and height in pixels, as stored.
    pub sides: (u32, u32),
    /// How it is to be turned.
    pub orientation: Orientation,
    /// How many pictures there are; 1 unless it is an animation that is read as one.
    pub frames: u32,
    /// Whether nothing was lost when it was written: not of JPEG, AVIF and most WebP.
    pub is_lossless: bool,
    /// Whether it must be held in memory twice to be read: progressive JPEG, JPEG with scans of single components,
    /// interlaced PNG.
    pub is_progressive: bool,
    /// Components of a JPEG; of other formats none.
    pub components: u8,
    /// Samples of all components of a JPEG, the blocks at its edges made whole; of other formats none.
    pub samples: u64,
    /// Bytes that decoding a JPEG takes at each of [`Scale::REDUCED`]; of other formats none.
    pub scaled_bytes: Option<[u64; 4]>,
    /// Bytes that decoding takes at full size: of a JPEG that our own decoder reads, and of formats that are read only;
    /// of others none.
    pub full_bytes: Option<u64>,
    /// Samples that the scans of a progressive JPEG come by, of all scans together; of other files none. Not known
    /// where only the start of the file was read.
    pub scanned_samples: Option<u64>,
}

impl Source {
    /// A still picture, as it is stored.
    pub(super) fn still(format: Format, sides: (u32, u32)) -> Self {
        Self {
            format,
            sides,
            orientation: Orientation::default(),
            frames: 1,
            is_lossless: false,
            is_progressive: false,
            components: 0,
            samples: 0,
            scaled_bytes: None,
            full_bytes: None,
            scanned_samples: Some(0),
        }
    }

    /// Width and height as they are seen.
    pub fn seen(&self) -> (u32, u32) {
        self.orientation.seen(self.sides)
    }

    /// Bytes that decoding a JPEG takes, at a scale or whole, without what is made of it; of other formats nothing.
    pub(super) fn jpeg_bytes(&self, scale: Option<Scale>) -> u64 {
        let scaled = scale.zip(self.scaled_bytes).and_then(|(scale, bytes)| {
            Scale::REDUCED.into_iter().zip(bytes).find(|(of, _)| *of == scale)
        });
        let pixels = self.pixels() * u64::from(self.components);
        match (scaled, self.full_bytes) {
            (Some((_, bytes)), _) | (None, Some(bytes)) => bytes,
            // Pixels, and beside them two bytes for each coefficient, or later the pixels of the resizer.
            (None, None) if self.is_progressive => pixels + pixels.max(2 * self.samples),
            (None, None) => 2 * pixels,
        }
    }

    /// Whether all is known of the file that the time for work on it depends on.
    pub fn is_reckoned(&self) -> bool {
        self.scanned_samples.is_some()
    }

    /// Whether it moves.
    pub fn is_animated(&self) -> bool {
        self.frames > 1
    }

    /// Pixels of one picture.
    pub fn pixels(&self) -> u64 {
        u64::from(self.sides.0) * u64::from(self.sides.1)
    }
}
