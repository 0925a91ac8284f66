//! S3 gateway: for rclone, aws-cli, restic and other S3 clients, on the same listener as the API.
//!
//! Handles requests that are signed with AWS Signature Version 4, in a header or in the URL. `s3s` verifies the
//! signature, parses the request and writes XML; authorization and the operations themselves use the same code as the
//! API.
//!
//! ```text
//! signed  virtual_host   what a signature has to cover, and where the bucket is named
//! access  parameters     authentication, rate limits, and supported parameters of each operation
//! operations             table of operations
//! buckets  listing  objects  reads  deletions  copying  multipart  versioning                operations
//! tagging  object_lock  acl  policies  public_access_block  lifecycle  cors  configuration
//! conditions  checksums  stored  rewriting  incoming  framing                      shared parts
//! form_upload  form_signature  post_policy                              browser uploads by HTML forms
//! errors  error_body     conversion to S3 errors
//! ```
//!
//! Guarantees: nothing of a body is read before the signature of its head is verified, and no body is buffered in
//! memory. Non-goals: unsigned requests, which are delivered.

mod access;
mod acl;
mod buckets;
mod checksums;
mod conditions;
mod configuration;
mod copying;
mod cors;
mod deletions;
mod encryption;
mod error_body;
mod errors;
mod form_signature;
mod form_upload;
mod framing;
mod incoming;
mod lifecycle;
mod limits;
mod listing;
mod multipart;
mod object_lock;
mod objects;
mod operations;
mod parameters;
mod policies;
mod post_policy;
mod public_access_block;
mod reads;
mod rewriting;
mod signed;
mod stored;
mod tagging;
mod versioning;
mod virtual_host;

use std::net::IpAddr;
use std::sync::Arc;

use axum::body::Body;
use axum::response::IntoResponse;
use bytes::Bytes;
use http::header::{self, HeaderMap, HeaderValue};
use http::request::Parts;
use http::{Request, Response, StatusCode};
use protocol::error::ApiError;
use protocol::request_body::{BodyLimits, RequestBody};
use s3s::S3Error;
use s3s::config::{S3Config, StaticConfigProvider};
use s3s::service::{S3Service, S3ServiceBuilder};
use s3s::validation::NameValidation;
use service::own_pages::RequestOrigin;
use service::request_context::RoutedContext;
use service::state::AppState;
use usage::rejection::AuthFailure;

use self::access::{S3Authorizer, S3SecretProvider};
use self::errors::to_s3_error;
use self::form_upload::Rejected;
pub use self::form_upload::form_path;
use self::framing::{AwsChunkedBody, ChunkSigning};
use self::operations::Operations;
use self::reads::{Status, UnquotedEtag};
use self::signed::check;
pub use self::signed::is_signed_address;
use self::virtual_host::Hosts;
pub use self::virtual_host::path_of;

/// Error codes for a wrong secret, and for a missing key.
const WRONG_CODES: [&str; 2] = ["SignatureDoesNotMatch", "InvalidAccessKeyId"];
/// Start of an error body with one of these codes.
const WRONG_SECRET: [&[u8]; 2] = [b"<Code>SignatureDoesNotMatch<", b"<Code>InvalidAccessKeyId<"];

/// S3 gateway. Cheap to clone.
#[derive(Clone)]
pub struct S3Gateway {
    app: AppState,
    service: S3Service,
}

/// Accepts every bucket name; names are validated at their lookup.
struct AnyBucketName;

impl NameValidation for AnyBucketName {
    fn validate_bucket_name(&self, name: &str) -> bool {
        !name.is_empty()
    }
}

/// Returns the path of a request in path style, and its id.
fn path_and_id(head: &Parts) -> (String, String) {
    let context = RoutedContext::find(&head.extensions);
    context.map(|it| (it.gateway_path().to_owned(), it.id().to_string())).unwrap_or_default()
}

impl S3Gateway {
    /// Creates the gateway.
    pub fn new(app: AppState) -> Self {
        let mut builder = S3ServiceBuilder::new(Operations::new(app.clone()));
        builder.set_auth(S3SecretProvider::new(app.clone()));
        builder.set_access(S3Authorizer::new(app.clone()));
        builder.set_validation(AnyBucketName);
        builder.set_host(Hosts::new(app.clone()));
        let mut config = S3Config::default();
        config.xml_max_body_size = limits::S3_XML_BYTES_MAX;
        builder.set_config(Arc::new(StaticConfigProvider::new(Arc::new(config))));
        Self { app, service: builder.build() }
    }

    /// Handles a signed request.
    pub async fn handle(&self, request: Request<Body>) -> Response<Body> {
        let (head, body) = request.into_parts();
        let (path, request_id) = path_and_id(&head);
        let answer = self.answer_unnamed(head, body).await;
        completed(answer, &path, &request_id)
    }

    /// Handles a request that may be an S3 form.
    pub async fn answer_form(&self, request: Request<Body>) -> Response<Body> {
        let (head, body) = request.into_parts();
        let (path, request_id) = path_and_id(&head);
        let address = RoutedContext::client_ip(&head.extensions);
        let source = RequestOrigin::from_headers(&head.method, &head.headers, &head.uri);
        let bucket = path.trim_start_matches('/');
        let mut answer = match form_upload::post(&self.app, bucket, &head, body).await {
            Ok(stored) => stored.map(Answered::Whole),
            Err(Rejected::Native(error)) => return error.into_response(),
            Err(Rejected::S3(error)) => {
                let is_wrong = WRONG_CODES.contains(&error.code().as_str());
                // Any page can make a visitor's browser send an invalid form.
                let is_charged = is_wrong && source != RequestOrigin::CrossSite;
                let charged = if is_charged { self.charge(address) } else { Ok(()) };
                error_response(charged.err().unwrap_or(error))
            }
        };
        add_default_headers(answer.headers_mut());
        completed(answer, &path, &request_id)
    }

    /// Charges a wrong secret to the client address.
    fn charge(&self, address: Option<IpAddr>) -> Result<(), S3Error> {
        self.app.metrics.count_auth_failure(AuthFailure::Key);
        let Some(address) = address else { return Ok(()) };
        let charged = self.app.rate_limiter.take_failure(address);
        charged.map_err(|refused_by| to_s3_error(&refused_by.into()))
    }

    async fn answer_unnamed(&self, head: Parts, body: Body) -> Response<Answered> {
        let address = RoutedContext::client_ip(&head.extensions);
        if let Err(refusal) = check(&head) {
            return error_response(refusal);
        }
        let body = match framed(&head.headers, body) {
            Ok(body) => body,
            Err(refusal) => return error_response(refusal),
        };
        let answer = match self.service.call(Request::from_parts(head, body)).await {
            Ok(answer) => answer,
            Err(error) => {
                let error: s3s::StdError = error.into();
                return error_response(to_s3_error(&ApiError::internal(error.to_string())));
            }
        };
        if is_wrong_secret(&answer)
            && let Err(refusal) = self.charge(address)
        {
            return error_response(refusal);
        }
        let mut answer = answer.map(|body| match body.bytes() {
            Some(bytes) => Answered::Whole(bytes),
            None => Answered::Streamed(Body::new(body)),
        });
        if let Some(Status(status)) = answer.extensions_mut().remove::<Status>() {
            *answer.status_mut() = status;
        }
        if answer.extensions_mut().remove::<UnquotedEtag>().is_some() {
            answer.headers_mut().remove(header::CONTENT_LENGTH);
            answer = answer.map(Answered::with_unquoted_etag);
        }
        add_default_headers(answer.headers_mut());
        answer
    }
}

fn add_default_headers(headers: &mut HeaderMap) {
    if !headers.contains_key(header::X_CONTENT_TYPE_OPTIONS) {
        let nosniff = HeaderValue::from_static("nosniff");
        headers.insert(header::X_CONTENT_TYPE_OPTIONS, nosniff);
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    }
}

/// Adds the elements of an error body that `s3s` does not write, and the request id.
fn completed(answer: Response<Answered>, resource: &str, request_id: &str) -> Response<Body> {
    let (mut parts, body) = answer.into_parts();
    error_body::add_request_id(&mut parts.headers, request_id);
    let body = match body {
        Answered::Whole(bytes) => {
            match error_body::complete(parts.status, &bytes, resource, request_id) {
                Some(completed) => {
                    parts.headers.remove(header::CONTENT_LENGTH);
                    Body::from(completed)
                }
                None => Body::from(bytes),
            }
        }
        Answered::Streamed(body) => body,
    };
    Response::from_parts(parts, body)
}

/// Response body.
enum Answered {
    /// Body in memory; that of an error is completed.
    Whole(Bytes),
    Streamed(Body),
}

impl Answered {
    fn with_unquoted_etag(self) -> Self {
        let Self::Whole(bytes) = &self else { return self };
        let Ok(text) = std::str::from_utf8(bytes) else { return self };
        let Some((before, rest)) = text.split_once("<ETag>") else { return self };
        let Some((etag, after)) = rest.split_once("</ETag>") else { return self };
        let etag = etag.replace("&quot;", "").replace('"', "");
        Self::Whole(Bytes::from(format!("{before}<ETag>{etag}</ETag>{after}")))
    }
}

/// Wraps the body with the limits that apply before anything is known about it.
fn framed(headers: &HeaderMap, body: Body) -> Result<s3s::Body, S3Error> {
    // The size limit of a file applies where it is read, without its framing.
    let paced = RequestBody::new(headers, body, BodyLimits::new(u64::MAX));
    let paced = paced.map_err(|error| to_s3_error(&error))?;
    let sent = headers.get("x-amz-content-sha256").map(HeaderValue::as_bytes).unwrap_or_default();
    if !sent.starts_with(b"STREAMING-") {
        return Ok(s3s::Body::http_body_unsync(paced));
    }
    let chunks = if sent.starts_with(b"STREAMING-UNSIGNED") {
        ChunkSigning::Unsigned
    } else {
        ChunkSigning::Signed
    };
    Ok(s3s::Body::http_body_unsync(AwsChunkedBody::new(paced, chunks)))
}

fn is_wrong_secret(answer: &s3s::HttpResponse) -> bool {
    if answer.status() != StatusCode::FORBIDDEN {
        return false;
    }
    let Some(body) = answer.body().bytes() else { return false };
    WRONG_SECRET.iter().any(|code| body.windows(code.len()).any(|at| at == *code))
}

/// Returns an error as XML.
fn error_response(error: S3Error) -> Response<Answered> {
    match error.to_http_response() {
        Ok(answer) => answer.map(|body| Answered::Whole(body.bytes().unwrap_or_default())),
        Err(_) => {
            let mut answer = Response::new(Answered::Whole(Bytes::new()));
            *answer.status_mut() = StatusCode::INTERNAL_SERVER_ERROR;
            answer
        }
    }
}
