//! Head of one part of a form: its field name, file name and media type.
//!
//! Pure. Clients encode file names in four ways (raw UTF-8, Latin-1, `%22` and similar, RFC 8187), so the header is
//! parsed here and not by the form parser. Guarantees: any bytes yield a head. Non-goals: sanitizing names.

use std::borrow::Cow;

use percent_encoding::percent_decode_str;

use crate::content_type::essence;
use crate::limits::FORM_BOUNDARY_BYTES_MAX;

/// Head of a part.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PartHead {
    /// Name of the field.
    pub field_name: Option<String>,
    /// File name; empty where a page's form had no file selected.
    pub file_name: Option<String>,
    /// Declared media type, verbatim.
    pub declared_type: Option<String>,
}

impl PartHead {
    /// Parses the values of `Content-Disposition` and `Content-Type`.
    pub fn read(disposition: Option<&[u8]>, content_type: Option<&[u8]>) -> Self {
        let disposition = disposition.map(text_of).unwrap_or_default();
        let [mut field_name, mut plain, mut extended] = [None, None, None];
        for (name, value) in parameters(&disposition) {
            let first = match &*name.to_ascii_lowercase() {
                "name" => &mut field_name,
                "filename" => &mut plain,
                "filename*" => &mut extended,
                _ => continue,
            };
            first.get_or_insert(value);
        }
        let extended = extended.and_then(|name| decode_extended(&unquote(name)));
        let declared_type = content_type.map(|value| text_of(value).trim().to_owned());
        let unescaped = |name: &str| unescape(&unquote(name));
        Self {
            field_name: field_name.map(unescaped),
            file_name: extended.or(plain.map(unescaped)),
            declared_type: declared_type.filter(|value| !value.is_empty()),
        }
    }

    /// Returns whether the part is a file: it has a file name, or a media type other than that of a text field.
    pub fn is_file(&self) -> bool {
        let is_text = |kind: &str| {
            let kind = kind.to_ascii_lowercase();
            kind.starts_with("text/")
                || kind == "application/json"
                || kind == "application/x-www-form-urlencoded"
        };
        let kind = self.declared_type.as_deref().map(essence);
        self.file_name.is_some() || kind.is_some_and(|kind| !is_text(kind))
    }
}

/// Returns the boundary of a request's `Content-Type`, if it is valid.
pub(super) fn parse_boundary(content_type: &str) -> Option<String> {
    let (_, value) =
        parameters(content_type).find(|(name, _)| name.eq_ignore_ascii_case("boundary"))?;
    let boundary = unquote(value);
    let is_possible = (1..=FORM_BOUNDARY_BYTES_MAX).contains(&boundary.len())
        && boundary.bytes().all(|byte| (0x20..0x7f).contains(&byte));
    is_possible.then(|| boundary.into_owned())
}

/// Decodes UTF-8 if valid, else Latin-1.
fn text_of(bytes: &[u8]) -> String {
    match std::str::from_utf8(bytes) {
        Ok(text) => text.to_owned(),
        Err(_) => bytes.iter().map(|byte| char::from(*byte)).collect(),
    }
}

/// Returns names and values of the parameters of a header, values with their quotes.
fn parameters(header: &str) -> impl Iterator<Item = (&str, &str)> {
    let mut rest = header.split_once(';').map_or("", |(_, rest)| rest);
    std::iter::from_fn(move || {
        let (name, after) = rest.trim_start_matches([' ', '\t', ';']).split_once('=')?;
        let after = after.trim_start();
        let (value, tail) = match after.strip_prefix('"') {
            Some(quoted) => after.split_at(closing_quote(quoted).map_or(after.len(), |at| at + 2)),
            None => after.split_at(after.find(';').unwrap_or(after.len())),
        };
        rest = tail;
        // A preceding parameter without a value is part of what was parsed as the name.
        Some((name.rsplit(';').next().unwrap_or(name).trim(), value))
    })
}

/// Returns the position of the quote that ends a quoted value. Only `\"` is an escape: old browsers send paths with
/// backslashes.
fn closing_quote(quoted: &str) -> Option<usize> {
    let is_escaped = |at: usize| quoted.as_bytes().get(at.wrapping_sub(1)) == Some(&b'\\');
    quoted.match_indices('"').map(|(at, _)| at).find(|at| !is_escaped(*at))
}

/// Returns a value without its quotes and escapes.
fn unquote(value: &str) -> Cow<'_, str> {
    match value.strip_prefix('"') {
        Some(quoted) => {
            let text = closing_quote(quoted).and_then(|end| quoted.get(..end)).unwrap_or(quoted);
            if text.contains('\\') { text.replace("\\\"", "\"").into() } else { text.into() }
        }
        None => value.trim_end().into(),
    }
}

/// Undoes only the escapes that browsers use in names: `100%25.png` is a literal name.
fn unescape(name: &str) -> String {
    if !name.contains('%') {
        return name.to_owned();
    }
    let name = name.replace("%22", "\"").replace("%0D", "\r").replace("%0A", "\n");
    name.replace("%0d", "\r").replace("%0a", "\n")
}

/// Decodes RFC 8187: `UTF-8''caf%C3%A9.png`.
fn decode_extended(value: &str) -> Option<String> {
    let (charset, rest) = value.split_once('\'')?;
    let (_language, encoded) = rest.split_once('\'')?;
    let bytes: Vec<u8> = percent_decode_str(encoded).collect();
    if charset.eq_ignore_ascii_case("utf-8") {
        String::from_utf8(bytes).ok()
    } else if charset.eq_ignore_ascii_case("iso-8859-1") {
        Some(bytes.iter().map(|byte| char::from(*byte)).collect())
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file_name(disposition: &[u8]) -> Option<String> {
        PartHead::read(Some(disposition), None).file_name
    }

    #[test]
    fn form_file_names_are_decoded() {
        let cases: &[(&[u8], Option<&str>)] = &[
            (b"form-data; name=\"file\"; filename=\"a.png\"", Some("a.png")),
            (b"form-data; name=file; filename=a.png", Some("a.png")),
            (b"form-data; filename=\"a.png\"; name=\"file\"", Some("a.png")),
            (b"form-data;name=\"file\";FileName=\"a.png\"", Some("a.png")),
            ("form-data; filename=\"日本 ä.png\"".as_bytes(), Some("日本 ä.png")),
            (b"form-data; filename=\"caf\xe9.png\"", Some("café.png")),
            (b"form-data; filename=\"a%22b%0D%0Ac.png\"", Some("a\"b\r\nc.png")),
            (b"form-data; filename=\"100%25.png\"", Some("100%25.png")),
            (b"form-data; filename=\"a\\\"b;c.png\"", Some("a\"b;c.png")),
            (b"form-data; filename=\"C:\\dir\\a.png\"", Some("C:\\dir\\a.png")),
            (b"form-data; filename=\"x\"; filename*=UTF-8''caf%C3%A9%20b.png", Some("café b.png")),
            (b"form-data; filename*=iso-8859-1'en'caf%e9.png", Some("café.png")),
            (b"form-data; filename=\"x.png\"; filename*=utf-7''odd", Some("x.png")),
            (b"form-data; filename=\"x.png\"; filename*=UTF-8''%ff", Some("x.png")),
            (b"form-data; name=\"file\"; filename=\"\"", Some("")),
            (b"form-data; name=\"file\"; filename=", Some("")),
            (b"form-data; name=\"filename=x\"", None),
            (b"form-data; name=\"a; filename=x\"", None),
            (b"form-data; odd; filename=\"a.png\"", Some("a.png")),
            (b"form-data; filename=\"open ", Some("open ")),
            (b"form-data; filename=\"C:\\\\\"x", Some("C:\\\"x")),
            (b"form-data; filename=a ; filename=b", Some("a")),
            (b"form-data", None),
            (b"", None),
            (b"\xff\xfe;=\"", None),
        ];
        for (disposition, want) in cases {
            let shown = String::from_utf8_lossy(disposition);
            assert_eq!(file_name(disposition).as_deref(), *want, "{shown}");
        }
    }

    #[test]
    fn form_part_is_a_file_by_name_or_type() {
        type Case = (&'static [u8], Option<&'static [u8]>, bool);
        let cases: &[Case] = &[
            (b"form-data; name=\"x\"; filename=\"a\"", None, true),
            (b"form-data; name=\"x\"; filename=\"a\"", Some(b"text/plain"), true),
            (b"form-data; name=\"x\"", Some(b"video/webm;codecs=vp8,opus"), true),
            (b"form-data; name=\"x\"", Some(b"application/octet-stream"), true),
            (b"form-data; name=\"x\"", Some(b"text/plain; charset=utf-8"), false),
            (b"form-data; name=\"payload_json\"", Some(b"application/json"), false),
            (b"form-data; name=\"x\"", Some(b" "), false),
            (b"form-data; name=\"x\"", None, false),
        ];
        for (disposition, content_type, is_file) in cases {
            let head = PartHead::read(Some(disposition), *content_type);
            assert_eq!(head.is_file(), *is_file, "{head:?}");
        }
    }

    #[test]
    fn declared_part_type_is_verbatim() {
        let head = PartHead::read(None, Some(b"video/webm;codecs=vp8,opus"));
        assert_eq!(head.declared_type.as_deref(), Some("video/webm;codecs=vp8,opus"));
    }

    #[test]
    fn form_boundary_is_parsed_from_the_header() {
        for (content_type, boundary) in [
            ("multipart/form-data; boundary=abc", Some("abc")),
            ("multipart/form-data; boundary=\"a b\"", Some("a b")),
            ("Multipart/Form-Data;charset=utf-8;BOUNDARY=abc; x=y", Some("abc")),
            ("multipart/form-data", None),
            ("multipart/form-data; boundary=", None),
            ("multipart/form-data; boundary=\"\u{e4}\"", None),
        ] {
            assert_eq!(parse_boundary(content_type).as_deref(), boundary, "{content_type}");
        }
        let long = format!("multipart/form-data; boundary={}", "x".repeat(71));
        assert_eq!(parse_boundary(&long), None);
    }
}
