//! Why a file is not decoded.

use std::fmt;

use super::planes::Condition;

/// Why there is no picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// The bytes do not begin with `FF D8 FF`.
    NotJpeg,
    /// The bytes end before the first scan begins.
    Short,
    /// A rule of the format is broken where the picture cannot do without it.
    Malformed {
        /// What is wrong, as a sentence without its full stop.
        what: &'static str,
        /// Offset in the file of the marker segment that is wrong, in bytes.
        at: usize,
    },
    /// A JPEG of a kind that this decoder leaves to others.
    Unsupported(Unsupported),
    /// More of something than the caller allows.
    OverLimit(Limit),
    /// The caller said stop.
    Cancelled,
}

/// What this decoder leaves to others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unsupported {
    /// So many components: four are CMYK or YCCK.
    Components(u8),
    /// So many bits a sample; only 8 are read.
    Precision(u8),
    /// Arithmetic coding (SOF9 to SOF15, DAC).
    Arithmetic,
    /// Lossless coding (SOF3).
    Lossless,
    /// Hierarchical coding (SOF5 to SOF7, DHP, EXP).
    Hierarchical,
    /// A height that is told after the first scan only (DNL).
    LateHeight,
}

/// The limit that a file is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// Width times height.
    Pixels,
    /// Width or height.
    Side,
    /// Scans in the file.
    Scans,
    /// Blocks in the scans that must be decoded.
    Blocks,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotJpeg => f.write_str("not a JPEG file"),
            Self::Short => f.write_str("the file ends before its first scan"),
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
            Self::LateHeight => f.write_str("JPEG with its height in a DNL segment"),
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
    /// What an error means once there is something to show: that of the first scan, and what the caller said, stays an
    /// error.
    pub(super) fn after_a_scan(self, is_first: bool) -> Result<Condition, Self> {
        match self {
            error if is_first => Err(error),
            Self::OverLimit(_) | Self::Cancelled => Err(self),
            Self::Short => Ok(Condition::Truncated),
            _ => Ok(Condition::Damaged),
        }
    }
}
