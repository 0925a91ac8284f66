//! Presigned addresses, the earlier form: specification 4.5, clients 3.4.

use axum::body::Body;
use catalog::Scope;
use http::Method;
use listener::options::ConnectionOptions;
use serde_json::json;
use server::management::{AdminRequest, ApiKeySettings, BucketSettings};
use service::Config;
use tests::fixtures::path_of;
use tests::{Client, Form, Reply, World, held_body};

const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR";

async fn put(client: &Client, path: &str, kind: &str, bytes: &[u8]) -> Reply {
    client.without_key().send_typed(Method::PUT, path, kind, bytes).await
}

fn token(path: &str) -> &str {
    path.split_once("?token=").unwrap().1
}

#[tokio::test]
async fn presigned_url_response_has_every_client_field() {
    let (_world, client) = World::with_bucket(1);
    let reply = client.get("/photos/presigned/img/tom%20cat.png?expiresIn=600").await;
    assert_eq!(reply.status, 200, "{}", reply.text());
    let body = reply.json();
    let url = body["presignedUrl"].as_str().unwrap();
    let start = "https://cdn.example.com/photos/img/tom%20cat.png?token=";
    assert!(url.starts_with(start), "{url}");
    let expected = json!({
        "success": true,
        "presignedUrl": url,
        "bucketName": "photos",
        "key": "img/tom cat.png",
        "expiresIn": 600,
        "expiresAt": "2026-01-31T12:10:00.000Z",
        "bucket": "photos",
        "fileKey": "img/tom cat.png",
        "filePath": "img/tom cat.png",
        "method": "PUT",
    });
    assert_eq!(body, expected);
    for (query, seconds) in [("", 3_600), ("?expiresIn=9999", 3_600), ("?expiresIn=0", 1)] {
        let reply = client.get(&format!("/photos/presigned/a.png{query}")).await.json();
        assert_eq!(reply["expiresIn"], seconds, "{query}");
    }
    let wrong = client.get("/photos/presigned/a.png?expiresIn=soon").await;
    wrong.check_error(400, "bad_parameter");
}

#[tokio::test]
async fn presigned_url_put_overwrites_until_expiry() {
    let (world, client) = World::with_bucket(1);
    client.put("/photos/img/", "cat.png", b"old").await;
    let path = path_of(
        &client.get_json("/photos/presigned/img/cat.png?expiresIn=60").await["presignedUrl"],
    );
    let reply = put(&client, &path, "image/png", PNG).await;
    assert_eq!(reply.status, 200, "{}", reply.text());
    let body = reply.json();
    assert_eq!(body["url"], "https://cdn.example.com/photos/img/cat.png");
    assert_eq!((&body["key"], &body["renamed"]), (&json!("img/cat.png"), &json!(false)));
    assert_eq!(body["files"][0]["etag"], reply.header("etag"));
    assert_eq!(reply.header("access-control-allow-origin"), "*");
    let file = client.get("/photos/img/cat.png").await;
    assert_eq!((&*file.body, file.header("etag")), (PNG, reply.header("etag")));
    // A client that lost the response repeats the PUT.
    world.clock.advance(59_999);
    assert_eq!(put(&client, &path, "image/png", b"again").await.status, 200);
    assert_eq!(client.get("/photos/img/cat.png").await.text(), "again");
    world.clock.advance(1);
    put(&client, &path, "image/png", b"late").await.check_error(410, "token_expired");
    assert_eq!(world.object_count("photos"), 1);
}

#[tokio::test]
async fn presigned_url_content_type_is_sniffed_first() {
    let (_world, client) = World::with_bucket(1);
    for (name, declared, bytes, stored) in [
        ("a.png", "image/webp", PNG, "image/png"),
        ("b.weba", "audio/webm;codecs=opus", &b"\x01\x02"[..], "audio/webm"),
        ("c.txt", "application/x-www-form-urlencoded", b"text", "text/plain"),
        ("d", "video/mp4", b"\0\x01", "video/mp4"),
        ("e.txt", "", b"text", "text/plain"),
        ("f.bin", "multipart/form-data; boundary=x", b"--x--", "application/octet-stream"),
        ("g.txt", "text/plain", b"", "text/plain"),
    ] {
        let path =
            path_of(&client.get_json(&format!("/photos/presigned/{name}")).await["presignedUrl"]);
        let reply = put(&client, &path, declared, bytes).await;
        assert_eq!(reply.status, 200, "{name}: {}", reply.text());
        let found = reply.json()["files"][0]["contentType"].as_str().unwrap().to_owned();
        assert!(found.starts_with(stored), "{name}: {found}");
        assert_eq!(client.get(&format!("/photos/{name}")).await.body, bytes);
    }
}

#[tokio::test]
async fn presigned_url_is_for_one_key_method_and_use() {
    let (world, client) = World::with_bucket(1);
    world.bucket("ann", "other", BucketSettings::default());
    let path = path_of(&client.get_json("/photos/presigned/img/a.txt").await["presignedUrl"]);
    let token = token(&path);
    for place in [
        "/photos/img/b.txt",
        "/photos/img/",
        "/photos/img/a.txt/x",
        "/photos/a.txt",
        "/photos/",
        "/photos",
        "/other/img/a.txt",
        "/photos/presigned/img/a.txt",
        "/photos/img/A.txt",
    ] {
        let reply = put(&client, &format!("{place}?token={token}"), "text/plain", b"1").await;
        reply.check_error(404, "token_not_found");
    }
    // The same address, written otherwise, is the same address.
    let same = format!("/photos/img%2Fa.txt?token={token}");
    assert_eq!(put(&client, &same, "text/plain", b"1").await.status, 200);
    let anonymous = client.without_key();
    let form = || Form::new().file("file", "a.txt", None, b"1");
    anonymous.upload(&path, form()).await.check_error(401, "missing_api_key");
    anonymous.delete(&path).await.check_error(401, "missing_api_key");
    let posted = anonymous.upload(&format!("/api/presigned-url/{token}"), form()).await;
    posted.check_error(404, "token_not_found");
    let current = client.get("/api/presigned-url?path=photos/img/a.txt").await.json();
    let swapped = format!("/photos/img/a.txt?token={}", current["token"].as_str().unwrap());
    put(&client, &swapped, "text/plain", b"1").await.check_error(404, "token_not_found");
    for at in 0..token.len() {
        let mut changed = token.to_owned().into_bytes();
        changed[at] = if changed[at] == b'a' { b'b' } else { b'a' };
        let changed = String::from_utf8(changed).unwrap();
        let path = format!("/photos/img/a.txt?token={changed}");
        put(&client, &path, "text/plain", b"1").await.check_error(404, "token_not_found");
    }
    for query in ["", "?token=", "?tokens=x"] {
        let headers = [("content-type", "text/plain")];
        let place = format!("/photos/img/a.txt{query}");
        let reply = client.send(Method::PUT, &place, &headers, Body::from("1")).await;
        reply.check_error(405, "method_not_allowed");
        assert!(reply.text().contains("-F file=@FILE"), "{}", reply.text());
    }
}

#[tokio::test]
async fn presigned_url_requires_a_credential() {
    let (world, client) = World::with_bucket(1);
    let path = "/photos/presigned/img/a.txt";
    let anonymous = client.without_key();
    anonymous.get(path).await.check_error(404, "file_not_found");
    assert_eq!(client.head_with(path, &[]).await.status, 404);
    let with = async |headers: &[(&str, &str)]| anonymous.get_with(path, headers).await;
    with(&[("authorization", "Bearer nonsense")]).await.check_error(401, "invalid_api_key");
    with(&[("authorization", "Basic dTpw")]).await.check_error(404, "file_not_found");
    assert_eq!(with(&[("authorization", client.key())]).await.status, 200);
    assert_eq!(with(&[("x-api-key", client.key())]).await.status, 200);
    assert_eq!(anonymous.get(&format!("{path}?apiKey={}", client.key())).await.status, 200);

    let limited = |scope, prefix: Option<&str>| ApiKeySettings {
        scopes: vec![scope],
        prefix: prefix.map(str::to_owned),
        ..ApiKeySettings::default()
    };
    let uploader = world.client_of("ann", limited(Scope::Upload, None));
    uploader.get(path).await.check_error(403, "forbidden");
    let signer = world.client_of("ann", limited(Scope::Presign, Some("img")));
    assert_eq!(signer.get(path).await.status, 200);
    signer.get("/photos/presigned/imgs/a.txt").await.check_error(403, "forbidden");
    let bob = world.account_with_key("bob");
    bob.get(path).await.check_error(404, "bucket_not_found");
    world.make_private("photos");
    anonymous.get(path).await.check_error(401, "missing_api_key");
    assert_eq!(client.get(path).await.status, 200);
}

#[tokio::test]
async fn presigned_url_requires_write_permission() {
    let (_world, client) = World::with_bucket(1);
    for path in ["", "img/", "../a", "a//b", "a%00b", "presigned/a.txt", "presigned/presigned/a"] {
        client.get(&format!("/photos/presigned/{path}")).await.check_error(400, "bad_path");
    }
    let long = "k".repeat(1_024);
    let path =
        path_of(&client.get_json(&format!("/photos/presigned/{long}")).await["presignedUrl"]);
    assert_eq!(put(&client, &path, "text/plain", b"1").await.json()["key"], long);
    client.get(&format!("/photos/presigned/{long}k")).await.check_error(400, "bad_path");
    client.get("/none/presigned/a.txt").await.check_error(404, "bucket_not_found");
}

#[tokio::test]
async fn presigned_url_failed_put_keeps_the_existing_file() {
    let world = World::with(1, Config { body_bytes_max: 100, ..Config::default() });
    world.account("ann");
    world.bucket("ann", "photos", BucketSettings::default());
    let issued = world.api_key("ann", ApiKeySettings::default());
    let client = Client::new(world.app(), Some(issued.key));
    let path = path_of(&client.get_json("/photos/presigned/a.txt").await["presignedUrl"]);
    assert_eq!(put(&client, &path, "text/plain", b"first").await.status, 200);
    put(&client, &path, "text/plain", &[b'x'; 101]).await.check_error(413, "file_too_large");
    let (held, body) = held_body(b"broken off".to_vec());
    drop(held);
    let broken = client.without_key().send(Method::PUT, &path, &[], body).await;
    broken.check_error(400, "incomplete_body");
    world.manage(AdminRequest::RevokeApiKey { id: issued.api_key.id });
    put(&client, &path, "text/plain", b"second").await.check_error(410, "token_revoked");
    assert_eq!(client.get("/photos/a.txt").await.text(), "first");
}

#[tokio::test]
async fn presigned_url_accepts_chunked_and_expect_continue() {
    let (world, client) = World::with_bucket(1);
    let server = world.listen(ConnectionOptions::new()).await;
    let path = path_of(&client.get_json("/photos/presigned/a.txt").await["presignedUrl"]);
    let head = format!("PUT {path} HTTP/1.1\r\nHost: a\r\nContent-Type: image/webp\r\n");
    let chunked =
        "Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n3\r\none\r\n4\r\n two\r\n0\r\n\r\n";
    let answer = server.request(format!("{head}{chunked}")).await;
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n") && answer.contains("etag: \""), "{answer}");
    assert_eq!(client.get("/photos/a.txt").await.text(), "one two");
    let expecting = "Content-Length: 5\r\nExpect: 100-continue\r\nConnection: close\r\n\r\n";
    let mut wire = server.send(format!("{head}{expecting}")).await;
    assert!(wire.read_to("\r\n\r\n").await.starts_with("HTTP/1.1 100 "));
    wire.write("three").await;
    let (answer, _) = wire.read_remaining().await;
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    assert_eq!(client.get("/photos/a.txt").await.text(), "three");
    // Rejected before `100 Continue`.
    let wrong = head.replace("?token=", "?token=x");
    let answer = server.request(format!("{wrong}{expecting}")).await;
    assert!(answer.starts_with("HTTP/1.1 404 "), "{answer}");
}
