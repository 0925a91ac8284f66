//! What comes out.

use super::header::Header;
use super::scale::Scale;

/// A decoded picture.
#[derive(Clone, Debug, PartialEq)]
pub struct Decoded {
    /// What the file says about itself.
    pub header: Header,
    /// The scale of the component with the most samples.
    pub scale: Scale,
    /// One plane for grey, else three, in the order of the file.
    pub planes: Vec<Plane>,
    /// Whether all of it was there.
    pub condition: Condition,
}

/// One component, a byte for each sample.
#[derive(Clone, Debug, PartialEq)]
pub struct Plane {
    /// Columns that hold something of the picture.
    pub width: usize,
    /// Rows that hold something of the picture.
    pub height: usize,
    /// Columns and rows that the picture covers. The last ones it may cover in part only: a width of 100 at an eighth
    /// is 12.5 columns. The rest of such a sample is what the encoder filled its block with, so a resizer takes a crop
    /// of this size.
    pub covered: (f64, f64),
    /// Samples from one row to the next, at least `width`.
    pub stride: usize,
    /// The samples, at least `height` rows.
    pub samples: Vec<u8>,
}

/// Whether a file had everything that was needed of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Condition {
    /// Nothing is known to be missing.
    Whole,
    /// Entropy data or a later marker segment was broken; some of the picture is grey or coarse.
    Damaged,
    /// The file ended early; some of the picture is, or may be, grey or coarse.
    Truncated,
}

impl Plane {
    /// The rows, `width` samples each.
    pub fn rows(&self) -> impl Iterator<Item = &[u8]> {
        let rows = self.samples.chunks_exact(self.stride.max(1)).take(self.height);
        rows.filter_map(|row| row.get(..self.width))
    }
}
