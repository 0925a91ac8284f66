//! Ownership of thumbnail names.

use tests::{Client, Form, World};

use super::{check_none, path};
use crate::images::{png, shown};

/// Returns the width of the picture at a path.
async fn width(client: &Client, path: &str) -> u32 {
    shown(&client.get(path).await).width()
}

#[tokio::test]
async fn thumbnail_name_follows_the_final_file_name() {
    let (_world, client) = World::with_bucket(1);
    for expected in ["a_thumb.webp", "a (1)_thumb.webp", "a (2)_thumb.webp"] {
        let reply = client.put("/photos/?thumbnail", "a.png", &png(8, 8)).await;
        assert_eq!(
            path(&reply).replace("%20", " ").replace("%28", "(").replace("%29", ")"),
            format!("/photos/{expected}")
        );
        assert_eq!(width(&client, &path(&reply)).await, 8);
    }
    let reply = client.put("/photos/?thumbnail&randomizeName", "a.png", &png(8, 8)).await;
    let stem = reply["key"].as_str().unwrap().strip_suffix(".png").unwrap();
    assert_eq!(path(&reply), format!("/photos/{stem}_thumb.webp"));
}

#[tokio::test]
async fn thumbnail_name_conflict_is_won_by_the_first_file() {
    let (world, client) = World::with_bucket(1);
    path(&client.put("/photos/?thumbnail", "a.png", &png(8, 8)).await);
    for address in ["/photos/?thumbnail", "/photos/?thumbnail&overwrite"] {
        check_none(&client.put(address, "a.gif", &png(9, 9)).await, "name_taken");
    }
    let found = client.get("/api/search/photos?q=a").await.json();
    let hits = found["hits"].as_array().unwrap().iter();
    let with_thumbnail = hits.filter(|hit| hit["thumbnailUrl"].is_string()).count();
    assert_eq!(with_thumbnail, 1, "{found}");
    client.delete("/photos/a.gif").await.check_done();
    assert_eq!(width(&client, "/photos/a_thumb.webp").await, 8, "it goes with its own file only");
    client.put("/photos/", "a.gif", &png(9, 9)).await;
    client.delete("/photos/a.png").await.check_done();
    assert_eq!(world.derived_count(), 0);
    let reply = client.put("/photos/?thumbnail&overwrite", "a.gif", &png(9, 9)).await;
    assert_eq!(width(&client, &path(&reply)).await, 9, "the name is free again");

    let form = Form::new().file("files", "b.png", None, &png(8, 8)).file(
        "files",
        "b.gif",
        None,
        &png(9, 9),
    );
    let reply = client.upload("/photos/?thumbnail", form).await.check_done();
    assert_eq!(reply["files"][1]["thumbnailSkipped"], "name_taken");
    assert_eq!(width(&client, &path(&reply)).await, 8);
}

#[tokio::test]
async fn thumbnail_never_replaces_a_user_file() {
    let (world, client) = World::with_bucket(1);
    client.put("/photos/", "a_thumb.webp", b"my own").await;
    for address in ["/photos/?thumbnail", "/photos/?thumbnail&overwrite"] {
        check_none(&client.put(address, "a.png", &png(8, 8)).await, "name_taken");
    }
    client.delete("/photos/a.png").await.check_done();
    assert_eq!(client.get("/photos/a_thumb.webp").await.text(), "my own");

    let form = Form::new().file("files", "b.png", None, &png(8, 8)).file(
        "files",
        "b_thumb.webp",
        None,
        b"mine too",
    );
    let reply = client.upload("/photos/?thumbnail", form).await.check_done();
    check_none(&reply, "name_taken");
    assert_eq!(client.get("/photos/b_thumb.webp").await.text(), "mine too");
    assert_eq!(world.derived_count(), 0);
}

#[tokio::test]
async fn file_replaces_a_thumbnail_only_with_overwrite() {
    let (world, client) = World::with_bucket(1);
    path(&client.put("/photos/?thumbnail", "a.png", &png(8, 8)).await);
    let separate = client.put("/photos/", "a_thumb.webp", b"my own").await;
    assert_eq!(separate["key"], "a_thumb (1).webp");
    let instead = client.put("/photos/?overwrite", "a_thumb.webp", b"my own").await;
    assert_eq!((&instead["key"], world.derived_count()), (&"a_thumb.webp".into(), 0));
    // The file is not a thumbnail since then.
    client.put("/photos/?overwrite", "a.png", b"no picture").await;
    client.delete("/photos/a.png").await.check_done();
    assert_eq!(client.get("/photos/a_thumb.webp").await.text(), "my own");
    assert_eq!(world.object_count("photos"), 2);
}

#[tokio::test]
async fn thumbnail_is_skipped_when_its_name_is_too_long() {
    let (world, client) = World::with_bucket(1);
    let folder = format!("{}/", "f".repeat(200)).repeat(5);
    let stem = "n".repeat(1_024 - folder.len() - ".png".len());
    let reply =
        client.put(&format!("/photos/{folder}{stem}.png?thumbnail"), "a.png", &png(8, 8)).await;
    check_none(&reply, "name_too_long");
    let stem = &stem["_thumb".len() + 1..];
    let reply =
        client.put(&format!("/photos/{folder}{stem}.png?thumbnail"), "a.png", &png(8, 8)).await;
    assert_eq!((path(&reply).len(), world.derived_count()), ("/photos/".len() + 1_024, 1));
    client.delete(&format!("/photos/{folder}")).await.check_done();
    assert_eq!((world.object_count("photos"), world.derived_count()), (0, 0));
}
