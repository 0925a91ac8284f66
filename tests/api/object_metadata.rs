//! Description of a file, and changes of its type, headers, user metadata and expiry.

use catalog::Scope;
use http::Method;
use serde_json::{Value, json};
use tests::fixtures::{key_of_folder, key_with_scopes};
use tests::{Client, World};

use crate::images::png;

const OBJECT: &str = "/api/buckets/photos/object?path=a.txt";

fn encoded(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02X}")).collect()
}

async fn show(client: &Client, path: &str) -> Value {
    client.get_json(&format!("/api/buckets/photos/object?path={path}")).await["object"].clone()
}

async fn edit(client: &Client, change: Value) -> Value {
    client.patch_json(OBJECT, change).await.check_done()["object"].clone()
}

#[tokio::test]
async fn upload_options_are_stored_and_delivered() {
    let (_world, client) = World::with_bucket(1);
    let query = "contentType=text/markdown&cacheControl=max-age%3D5&contentDisposition=inline";
    let metadata = "metadata=%7B%22camera%22:%22X100%22,%22by%22:%22%C3%A4nn%20b%22%7D";
    client.put(&format!("/photos/?{query}&{metadata}"), "a.txt", b"# title").await;
    let reply = client.get("/photos/a.txt").await;
    assert_eq!(reply.header("content-type"), "text/markdown; charset=utf-8");
    assert_eq!(reply.header("cache-control"), "max-age=5");
    assert_eq!(reply.header("content-disposition"), "inline");
    let object = show(&client, "a.txt").await;
    assert_eq!(object["metadata"], json!({"camera": "X100", "by": "änn b"}));
    assert_eq!(object["contentType"], "text/markdown");
    assert_eq!((&object["size"], &object["expiresAt"]), (&json!(7), &Value::Null));
    assert_eq!(object["etag"], reply.header("etag"));
    assert_eq!(object["url"], "https://cdn.example.com/photos/a.txt");
}

#[tokio::test]
async fn metadata_change_preserves_content_etag_and_times() {
    let (world, client) = World::with_bucket(2);
    client.put("/photos/", "a.txt", b"text").await;
    let before = client.get("/photos/a.txt").await;
    let described = show(&client, "a.txt").await;
    world.clock.advance(5_000_000);
    let changed = edit(
        &client,
        json!({"cacheControl": "no-store", "metadata": {"a": "b"}, "expiresIn": 600}),
    )
    .await;
    for field in ["createdAt", "lastModified", "etag", "size", "contentType"] {
        assert_eq!(changed[field], described[field], "{field}");
    }
    assert_eq!(changed["expiresAt"], "2026-01-31T13:33:20.000Z");
    let after = client.get("/photos/a.txt").await;
    for header in ["etag", "last-modified", "content-type"] {
        assert_eq!(after.header(header), before.header(header), "{header}");
    }
    assert_eq!((after.text(), after.header("cache-control")), ("text".into(), "no-store"));
    let listed = client.get_json("/api/list-objects?bucketName=photos").await;
    assert_eq!(listed["Contents"][0]["LastModified"], described["lastModified"]);
    // Absent fields are unchanged, null restores the default.
    let changed = edit(&client, json!({"cacheControl": null, "expiresAt": null})).await;
    assert_eq!(changed["metadata"], json!({"a": "b"}));
    assert_eq!((&changed["cacheControl"], &changed["expiresAt"]), (&Value::Null, &Value::Null));
    let entries = world.operator().get_json("/api/audit").await;
    let entry = &entries["entries"]
        .as_array()
        .unwrap()
        .iter()
        .find(|it| it["action"] == "file.change")
        .unwrap()
        .clone();
    assert_eq!(
        (&entry["target"], &entry["detail"]),
        (&json!("a.txt"), &json!("cacheControl, expiresAt"))
    );
    assert_eq!(entry["bucketName"], "photos");
}

#[tokio::test]
async fn content_type_must_not_contradict_the_content() {
    let (world, client) = World::with_bucket(3);
    client.put("/photos/", "a.txt", b"plain text").await;
    client.put("/photos/", "p.png", &png(30, 20)).await;
    assert_eq!(edit(&client, json!({"contentType": "text/csv"})).await["contentType"], "text/csv");
    for (path, content_type) in
        [("p.png", "text/plain"), ("p.png", "image/jpeg"), ("a.txt", "image/png"), ("a.txt", "x")]
    {
        let path = format!("/api/buckets/photos/object?path={path}");
        let reply = client.patch_json(&path, json!({"contentType": content_type})).await;
        reply.check_parameter("contentType");
    }
    let reply = client.upload_file("/photos/?contentType=text/html", "q.png", &png(3, 3)).await;
    reply.check_parameter("contentType");
    assert_eq!(client.get("/photos/q.png").await.status, 404);
    let object = show(&client, "p.png").await;
    assert_eq!((&object["width"], &object["height"]), (&json!(30), &json!(20)));
    let settings = server::management::BucketSettings {
        allowed_types: Some(Some(vec!["text/plain".into()])),
        ..Default::default()
    };
    world.edit_bucket("photos", settings);
    let reply = client.patch_json(OBJECT, json!({"contentType": "text/html"})).await;
    reply.check_error(415, "type_not_allowed");
}

#[tokio::test]
async fn metadata_beyond_the_limits_is_rejected() {
    let (_world, client) = World::with_bucket(4);
    client.put("/photos/", "a.txt", b"a").await;
    let many: serde_json::Map<_, _> = (0..65).map(|at| (format!("k{at}"), json!("v"))).collect();
    for metadata in [
        json!({"A": "b"}),
        json!({"a b": "c"}),
        json!({"": "c"}),
        json!({"a": "x\r\ny"}),
        json!({"a": " b"}),
        json!({"a": "x".repeat(2_048)}),
        Value::Object(many),
    ] {
        let reply = client.patch_json(OBJECT, json!({"metadata": metadata})).await;
        reply.check_parameter("metadata");
        let query = format!("metadata={}", encoded(&metadata.to_string()));
        client
            .upload_file(&format!("/photos/?{query}"), "b.txt", b"b")
            .await
            .check_parameter("metadata");
    }
    for change in [json!({"metadata": {"a": 1}}), json!({"metadata": []}), json!({"unknown": 1})] {
        client.patch_json(OBJECT, change).await.check_error(400, "bad_parameter");
    }
    for change in [json!({"cacheControl": "a\nb"}), json!({"contentDisposition": ""})] {
        assert_eq!(client.patch_json(OBJECT, change).await.status, 400);
    }
    assert_eq!(client.list_keys("").await, ["a.txt"]);
    assert_eq!(show(&client, "a.txt").await["metadata"], json!({}));
}

#[tokio::test]
async fn if_match_guards_a_metadata_change() {
    let (_world, client) = World::with_bucket(5);
    client.put("/photos/", "a.txt", b"a").await;
    let etag = client.get("/photos/a.txt").await.header("etag").to_owned();
    let send = async |etag: &str| {
        let headers = [("content-type", "application/json"), ("if-match", etag)];
        let body = json!({"metadata": {"a": "b"}}).to_string();
        client.send(Method::PATCH, OBJECT, &headers, body.into()).await
    };
    send("\"0\"").await.check_error(412, "precondition_failed");
    assert_eq!(show(&client, "a.txt").await["metadata"], json!({}));
    send(&etag).await.check_done();
    assert_eq!(show(&client, "a.txt").await["metadata"], json!({"a": "b"}));
}

#[tokio::test]
async fn object_description_requires_scope_and_folder() {
    let (world, client) = World::with_bucket(6);
    client.put("/photos/", "a.txt", b"a").await;
    let change = json!({"metadata": {"a": "b"}});
    let reader = world.client_of("ann", key_with_scopes(&[Scope::Read]));
    show(&reader, "a.txt").await;
    reader.patch_json(OBJECT, change.clone()).await.check_error(403, "forbidden");
    let writer = world.client_of("ann", key_with_scopes(&[Scope::Upload]));
    writer.get(OBJECT).await.check_error(403, "forbidden");
    writer.patch_json(OBJECT, change.clone()).await.check_done();
    let of_folder = world.client_of("ann", key_of_folder("in/"));
    assert_eq!(of_folder.get(OBJECT).await.status, 403);
    assert_eq!(of_folder.patch_json(OBJECT, change.clone()).await.status, 403);
    let other = world.account_with_key("bob");
    other.get(OBJECT).await.check_error(404, "bucket_not_found");
    other.patch_json(OBJECT, change).await.check_error(404, "bucket_not_found");
    assert_eq!(world.anonymous().get(OBJECT).await.status, 401);
    for path in ["", "b.txt", "folder/", "../a.txt"] {
        let reply = client.get(&format!("/api/buckets/photos/object?path={path}")).await;
        assert!([400, 404].contains(&reply.status.as_u16()), "{path}");
    }
}

#[tokio::test]
async fn concurrent_metadata_changes_lose_nothing() {
    let (_world, client) = World::with_bucket(7);
    client.put("/photos/", "a.txt", b"a").await;
    let changes = [
        json!({"cacheControl": "no-store"}),
        json!({"contentDisposition": "inline"}),
        json!({"metadata": {"a": "b"}}),
        json!({"expiresIn": 600}),
    ];
    let [first, second, third, fourth] = changes.map(|change| client.patch_json(OBJECT, change));
    let replies = tokio::join!(first, second, third, fourth);
    for reply in [replies.0, replies.1, replies.2, replies.3] {
        reply.check_done();
    }
    let object = show(&client, "a.txt").await;
    assert_eq!(
        (&object["cacheControl"], &object["metadata"]["a"]),
        (&json!("no-store"), &json!("b"))
    );
    assert_eq!(object["contentDisposition"], "inline");
    assert!(object["expiresAt"].is_string());
}
