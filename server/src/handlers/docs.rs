//! `/-/openapi.json`, and `/-/docs`, the API documentation page.
//!
//! Guarantees: both are embedded in the binary and need no network; the page runs no script but its own, regardless of
//! the names of users' files on the same origin. Non-goals: generation of the document (`openapi`).

use std::sync::LazyLock;

use axum::response::Response;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::header::{self, HeaderMap, HeaderValue};
use protocol::error::ApiError;
use protocol::response_headers::allow_any_origin;
use sha2::{Digest, Sha256};

use super::asset::StaticAsset;
use crate::embedded::embedded;

/// Committed OpenAPI document. A test compares it with the code.
pub(crate) static DOCUMENT: LazyLock<String> = LazyLock::new(|| embedded!("openapi.json").text());
const PAGE: &str = include_str!("../../assets/docs/page.html");
const STYLE: &str = include_str!("../../assets/docs/style.css");
const SCRIPT: &str = include_str!("../../assets/docs/script.mjs");

static DOCUMENT_ASSET: LazyLock<StaticAsset> = LazyLock::new(|| {
    let policy = HeaderValue::from_static("default-src 'none'; sandbox");
    asset(DOCUMENT.clone(), "application/json", policy)
});

static PAGE_ASSET: LazyLock<StaticAsset> = LazyLock::new(|| {
    let page = PAGE.replace("/* style */", STYLE).replace("/* script */", SCRIPT);
    // A policy that is not a valid header value falls back to one that runs nothing.
    let policy = HeaderValue::from_str(&policy(STYLE, SCRIPT));
    let policy = policy.unwrap_or(HeaderValue::from_static("default-src 'none'"));
    asset(page, "text/html; charset=utf-8", policy)
});

/// Creates an asset that pages of every origin may load, and that caches revalidate each time.
fn asset(text: String, content_type: &'static str, policy: HeaderValue) -> StaticAsset {
    let headers = [
        (header::CACHE_CONTROL, HeaderValue::from_static("no-cache")),
        (header::CONTENT_SECURITY_POLICY, policy),
    ];
    StaticAsset::new(text, content_type, headers)
}

fn answer(asset: &StaticAsset, headers: &HeaderMap) -> Result<Response, ApiError> {
    let mut response = asset.respond(headers)?;
    allow_any_origin(response.headers_mut());
    Ok(response)
}

/// Returns the OpenAPI document.
#[utoipa::path(
    get,
    path = "/-/openapi.json",
    operation_id = "openapi",
    tag = "Server",
    security(()),
    responses(
        (status = OK, description = "OpenAPI 3.1 document.", body = serde_json::Value),
        (status = NOT_MODIFIED, description = "Not modified."),
        (status = PRECONDITION_FAILED, description = "`precondition_failed`."),
    )
)]
pub async fn openapi(headers: HeaderMap) -> Result<Response, ApiError> {
    answer(&DOCUMENT_ASSET, &headers)
}

/// Returns the API documentation page.
#[utoipa::path(
    get,
    path = "/-/docs",
    operation_id = "docs",
    tag = "Server",
    security(()),
    responses(
        (status = OK, description = "HTML page.", body = String, content_type = "text/html; charset=utf-8"),
        (status = NOT_MODIFIED, description = "Not modified."),
        (status = PRECONDITION_FAILED, description = "`precondition_failed`."),
    )
)]
pub async fn page(headers: HeaderMap) -> Result<Response, ApiError> {
    answer(&PAGE_ASSET, &headers)
}

/// Returns a policy that allows exactly this style and this script: other files of the same origin are user uploads.
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
