//! Management of webhooks: create, list, change, delete.

use jobs::webhooks::deliver_due;
use serde_json::json;
use tests::World;

use super::{HOOKS, hook, hook_with, hooked, webhook, world};

#[tokio::test]
async fn webhook_secret_is_shown_once() {
    let (_world, client) = World::with_bucket(1);
    let url = "https://hooks.example.com/in?key=1";
    let body = json!({"url": url, "events": ["ObjectRemoved:*", "s3:ObjectCreated:Put"],
        "prefix": "pets/"});
    let reply = client.post_json(HOOKS, body).await;
    let made = reply.check_done();
    let id = made["webhook"]["id"].as_str().unwrap().to_owned();
    let secret = made["secret"].as_str().unwrap().to_owned();
    assert!(secret.starts_with("whsec_") && secret.len() == 6 + 44, "{secret}");
    let expected = json!({
        "id": id,
        "bucketName": "photos",
        "url": url,
        "events": ["s3:ObjectRemoved:*", "s3:ObjectCreated:Put"],
        "prefix": "pets/",
        "enabled": true,
        "disabledReason": null,
        "pendingCount": 0,
        "retryingCount": 0,
        "deadLetterCount": 0,
        "droppedCount": 0,
        "lastAttemptAt": null,
        "lastStatus": null,
        "lastError": null,
        "lastDeliveryAt": null,
        "createdAt": "2026-01-31T12:00:00.000Z",
        "updatedAt": "2026-01-31T12:00:00.000Z",
    });
    assert_eq!(made["webhook"], expected);
    let path = format!("{HOOKS}/{id}");
    assert_eq!(webhook(&client, &path).await, expected);
    let list = client.get(HOOKS).await;
    assert_eq!(list.check_done()["webhooks"], json!([expected]));
    let edited = client.patch_json(&path, json!({"prefix": null})).await;
    assert_eq!(edited.check_done()["webhook"]["prefix"], "");
    for reply in [client.get(&path).await, list, edited] {
        assert!(!reply.text().contains("whsec"));
    }
    client.delete(&path).await.check_done();
    client.get(&path).await.check_error(404, "webhook_not_found");
    assert_eq!(client.get(HOOKS).await.check_done()["webhooks"], json!([]));
}

#[tokio::test]
async fn webhook_invalid_request_names_the_field() {
    let (_world, client) = World::with_bucket(1);
    let good = "https://hooks.example.com/";
    let every = json!(["s3:ObjectCreated:*"]);
    for (body, parameter) in [
        (json!({"events": every}), "url"),
        (json!({"url": good}), "events"),
        (json!({"url": good, "events": []}), "events"),
        (json!({"url": good, "events": ["s3:*"]}), "events"),
        (json!({"url": good, "events": every, "secret": "whsec_x"}), "secret"),
        (json!({"url": good, "events": every, "enabled": "yes"}), "enabled"),
        (json!({"url": good, "events": every, "prefix": "x".repeat(1_025)}), "prefix"),
        (json!({"url": "hooks.example.com", "events": every}), "url"),
        (json!({"url": "ftp://hooks.example.com/", "events": every}), "url"),
        (json!({"url": "https://ann:word@hooks.example.com/", "events": every}), "url"),
        (json!({"url": "https://hooks.example.com/#a", "events": every}), "url"),
        (json!({"url": format!("https://a/{}", "x".repeat(2_048)), "events": every}), "url"),
    ] {
        client.post_json(HOOKS, body.clone()).await.check_parameter(parameter);
    }
    let (path, _) = hook(&client, good, &["s3:ObjectCreated:*"]).await;
    client.patch_json(&path, json!({"url": "https://"})).await.check_parameter("url");
    client.patch_json(&path, json!({"events": []})).await.check_parameter("events");
    client.patch_json(&path, json!({"id": "x"})).await.check_parameter("id");
    for missing in ["none", "abcdefghijklmnop", ""] {
        client
            .get(&format!("{HOOKS}/{missing}"))
            .await
            .check_error(404, if missing.is_empty() { "not_found" } else { "webhook_not_found" });
    }
    let none = "/api/buckets/none/webhooks";
    client
        .post_json(none, json!({"url": good, "events": every}))
        .await
        .check_error(404, "bucket_not_found");
}

#[tokio::test]
async fn webhook_count_is_limited_per_bucket_and_account() {
    let (world, client) = World::with_bucket(1);
    let good = "https://hooks.example.com/";
    for _ in 0..8 {
        hook(&client, good, &["s3:ObjectCreated:*"]).await;
    }
    let body = json!({"url": good, "events": ["s3:ObjectCreated:*"]});
    client.post_json(HOOKS, body.clone()).await.check_error(400, "bad_request");
    for bucket in 0..12 {
        world.bucket("ann", &format!("more{bucket}"), Default::default());
        for _ in 0..8 {
            let reply = client
                .post_json(&format!("/api/buckets/more{bucket}/webhooks"), body.clone())
                .await;
            let is_room = 8 * (bucket + 1) < 100 - 8 || reply.status == 200;
            assert!(
                is_room || reply.text().contains("100 webhooks of the account"),
                "{}",
                reply.text()
            );
        }
    }
    let all = world.state.catalog.buckets().all();
    let count: usize =
        all.iter().map(|it| world.state.catalog.webhooks().of_bucket(&it.name).len()).sum();
    assert_eq!(count, 100);
}

#[tokio::test]
async fn webhook_new_destination_gets_pending_events_at_once() {
    let (world, client, receiver, path) = hooked().await;
    receiver.script([tests::Scripted::status(500)]);
    client.put("/photos/", "a.txt", b"1").await;
    deliver_due(&world.state.jobs).await;
    client.put("/photos/", "b.txt", b"1").await;
    deliver_due(&world.state.jobs).await;
    // The webhook is backing off.
    assert_eq!(receiver.take_received().len(), 1);
    let other = receiver.url("/other");
    client.patch_json(&path, json!({"url": other})).await.check_done();
    deliver_due(&world.state.jobs).await;
    let seen = receiver.seen();
    assert_eq!(super::keys(&seen), ["b.txt"]);
    assert_eq!(seen[0].line, "POST /other HTTP/1.1");
}

#[tokio::test]
async fn webhook_delete_drops_pending_events() {
    let (world, client, receiver, path) = hooked().await;
    receiver.otherwise(tests::Scripted::status(500));
    for name in ["a.txt", "b.txt"] {
        client.put("/photos/", name, b"1").await;
    }
    deliver_due(&world.state.jobs).await;
    assert_eq!(world.store.facts("webhook-event/", None, 10).unwrap().len(), 2);
    client.delete(&path).await.check_done();
    for prefix in ["webhook/", "webhook-event/", "webhook-state/"] {
        assert_eq!(world.store.facts(prefix, None, 10).unwrap(), [], "{prefix}");
    }
    super::pass(&world, super::HOUR_MS).await;
    assert_eq!(receiver.seen().len(), 1);
}

#[tokio::test]
async fn webhook_method_not_allowed_lists_methods() {
    let (_world, client, receiver) = world();
    let body = json!({"url": receiver.url("/"), "events": ["s3:ObjectCreated:*"]});
    let (path, _) = hook_with(&client, body).await;
    for (path, allow) in [
        (HOOKS.to_owned(), "GET, HEAD, POST, OPTIONS"),
        (path.clone(), "GET, HEAD, PATCH, DELETE, OPTIONS"),
        (format!("{path}/test"), "POST, OPTIONS"),
        (format!("{path}/dead-letters"), "GET, HEAD, DELETE, OPTIONS"),
        (format!("{path}/dead-letters/retry"), "POST, OPTIONS"),
    ] {
        let reply = client.send(http::Method::PUT, &path, &[], axum::body::Body::empty()).await;
        reply.check_error(405, "method_not_allowed");
        assert_eq!(reply.header("allow"), allow, "{path}");
    }
}
