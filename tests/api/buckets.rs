//! Buckets over HTTP, and the effect of their settings: specification 2 and 4.8, clients 13.11.

use axum::body::Body;
use catalog::Scope;
use http::Method;
use serde_json::{Value, json};
use server::management::ApiKeySettings;
use tests::fixtures::{key_of_bucket, key_with_scopes};
use tests::{Form, World};

const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x08\x06\0\0\0";

#[tokio::test]
async fn bucket_is_created_read_updated_and_deleted() {
    let (_world, client) = World::with_bucket(1);
    let made = client.post_json("/api/buckets", json!({"bucketName": "calls"})).await.check_done();
    let bucket = &made["bucket"];
    assert_eq!(bucket["bucketName"], "calls");
    for (field, value) in [
        ("type", json!("standard")),
        ("access", json!("public")),
        ("placeholder", json!(null)),
        ("cacheControl", json!(null)),
        ("corsOrigins", json!(["*"])),
        ("allowedTypes", json!([])),
        ("fileBytesMax", json!(null)),
        ("quotaBytes", json!(null)),
        ("quotaObjects", json!(null)),
        ("serveHtml", json!(false)),
        ("thumbnails", json!(false)),
        ("index", json!(true)),
        ("compression", json!(true)),
        ("organisation", json!(null)),
        ("objectCount", json!(0)),
    ] {
        assert_eq!(bucket[field], value, "{field}");
    }
    let change = json!({"access": "private", "cacheControl": "no-cache", "quotaBytes": 1000,
        "allowedTypes": ["image/*"], "thumbnails": true});
    let changed = client.patch_json("/api/buckets/calls", change).await.check_done();
    let shown = client.get("/api/buckets/calls").await.check_done();
    assert_eq!(changed["bucket"], shown["bucket"]);
    assert_eq!(shown["bucket"]["quotaBytes"], 1000);
    let away = json!({"cacheControl": null, "quotaBytes": null, "allowedTypes": null});
    let bucket = client.patch_json("/api/buckets/calls", away).await.check_done()["bucket"].take();
    assert!(bucket["cacheControl"].is_null() && bucket["quotaBytes"].is_null());
    assert_eq!((&bucket["access"], &bucket["thumbnails"]), (&json!("private"), &json!(true)));

    let listed = client.get("/api/buckets").await.check_done();
    let names = listed["buckets"].as_array().unwrap().iter().map(|it| it["bucketName"].clone());
    assert_eq!(names.collect::<Vec<_>>(), ["calls", "photos"]);
    assert!(listed["nextCursor"].is_null());
    let deleted = client.delete("/api/buckets/calls").await.check_done();
    assert_eq!((&deleted["bucketName"], &deleted["deletedCount"]), (&json!("calls"), &json!(0)));
    client.get("/api/buckets/calls").await.check_error(404, "bucket_not_found");
    client.delete("/api/buckets/calls").await.check_error(404, "bucket_not_found");
}

#[tokio::test]
async fn bucket_folders_have_counts_sizes_and_latest_change() {
    let (world, client) = World::with_bucket(1);
    let list = |query: &'static str| {
        let client = &client;
        async move { client.get(&format!("/api/buckets/photos/folders{query}")).await }
    };
    for (place, name, body) in [
        ("/photos/", "root.txt", "123"),
        ("/photos/2026/", "a.txt", "1"),
        ("/photos/2026/june/", "b.txt", "22"),
        ("/photos/2026/june/deep/", "c.txt", "333"),
        ("/photos/2026/july/", "d.txt", "4444"),
    ] {
        client.put(place, name, body.as_bytes()).await;
        world.clock.advance(60_000);
    }
    let root = list("?prefix=").await.check_done();
    let modified = client.get("/api/list-objects?bucketName=photos&prefix=2026/july/").await.json();
    let modified = modified["Contents"][0]["LastModified"].clone();
    let of = |folder: &str, count: u64, bytes: u64, modified: &Value| {
        json!({
            "folder": folder,
            "objectCount": count,
            "totalBytes": bytes,
            "modifiedAt": modified,
            "isExact": true,
        })
    };
    assert_eq!(root["folders"], json!([of("2026/", 4, 10, &modified)]));
    let inner = list("?prefix=2026/&limit=1").await.check_done();
    assert_eq!(inner["folders"], json!([of("2026/july/", 1, 4, &modified)]));
    assert_eq!(inner["nextCursor"], "2026/july/");
    let last = list("?prefix=2026/&cursor=2026/july/").await.check_done();
    assert_eq!(
        (&last["folders"][0]["objectCount"], &last["folders"][0]["totalBytes"]),
        (&json!(2), &json!(5))
    );
    assert_eq!((last["folders"].as_array().unwrap().len(), &last["nextCursor"]), (1, &json!(null)));
    assert_eq!(list("?prefix=none/").await.check_done()["folders"], json!([]));
    for (query, parameter) in [
        ("?prefix=2026", "prefix"),
        ("?prefix=2026/&cursor=2027/a/", "cursor"),
        ("?prefix=2026/&cursor=2026/june/deep/", "cursor"),
    ] {
        list(query).await.check_parameter(parameter);
    }
}

#[tokio::test]
async fn bucket_scopes_are_those_of_the_role_and_the_key() {
    let (world, client) = World::with_bucket(1);
    let all = json!(["upload", "delete", "read", "list", "presign", "manage"]);
    let whole = client.get("/api/buckets/photos").await.check_done();
    assert_eq!(whole["scopes"].as_array().unwrap().len(), all.as_array().unwrap().len());
    let settings = key_with_scopes(&[Scope::Manage, Scope::List]);
    let limited = world.client_of("ann", settings);
    let found = limited.get("/api/buckets/photos").await.check_done();
    assert_eq!(found["scopes"], json!(["list", "manage"]));
}

#[tokio::test]
async fn bucket_top_level_folders_are_paged_with_usage() {
    let (world, client) = World::with_bucket(1);
    let folders = |query: &'static str| {
        let client = &client;
        async move { client.get(&format!("/api/buckets/photos/folders{query}")).await }
    };
    let none = folders("").await.check_done();
    assert_eq!((&none["folders"], &none["nextCursor"]), (&json!([]), &json!(null)));
    for (place, name, body) in [
        ("/photos/", "in-no-folder.txt", "123456789"),
        ("/photos/b/", "one.txt", "1"),
        ("/photos/b/deep/er/", "two.txt", "22"),
        ("/photos/a%20c/", "three.txt", "333"),
        ("/photos/%C3%A9/", "four.txt", "4444"),
    ] {
        client.put(place, name, body.as_bytes()).await;
    }
    let of = |folder, count, bytes| {
        json!({
            "folder": folder,
            "objectCount": count,
            "totalBytes": bytes,
            "modifiedAt": null,
            "isExact": true,
        })
    };
    let all = [of("a c/", 1, 3), of("b/", 2, 3), of("\u{e9}/", 1, 4)];
    assert_eq!(folders("").await.check_done()["folders"], json!(all));
    let first = folders("?limit=2").await.check_done();
    assert_eq!((&first["folders"], &first["nextCursor"]), (&json!(all[..2]), &json!("b/")));
    let last = folders("?limit=2&cursor=b/").await.check_done();
    assert_eq!((&last["folders"], &last["nextCursor"]), (&json!(all[2..]), &json!(null)));
    assert_eq!(folders("?limit=1&cursor=%C3%A9/").await.check_done()["folders"], json!([]));
    for (query, parameter) in [
        ("?limit=0", "limit"),
        ("?limit=1001", "limit"),
        ("?cursor=b", "cursor"),
        ("?cursor=//", "cursor"),
    ] {
        folders(query).await.check_parameter(parameter);
    }

    client.delete("/photos/b/one.txt").await.check_done();
    client.delete("/photos/a%20c/three.txt").await.check_done();
    let left = folders("").await.check_done();
    assert_eq!(left["folders"], json!([of("b/", 1, 2), of("\u{e9}/", 1, 4)]));
    client.delete("/photos/b/").await.check_done();
    assert_eq!(folders("").await.check_done()["folders"], json!([of("\u{e9}/", 1, 4)]));

    client.get("/api/buckets/nowhere/folders").await.check_error(404, "bucket_not_found");
    let limited = |bucket: &str, prefix: Option<&str>| {
        let (bucket, prefix) = (Some(bucket.to_owned()), prefix.map(str::to_owned));
        world.client_of("ann", ApiKeySettings { bucket, prefix, ..Default::default() })
    };
    let path = "/api/buckets/photos/folders";
    limited("photos", None).get(path).await.check_done();
    limited("photos", Some("b/")).get(path).await.check_error(403, "forbidden");
}

#[tokio::test]
async fn phone_bucket_creates_thumbnails_by_default() {
    let (_world, client) = World::with_bucket(1);
    let body = json!({"bucketName": "phone", "type": "phone"});
    let made = client.post_json("/api/buckets", body).await.check_done();
    assert_eq!(
        (&made["bucket"]["type"], &made["bucket"]["thumbnails"]),
        (&json!("phone"), &json!(true))
    );
    let body = json!({"bucketName": "tablet", "type": "phone", "thumbnails": false});
    let made = client.post_json("/api/buckets", body).await.check_done();
    assert_eq!(made["bucket"]["thumbnails"], false);
}

#[tokio::test]
async fn bucket_body_errors_name_the_field() {
    let (_world, client) = World::with_bucket(1);
    for (field, value) in [
        ("owner", json!("x")),
        ("account", json!("x")),
        ("access", json!("open")),
        ("access", json!(null)),
        ("serveHtml", json!("yes")),
        ("quotaBytes", json!(-1)),
        ("quotaBytes", json!("1")),
        ("quotaObjects", json!(1.5)),
        ("fileBytesMax", json!(1e30)),
        ("corsOrigins", json!("https://a.b")),
        ("corsOrigins", json!([])),
        ("corsOrigins", json!(["a.b"])),
        ("corsOrigins", json!(["*", "https://a.b"])),
        ("allowedTypes", json!(["image"])),
        ("cacheControl", json!("a\r\nX: y")),
        ("placeholder", json!("a//b")),
        ("placeholder", json!("/nowhere/a.png")),
    ] {
        let body = json!({"thumbnails": true, field: value});
        client.patch_json("/api/buckets/photos", body).await.check_parameter(field);
        let body = json!({"bucketName": "other", field: value});
        client.post_json("/api/buckets", body).await.check_parameter(field);
    }
    assert_eq!(client.get("/api/buckets/photos").await.check_done()["bucket"]["thumbnails"], false);
    client.get("/api/buckets/other").await.check_error(404, "bucket_not_found");
    for name in [json!("api"), json!("No"), json!(7), json!(null)] {
        let reply = client.post_json("/api/buckets", json!({"bucketName": name})).await;
        reply.check_parameter("bucketName");
    }
    let taken = client.post_json("/api/buckets", json!({"bucketName": "photos"})).await;
    taken.check_error(409, "already_exists");
    for (kind, body, status, code) in [
        ("application/json", "[]", 400, "bad_json"),
        ("application/json; charset=utf-8", "{", 400, "bad_json"),
        ("text/plain", "{}", 415, "unsupported_media_type"),
        ("", "{}", 415, "unsupported_media_type"),
    ] {
        let headers = [("content-type", kind)];
        let reply = client.send(Method::POST, "/api/buckets", &headers, Body::from(body)).await;
        reply.check_error(status, code);
    }
    let large = json!({"bucketName": "x".repeat(70_000)});
    client.post_json("/api/buckets", large).await.check_error(413, "file_too_large");
    client
        .send(Method::PUT, "/api/buckets", &[], Body::empty())
        .await
        .check_error(405, "method_not_allowed");
}

#[tokio::test]
async fn bucket_with_files_requires_force_to_delete() {
    let (world, client) = World::with_bucket(1);
    for name in ["a.txt", "b.txt", "c.txt"] {
        client.put("/photos/", name, b"1").await;
    }
    client.delete("/api/buckets/photos").await.check_error(409, "bucket_not_empty");
    let deleted = client.delete("/api/buckets/photos?force=true").await.check_done();
    assert_eq!(deleted["deletedCount"], 3);
    client.get("/photos/a.txt").await.check_error(404, "bucket_not_found");
    client.upload_file("/photos/", "d.txt", b"1").await.check_error(404, "bucket_not_found");
    // The files are removed, by this call or by the server, and the name is free again.
    for _ in 0..1_000 {
        world.state.catalog.buckets().resume_deletions().unwrap();
        let again = client.post_json("/api/buckets", json!({"bucketName": "photos"})).await;
        if again.status == 200 {
            assert_eq!(world.object_count("photos"), 0);
            client.get("/photos/a.txt").await.check_error(404, "file_not_found");
            return;
        }
        again.check_error(409, "already_exists");
        tokio::task::yield_now().await;
    }
    panic!("the name is never free");
}

#[tokio::test]
async fn bucket_pages_list_each_bucket_once() {
    let (_world, client) = World::with_bucket(1);
    for at in 0..7 {
        let body = json!({"bucketName": format!("bucket-{at}")});
        client.post_json("/api/buckets", body).await.check_done();
    }
    let (mut seen, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = client.get(&format!("/api/buckets?limit=3&cursor={cursor}")).await.check_done();
        seen.extend(page["buckets"].as_array().unwrap().iter().map(|it| it["bucketName"].clone()));
        match page["nextCursor"].as_str() {
            Some(next) => cursor = next.to_owned(),
            None => break,
        }
    }
    assert_eq!(seen.len(), 8);
    client.get("/api/buckets?limit=0").await.check_parameter("limit");
}

#[tokio::test]
async fn bucket_allowed_types_are_enforced() {
    let (world, client) = World::with_bucket(1);
    let body = json!({"allowedTypes": ["image/*", "text/plain"]});
    client.patch_json("/api/buckets/photos", body).await.check_done();
    client.put("/photos/", "a.png", PNG).await;
    client.put("/photos/", "a.txt", b"text").await;
    for (name, declared, bytes) in [
        ("a.html", None, &b"<html>"[..]),
        ("a.bin", Some("image/png"), b"\x00\x01\x02"),
        ("evil.png", Some("image/png"), b"<html><script>"),
        ("a.pdf", Some("image/png"), b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n"),
        ("empty.png", None, b""),
    ] {
        let form = Form::new().file("f", "ok.txt", None, b"text").file("f", name, declared, bytes);
        client.upload("/photos/", form).await.check_error(415, "type_not_allowed");
    }
    assert_eq!(world.object_count("photos"), 2);
}

#[tokio::test]
async fn bucket_max_file_size_is_enforced() {
    let (world, client) = World::with_bucket(1);
    client.patch_json("/api/buckets/photos", json!({"fileBytesMax": 10})).await.check_done();
    client.put("/photos/", "ten.txt", b"0123456789").await;
    let form = Form::new().file("f", "a.txt", None, b"1").file("f", "b.txt", None, b"01234567890");
    let reply = client.upload("/photos/", form).await;
    reply.check_error(413, "file_too_large");
    assert_eq!(reply.json()["limit"], 10);
    assert_eq!(world.object_count("photos"), 1);
}

#[tokio::test]
async fn placeholder_may_be_in_another_bucket_of_the_account() {
    let (world, client) = World::with_bucket(1);
    world.bucket("ann", "shared", Default::default());
    client.put("/shared/img/", "none.png", PNG).await;
    let body = json!({"placeholder": "/shared/img/none.png"});
    let made = client.patch_json("/api/buckets/photos", body).await.check_done();
    assert_eq!(made["bucket"]["placeholder"], "/shared/img/none.png");
    let reply = client.without_key().get("/photos/gone.png").await;
    assert_eq!((reply.status.as_u16(), &*reply.body), (404, PNG));

    // Another account's bucket of that name is not the account's own.
    client.delete("/api/buckets/shared?force=true").await.check_done();
    world.state.catalog.buckets().resume_deletions().unwrap();
    world.account("bob");
    for _ in 0..1_000 {
        tokio::task::yield_now().await;
        let bob = world.client_of("bob", ApiKeySettings::default());
        if bob.post_json("/api/buckets", json!({"bucketName": "shared"})).await.status == 200 {
            bob.put("/shared/img/", "none.png", PNG).await;
            let reply = client.without_key().get("/photos/gone.png").await;
            reply.check_error(404, "file_not_found");
            return;
        }
    }
    panic!("the name is never free");
}

#[tokio::test]
async fn placeholder_requires_read_permission_of_its_key() {
    let (world, client) = World::with_bucket(1);
    world.bucket("ann", "secrets", Default::default());
    client.put("/secrets/", "plan.txt", b"secret").await;
    world.account("bob");
    world.bucket("bob", "theirs", Default::default());
    let body = json!({"placeholder": "/secrets/plan.txt"});
    let limited = world.client_of("ann", key_of_bucket("photos"));
    limited.patch_json("/api/buckets/photos", body.clone()).await.check_parameter("placeholder");
    let manager = world.client_of("ann", key_with_scopes(&[catalog::Scope::Manage]));
    manager.patch_json("/api/buckets/photos", body.clone()).await.check_parameter("placeholder");
    let foreign = json!({"placeholder": "/theirs/a.png"});
    client.patch_json("/api/buckets/photos", foreign).await.check_parameter("placeholder");
    client.patch_json("/api/buckets/photos", body).await.check_done();
}

#[tokio::test]
async fn bucket_cors_origins_are_restricted() {
    let (_world, client) = World::with_bucket(1);
    client.put("/photos/", "a.png", PNG).await;
    let origins = json!({"corsOrigins": ["https://one.example", "https://two.example"]});
    client.patch_json("/api/buckets/photos", origins).await.check_done();
    let anonymous = client.without_key();
    for (path, status) in [("/photos/a.png", 200), ("/photos/none.png", 404), ("/photos/a%00", 400)]
    {
        for (origin, allowed) in [
            (Some("https://one.example"), "https://one.example"),
            (Some("https://two.example"), "https://two.example"),
            (Some("https://one.example.evil"), ""),
            (Some("null"), ""),
            (None, ""),
        ] {
            let headers: Vec<_> = origin.iter().map(|origin| ("origin", *origin)).collect();
            let reply = anonymous.get_with(path, &headers).await;
            assert_eq!(reply.status.as_u16(), status, "{path}");
            assert_eq!(reply.header("access-control-allow-origin"), allowed, "{path} {origin:?}");
            assert_eq!(reply.header("vary"), "origin", "{path}");
            let reply = anonymous.send(Method::OPTIONS, path, &headers, Body::empty()).await;
            assert_eq!(reply.status, 204);
            assert_eq!(reply.header("access-control-allow-origin"), allowed, "{path} {origin:?}");
            let vary: Vec<_> = reply.headers.get_all("vary").iter().collect();
            assert!(vary.iter().any(|it| *it == "origin") && vary.len() == 2, "{vary:?}");
        }
    }
    // Requests other than delivery stay open to every page, and so does every other bucket.
    let reply = client.get_with("/api/buckets", &[("origin", "https://evil.example")]).await;
    assert_eq!(reply.header("access-control-allow-origin"), "*");
    let reply = anonymous.get_with("/other/a.png", &[("origin", "https://evil.example")]).await;
    assert_eq!(reply.header("access-control-allow-origin"), "*");
    client.patch_json("/api/buckets/photos", json!({"corsOrigins": null})).await.check_done();
    let reply = anonymous.get_with("/photos/a.png", &[("origin", "https://evil.example")]).await;
    assert_eq!(reply.header("access-control-allow-origin"), "*");
    assert_eq!(reply.header("vary"), "");
}
