//! Media type detection: from the first bytes, the file name, and the type that the client declared, in this order.
//!
//! Pure. Bytes decide only where they prove something. They prove nothing about text, so HTML, SVG, XML and scripts are
//! never detected by them, and a text that happens to start like an image has the type of its name. Within one
//! container (WebM, Ogg, MP4, ZIP) bytes cannot tell audio from video, so the name decides, then the declared type.
//! Guarantees: the declared type never overrides the bytes. Non-goals: the response headers.

#[cfg(test)]
mod tests;

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
