//! CORS of buckets with rules or allowed origins: preflights, and the headers of every response about such a bucket.
//!
//! Guarantees: a response names an origin only if a rule allows the origin and the method of the request; credentials
//! of browsers are never allowed. Non-goals: the default headers (`protocol::response_headers`).

use std::sync::Arc;

use bytes::Bytes;
use catalog::{Bucket, CorsOrigins, CorsRule, rule_for};
use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use http::request::Parts;
use http::{Method, Response};
use protocol::error::ApiError;
use protocol::response_headers::{allow_no_origin, restrict_origins};

/// CORS headers of a response.
pub enum CorsHeaders {
    /// Default headers, which the response has already.
    Default,
    /// Headers for the origins that the bucket allows, of a request with this `Origin`.
    AllowedOrigins(Arc<Bucket>, Option<HeaderValue>),
    /// Headers of the bucket's rules.
    Rules(Box<CorsRequest>),
}

impl CorsHeaders {
    /// Returns the CORS headers of the response to a request about a bucket. Errors about a bucket count as its
    /// responses. `is_delivery`: allowed origins apply to deliveries and preflights only.
    pub fn of(request: &Parts, bucket: Option<&Arc<Bucket>>, is_delivery: bool) -> Self {
        let Some(bucket) = bucket else { return Self::Default };
        if !bucket.cors_rules.is_empty() {
            return Self::Rules(Box::new(CorsRequest::new(request, bucket.clone())));
        }
        let is_restricted = bucket.cors_origins != CorsOrigins::Any
            && (is_delivery || request.method == Method::OPTIONS);
        match is_restricted {
            true => {
                let origin = request.headers.get(header::ORIGIN).cloned();
                Self::AllowedOrigins(bucket.clone(), origin)
            }
            false => Self::Default,
        }
    }

    /// Writes the headers, replacing the default ones.
    pub fn write(&self, headers: &mut HeaderMap) {
        match self {
            Self::Default => {}
            Self::AllowedOrigins(bucket, origin) => {
                let is_allowed = |origin: &str| bucket.cors_origins.allow(origin);
                restrict_origins(headers, is_allowed, origin.as_ref());
            }
            Self::Rules(request) => request.write(headers),
        }
    }
}

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
    fn new(request: &Parts, bucket: Arc<Bucket>) -> Self {
        let header = |name: HeaderName| request.headers.get(name).cloned();
        let is_preflight = request.method == Method::OPTIONS;
        let (method, headers) = match is_preflight {
            true => (
                header(header::ACCESS_CONTROL_REQUEST_METHOD),
                header(header::ACCESS_CONTROL_REQUEST_HEADERS),
            ),
            false => (HeaderValue::from_str(request.method.as_str()).ok(), None),
        };
        Self { bucket, origin: header(header::ORIGIN), method, headers, is_preflight }
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
            return Err(ApiError::incomplete_preflight());
        }
        let message = "No CORS rule of the bucket allows this origin, method and headers";
        self.allowed().ok_or_else(|| ApiError::forbidden(message))?;
        Ok(Response::new(Bytes::new()))
    }

    /// Writes the headers of the matching rule.
    fn write(&self, headers: &mut HeaderMap) {
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
