//! Response headers of a delivered object, and the response to a preflight.
//!
//! Pure. Guarantees: user uploads can neither run as a page nor be taken for another type; any origin may read public
//! objects and all their headers, so the headers do not depend on the caller and shared caches are not polluted.
//! Non-goals: status, length and ranges, and authorization.

use bytes::Bytes;
use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use http::{Response, StatusCode};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use crate::conditional::Validators;
use crate::content_type::{ActiveContent, active_content, essence};
use crate::file_name;
use crate::limits::{DOWNLOAD_NAME_BYTES_MAX, PREFLIGHT_SECONDS};
use crate::stored_headers::StoredHeaders;

/// Inputs of the headers of a delivered object.
#[derive(Clone, Debug)]
pub struct DeliveryContext<'a> {
    /// File name of the object: the last path segment of its key.
    pub file_name: &'a str,
    /// Stored media type.
    pub content_type: &'a str,
    /// Entity tag and modification time.
    pub validators: &'a Validators,
    /// Visibility of the object.
    pub audience: Visibility,
    /// `Cache-Control` of the bucket for names that are not random.
    pub cache_control: Option<&'a str>,
    /// Handling of the HTML family.
    pub pages: HtmlPolicy,
    /// Whether the client requested a download.
    pub download: Disposition<'a>,
    /// Response headers stored with the object by its uploader.
    pub stored: Option<&'a StoredHeaders>,
}

/// Visibility of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Visibility {
    /// Everyone, including search engines.
    Public,
    /// Everyone except search engines.
    PublicUnindexed,
    /// Requests with a credential.
    Private,
}

/// Handling of pages that users stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HtmlPolicy {
    /// Served as plain text.
    PlainText,
    /// Displayed in a sandbox without scripts.
    Sandboxed,
}

/// Download option of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Disposition<'a> {
    /// Displayed.
    Inline,
    /// Saved under its own name.
    Attachment,
    /// Saved under this name.
    AttachmentNamed(&'a str),
}

impl<'a> Disposition<'a> {
    /// Parses the value of the `download` parameter: `None` if absent, empty if it has no value.
    pub fn from_param(value: Option<&'a str>) -> Self {
        match value {
            None => Self::Inline,
            Some("" | "1" | "true") => Self::Attachment,
            Some("0" | "false") => Self::Inline,
            Some(name) => Self::AttachmentNamed(name),
        }
    }
}

/// Returns all headers of a delivered object except those of its length.
pub fn object_headers(delivery: &DeliveryContext<'_>) -> HeaderMap {
    let mut headers = HeaderMap::with_capacity(24);
    shared_headers(delivery, &mut headers);
    headers.insert(header::CONTENT_TYPE, content_type(delivery));
    headers.insert(header::CONTENT_SECURITY_POLICY, policy(delivery));
    if let Some(stored) = delivery.stored {
        stored.describe_content(&mut headers);
    }
    if let Some(value) = disposition(delivery) {
        headers.insert(header::CONTENT_DISPOSITION, value);
    }
    headers
}

/// Returns the headers of a 304 response: those of the object without the ones that describe its content.
pub fn not_modified_headers(delivery: &DeliveryContext<'_>) -> HeaderMap {
    let mut headers = HeaderMap::with_capacity(16);
    shared_headers(delivery, &mut headers);
    headers
}

/// Allows pages of any origin to read a response. Sent with or without an `Origin` header: a cached response serves
/// both kinds of request.
pub fn allow_any_origin(headers: &mut HeaderMap) {
    headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"));
    headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, HeaderValue::from_static(EXPOSED));
}

/// Hides a response, including that to a preflight, from pages of all other origins.
pub fn allow_no_origin(headers: &mut HeaderMap) {
    for name in [
        header::ACCESS_CONTROL_ALLOW_ORIGIN,
        header::ACCESS_CONTROL_EXPOSE_HEADERS,
        header::ACCESS_CONTROL_ALLOW_METHODS,
        header::ACCESS_CONTROL_ALLOW_HEADERS,
        header::ACCESS_CONTROL_MAX_AGE,
        ALLOW_PRIVATE_NETWORK,
    ] {
        headers.remove(name);
    }
}

/// Allows only pages of these origins to read a response about a bucket; browsers of other origins receive it but hide
/// it from the page. Caches store the responses per origin.
pub fn restrict_origins(
    headers: &mut HeaderMap,
    is_allowed: impl Fn(&str) -> bool,
    origin: Option<&HeaderValue>,
) {
    headers.append(header::VARY, HeaderValue::from_static("origin"));
    match origin.filter(|origin| origin.to_str().is_ok_and(&is_allowed)) {
        Some(origin) => {
            headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin.clone());
        }
        None => {
            headers.remove(header::ACCESS_CONTROL_ALLOW_ORIGIN);
        }
    }
}

/// Returns the response to `OPTIONS`: every preflight is allowed, with the headers that it asks for.
pub fn preflight_response(request_headers: &HeaderMap) -> Response<Bytes> {
    let mut response = Response::new(Bytes::new());
    *response.status_mut() = StatusCode::NO_CONTENT;
    let headers = response.headers_mut();
    allow_any_origin(headers);
    headers.insert(header::ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static(METHODS));
    // `*` does not cover Authorization, so the names are echoed.
    let asked = request_headers.get(header::ACCESS_CONTROL_REQUEST_HEADERS).cloned();
    let asked = asked.unwrap_or(HeaderValue::from_static(ALLOWED));
    headers.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, asked);
    headers.insert(header::ACCESS_CONTROL_MAX_AGE, HeaderValue::from(PREFLIGHT_SECONDS));
    if request_headers.contains_key(REQUEST_PRIVATE_NETWORK) {
        headers.insert(ALLOW_PRIVATE_NETWORK, HeaderValue::from_static("true"));
    }
    headers.insert(header::VARY, HeaderValue::from_static("access-control-request-headers"));
    response
}

/// Returns the `Cache-Control` value of an object.
pub fn cache_control(delivery: &DeliveryContext<'_>) -> HeaderValue {
    if delivery.audience == Visibility::Private {
        return HeaderValue::from_static(CACHE_PRIVATE);
    }
    let stored = delivery.stored.and_then(|stored| stored.cache_control.as_deref());
    if let Some(Ok(stored)) = stored.map(HeaderValue::from_str) {
        return stored;
    }
    if file_name::is_random(delivery.file_name) {
        return HeaderValue::from_static(CACHE_FOREVER);
    }
    let own = delivery.cache_control.and_then(|rule| HeaderValue::from_str(rule).ok());
    own.unwrap_or(HeaderValue::from_static(CACHE_SHORTLY))
}

/// Methods that the service supports.
pub const METHODS: &str = "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS";

const ALLOWED: &str = "Authorization, Content-Type, X-API-Key, Range, If-Match, If-None-Match, If-Modified-Since, \
    If-Range, Cache-Control, X-Requested-With";
const EXPOSED: &str = "ETag, Content-Length, Content-Range, Accept-Ranges, Content-Disposition, Last-Modified, \
    Location, Retry-After, RateLimit, RateLimit-Policy, X-RateLimit-Limit, X-RateLimit-Remaining, X-RateLimit-Reset, \
    X-Request-Id, X-Image-Transform, X-Object-Url, X-Thumbnail-Url, Tus-Version, Tus-Resumable, Tus-Extension, \
    Tus-Max-Size, Upload-Offset, Upload-Length, Upload-Metadata, Upload-Expires";
const CACHE_FOREVER: &str = "public, max-age=31536000, immutable";
const CACHE_SHORTLY: &str = "public, max-age=300, stale-while-revalidate=60";
const FETCH_METADATA: &str = "sec-fetch-dest, sec-fetch-site, service-worker";
const CACHE_PRIVATE: &str = "private, no-store";
const SANDBOX: &str = "default-src 'none'; style-src 'unsafe-inline'; img-src 'self' data:; media-src 'self'; sandbox";
const SANDBOXED_PAGE: &str = "default-src 'self' data:; style-src 'self' 'unsafe-inline'; script-src 'none'; \
    object-src 'none'; base-uri 'none'; form-action 'none'; sandbox";
const REQUEST_PRIVATE_NETWORK: HeaderName =
    HeaderName::from_static("access-control-request-private-network");
const ALLOW_PRIVATE_NETWORK: HeaderName =
    HeaderName::from_static("access-control-allow-private-network");
const RESOURCE_POLICY: HeaderName = HeaderName::from_static("cross-origin-resource-policy");
const TIMING_ALLOW_ORIGIN: HeaderName = HeaderName::from_static("timing-allow-origin");
/// Header that keeps search engines from indexing a response.
pub const ROBOTS_TAG: HeaderName = HeaderName::from_static("x-robots-tag");

fn shared_headers(delivery: &DeliveryContext<'_>, headers: &mut HeaderMap) {
    let mut put = |name: HeaderName, value: &'static str| {
        headers.insert(name, HeaderValue::from_static(value));
    };
    put(header::ACCESS_CONTROL_ALLOW_ORIGIN, "*");
    // All headers, in two bytes of each response instead of three hundred.
    put(header::ACCESS_CONTROL_EXPOSE_HEADERS, "*");
    put(header::ACCEPT_RANGES, "bytes");
    put(header::X_CONTENT_TYPE_OPTIONS, "nosniff");
    put(header::REFERRER_POLICY, "no-referrer");
    if delivery.audience != Visibility::Public {
        put(ROBOTS_TAG, "noindex");
    }
    put(TIMING_ALLOW_ORIGIN, "*");
    put(RESOURCE_POLICY, "cross-origin");
    headers.insert(header::CACHE_CONTROL, cache_control(delivery));
    if is_obeyed(delivery.content_type) {
        headers.append(header::VARY, HeaderValue::from_static(FETCH_METADATA));
    }
    if let Some(etag) = delivery.validators.etag_header() {
        headers.insert(header::ETAG, etag);
    }
    if let Some(modified) = delivery.validators.last_modified_header() {
        headers.insert(header::LAST_MODIFIED, modified);
    }
}

/// Returns whether a browser runs or applies files of this type. Some requests for these are rejected
/// (`deliver/gate.rs`), so a shared cache must not answer those with the response to another. `nosniff` prevents other
/// types from being run.
fn is_obeyed(content_type: &str) -> bool {
    let kind = essence(content_type).to_ascii_lowercase();
    let exact = ["application/json", "application/pdf", "application/wasm", "text/css"];
    active_content(content_type) != ActiveContent::None
        || exact.contains(&&*kind)
        || kind.ends_with("+json")
        || kind.ends_with("javascript")
        || kind.ends_with("ecmascript")
}

/// Returns the `Content-Type` to send. Pages become text; text without a character set is UTF-8.
fn content_type(delivery: &DeliveryContext<'_>) -> HeaderValue {
    let stored = delivery.content_type;
    if delivery.pages == HtmlPolicy::PlainText && active_content(stored) == ActiveContent::Page {
        return HeaderValue::from_static("text/plain; charset=utf-8");
    }
    let kind = essence(stored);
    let is_text =
        kind.starts_with("text/") || kind == "application/json" || kind == "image/svg+xml";
    let value = if is_text && !stored.to_ascii_lowercase().contains("charset") {
        HeaderValue::try_from(format!("{stored}; charset=utf-8"))
    } else {
        HeaderValue::from_str(stored)
    };
    value.unwrap_or(HeaderValue::from_static(crate::content_type::OCTET_STREAM))
}

fn policy(delivery: &DeliveryContext<'_>) -> HeaderValue {
    let is_page = active_content(delivery.content_type) == ActiveContent::Page;
    HeaderValue::from_static(match delivery.pages {
        HtmlPolicy::Sandboxed if is_page => SANDBOXED_PAGE,
        _ => SANDBOX,
    })
}

/// Returns the `Content-Disposition` value of a download.
fn disposition(delivery: &DeliveryContext<'_>) -> Option<HeaderValue> {
    let name = match delivery.download {
        Disposition::Inline => return None,
        Disposition::Attachment => None,
        Disposition::AttachmentNamed(asked) => {
            file_name::sanitize(asked).filter(|it| it.len() <= DOWNLOAD_NAME_BYTES_MAX)
        }
    };
    attachment_header(name.as_deref().unwrap_or(delivery.file_name))
}

/// Returns the `Content-Disposition` of a file that is saved under this name.
pub fn attachment_header(name: &str) -> Option<HeaderValue> {
    HeaderValue::try_from(attachment(name)).ok()
}

/// Formats an attachment as in RFC 6266: an ASCII fallback name, and the name itself in the encoding of RFC 8187.
fn attachment(name: &str) -> String {
    let is_safe = |c: char| (' '..='~').contains(&c) && !matches!(c, '"' | '\\' | '%' | '/' | ';');
    let ascii: String = name.chars().map(|c| if is_safe(c) { c } else { '_' }).collect();
    if ascii == name {
        return format!("attachment; filename=\"{name}\"");
    }
    format!(
        "attachment; filename=\"{ascii}\"; filename*=UTF-8''{}",
        utf8_percent_encode(name, ATTR_CHAR)
    )
}

/// Everything except the `attr-char` of RFC 8187.
const ATTR_CHAR: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'!')
    .remove(b'#')
    .remove(b'$')
    .remove(b'&')
    .remove(b'+')
    .remove(b'-')
    .remove(b'.')
    .remove(b'^')
    .remove(b'_')
    .remove(b'`')
    .remove(b'|')
    .remove(b'~');

#[cfg(test)]
mod tests {
    use super::*;

    fn validators() -> Validators {
        Validators::new("abc", 1_700_000_000_000)
    }

    fn headers_of(change: impl FnOnce(&mut DeliveryContext<'_>)) -> HeaderMap {
        let validators = validators();
        let mut delivery = DeliveryContext {
            file_name: "a.png",
            content_type: "image/png",
            validators: &validators,
            audience: Visibility::Public,
            cache_control: None,
            pages: HtmlPolicy::PlainText,
            download: Disposition::Inline,
            stored: None,
        };
        change(&mut delivery);
        object_headers(&delivery)
    }

    fn text<'h>(headers: &'h HeaderMap, name: &str) -> &'h str {
        headers.get(name).map_or("", |value| value.to_str().unwrap())
    }

    #[test]
    fn every_object_is_safe_to_show_and_open_to_every_origin() {
        let headers = headers_of(|_| {});
        for (name, value) in [
            ("content-type", "image/png"),
            ("etag", "\"abc\""),
            ("last-modified", "Tue, 14 Nov 2023 22:13:20 GMT"),
            ("accept-ranges", "bytes"),
            ("x-content-type-options", "nosniff"),
            ("access-control-allow-origin", "*"),
            ("cross-origin-resource-policy", "cross-origin"),
            ("timing-allow-origin", "*"),
            ("referrer-policy", "no-referrer"),
            ("x-robots-tag", ""),
            ("cache-control", CACHE_SHORTLY),
            ("content-disposition", ""),
            ("access-control-allow-credentials", ""),
        ] {
            assert_eq!(text(&headers, name), value, "{name}");
        }
        assert!(text(&headers, "content-security-policy").ends_with("; sandbox"));
        assert_eq!(text(&headers, "access-control-expose-headers"), "*");
    }

    #[test]
    fn cache_control_is_immutable_for_random_names() {
        const RANDOM: &str = "01234567-89ab-4def-8123-456789abcdef.png";
        let cache = |file_name: &'static str, own: Option<&'static str>, audience: Visibility| {
            let headers = headers_of(|delivery| {
                (delivery.file_name, delivery.cache_control) = (file_name, own);
                delivery.audience = audience;
            });
            text(&headers, "cache-control").to_owned()
        };
        assert_eq!(cache(RANDOM, None, Visibility::Public), CACHE_FOREVER);
        assert_eq!(cache(RANDOM, None, Visibility::Private), CACHE_PRIVATE);
        assert_eq!(cache("a.png", None, Visibility::Public), CACHE_SHORTLY);
        assert_eq!(cache("a.png", Some("no-cache"), Visibility::Public), "no-cache");
        assert_eq!(cache("a.png", Some("bad\r\nX: y"), Visibility::Public), CACHE_SHORTLY);
        assert_eq!(cache("a.png", Some("public"), Visibility::Private), CACHE_PRIVATE);
    }

    #[test]
    fn stored_headers_are_sent_and_open_no_private_object_to_caches() {
        let stored = StoredHeaders {
            cache_control: Some("max-age=60".into()),
            content_disposition: Some("attachment; filename=\"x\"".into()),
            content_encoding: Some("gzip".into()),
            content_language: Some("de".into()),
            expires: Some("Thu, 01 Jan 2099 00:00:00 GMT".into()),
        };
        let headers = |audience: Visibility, download: Disposition<'static>| {
            let stored = stored.clone();
            let validators = validators();
            object_headers(&DeliveryContext {
                file_name: "a.png",
                content_type: "image/png",
                validators: &validators,
                audience,
                cache_control: Some("no-cache"),
                pages: HtmlPolicy::PlainText,
                download,
                stored: Some(&stored),
            })
        };
        let public = headers(Visibility::Public, Disposition::Inline);
        for (name, value) in [
            ("cache-control", "max-age=60"),
            ("content-disposition", "attachment; filename=\"x\""),
            ("content-encoding", "gzip"),
            ("content-language", "de"),
            ("expires", ""),
        ] {
            assert_eq!(text(&public, name), value, "{name}");
        }
        let private = headers(Visibility::Private, Disposition::AttachmentNamed("mine.png"));
        assert_eq!(text(&private, "cache-control"), CACHE_PRIVATE);
        assert_eq!(text(&private, "content-disposition"), "attachment; filename=\"mine.png\"");
    }

    #[test]
    fn html_is_plain_text_unless_enabled_for_bucket() {
        for page in
            ["text/html", "application/xhtml+xml; charset=utf-8", "text/xml", "message/rfc822"]
        {
            let headers = headers_of(|delivery| delivery.content_type = page);
            assert_eq!(text(&headers, "content-type"), "text/plain; charset=utf-8", "{page}");
            assert!(text(&headers, "content-security-policy").ends_with("; sandbox"));
        }
        let shown = headers_of(|delivery| {
            (delivery.content_type, delivery.pages) = ("text/html", HtmlPolicy::Sandboxed);
        });
        assert_eq!(text(&shown, "content-type"), "text/html; charset=utf-8");
        assert!(text(&shown, "content-security-policy").contains("script-src 'none'"));
        assert!(text(&shown, "content-security-policy").ends_with("; sandbox"));
        let svg = headers_of(|delivery| {
            (delivery.content_type, delivery.pages) = ("image/svg+xml", HtmlPolicy::Sandboxed);
        });
        assert!(text(&svg, "content-type").starts_with("image/svg+xml"));
        assert!(text(&svg, "content-security-policy").ends_with("; sandbox"));
    }

    #[test]
    fn text_defaults_to_utf_8() {
        let sent = |stored: &'static str| {
            let headers = headers_of(|delivery| delivery.content_type = stored);
            text(&headers, "content-type").to_owned()
        };
        assert_eq!(sent("text/plain"), "text/plain; charset=utf-8");
        assert_eq!(sent("text/plain; Charset=latin1"), "text/plain; Charset=latin1");
        assert_eq!(sent("application/json"), "application/json; charset=utf-8");
        assert_eq!(sent("video/webm;codecs=vp8,opus"), "video/webm;codecs=vp8,opus");
        assert_eq!(sent("bad\r\ntype"), "application/octet-stream");
    }

    #[test]
    fn content_disposition_encodes_file_names() {
        let sent = |file_name: &'static str, download: Disposition<'static>| {
            let headers = headers_of(|delivery| {
                (delivery.file_name, delivery.download) = (file_name, download);
            });
            text(&headers, "content-disposition").to_owned()
        };
        assert_eq!(sent("a b.png", Disposition::Attachment), "attachment; filename=\"a b.png\"");
        assert_eq!(
            sent("ä\"b.png", Disposition::Attachment),
            "attachment; filename=\"__b.png\"; filename*=UTF-8''%C3%A4%22b.png"
        );
        assert_eq!(
            sent("a.png", Disposition::AttachmentNamed("c.jpg")),
            "attachment; filename=\"c.jpg\""
        );
        assert_eq!(
            sent("a.png", Disposition::AttachmentNamed("../c\r\n.jpg")),
            "attachment; filename=\"c.jpg\""
        );
        assert_eq!(
            sent("a.png", Disposition::AttachmentNamed("..")),
            "attachment; filename=\"a.png\""
        );
        assert_eq!(
            sent("100%.png", Disposition::Attachment),
            "attachment; filename=\"100_.png\"; filename*=UTF-8''100%25.png"
        );
    }

    #[test]
    fn download_parameter_is_a_flag_or_a_name() {
        assert_eq!(Disposition::from_param(None), Disposition::Inline);
        assert_eq!(Disposition::from_param(Some("")), Disposition::Attachment);
        assert_eq!(Disposition::from_param(Some("true")), Disposition::Attachment);
        assert_eq!(Disposition::from_param(Some("false")), Disposition::Inline);
        assert_eq!(Disposition::from_param(Some("x.png")), Disposition::AttachmentNamed("x.png"));
    }

    #[test]
    fn preflight_allows_requested_headers() {
        let mut asked = HeaderMap::new();
        let names = HeaderValue::from_static("authorization, x-own");
        asked.insert(header::ACCESS_CONTROL_REQUEST_HEADERS, names);
        asked.insert(REQUEST_PRIVATE_NETWORK, HeaderValue::from_static("true"));
        let answer = preflight_response(&asked);
        assert_eq!(answer.status(), 204);
        assert_eq!(text(answer.headers(), "access-control-allow-headers"), "authorization, x-own");
        assert_eq!(text(answer.headers(), "access-control-allow-methods"), METHODS);
        assert_eq!(text(answer.headers(), "access-control-allow-origin"), "*");
        assert_eq!(text(answer.headers(), "access-control-max-age"), "7200");
        assert_eq!(text(answer.headers(), "access-control-allow-private-network"), "true");
        let plain = preflight_response(&HeaderMap::new());
        assert!(text(plain.headers(), "access-control-allow-headers").contains("Authorization"));
        assert_eq!(text(plain.headers(), "access-control-allow-private-network"), "");
    }

    #[test]
    fn not_modified_omits_content_headers() {
        let validators = validators();
        let delivery = DeliveryContext {
            file_name: "a.png",
            content_type: "image/png",
            validators: &validators,
            audience: Visibility::Public,
            cache_control: None,
            pages: HtmlPolicy::PlainText,
            download: Disposition::Attachment,
            stored: None,
        };
        let headers = not_modified_headers(&delivery);
        assert!(headers.contains_key("etag") && headers.contains_key("cache-control"));
        assert!(
            !headers.contains_key("content-type") && !headers.contains_key("content-disposition")
        );
    }
}
