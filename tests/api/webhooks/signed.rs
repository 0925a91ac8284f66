//! Signed deliveries, and their verification by a receiver: Standard Webhooks, verified here without any code of the
//! server.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use jobs::webhooks::deliver_due;
use serde_json::json;
use sha2::Sha256;
use tests::Seen;
use tests::world::BEGINNING_MS;

use super::{hook, pass, world};

fn verify(secret: &str, seen: &Seen) -> bool {
    let key = STANDARD.decode(secret.strip_prefix("whsec_").unwrap()).unwrap();
    assert_eq!(key.len(), 32);
    let mut mac = Hmac::<Sha256>::new_from_slice(&key).unwrap();
    let (id, timestamp) = (seen.header("webhook-id"), seen.header("webhook-timestamp"));
    mac.update(&[id.as_bytes(), b".", timestamp.as_bytes(), b".", &seen.body].concat());
    let signature = seen.header("webhook-signature").strip_prefix("v1,").unwrap();
    mac.verify_slice(&STANDARD.decode(signature).unwrap()).is_ok()
}

#[tokio::test]
async fn webhook_message_describes_the_event_and_is_signed() {
    let (world, client, receiver) = world();
    let url = receiver.url("/hook/a?b=c");
    let (_, secret) = hook(&client, &url, &["s3:ObjectCreated:*", "s3:ObjectRemoved:*"]).await;
    let put = client.put("/photos/pets/", "tom & jerry.txt", b"hello").await;
    let etag = client.get("/photos/pets/tom%20&%20jerry.txt").await.header("etag").to_owned();
    client.delete("/photos/pets/tom%20&%20jerry.txt").await.check_done();
    deliver_due(&world.state.jobs).await;

    let seen = receiver.seen();
    let [created, removed] = &seen[..] else { panic!("{seen:?}") };
    assert_eq!(created.line, "POST /hook/a?b=c HTTP/1.1");
    for (name, value) in [
        ("host", receiver.origin().strip_prefix("http://").unwrap()),
        ("content-type", "application/json"),
        ("user-agent", concat!("trug/", env!("CARGO_PKG_VERSION"))),
        ("webhook-timestamp", &(BEGINNING_MS / 1_000).to_string()),
    ] {
        assert_eq!(created.header(name), value, "{name}");
    }
    assert_eq!(
        created.json(),
        json!({
            "type": "ObjectCreated:Post",
            "timestamp": "2026-01-31T12:00:00.000Z",
            "data": {
                "bucketName": "photos",
                "key": "pets/tom & jerry.txt",
                "url": put["url"],
                "size": 5,
                "etag": etag,
                "contentType": "text/plain",
            }
        })
    );
    assert_eq!(removed.json()["type"], "ObjectRemoved:Delete");
    assert_eq!(
        removed.json()["data"],
        json!({"bucketName": "photos", "key": "pets/tom & jerry.txt", "url": put["url"]})
    );
    assert!(verify(&secret, created) && verify(&secret, removed));
    assert_ne!(created.header("webhook-id"), removed.header("webhook-id"));
    // Both went over one connection.
    assert_eq!((created.connection, removed.connection), (1, 1));

    // A changed body fails verification, and so does another secret.
    let mut forged = created.clone();
    forged.body[9] ^= 1;
    assert!(!verify(&secret, &forged));
    let (_, other) = hook(&client, &url, &["s3:ObjectCreated:*"]).await;
    assert!(!verify(&other, created));
    // The delivery contains neither the secret nor the key.
    let sent = format!("{:?}", seen);
    assert!(!sent.contains(&secret) && !sent.contains(client.key()));
}

#[tokio::test]
async fn webhook_retry_keeps_id_and_renews_timestamp() {
    let (world, client, receiver) = world();
    let (_, secret) = hook(&client, &receiver.url("/"), &["s3:ObjectCreated:*"]).await;
    receiver.script([tests::Scripted::status(500)]);
    client.put("/photos/", "a.txt", b"1").await;
    deliver_due(&world.state.jobs).await;
    pass(&world, 10_000).await;
    let seen = receiver.seen();
    let [first, second] = &seen[..] else { panic!("{seen:?}") };
    assert_eq!(first.header("webhook-id"), second.header("webhook-id"));
    assert_eq!(second.header("webhook-timestamp"), (BEGINNING_MS / 1_000 + 10).to_string());
    assert_eq!(first.body, second.body);
    assert!(verify(&secret, first) && verify(&secret, second));
    assert_ne!(first.header("webhook-signature"), second.header("webhook-signature"));
}

#[tokio::test]
async fn webhook_test_is_sent_at_once_and_reports_response() {
    let (_world, client, receiver) = world();
    let (path, secret) = hook(&client, &receiver.url("/"), &["s3:ObjectCreated:*"]).await;
    let test = format!("{path}/test");
    let answer = tests::Scripted { body: "well".into(), ..tests::Scripted::status(202) };
    let long = tests::Scripted { body: "x".repeat(100_000), ..tests::Scripted::status(500) };
    receiver.script([answer, long]);
    let tested = client.send(http::Method::POST, &test, &[], axum::body::Body::empty()).await;
    let tested = tested.check_done();
    assert_eq!(
        (&tested["delivered"], &tested["status"], &tested["answer"], &tested["deliveryError"]),
        (&json!(true), &json!(202), &json!("well"), &json!(null))
    );
    let seen = &receiver.seen()[0];
    assert_eq!(seen.json()["type"], "webhook.test");
    assert_eq!(seen.json()["data"]["bucketName"], "photos");
    assert!(verify(&secret, seen));

    let tested = client.send(http::Method::POST, &test, &[], axum::body::Body::empty()).await;
    let tested = tested.check_done();
    assert_eq!((&tested["delivered"], &tested["status"]), (&json!(false), &json!(500)));
    assert_eq!(tested["deliveryError"], "response status 500");
    assert_eq!(tested["answer"].as_str().unwrap().len(), 4_096);
    // A test is no event: it is not retried.
    assert_eq!(super::webhook(&client, &path).await["pendingCount"], 0);
}
