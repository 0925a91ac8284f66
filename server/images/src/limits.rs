//! Limits of image processing. All are checked against the header, before the work that they bound.
//!
//! "Clients" is the study of real clients; a limit without a source is our own choice. Sizes are in bytes.

/// Maximum size of a file that is transformed.
pub const SOURCE_BYTES_MAX: u64 = 50 << 20;
/// Maximum pixels of a picture that must be decoded at full or half size. Clients 6.3.
pub const SOURCE_PIXELS_MAX: u64 = 50_000_000;
/// Maximum pixels of a JPEG that is decoded at three eighths of its size, or less.
pub const SCALED_PIXELS_MAX: u64 = 100_000_000;
/// Maximum width and height of a source. Clients 6.3.
pub const SOURCE_SIDE_MAX: u32 = 16_384;
/// Maximum number of frames of an animation. Clients 6.3.
pub const FRAMES_MAX: u32 = 256;
/// Maximum pixels of all frames of an animation together, at the size of the canvas. Clients 6.3.
pub const FRAMES_PIXELS_MAX: u64 = 50_000_000;
/// Maximum number of scans of a JPEG.
pub const SCANS_MAX: usize = 100;
/// Maximum size of a colour profile; a larger one is ignored, like a broken one.
pub const PROFILE_BYTES_MAX: usize = 1 << 20;
/// Maximum decompressed size of PNG chunks other than pixels, plus one row: such chunks may be compressed a
/// hundredfold and are read first.
pub const PNG_OTHER_BYTES_MAX: usize = 4 << 20;
/// Maximum size of a rendered animation, whatever its frames: a larger one could not be transformed again.
pub const ANIMATION_BYTES_MAX: u64 = SOURCE_BYTES_MAX;
/// Maximum memory of one render.
pub const JOB_BYTES_MAX: u64 = 320 << 20;
/// Maximum width and height of the output. Clients 6.3.
pub const OUTPUT_SIDE_MAX: u32 = 8_192;
/// Maximum pixels of an encoded AVIF, whose encoder is the slowest.
pub const AVIF_PIXELS_MAX: u64 = 4_000_000;
