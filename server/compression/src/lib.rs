//! Compression of whole files in memory: the content codings `br`, `zstd` and `gzip`.
//!
//! Guarantees: every input can be compressed, and decompresses to the same bytes; memory is bounded by
//! [`memory_bytes`]. Non-goals: HTTP, decompression, and streams.

mod brotli;

use std::io::{self, Write};

/// Content coding of HTTP.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Coding {
    /// Brotli (RFC 7932).
    Brotli,
    /// Zstandard (RFC 8878), with a window of at most 8 MiB (RFC 9659).
    Zstd,
    /// DEFLATE in the format of gzip (RFC 1952).
    Gzip,
}

/// Level of Zstandard: within 3 % of Brotli, and three times as fast as the levels above it.
const ZSTD_LEVEL: i32 = 9;
/// Level of DEFLATE: higher ones take twice the time and save less than 1 %.
const GZIP_LEVEL: u32 = 6;

impl Coding {
    /// All codings, in the order of preference.
    pub const ALL: [Self; 3] = [Self::Brotli, Self::Zstd, Self::Gzip];

    /// Returns the registered name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Brotli => "br",
            Self::Zstd => "zstd",
            Self::Gzip => "gzip",
        }
    }

    /// Compresses a file of at most 8 MiB.
    ///
    /// # Errors
    ///
    /// If memory for the state of the encoder is missing, or the file is too long.
    pub fn compress(self, bytes: &[u8]) -> io::Result<Vec<u8>> {
        if bytes.len() > INPUT_BYTES_MAX {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        match self {
            Self::Brotli => Ok(brotli::compress(bytes)),
            Self::Zstd => {
                let mut compressed = vec![0; zstd_safe::compress_bound(bytes.len())];
                let written = zstd_safe::compress(&mut compressed[..], bytes, ZSTD_LEVEL);
                compressed.truncate(
                    written.map_err(|code| io::Error::other(zstd_safe::get_error_name(code)))?,
                );
                Ok(compressed)
            }
            Self::Gzip => {
                let level = flate2::Compression::new(GZIP_LEVEL);
                let mut encoder = flate2::write::GzEncoder::new(Vec::new(), level);
                encoder.write_all(bytes)?;
                encoder.finish()
            }
        }
    }
}

/// Largest file that is compressed.
pub const INPUT_BYTES_MAX: usize = 8 << 20;

/// Returns the memory in bytes to compress a file of `bytes`: input, output, and tables of the encoders.
pub const fn memory_bytes(bytes: u64) -> u64 {
    8 * bytes + (6 << 20)
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    fn decompress(coding: Coding, compressed: &[u8], bytes: usize) -> Vec<u8> {
        let mut content = vec![0; bytes + 1];
        let length = match coding {
            Coding::Brotli => {
                content.clear();
                let mut decoder = brotli_decompressor::Decompressor::new(compressed, 4_096);
                decoder.read_to_end(&mut content).unwrap()
            }
            Coding::Zstd => zstd_safe::decompress(&mut content[..], compressed).unwrap(),
            Coding::Gzip => {
                content.clear();
                flate2::read::GzDecoder::new(compressed).read_to_end(&mut content).unwrap()
            }
        };
        content.truncate(length);
        content
    }

    #[track_caller]
    fn check(bytes: &[u8]) -> [usize; 3] {
        Coding::ALL.map(|coding| {
            let compressed = coding.compress(bytes).unwrap();
            let content = decompress(coding, &compressed, bytes.len());
            assert!(content == bytes, "{coding:?} of {} bytes", bytes.len());
            compressed.len()
        })
    }

    /// Returns text of words that recur, with numbers that do not.
    fn prose(bytes: usize) -> Vec<u8> {
        let words = ["bucket", "object", "upload ", "<a href=\"", "größe", ", ", "the ", "\n"];
        let mut state = 1_u64;
        let mut text = Vec::new();
        while text.len() < bytes {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            text.extend_from_slice(words[(state >> 33) as usize % words.len()].as_bytes());
            if state >> 61 == 0 {
                text.extend_from_slice((state >> 40).to_string().as_bytes());
            }
        }
        text.truncate(bytes);
        text
    }

    fn noise(bytes: usize) -> Vec<u8> {
        let mut state = 1_u64;
        let next = |_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 56) as u8
        };
        (0..bytes).map(next).collect()
    }

    #[test]
    fn codings_round_trip_inputs_of_all_kinds() {
        for bytes in [0, 1, 2, 3, 4, 5, 7, 8, 15, 100, 1_000, 65_536, 262_144, 262_145, 600_000] {
            check(&vec![0; bytes]);
            check(&prose(bytes));
            check(&noise(bytes));
            check(&[noise(bytes), noise(bytes)].concat());
            check(&(0..bytes).map(|at| at as u8).collect::<Vec<_>>());
            check(&(0..bytes).map(|at| (at % 3) as u8).collect::<Vec<_>>());
        }
    }

    #[test]
    fn largest_input_round_trips() {
        check(&prose(INPUT_BYTES_MAX));
        assert!(Coding::Gzip.compress(&vec![0; INPUT_BYTES_MAX + 1]).is_err());
    }

    #[test]
    fn brotli_is_smaller_than_gzip_for_text() {
        let text = include_bytes!("brotli.rs");
        let [brotli, _, gzip] = check(text);
        assert!(brotli < gzip, "{brotli} of brotli, {gzip} of gzip");
    }

    #[test]
    fn noise_grows_by_less_than_a_percent() {
        for length in check(&noise(300_000)) {
            assert!(length < 303_000, "{length}");
        }
    }

    proptest! {
        #[test]
        fn codings_round_trip_repetitive_bytes(
            parts in vec((vec(any::<u8>(), 0..40), 1_usize..60), 0..40)
        ) {
            let repeat = |(part, times): &(Vec<u8>, usize)| part.repeat(*times);
            check(&parts.iter().flat_map(repeat).collect::<Vec<u8>>());
        }

        #[test]
        fn codings_round_trip_any_bytes(bytes in vec(any::<u8>(), 0..2_000)) {
            check(&bytes);
        }
    }
}
