//! What a request wants made of a picture.

use crate::format::Format;

/// What a picture is to become. Nothing asked for is a wish of nothing: the file as it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Wish {
    /// The format.
    pub format: Wanted,
    /// Width in pixels, at least 1.
    pub width: Option<u32>,
    /// Height in pixels, at least 1.
    pub height: Option<u32>,
    /// Quality, 1 to 100.
    pub quality: Option<u8>,
    /// What becomes of a picture whose sides are in another ratio than those wanted.
    pub fit: Fit,
}

/// The format that is wanted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Wanted {
    /// The one that is stored.
    #[default]
    Stored,
    /// This one.
    Format(Format),
    /// The best that the client shows: AVIF unless the picture moves, else WebP, else the one that is stored.
    Auto {
        /// Whether it shows AVIF.
        avif: bool,
        /// Whether it shows WebP.
        webp: bool,
    },
}

/// How a picture is brought into a box, when width and height are wanted. It is never enlarged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Fit {
    /// Inside the box, in its own ratio.
    #[default]
    Contain,
    /// The box is filled; what stands out, equally on both sides, is cut off. Where the picture is smaller than the
    /// box, the box shrinks in its ratio.
    Cover,
    /// Exactly the box, stretched. A side that is shorter stays as it is.
    Fill,
}

impl Wish {
    /// Whether anything is wanted.
    pub fn is_any(&self) -> bool {
        *self != Self { fit: self.fit, ..Self::default() }
    }
}
