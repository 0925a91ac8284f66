//! The formats of pictures that are read and written.

/// A format. What a file is says its content, never its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Format {
    /// JPEG.
    Jpeg,
    /// PNG; of an animated one the first picture.
    Png,
    /// WebP, lossy or lossless, still or animated.
    WebP,
    /// AVIF; of a sequence the first picture.
    Avif,
    /// GIF, still or animated.
    Gif,
}

impl Format {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Jpeg, Self::Png, Self::WebP, Self::Avif, Self::Gif];

    /// The format of a file by its first bytes, of which [`HEAD_BYTES`] are enough.
    pub fn of(head: &[u8]) -> Option<Self> {
        match head {
            [0xff, 0xd8, 0xff, ..] => Some(Self::Jpeg),
            [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1a, b'\n', ..] => Some(Self::Png),
            [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => Some(Self::Gif),
            [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Some(Self::WebP),
            _ => is_avif(head).then_some(Self::Avif),
        }
    }

    /// The format of a name as in `format=`, in any case: `jpg`, `jpeg`, `png`, `webp`, `avif`, `gif`.
    pub fn named(name: &str) -> Option<Self> {
        if name.eq_ignore_ascii_case("jpeg") {
            return Some(Self::Jpeg);
        }
        Self::ALL.into_iter().find(|format| name.eq_ignore_ascii_case(format.extension()))
    }

    /// What files in it end in, without a dot; also its name.
    pub fn extension(self) -> &'static str {
        match self {
            Self::Jpeg => "jpg",
            Self::Png => "png",
            Self::WebP => "webp",
            Self::Avif => "avif",
            Self::Gif => "gif",
        }
    }

    /// Its media type.
    pub fn content_type(self) -> &'static str {
        match self {
            Self::Jpeg => "image/jpeg",
            Self::Png => "image/png",
            Self::WebP => "image/webp",
            Self::Avif => "image/avif",
            Self::Gif => "image/gif",
        }
    }

    /// Whether it can hold more than one picture here.
    pub fn is_animatable(self) -> bool {
        matches!(self, Self::Gif | Self::WebP)
    }
}

/// How much of a file [`Format::of`] wants to see.
pub const HEAD_BYTES: usize = 64;

/// Whether the first box is a `ftyp` that names AVIF among its brands (ISO/IEC 14496-12, 4.3; AV1 Image File Format,
/// 6).
#[allow(clippy::big_endian_bytes, reason = "the length of a box is")]
fn is_avif(head: &[u8]) -> bool {
    let Some((length, rest)) = head.split_first_chunk::<4>() else { return false };
    // The highest byte comes first.
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
    fn a_format_is_told_by_content() {
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
            (b"<svg xmlns", None),
            (b"", None),
        ];
        for (head, format) in cases {
            assert_eq!(Format::of(head), *format, "{head:?}");
        }
    }

    #[test]
    fn a_format_is_named_in_any_case() {
        for format in Format::ALL {
            assert_eq!(Format::named(format.extension()), Some(format));
            assert_eq!(Format::named(&format.extension().to_ascii_uppercase()), Some(format));
        }
        assert_eq!(Format::named("jpeg"), Some(Format::Jpeg));
        assert_eq!(Format::named("bmp"), None);
        assert_eq!(Format::named(""), None);
    }
}
