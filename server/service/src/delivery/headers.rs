//! Response headers of a representation.
//!
//! Non-goals: their values (`protocol::response_headers`), and those that depend on a byte range.

use catalog::{Bucket, ServeHtml};
use http::HeaderMap;
use protocol::conditional::Validators;
use protocol::response_headers::{DeliveryContext, Disposition, HtmlPolicy, Visibility};

use super::representation::Representation;

/// Returns to whom caches and search engines may show an object.
pub(super) fn visibility(bucket: &Bucket, is_public: bool) -> Visibility {
    match is_public {
        true if bucket.index => Visibility::Public,
        true => Visibility::PublicUnindexed,
        false => Visibility::Private,
    }
}

/// Returns the response headers of a representation, built by one of the functions for that.
pub(super) fn representation_headers(
    bucket: &Bucket,
    audience: Visibility,
    representation: &Representation<'_>,
    validators: &Validators,
    download: Disposition<'_>,
    make: fn(&DeliveryContext<'_>) -> HeaderMap,
) -> HeaderMap {
    let stored = representation.stored_headers();
    let mut headers = make(&DeliveryContext {
        file_name: representation.file_name(),
        content_type: representation.content_type(),
        validators,
        audience,
        cache_control: bucket.cache_control.as_ref().map(|value| value.as_str()),
        pages: match bucket.serve_html {
            ServeHtml::AsText => HtmlPolicy::PlainText,
            ServeHtml::AsPages => HtmlPolicy::Sandboxed,
        },
        download,
        stored: stored.as_ref(),
    });
    representation.describe(&mut headers);
    headers
}
