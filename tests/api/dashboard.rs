//! Delivery of the dashboard: the page, its policy, its files, and the restrictions of its origin. Its behaviour in a
//! browser is tested in the suite `browser`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;

use tests::{Reply, World};

/// Maximum packed size of the files of the file views in bytes: product 4.1.
const FIRST_BYTES_MAX: usize = 60 * 1_024;
/// Maximum packed size of all files together in bytes: product 4.1.
const BYTES_MAX: usize = 136 * 1_024;
/// Entry module of the page.
const BEGINNING: &str = "app.mjs";

/// Addresses of views.
const VIEWS: &[&str] = &[
    "/-/",
    "/-/files/photos",
    "/-/files/photos/a/b%20c/",
    "/-/files/photos/%ff",
    "/-/search/photos?q=cat",
    "/-/playground/photos/cat.png",
    "/-/keys",
    "/-/links/photos/a/b",
    "/-/connect",
    "/-/settings/",
    "/-/settings/photos",
    "/-/webhooks/photos/abc",
    "/-/deleted/photos/a/",
    "/-/account",
    "/-/accounts",
    "/-/organisations/abc",
    "/-/usage/photos?over=week",
    "/-/audit?action=key.",
    "/-/storage",
    "/-/server",
    "/-/search?q=cat",
    "/-/sign-in",
    "/-/set-up",
    "/-/invitation",
];

/// Returns the files of the dashboard's folder, except the page, with their texts.
fn files() -> BTreeMap<String, String> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../server/assets/dashboard");
    let entries = fs::read_dir(folder).unwrap().map(Result::unwrap);
    let named = entries.map(|entry| (entry.file_name().into_string().unwrap(), entry.path()));
    let files = named.filter(|(name, _)| name != "shell.html");
    files.map(|(name, path)| (name, fs::read_to_string(path).unwrap())).collect()
}

/// Checks that the delivered file is the stored one, except for comments of modules.
fn check_sent(name: &str, sent: &str, text: &str) {
    if name.ends_with(".css") {
        return assert_eq!(sent, text, "{name}");
    }
    let mut sent = sent.lines().peekable();
    for line in text.lines().map(str::trim) {
        if sent.next_if_eq(&line).is_none() {
            let is_comment =
                line.starts_with("//") || line.starts_with("/**") || line.starts_with('*');
            assert!(is_comment, "{name}: {line:?} is not sent");
        }
    }
    assert_eq!(sent.next(), None, "{name}: sent, and not in the file");
}

fn directive<'p>(policy: &'p str, name: &str) -> &'p str {
    let found = policy.split("; ").find_map(|it| it.strip_prefix(name)?.strip_prefix(' '));
    found.unwrap_or_else(|| panic!("{name} is not in {policy}"))
}

fn nonce(page: &Reply) -> String {
    let policy = page.header("content-security-policy");
    let rest = directive(policy, "script-src").strip_prefix("'nonce-").unwrap();
    rest.split('\'').next().unwrap().to_owned()
}

/// Returns the static imports of a module, and its dynamic ones.
fn imports(name: &str, text: &str) -> (Vec<String>, Vec<String>) {
    let module = |path: &str| {
        let module = path.split('"').next().and_then(|path| path.strip_prefix("./"));
        module.unwrap_or_else(|| panic!("{name}: {path}")).to_owned()
    };
    let is_import = |line: &&str| line.starts_with("import ") || line.starts_with("} from ");
    let lines = text.lines().filter(is_import);
    let at_once = lines.map(|line| module(line.split_once('"').unwrap().1)).collect();
    (at_once, text.split("import(\"").skip(1).map(module).collect())
}

/// Returns a module and all its transitive imports.
fn closure(files: &BTreeMap<String, String>, begin: &str) -> BTreeSet<String> {
    let (mut found, mut waiting) = (BTreeSet::new(), vec![begin.to_owned()]);
    while let Some(name) = waiting.pop() {
        let text = files.get(&name).unwrap_or_else(|| panic!("{name} is not there"));
        if found.insert(name.clone()) {
            waiting.extend(imports(&name, text).0);
        }
    }
    found
}

/// Returns the base path of the page's files.
fn base(page: &Reply) -> String {
    let text = page.text();
    let (_, rest) = text.split_once("src=\"/-/assets/").unwrap();
    format!("/-/assets/{}", rest.split('/').next().unwrap())
}

#[tokio::test]
async fn root_redirects_to_dashboard() {
    let (world, _) = World::with_bucket(1);
    let reply = world.anonymous().get("/").await;
    assert_eq!((reply.status.as_u16(), reply.header("location")), (302, "/-/"));
    assert_eq!(reply.header("cache-control"), "no-store");
}

#[tokio::test]
async fn dashboard_views_serve_the_page_with_a_fresh_nonce() {
    let (world, _) = World::with_bucket(1);
    let mut nonces = BTreeSet::new();
    for view in VIEWS {
        let page = world.anonymous().get(view).await;
        assert_eq!(page.status, 200, "{view}");
        for (name, value) in [
            ("content-type", "text/html; charset=utf-8"),
            ("cache-control", "no-store"),
            ("x-content-type-options", "nosniff"),
            ("referrer-policy", "no-referrer"),
            ("cross-origin-opener-policy", "same-origin"),
            ("cross-origin-resource-policy", "same-origin"),
            ("access-control-allow-origin", ""),
        ] {
            assert_eq!(page.header(name), value, "{view} {name}");
        }
        let nonce = nonce(&page);
        assert!(nonce.len() >= 22, "{nonce} has fewer than 128 bits");
        let policy = page.header("content-security-policy");
        for (name, value) in [
            ("default-src", "'none'".to_owned()),
            ("script-src", format!("'nonce-{nonce}' 'strict-dynamic'")),
            ("style-src", format!("'nonce-{nonce}'")),
            ("connect-src", "'self'".to_owned()),
            ("form-action", "'none'".to_owned()),
            ("base-uri", "'none'".to_owned()),
            ("frame-ancestors", "'none'".to_owned()),
            ("require-trusted-types-for", "'script'".to_owned()),
            ("trusted-types", "'none'".to_owned()),
        ] {
            assert_eq!(directive(policy, name), value, "{view}");
        }
        assert!(!policy.contains("unsafe"), "{policy}");
        let text = page.text();
        assert!(!text.contains('@'), "a mark is left in the page");
        for tag in text.split('<').filter(|tag| {
            ["script", "style", "link rel=\"stylesheet", "link rel=\"modulepreload"]
                .iter()
                .any(|start| tag.starts_with(start))
        }) {
            assert!(tag.contains(&format!("nonce=\"{nonce}\"")), "<{tag}");
        }
        let mut words = text.split_whitespace();
        assert!(!words.any(|word| word.starts_with("on") && word.contains('=')), "a handler");
        let head = world.anonymous().head_with(view, &[]).await;
        assert_eq!((head.status.as_u16(), head.body.len()), (200, 0), "{view}");
        nonces.insert(nonce);
    }
    assert_eq!(nonces.len(), VIEWS.len(), "a nonce was used twice");
}

#[tokio::test]
async fn dashboard_unknown_view_is_404_and_views_are_read_only() {
    let (world, _) = World::with_bucket(1);
    for path in
        ["/-/none", "/-/%66iles", "/-/file/x", "/-/assets", "/-/assets/x", "/-/assets/x/app.mjs"]
    {
        world.anonymous().get(path).await.check_error(404, "not_found");
    }
    let reply = world.anonymous().post("/-/files/x").await;
    reply.check_error(405, "method_not_allowed");
}

#[tokio::test]
async fn dashboard_assets_are_versioned_and_immutable() {
    let (world, _) = World::with_bucket(1);
    let anonymous = world.anonymous();
    let page = anonymous.get("/-/").await;
    let base = base(&page);
    let (mut first_bytes, mut all_bytes) = (0, 0);
    for (name, text) in files() {
        let path = format!("{base}/{name}");
        let reply = anonymous.get(&path).await;
        assert_eq!(
            reply.status, 200,
            "{name} is not in the table of server/src/handlers/dashboard.rs"
        );
        check_sent(&name, &reply.text(), &text);
        let kind = if name.ends_with(".css") { "text/css" } else { "text/javascript" };
        assert_eq!(reply.header("content-type"), format!("{kind}; charset=utf-8"), "{name}");
        assert_eq!(reply.header("cache-control"), "public, max-age=31536000, immutable");
        assert_eq!(reply.header("cross-origin-resource-policy"), "same-origin");
        assert_eq!(reply.header("vary"), "accept-encoding");
        let packed = anonymous.get_with(&path, &[("accept-encoding", "br, gzip")]).await;
        assert_eq!(packed.header("content-encoding"), "gzip", "{name}");
        assert_ne!(packed.header("etag"), reply.header("etag"), "{name}");
        all_bytes += packed.body.len();
        if page.text().contains(&format!("\"{path}\"")) {
            first_bytes += packed.body.len();
        }
        for (reply, coding) in [(&reply, "identity"), (&packed, "gzip")] {
            let headers = [("accept-encoding", coding), ("if-none-match", reply.header("etag"))];
            assert_eq!(anonymous.get_with(&path, &headers).await.status, 304, "{name} {coding}");
        }
    }
    println!("the dashboard takes {first_bytes} bytes for files, {all_bytes} in all, packed");
    assert!(first_bytes <= FIRST_BYTES_MAX, "{first_bytes} bytes for files, packed");
    assert!(all_bytes <= BYTES_MAX, "{all_bytes} bytes in all, packed");
}

#[tokio::test]
async fn dashboard_preloads_core_modules_and_lazy_loads_others() {
    let (world, _) = World::with_bucket(1);
    let page = world.anonymous().get("/-/").await;
    let base = base(&page);
    let files = files();
    let first = closure(&files, BEGINNING);
    let is_module = |name: &&String| name.ends_with(".mjs");
    for name in files.keys().filter(is_module) {
        let is_asked_for = page.text().contains(&format!("href=\"{base}/{name}\""));
        assert_eq!(is_asked_for, first.contains(name), "{name}");
    }
    let mut reached = first.clone();
    let mut waiting: Vec<String> = first.into_iter().collect();
    while let Some(name) = waiting.pop() {
        for later in imports(&name, &files[&name]).1 {
            let brought = closure(&files, &later);
            waiting.extend(brought.iter().filter(|it| reached.insert((*it).clone())).cloned());
        }
    }
    let unreached: Vec<&String> =
        files.keys().filter(is_module).filter(|name| !reached.contains(*name)).collect();
    assert!(unreached.is_empty(), "nothing leads to {unreached:?}");
}

#[test]
fn dashboard_modules_build_dom_from_text_only() {
    for (name, text) in files() {
        for banned in [
            "innerHTML",
            "outerHTML",
            "insertAdjacentHTML",
            "document.write",
            "eval(",
            "new Function",
            "srcdoc",
            "createContextualFragment",
            "DOMParser",
            "javascript:",
            "@import",
        ] {
            assert!(!text.contains(banned), "{name}: {banned}");
        }
        let foreign = ["http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"];
        let text = foreign.iter().fold(text, |text, known| text.replace(known, ""));
        for scheme in ["http://", "https://"] {
            assert!(!text.contains(scheme), "{name} names another server");
        }
    }
}

#[tokio::test]
async fn user_files_are_not_dashboard_scripts() {
    let (world, client) = World::with_bucket(1);
    client.put("/photos/", "evil.js", b"alert(1)").await;
    let get = async |headers: &[(&str, &str)]| {
        world.anonymous().get_with("/photos/evil.js", headers).await
    };
    for destination in [
        "script",
        "style",
        "worker",
        "sharedworker",
        "serviceworker",
        "manifest",
        "object",
        "embed",
    ] {
        let own = [("sec-fetch-site", "same-origin"), ("sec-fetch-dest", destination)];
        get(&own).await.check_error(403, "forbidden");
        let foreign = [("sec-fetch-site", "cross-site"), ("sec-fetch-dest", destination)];
        assert_eq!(get(&foreign).await.status, 200, "{destination} of another site");
    }
    get(&[("service-worker", "script")]).await.check_error(403, "forbidden");
    for destination in ["image", "video", "audio", "iframe", "document", "empty"] {
        let own = [("sec-fetch-site", "same-origin"), ("sec-fetch-dest", destination)];
        assert_eq!(get(&own).await.status, 200, "{destination}");
    }
    // The response does not depend on whether the file exists.
    let own = [("sec-fetch-site", "same-origin"), ("sec-fetch-dest", "script")];
    let missing = world.anonymous().get_with("/photos/none.js", &own).await;
    missing.check_error(403, "forbidden");
}
