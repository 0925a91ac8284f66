//! Error type of the JPEG decoder.

use std::fmt;

use super::planes::DecodeStatus;

/// Error of decoding a JPEG.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// Bytes that do not begin with `FF D8 FF`.
    NotJpeg,
    /// End of the file before the first scan.
    UnexpectedEof,
    /// Violation of the format that prevents decoding.
    Malformed {
        /// Description: a sentence without its full stop.
        what: &'static str,
        /// Offset of the invalid marker segment in the file, in bytes.
        at: usize,
    },
    /// Unsupported kind of JPEG.
    Unsupported(Unsupported),
    /// Limit of the caller exceeded.
    OverLimit(Limit),
    /// Decoding cancelled by the caller.
    Cancelled,
}

/// Unsupported feature.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unsupported {
    /// Number of components: four are CMYK or YCCK.
    Components(u8),
    /// Bits per sample; only 8 are supported.
    Precision(u8),
    /// Arithmetic coding (SOF9 to SOF15, DAC).
    Arithmetic,
    /// Lossless coding (SOF3).
    Lossless,
    /// Hierarchical coding (SOF5 to SOF7, DHP, EXP).
    Hierarchical,
    /// Height that is defined after the first scan (DNL).
    Dnl,
}

/// Limit that was exceeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// Width times height.
    Pixels,
    /// Width or height.
    Side,
    /// Number of scans.
    Scans,
    /// Number of blocks in the scans to be decoded.
    Blocks,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotJpeg => f.write_str("not a JPEG file"),
            Self::UnexpectedEof => f.write_str("the file ends before its first scan"),
            Self::Malformed { what, at } => write!(f, "{what}, at offset {at}"),
            Self::Unsupported(unsupported) => unsupported.fmt(f),
            Self::OverLimit(limit) => limit.fmt(f),
            Self::Cancelled => f.write_str("cancelled"),
        }
    }
}

impl fmt::Display for Unsupported {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Components(count) => write!(f, "JPEG with {count} components"),
            Self::Precision(bits) => write!(f, "JPEG with {bits} bits per sample"),
            Self::Arithmetic => f.write_str("JPEG with arithmetic coding"),
            Self::Lossless => f.write_str("lossless JPEG"),
            Self::Hierarchical => f.write_str("hierarchical JPEG"),
            Self::Dnl => f.write_str("JPEG with its height in a DNL segment"),
        }
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Pixels => "JPEG with too many pixels",
            Self::Side => "JPEG too wide or too high",
            Self::Scans => "JPEG with too many scans",
            Self::Blocks => "JPEG with too many blocks in its scans",
        })
    }
}

impl std::error::Error for Error {}

impl Error {
    /// Converts an error after the first scan to a condition: there is something to show. Errors of the first scan,
    /// and cancellation, remain errors.
    pub(super) fn after_a_scan(self, is_first: bool) -> Result<DecodeStatus, Self> {
        match self {
            error if is_first => Err(error),
            Self::OverLimit(_) | Self::Cancelled => Err(self),
            Self::UnexpectedEof => Ok(DecodeStatus::Truncated),
            _ => Ok(DecodeStatus::Damaged),
        }
    }
}
