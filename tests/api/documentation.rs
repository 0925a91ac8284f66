//! Documentation pages at `/-/docs`: what they run and load, caching, and that no operation is missing. Non-goals: the
//! examples (`tests/cli/guide_examples.rs`), and search and tabs, which need a browser (`tests/browser`).

use std::collections::BTreeSet;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use sha2::{Digest, Sha256};
use tests::{Reply, World};

const HTML: [(&str, &str); 1] = [("accept", "text/html,*/*")];

/// Returns the text between two others, each time.
fn between<'a>(page: &'a str, open: &str, close: &str) -> Vec<&'a str> {
    page.split(open).skip(1).filter_map(|rest| rest.split(close).next()).collect()
}

/// Checks that a page loads nothing, and that its policy allows its own style and scripts only.
fn check_policy(reply: &Reply, path: &str) {
    assert_eq!(reply.header("content-type"), "text/html; charset=utf-8", "{path}");
    assert_eq!(reply.header("x-content-type-options"), "nosniff", "{path}");
    let page = reply.text();
    let hash = |text: &str| format!("'sha256-{}'", STANDARD.encode(Sha256::digest(text)));
    let policy = reply.header("content-security-policy");
    let directive = |name: &str| {
        let found = policy.split("; ").find_map(|it| it.strip_prefix(name)?.strip_prefix(' '));
        found.unwrap_or_else(|| panic!("{name} is not in {policy}")).to_owned()
    };
    assert_eq!(directive("default-src"), "'none'");
    let theme = between(&page, "<script>", "</script>");
    let modules = between(&page, "<script type=\"module\">", "</script>");
    assert_eq!((theme.len(), modules.len(), page.matches("<script").count()), (1, 1, 2), "{path}");
    assert_eq!(directive("script-src"), format!("{} {}", hash(theme[0]), hash(modules[0])));
    assert_eq!(directive("style-src"), hash(between(&page, "<style>", "</style>")[0]));
    assert_eq!(directive("connect-src"), "'self'");
    assert_eq!(directive("require-trusted-types-for"), "'script'");
    assert_eq!(directive("frame-ancestors"), "'none'");
    // Examples are text, in which markup is escaped.
    for foreign in [
        "<img",
        "<iframe",
        "<object",
        "stylesheet",
        "@import",
        ": url(",
        "innerHTML",
        " style=",
        " onclick",
    ] {
        assert!(!page.contains(foreign), "{path}: {foreign}");
    }
}

#[tokio::test]
async fn documentation_pages_run_only_their_own_scripts() {
    let (world, _) = World::with_bucket(1);
    let anonymous = world.anonymous();
    let front = anonymous.get("/-/docs").await.text();
    let paths: BTreeSet<&str> = between(&front, "href=\"", "\"")
        .into_iter()
        .filter(|link| link.starts_with("/-/docs/") && !link.contains('#'))
        .collect();
    assert!(paths.len() > 25, "{paths:?}");
    for path in paths.into_iter().chain(["/-/docs", "/-/docs/"]) {
        let reply = anonymous.get(path).await;
        assert_eq!(reply.status, 200, "{path}");
        check_policy(&reply, path);
        assert!(reply.text().contains("<h1>"), "{path}");
    }
}

#[tokio::test]
async fn documentation_supports_conditional_get() {
    let (world, _) = World::with_bucket(1);
    let anonymous = world.anonymous();
    for path in ["/-/docs", "/-/docs/transforms", "/-/docs/search.json"] {
        let reply = anonymous.get(path).await;
        assert_eq!(reply.header("cache-control"), "no-cache", "{path}");
        assert_eq!(reply.header("access-control-allow-origin"), "*", "{path}");
        let etag = reply.header("etag").to_owned();
        let again = anonymous.get_with(path, &[("if-none-match", etag.as_str())]).await;
        assert_eq!((again.status.as_u16(), again.body.len()), (304, 0), "{path}");
        let changed = anonymous.get_with(path, &[("if-match", "\"other\"")]).await;
        changed.check_error(412, "precondition_failed");
    }
}

#[tokio::test]
async fn documentation_missing_page_is_404() {
    let (world, _) = World::with_bucket(1);
    let anonymous = world.anonymous();
    for path in [
        "/-/docs/none",
        "/-/docs/404",
        "/-/docs/reference/none",
        "/-/docs/transforms/",
        "/-/docs/%00",
    ] {
        anonymous.get(path).await.check_error(404, "not_found");
        let reply = anonymous.get_with(path, &[HTML[0], ("if-none-match", "*")]).await;
        assert_eq!(reply.status, 404, "{path}");
        assert_eq!(reply.header("cache-control"), "no-store", "{path}");
        check_policy(&reply, path);
        let page = reply.text();
        for text in ["Page not found", "href=\"/-/docs/transforms\"", "id=\"guides\""] {
            assert!(page.contains(text), "{path}: {text}");
        }
    }
}

#[tokio::test]
async fn documentation_reference_covers_every_operation() {
    let (world, _) = World::with_bucket(1);
    let anonymous = world.anonymous();
    let overview = anonymous.get("/-/docs/reference").await.text();
    let document: Value = serde_json::from_str(server::openapi::document()).unwrap();
    let mut count = 0;
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            let Some(id) = operation["operationId"].as_str() else { continue };
            // HEAD is part of GET.
            let is_shown = method != "head" || item.get("get").is_none();
            assert_eq!(overview.contains(&format!("#{id}\"")), is_shown, "{method} {path}: {id}");
            count += usize::from(is_shown);
        }
    }
    assert!(count > 90, "{count}");
    let buckets = anonymous.get("/-/docs/reference/buckets").await.text();
    for text in ["id=\"createBucket\"", "<code>bucketName</code>", "fileBytesMax", "already_exists"]
    {
        assert!(buckets.contains(text), "{text}");
    }
    // A field whose schema is referenced has its own description.
    let links = anonymous.get("/-/docs/reference/links").await.text();
    assert!(links.contains("Kind of the link; fixed after creation"), "{links}");
    // Each form of a body has its fields, and an optional field has its description.
    let jobs = anonymous.get("/-/docs/reference/jobs").await.text();
    for text in [
        "<p>Deletes the files of a folder.</p>",
        "<p>Moves the files of a folder.</p>",
        "&quot;moveFolder&quot;",
        "Destination folder with a trailing slash, outside the folder.",
        "by default the whole bucket",
    ] {
        assert!(jobs.contains(text), "{text}: {jobs}");
    }
}

#[tokio::test]
async fn documentation_search_index_has_guides_and_parameters() {
    let (world, _) = World::with_bucket(1);
    let reply = world.anonymous().get("/-/docs/search.json").await;
    assert_eq!(reply.header("content-type"), "application/json");
    let entries: Vec<[String; 6]> = serde_json::from_slice(&reply.body).unwrap();
    let find = |kind: &str, title: &str| {
        let found = entries.iter().find(|entry| entry[0] == kind && entry[1] == title);
        found.unwrap_or_else(|| panic!("no {kind} {title}"))
    };
    let transforms = find("guide", "Image transforms");
    assert_eq!(transforms[3], "/-/docs/transforms");
    assert!(transforms[4].contains("resize") && transforms[4].contains("thumbnail"));
    assert_eq!(find("section", "Responsive images")[3], "/-/docs/transforms#responsive-images");
    assert_eq!(find("operation", "POST /api/buckets")[3], "/-/docs/reference/buckets#createBucket");
    assert_eq!(find("parameter", "randomizeName")[0], "parameter");
}
