//! Events that trigger webhooks, and those that do not.

use axum::body::Body;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::Method;
use jobs::webhooks::deliver_due;
use serde_json::json;
use server::management::AdminRequest;
use tests::Form;
use tests::fixtures::path_of;

use super::{hook, hook_with, hooked, keys, kinds_and_keys, pair, webhook, world};

#[tokio::test]
async fn webhook_events_cover_every_upload_and_delete_route() {
    let (world, client, receiver, _) = hooked().await;
    let form = |name: &str| Form::new().file("f", name, None, b"1");
    client.put("/photos/", "form.txt", b"1").await;
    let path = path_of(&client.get_json("/api/presigned-url?path=photos/").await["url"]);
    assert_eq!(client.without_key().upload(&path, form("token.txt")).await.status, 200);
    let path = path_of(&client.get_json("/photos/presigned/put.txt").await["presignedUrl"]);
    let anonymous = client.without_key();
    assert_eq!(anonymous.send(Method::PUT, &path, &[], Body::from("1")).await.status, 200);
    let said = [("bucketName", "photos"), ("name", "pieces.txt")];
    let said = said.map(|(name, value)| format!("{name} {}", STANDARD.encode(value))).join(",");
    let headers = [
        ("tus-resumable", "1.0.0"),
        ("content-type", "application/offset+octet-stream"),
        ("upload-length", "1"),
        ("upload-metadata", &*said),
    ];
    let reply = client.send(Method::POST, "/api/tus/", &headers, Body::from("1")).await;
    assert_eq!(reply.status, 201, "{}", reply.text());
    let two = Form::new().file("f", "a.txt", None, b"1").file("f", "b.txt", None, b"2");
    client.upload("/photos/two/", two).await.check_done();
    client.delete("/photos/form.txt").await.check_done();
    client.delete("/photos/two/").await.check_done();
    deliver_due(&world.state.jobs).await;
    assert_eq!(
        kinds_and_keys(&receiver.seen()),
        [
            pair("ObjectCreated:Post", "form.txt"),
            pair("ObjectCreated:Post", "token.txt"),
            pair("ObjectCreated:Put", "put.txt"),
            pair("ObjectCreated:CompleteMultipartUpload", "pieces.txt"),
            pair("ObjectCreated:Post", "two/a.txt"),
            pair("ObjectCreated:Post", "two/b.txt"),
            pair("ObjectRemoved:Delete", "form.txt"),
            pair("ObjectRemoved:Delete", "two/a.txt"),
            pair("ObjectRemoved:Delete", "two/b.txt"),
        ]
    );
}

#[tokio::test]
async fn webhook_move_sends_deleted_and_created() {
    let (world, client, receiver, _) = hooked().await;
    client.put("/photos/", "a.txt", b"1").await;
    let wish = json!({"from": "a.txt", "to": "b.txt"});
    client.post_json("/api/buckets/photos/move", wish).await.check_done();
    client.post_json("/api/buckets/photos/undelete", json!({"path": "a.txt"})).await.check_done();
    let taken = json!({"from": "a.txt", "to": "b.txt"});
    client.post_json("/api/buckets/photos/move", taken).await.check_error(409, "already_exists");
    deliver_due(&world.state.jobs).await;
    assert_eq!(
        kinds_and_keys(&receiver.seen()),
        [
            pair("ObjectCreated:Post", "a.txt"),
            pair("ObjectRemoved:Delete", "a.txt"),
            pair("ObjectCreated:Copy", "b.txt"),
            pair("ObjectCreated:Copy", "a.txt"),
        ]
    );
}

#[tokio::test]
async fn webhook_overwrite_sends_created_with_final_name() {
    let (world, client, receiver, _) = hooked().await;
    client.put("/photos/", "a.txt", b"1").await;
    client.put("/photos/a.txt?overwrite=true", "a.txt", b"22").await;
    client.put("/photos/", "a.txt", b"333").await;
    deliver_due(&world.state.jobs).await;
    let seen = receiver.seen();
    assert_eq!(keys(&seen), ["a.txt", "a.txt", "a (1).txt"]);
    let sizes: Vec<_> = seen.iter().map(|seen| seen.json()["data"]["size"].clone()).collect();
    assert_eq!(sizes, [1, 2, 3]);
}

#[tokio::test]
async fn webhook_failed_operations_send_no_event() {
    let (world, client, receiver, path) = hooked().await;
    client.delete("/photos/none.txt").await.check_error(404, "file_not_found");
    client.delete("/photos/none/").await.check_error(404, "file_not_found");
    client.upload("/photos/", Form::new()).await.check_error(400, "no_file");
    deliver_due(&world.state.jobs).await;
    assert_eq!(kinds_and_keys(&receiver.seen()), []);
    // Nor is room kept for it.
    assert_eq!(webhook(&client, &path).await["pendingCount"], 0);
}

#[tokio::test]
async fn webhook_filters_by_kind_and_prefix() {
    let (world, client, receiver) = world();
    let url = receiver.url("/");
    hook(&client, &format!("{url}put"), &["s3:ObjectCreated:Put"]).await;
    hook(&client, &format!("{url}post"), &["ObjectCreated:Post"]).await;
    hook(&client, &format!("{url}gone"), &["s3:ObjectRemoved:Delete"]).await;
    let body = json!({"url": format!("{url}cats"), "events": ["s3:ObjectCreated:*"], "prefix": "pets/cat"});
    hook_with(&client, body).await;
    for path in ["pets/", "pets/cats/"] {
        client.put(&format!("/photos/{path}"), "a.txt", b"1").await;
    }
    client.delete("/photos/pets/a.txt").await.check_done();
    deliver_due(&world.state.jobs).await;
    let mut seen: Vec<_> = receiver
        .seen()
        .iter()
        .map(|seen| format!("{} {}", seen.line.split(' ').nth(1).unwrap(), seen.kind_and_key().1))
        .collect();
    seen.sort();
    assert_eq!(
        seen,
        ["/cats pets/cats/a.txt", "/gone pets/a.txt", "/post pets/a.txt", "/post pets/cats/a.txt"]
    );
    // All webhooks receive one event under one id.
    let ids = receiver.seen();
    let ids: Vec<_> =
        ids.iter().filter(|seen| seen.kind_and_key().1 == "pets/cats/a.txt").collect();
    assert_eq!(ids[0].header("webhook-id"), ids[1].header("webhook-id"));
}

#[tokio::test]
async fn webhook_form_of_100_files_reaches_all_webhooks() {
    let (world, client, receiver) = world();
    for _ in 0..8 {
        hook(&client, &receiver.url("/"), &["s3:ObjectCreated:*", "s3:ObjectRemoved:*"]).await;
    }
    let add = |form: Form, number| form.file("f", &format!("{number}.txt"), None, b"1");
    let form = (0..100).fold(Form::new(), add);
    client.upload("/photos/many/", form).await.check_done();
    client.delete("/photos/many/").await.check_done();
    deliver_due(&world.state.jobs).await;
    assert_eq!(receiver.seen().len(), 2 * 100 * 8);
}

#[tokio::test]
async fn webhook_disabled_receives_nothing_and_keeps_its_queue() {
    let (world, client, receiver, path) = hooked().await;
    client.put("/photos/", "a.txt", b"1").await;
    let edited = client.patch_json(&path, json!({"enabled": false})).await.check_done();
    assert_eq!(edited["webhook"]["enabled"], false);
    client.put("/photos/", "b.txt", b"1").await;
    deliver_due(&world.state.jobs).await;
    assert_eq!(kinds_and_keys(&receiver.seen()), []);
    client.patch_json(&path, json!({"enabled": true})).await.check_done();
    client.put("/photos/", "c.txt", b"1").await;
    deliver_due(&world.state.jobs).await;
    assert_eq!(keys(&receiver.seen()), ["a.txt", "c.txt"]);
}

#[tokio::test]
async fn webhook_deleted_bucket_sends_nothing_and_drops_webhooks() {
    let (world, client, receiver, path) = hooked().await;
    client.put("/photos/", "a.txt", b"1").await;
    world.manage(AdminRequest::DeleteBucket { name: "photos".into(), force: true });
    deliver_due(&world.state.jobs).await;
    assert_eq!(kinds_and_keys(&receiver.seen()), []);
    for prefix in ["webhook/", "webhook-event/", "webhook-state/", "webhook-dead/"] {
        assert_eq!(world.store.facts(prefix, None, 10).unwrap(), [], "{prefix}");
    }
    world.bucket("ann", "photos", Default::default());
    client.get(&path).await.check_error(404, "webhook_not_found");
    client.put("/photos/", "a.txt", b"1").await;
    deliver_due(&world.state.jobs).await;
    assert_eq!(kinds_and_keys(&receiver.seen()), []);
}

#[tokio::test]
async fn bucket_without_webhooks_writes_no_events() {
    let (world, client) = tests::World::with_bucket(1);
    client.put("/photos/", "a.txt", b"1").await;
    client.delete("/photos/a.txt").await.check_done();
    for prefix in ["webhook-event/", "webhook-state/", "webhook-dead/"] {
        assert_eq!(world.store.facts(prefix, None, 10).unwrap(), [], "{prefix}");
    }
}
