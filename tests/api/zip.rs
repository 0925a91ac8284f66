//! Zip archives of folders and selections: `API.md`, Zip archives. Python reads them.

use std::io::Write;
use std::process::Command;

use axum::body::Body;
use catalog::{Access, Scope};
use fuzz::model::body;
use http::{Method, Response};
use http_body_util::BodyExt;
use serde_json::{Value, json};
use server::management::{AdminRequest, ApiKeySettings, BucketSettings};
use service::limits::{ZIP_ENTRIES_MAX, ZIPS_CONCURRENT_MAX};
use tests::client::read_until_closed;
use tests::fixtures::{key_of_folder, key_with_scopes, path_of, put_all};
use tests::python_reader::{require_python, sha256};
use tests::{Client, Reply, World};

use crate::images::png;

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/reader/read_zip.py");
const ZIPS: &str = "/api/buckets/photos/zips";

/// Returns name, length, SHA-256, mode and time of each entry, as Python reads the archive.
fn read(archive: &[u8]) -> Vec<Value> {
    require_python();
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(archive).unwrap();
    let output = Command::new("python3").arg(SCRIPT).arg(file.path()).output().unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{error}");
    let lines = String::from_utf8(output.stdout).unwrap();
    lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn names(archive: &[u8]) -> Vec<String> {
    read(archive).iter().map(|entry| entry[0].as_str().unwrap().to_owned()).collect()
}

async fn zip(client: &Client, path: &str) -> Reply {
    let reply = client.get(path).await;
    assert_eq!(reply.status, 200, "{path}: {}", reply.text());
    assert_eq!(reply.header("content-length"), reply.body.len().to_string());
    reply
}

/// Prepares an archive; returns the reply, and the path of the URL.
async fn prepare(client: &Client, paths: &[&str]) -> (Value, String) {
    let reply = client.post_json(ZIPS, json!({"paths": paths})).await.check_done();
    let path = path_of(&reply["url"]);
    (reply, path)
}

#[tokio::test]
async fn zip_of_a_folder_has_its_files_without_thumbnails() {
    let (world, client) = World::with_bucket(1);
    let large = body(7, 700_001);
    client.put("/photos/a/2026/", "größe.txt", b"0123456789").await;
    client.put("/photos/a/2026/sub/", "large.bin", &large).await;
    client.put("/photos/a/2026/sub/", "empty.txt", b"").await;
    client.put("/photos/a/", "other.txt", b"other").await;
    let picture = png(600, 400);
    client.put("/photos/a/2026/?thumbnail=true", "p.png", &picture).await;
    assert!(client.list_keys("a/2026/").await.contains(&"a/2026/p_thumb.webp".to_owned()));
    world.clock.advance(60_000);
    let path = "/api/buckets/photos/zip?prefix=a/2026/";
    let reply = zip(&client, path).await;
    let time = 1_769_860_800;
    assert_eq!(
        read(&reply.body),
        [
            json!(["2026/größe.txt", 10, sha256(b"0123456789"), 0o100_644, time]),
            json!(["2026/p.png", picture.len(), sha256(&picture), 0o100_644, time]),
            json!(["2026/sub/empty.txt", 0, sha256(b""), 0o100_644, time]),
            json!(["2026/sub/large.bin", 700_001, sha256(&large), 0o100_644, time]),
        ]
    );
    for (header, value) in [
        ("content-type", "application/zip"),
        ("content-disposition", "attachment; filename=\"2026.zip\""),
        ("cache-control", "private, no-store"),
        ("x-content-type-options", "nosniff"),
        ("accept-ranges", "none"),
    ] {
        assert_eq!(reply.header(header), value, "{header}");
    }
    let head = client.head_with(path, &[]).await;
    assert_eq!(head.header("content-length"), reply.body.len().to_string());
    let whole = zip(&client, "/api/buckets/photos/zip?name=All%20of%20it.zip").await;
    assert_eq!(names(&whole.body)[4..], ["a/other.txt"]);
    assert_eq!(whole.header("content-disposition"), "attachment; filename=\"All of it.zip\"");
    let unnamed = client.head_with("/api/buckets/photos/zip", &[]).await;
    assert_eq!(unnamed.header("content-disposition"), "attachment; filename=\"photos.zip\"");
}

#[tokio::test]
async fn zip_of_a_selection_is_downloaded_without_credentials() {
    let (world, client) = World::with_bucket(1);
    for (folder, file) in
        [("a/b/", "1.txt"), ("a/b/c/", "2.txt"), ("a/b/", "3.txt"), ("x/", "y.txt")]
    {
        client.put(&format!("/photos/{folder}"), file, b"0123456789").await;
    }
    let (reply, path) =
        prepare(&client, &["a/b/c/2.txt", "a/b/c/", "a/b/1.txt", "a/b/1.txt", "a/b/none.txt"])
            .await;
    assert_eq!((&reply["files"], &reply["bytes"]), (&json!(2), &json!(20)));
    assert_eq!(reply["expiresAt"], "2026-01-31T12:05:00.000Z");
    let anonymous = world.anonymous();
    let archive = zip(&anonymous, &path).await;
    assert_eq!(names(&archive.body), ["1.txt", "c/2.txt"]);
    assert_eq!(archive.header("content-disposition"), "attachment; filename=\"photos.zip\"");
    let one = prepare(&client, &["x/"]).await.1;
    let archive = zip(&anonymous, &one).await;
    assert_eq!(archive.header("content-disposition"), "attachment; filename=\"x.zip\"");
    // The files of the moment of the download.
    client.put("/photos/x/", "z.txt", b"0").await;
    assert_eq!(names(&zip(&anonymous, &one).await.body), ["x/y.txt", "x/z.txt"]);
    client.delete("/photos/x/").await.check_done();
    anonymous.get(&one).await.check_error(404, "file_not_found");
    world.clock.advance(300_000);
    anonymous.get(&path).await.check_error(404, "link_not_found");
    anonymous.get("/-/zip/none").await.check_error(404, "link_not_found");
}

#[tokio::test]
async fn zip_requires_the_scopes_of_reading_and_listing() {
    let (world, client) = World::with_bucket(1);
    world.edit_bucket(
        "photos",
        BucketSettings { access: Some(Access::Private), ..Default::default() },
    );
    client.put("/photos/a/", "1.txt", b"1").await;
    client.put("/photos/b/", "2.txt", b"2").await;
    let (folder, selection) = ("/api/buckets/photos/zip?prefix=a/", json!({"paths": ["a/1.txt"]}));
    let refused = |settings: ApiKeySettings| world.client_of("ann", settings);
    for (client, status, code) in [
        (world.anonymous(), 401, "missing_api_key"),
        (refused(key_with_scopes(&[Scope::Read])), 403, "forbidden"),
        (refused(key_with_scopes(&[Scope::List])), 403, "forbidden"),
        (refused(key_of_folder("b/")), 403, "forbidden"),
    ] {
        client.get(folder).await.check_error(status, code);
        client.post_json(ZIPS, selection.clone()).await.check_error(status, code);
    }
    let of_folder = world.client_of("ann", key_of_folder("a/"));
    assert_eq!(names(&zip(&of_folder, folder).await.body), ["a/1.txt"]);
    of_folder.get("/api/buckets/photos/zip").await.check_error(403, "forbidden");
    world.account("bob");
    let bob = world.client_of("bob", ApiKeySettings::default());
    bob.get(folder).await.check_error(404, "bucket_not_found");
    bob.post_json(ZIPS, selection).await.check_error(404, "bucket_not_found");
}

#[tokio::test]
async fn prepared_zip_has_the_current_rights_of_its_creator() {
    let (world, _) = World::with_bucket(1);
    let issued = world.api_key("ann", ApiKeySettings::default());
    let client = Client::new(world.app(), Some(issued.key));
    client.put("/photos/a/", "1.txt", b"1").await;
    let path = prepare(&client, &["a/"]).await.1;
    zip(&world.anonymous(), &path).await;
    world.manage(AdminRequest::RevokeApiKey { id: issued.api_key.id });
    world.anonymous().get(&path).await.check_error(410, "token_revoked");
}

#[tokio::test]
async fn invalid_zip_requests_are_rejected() {
    let (_world, client) = World::with_bucket(1);
    client.put("/photos/a/", "1.txt", b"1").await;
    let get = |query: &'static str| client.get(query);
    get("/api/buckets/photos/zip?prefix=a/1.txt").await.check_parameter("prefix");
    get("/api/buckets/photos/zip?prefix=a/../").await.check_error(400, "bad_path");
    get("/api/buckets/photos/zip?prefix=none/").await.check_error(404, "file_not_found");
    get("/api/buckets/nowhere/zip").await.check_error(404, "bucket_not_found");
    let post = |body: Value| client.post_json(ZIPS, body);
    post(json!({"paths": []})).await.check_parameter("paths");
    post(json!({"paths": vec!["a/1.txt"; 10_001]})).await.check_parameter("paths");
    post(json!({"paths": ["a/1.txt"], "more": 1})).await.check_parameter("more");
    post(json!({"paths": ["/etc/passwd"]})).await.check_error(400, "bad_path");
    post(json!({"paths": ["none"]})).await.check_error(404, "file_not_found");
    post(json!({"paths": vec!["a/1.txt"; 10_000]})).await.check_done();
    let long = vec!["x".repeat(1_000); 3_000];
    assert_eq!(post(json!({ "paths": long })).await.status, 413);
}

#[tokio::test]
async fn hostile_names_are_portable_in_a_zip() {
    let (world, client) = World::with_bucket(1);
    put_all(
        &world.store,
        &[
            "h/con.txt",
            "h/c:evil|.txt",
            "h/A.TXT",
            "h/a.txt",
            "h/a.txt/below.txt",
            "h/\u{202e}gpj.exe",
            "h/<script>.svg",
        ],
    );
    let archive = zip(&client, "/api/buckets/photos/zip?prefix=h/").await;
    let mut found = names(&archive.body);
    found.sort();
    assert_eq!(
        found,
        [
            "h/A (1).TXT",
            "h/_script_.svg",
            "h/a (2).txt",
            "h/a.txt/below.txt",
            "h/c_evil_.txt",
            "h/con_.txt",
            "h/\u{202e}gpj.exe",
        ]
    );
}

#[tokio::test]
async fn zip_has_the_versions_that_existed_when_it_began() {
    let (_world, client) = World::with_bucket(1);
    client.put("/photos/", "a.bin", &vec![b'a'; 3 << 20]).await;
    client.put("/photos/", "b.txt", b"before").await;
    client.put("/photos/", "c.txt", b"c").await;
    let response = client.open(Method::GET, "/api/buckets/photos/zip", &[]).await;
    client.put("/photos/b.txt?overwrite=true", "b.txt", b"after, and longer").await;
    client.delete("/photos/c.txt").await.check_done();
    let archive = response.into_body().collect().await.unwrap().to_bytes();
    let digests: Vec<_> = read(&archive).into_iter().map(|entry| entry[2].clone()).collect();
    assert_eq!(digests[1..], [json!(sha256(b"before")), json!(sha256(b"c"))]);
}

#[tokio::test]
async fn damaged_file_ends_a_zip_before_its_length() {
    let (world, client) = World::with_bucket(1);
    client.put("/photos/", "a.txt", b"intact").await;
    let large: Vec<u8> =
        [vec![b'-'; 200_000], b"to be damaged".to_vec(), vec![b'-'; 200_000]].concat();
    client.put("/photos/", "b.bin", &large).await;
    world.damage(b"to be damaged");
    let path = "/api/buckets/photos/zip";
    let response = client.open(Method::GET, path, &[]).await;
    let length: usize = response.headers()["content-length"].to_str().unwrap().parse().unwrap();
    let (sent, is_complete) = read_until_closed(response.into_body()).await;
    assert!(!is_complete && sent.len() < length, "{} of {length}", sent.len());
    client.put("/photos/first/", "a.txt", b"small and damaged").await;
    world.damage(b"small and damaged");
    client.get("/api/buckets/photos/zip?prefix=first/").await.check_error(500, "damaged");
}

#[tokio::test]
async fn zip_of_more_than_65535_files_is_zip64() {
    let (world, client) = World::with_bucket(1);
    put_many(&world, 66_000);
    let archive = zip(&client, "/api/buckets/photos/zip?prefix=many/").await;
    assert_eq!(read(&archive.body).len(), 66_000);
}

#[tokio::test]
async fn zip_over_the_entry_limit_is_rejected() {
    let (world, client) = World::with_bucket(1);
    put_many(&world, ZIP_ENTRIES_MAX + 1);
    let reply = client.get("/api/buckets/photos/zip?prefix=many/").await;
    reply.check_error(400, "zip_too_large");
}

#[tokio::test]
async fn concurrent_zips_are_bounded() {
    let (_world, client) = World::with_bucket(1);
    client.put("/photos/", "a.bin", &vec![b'a'; 1 << 20]).await;
    let path = "/api/buckets/photos/zip";
    let mut open: Vec<Response<Body>> = Vec::new();
    for _ in 0..ZIPS_CONCURRENT_MAX {
        open.push(client.open(Method::GET, path, &[]).await);
    }
    client.get(path).await.check_error(503, "overloaded");
    assert!(open.iter().all(|response| response.status() == 200));
    open.pop();
    zip(&client, path).await;
}

/// Stores this many small files in a folder.
fn put_many(world: &World, count: usize) {
    let keys: Vec<String> = (0..count).map(|number| format!("many/{number:06}")).collect();
    for keys in keys.chunks(1_000) {
        put_all(&world.store, &keys.iter().map(String::as_str).collect::<Vec<_>>());
    }
}
