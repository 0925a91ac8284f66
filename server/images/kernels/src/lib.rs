//! Resampling and AVIF encoding: pixel operations of `images` by generic libraries.
//!
//! Generic code is compiled into the crate that calls it: megabytes of filters here. This crate contains only those
//! calls, so that `images`, its tests and its feature sets are built without compiling them again.

mod avif;
mod resample;

pub use avif::{Channels, encode_avif};
pub use resample::{KERNEL_RADIUS, Pixel, resample};
