//! Upload: specification 4.2, clients 2, 3.2 and 4. Names of files are tested in `names`.

use axum::body::Body;
use http::Method;
use serde_json::json;
use service::Config;
use tests::{Form, World};

const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR";

#[tokio::test]
async fn upload_response_has_every_client_field() {
    let (_world, client) = World::with_bucket(1);
    let form = Form::new().file("file", "tom cat.png", Some("image/png"), PNG);
    let reply = client.upload("/photos/cats/", form).await;
    assert_eq!(reply.status, 200);
    assert_eq!(reply.header("content-type"), "application/json");
    assert_eq!(reply.header("access-control-allow-origin"), "*");
    let etag = client.get("/photos/cats/tom%20cat.png").await.header("etag").to_owned();
    let url = "https://cdn.example.com/photos/cats/tom%20cat.png";
    let key = "cats/tom cat.png";
    let expected = json!({
        "success": true,
        "message": "Successfully uploaded 1 file(s)",
        "url": url,
        "urls": [url],
        "thumbnailUrl": null,
        "thumbnailUrls": [null],
        "key": key,
        "path": key,
        "bucketName": "photos",
        "renamed": false,
        "files": [{
            "name": "tom cat.png",
            "originalName": "tom cat.png",
            "key": key,
            "url": url,
            "thumbnailUrl": null,
            "size": PNG.len(),
            "contentType": "image/png",
            "etag": etag,
            "lastModified": "2026-01-31T12:00:00.000Z",
            "renamed": false,
        }],
        "data": { "id": key, "url": url, "path": key, "key": key, "thumbnailUrl": null },
        "status": "ok",
        "link": url,
    });
    assert_eq!(reply.json(), expected);
}

#[tokio::test]
async fn batch_upload_keeps_request_order() {
    let (_world, client) = World::with_bucket(1);
    let form = Form::new()
        .text("metadata", "{\"player\":1}")
        .file("files", "b.png", None, PNG)
        .file("files[]", "a.txt", None, b"text")
        .text("filename", "ignored")
        .file("image", "c.png", None, PNG);
    let reply = client.upload("/photos/", form).await.json();
    assert_eq!(reply["message"], "Successfully uploaded 3 file(s)");
    let base = "https://cdn.example.com/photos";
    let urls = json!([format!("{base}/b.png"), format!("{base}/a.txt"), format!("{base}/c.png")]);
    assert_eq!(reply["urls"], urls);
    assert_eq!(reply["key"], "b.png");
    assert_eq!(client.get("/photos/a.txt").await.text(), "text");
}

#[tokio::test]
async fn batch_upload_is_atomic() {
    let (world, client) = World::with_bucket(1);
    // A small second file breaks off at any byte, a large one where it is on the disk already.
    for (second, cuts) in [(&b"2"[..], (40..200).collect()), (&[7; 2_000_000], vec![40, 900_000])] {
        let form =
            Form::new().file("file", "a.txt", None, b"1").file("file", "b.txt", None, second);
        let (content_type, body) = (form.content_type(), form.body());
        let first_bytes = Form::new().file("file", "a.txt", None, b"1").body().len() - 36;
        for cut in cuts.into_iter().filter(|cut| first_bytes + cut < body.len() - 4) {
            let cut = &body[..first_bytes + cut];
            let reply = client.send_typed(Method::POST, "/photos/", &content_type, cut).await;
            reply.check_error(400, "incomplete_body");
        }
        assert_eq!(world.object_count("photos"), 0);
        let left = world.disk.paths().into_iter().filter(|path| path.starts_with("big/"));
        assert_eq!(left.collect::<Vec<_>>(), [""; 0], "nothing is left behind");
    }
    let form = Form::new().file("file", "a.txt", None, b"1").file("file", "b.txt", None, b"2");
    client.upload("/photos/one.txt", form).await.check_error(400, "bad_request");
    assert_eq!(world.object_count("photos"), 0);
}

#[tokio::test]
async fn upload_to_bucket_root_works_with_or_without_slash() {
    let (_world, client) = World::with_bucket(1);
    assert_eq!(client.put("/photos", "a.txt", b"1").await["key"], "a.txt");
    assert_eq!(client.put("/photos/", "b.txt", b"1").await["key"], "b.txt");
}

#[tokio::test]
async fn upload_path_names_one_file_exactly() {
    let (_world, client) = World::with_bucket(1);
    assert_eq!(client.put("/photos/x/y.txt", "other.png", b"1").await["key"], "x/y.txt");
    assert_eq!(client.put("/photos/images", "other.png", PNG).await["key"], "images");
    let form = Form::new().file("files", "a.png", None, PNG).file("files", "b.png", None, PNG);
    let reply = client.upload("/photos/images", form).await;
    reply.check_error(400, "bad_request");
    assert!(reply.json()["error"].as_str().unwrap().contains("that ends with \"/\""));
}

#[tokio::test]
async fn upload_phone_bucket_treats_bare_path_as_folder() {
    let (world, client) = World::with_bucket(1);
    world.phone_bucket("ann", "phone");
    assert_eq!(client.put("/phone/images", "a.png", PNG).await["key"], "images/a.png");
    assert_eq!(client.put("/phone/images", "blob", PNG).await["key"], "images/blob.png");
    assert_eq!(client.put("/phone/images.d", "a.png", PNG).await["key"], "images.d");
    let form = Form::new().file("files", "b.png", None, PNG).file("files", "c.png", None, PNG);
    let reply = client.upload("/phone/images", form).await.json();
    assert_eq!(reply["files"][1]["key"], "images/c.png");
}

#[tokio::test]
async fn upload_content_type_is_sniffed_from_bytes() {
    let (_world, client) = World::with_bucket(1);
    for (name, declared, bytes, kind) in [
        ("a.png", Some("text/html"), PNG, "image/png"),
        ("b.txt", None, &b"plain"[..], "text/plain"),
        ("c", Some("text/plain"), b"plain", "text/plain"),
        ("d.unknown", None, b"\0\x01\x02", "application/octet-stream"),
        ("e.avif", Some("application/octet-stream"), b"\0\x01", "image/avif"),
    ] {
        let form = Form::new().file("file", name, declared, bytes);
        let reply = client.upload("/photos/", form).await.json();
        assert_eq!(reply["files"][0]["contentType"], kind, "{name}");
    }
}

#[tokio::test]
async fn multipart_boundary_may_be_only_in_the_body() {
    let (_world, client) = World::with_bucket(1);
    let form = Form::new().file("file", "a.txt", None, b"hello");
    let reply =
        client.send_typed(Method::POST, "/photos/", "multipart/form-data", &form.body()).await;
    assert_eq!(reply.status, 200, "{}", reply.text());
    assert_eq!(client.get("/photos/a.txt").await.text(), "hello");
}

#[tokio::test]
async fn upload_accepts_only_multipart_forms() {
    let (world, client) = World::with_bucket(1);
    for kind in ["image/png", "application/json", "text/plain", "application/x-www-form-urlencoded"]
    {
        let reply = client.send_typed(Method::POST, "/photos/a.png", kind, PNG).await;
        reply.check_error(415, "unsupported_media_type");
    }
    let without = client.send(Method::POST, "/photos/a.png", &[], Body::from("x")).await;
    without.check_error(415, "unsupported_media_type");
    let reply = client.upload("/photos/", Form::new().text("a", "b")).await;
    reply.check_error(400, "no_file");
    assert_eq!(reply.json()["error"], "No file provided");
    assert_eq!(world.object_count("photos"), 0);
}

#[tokio::test]
async fn upload_over_size_limit_returns_the_limit() {
    let config = Config { body_bytes_max: 1_000, ..Config::default() };
    let (world, client) = World::with_bucket_and(1, config);
    let large = || Form::new().file("file", "a.bin", None, &[7; 2_000]);
    let declared = client.upload("/photos/", large()).await;
    declared.check_error(413, "file_too_large");
    assert_eq!(declared.json()["limit"], 1_000);
    let undeclared =
        client.send_typed(Method::POST, "/photos/", &large().content_type(), &large().body()).await;
    undeclared.check_error(413, "file_too_large");
    assert_eq!(world.object_count("photos"), 0);
    client.put("/photos/", "small.bin", &[7; 500]).await;
}

#[tokio::test]
async fn upload_invalid_flag_is_rejected_before_the_body() {
    let (_world, client) = World::with_bucket(1);
    let reply = client.upload_file("/photos/?overwrite=maybe", "a.txt", b"1").await;
    reply.check_error(400, "bad_parameter");
    assert_eq!(reply.json()["parameter"], "overwrite");
}

#[tokio::test]
async fn upload_overwrite_replaces_file_and_version() {
    let (world, client) = World::with_bucket(1);
    client.put("/photos/", "a.txt", b"one").await;
    let before = client.get("/photos/a.txt").await.header("etag").to_owned();
    for flag in ["overwrite=true", "upsert=1", "replace", "overwrite=YES"] {
        let reply = client.put(&format!("/photos/?{flag}"), "a.txt", b"two").await;
        assert_eq!(reply["key"], "a.txt", "{flag}");
        assert_eq!(reply["renamed"], false);
    }
    let after = client.get("/photos/a.txt").await;
    assert_eq!(after.text(), "two");
    assert_ne!(after.header("etag"), before);
    assert_eq!(world.object_count("photos"), 1);
}

#[tokio::test]
async fn upload_into_reserved_presigned_folder_is_rejected() {
    let (world, client) = World::with_bucket(1);
    for path in ["/photos/presigned/", "/photos/presigned/a.txt"] {
        client.upload_file(path, "a.txt", b"1").await.check_error(400, "bad_path");
    }
    assert_eq!(world.object_count("photos"), 0);
    client.put("/photos/a/presigned/", "a.txt", b"1").await;
}
