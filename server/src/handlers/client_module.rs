//! `/-/client.js`: JavaScript client of the API, for pages of every origin, and its types.
//!
//! Guarantees: both are embedded in the binary; the content of a versioned URL never changes, since its version is a
//! hash of the content. Non-goals: the client (`server/client`, whose build output is committed).

use std::sync::LazyLock;

use axum::response::Response;
use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use protocol::error::ApiError;
use protocol::response_headers::allow_any_origin;
use service::request_context::Path;

use super::asset::{FOREVER, StaticAsset, hash};
use crate::embedded::{EmbeddedText, embedded};

const SCRIPT: EmbeddedText = embedded!("client/dist/client.js");
const TYPES: EmbeddedText = embedded!("client/dist/client.d.ts");
/// URL of the types, for Deno and editors.
const TYPES_HEADER: (HeaderName, HeaderValue) =
    (HeaderName::from_static("x-typescript-types"), HeaderValue::from_static("/-/client.d.ts"));
/// Allows pages under `Cross-Origin-Embedder-Policy` to load the module.
const ANY_ORIGIN_MAY_EMBED: (HeaderName, HeaderValue) = (
    HeaderName::from_static("cross-origin-resource-policy"),
    HeaderValue::from_static("cross-origin"),
);

static VERSION: LazyLock<String> = LazyLock::new(|| hash(&[SCRIPT.text().as_bytes()]));
static SCRIPT_ASSET: LazyLock<StaticAsset> = LazyLock::new(|| {
    let headers = [TYPES_HEADER, ANY_ORIGIN_MAY_EMBED];
    StaticAsset::new(SCRIPT.text(), "text/javascript; charset=utf-8", headers)
});
static TYPES_ASSET: LazyLock<StaticAsset> = LazyLock::new(|| {
    StaticAsset::new(TYPES.text(), "application/typescript; charset=utf-8", [ANY_ORIGIN_MAY_EMBED])
});

fn respond(
    asset: &StaticAsset,
    headers: &HeaderMap,
    cache_control: &'static str,
) -> Result<Response, ApiError> {
    let mut response = asset.respond(headers)?;
    let sent = response.headers_mut();
    sent.insert(header::CACHE_CONTROL, HeaderValue::from_static(cache_control));
    allow_any_origin(sent);
    Ok(response)
}

/// Returns the JavaScript client, an ES module. `Content-Location` is its versioned URL.
#[utoipa::path(
    get,
    path = "/-/client.js",
    operation_id = "clientModule",
    tag = "Server",
    security(()),
    responses(
        (status = OK, description = "ES module.", body = String, content_type = "text/javascript; charset=utf-8"),
        (status = NOT_MODIFIED, description = "Not modified."),
        (status = PRECONDITION_FAILED, description = "`precondition_failed`."),
    )
)]
pub async fn script(headers: HeaderMap) -> Result<Response, ApiError> {
    let mut response = respond(&SCRIPT_ASSET, &headers, "no-cache")?;
    let versioned = HeaderValue::from_str(&format!("/-/client/{}/client.js", *VERSION));
    response.headers_mut().extend(versioned.map(|url| (header::CONTENT_LOCATION, url)));
    Ok(response)
}

/// Returns one version of the JavaScript client, which never changes.
#[utoipa::path(
    get,
    path = "/-/client/{version}/client.js",
    operation_id = "versionedClientModule",
    tag = "Server",
    security(()),
    params(("version" = String, Path, description = "Hash of the module, as in `Content-Location` of `/-/client.js`.")),
    responses(
        (status = OK, description = "ES module.", body = String, content_type = "text/javascript; charset=utf-8"),
        (status = NOT_MODIFIED, description = "Not modified."),
        (status = PRECONDITION_FAILED, description = "`precondition_failed`."),
    )
)]
pub async fn versioned_script(
    Path(version): Path<String>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    if version != *VERSION {
        return Err(ApiError::not_found());
    }
    respond(&SCRIPT_ASSET, &headers, FOREVER)
}

/// Returns the TypeScript types of the client.
#[utoipa::path(
    get,
    path = "/-/client.d.ts",
    operation_id = "clientTypes",
    tag = "Server",
    security(()),
    responses(
        (status = OK, description = "Types.", body = String, content_type = "application/typescript; charset=utf-8"),
        (status = NOT_MODIFIED, description = "Not modified."),
        (status = PRECONDITION_FAILED, description = "`precondition_failed`."),
    )
)]
pub async fn types(headers: HeaderMap) -> Result<Response, ApiError> {
    respond(&TYPES_ASSET, &headers, "no-cache")
}
