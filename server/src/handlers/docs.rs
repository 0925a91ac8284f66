//! `/-/openapi.json`, and `/-/docs`, the documentation pages with their search index.
//!
//! Guarantees: everything is embedded in the binary and needs no network; a page runs no script but its own, regardless
//! of the names of users' files on the same origin. Non-goals: generation of the document (`openapi`); content of the
//! pages (`build`, from `assets/docs`).

use std::collections::BTreeMap;
use std::sync::{LazyLock, OnceLock};

use axum::response::Response;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::StatusCode;
use http::header::{self, HeaderMap, HeaderValue};
use protocol::error::ApiError;
use protocol::preferences::names;
use protocol::response_headers::allow_any_origin;
use service::path_params::PathParam;
use service::request_context::Path;
use sha2::{Digest, Sha256};

use super::asset::StaticAsset;
use super::dashboard::bare;
use crate::embedded::embedded;

/// Committed OpenAPI document. A test compares it with the code.
pub(crate) static DOCUMENT: LazyLock<String> = LazyLock::new(|| embedded!("openapi.json").text());

static DOCUMENT_ASSET: LazyLock<StaticAsset> = LazyLock::new(|| json_asset(DOCUMENT.clone()));
static SEARCH_INDEX: LazyLock<StaticAsset> =
    LazyLock::new(|| json_asset(embedded!("docs/search.json").text()));

/// Path of the page that is sent in place of one that does not exist.
const MISSING: &str = "404";
/// Path of the search index, next to the pages.
const SEARCH: &str = "search.json";

/// All pages by their path below `/-/docs/`; the front page has an empty one.
static PAGES: LazyLock<DocumentationPages> = LazyLock::new(DocumentationPages::read);

struct DocumentationPages {
    style: String,
    theme: String,
    script: String,
    policy: HeaderValue,
    pages: BTreeMap<String, DocumentationPage>,
}

struct DocumentationPage {
    /// HTML with placeholders for style and scripts.
    template: String,
    /// Page with them, composed and compressed at its first request.
    asset: OnceLock<StaticAsset>,
}

impl DocumentationPages {
    fn read() -> Self {
        let style = embedded!("docs/style.css").text();
        let theme = embedded!("docs/theme.js").text();
        let script = bare(&embedded!("docs/script.mjs").text());
        // Written by the build script, so that it can be parsed.
        let pages: BTreeMap<String, String> =
            serde_json::from_str(&embedded!("docs/pages.json").text()).unwrap_or_default();
        let pages = pages
            .into_iter()
            .map(|(path, template)| (path, DocumentationPage { template, asset: OnceLock::new() }));
        let pages = pages.collect();
        // A policy that is not a valid header value falls back to one that runs nothing.
        let policy = HeaderValue::from_str(&policy(&style, &[&theme, &script]));
        let policy = policy.unwrap_or(HeaderValue::from_static("default-src 'none'"));
        Self { style, theme, script, policy, pages }
    }

    fn get(&self, path: &str) -> Result<&StaticAsset, ApiError> {
        let page = self.pages.get(path).ok_or_else(ApiError::not_found)?;
        Ok(page.asset.get_or_init(|| {
            let html = page.template.replace("@style@", &self.style);
            let html = html.replace("@theme@", &self.theme).replace("@script@", &self.script);
            asset(html, "text/html; charset=utf-8", self.policy.clone())
        }))
    }
}

fn json_asset(text: String) -> StaticAsset {
    asset(text, "application/json", HeaderValue::from_static("default-src 'none'; sandbox"))
}

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

/// Returns the front page of the documentation.
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
pub async fn front_page(headers: HeaderMap) -> Result<Response, ApiError> {
    answer(PAGES.get("")?, &headers)
}

/// Path of a page. Not decoded, so that a page has a single URL.
pub struct PagePath(String);

impl PathParam for PagePath {
    fn parse(text: &str) -> Result<Self, ApiError> {
        Ok(Self(text.to_owned()))
    }

    fn parse_encoded(sent: &str) -> Result<Self, ApiError> {
        Self::parse(sent)
    }
}

/// Returns a page of the documentation, or its search index.
#[utoipa::path(
    get,
    path = "/-/docs/{path}",
    operation_id = "docsPage",
    tag = "Server",
    security(()),
    params(
        ("path" = String, Path, description = "`search.json`, or a page such as `reference/files`."),
    ),
    responses(
        (status = OK, description = "HTML page, or JSON.", content_type = "*/*"),
        (status = NOT_MODIFIED, description = "Not modified."),
        (status = NOT_FOUND, description = "`not_found`; an HTML page if `Accept` includes `text/html`."),
        (status = PRECONDITION_FAILED, description = "`precondition_failed`."),
    )
)]
pub async fn page(
    Path(PagePath(path)): Path<PagePath>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    match PAGES.get(&path) {
        _ if path == SEARCH => answer(&SEARCH_INDEX, &headers),
        // The front page has one URL only.
        Ok(page) if path != MISSING && !path.is_empty() => answer(page, &headers),
        _ if names(&headers, header::ACCEPT, "text/html") => missing_page(&headers),
        _ => Err(ApiError::not_found()),
    }
}

fn missing_page(headers: &HeaderMap) -> Result<Response, ApiError> {
    let mut headers = headers.clone();
    // Conditions are about a page that exists.
    headers.remove(header::IF_MATCH);
    headers.remove(header::IF_NONE_MATCH);
    let mut response = answer(PAGES.get(MISSING)?, &headers)?;
    *response.status_mut() = StatusCode::NOT_FOUND;
    response.headers_mut().remove(header::ETAG);
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Ok(response)
}

/// Returns a policy that allows exactly this style and these scripts: other files of the same origin are user uploads.
fn policy(style: &str, scripts: &[&str]) -> String {
    let hash =
        |text: &str| format!("'sha256-{}'", STANDARD.encode(Sha256::digest(text.as_bytes())));
    let scripts: Vec<String> = scripts.iter().map(|script| hash(script)).collect();
    format!(
        "default-src 'none'; script-src {}; style-src {}; connect-src 'self'; img-src data:; \
         base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; \
         trusted-types 'none'",
        scripts.join(" "),
        hash(style)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documentation_pages_have_no_placeholder_left() {
        let pages = &*PAGES;
        assert!(pages.pages.len() > 20, "{}", pages.pages.len());
        for page in pages.pages.values() {
            let rest = page.template.replace("@style@", "").replace("@theme@", "");
            let rest = rest.replace("@script@", "");
            for name in ["@title@", "@contents@", "@sections@", "@text@"] {
                assert!(!rest.contains(name), "{name}");
            }
        }
    }

    #[test]
    fn documentation_links_lead_to_pages_and_sections() {
        let pages = &PAGES.pages;
        for (path, page) in pages {
            for link in page.template.split("href=\"").skip(1).filter_map(|it| it.split('"').next())
            {
                let own =
                    if path.is_empty() { "/-/docs".into() } else { format!("/-/docs/{path}") };
                let link = if link.starts_with('#') { format!("{own}{link}") } else { link.into() };
                let (target, section) = link.split_once('#').unwrap_or((&link, ""));
                let Some(target) = target.strip_prefix("/-/docs") else { continue };
                let found = pages.get(target.trim_start_matches('/'));
                let found = found.unwrap_or_else(|| panic!("{path}: there is no {link}"));
                let id = format!("id=\"{section}\"");
                assert!(section.is_empty() || found.template.contains(&id), "{path}: {link}");
            }
        }
    }
}
