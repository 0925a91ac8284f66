//! Transform options of a request.

use crate::format::Format;

/// Transform options. Without any option, the stored file is served.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct TransformOptions {
    /// Output format.
    pub format: OutputFormat,
    /// Width in pixels, at least 1.
    pub width: Option<u32>,
    /// Height in pixels, at least 1.
    pub height: Option<u32>,
    /// Quality, 1 to 100.
    pub quality: Option<u8>,
    /// Handling of a different aspect ratio.
    pub fit: Fit,
}

/// Requested format.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum OutputFormat {
    /// Stored format.
    #[default]
    Original,
    /// Given format.
    Format(Format),
    /// Best format supported by the client: AVIF unless animated, else WebP, else the stored format.
    Auto {
        /// Whether the client supports AVIF.
        avif: bool,
        /// Whether the client supports WebP.
        webp: bool,
    },
}

/// Fit of a picture in a box of requested width and height. Pictures are never enlarged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Fit {
    /// Inside the box, with the original aspect ratio.
    #[default]
    Contain,
    /// Fills the box; the excess is cropped equally on both sides. If the picture is smaller than the box, the box
    /// is reduced with its aspect ratio.
    Cover,
    /// Stretched to exactly the box. A shorter side is unchanged.
    Fill,
}

impl TransformOptions {
    /// Returns whether no option is set that changes an image.
    pub fn is_identity(&self) -> bool {
        *self == Self { fit: self.fit, ..Self::default() }
    }
}
