//! Image formats that are decoded and encoded.

/// Image format, detected from content, never from a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Format {
    /// JPEG.
    Jpeg,
    /// PNG; of an animation the default image.
    Png,
    /// WebP, lossy or lossless, still or animated.
    WebP,
    /// AVIF; of a sequence the primary still image.
    Avif,
    /// GIF, still or animated.
    Gif,
    /// BMP, decoded only.
    Bmp,
    /// Windows icon, of which the largest picture is decoded; decoded only.
    Ico,
    /// PBM, PGM, PPM or PAM, decoded only.
    Pnm,
    /// QOI, decoded only.
    Qoi,
}

impl Format {
    /// Formats that can be encoded.
    pub const WRITTEN: [Self; 5] = [Self::Jpeg, Self::Png, Self::WebP, Self::Avif, Self::Gif];

    /// Detects the format of a file from its first bytes, of which [`HEAD_BYTES`] are sufficient.
    pub fn detect(head: &[u8]) -> Option<Self> {
        match head {
            [0xff, 0xd8, 0xff, ..] => Some(Self::Jpeg),
            [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1a, b'\n', ..] => Some(Self::Png),
            [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => Some(Self::Gif),
            [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Some(Self::WebP),
            [b'q', b'o', b'i', b'f', ..] => Some(Self::Qoi),
            _ if is_bmp(head) => Some(Self::Bmp),
            _ if is_icon(head) => Some(Self::Ico),
            _ if is_pnm(head) => Some(Self::Pnm),
            _ => is_avif(head).then_some(Self::Avif),
        }
    }

    /// Returns the output format of a name in `format=`, case-insensitive: `jpg`, `jpeg`, `png`, `webp`, `avif`,
    /// `gif`.
    pub fn from_name(name: &str) -> Option<Self> {
        if name.eq_ignore_ascii_case("jpeg") {
            return Some(Self::Jpeg);
        }
        Self::WRITTEN.into_iter().find(|format| name.eq_ignore_ascii_case(format.extension()))
    }

    /// Returns the file extension without a dot, which is also the name.
    pub fn extension(self) -> &'static str {
        match self {
            Self::Jpeg => "jpg",
            Self::Png => "png",
            Self::WebP => "webp",
            Self::Avif => "avif",
            Self::Gif => "gif",
            Self::Bmp => "bmp",
            Self::Ico => "ico",
            Self::Pnm => "pnm",
            Self::Qoi => "qoi",
        }
    }

    /// Returns the content type.
    pub fn content_type(self) -> &'static str {
        match self {
            Self::Jpeg => "image/jpeg",
            Self::Png => "image/png",
            Self::WebP => "image/webp",
            Self::Avif => "image/avif",
            Self::Gif => "image/gif",
            Self::Bmp => "image/bmp",
            Self::Ico => "image/x-icon",
            Self::Pnm => "image/x-portable-anymap",
            Self::Qoi => "image/qoi",
        }
    }

    /// Returns the output format if the stored one is retained: lossless PNG if the stored one cannot be encoded.
    pub fn retained_output(self) -> Self {
        if Self::WRITTEN.contains(&self) { self } else { Self::Png }
    }

    /// Returns whether the format can be animated here.
    pub fn supports_animation(self) -> bool {
        matches!(self, Self::Gif | Self::WebP)
    }
}

/// Number of bytes that [`Format::detect`] needs.
pub const HEAD_BYTES: usize = 64;

/// Returns whether the file header is followed by a header of a known length.
fn is_bmp(head: &[u8]) -> bool {
    let length = head.strip_prefix(b"BM").and_then(|rest| rest.get(12..)?.first_chunk());
    length.is_some_and(|length| {
        matches!(u32::from_le_bytes(*length), 12 | 16 | 40 | 52 | 56 | 64 | 108 | 124)
    })
}

/// Returns whether it is an icon (not a cursor) whose first entry has a zero reserved byte, at most one plane, and
/// data.
fn is_icon(head: &[u8]) -> bool {
    match head {
        [0, 0, 1, 0, low, high, _, _, _, 0 | 255, planes, 0, _, 0, rest @ ..] => {
            let numbers = rest.as_chunks::<4>().0.iter().map(|bytes| u32::from_le_bytes(*bytes));
            let numbers: Vec<u32> = numbers.take(2).collect();
            let count = u32::from(u16::from_le_bytes([*low, *high]));
            let is_behind = numbers.get(1).is_some_and(|offset| *offset >= 6 + 16 * count);
            count > 0 && *planes <= 1 && is_behind && numbers.first().is_some_and(|it| *it > 0)
        }
        _ => false,
    }
}

/// Returns whether the magic is followed by a number or a comment, as in the netpbm formats; PAM has a line break.
fn is_pnm(head: &[u8]) -> bool {
    match head {
        [b'P', b'1'..=b'6', space, rest @ ..] if space.is_ascii_whitespace() => {
            let next = rest.iter().find(|byte| !byte.is_ascii_whitespace());
            next.is_some_and(|byte| *byte == b'#' || byte.is_ascii_digit())
        }
        _ => head.starts_with(b"P7\nWIDTH ") || head.starts_with(b"P7\n#"),
    }
}

/// Returns whether the first box is a `ftyp` with an AVIF brand (ISO/IEC 14496-12, 4.3; AV1 Image File Format, 6).
#[allow(clippy::big_endian_bytes, reason = "the length of a box is")]
fn is_avif(head: &[u8]) -> bool {
    let Some((length, rest)) = head.split_first_chunk::<4>() else { return false };
    // Big-endian length.
    let length = length.iter().fold(0, |length: usize, byte| length << 8 | usize::from(*byte));
    let Some(brands) = rest.strip_prefix(b"ftyp") else { return false };
    let brands = brands.get(..length.saturating_sub(8)).unwrap_or(brands);
    // The second word is a version.
    let mut words = brands.as_chunks::<4>().0.iter().enumerate().filter(|(at, _)| *at != 1);
    words.any(|(_, brand)| matches!(brand, b"avif" | b"avis"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn format_is_detected_from_magic_bytes() {
        let cases: &[(&[u8], Option<Format>)] = &[
            (b"\xff\xd8\xff\xe0", Some(Format::Jpeg)),
            (b"\xff\xd8\xfe", None),
            (b"\x89PNG\r\n\x1a\n", Some(Format::Png)),
            (b"\x89PNG\r\n", None),
            (b"GIF87a", Some(Format::Gif)),
            (b"GIF89a", Some(Format::Gif)),
            (b"GIF88a", None),
            (b"RIFF\0\0\0\0WEBPVP8X", Some(Format::WebP)),
            (b"RIFF\0\0\0\0WAVE", None),
            (b"\0\0\0\x18ftypavif\0\0\0\0mif1avif", Some(Format::Avif)),
            (b"\0\0\0\x18ftypmif1\0\0\0\0mif1avif", Some(Format::Avif)),
            (b"\0\0\0\x18ftypavis\0\0\0\0mif1avis", Some(Format::Avif)),
            (b"\0\0\0\x14ftypmif1\0\0\0\0mif1avif", None),
            (b"\0\0\0\x18ftypheic\0\0\0\0mif1heic", None),
            (b"\0\0\0\x18ftypisomavifisommp42", None),
            (b"\0\0\0\x18ftyp", None),
            (b"qoif\0\0", Some(Format::Qoi)),
            (b"II*\0\x08\0\0\0", None),
            (b"BM\x46\0\0\0\0\0\0\0\x36\0\0\0\x28\0\0\0", Some(Format::Bmp)),
            (b"BMW is a maker of cars", None),
            (b"\0\0\x01\0\x01\0\x10\x10\0\0\x01\0\x20\0\x68\x04\0\0\x16\0\0\0", Some(Format::Ico)),
            (b"\0\0\x01\0\x01\0\x10\x10\0\0\x01\0\x20\0\x68\x04\0\0\x15\0\0\0", None),
            (b"\0\0\x01\xba\x44\0\x04\0\x04\x01", None),
            (b"P6 3 2 255\n", Some(Format::Pnm)),
            (b"P5\n# made by hand\n3 2", Some(Format::Pnm)),
            (b"P7\nWIDTH 3\n", Some(Format::Pnm)),
            (b"P4 processors", None),
            (b"P8 1 1", None),
            (b"<svg xmlns", None),
            (b"", None),
        ];
        for (head, format) in cases {
            assert_eq!(Format::detect(head), *format, "{head:?}");
        }
    }

    #[test]
    fn format_name_is_case_insensitive() {
        for format in Format::WRITTEN {
            assert_eq!(Format::from_name(format.extension()), Some(format));
            assert_eq!(Format::from_name(&format.extension().to_ascii_uppercase()), Some(format));
        }
        assert_eq!(Format::from_name("jpeg"), Some(Format::Jpeg));
        assert_eq!(Format::from_name("bmp"), None);
        assert_eq!(Format::from_name(""), None);
    }
}
