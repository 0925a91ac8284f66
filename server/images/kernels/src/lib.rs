//! Resampling and AVIF encoding: pixel operations of `images` by generic libraries.
//!
//! Generic code is compiled into the crate that calls it: here megabytes of filters, which took 170 of the 211 seconds
//! of processor time for `images`. Only this crate contains such calls, so that builds of `images`, its tests and its
//! feature sets do not compile them again.
//!
//! Guarantees: no `unsafe`, no I/O, no threads. Non-goals: limits of size and memory, cancellation, colour profiles.

mod avif;
mod pixel_layout;
mod resample;
mod ycbcr;

pub use avif::encode_avif;
pub use pixel_layout::PixelLayout;
pub use resample::{KERNEL_RADIUS, resample};
pub use ycbcr::{chroma, luma};
