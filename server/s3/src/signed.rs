//! Requirements on signatures, checked before `s3s` verifies them.
//!
//! `s3s` verifies that a signature matches the headers that it names, not that it names enough. A presigned URL to
//! which its holder may add `x-amz-copy-source` would open everything that its creator may read; each `x-amz-` header
//! must therefore be signed, as in S3. Guarantees: a presigned URL is valid for a week at most; signature Version 2 is
//! rejected with an error that says so; a presigned URL accepts no form. Non-goals: verification of the signature.

use http::header::{self, HeaderMap, HeaderValue};
use http::request::Parts;
use http::{Method, Uri};
use percent_encoding::percent_decode_str;
use s3s::{S3Error, S3ErrorCode};

use super::errors::{code, s3_error};

const ALGORITHM: &str = "AWS4-HMAC-SHA256";
const VERSION_2: &str = "AWS ";
/// Maximum lifetime of a presigned URL, in seconds: a week (S3 API).
const EXPIRES_MAX: u64 = 7 * 24 * 60 * 60;
/// Needs no signature: it only adds a hash that the body must match.
const BODY_HASH: &str = "x-amz-content-sha256";
/// Region of every bucket. Clients may sign with any.
pub(super) const REGION: &str = "us-east-1";

/// Returns whether a request has a signature of an S3 client, including Version 2, so that it is rejected in XML.
pub(crate) fn is_signed(method: &Method, uri: &Uri, headers: &HeaderMap) -> bool {
    // A CORS preflight is never signed.
    if method == Method::OPTIONS {
        return false;
    }
    if let Some(value) = headers.get(header::AUTHORIZATION) {
        return [ALGORITHM, VERSION_2].iter().any(|it| value.as_bytes().starts_with(it.as_bytes()));
    }
    uri.query().is_some_and(|query| {
        let mut names = query.split('&').map(|pair| pair.split('=').next().unwrap_or(""));
        names.any(|name| matches!(name, "X-Amz-Signature" | "X-Amz-Algorithm" | "AWSAccessKeyId"))
    })
}

/// Query parameters, decoded.
pub(super) struct SignedQuery(Vec<(String, String)>);

/// Returns whether a request is presigned: anyone who has the URL may open it, in a browser too.
pub fn is_signed_address(uri: &Uri) -> bool {
    SignedQuery::of(uri).has("X-Amz-Signature")
}

impl SignedQuery {
    pub(super) fn of(uri: &Uri) -> Self {
        let decoded = |text: &str| percent_decode_str(text).decode_utf8_lossy().into_owned();
        let pairs = uri.query().unwrap_or_default().split('&').map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            (decoded(name), decoded(value))
        });
        Self(pairs.collect())
    }

    pub(super) fn pairs(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (&**name, &**value))
    }

    fn has(&self, name: &str) -> bool {
        self.0.iter().any(|(it, _)| it == name)
    }

    /// Returns the value of a parameter that occurs once.
    fn only(&self, name: &str) -> Option<&str> {
        let mut found = self.0.iter().filter(|(it, _)| it == name).map(|(_, value)| &**value);
        found.next().filter(|_| found.next().is_none())
    }
}

/// Rejects requests that `s3s` would accept and trug does not.
pub(super) fn check(head: &Parts) -> Result<(), S3Error> {
    let query = SignedQuery::of(&head.uri);
    let authorization = head.headers.get(header::AUTHORIZATION).map(HeaderValue::as_bytes);
    let is_version_2 = authorization.is_some_and(|it| it.starts_with(VERSION_2.as_bytes()));
    if is_version_2 || query.has("Signature") || query.has("AWSAccessKeyId") {
        let message = "Sign with AWS Signature Version 4 (signature_version \"s3v4\"): Version 2 is not supported";
        return Err(s3_error(S3ErrorCode::InvalidRequest, message));
    }
    let is_form = head.headers.get(header::CONTENT_TYPE).is_some_and(|value| {
        value.as_bytes().to_ascii_lowercase().starts_with(b"multipart/form-data")
    });
    if head.method == Method::POST && is_form {
        let message =
            "A form must be signed by its policy (POST Object), not by its URL or headers";
        return Err(s3_error(S3ErrorCode::NotImplemented, message));
    }
    let in_address = query.has("X-Amz-Signature");
    if in_address {
        let expires = query.only("X-Amz-Expires").and_then(|it| it.parse::<u64>().ok());
        if expires.is_none_or(|seconds| seconds > EXPIRES_MAX) {
            let message = "X-Amz-Expires must be a number of seconds, at most a week";
            return Err(s3_error(code("AuthorizationQueryParametersError"), message));
        }
    }
    let credential = match in_address {
        true => query.only("X-Amz-Credential"),
        false => head.headers.get(header::AUTHORIZATION).and_then(|it| field_of(it, "Credential=")),
    };
    check_region(credential.unwrap_or_default())?;
    let named = match in_address {
        true => query.only("X-Amz-SignedHeaders"),
        false => {
            head.headers.get(header::AUTHORIZATION).and_then(|it| field_of(it, "SignedHeaders="))
        }
    };
    let named: Vec<String> =
        named.unwrap_or_default().split(';').map(str::to_ascii_lowercase).collect();
    let is_covered = |name: &str| {
        let must = name == "host" || (name.starts_with("x-amz-") && name != BODY_HASH);
        !must || named.iter().any(|it| it == name)
    };
    if !is_covered("host") || !head.headers.keys().all(|name| is_covered(name.as_str())) {
        let message = "Headers of the request that must be signed are not signed";
        return Err(s3_error(S3ErrorCode::AccessDenied, message));
    }
    Ok(())
}

/// Returns a field of an `Authorization` value.
fn field_of<'v>(value: &'v HeaderValue, name: &str) -> Option<&'v str> {
    let parts = value.to_str().ok()?.split(',').flat_map(|part| part.split(' '));
    parts.filter_map(|part| part.trim().strip_prefix(name)).next()
}

/// Rejects invalid region names as AWS does, so that an unconfigured client signs again with [`REGION`]: s3cmd signs
/// with `US` by default. Any valid name is accepted.
fn check_region(credential: &str) -> Result<(), S3Error> {
    let Some(region) = credential.split('/').nth(2) else { return Ok(()) };
    let is_one =
        region.bytes().all(|it| it.is_ascii_lowercase() || it.is_ascii_digit() || it == b'-');
    if is_one && !region.is_empty() {
        return Ok(());
    }
    let message =
        "The authorization header is malformed; the region is wrong; expecting 'us-east-1'";
    Err(s3_error(S3ErrorCode::AuthorizationHeaderMalformed, message))
}

#[cfg(test)]
mod tests {
    use http::Request;

    use super::*;

    fn head(method: &str, uri: &str, headers: &[(&'static str, &str)]) -> Parts {
        let mut request = Request::builder().method(method).uri(uri);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        request.body(()).unwrap().into_parts().0
    }

    /// Returns the error code for a URL that is signed for a minute.
    fn code_of(more: &str, headers: &[(&'static str, &str)]) -> Option<String> {
        let uri = format!("/b/x?X-Amz-Signature=a&X-Amz-Expires=60{more}");
        let refused = check(&head("PUT", &uri, headers)).err();
        refused.map(|it| it.code().as_str().to_owned())
    }

    #[test]
    fn unsigned_requests_bypass_s3() {
        let is_signed = |head: &Parts| is_signed(&head.method, &head.uri, &head.headers);
        let signed = [("authorization", "AWS4-HMAC-SHA256 Credential=a")];
        assert!(is_signed(&head("GET", "/b/x", &signed)));
        assert!(!is_signed(&head("OPTIONS", "/b/x", &signed)));
        assert!(is_signed(&head("PUT", "/b/x?a=b&X-Amz-Signature=c", &[])));
        assert!(is_signed(&head("GET", "/?X-Amz-Algorithm=c", &[])));
        for (uri, headers) in [
            ("/b/x", &[][..]),
            ("/b/x?token=X-Amz-Signature", &[]),
            ("/b/X-Amz-Signature", &[]),
            ("/b/x", &[("authorization", "Bearer AWS4-HMAC-SHA256")]),
            ("/b/x?X-Amz-Signature=c", &[("authorization", "Bearer k")]),
        ] {
            assert!(!is_signed(&head("GET", uri, headers)), "{uri} {headers:?}");
        }
    }

    #[test]
    fn sigv2_and_unsigned_forms_are_rejected_early() {
        for more in ["&Signature=b", "&%53ignature=b", "&AWSAccessKeyId=b"] {
            assert_eq!(code_of(more, &[]).as_deref(), Some("InvalidRequest"), "{more}");
        }
        for (uri, headers) in [
            ("/b/x?AWSAccessKeyId=a&Signature=b&Expires=1", &[][..]),
            ("/b/x", &[("authorization", "AWS a:b")]),
        ] {
            let head = head("GET", uri, headers);
            assert!(is_signed(&head.method, &head.uri, &head.headers), "{uri}");
            let refused = check(&head).unwrap_err();
            assert!(refused.message().unwrap().contains("Version 4"), "{uri}");
        }
        let form = [("content-type", "Multipart/Form-Data; boundary=a")];
        let refused = check(&head("POST", "/b?X-Amz-Signature=a", &form)).unwrap_err();
        assert_eq!(refused.code().as_str(), "NotImplemented");
    }

    #[test]
    fn unsigned_query_parameters_are_rejected() {
        let source = [("x-amz-copy-source", "b/secret")];
        assert_eq!(code_of("&X-Amz-SignedHeaders=host", &[]), None);
        assert_eq!(code_of("&X-Amz-SignedHeaders=host", &[("x-amz-content-sha256", "a")]), None);
        let both = "&X-Amz-SignedHeaders=host%3Bx-amz-copy-source";
        assert_eq!(code_of(both, &source), None);
        for more in [
            "&X-Amz-SignedHeaders=host",
            "&X-Amz-SignedHeaders=host&X-Amz-SignedHeaders=host%3Bx-amz-copy-source",
            "&X-Amz-SignedHeaders=x-amz-copy-source",
            "",
        ] {
            assert_eq!(code_of(more, &source).as_deref(), Some("AccessDenied"), "{more}");
        }
        // The signature in the query takes precedence over one in a header.
        let header =
            ("authorization", "AWS4-HMAC-SHA256 SignedHeaders=host;x-amz-copy-source, a=b");
        let also = [source[0], header];
        let refused = code_of("&X-Amz-SignedHeaders=host", &also);
        assert_eq!(refused.as_deref(), Some("AccessDenied"));
    }

    #[test]
    fn signed_headers_must_include_required_ones() {
        let signed = |names: &str| {
            let value =
                format!("AWS4-HMAC-SHA256 Credential=a/b, SignedHeaders={names}, Signature=c");
            let headers = [("authorization", &*value), ("x-amz-date", "a"), ("x-amz-meta-a", "b")];
            check(&head("PUT", "/b/x", &headers)).is_ok()
        };
        assert!(signed("host;x-amz-date;x-amz-meta-a"));
        assert!(signed("x-amz-date;x-amz-meta-a;host;range"));
        for less in ["host;x-amz-date", "x-amz-date;x-amz-meta-a", "", "host;x-amz-meta-a"] {
            assert!(!signed(less), "{less}");
        }
    }

    #[test]
    fn any_valid_region_is_accepted() {
        let code = |region: &str| {
            let value = format!(
                "AWS4-HMAC-SHA256 Credential=a/20260101/{region}/s3/aws4_request, SignedHeaders=host, Signature=c"
            );
            let headers = [("authorization", &*value)];
            check(&head("GET", "/b/x", &headers)).err().map(|it| it.code().as_str().to_owned())
        };
        for region in ["us-east-1", "eu-central-1", "auto", "garage", "xx1"] {
            assert_eq!(code(region), None, "{region}");
        }
        for region in ["US", "EU", ""] {
            assert_eq!(code(region).as_deref(), Some("AuthorizationHeaderMalformed"), "{region}");
        }
    }

    #[test]
    fn presigned_url_lasts_at_most_seven_days() {
        let expires = |text: &str| {
            let uri = format!("/b/x?X-Amz-Signature=a&X-Amz-SignedHeaders=host{text}");
            check(&head("GET", &uri, &[])).is_ok()
        };
        assert!(expires("&X-Amz-Expires=604800"));
        for wrong in
            ["", "&X-Amz-Expires=604801", "&X-Amz-Expires=-1", "&X-Amz-Expires=1&X-Amz-Expires=2"]
        {
            assert!(!expires(wrong), "{wrong}");
        }
    }
}
