//! Limits of decoding, set by the caller.

/// Limits that are checked before the work that they bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Maximum width times height of the source.
    pub pixels_max: u64,
    /// Maximum width and height of the source. The format itself ends at 65,535.
    pub side_max: u32,
    /// Maximum number of scans in a progressive file, including skipped ones. Encoders write about ten.
    pub scans_max: usize,
    /// Maximum number of 8 x 8 blocks in the scans to be decoded, summed over scans and components.
    pub blocks_max: u64,
    /// Maximum size of a colour profile in bytes. A larger one is ignored, like a broken one.
    pub profile_bytes_max: usize,
}

impl Limits {
    /// Limits for photographs: 100 megapixels, of which an eighth of each side is 1.6.
    pub const PHOTOGRAPH: Self = Self {
        pixels_max: 100_000_000,
        side_max: 16_384,
        scans_max: 100,
        blocks_max: 50_000_000,
        profile_bytes_max: 1 << 20,
    };
}
