//! AVIF, eight bits, alpha beside the colours.
//!
//! ```text
//! quality   numbers as they are asked for -> those of the encoder
//! plain     by rav1e, which is Rust, here without assembler: every build can do it, slowly
//! fast      by libaom, in C, with the feature `fast-codecs`: many times as fast, better at its size
//!   aom       libaom itself, the only `unsafe`
//! ```
//!
//! Neither can be stopped inside a picture: a plan bounds its pixels instead.

#[cfg(feature = "fast-codecs")]
mod aom;
#[cfg(feature = "fast-codecs")]
mod fast;
#[cfg(not(feature = "fast-codecs"))]
mod plain;
mod quality;

#[cfg(feature = "fast-codecs")]
pub(super) use self::fast::encode;
#[cfg(not(feature = "fast-codecs"))]
pub(super) use self::plain::encode;
