//! Pages of public files: `API.md`, Pages of public files.

use catalog::Access;
use serde_json::json;
use server::management::BucketSettings;
use tests::{Client, World};

use crate::images::png;
use crate::links::check_page;

const BASE: &str = "https://cdn.example.com";

async fn check_missing(client: &Client, path: &str) -> Vec<u8> {
    let page = client.get(path).await;
    check_page(&page, 404, "File not found");
    page.body.to_vec()
}

#[tokio::test]
async fn public_file_has_a_page_with_preview_and_open_graph() {
    let (world, client) = World::with_bucket(1);
    client.put("/photos/2026/", "a (1) & b.png", &png(60, 40)).await;
    let path = "/-/v/photos/2026/a%20(1)%20%26%20b.png";
    let file = "/photos/2026/a%20(1)%20%26%20b.png";
    let page = world.anonymous().get(path).await;
    assert_eq!(page.status, 200, "{}", page.text());
    assert_eq!(page.header("content-type"), "text/html; charset=utf-8");
    let text = page.text();
    for part in [
        format!(r#"href="{file}?download""#),
        format!(r#"src="{file}?width=1600&amp;height=1600&amp;format=auto""#),
        "<bdi>a (1) &amp; b.png</bdi>".to_owned(),
        format!(r#"<meta property="og:url" content="{BASE}{path}">"#),
        format!(
            r#"<meta property="og:image" content="{BASE}{file}?width=1200&amp;height=630&amp;fit=cover&amp;format=jpg">"#
        ),
        r#"<meta property="og:title" content="a (1) &amp; b.png">"#.to_owned(),
        r#"<meta name="twitter:card" content="summary_large_image">"#.to_owned(),
    ] {
        assert!(text.contains(&part), "{part}: {text}");
    }
    assert!(!text.contains("2026/</") && !text.contains("ann"), "{text}");
    // Another form of the path has the same URL in its page.
    let other = world.anonymous().get("/-/v/photos/2026/%61%20%281%29%20%26%20b.png").await;
    assert!(other.text().contains(&format!(r#"content="{BASE}{path}""#)), "{}", other.text());
    client.put("/photos/", "clip.mp4", b"\0\0\0\x18ftypmp42\0\0\0\0mp42isom").await;
    let video = world.anonymous().get("/-/v/photos/clip.mp4").await.text();
    let tag = format!(r#"<meta property="og:video" content="{BASE}/photos/clip.mp4">"#);
    assert!(video.contains("<video") && video.contains(&tag), "{video}");
}

#[tokio::test]
async fn file_page_follows_the_index_setting_of_its_bucket() {
    let (world, client) = World::with_bucket(1);
    client.put("/photos/", "a.txt", b"text").await;
    for (index, tag) in [(true, ""), (false, "noindex")] {
        client.patch_json("/api/buckets/photos", json!({"index": index})).await.check_done();
        let page = world.anonymous().get("/-/v/photos/a.txt").await;
        assert_eq!((page.status.as_u16(), page.header("x-robots-tag")), (200, tag));
        assert_eq!(client.get("/photos/a.txt").await.header("x-robots-tag"), tag);
    }
}

#[tokio::test]
async fn private_and_missing_files_have_the_same_page() {
    let (world, client) = World::with_bucket(1);
    let private = BucketSettings { access: Some(Access::Private), ..Default::default() };
    world.bucket("ann", "secret", private);
    client.put("/secret/", "a.txt", b"secret text").await;
    client.put("/photos/", "a.txt", b"text").await;
    client.put("/photos/?expiresIn=60", "old.txt", b"text").await;
    world.clock.advance(60_000);
    let visitor = world.anonymous();
    let missing = check_missing(&visitor, "/-/v/photos/none.txt").await;
    for path in [
        "/-/v/secret/a.txt",
        "/-/v/secret/none.txt",
        "/-/v/none/a.txt",
        "/-/v/photos/folder/",
        "/-/v/photos/x/../a.txt",
        "/-/v/photos/%2e%2e/secret/a.txt",
        "/-/v/photos/a%00.txt",
        "/-/v/-/a.txt",
        "/-/v/photos/old.txt",
    ] {
        assert_eq!(check_missing(&visitor, path).await, missing, "{path}");
    }
    // Keys and sessions open no page of a private file.
    assert_eq!(check_missing(&client, "/-/v/secret/a.txt").await, missing);
    let patch = json!({"access": "private"});
    assert_eq!(visitor.get("/-/v/photos/a.txt").await.status, 200);
    client.patch_json("/api/buckets/photos", patch).await.check_done();
    assert_eq!(check_missing(&visitor, "/-/v/photos/a.txt").await, missing);
}

#[tokio::test]
async fn file_pages_count_for_their_bucket() {
    let (world, client) = World::with_bucket(1);
    client.put("/photos/", "a.txt", b"text").await;
    let requests = async || {
        let history = "/api/usage/history?bucketName=photos&step=minute";
        let points = client.get_json(history).await["points"].as_array().unwrap().clone();
        points.iter().map(|point| point["requests"].as_u64().unwrap()).sum::<u64>()
    };
    let before = requests().await;
    for _ in 0..3 {
        assert_eq!(world.anonymous().get("/-/v/photos/a.txt").await.status, 200);
    }
    assert_eq!(requests().await, before + 3);
}
