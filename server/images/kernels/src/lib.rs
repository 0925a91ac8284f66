//! Resampling and AV1 encoding: pixel operations of `images` by generic libraries.
//!
//! Generic code is compiled into the crate that calls it: here megabytes of filters, which took 170 of the 211 seconds
//! of processor time for `images`. Only this crate contains such calls, so that builds of `images`, its tests and its
//! feature sets do not compile them again.
//!
//! Guarantees: no `unsafe`, no I/O, no threads. Non-goals: limits of size and memory, cancellation, colour profiles.

mod av1;
mod pixel_layout;
mod resample;

pub use av1::{Chroma, Plane, Planes, encode_av1};
pub use pixel_layout::PixelLayout;
pub use resample::{KERNEL_RADIUS, resample};
