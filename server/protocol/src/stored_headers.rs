//! Response headers stored with an object by its uploader: caching, disposition, encoding and language.
//!
//! Guarantees: only valid header values are stored; no stored header changes the media type, the content security
//! policy, or how long a private object may be cached. Non-goals: where they are stored.

use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use serde::{Deserialize, Serialize};

/// Response headers of an object, as the client sent them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct StoredHeaders {
    /// `Cache-Control`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_control: Option<String>,
    /// `Content-Disposition`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content_disposition: Option<String>,
    /// `Content-Encoding`, without `aws-chunked`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content_encoding: Option<String>,
    /// `Content-Language`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content_language: Option<String>,
    /// `Expires`, as an HTTP date.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires: Option<String>,
}

impl StoredHeaders {
    /// Reads the headers of an upload, or of an object from another service.
    pub fn of(headers: &HeaderMap) -> Self {
        Self {
            cache_control: sent(headers, &header::CACHE_CONTROL),
            content_disposition: sent(headers, &header::CONTENT_DISPOSITION),
            content_encoding: sent(headers, &header::CONTENT_ENCODING).and_then(|it| encoding(&it)),
            content_language: sent(headers, &header::CONTENT_LANGUAGE),
            expires: sent(headers, &header::EXPIRES),
        }
    }

    /// Returns whether no header is stored.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Inserts the headers that describe the content, which are the same for every reader.
    pub fn describe_content(&self, headers: &mut HeaderMap) {
        insert(headers, header::CONTENT_DISPOSITION, self.content_disposition.as_deref());
        insert(headers, header::CONTENT_ENCODING, self.content_encoding.as_deref());
        insert(headers, header::CONTENT_LANGUAGE, self.content_language.as_deref());
    }

    /// Inserts the headers that control caching.
    pub fn describe_caching(&self, headers: &mut HeaderMap) {
        insert(headers, header::CACHE_CONTROL, self.cache_control.as_deref());
        insert(headers, header::EXPIRES, self.expires.as_deref());
    }
}

/// Returns the value of a header that was sent and is not empty.
pub fn sent(headers: &HeaderMap, name: &HeaderName) -> Option<String> {
    let value = headers.get(name)?.to_str().ok()?.trim();
    (!value.is_empty()).then(|| value.to_owned())
}

/// Removes `aws-chunked`, the framing of the request, from a content encoding.
fn encoding(value: &str) -> Option<String> {
    let is_of_content = |it: &&str| {
        !it.is_empty() && !["aws-chunked", "identity"].iter().any(|of| it.eq_ignore_ascii_case(of))
    };
    let stored: Vec<_> = value.split(',').map(str::trim).filter(is_of_content).collect();
    (!stored.is_empty()).then(|| stored.join(", "))
}

fn insert(headers: &mut HeaderMap, name: HeaderName, value: Option<&str>) {
    if let Some(Ok(value)) = value.map(HeaderValue::from_str) {
        headers.insert(name, value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn aws_chunked_is_not_stored_as_content_encoding() {
        for (sent, stored) in [
            ("gzip", Some("gzip")),
            ("aws-chunked", None),
            ("identity", None),
            ("aws-chunked, gzip", Some("gzip")),
            ("deflate, gzip,AWS-Chunked", Some("deflate, gzip")),
            ("", None),
        ] {
            let value = HeaderValue::from_static(sent);
            let headers = HeaderMap::from_iter([(header::CONTENT_ENCODING, value)]);
            assert_eq!(StoredHeaders::of(&headers).content_encoding.as_deref(), stored, "{sent}");
        }
    }

    #[test]
    fn invalid_stored_headers_are_not_sent() {
        let stored = StoredHeaders {
            content_disposition: Some("attachment\r\nx: y".into()),
            content_language: Some("de".into()),
            ..StoredHeaders::default()
        };
        let mut headers = HeaderMap::new();
        stored.describe_content(&mut headers);
        assert_eq!(headers.len(), 1);
        assert_eq!(headers[header::CONTENT_LANGUAGE], "de");
    }
}
