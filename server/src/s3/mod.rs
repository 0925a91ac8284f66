//! The gateway for clients of S3: rclone, aws-cli, restic and the like, at the same address as everything else.
//!
//! A request belongs here when it is signed with AWS Signature Version 4, in a header or in its address. `s3s` checks the
//! signature, reads the request and writes XML; who may do what, and what is done, is decided by the same code as
//! behind the API.
//!
//! ```text
//! access       who signed, and whether that is one request too many
//! operations   the table of operations
//! buckets  listing  objects  copying  multipart   what they do
//! incoming  framing                               bodies on their way in
//! errors       our refusals in the words of S3
//! ```
//!
//! Promises: nothing of a body is read before the signature of its head is checked, and no body is held in memory;
//! Version 2 of the signature, and forms, open nothing.
//! Never here: delivery to whoever does not sign.

mod access;
mod buckets;
mod copying;
mod errors;
mod framing;
mod incoming;
mod listing;
mod multipart;
mod objects;
mod operations;

use std::sync::Arc;

use axum::body::Body;
use http::header::{self, HeaderMap, HeaderValue};
use http::request::Parts;
use http::{Method, Request, Response, StatusCode, Uri};
use s3s::config::{S3Config, StaticConfigProvider};
use s3s::service::{S3Service, S3ServiceBuilder};
use s3s::validation::NameValidation;
use s3s::{S3Error, S3ErrorCode};

use self::access::{Door, Keys};
use self::errors::{refusal, refused};
use self::framing::{Chunks, Framed};
use self::operations::Operations;
use crate::client_address::client_address;
use crate::error::ApiError;
use crate::limits;
use crate::measures::AuthFailure;
use crate::request_body::{BodyLimits, RequestBody};
use crate::state::AppState;

const ALGORITHM: &str = "AWS4-HMAC-SHA256";
/// The codes of those who sign with a wrong secret, or in the name of a key that is none.
const WRONG_SECRET: [&[u8]; 2] = [b"<Code>SignatureDoesNotMatch<", b"<Code>InvalidAccessKeyId<"];

/// The gateway. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Gateway {
    app: AppState,
    service: S3Service,
}

/// Which names buckets have is decided where they are looked up.
struct AnyName;

impl NameValidation for AnyName {
    fn validate_bucket_name(&self, name: &str) -> bool {
        !name.is_empty()
    }
}

/// Whether a request is one of a client of S3.
pub(crate) fn is_signed(method: &Method, uri: &Uri, headers: &HeaderMap) -> bool {
    // What asks before a request is no request yet.
    if method == Method::OPTIONS {
        return false;
    }
    if let Some(value) = headers.get(header::AUTHORIZATION) {
        return value.as_bytes().starts_with(ALGORITHM.as_bytes());
    }
    uri.query().is_some_and(|query| {
        let mut names = query.split('&').map(|pair| pair.split('=').next().unwrap_or(""));
        names.any(|name| matches!(name, "X-Amz-Signature" | "X-Amz-Algorithm"))
    })
}

/// The same of a whole request.
pub(crate) fn is_signed_request<B>(request: &Request<B>) -> bool {
    is_signed(request.method(), request.uri(), request.headers())
}

impl Gateway {
    pub(crate) fn new(app: AppState) -> Self {
        let mut builder = S3ServiceBuilder::new(Operations::new(app.clone()));
        builder.set_auth(Keys::new(app.clone()));
        builder.set_access(Door::new(app.clone()));
        builder.set_validation(AnyName);
        let mut config = S3Config::default();
        config.xml_max_body_size = limits::S3_XML_BYTES_MAX;
        builder.set_config(Arc::new(StaticConfigProvider::new(Arc::new(config))));
        Self { app, service: builder.build() }
    }

    /// Answers a request that is signed.
    pub(crate) async fn answer(&self, request: Request<Body>) -> Response<Body> {
        let (head, body) = request.into_parts();
        let address = client_address(&head.extensions);
        if let Some(address) = address
            && let Err(refused_by) = self.app.allowances.check_failures(address)
        {
            return said(refused(&ApiError::rate_limited(&refused_by)));
        }
        if let Err(refusal) = check(&head) {
            return said(refusal);
        }
        let body = match framed(&head.headers, body) {
            Ok(body) => body,
            Err(refusal) => return said(refusal),
        };
        let answer = match self.service.call(Request::from_parts(head, body)).await {
            Ok(answer) => answer,
            Err(error) => {
                let error: s3s::StdError = error.into();
                return said(refused(&ApiError::internal(error.to_string())));
            }
        };
        if is_wrong_secret(&answer) {
            self.app.measures.note_auth_failure(AuthFailure::Key);
            if let Some(address) = address {
                self.app.allowances.note_failure(address);
            }
        }
        let mut answer = answer.map(Body::new);
        let headers = answer.headers_mut();
        if !headers.contains_key(header::X_CONTENT_TYPE_OPTIONS) {
            let nosniff = HeaderValue::from_static("nosniff");
            headers.insert(header::X_CONTENT_TYPE_OPTIONS, nosniff);
            headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        }
        answer
    }
}

/// Refuses what `s3s` would take, and we do not: Version 2 of the signature is weak, and forms are read before it is
/// known who sends them.
fn check(head: &Parts) -> Result<(), S3Error> {
    let query = head.uri.query().unwrap_or_default();
    let mut names = query.split('&').map(|pair| pair.split('=').next().unwrap_or(""));
    let decoded =
        |name: &str| percent_encoding::percent_decode_str(name).decode_utf8_lossy().into_owned();
    if names.any(|name| matches!(&*decoded(name), "Signature" | "AWSAccessKeyId")) {
        let message = "Sign with AWS Signature Version 4; Version 2 opens nothing here";
        return Err(refusal(S3ErrorCode::InvalidRequest, message));
    }
    let is_form = head.headers.get(header::CONTENT_TYPE).is_some_and(|value| {
        value.as_bytes().to_ascii_lowercase().starts_with(b"multipart/form-data")
    });
    if head.method == Method::POST && is_form {
        let message = "Forms are not taken here: PUT the file, or use a presigned upload";
        return Err(refusal(S3ErrorCode::NotImplemented, message));
    }
    Ok(())
}

/// The body, as far as it may be handed on before anything is known about it.
fn framed(headers: &HeaderMap, body: Body) -> Result<s3s::Body, S3Error> {
    // How large a file may be is decided where it is read, without its framing.
    let paced = RequestBody::new(headers, body, BodyLimits::new(u64::MAX));
    let paced = paced.map_err(|error| refused(&error))?;
    let sent = headers.get("x-amz-content-sha256").map(HeaderValue::as_bytes).unwrap_or_default();
    if !sent.starts_with(b"STREAMING-") {
        return Ok(s3s::Body::http_body_unsync(paced));
    }
    let chunks =
        if sent.starts_with(b"STREAMING-UNSIGNED") { Chunks::Unsigned } else { Chunks::Signed };
    Ok(s3s::Body::http_body_unsync(Framed::new(paced, chunks)))
}

fn is_wrong_secret(answer: &s3s::HttpResponse) -> bool {
    if answer.status() != StatusCode::FORBIDDEN {
        return false;
    }
    let Some(body) = answer.body().bytes() else { return false };
    WRONG_SECRET.iter().any(|code| body.windows(code.len()).any(|at| at == *code))
}

/// An error, as XML.
fn said(error: S3Error) -> Response<Body> {
    match error.to_http_response() {
        Ok(answer) => answer.map(Body::new),
        Err(_) => {
            let mut answer = Response::new(Body::empty());
            *answer.status_mut() = StatusCode::INTERNAL_SERVER_ERROR;
            answer
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(method: &str, uri: &str, headers: &[(&'static str, &str)]) -> Parts {
        let mut request = Request::builder().method(method).uri(uri);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        request.body(()).unwrap().into_parts().0
    }

    #[test]
    fn only_what_is_signed_comes_here() {
        let signed = [("authorization", "AWS4-HMAC-SHA256 Credential=a")];
        let is_signed = |head: &Parts| is_signed(&head.method, &head.uri, &head.headers);
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
    fn an_older_signature_and_forms_are_refused_before_anything_is_read() {
        for uri in [
            "/b/x?X-Amz-Signature=a&Signature=b",
            "/b/x?X-Amz-Signature=a&%53ignature=b",
            "/b/x?X-Amz-Algorithm=a&AWSAccessKeyId=b",
        ] {
            assert!(check(&head("GET", uri, &[])).is_err(), "{uri}");
        }
        let form = [("content-type", "Multipart/Form-Data; boundary=a")];
        assert!(check(&head("POST", "/b?X-Amz-Signature=a", &form)).is_err());
        assert!(check(&head("PUT", "/b/x?X-Amz-Signature=a", &form)).is_ok());
        assert!(check(&head("POST", "/b?delete&X-Amz-Signature=a", &[])).is_ok());
    }
}
