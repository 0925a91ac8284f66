//! A JPEG at an eighth, a quarter, three eighths or half of its size, without decoding all of it, or at its full size.
//!
//! A thumbnail needs a hundredth of a photograph's pixels. JPEG keeps blocks of 8 x 8 as frequencies, so the lowest n
//! x n of them, transformed back at n points, *are* the block at n / 8 of its size: n is 1 to 4 here, or 8. What higher
//! frequencies cost is reading past their codes, and in progressive files not even that: a scan that cannot change a
//! kept coefficient is not read.
//!
//! ```text
//! decode   header       SOI to the first SOS: markers, frame, metadata, tables
//!          sequential   one scan or one for each component: blocks go straight to the planes
//!          progressive  which scans matter; kept coefficients of all of them; then the planes
//!            scan       one scan header; its blocks in order, over restart intervals (intervals)
//!            huffman    codes and the numbers behind them, out of bits
//!            inverse    kept coefficients -> samples (whole_block: all 64 of them)
//!          upsample     at full size: components with fewer samples, to pixels
//! ```
//!
//! **What comes out** are planes, as the file has them: Y, Cb, Cr, or R, G, B, or grey, or four inks. Luma has the
//! scale that was asked for. At the reduced scales a component with fewer samples is scaled down less, up to half: for
//! 4:2:0 at an eighth and a quarter, chroma is one step finer than luma and the planes have one size; at three eighths
//! and half it stays at half. Pixels are squares over the source: sample x of a plane covers columns from x / scale on,
//! so no plane is shifted against another.
//!
//! **What is read**: ITU T.81 baseline (SOF0), extended sequential with 8 bits and Huffman codes (SOF1), progressive
//! (SOF2); grey, three and four components with any sampling factors; restart intervals; several scans; the standard
//! Huffman tables where a sequential file has none. Everything else is [`Error::Unsupported`], and is read by no other
//! decoder here. Orientation and profile are reported, not applied.
//!
//! **Damage.** A file that ends early is decoded as far as it goes, the rest is mid-grey (progressive: what earlier
//! scans said). Broken entropy data is given up until the next restart marker, or for the scan where there are none.
//! [`Decoded::condition`] says so. What is wrong before the first scan is an error.
//!
//! **Bounds.** Memory is at most [`memory_bytes`]: one byte for each sample of the planes with their blocks made
//! whole, and for progressive files two more, and eight for each block; nothing depends on the length of the file but
//! the profile, which has a limit. Time is bounded by [`Limits`]: entropy data of one scan for each `scans_max`, and
//! `blocks_max`. `stop` is asked once a row of blocks.
//!
//! Sources: ITU-T T.81 (B.1 markers, B.2 segments, A.1 and A.2 geometry, C and F.2.2 Huffman codes, G.1.2
//! progressive, F.2.1.3 differences); JFIF 1.02; Adobe Technical Note 5116 (APP14); ICC.1 annex B.4 (APP2); Exif 2.3
//! (APP1, tag 274).
//!
//! Promises: no panic, no `unsafe`; the same bytes give the same planes. Never here: resizing, colour management.

#![cfg_attr(
    not(test),
    deny(
        clippy::expect_used,
        clippy::indexing_slicing,
        clippy::panic,
        clippy::string_slice,
        clippy::unreachable,
        clippy::unwrap_used
    )
)]
#![allow(clippy::big_endian_bytes, reason = "JPEG is big-endian")]

mod bits;
mod error;
mod frame;
mod header;
mod huffman;
mod intervals;
mod inverse;
mod kept;
mod layout;
mod limits;
mod markers;
mod metadata;
mod pixels;
mod planes;
mod progressive;
mod scale;
mod scan;
mod sequential;
mod standard;
mod tables;
mod upsample;
mod whole_block;

#[cfg(test)]
mod tests;

pub use self::error::{Error, Limit, Unsupported};
pub use self::header::{Colour, Header};
pub use self::limits::Limits;
pub use self::metadata::exif_orientation;
pub use self::pixels::to_pixels;
pub use self::planes::{Condition, Decoded, Plane};
pub use self::scale::Scale;
pub use self::upsample::full_size_pixels;

use self::layout::Layout;

/// Asked once a row of blocks; true ends the decoding with [`Error::Cancelled`].
pub type Stop<'a> = super::Stop<'a>;

/// Reads what stands before the first scan, and nothing behind it. Allocates nothing but the profile.
///
/// # Errors
///
/// What is no JPEG, is malformed before the first scan, is unsupported, or is over the limits for pixels and sides.
pub fn read_header(bytes: &[u8], limits: &Limits) -> Result<Header, Error> {
    header::open(bytes, limits).map(|opened| opened.header)
}

/// The most memory, in bytes, that decoding to a scale takes: planes, coefficients and tables, without the profile.
pub fn memory_bytes(header: &Header, scale: Scale) -> u64 {
    Layout::new(&header.frame, scale).memory_bytes()
}

/// Samples of all components at full size, with their blocks made whole.
pub fn samples(header: &Header) -> u64 {
    header.frame.samples()
}

/// Samples that the scans of a progressive file come by, of all scans together, whatever is decoded of them; of other
/// files none, for there each sample is in one scan.
///
/// # Errors
///
/// As [`read_header`], and: the first scan is malformed; there are more scans than the limits allow.
pub fn scanned_samples(bytes: &[u8], limits: &Limits) -> Result<u64, Error> {
    let opened = header::open(bytes, limits)?;
    match opened.header.progressive {
        true => Ok(64 * progressive::scanned_blocks(bytes, &opened, limits)?),
        false => Ok(0),
    }
}

/// Decodes to planes at a scale.
///
/// # Errors
///
/// As [`read_header`], and: the first scan is malformed; there are more scans, or more blocks in those that must be
/// decoded, than the limits allow; `stop` said so.
pub fn decode(
    bytes: &[u8],
    scale: Scale,
    limits: &Limits,
    stop: Stop<'_>,
) -> Result<Decoded, Error> {
    let opened = header::open(bytes, limits)?;
    let layout = Layout::new(&opened.header.frame, scale);
    let decode = match (opened.header.progressive, scale) {
        (true, Scale::Full) => progressive::decode::<[i32; 64]>,
        (true, _) => progressive::decode::<[i32; 16]>,
        (false, Scale::Full) => sequential::decode::<[i32; 64]>,
        (false, _) => sequential::decode::<[i32; 16]>,
    };
    let (planes, condition) = decode(bytes, &opened, &layout, limits, stop)?;
    Ok(Decoded { header: opened.header, scale, planes, condition })
}
