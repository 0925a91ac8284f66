//! HTML of the pages of shared links.
//!
//! Guarantees: names, titles and messages are escaped, and shown apart from the direction of the text around them; only
//! the page that requests files has a script; a page loads nothing but files of its link; the page of a link that
//! cannot be opened shows nothing about it. Non-goals: access.

use std::sync::LazyLock;

use axum::body::Body;
use axum::response::Response;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use engine::Object;
use http::StatusCode;
use http::header::{self, HeaderValue};
use maud::{DOCTYPE, Markup, PreEscaped, html};
use protocol::content_type::essence;
use protocol::public_url::escaped_key;
use protocol::response_headers::ROBOTS_TAG;
use protocol::time_format::timestamp;
use sha2::{Digest, Sha256};

pub(in crate::handlers) const STYLE: &str = include_str!("../../../assets/shared/style.css");

/// Policy that allows only this style: other files of the origin are user uploads.
static POLICY: LazyLock<HeaderValue> = LazyLock::new(|| {
    let hash = STANDARD.encode(Sha256::digest(STYLE.as_bytes()));
    let policy = format!(
        "default-src 'none'; style-src 'sha256-{hash}'; img-src 'self'; media-src 'self'; form-action 'self'; \
         base-uri 'none'; frame-ancestors 'none'"
    );
    HeaderValue::try_from(policy).unwrap_or(HeaderValue::from_static("default-src 'none'"))
});

/// Page without content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::handlers) enum Notice {
    Unknown,
    Expired,
    NoLongerAvailable,
    UsedUp,
    Full,
    FileNotFound,
    TooManyAttempts(u64),
}

/// What every page of an open link shows.
pub(in crate::handlers) struct Frame<'a> {
    /// Path of the page.
    pub path: &'a str,
    pub title: String,
    pub message: &'a str,
    pub expires_ms: Option<u64>,
    pub host: String,
}

/// Files of a link, or of a folder of it.
pub(super) struct Listing<'a> {
    /// Folder that is shown, if it is below the start of the link.
    pub folder: Option<&'a str>,
    /// Name and path of each subfolder.
    pub folders: &'a [(String, String)],
    pub files: &'a [Object],
    /// Number of files that no longer exist.
    pub missing: usize,
    pub is_gallery: bool,
    pub may_zip: bool,
    /// Cursor of the next page.
    pub next: Option<&'a str>,
}

impl Notice {
    fn text(self) -> (StatusCode, &'static str, String) {
        const ASK: &str = "Ask the person who sent it for a new one.";
        let (status, heading, text) = match self {
            Self::Unknown => (
                StatusCode::NOT_FOUND,
                "This link doesn’t exist",
                "Check that you copied all of it.",
            ),
            Self::Expired => (StatusCode::GONE, "This link has expired", ASK),
            Self::NoLongerAvailable => (StatusCode::GONE, "This link is no longer available", ASK),
            Self::UsedUp => (StatusCode::GONE, "The download limit of this link is reached", ASK),
            Self::Full => (StatusCode::OK, "This request is full", "It accepts no more files."),
            Self::FileNotFound => {
                (StatusCode::NOT_FOUND, "File not found", "It may have been moved or deleted.")
            }
            Self::TooManyAttempts(seconds) => {
                let text = format!("Try again in {seconds} s.");
                return (StatusCode::TOO_MANY_REQUESTS, "Too many attempts", text);
            }
        };
        (status, heading, text.to_owned())
    }

    /// Returns the page.
    pub(in crate::handlers) fn page(self) -> Response {
        let (status, heading, text) = self.text();
        let mut response = respond(
            status,
            heading,
            &html! {
                main.notice { div { h1 { (heading) } p { (text) } } }
            },
        );
        if let Self::TooManyAttempts(seconds) = self {
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        response
    }
}

/// Returns the page of a link whose password was not entered yet.
pub(super) fn locked_page(path: &str, is_wrong: bool) -> Response {
    let heading = "This link is protected by a password";
    respond(
        StatusCode::UNAUTHORIZED,
        heading,
        &html! {
            main.notice {
                div {
                    h1 { (heading) }
                    @if is_wrong { p.error role="alert" { "Wrong password." } }
                    form method="post" action={ (path) "/unlock" } {
                        input type="password" name="password" required autofocus aria-label="Password"
                            autocomplete="off" maxlength="128";
                        button { "Open" }
                    }
                }
            }
        },
    )
}

/// Returns the page with the files of a link or a folder.
pub(super) fn listing_page(frame: &Frame<'_>, listing: &Listing<'_>) -> Response {
    let Frame { path, .. } = frame;
    let bytes: u64 = listing.files.iter().map(Object::bytes).sum();
    let is_whole = listing.folders.is_empty() && listing.next.is_none();
    let count = counted(listing.files.len(), "file");
    let facts = match (listing.folders.len(), is_whole) {
        (_, true) => format!("{count}, {}", size(bytes)),
        (0, false) => String::new(),
        (folders, false) => format!("{}, {count}", counted(folders, "folder")),
    };
    let (images, others): (Vec<_>, Vec<_>) =
        listing.files.iter().partition(|file| listing.is_gallery && is_image(file));
    let body = html! {
        (head(frame, &facts, html! {
            @if listing.may_zip { a.button href={ (path) "/zip" } { "Download all (.zip)" } }
        }))
        @if let Some(folder) = listing.folder { (crumbs(path, folder)) }
        @if listing.missing > 0 {
            p { (counted(listing.missing, "file")) " no longer available." }
        }
        @if listing.files.is_empty() && listing.folders.is_empty() { p { "Nothing here yet." } }
        @if !images.is_empty() {
            ul.gallery {
                @for file in &images {
                    li { a href=(view_url(path, file)) {
                        img src={ (file_url(path, file)) "?width=400&format=auto" } alt="" loading="lazy";
                        span { bdi { (file.name().key.file_name()) } }
                        small { (size(file.bytes())) }
                    } }
                }
            }
        }
        @if !others.is_empty() || !listing.folders.is_empty() {
            ul.list {
                @for (name, folder) in listing.folders {
                    li { a href={ (path) "?path=" (escaped_key(folder)) } { bdi { (name) "/" } } }
                }
                @for file in &others {
                    li {
                        a href=(view_url(path, file)) { bdi { (file.name().key.file_name()) } }
                        small { (size(file.bytes())) }
                        a href={ (file_url(path, file)) "?download" } { "Download" }
                    }
                }
            }
        }
        @if let Some(next) = listing.next {
            @let folder = listing.folder.unwrap_or_default();
            p { a href={ (path) "?path=" (escaped_key(folder)) "&after=" (escaped_key(next)) } {
                "Next page"
            } }
        }
        (foot(frame))
    };
    respond(StatusCode::OK, &frame.title, &body)
}

/// Returns the page with one file. Of a link with a maximum of downloads only images are shown.
pub(super) fn file_page(
    frame: &Frame<'_>,
    file: &Object,
    is_only: bool,
    is_limited: bool,
) -> Response {
    let url = file_url(frame.path, file);
    let side = if is_limited { 1_024 } else { 1_600 };
    let media_type = essence(file.content_type());
    let kind = media_type.split('/').next().unwrap_or_default();
    let name = file.name().key.file_name();
    let body = html! {
        (head(frame, &size(file.bytes()), html! { a.button href={ (url) "?download" } { "Download" } }))
        @if !is_only { nav { a href=(frame.path) { "← All files" } } }
        @if is_image(file) {
            figure {
                img src={ (url) "?width=" (side) "&height=" (side) "&format=auto" } alt=(name);
            }
        } @else if !is_limited && kind == "video" {
            figure { video src=(url) controls preload="metadata" {} }
        } @else if !is_limited && kind == "audio" {
            figure { audio src=(url) controls preload="metadata" {} }
        } @else if !is_limited && media_type == "application/pdf" {
            p { a href=(url) { "Open the document" } }
        }
        p { bdi { (name) } }
        (foot(frame))
    };
    respond(StatusCode::OK, &frame.title, &body)
}

/// Returns whether a file is shown as an image.
pub(super) fn is_image(file: &Object) -> bool {
    let media_type = essence(file.content_type());
    media_type.starts_with("image/") && media_type != "image/svg+xml"
}

fn head(frame: &Frame<'_>, facts: &str, action: Markup) -> Markup {
    let until = frame.expires_ms.map(|at_ms| format!("until {}", date(at_ms)));
    let facts = Some(facts).filter(|it| !it.is_empty()).into_iter().chain(until.as_deref());
    let facts: Vec<_> = facts.collect();
    html! {
        header {
            div { h1 { bdi { (frame.title) } } p { (facts.join(" · ")) } }
            (action)
        }
        @if !frame.message.is_empty() { p.message { bdi { (frame.message) } } }
    }
}

fn foot(frame: &Frame<'_>) -> Markup {
    html! { footer { "Shared from " (frame.host) } }
}

/// Returns links to the folders above.
fn crumbs(path: &str, folder: &str) -> Markup {
    let name = folder.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
    html! { nav { a href=(path) { "All files" } " / " bdi { (name) } } }
}

fn file_url(path: &str, file: &Object) -> String {
    format!("{path}/f/{}", escaped_key(file.name().key.as_str()))
}

fn view_url(path: &str, file: &Object) -> String {
    format!("{path}?file={}", escaped_key(file.name().key.as_str()))
}

pub(in crate::handlers) fn counted(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

/// Formats bytes with decimal units.
pub(in crate::handlers) fn size(bytes: u64) -> String {
    let units = [(1_000_000_000, "GB"), (1_000_000, "MB"), (1_000, "kB")];
    match units.into_iter().find(|(unit, _)| bytes >= *unit) {
        Some((unit, name)) => {
            let text = format!("{:.1}", bytes as f64 / unit as f64);
            format!("{} {name}", text.strip_suffix(".0").unwrap_or(&text))
        }
        None => format!("{bytes} B"),
    }
}

pub(in crate::handlers) fn date(unix_ms: u64) -> String {
    timestamp(unix_ms).strftime("%-d %b %Y, %H:%M UTC").to_string()
}

fn respond(status: StatusCode, title: &str, body: &Markup) -> Response {
    respond_with_head(status, title, &html! { style { (PreEscaped(STYLE)) } }, body)
}

/// Returns a page with a style, and possibly a script, in its head.
pub(in crate::handlers) fn respond_with_head(
    status: StatusCode,
    title: &str,
    head: &Markup,
    body: &Markup,
) -> Response {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width";
                title { (title) }
                (head)
            }
            body { (body) }
        }
    };
    let mut response = Response::new(Body::from(page.into_string()));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    for (name, value) in [
        (header::CONTENT_TYPE, "text/html; charset=utf-8"),
        (header::CACHE_CONTROL, "private, no-store"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
        (ROBOTS_TAG, "noindex"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    headers.insert(header::CONTENT_SECURITY_POLICY, POLICY.clone());
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_decimal_units() {
        for (bytes, text) in [
            (0, "0 B"),
            (999, "999 B"),
            (1_500, "1.5 kB"),
            (2_000, "2 kB"),
            (48_200_000, "48.2 MB"),
        ] {
            assert_eq!(size(bytes), text);
        }
        assert_eq!(date(1_769_860_800_000), "31 Jan 2026, 12:00 UTC");
    }
}
