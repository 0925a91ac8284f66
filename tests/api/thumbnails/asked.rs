//! Conditions for thumbnails: the options, and the response of each way of uploading.

use axum::body::Body;
use http::Method;
use serde_json::{Value, json};
use server::management::BucketSettings;
use tests::fixtures::path_of;
use tests::world::PUBLIC_URL;
use tests::{Client, Form, World};

use super::path;
use crate::images::png;
use crate::tus::{append, begun};
use crate::ways_in::{UPLOAD_ROUTES, UploadRoute};

const NAMES: [&str; 5] =
    ["thumbnail", "generateThumbnail", "thumb", "createThumbnail", "thumbnails"];

async fn has_thumbnail(client: &Client, path: &str) -> bool {
    !client.put(path, "a.png", &png(8, 8)).await["thumbnailUrl"].is_null()
}

#[tokio::test]
async fn thumbnail_flag_is_accepted_under_every_name() {
    let (world, client) = World::with_bucket(1);
    for name in NAMES {
        for value in ["", "=true", "=1", "=yes", "=ON"] {
            assert!(
                has_thumbnail(&client, &format!("/photos/?{name}{value}")).await,
                "{name}{value}"
            );
        }
        for value in ["=false", "=0", "=no", "=off"] {
            let path = format!("/photos/?{name}{value}");
            assert!(!has_thumbnail(&client, &path).await, "{name}{value}");
        }
        let reply = client.upload_file(&format!("/photos/?{name}=small"), "a.png", b"1").await;
        reply.check_parameter("thumbnail");
    }
    assert!(!has_thumbnail(&client, "/photos/").await, "nobody asked");
    assert_eq!(world.derived_count(), 25);
}

#[tokio::test]
async fn thumbnail_default_comes_from_the_bucket() {
    let (world, client) = World::with_bucket(1);
    world.phone_bucket("ann", "phone");
    assert!(has_thumbnail(&client, "/phone/").await);
    assert!(!has_thumbnail(&client, "/phone/?thumbnail=false").await);
    let set = |thumbnails| BucketSettings { thumbnails: Some(thumbnails), ..Default::default() };
    world.edit_bucket("phone", set(false));
    world.edit_bucket("photos", set(true));
    assert!(!has_thumbnail(&client, "/phone/").await);
    assert!(has_thumbnail(&client, "/phone/?thumbnail").await);
    assert!(has_thumbnail(&client, "/photos/").await);
    let reply = client.put("/photos/?thumbnail=no", "a.png", &png(8, 8)).await;
    assert!(reply["files"][0].get("thumbnailSkipped").is_none(), "nobody asked: {reply}");
}

#[tokio::test]
async fn thumbnail_flag_is_per_file_of_a_form() {
    let (world, client) = World::with_bucket(1);
    let form = Form::new()
        .file("files", "a.png", None, &png(8, 8))
        .file("files", "notes.txt", None, b"hello")
        .file("files", "b.png", None, &png(9, 9));
    let reply = client.upload("/photos/dir/?thumbnail=1", form).await.check_done();
    let url = |name: &str| json!(format!("{PUBLIC_URL}/photos/dir/{name}"));
    let urls = [url("a_thumb.webp"), Value::Null, url("b_thumb.webp")];
    assert_eq!(reply["thumbnailUrls"], json!(urls));
    assert_eq!(reply["message"], "Successfully uploaded 3 file(s)");
    assert_eq!(reply["files"][1]["thumbnailSkipped"], "not_a_picture");
    assert_eq!((world.object_count("photos"), world.derived_count()), (3, 2));
}

#[tokio::test]
async fn thumbnails_are_created_by_every_upload_route() {
    let (world, client) = World::with_bucket(1);
    world.edit_bucket("photos", BucketSettings { thumbnails: Some(true), ..Default::default() });
    for (at, way) in UPLOAD_ROUTES.into_iter().enumerate() {
        let reply = way.store(&client, &format!("photos/{at}.png"), &png(8, 8)).await;
        assert!(reply.status.is_success(), "{way:?}: {}", reply.text());
        let thumbnail = format!("/photos/{at}_thumb.webp");
        assert_eq!(client.get(&thumbnail).await.status, 200, "{way:?}");
        if !matches!(way, UploadRoute::Tus | UploadRoute::TusWithCreation) {
            assert_eq!(path(&reply.json()), thumbnail, "{way:?}");
        }
    }
    let premium = world.at_premium(&client);
    world.set_plan("ann", catalog::Plan::Pro);
    assert!(has_thumbnail(&premium, "/photos/premium/").await);
    assert_eq!(world.object_count("photos"), UPLOAD_ROUTES.len() as u64 + 1);
}

#[tokio::test]
async fn thumbnail_flag_is_kept_by_token_url_and_tus() {
    let (world, client) = World::with_bucket(1);
    world.phone_bucket("ann", "phone");
    for (bucket, asked, expected) in [
        ("photos", "&thumb=1", true),
        ("photos", "&thumb=0", false),
        ("photos", "", false),
        ("phone", "", true),
        ("phone", "&createThumbnail=off", false),
    ] {
        let issued = client.get(&format!("/api/presigned-url?path={bucket}/t/{asked}")).await;
        let token = path_of(&issued.json()["url"]);
        // Options of the uploading client have no effect.
        let posted = format!("{token}?thumbnail={}", !expected);
        assert_eq!(
            has_thumbnail(&client.without_key(), &posted).await,
            expected,
            "{bucket}{asked}"
        );

        let issued = client.get(&format!("/{bucket}/presigned/p/a.png?ttl=60{asked}")).await;
        let address = path_of(&issued.json()["presignedUrl"]);
        let body = Body::from(png(8, 8));
        let put = world.anonymous().send(Method::PUT, &address, &[], body).await.json();
        assert_eq!(!put["thumbnailUrl"].is_null(), expected, "{bucket}{asked}");

        let mut said = vec![("bucketName", bucket), ("filename", "a.png"), ("path", "r/")];
        if let Some((name, value)) = asked.trim_start_matches('&').split_once('=') {
            said.push((name, value));
        }
        let file = png(8, 8);
        let upload = begun(&client, file.len(), &said).await;
        let appended = append(&client, &upload, 0, &file).await;
        assert_eq!(appended.status, 204);
        let thumbnail = client.get(&format!("/{bucket}/r/a_thumb.webp")).await;
        assert_eq!(thumbnail.status == 200, expected, "{bucket}{asked}");
        let address = expected.then(|| format!("{PUBLIC_URL}/{bucket}/r/a_thumb.webp"));
        let headers = appended.headers.get("x-thumbnail-url");
        assert_eq!(headers.map(|url| url.to_str().unwrap()), address.as_deref());
        client.delete(&format!("/{bucket}/r/")).await.check_done();
    }
    let wrong = client.get("/photos/presigned/a.png?thumbnail=small").await;
    wrong.check_parameter("thumbnail");
    let said = [("bucketName", "photos"), ("filename", "a.png"), ("thumbnail", "small")];
    let refused = crate::tus::create(&client, 1, &said).await;
    assert_eq!(refused.json()["code"], "bad_parameter");
}
