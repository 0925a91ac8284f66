//! Image tests: quality of the output, and resistance to damaged files.
//!
//! `quality` compares rendered photographs with those of libvips; `hostile` renders damaged files and bombs, and
//! measures memory; `jpeg_options` compares JPEG files of any encoder options with `djpeg`. The others are about the
//! scaled JPEG decoder: `likeness` compares its planes with those of `zune-jpeg` scaled down by areas, by peak
//! signal-to-noise ratio; `damage` truncates and damages files.

#![allow(clippy::big_endian_bytes, reason = "PNG, JPEG and AVIF are big-endian")]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod damage;
mod hostile;
mod jpeg_options;
mod likeness;
mod quality;

use fuzz::synthetic_photo::{Encoding, SamplingFactor};
use scaled_jpeg::{Decoded, Error, Limits, Scale};

const SAMPLINGS: [SamplingFactor; 4] = [
    SamplingFactor::R_4_4_4,
    SamplingFactor::R_4_2_0,
    SamplingFactor::R_4_2_2,
    SamplingFactor::R_4_4_0,
];

const PLAIN: Encoding = Encoding::PLAIN;

fn decode(file: &[u8], scale: Scale) -> Result<Decoded, Error> {
    scaled_jpeg::decode(file, scale, &Limits::PHOTOGRAPH, &|| false)
}
