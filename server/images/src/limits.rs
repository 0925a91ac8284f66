//! What a picture may cost. Everything is checked from the header, before the work that it bounds.
//!
//! "Clients" is the study of real clients; a bound without a source is ours. Sizes are in bytes.

/// Largest file that is transformed.
pub const SOURCE_BYTES_MAX: u64 = 50 << 20;
/// Pixels of a picture that must be decoded whole, or at half its size. Clients 6.3.
pub const SOURCE_PIXELS_MAX: u64 = 50_000_000;
/// Pixels of a JPEG of which three eighths of each side are decoded, or less.
pub const SCALED_PIXELS_MAX: u64 = 100_000_000;
/// Width, and height, of a source. Clients 6.3.
pub const SOURCE_SIDE_MAX: u32 = 16_384;
/// Pictures of an animation. Clients 6.3.
pub const FRAMES_MAX: u32 = 256;
/// Pixels of all pictures of an animation together, at the size of the canvas. Clients 6.3.
pub const FRAMES_PIXELS_MAX: u64 = 50_000_000;
/// Scans of a JPEG.
pub const SCANS_MAX: usize = 100;
/// A colour profile; a larger one is left out of account, as a broken one is.
pub const PROFILE_BYTES_MAX: usize = 1 << 20;
/// Unpacked, what a PNG has beside its pixels, and a row of them: chunks that pack a hundred times as much are read
/// before anything else.
pub const PNG_OTHER_BYTES_MAX: usize = 4 << 20;
/// Largest animation that is made, whatever its pictures: what is larger would not be transformed again.
pub const FILM_BYTES_MAX: u64 = SOURCE_BYTES_MAX;
/// What one job may take.
pub const JOB_BYTES_MAX: u64 = 320 << 20;
/// Width, and height, of what is made. Clients 6.3.
pub const OUTPUT_SIDE_MAX: u32 = 8_192;
/// Pixels of an AVIF that is made: its encoder is the slowest.
pub const AVIF_PIXELS_MAX: u64 = 4_000_000;
