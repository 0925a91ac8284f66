//! Embedded static file as a response.
//!
//! Guarantees: two versions never have the same entity tag; clients that accept gzip get it, compressed once.
//! Non-goals: path, cache lifetime and security policy of an asset, which its handler sets as headers.

use std::io::Write;

use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use http::{Method, StatusCode};
use protocol::conditional::{PreconditionResult, Validators, evaluate_preconditions};
use protocol::error::ApiError;
use protocol::preferences::names;
use sha2::{Digest, Sha256};

/// `Cache-Control` of a URL whose content never changes: a year, the customary maximum.
pub(super) const FOREVER: &str = "public, max-age=31536000, immutable";

/// Embedded file with its validators.
pub(super) struct StaticAsset {
    content_type: &'static str,
    /// Headers besides those that every asset has.
    headers: HeaderMap,
    plain: EncodedAsset,
    packed: EncodedAsset,
}

/// Asset in one content coding.
struct EncodedAsset {
    body: Bytes,
    validators: Validators,
}

impl StaticAsset {
    pub(super) fn new<const COUNT: usize>(
        text: impl Into<Bytes>,
        content_type: &'static str,
        headers: [(HeaderName, HeaderValue); COUNT],
    ) -> Self {
        let body: Bytes = text.into();
        let hash = hash(&[&body]);
        let packed = EncodedAsset {
            body: packed(&body),
            validators: Validators::etag_only(format_args!("{hash}-gzip")),
        };
        let plain = EncodedAsset { body, validators: Validators::etag_only(hash) };
        Self { content_type, headers: headers.into_iter().collect(), plain, packed }
    }

    /// Returns the response to a GET with these request headers.
    pub(super) fn respond(&self, headers: &HeaderMap) -> Result<Response, ApiError> {
        let takes_gzip = names(headers, header::ACCEPT_ENCODING, "gzip");
        let coded = if takes_gzip { &self.packed } else { &self.plain };
        let status = match evaluate_preconditions(&Method::GET, headers, Some(&coded.validators)) {
            PreconditionResult::PreconditionFailed => return Err(ApiError::precondition_failed()),
            PreconditionResult::NotModified => StatusCode::NOT_MODIFIED,
            PreconditionResult::Proceed { .. } => StatusCode::OK,
        };
        let mut response = Response::new(Body::empty());
        *response.status_mut() = status;
        let answered = response.headers_mut();
        answered.extend(self.headers.clone());
        answered.insert(header::VARY, HeaderValue::from_static("accept-encoding"));
        answered.extend(coded.validators.etag_header().map(|etag| (header::ETAG, etag)));
        if status == StatusCode::OK {
            answered.insert(header::CONTENT_TYPE, HeaderValue::from_static(self.content_type));
            answered.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
            answered.insert(header::REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
            if takes_gzip {
                answered.insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
            }
            *response.body_mut() = Body::from(coded.body.clone());
        }
        Ok(response)
    }
}

/// Returns a version hash of these texts: half of a SHA-256.
pub(super) fn hash(texts: &[&[u8]]) -> String {
    let mut digest = Sha256::new();
    for text in texts {
        digest.update(text.len().to_le_bytes());
        digest.update(text);
    }
    digest.finalize().iter().take(16).map(|byte| format!("{byte:02x}")).collect()
}

fn packed(body: &[u8]) -> Bytes {
    let mut encoder = GzEncoder::new(Vec::with_capacity(body.len() / 3), Compression::best());
    // Writing to memory cannot fail.
    let written = encoder.write_all(body).and_then(|()| encoder.finish());
    written.map(Bytes::from).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn asset_hash_depends_on_text_boundaries() {
        assert_ne!(hash(&[b"ab", b"c"]), hash(&[b"a", b"bc"]));
        assert_eq!(hash(&[b"ab"]), hash(&[b"ab"]));
    }
}
