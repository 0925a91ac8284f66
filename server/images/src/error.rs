//! Why there is no picture.

use std::fmt;

/// Why a picture is not made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Error {
    /// The file is broken, or of a kind that its format allows and no decoder here reads.
    Undecodable(String),
    /// The picture is larger than is worked on.
    TooLarge(Bound),
    /// Nobody waits for it any more.
    Cancelled,
    /// An encoder failed, which is no fault of the file.
    Failed(String),
}

/// The bound that a picture is over; see [`super::limits`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bound {
    /// The file's length.
    Bytes,
    /// Width times height.
    Pixels,
    /// Width or height.
    Side,
    /// Pictures of an animation, by number or by pixels.
    Frames,
    /// Memory for one job.
    Memory,
    /// What would be made is larger than its format, or its encoder, takes.
    Output,
}

impl Bound {
    /// A word for programs.
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
    /// A broken file, as a decoder tells it.
    pub(super) fn undecodable(why: impl fmt::Display) -> Self {
        Self::Undecodable(why.to_string())
    }

    /// A failure of an encoder, as it tells it.
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
