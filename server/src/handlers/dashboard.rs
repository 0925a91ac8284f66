//! Dashboard: a single page for all views, and its assets.
//!
//! The page is the same at the URL of every view; its script examines the URL. Guarantees: everything is embedded in
//! the binary; the page runs only scripts with the nonce of this response and those they import, regardless of the
//! names of users' files on the same origin; the URL of an asset never changes its content. Non-goals: content of the
//! views, which the modules in the assets folder define, and the session.

use std::sync::LazyLock;

use axum::body::Body;
use axum::extract::State;
use axum::response::Response;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use http::{Method, StatusCode};
use protocol::error::ApiError;
use service::path_params::PathParam;
use service::request_context::Path;
use service::state::AppState;

use super::asset::{FOREVER, StaticAsset, hash};
use crate::embedded::{EmbeddedText, embedded};

/// Page template with placeholders.
const SHELL: &str = include_str!("../../assets/dashboard/shell.html");

/// Lists names and contents of files of the dashboard's folder.
macro_rules! files {
    ($($name:literal,)*) => {
        &[$(($name, embedded!("assets/dashboard/", $name))),*]
    };
}

/// Modules of the file views, which the page preloads. A test compares both tables with the folder.
const FIRST: &[(&str, EmbeddedText)] = files![
    "actions.mjs",
    "address.mjs",
    "api.mjs",
    "app.mjs",
    "browser.mjs",
    "collect.mjs",
    "copy.mjs",
    "dialog.mjs",
    "dom.mjs",
    "frame.mjs",
    "gestures.mjs",
    "home.mjs",
    "icons.mjs",
    "kinds.mjs",
    "later.mjs",
    "listing.mjs",
    "live.mjs",
    "lost.mjs",
    "order.mjs",
    "preview.mjs",
    "queue.mjs",
    "router.mjs",
    "rows.mjs",
    "search.mjs",
    "selection.mjs",
    "shortcuts.mjs",
    "style.css",
    "text.mjs",
    "theme.mjs",
    "transfer.mjs",
    "uploads.mjs",
    "viewport.mjs",
];

/// Modules of the other views, which are imported when one of them is opened.
const LATER: &[(&str, EmbeddedText)] = files![
    "account.mjs",
    "accounts.mjs",
    "audit.mjs",
    "connect.mjs",
    "copy-forms.mjs",
    "deleted.mjs",
    "entrance.mjs",
    "file-menu.mjs",
    "folder-picker.mjs",
    "health.mjs",
    "help.mjs",
    "importing.mjs",
    "info.mjs",
    "jobs.mjs",
    "keys.mjs",
    "lifecycle.mjs",
    "links.mjs",
    "manage.mjs",
    "menu.mjs",
    "more.mjs",
    "organisations.mjs",
    "overview.mjs",
    "pages.css",
    "parts.mjs",
    "playground.mjs",
    "plot.mjs",
    "programs.mjs",
    "relocate.mjs",
    "search-all.mjs",
    "series.mjs",
    "server.mjs",
    "settings.mjs",
    "share.mjs",
    "sizes.mjs",
    "snippet.mjs",
    "storage.mjs",
    "usage.mjs",
    "webhooks.mjs",
];

/// First segments of view URLs, after `/-/`.
const VIEWS: &[&str] = &[
    "account",
    "accounts",
    "audit",
    "connect",
    "deleted",
    "files",
    "invitation",
    "keys",
    "links",
    "organisations",
    "playground",
    "search",
    "server",
    "set-up",
    "settings",
    "sign-in",
    "storage",
    "usage",
    "webhooks",
];

/// Prevents pages of other origins from loading the dashboard's resources.
const RESOURCE_POLICY: HeaderName = HeaderName::from_static("cross-origin-resource-policy");
const OPENER_POLICY: HeaderName = HeaderName::from_static("cross-origin-opener-policy");
const SAME_ORIGIN: HeaderValue = HeaderValue::from_static("same-origin");

/// Assets of one build, under one version: modules import each other by relative URLs.
struct AssetBundle {
    version: String,
    files: Vec<(&'static str, StaticAsset)>,
    shell: String,
}

static BUNDLE: LazyLock<AssetBundle> = LazyLock::new(|| {
    let files = FIRST.iter().chain(LATER).map(|(name, file)| (*name, file.text()));
    let files: Vec<(&str, String)> = files.collect();
    let texts = files.iter().flat_map(|(name, text)| [name.as_bytes(), text.as_bytes()]);
    let version = hash(&texts.collect::<Vec<_>>());
    let assets = files.into_iter().map(|(name, text)| {
        let headers = [
            (header::CACHE_CONTROL, HeaderValue::from_static(FOREVER)),
            (RESOURCE_POLICY, SAME_ORIGIN),
        ];
        let text = if name.ends_with(".mjs") { bare(&text) } else { text };
        (name, StaticAsset::new(text, content_type(name), headers))
    });
    // Preloaded in parallel, instead of one after the other as imports resolve.
    let modules = FIRST.iter().filter(|(name, _)| name.ends_with(".mjs")).map(|(name, _)| {
        format!("<link rel=\"modulepreload\" nonce=\"@nonce@\" href=\"@assets@/{name}\">\n")
    });
    let shell = SHELL.replace("@modules@\n", &modules.collect::<String>());
    let shell = shell.replace("@assets@", &format!("/-/assets/{version}"));
    AssetBundle { files: assets.collect(), shell, version }
});

/// Redirects to the dashboard.
#[utoipa::path(
    get,
    path = "/",
    operation_id = "entrance",
    tag = "Server",
    security(()),
    responses((status = FOUND, description = "Redirect to the dashboard, `/-/`."))
)]
pub async fn entrance() -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::FOUND;
    let headers = response.headers_mut();
    headers.insert(header::LOCATION, HeaderValue::from_static("/-/"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

/// Returns the dashboard page.
#[utoipa::path(
    get,
    path = "/-/",
    operation_id = "dashboard",
    tag = "Server",
    security(()),
    responses(
        (status = OK, description = "HTML page.", body = String, content_type = "text/html; charset=utf-8"),
    )
)]
pub async fn shell(State(app): State<AppState>) -> Result<Response, ApiError> {
    let mut bytes = [0; 18];
    app.rng.fill(&mut bytes);
    let nonce = URL_SAFE_NO_PAD.encode(bytes);
    let page = BUNDLE.shell.replace("@nonce@", &nonce);
    let page = page.replace("@public-url@", &attribute(app.public_url.as_str()));
    let policy = HeaderValue::from_str(&policy(&nonce));
    let policy = policy.map_err(|error| ApiError::internal(format!("the policy: {error}")))?;
    let mut response = Response::new(Body::from(page));
    let headers = response.headers_mut();
    let mut put = |name, value| headers.insert(name, HeaderValue::from_static(value));
    put(header::CONTENT_TYPE, "text/html; charset=utf-8");
    put(header::CACHE_CONTROL, "no-store");
    put(header::X_CONTENT_TYPE_OPTIONS, "nosniff");
    put(header::REFERRER_POLICY, "no-referrer");
    headers.insert(header::CONTENT_SECURITY_POLICY, policy);
    headers.insert(RESOURCE_POLICY, SAME_ORIGIN);
    headers.insert(OPENER_POLICY, SAME_ORIGIN);
    Ok(response)
}

/// Name of a view in the path. Not decoded, so that a view has a single URL.
pub struct View;

impl PathParam for View {
    fn parse(text: &str) -> Result<Self, ApiError> {
        VIEWS.contains(&text).then_some(Self).ok_or_else(ApiError::not_found)
    }

    fn parse_encoded(sent: &str) -> Result<Self, ApiError> {
        Self::parse(sent)
    }
}

/// Returns the page at the URL of a view; 404 at any other.
pub async fn view(
    state: State<AppState>,
    Path(View): Path<View>,
    method: Method,
) -> Result<Response, ApiError> {
    match method {
        Method::GET | Method::HEAD => shell(state).await,
        _ => Err(ApiError::method_not_allowed("GET, HEAD, OPTIONS")),
    }
}

/// Returns a dashboard asset.
#[utoipa::path(
    get,
    path = "/-/assets/{version}/{name}",
    operation_id = "dashboardAsset",
    tag = "Server",
    security(()),
    params(
        ("version" = String, Path, description = "Build id of the assets, as in the dashboard page."),
        ("name" = String, Path, description = "Asset file name."),
    ),
    responses(
        (status = OK, description = "File content.", content_type = "*/*"),
        (status = NOT_MODIFIED, description = "Not modified."),
        (status = PRECONDITION_FAILED, description = "`precondition_failed`."),
    )
)]
pub async fn asset(
    Path((version, name)): Path<(String, String)>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let bundle = &*BUNDLE;
    let found = bundle.files.iter().find(|(it, _)| *it == name && bundle.version == version);
    found.ok_or_else(ApiError::not_found)?.1.respond(&headers)
}

/// Returns the Content-Security-Policy of the page. Users' files are on the same origin, so no script is allowed by its
/// URL.
fn policy(nonce: &str) -> String {
    format!(
        "default-src 'none'; script-src 'nonce-{nonce}' 'strict-dynamic'; style-src 'nonce-{nonce}'; \
         img-src 'self' blob: data:; media-src 'self' blob:; frame-src 'self' blob:; connect-src 'self'; \
         form-action 'none'; base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; \
         trusted-types 'none'"
    )
}

fn content_type(name: &str) -> &'static str {
    match name.rsplit('.').next() {
        Some("mjs") => "text/javascript; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        _ => "application/octet-stream",
    }
}

/// Removes whole-line comments and indentation from a module, a fifth of its size. A test checks that no module has a
/// multi-line string, so every line that begins like a comment is one.
pub(super) fn bare(text: &str) -> String {
    let mut is_inside = false;
    let lines = text.lines().map(str::trim).filter(|line| {
        let begins = line.starts_with("/**");
        let ends = line.ends_with("*/");
        let is_comment =
            is_inside || line.starts_with("//") || (begins && !line[3..].contains("*/"));
        is_inside = (is_inside || begins) && is_comment && !ends;
        // A comment that ends within its line covers the whole line only if nothing follows it.
        !(is_comment || (begins && line.find("*/").is_some_and(|at| at + 2 == line.len())))
    });
    lines.flat_map(|line| [line, "\n"]).collect()
}

/// Escapes text for a double-quoted attribute.
fn attribute(text: &str) -> String {
    text.replace('&', "&amp;").replace('"', "&quot;").replace('<', "&lt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn script_comment_lines_are_stripped() {
        let text = "// Head.\n\n/** One. */\nconst a = 1; // stays\n  /**\n   * Two. @param {x} y\n   */\n  f(a);\n\
                    /** @type {any} */ (b).c();\n/** @type {any} */\nlet d;\n";
        let expected = "\nconst a = 1; // stays\nf(a);\n/** @type {any} */ (b).c();\nlet d;\n";
        assert_eq!(bare(text), expected);
    }

    #[test]
    fn module_template_literals_are_single_line() {
        let files = FIRST.iter().chain(LATER);
        for (name, text) in files.filter(|(name, _)| name.ends_with(".mjs")) {
            for (at, line) in text.text().lines().enumerate() {
                let is_even = line.matches('`').count() % 2 == 0;
                assert!(is_even || line.trim_start().starts_with(['/', '*']), "{name}:{}", at + 1);
            }
        }
    }

    #[test]
    fn html_attribute_is_escaped() {
        assert_eq!(attribute("a\"><b>&"), "a&quot;>&lt;b>&amp;");
    }
}
