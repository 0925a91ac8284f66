//! HTML of the pages of shared links.
//!
//! Guarantees: names, titles and messages are escaped, shown apart from the direction of the text around them, and
//! without control characters; scripts and styles run by a nonce that is used once; a page loads nothing but files of
//! its link; the page of a link that cannot be opened shows nothing about it. Non-goals: access.

use std::borrow::Cow;
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

use crate::limits::{LIMITED_PREVIEW_SIDE_MAX, PREVIEW_SIDE_MAX};

const STYLE: &str = include_str!("../../../assets/shared/style.css");
const GALLERY_SCRIPT: &str = include_str!("../../../assets/shared/gallery.mjs");

/// Policy of pages without a script, which allows only this style: other files of the origin are user uploads.
static POLICY: LazyLock<HeaderValue> = LazyLock::new(|| {
    let hash = STANDARD.encode(Sha256::digest(STYLE.as_bytes()));
    let policy = format!(
        "default-src 'none'; style-src 'sha256-{hash}'; img-src 'self'; media-src 'self'; frame-src 'self'; \
         form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
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
    Used,
    InUse,
    FileNotFound,
    TooManyAttempts(u64),
}

/// What every page of an open link, or of a public file, shows.
pub(in crate::handlers) struct Frame<'a> {
    /// Path of the page.
    pub path: &'a str,
    pub title: String,
    pub message: &'a str,
    pub expires_ms: Option<u64>,
    pub host: String,
    /// Base URL of the server, if other sites may show a preview of the page.
    pub preview_base: Option<&'a str>,
}

/// File of which other sites show a preview.
pub(in crate::handlers) struct Media<'a> {
    /// Path of the file.
    pub url: String,
    pub content_type: &'a str,
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
    pub is_limited: bool,
    pub may_zip: bool,
    /// Cursor of the next page.
    pub next: Option<&'a str>,
    /// Random text.
    pub nonce: String,
}

/// Script of a page, and the random text that permits it.
#[derive(Clone, Copy)]
pub(in crate::handlers) struct Script<'a> {
    pub text: &'static str,
    pub nonce: &'a str,
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
            Self::Used => (StatusCode::GONE, "This link was already used", ASK),
            Self::InUse => (
                StatusCode::CONFLICT,
                "An upload with this link is in progress",
                "Try again when it has ended.",
            ),
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
        let body = html! { main.notice { div { h1 { (heading) } p { (text) } } } };
        let mut response = respond(status, heading, &html! {}, None, &body);
        if let Self::TooManyAttempts(seconds) = self {
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        response
    }
}

/// Returns the page of a link whose password was not entered yet.
pub(super) fn locked_page(path: &str, is_wrong: bool) -> Response {
    let heading = "This link is protected by a password";
    let body = html! {
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
    };
    respond(StatusCode::UNAUTHORIZED, heading, &html! {}, None, &body)
}

/// Returns the page with the files of a link or a folder.
pub(super) fn listing_page(frame: &Frame<'_>, listing: &Listing<'_>) -> Response {
    let Frame { path, .. } = frame;
    let facts = listing.facts();
    let (images, others): (Vec<_>, Vec<_>) =
        listing.files.iter().partition(|file| listing.is_gallery && is_image(file));
    let body = html! {
        (head(frame, &facts, html! {
            @if listing.may_zip { a.button href={ (path) "/zip" } { "Download all (.zip)" } }
        }))
        @if let Some(folder) = listing.folder { (crumbs(path, folder)) }
        @if listing.missing > 0 {
            p {
                (counted(listing.missing, "file")) @if listing.missing == 1 { " is" } @else { " are" }
                " no longer available."
            }
        }
        @if listing.files.is_empty() && listing.folders.is_empty() { p { "Nothing here yet." } }
        @if !images.is_empty() {
            ul.gallery data-side=(preview_side(listing.is_limited)) {
                @for file in &images {
                    li { a href=(view_url(path, file)) {
                        img src={ (file_url(path, file)) "?width=400&format=auto" } alt="" loading="lazy";
                        span { (name(file)) }
                        small { (size(file.bytes())) }
                    } }
                }
            }
            (lightbox())
        }
        @if !others.is_empty() || !listing.folders.is_empty() {
            ul.list {
                @for (name, folder) in listing.folders {
                    li { a href={ (path) "?path=" (escaped_key(folder)) } { bdi { (printable(name)) "/" } } }
                }
                @for file in &others {
                    li {
                        a href=(view_url(path, file)) { (name(file)) }
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
    let script = Script { text: GALLERY_SCRIPT, nonce: &listing.nonce };
    let script = Some(script).filter(|_| !images.is_empty());
    let media = listing
        .files
        .iter()
        .find(|file| is_image(file))
        .map(|file| Media { url: file_url(path, file), content_type: file.content_type() });
    let tags = open_graph(frame, &facts, media.as_ref());
    respond(StatusCode::OK, &frame.title, &tags, script, &body)
}

impl Listing<'_> {
    /// Returns the number and size of the files.
    fn facts(&self) -> String {
        let bytes: u64 = self.files.iter().map(Object::bytes).sum();
        let is_whole = self.folders.is_empty() && self.next.is_none();
        let count = counted(self.files.len(), "file");
        match (self.folders.len(), is_whole) {
            (_, true) => format!("{count}, {}", size(bytes)),
            (0, false) => String::new(),
            (folders, false) => format!("{}, {count}", counted(folders, "folder")),
        }
    }
}

/// Returns the dialog of a gallery, which its script opens.
fn lightbox() -> Markup {
    html! {
        dialog #lightbox aria-label="Image" {
            img #image alt="";
            p #undecodable hidden { "This image can’t be displayed." }
            button #previous type="button" aria-label="Previous image" { "‹" }
            button #next type="button" aria-label="Next image" { "›" }
            footer {
                bdi #caption {}
                small #position aria-live="polite" {}
                a #download { "Download" }
                button #close type="button" aria-label="Close" { "×" }
            }
        }
    }
}

/// Returns the largest side of previews of images, in pixels.
pub(super) fn preview_side(is_limited: bool) -> u32 {
    if is_limited { LIMITED_PREVIEW_SIDE_MAX } else { PREVIEW_SIDE_MAX }
}

/// Returns whether a file is shown as an image.
pub(super) fn is_image(file: &Object) -> bool {
    let media_type = essence(file.content_type());
    media_type.starts_with("image/") && media_type != "image/svg+xml"
}

/// Returns the tags by which other sites show a preview of a page, if they may.
pub(in crate::handlers) fn open_graph(
    frame: &Frame<'_>,
    description: &str,
    media: Option<&Media<'_>>,
) -> Markup {
    let Some(base) = frame.preview_base else { return html! {} };
    let kind = media.and_then(|media| essence(media.content_type).split('/').next());
    html! {
        meta property="og:type" content="website";
        meta property="og:site_name" content=(frame.host);
        meta property="og:title" content=(printable(&frame.title));
        meta property="og:description" content=(description);
        meta property="og:url" content={ (base) (frame.path) };
        @match (media, kind) {
            (Some(media), Some("image")) => {
                meta property="og:image" content={ (base) (media.url) "?width=1200&height=630&fit=cover&format=jpg" };
                meta name="twitter:card" content="summary_large_image";
            }
            (Some(media), Some(kind @ ("video" | "audio"))) => {
                meta property={ "og:" (kind) } content={ (base) (media.url) };
                meta property={ "og:" (kind) ":type" } content=(essence(media.content_type));
                meta name="twitter:card" content="summary";
            }
            _ => meta name="twitter:card" content="summary";,
        }
    }
}

pub(super) fn head(frame: &Frame<'_>, facts: &str, action: Markup) -> Markup {
    let until = frame.expires_ms.map(|at_ms| format!("until {}", date(at_ms)));
    let facts = Some(facts).filter(|it| !it.is_empty()).into_iter().chain(until.as_deref());
    let facts: Vec<_> = facts.collect();
    html! {
        header {
            div { h1 { bdi { (printable(&frame.title)) } } p { (facts.join(" · ")) } }
            (action)
        }
        @if !frame.message.is_empty() { p.message { bdi { (printable(frame.message)) } } }
    }
}

pub(super) fn foot(frame: &Frame<'_>) -> Markup {
    html! { footer { "Shared from " (frame.host) } }
}

/// Returns links to the folders above.
fn crumbs(path: &str, folder: &str) -> Markup {
    let name = folder.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
    html! { nav { a href=(path) { "All files" } " / " bdi { (printable(name)) } } }
}

pub(super) fn file_url(path: &str, file: &Object) -> String {
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

/// Returns the name of a file.
pub(super) fn name(file: &Object) -> Markup {
    html! { bdi { (printable(file.name().key.file_name())) } }
}

/// Replaces the control characters of a text by `�`, except for line breaks and tabs.
pub(in crate::handlers) fn printable(text: &str) -> Cow<'_, str> {
    let is_hidden = |c: char| c.is_control() && !matches!(c, '\n' | '\r' | '\t');
    match text.contains(is_hidden) {
        true => text.replace(is_hidden, "\u{fffd}").into(),
        false => text.into(),
    }
}

/// Returns a page, with its policy. `tags` are added to its head.
pub(in crate::handlers) fn respond(
    status: StatusCode,
    title: &str,
    tags: &Markup,
    script: Option<Script<'_>>,
    body: &Markup,
) -> Response {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width";
                title { (printable(title)) }
                (tags)
                style nonce=[script.map(|it| it.nonce)] { (PreEscaped(STYLE)) }
                @if let Some(Script { text, nonce }) = script {
                    script type="module" nonce=(nonce) { (PreEscaped(text)) }
                }
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
    let policy = script.map_or_else(|| POLICY.clone(), |script| scripted_policy(script.nonce));
    headers.insert(header::CONTENT_SECURITY_POLICY, policy);
    response
}

fn scripted_policy(nonce: &str) -> HeaderValue {
    let policy = format!(
        "default-src 'none'; script-src 'nonce-{nonce}'; style-src 'nonce-{nonce}'; img-src 'self'; \
         connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'; \
         require-trusted-types-for 'script'"
    );
    HeaderValue::try_from(policy).unwrap_or(HeaderValue::from_static("default-src 'none'"))
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
