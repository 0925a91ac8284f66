//! A thumbnail matches the current version of its file, and is deleted with it.

use serde_json::{Value, json};
use server::management::{AdminRequest, AdminResponse, BucketSettings, UndeleteSelector};
use tests::{Form, World};

use super::{check_none, path};
use crate::images::{png, shown};

#[tokio::test]
async fn thumbnail_is_replaced_or_dropped_with_new_version() {
    let (world, client) = World::with_bucket(1);
    let thumbnail = "/photos/a_thumb.webp";
    let over = "/photos/a.png?overwrite";
    for side in [8, 9] {
        let reply = client.put(&format!("{over}&thumbnail"), "a.png", &png(side, side)).await;
        assert_eq!((path(&reply), world.derived_count()), (thumbnail.to_owned(), 1));
        assert_eq!(shown(&client.get(thumbnail).await).width(), side);
    }
    client.put(over, "a.png", &png(10, 10)).await;
    client.get(thumbnail).await.check_error(404, "file_not_found");
    path(&client.put(&format!("{over}&thumbnail"), "a.png", &png(8, 8)).await);
    check_none(&client.put(&format!("{over}&thumbnail"), "a.png", b"hi").await, "not_a_picture");
    client.get(thumbnail).await.check_error(404, "file_not_found");
    assert_eq!((world.object_count("photos"), world.derived_count()), (1, 0));
}

#[tokio::test]
async fn thumbnail_is_deleted_with_its_file_and_not_counted() {
    let (world, client) = World::with_bucket(1);
    path(&client.put("/photos/img/?thumbnail", "a.png", &png(8, 8)).await);
    let gone = client.delete("/photos/img/a.png").await.check_done();
    assert_eq!(gone["deletedCount"], 1);
    assert_eq!(world.derived_count(), 0);
    client.delete("/photos/img/").await.check_error(404, "file_not_found");
    // When the thumbnail alone is deleted, its file stays.
    let thumbnail = path(&client.put("/photos/img/?thumbnail", "a.png", &png(8, 8)).await);
    assert_eq!(client.delete(&thumbnail).await.check_done()["deletedCount"], 1);
    assert_eq!((world.object_count("photos"), world.derived_count()), (1, 0));
    client.delete("/photos/img/a.png").await.check_done();
}

#[tokio::test]
async fn folder_delete_removes_100_files_with_thumbnails() {
    let (world, client) = World::with_bucket(1);
    for start in (0..120).step_by(40) {
        let form = (start..start + 40).fold(Form::new(), |form, at| {
            form.file("files", &format!("{at:03}.png"), None, &png(2, 2))
        });
        client.upload("/photos/dir/?thumbnail", form).await.check_done();
    }
    client.put("/photos/dir/", "100_thumb.webp", b"taken").await;
    client.put("/photos/dir/", "own_thumb.webp", b"own").await;
    assert_eq!((world.object_count("photos"), world.derived_count()), (122, 120));
    let reply = client.delete("/photos/dir/").await.check_done();
    assert_eq!((&reply["deletedCount"], &reply["isTruncated"]), (&json!(100), &json!(true)));
    assert_eq!((world.object_count("photos"), world.derived_count()), (22, 20));
    let reply = client.delete("/photos/dir/").await.check_done();
    assert_eq!((&reply["deletedCount"], &reply["isTruncated"]), (&json!(22), &json!(false)));
    assert_eq!((world.object_count("photos"), world.derived_count()), (0, 0));
}

#[tokio::test]
async fn orphaned_thumbnail_is_deleted_with_its_folder() {
    let (world, client) = World::with_bucket(1);
    path(&client.put("/photos/dir/?thumbnail", "a.png", &png(8, 8)).await);
    client.delete("/photos/dir/a.png").await.check_done();
    // Only the operator can restore it alone.
    undelete(&world, UndeleteSelector::File { path: "dir/a_thumb.webp".into() });
    assert_eq!((world.object_count("photos"), world.derived_count()), (0, 1));
    client.put("/photos/dir/", "a.png", &png(9, 9)).await;
    assert_eq!(world.derived_count(), 0, "it shows another picture");
    path(&client.put("/photos/dir/?overwrite&thumbnail", "a.png", &png(8, 8)).await);
    client.delete("/photos/dir/a.png").await.check_done();
    undelete(&world, UndeleteSelector::File { path: "dir/a_thumb.webp".into() });
    assert_eq!(client.delete("/photos/dir/").await.check_done()["deletedCount"], 0);
    assert_eq!(world.derived_count(), 0);
}

#[tokio::test]
async fn bucket_delete_removes_thumbnails_and_counts_files() {
    let (world, client) = World::with_bucket(1);
    path(&client.put("/photos/?thumbnail", "a.png", &png(8, 8)).await);
    let bucket = client.get("/api/buckets/photos").await.check_done()["bucket"].clone();
    assert_eq!(
        (&bucket["objectCount"], &bucket["totalBytes"]),
        (&json!(1), &json!(png(8, 8).len()))
    );
    let force = AdminRequest::DeleteBucket { name: "photos".into(), force: true };
    let AdminResponse::BucketDeleted(deleted) = world.manage(force) else { panic!("it was to go") };
    assert_eq!((deleted.deleted_count, world.derived_count()), (1, 0));
}

#[tokio::test]
async fn thumbnail_takes_no_quota() {
    let (world, client) = World::with_bucket(1);
    let file = png(8, 8);
    let quota_bytes = Some(Some(file.len() as u64));
    let quota_objects = Some(Some(1));
    world
        .edit_bucket("photos", BucketSettings { quota_bytes, quota_objects, ..Default::default() });
    path(&client.put("/photos/?thumbnail", "a.png", &file).await);
    path(&client.put("/photos/?thumbnail&overwrite", "a.png", &file).await);
    let rejected = client.upload_file("/photos/?thumbnail", "b.png", &file).await;
    rejected.check_error(507, "quota_exceeded");
    assert_eq!(world.derived_count(), 1);
}

#[tokio::test]
async fn thumbnail_access_follows_its_file() {
    let (world, client) = World::with_bucket(1);
    world.make_private("photos");
    let thumbnail = path(&client.put("/photos/?thumbnail", "a.png", &png(8, 8)).await);
    assert_eq!(client.get(&thumbnail).await.status, 200);
    for path in [&*thumbnail, "/photos/a.png"] {
        assert_eq!(world.anonymous().get(path).await.status, 401, "{path}");
    }
}

#[tokio::test]
async fn thumbnail_is_in_search_results_and_listings() {
    let (_world, client) = World::with_bucket(1);
    let url = client.put("/photos/?thumbnail", "cat.png", &png(8, 8)).await["thumbnailUrl"].clone();
    client.put("/photos/", "cat.txt", b"meow").await;
    for query in ["q=cat", ""] {
        let found = client.get(&format!("/api/search/photos?{query}")).await.check_done();
        let hits = found["hits"].as_array().unwrap();
        let hits: Vec<_> = hits.iter().map(|hit| (&hit["key"], &hit["thumbnailUrl"])).collect();
        // The thumbnail of the picture is not that of the text.
        let expected = [(&json!("cat.png"), &url), (&json!("cat.txt"), &Value::Null)];
        assert_eq!(hits, expected, "{query}");
    }
    let named = client.get("/api/search/photos?q=cat_thumb").await.check_done();
    assert_eq!(named["hits"][0]["key"], "cat_thumb.webp");
    let listed = client.get("/api/list-objects?bucketName=photos").await.text();
    assert!(listed.contains("cat_thumb.webp"), "{listed}");
}

fn undelete(world: &World, wanted: UndeleteSelector) {
    let AdminResponse::Undeleted(undeleted) =
        world.manage(AdminRequest::Undelete { bucket: "photos".into(), wanted })
    else {
        panic!("something was to come back")
    };
    assert_eq!((undeleted.restored.len(), undeleted.refused.len()), (1, 0), "{undeleted:?}");
}

#[tokio::test]
async fn restored_version_does_not_get_the_later_thumbnail() {
    let (world, client) = World::with_bucket(1);
    let over = "/photos/a.png?overwrite&thumbnail";
    path(&client.put(over, "a.png", &png(8, 8)).await);
    let name = engine::ObjectName::new(
        engine::BucketName::parse("photos").unwrap(),
        engine::ObjectKey::parse("a.png").unwrap(),
    );
    let first = world.store.get(&name).unwrap().unwrap().lsn();
    path(&client.put(over, "a.png", &png(9, 9)).await);
    undelete(&world, UndeleteSelector::Version { path: "a.png".into(), lsn: first });
    assert_eq!(shown(&client.get("/photos/a.png").await).width(), 8);
    assert_eq!(world.derived_count(), 0);

    // A deleted file is restored without its thumbnail, and the thumbnail by its own name.
    path(&client.put(over, "a.png", &png(9, 9)).await);
    client.delete("/photos/a.png").await.check_done();
    undelete(&world, UndeleteSelector::File { path: "a.png".into() });
    assert_eq!(world.derived_count(), 0);
    undelete(&world, UndeleteSelector::File { path: "a_thumb.webp".into() });
    client.delete("/photos/a.png").await.check_done();
    assert_eq!((world.object_count("photos"), world.derived_count()), (0, 0));
}
