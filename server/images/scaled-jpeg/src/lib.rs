//! Scaled JPEG decoder: decodes at an eighth, a quarter, three eighths or half of the size without full decoding, or
//! at full size.
//!
//! A thumbnail needs a hundredth of the pixels of a photograph. JPEG stores blocks of 8 x 8 pixels as frequencies,
//! so the inverse DCT of the lowest n x n of them at n points is the block at n / 8 of its size: n is 1 to 4 here,
//! or 8. Codes of higher frequencies are only skipped, and in progressive files a scan that cannot change a retained
//! coefficient is not read at all.
//!
//! ```text
//! decode   header       SOI to the first SOS: markers, frame, metadata, tables
//!          sequential   one scan, or one per component: blocks are written directly to the planes
//!          progressive  selection of scans; retained coefficients of all of them; then the planes
//!            scan       scan header; blocks in order, across restart intervals (restart_intervals)
//!            huffman    codes and coefficient values
//!            idct       retained coefficients -> samples (whole_block: all 64)
//!          upsample     at full size: upsampling of components, conversion to pixels
//! ```
//!
//! **Output** are planes, as in the file: Y, Cb, Cr, or R, G, B, or grey, or four inks. Luma has the requested
//! scale. At the reduced scales a subsampled component is scaled down less, up to half: for 4:2:0 at an eighth and a
//! quarter, chroma is one step finer than luma and the planes have one size; at three eighths and half it stays at
//! half. Pixels are squares of the source: sample x of a plane covers columns from x / scale on, so no plane is
//! shifted against another.
//!
//! **Supported**: ITU T.81 baseline (SOF0), extended sequential with 8 bits and Huffman codes (SOF1), progressive
//! (SOF2); grey, three and four components with any sampling factors; restart intervals; several scans; the standard
//! Huffman tables where a sequential file has none. Everything else is [`Error::Unsupported`], and supported by no
//! other decoder of this crate. Orientation and profile are reported, not applied.
//!
//! **Damage.** A truncated file is decoded as far as possible, the rest is mid-grey (progressive: the result of
//! earlier scans). Corrupt entropy-coded data is skipped until the next restart marker, or to the end of the scan if
//! there are none. [`Decoded::condition`] reports it. Errors before the first scan are fatal.
//!
//! **Bounds.** Memory is at most [`memory_bytes`]: one byte per sample of the planes with complete blocks, and for
//! progressive files two more, and eight per block; only the profile, which has a limit, depends on the length of
//! the file. Time is bounded by [`Limits`] (`scans_max` and `blocks_max`). `stop` is called once per row of blocks.
//!
//! Sources: ITU-T T.81 (B.1 markers, B.2 segments, A.1 and A.2 geometry, C and F.2.2 Huffman codes, G.1.2
//! progressive, F.2.1.3 differences); JFIF 1.02; Adobe Technical Note 5116 (APP14); ICC.1 annex B.4 (APP2); Exif 2.3
//! (APP1, tag 274).
//!
//! Guarantees: no panic, no `unsafe`; the same bytes give the same planes.
//! Non-goals: resizing, colour management.

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

mod bit_reader;
mod coefficient_mask;
mod error;
mod frame;
mod header;
mod huffman;
mod idct;
mod markers;
mod metadata;
mod pixels;
mod plane_layout;
mod planes;
mod progressive;
mod restart_intervals;
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
pub use self::header::{ColorModel, Header};
pub use self::metadata::exif_orientation;
pub use self::pixels::to_pixels;
pub use self::planes::{DecodeStatus, Decoded, Plane};
pub use self::scale::Scale;
pub use self::upsample::full_size_pixels;

use self::plane_layout::Layout;

/// Cancellation callback, called once per row of blocks; true ends the decoding with [`Error::Cancelled`].
pub type Stop<'a> = &'a (dyn Fn() -> bool + Send + Sync);

/// Limits that are checked before the work that they bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Maximum width times height of the source.
    pub pixels_max: u64,
    /// Maximum width and height of the source. The format itself ends at 65,535.
    pub side_max: u32,
    /// Maximum number of scans in a progressive file, including skipped ones. Encoders write about ten.
    pub scans_max: usize,
    /// Maximum number of 8 x 8 blocks in the scans to be decoded, summed over scans and components.
    pub blocks_max: u64,
    /// Maximum size of a colour profile in bytes. A larger one is ignored, like a broken one.
    pub profile_bytes_max: usize,
}

impl Limits {
    /// Limits for photographs: 100 megapixels, of which an eighth of each side is 1.6.
    pub const PHOTOGRAPH: Self = Self {
        pixels_max: 100_000_000,
        side_max: 16_384,
        scans_max: 100,
        blocks_max: 50_000_000,
        profile_bytes_max: 1 << 20,
    };
}

/// Parses everything before the first scan, and nothing after it. Allocates only the profile.
///
/// # Errors
///
/// If it is not a JPEG, is malformed before the first scan, is unsupported, or exceeds the limits for pixels and
/// sides.
pub fn read_header(bytes: &[u8], limits: &Limits) -> Result<Header, Error> {
    header::open(bytes, limits).map(|opened| opened.header)
}

/// Returns the maximum memory of decoding at a scale in bytes: planes, coefficients and tables, without the profile.
pub fn memory_bytes(header: &Header, scale: Scale) -> u64 {
    Layout::new(&header.frame, scale).memory_bytes()
}

/// Returns the number of samples of all components at full size, with complete blocks.
pub fn samples(header: &Header) -> u64 {
    header.frame.samples()
}

/// Returns the number of samples covered by all scans of a progressive file, decoded or not; 0 for other files,
/// where each sample is in one scan.
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
/// As [`read_header`], and: the first scan is malformed; there are more scans, or more blocks in those to be
/// decoded, than the limits allow; `stop` returned true.
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
