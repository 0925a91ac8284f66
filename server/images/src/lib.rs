//! Image transformation: decodes, resizes and encodes images, without HTTP and without the store.
//!
//! Pure code over bytes and pixels in a separate crate without dependencies on the server, so that render threads,
//! tests, the fuzzer and benches can call it, and changes of the server do not rebuild the codecs.
//!
//! ```text
//! transform  transform options           source_info  image header
//!    \_____________ plan ________________/         output, exact to the pixel
//!                    |
//!                  render                        all steps:
//!   decode     one module per format; JPEG at a reduced size by the crate scaled-jpeg
//!   resize     resizing and cropping
//!   profile    conversion to sRGB
//!   orientation  Exif orientation
//!   encode     one module per format
//!   animation  the same steps for each frame
//! camera     Exif data of a photograph
//! ```
//!
//! Untrusted input is parsed only by safe Rust; the encoders in C, libwebp and with the feature `fast-codecs`
//! libaom, get only decoded pixels.
//!
//! Guarantees: no panic in this crate and no unbounded memory for any input; `unsafe` only in the bindings of libaom
//! and libwebp (`encode/avif/aom.rs`, `encode/libwebp.rs`), which get no untrusted input. Decoder libraries have
//! panicked on crafted files before, so callers must catch panics.
//! Non-goals: requests, names, the source of the bytes, threads.

mod animation;
mod camera;
mod decode;
mod encode;
mod error;
mod format;
pub mod limits;
mod orientation;
mod picture;
mod plan;
mod profile;
mod render;
mod resize;
mod riff;
mod source_info;
mod transform;

pub use self::camera::{CameraInfo, read_camera};
pub use self::error::{Error, LimitKind};
pub use self::format::{Format, HEAD_BYTES};
pub use self::plan::{Plan, PlanOutcome, Quality, plan};
pub use self::render::{read_source, read_source_of_start, render};
pub use self::source_info::Source;
pub use self::transform::{Fit, OutputFormat, TransformOptions};
/// Cancellation callback, called from time to time; true cancels the work.
pub use scaled_jpeg::Stop;

/// AVIF encoder of this build, for version output.
pub const AVIF_ENCODER: &str = if cfg!(feature = "fast-codecs") {
    "AVIF is written by libaom, and read without assembler: slowly"
} else {
    "AVIF is read and written without assembler: slowly"
};
