//! Delivery: specification 4.1, clients 3.1 and 7. Ranges have a file of their own.

use axum::body::Body;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::Method;
use listener::peer::Peer;
use serde_json::json;
use server::management::BucketSettings;
use sha2::{Digest, Sha256};
use tests::World;

#[tokio::test]
async fn get_returns_file_with_all_headers() {
    let (_world, client) = World::with_bucket(1);
    let stored = client.put("/photos/cats/", "tom.txt", b"meow").await;
    let reply = client.without_key().get("/photos/cats/tom.txt").await;
    assert_eq!(reply.status, 200);
    assert_eq!(&reply.body[..], b"meow");
    for (name, value) in [
        ("content-type", "text/plain; charset=utf-8"),
        ("content-length", "4"),
        ("accept-ranges", "bytes"),
        ("last-modified", "Sat, 31 Jan 2026 12:00:00 GMT"),
        ("cache-control", "public, max-age=300, stale-while-revalidate=60"),
        ("x-content-type-options", "nosniff"),
        ("access-control-allow-origin", "*"),
        ("cross-origin-resource-policy", "cross-origin"),
        ("timing-allow-origin", "*"),
    ] {
        assert_eq!(reply.header(name), value, "{name}");
    }
    assert_eq!(reply.header("etag"), stored["files"][0]["etag"]);
    assert_eq!(reply.header("access-control-expose-headers"), "*");
    assert!(reply.header("content-security-policy").ends_with("sandbox"));
    assert_eq!(reply.header("x-request-id").len(), 16);
    assert_eq!(reply.header("content-disposition"), "");
}

#[tokio::test]
async fn cached_response_headers_follow_bucket_and_version() {
    let (_world, client) = World::with_bucket(1);
    let anonymous = client.without_key();
    let first = client.put("/photos/", "tom.txt", b"meow").await["files"][0]["etag"].clone();
    for _ in 0..4 {
        let reply = anonymous.get("/photos/tom.txt").await;
        assert_eq!((&reply.body[..], reply.header("content-length")), (&b"meow"[..], "4"));
        assert_eq!(reply.header("etag"), first);
        let same = anonymous.get_with("/photos/tom.txt", &[("if-none-match", "*")]).await;
        assert_eq!((same.status.as_u16(), same.header("etag")), (304, reply.header("etag")));
        let part = anonymous.get_with("/photos/tom.txt", &[("range", "bytes=1-2")]).await;
        assert_eq!((part.status.as_u16(), &part.body[..]), (206, &b"eo"[..]));
        assert_eq!(part.header("content-length"), "2");
        assert_eq!(part.header("content-range"), "bytes 1-2/4");
        let saved = anonymous.get("/photos/tom.txt?download").await;
        assert_eq!(saved.header("content-disposition"), "attachment; filename=\"tom.txt\"");
    }
    for (settings, cache) in [
        (json!({"cacheControl": "no-cache"}), "no-cache"),
        (json!({"cacheControl": "max-age=1"}), "max-age=1"),
        (json!({"access": "private"}), "private, no-store"),
    ] {
        client.patch_json("/api/buckets/photos", settings).await.check_done();
        for _ in 0..3 {
            assert_eq!(client.get("/photos/tom.txt").await.header("cache-control"), cache);
        }
    }
    assert_eq!(anonymous.get("/photos/tom.txt").await.status, 401);
    client.delete("/photos/tom.txt").await.check_done();
    let second = client.put("/photos/", "tom.txt", b"purr!").await["files"][0]["etag"].clone();
    for _ in 0..3 {
        let reply = client.get("/photos/tom.txt").await;
        assert_eq!((&reply.body[..], reply.header("content-length")), (&b"purr!"[..], "5"));
        assert_eq!(reply.header("etag"), second);
    }
}

#[tokio::test]
async fn head_returns_headers_of_get_without_body() {
    let (_world, client) = World::with_bucket(1);
    client.put("/photos/", "tom.txt", b"meow").await;
    for headers in [&[][..], &[("range", "bytes=1-2")], &[("range", "bytes=9-")]] {
        let get = client.get_with("/photos/tom.txt", headers).await;
        let head = client.head_with("/photos/tom.txt", headers).await;
        assert_eq!(head.status, get.status);
        assert!(head.body.is_empty());
        for (name, value) in &get.headers {
            if name != "x-request-id" && get.status.is_success() {
                assert_eq!(head.headers.get(name), Some(value), "{name}");
            }
        }
        assert_eq!(head.header("content-length"), get.body.len().to_string());
    }
    let tag = client.get("/photos/tom.txt").await.header("etag").to_owned();
    for value in ["*", &*tag] {
        let unchanged = client.head_with("/photos/tom.txt", &[("if-none-match", value)]).await;
        assert_eq!((unchanged.status.as_u16(), unchanged.header("content-length")), (304, ""));
    }
    let missing = client.head_with("/photos/none.txt", &[]).await;
    assert_eq!(missing.status, 404);
    assert!(missing.body.is_empty());
}

#[tokio::test]
async fn large_and_empty_files_are_delivered_intact() {
    let (_world, client) = World::with_bucket(1);
    for bytes in [0, 1, 65_536, 262_144, 262_145, 3_000_000] {
        let body: Vec<u8> = (0..bytes).map(|at: u32| (at % 251) as u8).collect();
        client.put(&format!("/photos/{bytes}.bin"), "x.bin", &body).await;
        let reply = client.get(&format!("/photos/{bytes}.bin")).await;
        assert_eq!(reply.status, 200);
        assert_eq!(reply.header("content-length"), bytes.to_string());
        assert!(reply.body == body, "{bytes} bytes came back changed");
    }
}

#[tokio::test]
async fn conditional_headers_are_evaluated_in_rfc_order() {
    let (_world, client) = World::with_bucket(1);
    client.put("/photos/", "tom.txt", b"meow").await;
    let etag = client.get("/photos/tom.txt").await.header("etag").to_owned();
    let (at, before, after) = (
        "Sat, 31 Jan 2026 12:00:00 GMT",
        "Sat, 31 Jan 2026 11:59:59 GMT",
        "Sat, 31 Jan 2026 12:00:01 GMT",
    );
    let weak = format!("W/{etag}");
    let list = format!("\"other\", {etag}");
    let cases: &[(&[(&str, &str)], u16)] = &[
        (&[("if-none-match", &etag)], 304),
        (&[("if-none-match", &weak)], 304),
        (&[("if-none-match", &list)], 304),
        (&[("if-none-match", "*")], 304),
        (&[("if-none-match", "\"other\"")], 200),
        (&[("if-none-match", "\"other\""), ("if-modified-since", at)], 200),
        (&[("if-modified-since", at)], 304),
        (&[("if-modified-since", after)], 304),
        (&[("if-modified-since", before)], 200),
        (&[("if-modified-since", "yesterday")], 200),
        (&[("if-match", &etag)], 200),
        (&[("if-match", "*")], 200),
        (&[("if-match", &weak)], 412),
        (&[("if-match", "\"other\"")], 412),
        (&[("if-unmodified-since", at)], 200),
        (&[("if-unmodified-since", before)], 412),
        (&[("if-match", "\"other\""), ("if-none-match", &etag)], 412),
        (&[("if-none-match", &etag), ("range", "bytes=0-1")], 304),
    ];
    for (headers, status) in cases {
        let reply = client.get_with("/photos/tom.txt", headers).await;
        assert_eq!(reply.status, *status, "{headers:?}");
        if *status == 304 {
            assert!(reply.body.is_empty());
            assert_eq!(reply.header("etag"), etag);
            assert_ne!(reply.header("cache-control"), "");
            assert_eq!(reply.header("content-type"), "");
        }
        if *status == 412 {
            reply.check_error(412, "precondition_failed");
        }
    }
}

#[tokio::test]
async fn missing_file_returns_404_json() {
    let (_world, client) = World::with_bucket(1);
    client.put("/photos/cats/", "tom.txt", b"meow").await;
    let anonymous = client.without_key();
    for path in ["/photos/none.png", "/photos/", "/photos", "/photos/cats/", "/photos/cats"] {
        anonymous.get(path).await.check_error(404, "file_not_found");
    }
    for path in [
        "/nobucket/a.png",
        "/x/a.png",
        "/No/a.png",
        "/favicon.ico",
        "/%61pi/list",
        "/b%2Fx/y",
        "//b/x",
    ] {
        anonymous.get(path).await.check_error(404, "bucket_not_found");
    }
}

#[tokio::test]
async fn missing_file_is_a_page_for_browsers_and_json_for_programs() {
    let (world, _) = World::with_bucket(1);
    let anonymous = world.anonymous();
    let browser = "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,*/*;q=0.8";
    for path in ["/photos/none.txt", "/photos/%3Cb%3E.html", "/none/a.txt", "/photos/"] {
        let reply = anonymous.get_with(path, &[("accept", browser)]).await;
        assert_eq!(
            (reply.status.as_u16(), reply.header("content-type")),
            (404, "text/html; charset=utf-8")
        );
        let page = reply.text();
        assert!(page.contains("<h1>File not found</h1>") && !page.contains("<b>"), "{path}");
        assert_eq!(reply.header("cache-control"), "no-store");
        // The policy allows exactly the style of the page.
        let style = page.split_once("<style>").unwrap().1.split_once("</style>").unwrap().0;
        let hash = STANDARD.encode(Sha256::digest(style));
        let policy = reply.header("content-security-policy");
        assert!(policy.contains(&format!("style-src 'sha256-{hash}'")), "{policy}");
        assert!(policy.starts_with("default-src 'none'"), "{policy}");
        let head = anonymous.send(Method::HEAD, path, &[("accept", browser)], Body::empty()).await;
        assert_eq!(head.header("content-length"), page.len().to_string(), "{path}");
    }
    for accept in ["*/*", "image/avif,image/webp,*/*;q=0.8", "text/html;q=0, */*"] {
        let reply = anonymous.get_with("/photos/none.txt", &[("accept", accept)]).await;
        reply.check_error(404, "file_not_found");
    }
    let both = [("accept", "text/html, application/problem+json")];
    let reply = anonymous.get_with("/photos/none.txt", &both).await;
    assert_eq!(reply.header("content-type"), "application/problem+json");
    // Only files have the page.
    let reply = anonymous.get_with("/api/none", &[("accept", browser)]).await;
    reply.check_error(404, "not_found");
}

#[tokio::test]
async fn missing_file_is_served_as_placeholder_with_404() {
    let (world, client) = World::with_bucket(1);
    let settings = BucketSettings { placeholder: Some("none.svg".into()), ..Default::default() };
    world.edit_bucket("photos", settings);
    client.get("/photos/gone.png").await.check_error(404, "file_not_found");
    client.put("/photos/", "none.svg", b"<svg xmlns=\"http://www.w3.org/2000/svg\"/>").await;
    let reply = client.get_with("/photos/gone.png", &[("range", "bytes=0-1")]).await;
    assert_eq!(reply.status, 404);
    assert!(reply.body.starts_with(b"<svg"));
    assert!(reply.header("content-type").starts_with("image/svg+xml"));
    assert_eq!(reply.header("cache-control"), "max-age=30");
    assert_eq!(reply.header("etag"), "");
    assert_eq!(reply.header("content-length"), reply.body.len().to_string());
}

#[tokio::test]
async fn user_content_cannot_run_as_a_page() {
    let (world, client) = World::with_bucket(1);
    let page = b"<!doctype html><script>alert(1)</script>";
    client.put("/photos/", "page.html", page).await;
    let reply = client.get("/photos/page.html").await;
    assert_eq!(reply.header("content-type"), "text/plain; charset=utf-8");
    assert!(reply.header("content-security-policy").ends_with("sandbox"));
    world.edit_bucket("photos", BucketSettings { serve_html: Some(true), ..Default::default() });
    let reply = client.get("/photos/page.html").await;
    assert_eq!(reply.header("content-type"), "text/html; charset=utf-8");
    assert!(reply.header("content-security-policy").contains("sandbox"));
    client.put("/photos/", "draw.svg", b"<svg xmlns=\"http://www.w3.org/2000/svg\"/>").await;
    let reply = client.get("/photos/draw.svg").await;
    assert!(reply.header("content-type").starts_with("image/svg+xml"));
    assert!(reply.header("content-security-policy").ends_with("sandbox"));
}

#[tokio::test]
async fn cache_control_is_immutable_for_random_names_only() {
    let (world, client) = World::with_bucket(1);
    let stored = client
        .upload_file("/photos/?randomizeName=true", "a.png", b"\x89PNG\r\n\x1a\n")
        .await
        .json();
    let path = format!("/photos/{}", stored["key"].as_str().unwrap());
    let forever = "public, max-age=31536000, immutable";
    assert_eq!(client.get(&path).await.header("cache-control"), forever);
    client.put("/photos/", "a.txt", b"a").await;
    let settings = BucketSettings { cache_control: Some("no-cache".into()), ..Default::default() };
    world.edit_bucket("photos", settings);
    assert_eq!(client.get("/photos/a.txt").await.header("cache-control"), "no-cache");
    assert_eq!(client.get(&path).await.header("cache-control"), forever);
}

#[tokio::test]
async fn download_sets_content_disposition_filename() {
    let (_world, client) = World::with_bucket(1);
    client.put("/photos/", "käse.txt", b"a").await;
    for (query, value) in [
        ("", ""),
        ("?download", "attachment; filename=\"k_se.txt\"; filename*=UTF-8''k%C3%A4se.txt"),
        ("?download=cheese.txt", "attachment; filename=\"cheese.txt\""),
        ("?v=2&unknown=%ff", ""),
    ] {
        let reply = client.get(&format!("/photos/k%C3%A4se.txt{query}")).await;
        assert_eq!(reply.status, 200);
        assert_eq!(reply.header("content-disposition"), value, "{query}");
    }
}

#[tokio::test]
async fn delivery_url_is_percent_decoded_once() {
    let (_world, client) = World::with_bucket(1);
    client.put("/photos/a/", "caf\u{e9}.txt", b"1").await;
    for path in ["/photos/a/caf%C3%A9.txt", "/photos/a%2Fcaf%C3%A9.txt", "/photos/a/cafe%CC%81.txt"]
    {
        assert_eq!(client.get(path).await.status, 200, "{path}");
    }
    assert_eq!(client.get("/photos/a%252Fcaf%C3%A9.txt").await.status, 404);
    for path in [
        "/photos/../x",
        "/photos/a/%2e%2e/x",
        "/photos/a//x",
        "/photos/a%00b",
        "/photos/a%0d%0ab",
        "/photos/a%5cb",
        "/photos/%ff",
        "/photos/%",
    ] {
        client.get(path).await.check_error(400, "bad_path");
    }
}

#[tokio::test]
async fn private_bucket_rejects_alike_for_existing_and_missing() {
    let (world, client) = World::with_bucket(1);
    world.make_private("photos");
    client.put("/photos/", "a.txt", b"secret").await;
    let bob = world.account_with_key("bob");
    for path in ["/photos/a.txt", "/photos/none.txt", "/photos/"] {
        let reply = world.anonymous().get(path).await;
        reply.check_error(401, "missing_api_key");
        assert_eq!(reply.header("www-authenticate"), "Bearer");
        bob.get(path).await.check_error(403, "forbidden");
    }
    let reply = client.get("/photos/a.txt").await;
    assert_eq!(&reply.body[..], b"secret");
    assert_eq!(reply.header("cache-control"), "private, no-store");
    client.get("/photos/none.txt").await.check_error(404, "file_not_found");
}

/// The future of every request, also one of 4 KiB, is as large as the largest response future, unless that is boxed.
#[tokio::test]
async fn pending_response_future_is_small() {
    let (world, _client) = World::with_bucket(1);
    let app = world.app();
    let request = http::Request::new(axum::body::Body::empty());
    let waiting = app.call(request, Peer::Local);
    let bytes = std::mem::size_of_val(&waiting);
    assert!(bytes <= 2_560, "{bytes} bytes are moved with each request");
}
