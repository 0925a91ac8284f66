//! AVIF encoder, 8 bits, with alpha.
//!
//! ```text
//! quality   requested quality -> encoder parameters
//! rav1e     rav1e in pure Rust, without its assembler: available in every build, slow
//! fast      libaom (C), with the feature `fast-codecs`: many times as fast, smaller files
//!   aom       libaom bindings, the only `unsafe` code
//! ```
//!
//! Neither encoder can be cancelled inside a picture: the plan bounds its pixels instead.

#[cfg(feature = "fast-codecs")]
mod aom;
#[cfg(feature = "fast-codecs")]
mod fast;
mod quality;
#[cfg(not(feature = "fast-codecs"))]
mod rav1e;

#[cfg(feature = "fast-codecs")]
pub(super) use self::fast::encode;
#[cfg(not(feature = "fast-codecs"))]
pub(super) use self::rav1e::encode;
