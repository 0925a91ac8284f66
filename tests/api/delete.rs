//! Deletion: specification 4.3, clients 3.3.

use axum::body::Body;
use http::Method;
use serde_json::json;
use tests::{Form, World};

#[tokio::test]
async fn file_delete_succeeds_once() {
    let (world, client) = World::with_bucket(1);
    client.put("/photos/a/", "b c.txt", b"1").await;
    let reply = client.delete("/photos/a%2Fb%20c.txt").await;
    assert_eq!(reply.status, 200);
    let expected = json!({
        "success": true,
        "message": "Deleted photos/a/b c.txt",
        "key": "a/b c.txt",
        "deletedCount": 1,
        "deleted": 1,
        "count": 1,
    });
    assert_eq!(reply.json(), expected);
    client.delete("/photos/a/b%20c.txt").await.check_error(404, "file_not_found");
    client.get("/photos/a/b%20c.txt").await.check_error(404, "file_not_found");
    assert_eq!(world.object_count("photos"), 0);
}

#[tokio::test]
async fn folder_delete_removes_100_keys_per_request_in_order() {
    let (world, client) = World::with_bucket(1);
    for start in (0..150).step_by(50) {
        let form = (start..start + 50)
            .fold(Form::new(), |form, at| form.file("files", &format!("{at:03}.txt"), None, b"1"));
        assert_eq!(client.upload("/photos/a/b/", form).await.status, 200);
    }
    client.put("/photos/ab/", "c.txt", b"1").await;
    let reply = client.delete("/photos/a/").await.json();
    assert_eq!(reply["deletedCount"], 100);
    assert_eq!(reply["deleted"], 100);
    assert_eq!(reply["isTruncated"], true);
    assert_eq!(reply["message"], "Deleted photos/a/");
    client.get("/photos/a/b/099.txt").await.check_error(404, "file_not_found");
    assert_eq!(client.get("/photos/a/b/100.txt").await.status, 200);
    let reply = client.delete("/photos/a/").await.json();
    assert_eq!((&reply["deletedCount"], &reply["isTruncated"]), (&json!(50), &json!(false)));
    client.delete("/photos/a/").await.check_error(404, "file_not_found");
    assert_eq!(world.object_count("photos"), 1);
}

#[tokio::test]
async fn bucket_root_cannot_be_deleted() {
    let (world, client) = World::with_bucket(1);
    client.put("/photos/", "a.txt", b"1").await;
    for path in ["/photos", "/photos/"] {
        client.delete(path).await.check_error(400, "bad_request");
    }
    assert_eq!(world.object_count("photos"), 1);
}

#[tokio::test]
async fn delete_with_empty_body_is_harmless_bad_path_rejected() {
    let (_world, client) = World::with_bucket(1);
    client.put("/photos/", "a.txt", b"1").await;
    let headers = [("content-length", "0")];
    let reply = client.send(Method::DELETE, "/photos/a.txt", &headers, Body::empty()).await;
    assert_eq!(reply.status, 200);
    client.delete("/photos/a/../b").await.check_error(400, "bad_path");
}
