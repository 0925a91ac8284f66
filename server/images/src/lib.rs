//! Pictures: bytes of a file into pixels and into another file, without HTTP and without the store.
//!
//! Pure code over bytes and pixels, a crate of its own: it names nothing of the server, so that a worker's thread, a
//! test, the fuzzer and a bench can call it alike, and a change of the server does not build codecs again.
//!
//! ```text
//! wish      what a request wants          source   what the header says
//!    \_____________ plan ________________/         what is made of it, decided to the last pixel
//!                    |
//!                  render                          the whole of it:
//!   decode     a module for each format; JPEG at a fraction of its size by scaled_jpeg
//!   resize     shrunk, and cut
//!   profile    into sRGB
//!   orientation  turned as it is seen
//!   encode     a module for each format
//!   animation  the same for each picture of one that moves
//! ```
//!
//! Bytes of strangers meet safe Rust only; the encoders in C, libwebp and with the feature `fast-codecs` libaom, see
//! pixels that were made here.
//!
//! Promises of everything here: no panic of ours and no unbounded memory on any bytes, and no `unsafe` but the
//! calls of libaom (`encode/avif/aom.rs`, which sees no bytes of strangers); libraries that
//! decode have panicked on crafted files before, so whoever calls catches that. Never here: requests, names, where
//! bytes come from, which thread works.

mod animation;
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
pub mod scaled_jpeg;
mod source;
mod wish;

pub use self::error::{Bound, Error};
pub use self::format::{Format, HEAD_BYTES};
pub use self::plan::{Plan, Planned, Quality, plan};
pub use self::render::{read_source, read_source_of_start, render};
pub use self::source::Source;
pub use self::wish::{Fit, Wanted, Wish};

/// What people are told about this build.
pub const AVIF_ENCODER: &str = if cfg!(feature = "fast-codecs") {
    "AVIF is written by libaom, and read without assembler: slowly"
} else {
    "AVIF is read and written without assembler: slowly"
};

/// Asked now and then; true ends the work.
pub type Stop<'a> = &'a (dyn Fn() -> bool + Send + Sync);
