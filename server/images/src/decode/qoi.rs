//! QOI decoder, by "The Quite OK Image Format", specification 1.0.
//!
//! Guarantees: allocates only the pixels, which the plan bounds; no panic.

#![allow(clippy::big_endian_bytes, reason = "QOI is big-endian")]

use crate::Stop;
use crate::error::{Error, LimitKind};
use crate::format::Format;
use crate::limits::JOB_BYTES_MAX;
use crate::picture::{PixelBuffer, PixelLayout};
use crate::source_info::Source;

struct Header<'a> {
    sides: (u32, u32),
    layout: PixelLayout,
    codes: &'a [u8],
}

impl<'a> Header<'a> {
    fn read(bytes: &'a [u8]) -> Result<Self, Error> {
        let broken = || Error::undecodable("missing QOI header");
        let rest = bytes.strip_prefix(b"qoif").ok_or_else(broken)?;
        let (width, rest) = rest.split_first_chunk().ok_or_else(broken)?;
        let (height, rest) = rest.split_first_chunk().ok_or_else(broken)?;
        let (layout, codes) = match rest {
            [3, 0 | 1, codes @ ..] => (PixelLayout::Rgb, codes),
            [4, 0 | 1, codes @ ..] => (PixelLayout::Rgba, codes),
            _ => return Err(broken()),
        };
        Ok(Self { sides: (u32::from_be_bytes(*width), u32::from_be_bytes(*height)), layout, codes })
    }
}

pub(super) fn read_source(bytes: &[u8]) -> Result<Source, Error> {
    let Header { sides, .. } = Header::read(bytes)?;
    Ok(Source { is_lossless: true, ..Source::still(Format::Qoi, sides) })
}

pub(super) fn decode(bytes: &[u8], stop: Stop<'_>) -> Result<PixelBuffer, Error> {
    let Header { sides: (width, height), layout, codes } = Header::read(bytes)?;
    let channels = layout.channels();
    let length = (u64::from(width) * u64::from(height)).saturating_mul(channels as u64);
    if length > JOB_BYTES_MAX {
        return Err(Error::TooLarge(LimitKind::Memory));
    }
    let mut samples = vec![0; length as usize];
    let mut pixels = Pixels { codes, seen: [[0; 4]; 64], pixel: [0, 0, 0, 255], run: 0 };
    for row in samples.chunks_exact_mut((width as usize * channels).max(1)) {
        if stop() {
            return Err(Error::Cancelled);
        }
        for place in row.chunks_exact_mut(channels) {
            let pixel =
                pixels.next().ok_or_else(|| Error::undecodable("unexpected end of file"))?;
            place.iter_mut().zip(pixel).for_each(|(place, sample)| *place = sample);
        }
    }
    PixelBuffer::new((width, height), layout, samples, None)
}

/// Iterator over RGBA pixels, until the codes end.
struct Pixels<'a> {
    codes: &'a [u8],
    /// Recent pixels, by their hash.
    seen: [[u8; 4]; 64],
    pixel: [u8; 4],
    /// Remaining repetitions of the pixel.
    run: u8,
}

impl Pixels<'_> {
    /// Decodes the next code; `None` at the end.
    fn decode(&mut self) -> Option<[u8; 4]> {
        let [red, green, blue, alpha] = self.pixel;
        let (code, rest) = self.codes.split_first()?;
        let (pixel, rest) = match (*code, rest) {
            (0xff, [r, g, b, a, rest @ ..]) => ([*r, *g, *b, *a], rest),
            (0xfe, [r, g, b, rest @ ..]) => ([*r, *g, *b, alpha], rest),
            (0xfe | 0xff, _) => return None,
            (code @ 0xc0.., rest) => {
                self.run = code & 0x3f;
                (self.pixel, rest)
            }
            (code @ 0x80.., [more, rest @ ..]) => {
                let by = (code & 0x3f).wrapping_sub(32);
                let [of_red, of_blue] = [more >> 4, more & 15].map(|it| it.wrapping_sub(8));
                let (red, blue) = (red.wrapping_add(of_red), blue.wrapping_add(of_blue));
                let add = |sample: u8| sample.wrapping_add(by);
                ([add(red), add(green), add(blue), alpha], rest)
            }
            (0x80.., _) => return None,
            (code @ 0x40.., rest) => {
                let difference = |shift: u8| (code >> shift & 3).wrapping_sub(2);
                let red = red.wrapping_add(difference(4));
                let green = green.wrapping_add(difference(2));
                ([red, green, blue.wrapping_add(difference(0)), alpha], rest)
            }
            (code, rest) => (self.seen[usize::from(code & 0x3f)], rest),
        };
        self.codes = rest;
        Some(pixel)
    }
}

impl Iterator for Pixels<'_> {
    type Item = [u8; 4];

    fn next(&mut self) -> Option<[u8; 4]> {
        if self.run > 0 {
            self.run -= 1;
            return Some(self.pixel);
        }
        self.pixel = self.decode()?;
        let [red, green, blue, alpha] = self.pixel.map(u32::from);
        let hash = (red * 3 + green * 5 + blue * 7 + alpha * 11) % 64;
        self.seen[hash as usize] = self.pixel;
        Some(self.pixel)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(sides: [u32; 2], channels: u8, codes: &[u8]) -> Vec<u8> {
        let sides = sides.map(u32::to_be_bytes).concat();
        [b"qoif", &sides[..], &[channels, 0], codes].concat()
    }

    #[test]
    fn qoi_codes_of_every_kind_are_pixels() {
        // RGBA; a run of two; RGB; a small difference; one by green; a pixel seen before.
        let seen = (9_u32 * 3 + 8 * 5 + 7 * 7 + 6 * 11) % 64;
        let codes = [0xff, 9, 8, 7, 6, 0xc1, 0xfe, 1, 2, 255, 0b0111_0011, 0xa2, 0x79, seen as u8];
        let picture = decode(&file([7, 1], 4, &codes), &|| false).unwrap();
        let expected = [
            [9, 8, 7, 6],
            [9, 8, 7, 6],
            [9, 8, 7, 6],
            [1, 2, 255, 6],
            [2, 0, 0, 6],
            [3, 2, 3, 6],
            [9, 8, 7, 6],
        ];
        assert_eq!((picture.layout, picture.samples), (PixelLayout::Rgba, expected.concat()));
        let opaque = decode(&file([2, 1], 3, &codes), &|| false).unwrap();
        assert_eq!((opaque.layout, &*opaque.samples), (PixelLayout::Rgb, &[9, 8, 7, 9, 8, 7][..]));
        for end in 0..codes.len() {
            assert!(decode(&file([7, 1], 4, &codes[..end]), &|| false).is_err(), "{end}");
        }
    }

    #[test]
    fn qoi_header_is_checked_and_decode_is_cancellable() {
        let whole = file([1, 1], 4, &[0xc0]);
        assert_eq!(read_source(&whole).unwrap().sides, (1, 1));
        for end in 0..14 {
            assert!(read_source(&whole[..end]).is_err());
        }
        assert!(read_source(&file([1, 1], 5, &[])).is_err());
        assert_eq!(decode(&whole, &|| true), Err(Error::Cancelled));
        let large = file([u32::MAX, u32::MAX], 4, &[]);
        assert_eq!(decode(&large, &|| false), Err(Error::TooLarge(LimitKind::Memory)));
    }
}
