//! What a caller allows a file to cost.

/// Bounds that are checked before the work that they bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Width times height of the source.
    pub pixels_max: u64,
    /// Width, and height, of the source. The format itself ends at 65,535.
    pub side_max: u32,
    /// Scans in a progressive file, those that are skipped too. Encoders write about ten.
    pub scans_max: usize,
    /// Blocks of 8 x 8 in the scans that must be decoded, summed over scans and components.
    pub blocks_max: u64,
    /// Bytes of a colour profile. A larger one is left out, as a broken one is.
    pub profile_bytes_max: usize,
}

impl Limits {
    /// What a photograph may be: 100 megapixels, of which an eighth is 1.6.
    pub const PHOTOGRAPH: Self = Self {
        pixels_max: 100_000_000,
        side_max: 16_384,
        scans_max: 100,
        blocks_max: 50_000_000,
        profile_bytes_max: 1 << 20,
    };
}
