//! HTML of the page with one file: of a shared link, or of a public bucket.
//!
//! Guarantees: the content of a file is shown as its type or as text, and never run; of a link with a maximum of
//! downloads only images are shown. Non-goals: access, and counting.

use axum::response::Response;
use catalog::object_attributes::StoredAttributes;
use engine::Object;
use http::StatusCode;
use maud::{Markup, html};
use protocol::content_type::{essence, is_compressible};
use protocol::error::ApiError;
use service::object_body::{open_body, read_prefix};
use service::state::AppState;
use usage::task::blocking;

use super::html::{
    Frame, Media, foot, head, is_image, name, open_graph, preview_side, printable, respond, size,
};
use crate::limits::PREVIEW_TEXT_BYTES_MAX;

/// File, and how its page shows it.
pub(in crate::handlers) struct ShownFile<'a> {
    pub file: &'a Object,
    /// Path of the content.
    pub url: String,
    /// Path of the page with all files.
    pub all: Option<&'a str>,
    /// Whether only small images are shown, because the content is a counted download.
    pub is_limited: bool,
    pub text: Option<TextHead>,
}

/// Start of a text.
pub(in crate::handlers) struct TextHead {
    text: String,
    is_cut: bool,
}

/// Reads the start of a file for its page, if it is a text. An unreadable file has none: its download tells why.
pub(in crate::handlers) async fn text_head(app: &AppState, file: &Object) -> Option<TextHead> {
    let media_type = essence(file.content_type());
    // Of the types that shrink as text does, these are none, or shown as an image.
    let is_text =
        is_compressible(media_type) && !["image/svg+xml", "application/wasm"].contains(&media_type);
    let is_coded = StoredAttributes::of(file).headers.content_encoding.is_some();
    if !is_text || is_coded || file.bytes() == 0 {
        return None;
    }
    let body = open_body(&app.store, file).await.ok()?;
    let read = blocking(move || read_prefix(&body, PREVIEW_TEXT_BYTES_MAX).map_err(ApiError::from));
    TextHead::parse(read.await.ok()?, file.bytes())
}

impl TextHead {
    /// Parses the start of a file with a number of bytes. `None` if it is not UTF-8.
    fn parse(mut start: Vec<u8>, bytes: u64) -> Option<Self> {
        let is_cut = bytes > start.len() as u64;
        if let Err(error) = std::str::from_utf8(&start) {
            // The last character may be incomplete.
            if !is_cut || error.error_len().is_some() {
                return None;
            }
            start.truncate(error.valid_up_to());
        }
        let text = String::from_utf8(start).ok().filter(|text| !text.contains('\0'))?;
        Some(Self { text, is_cut })
    }
}

/// Returns the page with one file.
pub(in crate::handlers) fn file_page(frame: &Frame<'_>, shown: &ShownFile<'_>) -> Response {
    let ShownFile { file, url, all, .. } = shown;
    let facts = size(file.bytes());
    let download = html! { a.button href={ (url) "?download" } { "Download" } };
    let body = html! {
        (head(frame, &facts, download))
        @if let Some(all) = all { nav { a href=(all) { "← All files" } } }
        (preview(shown))
        @if frame.title != file.name().key.file_name() { p { (name(file)) } }
        (foot(frame))
    };
    let media = Media { url: url.clone(), content_type: file.content_type() };
    let is_shown = is_image(file) || !media.content_type.starts_with("image/");
    let tags = open_graph(frame, &facts, Some(&media).filter(|_| is_shown));
    respond(StatusCode::OK, &frame.title, &tags, None, &body)
}

fn preview(shown: &ShownFile<'_>) -> Markup {
    let ShownFile { file, url, is_limited, .. } = shown;
    let media_type = essence(file.content_type());
    let kind = media_type.split('/').next().unwrap_or_default();
    let name = printable(file.name().key.file_name());
    let side = preview_side(*is_limited);
    html! {
        @if is_image(file) {
            figure { img src={ (url) "?width=" (side) "&height=" (side) "&format=auto" } alt=(name); }
        } @else if *is_limited {
            p { "This link counts downloads, so the file has no preview." }
        } @else if kind == "image" {
            figure { img src=(url) alt=(name); }
        } @else if kind == "video" {
            figure { video src=(url) controls preload="metadata" aria-label=(name) {} }
        } @else if kind == "audio" {
            figure { audio src=(url) controls preload="metadata" aria-label=(name) {} }
        } @else if media_type == "application/pdf" {
            iframe src=(url) title=(name) {}
            p { a href=(url) { "Open the document" } }
        } @else if let Some(TextHead { text, is_cut }) = &shown.text {
            pre tabindex="0" role="group" aria-label=(name) dir="auto" { (printable(text)) }
            @if *is_cut {
                p {
                    "Showing the first " (size(PREVIEW_TEXT_BYTES_MAX)) " of " (size(file.bytes())) ". "
                    a href=(url) { "Show all" }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_preview_is_valid_utf_8_and_cut_between_characters() {
        let parse = |start: &[u8], bytes| {
            TextHead::parse(start.to_vec(), bytes).map(|head| (head.text, head.is_cut))
        };
        assert_eq!(parse("aä".as_bytes(), 3), Some(("aä".into(), false)));
        assert_eq!(parse(b"a\xc3", 3), Some(("a".into(), true)));
        for (start, bytes) in [(&b"a\xc3"[..], 2), (b"a\xff", 9), (b"a\xffb", 3), (b"a\0b", 3)] {
            assert_eq!(parse(start, bytes), None, "{start:?}");
        }
    }
}
