//! Resumable uploads, tus 1.0: `API.md`, Resumable uploads.

use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::{Body, HttpBody};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::Method;
use hyper::body::Frame;
use server::management::{ApiKeySettings, BucketSettings};
use service::Config;
use sha1::Sha1;
use sha2::{Digest, Sha256};
use tests::store::body;
use tests::{Client, Form, Reply, World};

pub(super) const CHUNK: (&str, &str) = ("content-type", "application/offset+octet-stream");
pub(super) const VERSION: (&str, &str) = ("tus-resumable", "1.0.0");

pub(super) fn metadata(pairs: &[(&str, &str)]) -> String {
    let pair = |(name, value): &(&str, &str)| format!("{name} {}", STANDARD.encode(value));
    pairs.iter().map(pair).collect::<Vec<_>>().join(",")
}

pub(super) async fn create(client: &Client, length: usize, pairs: &[(&str, &str)]) -> Reply {
    let (length, metadata) = (length.to_string(), metadata(pairs));
    let headers = [VERSION, ("upload-length", &*length), ("upload-metadata", &*metadata)];
    client.send(Method::POST, "/api/tus/", &headers, Body::empty()).await
}

fn quota(bytes: u64) -> BucketSettings {
    BucketSettings { quota_bytes: Some(Some(bytes)), ..BucketSettings::default() }
}

/// A body that sends some bytes and breaks off.
struct Broken(Option<Bytes>);

impl HttpBody for Broken {
    type Data = Bytes;
    type Error = std::io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, std::io::Error>>> {
        let frame = self.0.take().map(Frame::data);
        Poll::Ready(Some(frame.ok_or_else(|| std::io::Error::other("gone"))))
    }
}

/// Creates an upload, which must be accepted, and returns its address.
pub(super) async fn begun(client: &Client, length: usize, pairs: &[(&str, &str)]) -> String {
    let reply = create(client, length, pairs).await;
    assert_eq!(reply.status, 201, "{}", reply.text());
    format!("/api/tus/{}", reply.header("location"))
}

pub(super) async fn append(client: &Client, path: &str, offset: usize, bytes: &[u8]) -> Reply {
    let offset = offset.to_string();
    let headers = [VERSION, CHUNK, ("upload-offset", &*offset)];
    client.send(Method::PATCH, path, &headers, Body::from(bytes.to_vec())).await
}

pub(super) async fn head(client: &Client, path: &str) -> Reply {
    client.head_with(path, &[VERSION]).await
}

#[tokio::test]
async fn tus_upload_in_chunks_is_stored_with_the_last() {
    let (world, client) = World::with_bucket(1);
    let whole = body(1, 2_500_000);
    let said = [("bucketName", "photos"), ("path", "clips/"), ("filename", "Tom & I.webm")];
    let path = begun(&client, whole.len(), &said).await;
    let mut offset = 0;
    for piece in whole.chunks(1_000_000) {
        let before = head(&client, &path).await;
        assert_eq!(
            (before.status.as_u16(), before.header("upload-offset")),
            (200, &*offset.to_string())
        );
        assert_eq!(before.header("upload-length"), "2500000");
        assert_eq!(before.header("cache-control"), "no-store");
        assert_eq!(before.header("upload-metadata"), metadata(&said));
        assert!(before.header("upload-expires").ends_with("GMT"), "{before:?}");
        assert_eq!(world.object_count("photos"), 0);
        let reply = append(&client, &path, offset, piece).await;
        offset += piece.len();
        assert_eq!(reply.status, 204, "{}", reply.text());
        assert_eq!(reply.header("upload-offset"), offset.to_string());
        assert_eq!(reply.header("tus-resumable"), "1.0.0");
        assert_eq!(reply.header("access-control-allow-origin"), "*");
    }
    let stored = client.get("/photos/clips/Tom%20%26%20I.webm").await;
    assert_eq!(stored.body, whole);
    assert_eq!(stored.header("content-type"), "video/webm");
    // A client that did not receive the last response queries the upload, and gets the address of its file.
    let after = head(&client, &path).await;
    assert_eq!(after.header("upload-offset"), "2500000");
    assert_eq!(
        after.header("x-object-url"),
        "https://cdn.example.com/photos/clips/Tom%20%26%20I.webm"
    );
    assert_eq!(append(&client, &path, offset, b"").await.status, 204);
    assert_eq!(world.object_count("photos"), 1);
}

#[tokio::test]
async fn tus_creation_with_upload_stores_small_and_empty_files() {
    let (world, client) = World::with_bucket(1);
    for (name, bytes) in [("small.txt", &b"hello"[..]), ("empty.txt", b"")] {
        let (length, said) =
            (bytes.len().to_string(), metadata(&[("bucketName", "photos"), ("name", name)]));
        let headers = [VERSION, CHUNK, ("upload-length", &*length), ("upload-metadata", &*said)];
        let reply = client.send(Method::POST, "/api/tus/", &headers, Body::from(bytes)).await;
        assert_eq!(reply.status, 201, "{}", reply.text());
        assert_eq!(reply.header("upload-offset"), length);
        assert_eq!(reply.header("x-object-url"), format!("https://cdn.example.com/photos/{name}"));
        assert_eq!(client.get(&format!("/photos/{name}")).await.body, bytes);
    }
    assert!(world.store.resumable_uploads().unwrap().is_empty());
}

#[tokio::test]
async fn tus_options_returns_capabilities() {
    let (_world, client) = World::with_bucket(1);
    let reply = client.without_key().send(Method::OPTIONS, "/api/tus/", &[], Body::empty()).await;
    assert_eq!(reply.status, 204);
    assert_eq!(reply.header("tus-version"), "1.0.0");
    assert_eq!(
        reply.header("tus-extension"),
        "creation,creation-with-upload,expiration,checksum,termination"
    );
    assert_eq!(reply.header("tus-checksum-algorithm"), "sha1,sha256");
    assert_eq!(reply.header("tus-max-size"), (64_u64 << 30).to_string());
}

#[tokio::test]
async fn tus_chunk_with_wrong_offset_or_size_is_rejected() {
    let (_world, client) = World::with_bucket(1);
    let path = begun(&client, 10, &[("bucketName", "photos")]).await;
    assert_eq!(append(&client, &path, 0, b"1234").await.status, 204);
    append(&client, &path, 3, b"x").await.check_error(409, "wrong_offset");
    append(&client, &path, 4, b"56789ab").await.check_error(413, "file_too_large");
    let plain = [VERSION, ("content-type", "text/plain"), ("upload-offset", "4")];
    let reply = client.send(Method::PATCH, &path, &plain, Body::from("5")).await;
    reply.check_error(415, "unsupported_media_type");
    let silent = [CHUNK, ("upload-offset", "4")];
    let reply = client.send(Method::PATCH, &path, &silent, Body::from("5")).await;
    reply.check_error(412, "tus_version");
    for offset in ["", "-1", "+4", "4.0", "x", "99999999999999999999"] {
        let headers = [VERSION, CHUNK, ("upload-offset", offset)];
        let reply = client.send(Method::PATCH, &path, &headers, Body::from("5")).await;
        reply.check_error(400, "bad_header");
    }
    assert_eq!(head(&client, &path).await.header("upload-offset"), "4");
}

#[tokio::test]
async fn tus_bytes_before_disconnect_are_kept() {
    let (_world, client) = World::with_bucket(1);
    let whole = body(1, 300_000);
    let path = begun(&client, whole.len(), &[("bucketName", "photos"), ("path", "a.bin")]).await;
    let first = Bytes::copy_from_slice(&whole[..200_000]);
    let broken = Broken(Some(first));
    let headers = [VERSION, CHUNK, ("upload-offset", "0")];
    let reply = client.send(Method::PATCH, &path, &headers, Body::new(broken)).await;
    reply.check_error(400, "incomplete_body");
    assert_eq!(head(&client, &path).await.header("upload-offset"), "200000");
    assert_eq!(append(&client, &path, 200_000, &whole[200_000..]).await.status, 204);
    assert_eq!(client.get("/photos/a.bin").await.body, whole);
}

#[tokio::test]
async fn tus_chunk_with_checksum_is_atomic() {
    let (_world, client) = World::with_bucket(1);
    let whole = body(1, 100_000);
    let path = begun(&client, whole.len(), &[("bucketName", "photos"), ("path", "a.bin")]).await;
    let (first, rest) = whole.split_at(60_000);
    let send = async |offset: &str, checksum: &str, bytes: &[u8]| {
        let headers = [VERSION, CHUNK, ("upload-offset", offset), ("upload-checksum", checksum)];
        client.send(Method::PATCH, &path, &headers, Body::from(bytes.to_vec())).await
    };
    let wrong = format!("sha1 {}", STANDARD.encode([0; 20]));
    send("0", &wrong, first).await.check_error(460, "checksum_mismatch");
    for malformed in ["sha1", "md5 AAAA", "sha1 !!!", "sha256 AAAA"] {
        send("0", malformed, first).await.check_error(400, "bad_header");
    }
    assert_eq!(head(&client, &path).await.header("upload-offset"), "0");
    let sha1 = format!("sha1 {}", STANDARD.encode(Sha1::digest(first)));
    assert_eq!(send("0", &sha1, first).await.status, 204);
    let sha256 = format!("sha256 {}", STANDARD.encode(Sha256::digest(rest)));
    assert_eq!(send("60000", &sha256, rest).await.status, 204);
    assert_eq!(client.get("/photos/a.bin").await.body, whole);
}

#[tokio::test]
async fn tus_terminated_or_expired_upload_leaves_nothing() {
    let (world, client) = World::with_bucket(1);
    let given_up = begun(&client, 10, &[("bucketName", "photos")]).await;
    assert_eq!(append(&client, &given_up, 0, b"1234").await.status, 204);
    let reply = client.send(Method::DELETE, &given_up, &[VERSION], Body::empty()).await;
    assert_eq!(reply.status, 204);
    append(&client, &given_up, 4, b"5").await.check_error(404, "upload_not_found");

    let forgotten = begun(&client, 10, &[("bucketName", "photos")]).await;
    assert_eq!(append(&client, &forgotten, 0, b"1234").await.status, 204);
    world.clock.advance(23 * 60 * 60 * 1_000);
    assert_eq!(
        append(&client, &forgotten, 4, b"5").await.status,
        204,
        "each piece gives it another day"
    );
    world.clock.advance(24 * 60 * 60 * 1_000);
    append(&client, &forgotten, 5, b"6").await.check_error(410, "upload_expired");
    assert_eq!(server::handlers::tus::expire_uploads(&world.state).unwrap(), 1);
    append(&client, &forgotten, 5, b"6").await.check_error(404, "upload_not_found");
    assert!(world.store.resumable_uploads().unwrap().is_empty());
    assert!(world.store.facts("upload/", None, 10).unwrap().is_empty());
}

/// State after a kill between the commit of the file and the end of its upload.
#[tokio::test]
async fn tus_stored_upload_bytes_are_removed_despite_head() {
    let (world, client) = World::with_bucket(1);
    let path = begun(&client, 4, &[("bucketName", "photos"), ("path", "a.bin")]).await;
    assert_eq!(append(&client, &path, 0, b"1234").await.status, 204);
    let id = path.rsplit('/').next().and_then(|id| id.parse().ok()).unwrap();
    world.store.begin_upload(id).unwrap().sync().unwrap();
    assert_eq!(world.store.resumable_uploads().unwrap(), [id]);
    let _asking = world.state.upload_locks.acquire(id).await.unwrap();
    assert_eq!(server::handlers::tus::expire_uploads(&world.state).unwrap(), 0);
    assert!(world.store.resumable_uploads().unwrap().is_empty());
    assert_eq!(client.get("/photos/a.bin").await.body, b"1234"[..]);
}

#[tokio::test]
async fn tus_upload_is_private_and_ends_with_key_permission() {
    let (world, client) = World::with_bucket(1);
    world.account("bob");
    world.bucket("bob", "bobs", Default::default());
    let bob = world.client_of("bob", Default::default());
    let path = begun(&client, 10, &[("bucketName", "photos")]).await;
    for reply in [
        head(&bob, &path).await,
        append(&bob, &path, 0, b"1").await,
        bob.send(Method::DELETE, &path, &[VERSION], Body::empty()).await,
    ] {
        assert_eq!(reply.status, 404);
    }
    let anonymous = client.without_key();
    append(&anonymous, &path, 0, b"1").await.check_error(401, "missing_api_key");
    create(&client, 1, &[("bucketName", "bobs")]).await.check_error(404, "bucket_not_found");
    create(&client, 1, &[("bucketName", "none")]).await.check_error(404, "bucket_not_found");
    create(&client, 1, &[]).await.check_error(400, "bad_parameter");
    create(&client, 1, &[("bucketName", "photos"), ("path", "../x")])
        .await
        .check_error(400, "bad_path");
    let overlong =
        [VERSION, ("upload-length", "99999999999999"), ("upload-metadata", "bucketName cGhvdG9z")];
    let reply = client.send(Method::POST, "/api/tus/", &overlong, Body::empty()).await;
    reply.check_error(413, "file_too_large");
    for malformed in ["bucketName", "bucketName !", "a YQ==,a Yg==", "a /w=="] {
        let headers = [VERSION, ("upload-length", "1"), ("upload-metadata", malformed)];
        let reply = client.send(Method::POST, "/api/tus/", &headers, Body::empty()).await;
        assert_eq!(reply.status, 400, "{malformed}: {}", reply.text());
    }
}

#[tokio::test]
async fn tus_taken_name_is_numbered_unless_overwrite() {
    let (_world, client) = World::with_bucket(1);
    client.put("/photos/", "a.txt", b"first").await;
    let said = [("bucketName", "photos"), ("filename", "a.txt")];
    let path = begun(&client, 6, &said).await;
    let reply = append(&client, &path, 0, b"second").await;
    assert_eq!(reply.header("x-object-url"), "https://cdn.example.com/photos/a%20(1).txt");
    let said = [("bucketName", "photos"), ("filename", "a.txt"), ("overwrite", "true")];
    let path = begun(&client, 5, &said).await;
    let reply = append(&client, &path, 0, b"third").await;
    assert_eq!(reply.header("x-object-url"), "https://cdn.example.com/photos/a.txt");
    assert_eq!(client.get("/photos/a.txt").await.body, "third");
}

#[tokio::test]
async fn tus_method_override_header_is_accepted() {
    let (_world, client) = World::with_bucket(1);
    let path = begun(&client, 3, &[("bucketName", "photos"), ("path", "a.txt")]).await;
    let headers = [VERSION, CHUNK, ("upload-offset", "0"), ("x-http-method-override", "PATCH")];
    let reply = client.send(Method::POST, &path, &headers, Body::from("abc")).await;
    assert_eq!(reply.status, 204, "{}", reply.text());
    assert_eq!(client.get("/photos/a.txt").await.body, "abc");
    client
        .send(Method::POST, &path, &[VERSION], Body::empty())
        .await
        .check_error(400, "bad_header");
}

#[tokio::test]
async fn tus_creation_counts_against_limits_and_quotas() {
    let (world, client) = World::with_bucket(1);
    let said = |name| [("bucketName", "photos"), ("filename", name)];
    world.edit_bucket("photos", BucketSettings { file_bytes_max: Some(Some(50)), ..quota(100) });
    create(&client, 51, &said("a.bin")).await.check_error(413, "file_too_large");
    let first = begun(&client, 50, &said("a.bin")).await;
    let second = begun(&client, 40, &said("b.bin")).await;
    let refused = create(&client, 11, &said("c.bin")).await;
    refused.check_error(507, "quota_exceeded");
    assert_eq!(refused.json()["used"], 90);
    let form = || Form::new().file("f", "d.txt", None, &[b'x'; 11]);
    client.upload("/photos/", form()).await.check_error(507, "quota_exceeded");
    // Received bytes are reported, and stored bytes are counted once.
    assert_eq!(append(&client, &first, 0, &[1; 20]).await.status, 204);
    let usage = client.get("/api/usage").await.check_done();
    assert_eq!(
        (&usage["buckets"][0]["unfinishedBytes"], &usage["total"]["totalBytes"]),
        (&20.into(), &0.into())
    );
    assert_eq!(append(&client, &first, 20, &[1; 30]).await.status, 204);
    let usage = client.get("/api/usage").await.check_done();
    assert_eq!(usage["buckets"][0]["unfinishedBytes"], 0);
    assert_eq!(usage["total"]["totalBytes"], 50);
    client.upload("/photos/", form()).await.check_error(507, "quota_exceeded");
    // An aborted upload is not counted.
    let deleted = client.send(Method::DELETE, &second, &[VERSION], Body::empty()).await;
    assert_eq!(deleted.status, 204);
    client.upload("/photos/", form()).await.check_done();
    let quota = server::management::AccountSettings {
        storage_bytes_max: Some(Some(70)),
        ..Default::default()
    };
    world.edit_account("ann", quota);
    create(&client, 10, &said("e.bin")).await.check_error(507, "quota_exceeded");
    begun(&client, 9, &said("e.bin")).await;
}

#[tokio::test]
async fn tus_overwrite_counts_with_its_difference() {
    let (world, client) = World::with_bucket(1);
    client.put("/photos/", "a.bin", &[b'x'; 60]).await;
    world.edit_bucket("photos", quota(100));
    let said = [("bucketName", "photos"), ("filename", "a.bin"), ("overwrite", "true")];
    let path = begun(&client, 100, &said).await;
    assert_eq!(append(&client, &path, 0, &[b'y'; 100]).await.status, 204);
    assert_eq!(client.get("/photos/a.bin").await.body.len(), 100);
}

#[tokio::test]
async fn tus_quota_claims_survive_a_restart() {
    let (world, client) = World::with_bucket(1);
    world.edit_bucket("photos", quota(100));
    begun(&client, 70, &[("bucketName", "photos"), ("filename", "a.bin")]).await;
    let key = client.key().to_owned();
    let world = world.found_on(world.disk.fork());
    let client = Client::new(world.app(), Some(key));
    let refused = create(&client, 31, &[("bucketName", "photos"), ("filename", "b.bin")]).await;
    refused.check_error(507, "quota_exceeded");
    begun(&client, 30, &[("bucketName", "photos"), ("filename", "b.bin")]).await;
}

#[tokio::test]
async fn tus_unfinished_bytes_of_an_account_are_bounded() {
    let (_world, client) = World::with_bucket(1);
    let said = [("bucketName", "photos"), ("filename", "a.bin")];
    let largest = engine::limits::OBJECT_BYTES_MAX as usize;
    for _ in 0..4 {
        begun(&client, largest, &said).await;
    }
    create(&client, 1, &said).await.check_error(429, "too_many_uploads");
}

#[tokio::test]
async fn tus_stops_at_a_limit_that_was_lowered() {
    let (world, client) = World::with_bucket(1);
    let said = [("bucketName", "photos"), ("filename", "a.bin")];
    let path = begun(&client, 100, &said).await;
    assert_eq!(append(&client, &path, 0, &[1; 10]).await.status, 204);
    let file_bytes_max = Some(Some(50));
    world.edit_bucket("photos", BucketSettings { file_bytes_max, ..BucketSettings::default() });
    append(&client, &path, 10, &[1; 20]).await.check_error(413, "file_too_large");
}

#[tokio::test]
async fn tus_concatenation_is_refused_before_anything_is_stored() {
    let (world, client) = World::with_bucket(1);
    let said = metadata(&[("bucketName", "photos"), ("filename", "a.bin")]);
    for concat in ["partial", "final;/api/tus/a /api/tus/b"] {
        let headers = [
            VERSION,
            ("upload-length", "10"),
            ("upload-metadata", &*said),
            ("upload-concat", concat),
        ];
        let reply = client.send(Method::POST, "/api/tus/", &headers, Body::empty()).await;
        reply.check_error(400, "bad_header");
    }
    assert!(world.store.resumable_uploads().unwrap().is_empty());
}

#[tokio::test]
async fn unfinished_uploads_are_evicted_before_others_get_no_space() {
    const RESERVE_BYTES: u64 = 1 << 30;
    let config = Config { reserve_bytes: Some(RESERVE_BYTES), ..Config::default() };
    let (world, mallory) = World::with_bucket_and(1, config);
    world.account("victim");
    world.bucket("victim", "shop", BucketSettings::default());
    let victim = world.client_of("victim", ApiKeySettings::default());
    let said = |name| [("bucketName", "photos"), ("filename", name)];
    let (mut old, mut new) = (String::new(), String::new());
    for (path, name) in [(&mut old, "a.bin"), (&mut new, "b.bin")] {
        *path = begun(&mallory, 10 << 20, &said(name)).await;
        assert_eq!(append(&mallory, path, 0, &vec![1; 3 << 20]).await.status, 204);
        world.clock.advance(1_000);
    }
    // One megabyte is missing: removing one upload is enough.
    world.disk.set_free_bytes(RESERVE_BYTES - (1 << 20));
    world.clock.advance(1_000);
    let form = || Form::new().file("f", "a.txt", None, b"12");
    victim.upload("/shop/", form()).await.check_done();
    append(&mallory, &old, 3 << 20, b"x").await.check_error(410, "upload_expired");
    assert_eq!(append(&mallory, &new, 3 << 20, b"x").await.status, 204);
    assert_eq!(world.store.resumable_uploads().unwrap().len(), 1);
}
