//! Media type detection: from the first bytes, the file name, and the type that the client declared, in this order.
//!
//! Pure. Bytes decide only where they prove something. They prove nothing about text, so HTML, SVG, XML and scripts are
//! never detected by them, and a text that happens to start like an image has the type of its name. Within one
//! container (WebM, Ogg, MP4, ZIP) bytes cannot tell audio from video, so the name decides, then the declared type.
//! Guarantees: the declared type never overrides the bytes. Non-goals: the response headers.

use std::borrow::Cow;

use engine::limits::CONTENT_TYPE_BYTES_MAX;

use crate::file_name::split_extension;

/// Media type of unknown content.
pub const OCTET_STREAM: &str = "application/octet-stream";

/// Treatment of a displayed file by browsers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ActiveContent {
    /// Display or download it.
    None,
    /// Draw it as an image; opened as a document it may run scripts.
    Svg,
    /// Run it as a page: the HTML family.
    Page,
}

/// Detects the media type of a file from its name, its first bytes (a few hundred are enough) and the declared type.
pub fn detect(file_name: &str, head: &[u8], declared: Option<&str>) -> Cow<'static, str> {
    let by_bytes = magic(head);
    let by_name = split_extension(file_name).1.and_then(|it| by_extension(it, head));
    let by_client = declared.and_then(usable);
    if is_text(head) {
        return by_name
            .map(Cow::Borrowed)
            .or(by_client)
            .or(by_bytes.map(Cow::Borrowed))
            .unwrap_or(Cow::Borrowed(OCTET_STREAM));
    }
    match (by_bytes, by_name, by_client) {
        (Some(bytes), Some(name), _) if is_finer(bytes, name) => Cow::Borrowed(name),
        (Some(bytes), None, Some(client)) if is_finer(bytes, essence(&client)) => client,
        (Some(bytes), _, _) => Cow::Borrowed(bytes),
        (None, Some(name), _) => Cow::Borrowed(name),
        (None, None, Some(client)) => client,
        (None, None, None) => Cow::Borrowed(OCTET_STREAM),
    }
}

/// Returns whether the bytes prove an image, audio or video type. They prove nothing about other types and about SVG,
/// and a name alone proves no image.
pub fn matches_magic(content_type: &str, head: &[u8]) -> bool {
    let essence = essence(content_type);
    let family = essence.split('/').next().unwrap_or("");
    let is_media = ["image", "video", "audio"].iter().any(|it| family.eq_ignore_ascii_case(it));
    !is_media || active_content(essence) != ActiveContent::None || magic(head).is_some()
}

/// Returns the usual file extension of a media type, without a dot.
pub fn extension_for(content_type: &str) -> Option<&'static str> {
    let essence = essence(content_type);
    EXTENSIONS.iter().find(|(known, _)| known.eq_ignore_ascii_case(essence)).map(|(_, ext)| *ext)
}

/// Returns what a browser does with a file of this type.
pub fn active_content(content_type: &str) -> ActiveContent {
    let essence = essence(content_type).as_bytes();
    let is = |other: &&str| essence.eq_ignore_ascii_case(other.as_bytes());
    let ends_like_xml =
        essence.last_chunk::<4>().is_some_and(|it| it.eq_ignore_ascii_case(b"+xml"));
    let is_multipart =
        essence.first_chunk::<10>().is_some_and(|it| it.eq_ignore_ascii_case(b"multipart/"));
    if is(&"image/svg+xml") {
        ActiveContent::Svg
    } else if ends_like_xml || is_multipart || PAGES.iter().any(is) {
        ActiveContent::Page
    } else {
        ActiveContent::None
    }
}

/// Returns whether files of this type are text, or shrink as text does.
pub fn is_compressible(content_type: &str) -> bool {
    // Checked for each delivery: the most frequent of the other types is found without parsing.
    if content_type == OCTET_STREAM {
        return false;
    }
    let essence = essence(content_type).as_bytes();
    let ends_with = |suffix: &[u8]| {
        let start = essence.len().checked_sub(suffix.len());
        start.and_then(|at| essence.get(at..)).is_some_and(|it| it.eq_ignore_ascii_case(suffix))
    };
    essence.first_chunk::<5>().is_some_and(|it| it.eq_ignore_ascii_case(b"text/"))
        || ends_with(b"+json")
        || ends_with(b"+xml")
        || COMPRESSIBLE.iter().any(|other| essence.eq_ignore_ascii_case(other.as_bytes()))
}

/// Compressible types that neither start with `text/` nor have a suffix.
const COMPRESSIBLE: &[&str] = &[
    "application/json",
    "application/javascript",
    "application/x-javascript",
    "application/ecmascript",
    "application/wasm",
    "application/xml",
    "application/xml-dtd",
    "application/x-ndjson",
    "application/yaml",
    "application/toml",
    "application/sql",
    "application/x-sql",
    "application/x-sh",
];

/// HTML family, except for types that end in `+xml` or start with `multipart/`.
const PAGES: &[&str] = &[
    "text/html",
    "text/xml",
    "text/xsl",
    "text/cache-manifest",
    "text/x-component",
    "text/vnd.wap.wml",
    "application/xml",
    "application/hta",
    "application/x-mimearchive",
    "message/rfc822",
];

/// Returns a media type without its parameters.
pub fn essence(content_type: &str) -> &str {
    content_type.split(';').next().unwrap_or("").trim()
}

/// Bytes within which every format but ZIP has its magic number: that of tar ends here.
const MAGIC_BYTES_MAX: usize = 262;

/// Detects the type that the bytes prove; never a text type.
fn magic(head: &[u8]) -> Option<&'static str> {
    if let Some(matroska) = head.strip_prefix(b"\x1a\x45\xdf\xa3") {
        // `infer` needs 257 bytes and supports one encoding of the length; short recordings have less.
        let start = matroska.get(..64).unwrap_or(matroska);
        let says = |word: &[u8]| start.windows(word.len()).any(|window| window == word);
        return match (says(b"webm"), says(b"matroska")) {
            (true, _) => Some("video/webm"),
            (_, true) => Some("video/x-matroska"),
            _ => None,
        };
    }
    let is_zip = head.starts_with(b"PK");
    let examined = if is_zip { head } else { head.get(..MAGIC_BYTES_MAX).unwrap_or(head) };
    let found = infer::get(examined)?;
    match found.matcher_type() {
        infer::MatcherType::Text => None,
        // `infer` finds this header anywhere in the first kilobyte, where other formats may contain it.
        _ if found.extension() == "pdf" && !head.starts_with(b"%PDF") => None,
        _ => registered(found.mime_type(), found.extension()),
    }
}

/// Returns the registered name of a type that `infer` detected; `None` where it examined only two bytes.
fn registered(infer_name: &'static str, extension: &str) -> Option<&'static str> {
    Some(match (infer_name, extension) {
        ("application/x-llvm", _) => return None,
        // RFC 8081 section 4.4.
        ("application/font-woff", "woff2") => "font/woff2",
        ("application/font-woff", _) => "font/woff",
        ("application/font-sfnt", "otf") => "font/otf",
        ("application/font-sfnt", _) => "font/ttf",
        ("application/octet-stream", "eot") => "application/vnd.ms-fontobject",
        ("audio/x-flac", _) => "audio/flac",
        ("audio/x-wav", _) => "audio/wav",
        ("audio/m4a", _) => "audio/mp4",
        ("audio/opus", _) => "audio/ogg",
        ("audio/x-aiff", _) => "audio/aiff",
        ("video/x-m4v", _) => "video/mp4",
        (other, _) => other,
    })
}

fn by_extension(extension: &str, head: &[u8]) -> Option<&'static str> {
    Some(match extension.to_ascii_lowercase().as_str() {
        "m4a" => "audio/mp4",
        "m4v" => "video/mp4",
        "opus" => "audio/ogg",
        // `mime_guess` 2.0 has the names from before RFC 8081, or none.
        "woff" => "font/woff",
        "otf" => "font/otf",
        "psd" => "image/vnd.adobe.photoshop",
        "rpm" => "application/x-rpm",
        "mjs" | "cjs" => "text/javascript",
        // Transport streams are binary, TypeScript is not.
        "ts" | "mts" if is_text(head) => "text/plain",
        "ts" | "mts" => "video/mp2t",
        _ => mime_guess::from_ext(extension).first_raw()?,
    })
}

/// Returns the declared type, if it is valid and specific.
fn usable(declared: &str) -> Option<Cow<'static, str>> {
    let declared = declared.trim();
    let (kind, name) = essence(declared).split_once('/')?;
    let is_token = |text: &str| {
        !text.is_empty()
            && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"!#$&^_.+-".contains(&b))
    };
    let is_plain = declared.bytes().all(|byte| (0x20..0x7f).contains(&byte));
    let says_something = !essence(declared).eq_ignore_ascii_case(OCTET_STREAM)
        && !essence(declared).eq_ignore_ascii_case("binary/octet-stream");
    let fits = declared.len() <= CONTENT_TYPE_BYTES_MAX;
    if !(is_token(kind) && is_token(name) && is_plain && says_something && fits) {
        return None;
    }
    Some(Cow::Owned(declared.to_owned()))
}

/// Returns whether the second type is a more specific name for what the bytes of the first prove.
fn is_finer(by_bytes: &str, other: &str) -> bool {
    if active_content(other) != ActiveContent::None {
        return false;
    }
    if by_bytes == "application/zip" {
        // Office documents, e-books and packages are all ZIP files.
        return other.starts_with("application/") && other != OCTET_STREAM;
    }
    CONTAINERS.iter().any(|family| family.contains(&by_bytes) && family.contains(&other))
}

const CONTAINERS: &[&[&str]] = &[
    &["video/webm", "audio/webm", "video/x-matroska", "audio/x-matroska"],
    &["audio/ogg", "video/ogg", "application/ogg", "audio/opus"],
    &["video/mp4", "audio/mp4", "video/quicktime", "video/3gpp", "audio/3gpp"],
    &["image/heif", "image/heic", "image/heif-sequence", "image/heic-sequence"],
    &["image/png", "image/apng"],
    &["audio/mpeg", "audio/mp3"],
];

/// Returns whether the bytes are text as far as they go: UTF-8, possibly cut within a character, without control
/// characters.
fn is_text(head: &[u8]) -> bool {
    let text = match std::str::from_utf8(head) {
        Ok(text) => text,
        Err(cut) if cut.error_len().is_none() => {
            std::str::from_utf8(head.get(..cut.valid_up_to()).unwrap_or(&[])).unwrap_or("\0")
        }
        Err(_) => return false,
    };
    text.chars().all(|c| !c.is_control() || matches!(c, '\t' | '\n' | '\r' | '\u{c}' | '\u{1b}'))
}

/// Extensions of commonly uploaded types, the usual one first.
const EXTENSIONS: &[(&str, &str)] = &[
    ("image/png", "png"),
    ("image/jpeg", "jpg"),
    ("image/jpg", "jpg"),
    ("image/webp", "webp"),
    ("image/gif", "gif"),
    ("image/avif", "avif"),
    ("image/apng", "png"),
    ("image/svg+xml", "svg"),
    ("image/bmp", "bmp"),
    ("image/tiff", "tiff"),
    ("image/heic", "heic"),
    ("image/heif", "heif"),
    ("image/jxl", "jxl"),
    ("image/x-icon", "ico"),
    ("image/vnd.microsoft.icon", "ico"),
    ("video/webm", "webm"),
    ("video/mp4", "mp4"),
    ("video/quicktime", "mov"),
    ("video/x-matroska", "mkv"),
    ("video/ogg", "ogv"),
    ("video/mpeg", "mpeg"),
    ("video/x-msvideo", "avi"),
    ("video/mp2t", "ts"),
    ("audio/webm", "weba"),
    ("audio/ogg", "ogg"),
    ("audio/opus", "opus"),
    ("audio/mpeg", "mp3"),
    ("audio/mp3", "mp3"),
    ("audio/mp4", "m4a"),
    ("audio/aac", "aac"),
    ("audio/wav", "wav"),
    ("audio/x-wav", "wav"),
    ("audio/flac", "flac"),
    ("audio/midi", "mid"),
    ("application/pdf", "pdf"),
    ("application/json", "json"),
    ("application/zip", "zip"),
    ("application/gzip", "gz"),
    ("application/x-7z-compressed", "7z"),
    ("application/vnd.rar", "rar"),
    ("application/x-tar", "tar"),
    ("application/wasm", "wasm"),
    ("application/xml", "xml"),
    ("text/xml", "xml"),
    ("text/plain", "txt"),
    ("text/html", "html"),
    ("text/css", "css"),
    ("text/csv", "csv"),
    ("text/markdown", "md"),
    ("text/javascript", "js"),
    ("application/javascript", "js"),
    ("font/woff2", "woff2"),
    ("font/woff", "woff"),
    ("font/ttf", "ttf"),
    ("font/otf", "otf"),
];

#[cfg(test)]
mod tests {
    use super::*;

    /// Media types of `infer` 0.22, each with its extension.
    const INFERRED: &[(&str, &str)] = &[
        ("application/wasm", "wasm"),
        ("application/x-executable", "elf"),
        ("application/vnd.microsoft.portable-executable", "exe"),
        ("application/vnd.microsoft.portable-executable", "dll"),
        ("application/java", "class"),
        ("application/x-llvm", "bc"),
        ("application/x-mach-binary", "mach"),
        ("application/vnd.android.dex", "dex"),
        ("application/vnd.android.dey", "dey"),
        ("application/x-x509-ca-cert", "der"),
        ("application/x-executable", "obj"),
        ("application/x-x509-ca-cert", "pem"),
        ("application/x-qemu-disk", "qcow2"),
        ("application/epub+zip", "epub"),
        ("application/x-mobipocket-ebook", "mobi"),
        ("image/jpeg", "jpg"),
        ("image/jp2", "jp2"),
        ("image/png", "png"),
        ("image/gif", "gif"),
        ("image/webp", "webp"),
        ("image/x-canon-cr2", "cr2"),
        ("image/tiff", "tif"),
        ("image/bmp", "bmp"),
        ("image/vnd.ms-photo", "jxr"),
        ("image/vnd.adobe.photoshop", "psd"),
        ("image/vnd.microsoft.icon", "ico"),
        ("image/heif", "heif"),
        ("image/avif", "avif"),
        ("image/jxl", "jxl"),
        ("image/openraster", "ora"),
        ("image/vnd.djvu", "djvu"),
        ("image/vnd.dwg", "dwg"),
        ("video/mp4", "mp4"),
        ("video/x-m4v", "m4v"),
        ("video/x-matroska", "mkv"),
        ("video/webm", "webm"),
        ("video/quicktime", "mov"),
        ("video/x-msvideo", "avi"),
        ("video/x-ms-wmv", "wmv"),
        ("video/mpeg", "mpg"),
        ("video/x-flv", "flv"),
        ("audio/midi", "midi"),
        ("audio/mpeg", "mp3"),
        ("audio/m4a", "m4a"),
        ("audio/opus", "opus"),
        ("audio/ogg", "ogg"),
        ("audio/x-flac", "flac"),
        ("audio/x-wav", "wav"),
        ("audio/amr", "amr"),
        ("audio/aac", "aac"),
        ("audio/x-aiff", "aiff"),
        ("audio/x-dsf", "dsf"),
        ("audio/x-ape", "ape"),
        ("application/font-woff", "woff"),
        ("application/font-woff", "woff2"),
        ("application/font-sfnt", "ttf"),
        ("application/font-sfnt", "otf"),
        ("application/msword", "doc"),
        ("application/vnd.openxmlformats-officedocument.wordprocessingml.document", "docx"),
        ("application/vnd.ms-excel", "xls"),
        ("application/vnd.openxmlformats-officedocument.spreadsheetml.sheet", "xlsx"),
        ("application/vnd.ms-powerpoint", "ppt"),
        ("application/vnd.openxmlformats-officedocument.presentationml.presentation", "pptx"),
        ("application/vnd.oasis.opendocument.text", "odt"),
        ("application/vnd.oasis.opendocument.spreadsheet", "ods"),
        ("application/vnd.oasis.opendocument.presentation", "odp"),
        ("application/epub+zip", "epub"),
        ("application/zip", "zip"),
        ("application/x-tar", "tar"),
        ("application/x-par2", "par2"),
        ("application/vnd.rar", "rar"),
        ("application/gzip", "gz"),
        ("application/x-bzip2", "bz2"),
        ("application/vnd.bzip3", "bz3"),
        ("application/x-7z-compressed", "7z"),
        ("application/x-xz", "xz"),
        ("application/pdf", "pdf"),
        ("application/x-shockwave-flash", "swf"),
        ("application/rtf", "rtf"),
        ("application/octet-stream", "eot"),
        ("application/postscript", "ps"),
        ("application/vnd.sqlite3", "sqlite"),
        ("application/x-nintendo-nes-rom", "nes"),
        ("application/x-google-chrome-extension", "crx"),
        ("application/vnd.ms-cab-compressed", "cab"),
        ("application/vnd.debian.binary-package", "deb"),
        ("application/x-unix-archive", "ar"),
        ("application/x-compress", "Z"),
        ("application/x-lzip", "lz"),
        ("application/x-rpm", "rpm"),
        ("application/dicom", "dcm"),
        ("application/zstd", "zst"),
        ("application/x-lz4", "lz4"),
        ("application/x-ole-storage", "msi"),
        ("application/x-cpio", "cpio"),
    ];

    /// Extensions whose detected type differs from the table's, which is more general or less common.
    const DIFFERING: &[(&str, &str, &str)] = &[
        ("exe", "application/vnd.microsoft.portable-executable", OCTET_STREAM),
        ("dll", "application/vnd.microsoft.portable-executable", "application/x-msdownload"),
        ("class", "application/java", "application/x-java-applet"),
        ("obj", "application/x-executable", "application/x-tgif"),
        ("ico", "image/vnd.microsoft.icon", "image/x-icon"),
        ("dwg", "image/vnd.dwg", "application/acad"),
        ("midi", "audio/midi", "audio/mid"),
        ("rar", "application/vnd.rar", "application/x-rar-compressed"),
        ("crx", "application/x-google-chrome-extension", "application/x-chrome-extension"),
        ("cab", "application/vnd.ms-cab-compressed", OCTET_STREAM),
        ("deb", "application/vnd.debian.binary-package", OCTET_STREAM),
        ("msi", "application/x-ole-storage", OCTET_STREAM),
    ];

    #[test]
    fn sniffed_types_agree_with_extensions() {
        let mut differing = Vec::new();
        for (infer_name, extension) in INFERRED.iter().copied() {
            assert!(infer::is_supported(extension), "{extension}");
            let Some(sniffed) = registered(infer_name, extension) else { continue };
            let Some(named) = by_extension(extension, &[0]) else { continue };
            if sniffed != named && !is_finer(sniffed, named) {
                differing.push((extension, sniffed, named));
            }
        }
        assert_eq!(differing, DIFFERING);
    }

    #[test]
    fn image_type_requires_magic_bytes() {
        for (kind, head, is) in [
            ("image/png", PNG, true),
            ("image/png", HTML, false),
            ("IMAGE/PNG; a=b", b"", false),
            ("image/svg+xml", SVG, true),
            ("video/webm", WEBM, true),
            ("text/plain", HTML, true),
            ("application/octet-stream", b"\0\x01", true),
        ] {
            assert_eq!(matches_magic(kind, head), is, "{kind}");
        }
    }

    const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR";
    const WEBP: &[u8] = b"RIFF\x24\0\0\0WEBPVP8 \x18\0\0\0";
    const WEBM: &[u8] = b"\x1a\x45\xdf\xa3\x9f\x42\x86\x81\x01\x42\xf7\x81\x01\x42\xf2\x81\x04\x42\xf3\x81\x08\x42\x82\x84webm";
    const OGG_OPUS: &[u8] =
        b"OggS\0\x02\0\0\0\0\0\0\0\0\x01\x02\x03\x04\0\0\0\0\x05\x06\x07\x08\x01\x13OpusHead\x01";
    const OGG: &[u8] =
        b"OggS\0\x02\0\0\0\0\0\0\0\0\x01\x02\x03\x04\0\0\0\0\x05\x06\x07\x08\x01\x1e\x01vorbis";
    const MP4: &[u8] = b"\0\0\0\x18ftypisom\0\0\0\0isomiso2";
    const AVIF: &[u8] = b"\0\0\0\x1cftypavif\0\0\0\0avifmif1miaf";
    const ZIP: &[u8] = b"PK\x03\x04\x14\0\0\0\x08\0\0\0\0\0";
    const HTML: &[u8] = b"<!DOCTYPE html><html><script>alert(1)</script>";
    const SVG: &[u8] = b"<svg xmlns=\"http://www.w3.org/2000/svg\"></svg>";

    #[test]
    fn content_type_prefers_bytes_then_name_then_declared() {
        let cases: &[(&str, &[u8], Option<&str>, &str)] = &[
            ("a.png", PNG, Some("image/png"), "image/png"),
            ("a.html", PNG, Some("text/html"), "image/png"),
            ("a.svg", PNG, Some("image/svg+xml"), "image/png"),
            ("a.txt", WEBP, Some("text/plain"), "image/webp"),
            ("blob", WEBP, Some("image/png"), "image/webp"),
            ("blob", WEBP, None, "image/webp"),
            ("a.avif", AVIF, Some(OCTET_STREAM), "image/avif"),
            ("a.avif", b"\0\x01\x02", Some(OCTET_STREAM), "image/avif"),
            ("a.bin", b"\0\x01\x02", None, OCTET_STREAM),
            ("a", b"\0\x01\x02", Some("x-game/save"), "x-game/save"),
            ("a", b"\0\x01\x02", None, OCTET_STREAM),
            ("", b"", None, OCTET_STREAM),
        ];
        for (name, head, declared, want) in cases {
            assert_eq!(detect(name, head, *declared), *want, "{name} {declared:?}");
        }
    }

    #[test]
    fn ambiguous_containers_use_name_then_declared_type() {
        let cases: &[(&str, &[u8], Option<&str>, &str)] = &[
            ("a.webm", WEBM, None, "video/webm"),
            ("a.weba", WEBM, None, "audio/webm"),
            ("blob", WEBM, Some("audio/webm;codecs=opus"), "audio/webm;codecs=opus"),
            ("blob", WEBM, Some("video/webm;codecs=vp8,opus"), "video/webm;codecs=vp8,opus"),
            ("blob", WEBM, Some("text/html"), "video/webm"),
            ("a.ogg", OGG, None, "audio/ogg"),
            ("a.ogv", OGG, None, "video/ogg"),
            ("a.opus", OGG_OPUS, None, "audio/ogg"),
            ("recording-1.ogg", OGG_OPUS, Some("audio/ogg"), "audio/ogg"),
            ("a.mp4", MP4, None, "video/mp4"),
            ("a.m4a", MP4, None, "audio/mp4"),
            ("a.zip", ZIP, None, "application/zip"),
            ("a.epub", ZIP, None, "application/epub+zip"),
            ("a.xhtml", ZIP, None, "application/zip"),
        ];
        for (name, head, declared, want) in cases {
            assert_eq!(detect(name, head, *declared), *want, "{name} {declared:?}");
        }
    }

    #[test]
    fn text_types_are_detected_by_extension_only() {
        let cases: &[(&str, &[u8], Option<&str>, &str)] = &[
            ("a.svg", SVG, None, "image/svg+xml"),
            ("blob", SVG, Some("image/svg+xml"), "image/svg+xml"),
            ("blob", SVG, None, OCTET_STREAM),
            ("a.png", HTML, Some("text/html"), "image/png"),
            ("blob", HTML, None, OCTET_STREAM),
            ("blob", HTML, Some(OCTET_STREAM), OCTET_STREAM),
            ("a.html", HTML, None, "text/html"),
            ("a.json", b"{\"a\":1}", None, "application/json"),
            ("a.txt", b"BMW and MZ and GIF89a", None, "text/plain"),
            ("cars.txt", "BMW für alle".as_bytes(), None, "text/plain"),
            ("a.lua", b"#!/usr/bin/lua\n", None, "text/x-lua"),
            ("a.ts", b"export const a = 1", None, "text/plain"),
            ("a.mjs", b"export default 1", None, "text/javascript"),
            ("a.pdf", b"%PDF-1.7\n", None, "application/pdf"),
            ("blob", b"%PDF-1.7\n", None, "application/pdf"),
            ("a.bin", b"\0\x01 the header is %PDF-1.7\0", None, "application/octet-stream"),
            ("a.pdf", b"\0\x01 junk before %PDF-1.7\0", None, "application/pdf"),
            ("README", b"hello", Some("text/plain"), "text/plain"),
        ];
        for (name, head, declared, want) in cases {
            assert_eq!(detect(name, head, *declared), *want, "{name} {declared:?}");
        }
    }

    #[test]
    fn invalid_declared_type_is_dropped() {
        let long = format!("a/{}", "b".repeat(300));
        for odd in ["", "png", "image/", "/png", "a b/c", "a/b\r\nX: y", "a/\u{e4}", &*long] {
            assert_eq!(detect("x", b"\0\x01", Some(odd)), OCTET_STREAM, "{odd:?}");
        }
    }

    #[test]
    fn extension_matches_what_phones_expect() {
        for (content_type, extension) in [
            ("image/webp", Some("webp")),
            ("video/webm;codecs=vp8,opus", Some("webm")),
            ("audio/webm; codecs=opus", Some("weba")),
            ("IMAGE/JPEG", Some("jpg")),
            (OCTET_STREAM, None),
        ] {
            assert_eq!(extension_for(content_type), extension, "{content_type}");
        }
    }

    #[test]
    fn compressible_types_are_text_like() {
        for text in [
            "text/plain",
            "TEXT/css; charset=utf-8",
            "image/svg+xml",
            "application/json;x=y",
            "application/geo+JSON",
            "application/wasm",
            "application/javascript",
        ] {
            assert!(is_compressible(text), "{text}");
        }
        for other in ["image/png", "application/zip", "video/mp4", "text", "+xm", "", "font/woff2"]
        {
            assert!(!is_compressible(other), "{other}");
        }
    }

    #[test]
    fn html_is_detected_despite_parameters() {
        for page in [
            "text/html",
            "text/html; charset=utf-8",
            "TEXT/HTML",
            "application/xhtml+xml",
            "text/xml",
            "application/xml",
            "application/rss+xml",
            "message/rfc822",
            "multipart/related",
            "text/xsl",
        ] {
            assert_eq!(active_content(page), ActiveContent::Page, "{page}");
        }
        assert_eq!(active_content("image/svg+xml; charset=utf-8"), ActiveContent::Svg);
        for inert in ["image/png", "text/plain", "application/json", "application/pdf", ""] {
            assert_eq!(active_content(inert), ActiveContent::None, "{inert}");
        }
    }
}
