//! Tests of media type detection.

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
    for other in ["image/png", "application/zip", "video/mp4", "text", "+xm", "", "font/woff2"] {
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
