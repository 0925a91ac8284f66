//! Error type of the image crate.

use std::fmt;

/// Error of reading, planning or rendering.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Error {
    /// File that is broken, or uses a feature of its format that no decoder here supports.
    Undecodable(String),
    /// Picture beyond a limit.
    TooLarge(LimitKind),
    /// Work cancelled by the caller.
    Cancelled,
    /// Encoder failure, not caused by the file.
    Failed(String),
}

/// Limit that was exceeded; see [`super::limits`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LimitKind {
    /// File size.
    Bytes,
    /// Width times height.
    Pixels,
    /// Width or height.
    Side,
    /// Frames of an animation, by number or by pixels.
    Frames,
    /// Memory of one render.
    Memory,
    /// Output larger than its format or encoder supports.
    Output,
}

impl LimitKind {
    /// Returns the machine-readable name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Bytes => "bytes",
            Self::Pixels => "pixels",
            Self::Side => "side",
            Self::Frames => "frames",
            Self::Memory => "memory",
            Self::Output => "output",
        }
    }
}

impl Error {
    /// Creates an error for a broken file from a decoder error.
    pub(super) fn undecodable(why: impl fmt::Display) -> Self {
        Self::Undecodable(why.to_string())
    }

    /// Creates an error from an encoder failure.
    pub(super) fn failed(why: impl fmt::Display) -> Self {
        Self::Failed(why.to_string())
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Undecodable(why) => write!(f, "the image cannot be decoded: {why}"),
            Self::TooLarge(bound) => write!(f, "the image is too large: {}", bound.as_str()),
            Self::Cancelled => write!(f, "cancelled"),
            Self::Failed(why) => write!(f, "the image cannot be encoded: {why}"),
        }
    }
}

impl std::error::Error for Error {}
