//! Compression of text-like files: content codings (RFC 9110 sections 8.4 and 12.5.3), caching, and exceptions.

use std::io::Read;
use std::time::Duration;

use catalog::object_attributes::StoredAttributes;
use engine::disk::sim::SimDisk;
use engine::{Batch, BucketName, ObjectKey, ObjectName, PutOptions};
use protocol::stored_headers::StoredHeaders;
use serde_json::json;
use server::management::ApiKeySettings;
use service::config::Config;
use tests::{Client, Reply, World};

const CODINGS: [&str; 3] = ["br", "zstd", "gzip"];
const PATH: &str = "/photos/a.json";

/// Returns text of at least `bytes` that shrinks, and differs for each seed.
fn text(seed: usize, bytes: usize) -> Vec<u8> {
    let lines = (0..).map(|line| format!("{{\"line\": {line}, \"is\": \"{}\"}},\n", line * seed));
    let mut text = String::new();
    for line in lines {
        if text.len() >= bytes {
            break;
        }
        text.push_str(&line);
    }
    text.into_bytes()
}

/// Returns bytes that no coding makes smaller.
fn noise(bytes: usize) -> Vec<u8> {
    let mut state = 7_u64;
    let next = |_| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 56) as u8
    };
    (0..bytes).map(next).collect()
}

fn decode(reply: &Reply) -> Vec<u8> {
    let mut content = Vec::new();
    match reply.header("content-encoding") {
        "br" => {
            let mut decoder = brotli_decompressor::Decompressor::new(&reply.body[..], 4_096);
            decoder.read_to_end(&mut content).unwrap();
        }
        "zstd" => {
            content = vec![0; 16 << 20];
            let bytes = zstd_safe::decompress(&mut content[..], &reply.body).unwrap();
            content.truncate(bytes);
        }
        "gzip" => {
            let mut decoder = flate2::read::GzDecoder::new(&reply.body[..]);
            decoder.read_to_end(&mut content).unwrap();
        }
        "" => content.extend_from_slice(&reply.body),
        other => panic!("unknown coding {other}"),
    }
    content
}

fn vary(reply: &Reply) -> String {
    let values = reply.headers.get_all("vary").iter().map(|value| value.to_str().unwrap());
    values.collect::<Vec<_>>().join(", ")
}

fn varies(reply: &Reply) -> bool {
    vary(reply).split(", ").any(|name| name == "accept-encoding")
}

async fn get_as(client: &Client, path: &str, coding: &str) -> Reply {
    client.get_with(path, &[("accept-encoding", coding)]).await
}

/// Requests a file until it is compressed: the threads have the lowest priority, and a request waits only briefly.
async fn compressed(client: &Client, path: &str, coding: &str) -> Reply {
    for _ in 0..200 {
        let reply = get_as(client, path, coding).await;
        if reply.header("content-encoding") == coding {
            return reply;
        }
        assert_eq!((reply.status.as_u16(), reply.header("content-encoding")), (200, ""));
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("{path} is not compressed by {coding}");
}

/// Waits until no compression runs, then checks that a file is sent as it is.
async fn check_identity(client: &Client, path: &str, is_negotiated: bool) {
    for _ in 0..3 {
        let reply = get_as(client, path, "br, zstd, gzip").await;
        assert_eq!((reply.status.as_u16(), reply.header("content-encoding")), (200, ""), "{path}");
        assert_eq!(varies(&reply), is_negotiated, "{path}");
        assert_eq!(reply.header("accept-ranges"), "bytes");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// Stores a text with the given response headers, as an S3 client does.
fn put_with_headers(world: &World, key: &str, bytes: &[u8], headers: StoredHeaders) {
    let attributes = StoredAttributes { headers, ..StoredAttributes::default() };
    let options = PutOptions {
        content_type: "application/json".to_owned(),
        attributes: attributes.encoded().unwrap(),
        ..PutOptions::default()
    };
    let name =
        ObjectName::new(BucketName::parse("photos").unwrap(), ObjectKey::parse(key).unwrap());
    let mut upload = world.store.upload();
    upload.push(bytes).unwrap();
    let batch = Batch::new().put(name, upload.finish().unwrap(), options);
    world.store.commit(batch).unwrap();
}

#[tokio::test]
async fn each_coding_decodes_to_the_file() {
    let (_world, client) = World::with_bucket(1);
    let file = text(3, 40_000);
    client.put("/photos/", "a.json", &file).await;
    let stored = client.get(PATH).await;
    assert_eq!((stored.header("content-encoding"), &stored.body[..]), ("", &file[..]));
    assert_eq!(stored.header("accept-ranges"), "bytes");
    let mut etags = vec![stored.header("etag").to_owned()];
    for coding in CODINGS {
        let reply = compressed(&client, PATH, coding).await;
        assert_eq!(decode(&reply), file, "{coding}");
        assert!(reply.body.len() < file.len() / 4, "{coding}: {}", reply.body.len());
        assert_eq!(reply.header("content-length"), reply.body.len().to_string());
        assert_eq!(reply.header("accept-ranges"), "");
        for name in ["content-type", "cache-control", "last-modified", "content-security-policy"] {
            assert_eq!(reply.header(name), stored.header(name), "{coding}: {name}");
        }
        let etag = stored.header("etag").trim_end_matches('"');
        assert_eq!(reply.header("etag"), format!("{etag}-{coding}\""));
        etags.push(reply.header("etag").to_owned());
    }
    etags.dedup();
    assert_eq!(etags.len(), 4);
}

#[tokio::test]
async fn coding_is_negotiated_by_weight() {
    let (_world, client) = World::with_bucket(1);
    client.put("/photos/", "a.json", &text(1, 9_000)).await;
    for coding in CODINGS {
        compressed(&client, PATH, coding).await;
    }
    for (accepted, coding) in [
        ("gzip, deflate, br, zstd", "br"),
        ("gzip, deflate, zstd", "zstd"),
        ("GZIP;q=1.0, deflate", "gzip"),
        ("br;q=0.2, zstd;q=0.3", "zstd"),
        ("*", "br"),
        ("*;q=0.5, br;q=0", "zstd"),
        ("br;q=0, zstd;q=0, gzip;q=0", ""),
        ("identity", ""),
        ("identity, gzip;q=0.5", ""),
        ("identity;q=0", ""),
        ("*;q=0", ""),
        ("deflate", ""),
        ("", ""),
        ("br;q=oops,,;;,gzip;q", "br"),
        ("\u{fc}", ""),
        ("br\t;\tq=1", "br"),
    ] {
        let reply = get_as(&client, PATH, accepted).await;
        assert_eq!(reply.status, 200, "{accepted}");
        assert_eq!(reply.header("content-encoding"), coding, "{accepted}");
        assert!(varies(&reply), "{accepted}");
    }
    let long = "x;q=0.1, ".repeat(3_000);
    assert_eq!(get_as(&client, PATH, &long).await.header("content-encoding"), "");
    let two = [("accept-encoding", "br;q=0"), ("accept-encoding", "gzip")];
    assert_eq!(client.get_with(PATH, &two).await.header("content-encoding"), "gzip");
}

#[tokio::test]
async fn compressed_form_has_its_own_validators() {
    let (_world, client) = World::with_bucket(1);
    client.put("/photos/", "a.json", &text(1, 9_000)).await;
    let identity = client.get(PATH).await.header("etag").to_owned();
    let ask = |coding: &'static str, name: &'static str, etag: &str| {
        let (client, etag) = (client.clone(), etag.to_owned());
        async move {
            let headers = [("accept-encoding", coding), (name, &*etag)];
            client.get_with(PATH, &headers).await
        }
    };
    for coding in CODINGS {
        let etag = compressed(&client, PATH, coding).await.header("etag").to_owned();
        for _ in 0..3 {
            let same = ask(coding, "if-none-match", &etag).await;
            assert_eq!((same.status.as_u16(), same.body.len()), (304, 0), "{coding}");
            assert_eq!(same.header("etag"), etag);
            assert!(varies(&same), "{coding}");
            assert_eq!(same.header("content-encoding"), "");
            assert_eq!(ask(coding, "if-none-match", &identity).await.status, 200, "{coding}");
            assert_eq!(ask("", "if-none-match", &etag).await.status, 200, "{coding}");
        }
        assert_eq!(ask(coding, "if-match", &etag).await.status, 200);
        assert_eq!(ask(coding, "if-match", &identity).await.status, 412);
        assert_eq!(ask("", "if-match", &identity).await.status, 200);
        assert_eq!(ask("", "if-match", &etag).await.status, 412);
    }
    let same = ask("", "if-none-match", &identity).await;
    assert_eq!((same.status.as_u16(), varies(&same)), (304, true));
}

#[tokio::test]
async fn ranges_are_those_of_the_stored_file() {
    let (_world, client) = World::with_bucket(1);
    let file = text(1, 9_000);
    client.put("/photos/", "a.json", &file).await;
    let packed = compressed(&client, PATH, "br").await.header("etag").to_owned();
    let identity = client.get(PATH).await.header("etag").to_owned();
    let ask = |more: Option<(&'static str, String)>| {
        let client = client.clone();
        async move {
            let mut headers = vec![("accept-encoding", "br"), ("range", "bytes=10-19")];
            headers.extend(more.iter().map(|(name, value)| (*name, value.as_str())));
            client.get_with(PATH, &headers).await
        }
    };
    for more in [None, Some(("if-range", identity.clone())), Some(("if-match", identity))] {
        let part = ask(more).await;
        assert_eq!((part.status.as_u16(), &part.body[..]), (206, &file[10..20]));
        assert_eq!((part.header("content-encoding"), varies(&part)), ("", true));
    }
    let whole = ask(Some(("if-range", packed))).await;
    assert_eq!((whole.status.as_u16(), &whole.body[..]), (200, &file[..]));
    let beyond = client.get_with(PATH, &[("accept-encoding", "br"), ("range", "bytes=99999-")]);
    assert_eq!(beyond.await.status, 416);
}

#[tokio::test]
async fn head_has_the_headers_of_compressed_get() {
    let (_world, client) = World::with_bucket(1);
    client.put("/photos/", "a.json", &text(1, 9_000)).await;
    for coding in CODINGS {
        let get = compressed(&client, PATH, coding).await;
        let head = client.head_with(PATH, &[("accept-encoding", coding)]).await;
        assert_eq!(head.body.len(), 0);
        let headers = |reply: &Reply| {
            let mut headers = reply.headers.clone();
            headers.remove("x-request-id").map(|_| headers)
        };
        assert_eq!(headers(&head), headers(&get), "{coding}");
    }
    // A HEAD alone has the file compressed as well.
    client.put("/photos/", "b.json", &text(2, 9_000)).await;
    for _ in 0..200 {
        let head = client.head_with("/photos/b.json", &[("accept-encoding", "br")]).await;
        if head.header("content-encoding") == "br" {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("HEAD does not compress");
}

#[tokio::test]
async fn stored_coding_and_no_transform_are_left_alone() {
    let (world, client) = World::with_bucket(1);
    let file = text(1, 9_000);
    let coded = StoredHeaders { content_encoding: Some("gzip".into()), ..Default::default() };
    put_with_headers(&world, "coded.json", &file, coded);
    let fixed = StoredHeaders {
        cache_control: Some("max-age=60, No-Transform".into()),
        ..Default::default()
    };
    put_with_headers(&world, "fixed.json", &file, fixed);
    let other = StoredHeaders {
        cache_control: Some("max-age=60".into()),
        content_language: Some("de".into()),
        ..Default::default()
    };
    put_with_headers(&world, "other.json", &file, other);
    for _ in 0..3 {
        let reply = get_as(&client, "/photos/coded.json", "br").await;
        assert_eq!((reply.header("content-encoding"), &reply.body[..]), ("gzip", &file[..]));
        assert!(!varies(&reply));
    }
    check_identity(&client, "/photos/fixed.json", false).await;
    let reply = compressed(&client, "/photos/other.json", "br").await;
    assert_eq!(reply.header("content-language"), "de");
    assert_eq!(reply.header("cache-control"), "max-age=60");
    let rule = json!({"cacheControl": "public, max-age=5, no-transform"});
    client.patch_json("/api/buckets/photos", rule).await.check_done();
    check_identity(&client, "/photos/other.json", false).await;
    assert_eq!(world.derived_count(), 1);
}

#[tokio::test]
async fn compression_can_be_disabled_per_bucket() {
    let (world, client) = World::with_bucket(1);
    client.put("/photos/", "a.json", &text(1, 9_000)).await;
    for _ in 0..3 {
        compressed(&client, PATH, "br").await;
    }
    client.patch_json("/api/buckets/photos", json!({"compression": false})).await.check_done();
    check_identity(&client, PATH, false).await;
    client.patch_json("/api/buckets/photos", json!({"compression": true})).await.check_done();
    compressed(&client, PATH, "br").await;
    let refused = client.patch_json("/api/buckets/photos", json!({"compression": null})).await;
    assert_eq!(refused.status, 400);
    assert_eq!(world.derived_count(), 1);
}

#[tokio::test]
async fn unsuitable_files_are_sent_as_they_are() {
    let (world, client) = World::with_bucket(1);
    for (name, bytes, is_negotiated) in [
        ("small.txt", text(1, 900), false),
        ("least.txt", text(1, 1_024), true),
        ("large.txt", text(1, (8 << 20) + 1), false),
        ("data.bin", text(1, 9_000), false),
        ("photo.zip", text(1, 9_000), false),
        ("noise.wasm", noise(9_000), true),
    ] {
        client.put("/photos/", name, &bytes).await;
        let path = format!("/photos/{name}");
        match name {
            "least.txt" => drop(compressed(&client, &path, "gzip").await),
            _ => check_identity(&client, &path, is_negotiated).await,
        }
    }
    let derived = world.derived_count();
    assert_eq!(derived, 1, "a file that does not shrink has no variant");
}

#[tokio::test]
async fn compressed_form_is_cached_and_survives_restart() {
    let (world, client) = World::with_bucket(1);
    client.put("/photos/", "a.svg", &text(1, 9_000)).await;
    let before = compressed(&client, "/photos/a.svg", "br").await;
    let stats = world.state.variants.read();
    for path in ["/photos/a.svg", "/photos/a.svg?v=2", "/photos/a.svg?width=100"] {
        for _ in 0..3 {
            let again = get_as(&client, path, "br").await;
            assert_eq!((again.header("content-encoding"), &again.body), ("br", &before.body));
        }
    }
    let hits = world.state.variants.read().hits - stats.hits;
    assert_eq!((world.derived_count(), hits), (1, 9));
    world.store.close().unwrap();
    let world = world.found_on(SimDisk::clone(&world.disk));
    let client = world.client_of("ann", ApiKeySettings::default());
    let after = get_as(&client, "/photos/a.svg", "br").await;
    assert_eq!((after.header("content-encoding"), &after.body), ("br", &before.body));
    assert_eq!(after.header("etag"), before.header("etag"));
    assert_eq!(world.state.variants.read().misses, 0);
}

#[tokio::test]
async fn changed_source_never_serves_old_compressed_form() {
    let (world, client) = World::with_bucket(1);
    for seed in 1..4 {
        let file = text(seed, 9_000);
        client.put("/photos/a.json?overwrite=true", "a.json", &file).await;
        for coding in CODINGS {
            let first = get_as(&client, PATH, coding).await;
            assert_eq!(decode(&first), file, "{seed} {coding}");
            assert_eq!(decode(&compressed(&client, PATH, coding).await), file);
        }
    }
    world.state.variants.sweep().unwrap();
    assert_eq!(world.derived_count(), 3);
    client.delete(PATH).await.check_done();
    get_as(&client, PATH, "br").await.check_error(404, "file_not_found");
    world.state.variants.sweep().unwrap();
    assert_eq!(world.derived_count(), 0);
}

#[tokio::test]
async fn corrupt_compressed_form_is_regenerated() {
    let (world, client) = World::with_bucket(1);
    let file = text(1, 9_000);
    client.put("/photos/", "a.json", &file).await;
    let before = compressed(&client, PATH, "br").await;
    world.damage(&before.body[1..]);
    assert_eq!(decode(&get_as(&client, PATH, "br").await), file);
    assert_eq!(compressed(&client, PATH, "br").await.body, before.body);
}

#[tokio::test]
async fn compressed_form_has_the_access_of_its_file() {
    let (world, client) = World::with_bucket(1);
    let file = text(1, 9_000);
    client.put("/photos/", "a.json", &file).await;
    compressed(&client, PATH, "br").await;
    world.make_private("photos");
    assert_eq!(get_as(&client.without_key(), PATH, "br").await.status, 401);
    let reply = get_as(&client, PATH, "br").await;
    assert_eq!(reply.header("cache-control"), "private, no-store");
    assert_eq!((reply.header("content-encoding"), decode(&reply)), ("br", file));
    let variants = BucketName::parse("trug.variants").unwrap();
    let variant = world.store.list_keys(&variants, "", None, 1).unwrap().objects.remove(0);
    let path = format!("/trug.variants/{}", variant.name().key);
    client.get(&path).await.check_error(404, "bucket_not_found");
}

#[tokio::test]
async fn download_and_placeholder_are_compressed() {
    let (_world, client) = World::with_bucket(1);
    let file = text(1, 9_000);
    client.put("/photos/", "a.json", &file).await;
    compressed(&client, PATH, "br").await;
    let saved = get_as(&client, &format!("{PATH}?download=b.json"), "br").await;
    assert_eq!(saved.header("content-disposition"), "attachment; filename=\"b.json\"");
    assert_eq!((saved.header("content-encoding"), decode(&saved)), ("br", file.clone()));
    let own = get_as(&client, &format!("{PATH}?download"), "br").await;
    assert_eq!(own.header("content-disposition"), "attachment; filename=\"a.json\"");
    client.patch_json("/api/buckets/photos", json!({"placeholder": "a.json"})).await.check_done();
    let missing = get_as(&client, "/photos/missing.json", "br").await;
    assert_eq!((missing.status.as_u16(), missing.header("content-encoding")), (404, "br"));
    assert_eq!((decode(&missing), varies(&missing)), (file, true));
    assert_eq!(missing.header("content-length"), missing.body.len().to_string());
}

#[tokio::test]
async fn vary_is_added_to_other_values() {
    let (_world, client) = World::with_bucket(1);
    client.put("/photos/", "a.json", &text(1, 9_000)).await;
    let origins = json!({"corsOrigins": ["https://a.example"]});
    client.patch_json("/api/buckets/photos", origins).await.check_done();
    let reply = compressed(&client, PATH, "br").await;
    assert_eq!(
        vary(&reply),
        "sec-fetch-dest, sec-fetch-site, service-worker, accept-encoding, origin"
    );
}

#[tokio::test]
async fn exhausted_cpu_limit_sends_the_file_as_it_is() {
    let config = Config { image_ms_per_second_per_bucket: 1, ..Config::default() };
    let (world, client) = World::with_bucket_and(1, config);
    // Half a second each, of a burst of 0.3 seconds, which the first one takes whole.
    let mut file = text(1, 8 << 20);
    file.truncate(8 << 20);
    for name in ["a.json", "b.json"] {
        client.put("/photos/", name, &file).await;
    }
    compressed(&client, PATH, "zstd").await;
    check_identity(&client, "/photos/b.json", true).await;
    assert_eq!(world.derived_count(), 1);
}
