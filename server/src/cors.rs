//! CORS of buckets with rules: preflights, and the headers of every response about such a bucket.
//!
//! Guarantees: a response names an origin only if a rule allows the origin and the method of the request; credentials
//! of browsers are never allowed. Non-goals: buckets without rules (`protocol::response_headers`).

use std::sync::Arc;

use bytes::Bytes;
use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use http::request::Parts;
use http::{Method, Response};
use protocol::error::ApiError;
use protocol::response_headers::allow_no_origin;

use catalog::{Bucket, CorsRule, rule_for};

/// Request data that decides which origins may read the response about a bucket with CORS rules.
pub struct CorsRequest {
    bucket: Arc<Bucket>,
    origin: Option<HeaderValue>,
    /// Request method, or the one that a preflight asks for.
    method: Option<HeaderValue>,
    /// Headers that a preflight asks for.
    headers: Option<HeaderValue>,
    is_preflight: bool,
}

impl CorsRequest {
    /// Reads the CORS data of a request about a bucket; `None` if the bucket has no CORS rules.
    pub fn of(request: &Parts, bucket: Option<&Arc<Bucket>>) -> Option<Self> {
        let bucket = bucket.filter(|bucket| !bucket.cors_rules.is_empty())?.clone();
        let header = |name: HeaderName| request.headers.get(name).cloned();
        let is_preflight = request.method == Method::OPTIONS;
        let (method, headers) = match is_preflight {
            true => (
                header(header::ACCESS_CONTROL_REQUEST_METHOD),
                header(header::ACCESS_CONTROL_REQUEST_HEADERS),
            ),
            false => (HeaderValue::from_str(request.method.as_str()).ok(), None),
        };
        Some(Self { bucket, origin: header(header::ORIGIN), method, headers, is_preflight })
    }

    /// Returns the matching rule and the origin to send.
    fn allowed(&self) -> Option<(&CorsRule, &str)> {
        let origin = self.origin.as_ref()?.to_str().ok()?;
        let method = self.method.as_ref()?.to_str().ok()?;
        let headers = self.headers.as_ref().map_or(Ok(""), HeaderValue::to_str).ok()?;
        let headers = headers.split(',').map(str::trim).filter(|name| !name.is_empty());
        let headers: Vec<_> = headers.collect();
        let rule = rule_for(&self.bucket.cors_rules, origin, method, &headers)?;
        Some((rule, rule.origin_for(origin)?))
    }

    /// Returns the preflight response, without its headers.
    pub fn preflight(&self) -> Result<Response<Bytes>, ApiError> {
        if !self.is_preflight || self.origin.is_none() || self.method.is_none() {
            let message = "A preflight request requires the headers Origin and \
                Access-Control-Request-Method";
            return Err(ApiError::bad_request(message));
        }
        let message = "No CORS rule of the bucket allows this origin, method and headers";
        self.allowed().ok_or_else(|| ApiError::forbidden(message))?;
        Ok(Response::new(Bytes::new()))
    }

    /// Writes the headers of the matching rule, replacing the default ones.
    pub fn write(&self, headers: &mut HeaderMap) {
        allow_no_origin(headers);
        headers.append(header::VARY, HeaderValue::from_static("origin"));
        let Some((rule, origin)) = self.allowed() else { return };
        let mut put = |name: HeaderName, value: &str| {
            headers.extend(HeaderValue::from_str(value).ok().map(|value| (name, value)));
        };
        put(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
        put(header::ACCESS_CONTROL_ALLOW_METHODS, &rule.methods.join(", "));
        if !rule.exposed.is_empty() {
            put(header::ACCESS_CONTROL_EXPOSE_HEADERS, &rule.exposed.join(", "));
        }
        if let Some(seconds) = rule.max_age_seconds.filter(|_| self.is_preflight) {
            put(header::ACCESS_CONTROL_MAX_AGE, &seconds.to_string());
        }
        if let Some(asked) = &self.headers {
            headers.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, asked.clone());
        }
    }
}
