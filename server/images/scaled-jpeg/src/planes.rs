//! Decoded planes and their condition.

use super::header::Header;
use super::scale::Scale;

/// Decoded picture.
#[derive(Clone, Debug, PartialEq)]
pub struct Decoded {
    /// Header of the file.
    pub header: Header,
    /// Scale of the component with the most samples.
    pub scale: Scale,
    /// Planes in file order: one for grey, else three or four.
    pub planes: Vec<Plane>,
    /// Completeness of the data.
    pub condition: DecodeStatus,
}

/// Component with one byte per sample.
#[derive(Clone, Debug, PartialEq)]
pub struct Plane {
    /// Columns that contain part of the picture.
    pub width: usize,
    /// Rows that contain part of the picture.
    pub height: usize,
    /// Columns and rows that the picture covers. The last ones may be covered partially: a width of 100 at an eighth
    /// is 12.5 columns. The rest of such a sample is encoder padding, so a resizer must crop to this size.
    pub covered: (f64, f64),
    /// Samples from one row to the next, at least `width`.
    pub stride: usize,
    /// Samples, at least `height` rows.
    pub samples: Vec<u8>,
}

/// Completeness of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum DecodeStatus {
    /// No known damage.
    Complete,
    /// Corrupt entropy-coded data or later marker segment; parts of the picture are grey or coarse.
    Damaged,
    /// Truncated file; parts of the picture are, or may be, grey or coarse.
    Truncated,
}

impl Plane {
    /// Iterates over the rows, `width` samples each.
    pub fn rows(&self) -> impl Iterator<Item = &[u8]> {
        let rows = self.samples.chunks_exact(self.stride.max(1)).take(self.height);
        rows.filter_map(|row| row.get(..self.width))
    }
}
