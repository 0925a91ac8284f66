//! Image header: everything that a plan depends on.

use scaled_jpeg::Scale;

use crate::format::Format;
use crate::orientation::Orientation;

/// Header of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Source {
    /// Format of the file.
    pub format: Format,
    /// Width and height in pixels, as stored.
    pub sides: (u32, u32),
    /// Orientation to be applied.
    pub orientation: Orientation,
    /// Number of frames; 1 unless it is decoded as an animation.
    pub frames: u32,
    /// Whether the encoding is lossless: never for JPEG and AVIF, and not for most WebP.
    pub is_lossless: bool,
    /// Whether decoding needs a second copy in memory: progressive JPEG, JPEG with scans of single components,
    /// interlaced PNG.
    pub is_progressive: bool,
    /// Number of components of a JPEG; 0 for other formats.
    pub components: u8,
    /// Samples of all components of a JPEG, with complete blocks at the edges; 0 for other formats.
    pub samples: u64,
    /// Memory of decoding a JPEG at each of [`Scale::REDUCED`] in bytes; `None` for other formats.
    pub scaled_bytes: Option<[u64; 4]>,
    /// Memory of decoding at full size in bytes: of a JPEG that this crate decodes, and of decode-only formats;
    /// `None` for others.
    pub full_bytes: Option<u64>,
    /// Samples covered by the scans of a progressive JPEG, of all scans together; 0 for other files. `None` if only
    /// the start of the file was read.
    pub scanned_samples: Option<u64>,
}

impl Source {
    /// Creates the header of a still picture without orientation.
    pub(super) fn still(format: Format, sides: (u32, u32)) -> Self {
        Self {
            format,
            sides,
            orientation: Orientation::default(),
            frames: 1,
            is_lossless: false,
            is_progressive: false,
            components: 0,
            samples: 0,
            scaled_bytes: None,
            full_bytes: None,
            scanned_samples: Some(0),
        }
    }

    /// Returns the displayed width and height.
    pub fn oriented_size(&self) -> (u32, u32) {
        self.orientation.oriented_size(self.sides)
    }

    /// Returns the memory of decoding a JPEG in bytes, at a scale or at full size, without its output; 0 for other
    /// formats.
    pub(super) fn jpeg_bytes(&self, scale: Option<Scale>) -> u64 {
        let scaled = scale.zip(self.scaled_bytes).and_then(|(scale, bytes)| {
            Scale::REDUCED.into_iter().zip(bytes).find(|(of, _)| *of == scale)
        });
        let pixels = self.pixels() * u64::from(self.components);
        match (scaled, self.full_bytes) {
            (Some((_, bytes)), _) | (None, Some(bytes)) => bytes,
            // Pixels, and in addition two bytes per coefficient, or later the pixels of the resizer.
            (None, None) if self.is_progressive => pixels + pixels.max(2 * self.samples),
            (None, None) => 2 * pixels,
        }
    }

    /// Returns whether everything is known that the time estimate depends on.
    pub fn has_complete_cost(&self) -> bool {
        self.scanned_samples.is_some()
    }

    /// Returns whether it is animated.
    pub fn is_animated(&self) -> bool {
        self.frames > 1
    }

    /// Returns the number of pixels of one frame.
    pub fn pixels(&self) -> u64 {
        u64::from(self.sides.0) * u64::from(self.sides.1)
    }
}
