//! What the header of a picture says.

use crate::format::Format;
use crate::orientation::Orientation;

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
    /// Whether it must be held in memory twice to be read: progressive JPEG, interlaced PNG.
    pub is_progressive: bool,
    /// Whether a JPEG can be decoded at a fraction of its size.
    pub is_scalable: bool,
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
            is_scalable: false,
        }
    }

    /// Width and height as they are seen.
    pub fn seen(&self) -> (u32, u32) {
        self.orientation.seen(self.sides)
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
