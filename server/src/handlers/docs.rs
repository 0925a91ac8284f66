//! `/-/openapi.json`, and `/-/docs`, which shows it.
//!
//! Promises: both are part of the binary and need no network; the page runs no script but its own, however anybody's
//! files of the same origin are called. Never here: how the document is made, which `openapi` knows.

use std::sync::LazyLock;

use axum::body::Body;
use axum::response::Response;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::header::{self, HeaderMap, HeaderValue};
use http::{Method, StatusCode};
use sha2::{Digest, Sha256};

use crate::conditional::{Outcome, Validators, evaluate};
use crate::delivery_headers::allow_every_origin;
use crate::error::ApiError;

/// The committed document. A test holds it together with the code.
const DOCUMENT: &str = include_str!("../../openapi.json");
const PAGE: &str = include_str!("../../assets/docs/page.html");
const STYLE: &str = include_str!("../../assets/docs/style.css");
const SCRIPT: &str = include_str!("../../assets/docs/script.mjs");

/// Something of the binary, with what tells its versions apart.
struct Asset {
    body: Bytes,
    etag: String,
    content_type: &'static str,
    policy: String,
}

static DOCUMENT_ASSET: LazyLock<Asset> = LazyLock::new(|| {
    let policy = "default-src 'none'; sandbox".to_owned();
    Asset::new(DOCUMENT.to_owned(), "application/json", policy)
});

static PAGE_ASSET: LazyLock<Asset> = LazyLock::new(|| {
    let page = PAGE.replace("/* style */", STYLE).replace("/* script */", SCRIPT);
    Asset::new(page, "text/html; charset=utf-8", policy(STYLE, SCRIPT))
});

impl Asset {
    fn new(text: String, content_type: &'static str, policy: String) -> Self {
        let hash = Sha256::digest(text.as_bytes());
        let etag = hash.iter().take(16).map(|byte| format!("{byte:02x}")).collect();
        Self { body: text.into(), etag, content_type, policy }
    }

    /// The answer to a GET with these headers.
    fn answer(&self, headers: &HeaderMap) -> Result<Response, ApiError> {
        let validators = Validators::without_date(&self.etag);
        let status = match evaluate(&Method::GET, headers, Some(&validators)) {
            Outcome::PreconditionFailed => return Err(ApiError::precondition_failed()),
            Outcome::NotModified => StatusCode::NOT_MODIFIED,
            Outcome::Proceed { .. } => StatusCode::OK,
        };
        let mut response = Response::new(Body::empty());
        *response.status_mut() = status;
        let answered = response.headers_mut();
        allow_every_origin(answered);
        answered.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
        answered.extend(validators.etag_header().map(|etag| (header::ETAG, etag)));
        if status == StatusCode::OK {
            answered.insert(header::CONTENT_TYPE, HeaderValue::from_static(self.content_type));
            answered.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
            answered.insert(header::REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
            let policy = HeaderValue::from_str(&self.policy);
            answered.extend(policy.map(|policy| (header::CONTENT_SECURITY_POLICY, policy)));
            *response.body_mut() = Body::from(self.body.clone());
        }
        Ok(response)
    }
}

/// Sends this document.
#[utoipa::path(
    get,
    path = "/-/openapi.json",
    operation_id = "openapi",
    tag = "Server",
    security(()),
    responses(
        (status = OK, description = "OpenAPI 3.1.", body = serde_json::Value),
        (status = NOT_MODIFIED, description = "The client has it."),
        (status = PRECONDITION_FAILED, description = "`precondition_failed`."),
    )
)]
pub async fn openapi(headers: HeaderMap) -> Result<Response, ApiError> {
    DOCUMENT_ASSET.answer(&headers)
}

/// Sends a page that shows this document.
#[utoipa::path(
    get,
    path = "/-/docs",
    operation_id = "docs",
    tag = "Server",
    security(()),
    responses(
        (status = OK, description = "The page.", body = String, content_type = "text/html; charset=utf-8"),
        (status = NOT_MODIFIED, description = "The client has it."),
        (status = PRECONDITION_FAILED, description = "`precondition_failed`."),
    )
)]
pub async fn page(headers: HeaderMap) -> Result<Response, ApiError> {
    PAGE_ASSET.answer(&headers)
}

/// Allows exactly this style and this script: files of the same origin are anybody's.
fn policy(style: &str, script: &str) -> String {
    let hash = |text: &str| STANDARD.encode(Sha256::digest(text.as_bytes()));
    format!(
        "default-src 'none'; script-src 'sha256-{}'; style-src 'sha256-{}'; connect-src 'self'; img-src data:; \
         base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; \
         trusted-types 'none'",
        hash(script),
        hash(style)
    )
}
