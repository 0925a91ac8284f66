//! User uploads in a browser: product 5.3 and 5.4. Types, policies, and names in headers.

use axum::body::Body;
use http::Method;
use server::management::BucketSettings;
use tests::{Form, Reply, World};

const SCRIPT: &[u8] = b"<script>alert(1)</script>";

/// Checks the headers of every response with a user's bytes.
fn check_tame(reply: &Reply, what: &str) {
    assert_eq!(reply.header("x-content-type-options"), "nosniff", "{what}");
    assert_eq!(reply.header("referrer-policy"), "no-referrer", "{what}");
    let policy = reply.header("content-security-policy");
    assert!(policy.ends_with("sandbox"), "{what}: {policy}");
    assert!(!policy.contains("allow-scripts") && !policy.contains("unsafe-eval"), "{what}");
    assert!(
        policy.starts_with("default-src 'none'") || policy.contains("script-src 'none'"),
        "{what}: {policy}"
    );
    assert_eq!(reply.header("set-cookie"), "", "{what}");
    assert_eq!(reply.header("refresh"), "", "{what}");
    assert_eq!(reply.header("access-control-allow-credentials"), "", "{what}");
}

/// Whether a browser may run content of this type.
fn is_active(kind: &str) -> bool {
    let essence = kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    essence.contains("html")
        || essence.ends_with("/xml")
        || (essence.ends_with("+xml") && essence != "image/svg+xml")
        || essence == "multipart/related"
        || essence == "message/rfc822"
        || essence.contains("xslt")
}

#[tokio::test]
async fn xss_name_type_or_content_never_renders_as_html() {
    let (world, client) = World::with_bucket(1);
    let svg = b"<svg xmlns=\"http://www.w3.org/2000/svg\" onload=\"alert(1)\"/>".as_slice();
    let xml = b"<?xml version=\"1.0\"?><x xmlns=\"http://www.w3.org/1999/xhtml\"/>".as_slice();
    let pdf = b"%PDF-1.7 /OpenAction << /S /JavaScript /JS (app.alert(1)) >>".as_slice();
    for (name, declared, bytes) in [
        ("a.html", "text/html", SCRIPT),
        ("a.HTM", "text/html", SCRIPT),
        ("a.xhtml", "application/xhtml+xml", xml),
        ("a.xht", "", xml),
        ("a.xml", "text/xml", xml),
        ("a.xsl", "text/xsl", xml),
        ("a.xslt", "application/xslt+xml", xml),
        ("a.rss", "application/rss+xml", xml),
        ("a.atom", "application/atom+xml", xml),
        ("a.mathml", "application/mathml+xml", xml),
        (
            "a.mhtml",
            "multipart/related",
            b"MIME-Version: 1.0\r\nContent-Type: text/html\r\n\r\n<script>",
        ),
        ("a.eml", "message/rfc822", b"MIME-Version: 1.0\r\n\r\n<script>"),
        ("a.shtml", "text/html", SCRIPT),
        ("a.svg", "image/svg+xml", svg),
        ("a.svgz", "image/svg+xml", b"\x1f\x8b\x08"),
        ("a.pdf", "application/pdf", pdf),
        ("a.js", "text/javascript", b"alert(1)"),
        ("a.mjs", "", b"alert(1)"),
        ("a.wasm", "application/wasm", b"\0asm\x01\0\0\0"),
        ("a.swf", "application/x-shockwave-flash", b"FWS"),
        ("a.manifest", "text/cache-manifest", b"CACHE MANIFEST"),
        // The declaration, the name and the content contradict each other.
        ("a.png", "text/html", SCRIPT),
        ("a.txt", "text/html", SCRIPT),
        ("a", "text/html", SCRIPT),
        ("b", "text/html; charset=utf-7", b"+ADw-script+AD4-"),
        ("c", "application/xhtml+xml", SCRIPT),
        ("d", "TEXT/HTML", SCRIPT),
        ("e", " text/html", SCRIPT),
        ("f", "text/html,text/plain", SCRIPT),
        ("g", "text/plain\ttext/html", SCRIPT),
        ("a.unknown", "text/html", SCRIPT),
        ("h.html.unknown", "", SCRIPT),
    ] {
        let declared = Some(declared).filter(|declared| !declared.is_empty());
        let form = Form::new().file("file", name, declared, bytes);
        let stored = client.upload("/photos/", form).await;
        assert_eq!(stored.status, 200, "{name}: {}", stored.text());
        let url = stored.json()["url"].as_str().unwrap().to_owned();
        let path = url.strip_prefix(tests::world::PUBLIC_URL).unwrap();
        for headers in [&[][..], &[("range", "bytes=0-1")]] {
            let reply = world.anonymous().get_with(path, headers).await;
            let what = format!("{name} {declared:?} {headers:?}");
            assert!(reply.status.is_success(), "{what}");
            check_tame(&reply, &what);
            let kind = reply.header("content-type");
            assert!(!is_active(kind), "{what} is sent as {kind}");
            assert!(!kind.contains("utf-7"), "{what} is sent as {kind}");
        }
        let head = world.anonymous().head_with(path, &[]).await;
        check_tame(&head, name);
    }
    let several = [("range", "bytes=0-1,4-5")];
    check_tame(&world.anonymous().get_with("/photos/a.html", &several).await, "several ranges");
}

#[tokio::test]
async fn xss_html_bucket_runs_no_scripts() {
    let (world, client) = World::with_bucket(1);
    world.edit_bucket("photos", BucketSettings { serve_html: Some(true), ..Default::default() });
    for (name, bytes) in [("a.html", SCRIPT), ("a.svg", b"<svg onload=\"alert(1)\"/>")] {
        client.put("/photos/", name, bytes).await;
        check_tame(&world.anonymous().get(&format!("/photos/{name}")).await, name);
    }
}

#[tokio::test]
async fn xss_placeholder_has_the_headers_of_a_file() {
    let (world, client) = World::with_bucket(1);
    client.put("/photos/", "none.html", SCRIPT).await;
    client
        .patch_json("/api/buckets/photos", serde_json::json!({"placeholder": "none.html"}))
        .await
        .check_done();
    let reply = world.anonymous().get("/photos/gone.png").await;
    assert_eq!(reply.status, 404);
    check_tame(&reply, "placeholder");
    assert!(!is_active(reply.header("content-type")), "{}", reply.header("content-type"));
}

#[tokio::test]
async fn xss_errors_are_json_with_nosniff() {
    let (_world, client) = World::with_bucket(1);
    for path in
        ["/photos/%3Cscript%3Ealert(1)%3C/script%3E", "/%3Cscript%3E/x", "/api/%3Cscript%3E"]
    {
        let reply = client.get(path).await;
        assert_eq!(reply.status, 404);
        assert_eq!(reply.header("content-type"), "application/json");
        assert_eq!(reply.header("x-content-type-options"), "nosniff", "{path}");
        assert!(!reply.text().contains("<script"), "{}", reply.text());
    }
}

#[tokio::test]
async fn header_injection_by_file_names_is_prevented() {
    let (world, client) = World::with_bucket(1);
    client.put("/photos/", "plain.txt", b"1").await;
    for name in [
        "a%22;%20filename=evil.html",
        "a%0d%0aSet-Cookie:%20x=1",
        "a%0aX:%20y",
        "a%00b.txt",
        "..%2f..%2fetc%2fpasswd",
        "..%5c..%5cwindows%5cwin.ini",
        "%2fetc%2fpasswd",
        "C:%5cboot.ini",
        "a%5c%22b",
        "%e2%80%aegpj.exe",
        "%1b%5b2Ja",
        "a%c2%85b",
        "%20%20",
        "...",
        "%F0%9F%98%80'%28%29*.txt",
        "UTF-8''x",
        "a%25b",
        &"x".repeat(5_000),
    ] {
        let reply = world.anonymous().get(&format!("/photos/plain.txt?download={name}")).await;
        assert_eq!(reply.status, 200, "{name}");
        assert_eq!(reply.header("set-cookie"), "", "{name}");
        check_disposition(reply.header("content-disposition"), name);
    }
}

/// Checks that it is an attachment whose names contain no path and no control characters.
fn check_disposition(value: &str, name: &str) {
    let rest = value.strip_prefix("attachment").unwrap_or_else(|| panic!("{name}: {value}"));
    assert!(value.bytes().all(|byte| (0x20..0x7f).contains(&byte)), "{name}: {value}");
    assert!(value.len() < 2_000, "{name}: {} bytes", value.len());
    let quoted = rest.strip_prefix("; filename=\"").and_then(|rest| rest.split_once('"'));
    let (plain, extended) = quoted.unwrap_or_else(|| panic!("{name}: {value}"));
    assert!(!plain.is_empty() && !plain.contains(['/', '\\', '%']), "{name}: {value}");
    assert!(!plain.starts_with('.'), "{name}: {value}");
    if extended.is_empty() {
        return;
    }
    let extended = extended.strip_prefix("; filename*=UTF-8''");
    let extended = extended.unwrap_or_else(|| panic!("{name}: {value}"));
    // The characters of RFC 8187's attr-char, and escapes.
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$&+-.^_`|~%".contains(&byte);
    assert!(extended.bytes().all(is_plain), "{name}: {value}");
    for hidden in ["%2F", "%5C", "%0D", "%0A", "%00", "%1B", "%E2%80%AE", "%C2%85"] {
        assert!(!extended.contains(hidden), "{name}: {value}");
    }
}

#[tokio::test]
async fn content_disposition_names_are_sanitized() {
    let (world, client) = World::with_bucket(1);
    for name in
        ["a\"b.txt", "a;b=c.txt", "a'b(c)*.txt", "\u{1f600}.txt", "a%2Fb.txt", "-rf", ".htaccess"]
    {
        let name = name.replace('"', "%22");
        let key = client.put("/photos/", &name, b"1").await["url"].as_str().unwrap().to_owned();
        let path = key.strip_prefix(tests::world::PUBLIC_URL).unwrap();
        let reply = world.anonymous().get(&format!("{path}?download")).await;
        assert_eq!(reply.status, 200, "{name}");
        let value = reply.header("content-disposition");
        assert!(value.starts_with("attachment"), "{name}: {value}");
        assert!(value.bytes().all(|byte| (0x20..0x7f).contains(&byte)), "{name}: {value}");
    }
}

#[tokio::test]
async fn stored_client_file_names_are_sanitized() {
    let (_world, client) = World::with_bucket(1);
    for name in ["a\u{1b}[2Jb.txt", "a\u{202e}gpj.txt", "a\u{7f}b.txt", "a\u{85}b.txt", "a\tb.txt"]
    {
        let body = Form::new().file("file", name, None, b"1");
        let (kind, body) = (body.content_type(), body.body());
        let headers = [("content-type", &*kind)];
        let reply = client.send(Method::POST, "/photos/", &headers, Body::from(body)).await;
        if reply.status != 200 {
            // Characters that the head of a part may not contain make the form invalid.
            reply.check_error(400, "bad_form");
            continue;
        }
        let key = reply.json()["key"].as_str().unwrap().to_owned();
        let steers = |it: char| it.is_control() || it == '\u{202e}';
        assert!(!key.contains(steers), "{key:?}");
        assert!(!reply.json()["url"].as_str().unwrap().contains(steers));
    }
}

#[tokio::test]
async fn robots_tag_is_sent_when_indexing_is_disallowed() {
    let (world, client) = World::with_bucket(1);
    client.put("/photos/", "a.txt", b"hello").await;
    let robots = async || client.get("/photos/a.txt").await.header("x-robots-tag").to_owned();
    assert_eq!(robots().await, "");
    let index = |index| BucketSettings { index: Some(index), ..BucketSettings::default() };
    world.edit_bucket("photos", index(false));
    assert_eq!(robots().await, "noindex");
    world.edit_bucket("photos", index(true));
    assert_eq!(robots().await, "");
    world.make_private("photos");
    assert_eq!(robots().await, "noindex");
}
