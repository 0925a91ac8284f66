//! Order of events, and that no request waits for a receiver.

use std::time::{Duration, Instant};

use jobs::webhooks::{deliver_due, run_sender};
use serde_json::json;
use tests::{Receiver, Scripted, World};

use super::{HOOKS, config, hook, hooked, keys, kinds_and_keys, pass, webhook};

#[tokio::test]
async fn webhook_events_are_delivered_in_order() {
    let (world, client, receiver, _) = hooked().await;
    let mut expected = Vec::new();
    for round in 0..100 {
        let name = format!("{}.txt", round % 7);
        client.put("/photos/n/?overwrite=true", &name, b"1").await;
        expected.push(super::pair("ObjectCreated:Post", &format!("n/{name}")));
        if round % 3 == 0 {
            client.delete(&format!("/photos/n/{name}")).await.check_done();
            expected.push(super::pair("ObjectRemoved:Delete", &format!("n/{name}")));
        }
    }
    deliver_due(&world.state.jobs).await;
    assert_eq!(kinds_and_keys(&receiver.seen()), expected);
}

#[tokio::test]
async fn webhook_last_event_matches_the_final_concurrent_upload() {
    let (world, client, receiver, _) = hooked().await;
    let uploads = (0..40_usize).map(|number| {
        let client = client.clone();
        tokio::spawn(async move {
            client.put("/photos/a.txt?overwrite=true", "a.txt", &vec![b'x'; number + 1]).await;
        })
    });
    for upload in uploads.collect::<Vec<_>>() {
        upload.await.unwrap();
    }
    deliver_due(&world.state.jobs).await;
    let stored = client.get("/photos/a.txt").await;
    let seen = receiver.seen();
    assert_eq!(seen.len(), 40);
    assert_eq!(seen.last().unwrap().json()["data"]["size"], stored.body.len());
    assert_eq!(seen.last().unwrap().json()["data"]["etag"], stored.header("etag"));
}

#[tokio::test]
async fn webhook_order_survives_a_transient_failure() {
    let (world, client, receiver, path) = hooked().await;
    receiver.script([Scripted::status(500)]);
    for name in ["a.txt", "b.txt", "c.txt"] {
        client.put("/photos/", name, b"1").await;
    }
    deliver_due(&world.state.jobs).await;
    assert_eq!(keys(&receiver.take_received()), ["a.txt"]);
    let waiting = webhook(&client, &path).await;
    assert_eq!((&waiting["pendingCount"], &waiting["retryingCount"]), (&json!(3), &json!(1)));
    pass(&world, 6_000).await;
    assert_eq!(keys(&receiver.take_received()), ["a.txt", "b.txt", "c.txt"]);
    let done = webhook(&client, &path).await;
    assert_eq!((&done["pendingCount"], &done["retryingCount"]), (&json!(0), &json!(0)));
    assert_eq!(done["lastDeliveryAt"], "2026-01-31T12:00:06.000Z");
}

#[tokio::test]
async fn webhook_slow_receiver_blocks_nothing_else() {
    let (slow, quick) = (Receiver::start(), Receiver::start());
    let mut both = config(&slow);
    both.webhook_allow.extend(config(&quick).webhook_allow);
    let (world, client) = World::with_bucket_and(1, both);
    slow.otherwise(Scripted { wait: Duration::from_secs(60), ..Scripted::status(200) });
    let (slow_path, _) = hook(&client, &slow.url("/"), &["s3:ObjectCreated:*"]).await;
    hook(&client, &quick.url("/"), &["s3:ObjectCreated:*"]).await;
    let delivering = tokio::spawn(run_sender(world.state.jobs.clone()));
    let began = Instant::now();
    for number in 0..50 {
        client.put("/photos/", &format!("{number}.txt"), b"1").await;
    }
    while quick.seen().len() < 50 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    // Both complete before the slow one has responded, or was given up.
    assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
    assert_eq!(slow.seen().len(), 1);
    assert_eq!(webhook(&client, &slow_path).await["pendingCount"], 50);
    delivering.abort();
}

#[tokio::test]
async fn webhook_hanging_destinations_leave_slots_for_others() {
    let (slow, quick) = (Receiver::start(), Receiver::start());
    let mut both = config(&slow);
    both.webhook_allow.extend(config(&quick).webhook_allow);
    let (world, client) = World::with_bucket_and(1, both);
    slow.otherwise(Scripted { wait: Duration::from_secs(60), ..Scripted::status(200) });
    for _ in 0..8 {
        hook(&client, &slow.url("/"), &["s3:ObjectCreated:*"]).await;
    }
    world.account("bob");
    world.bucket("bob", "music", Default::default());
    let bob = world.client_of("bob", Default::default());
    let body = json!({"url": quick.url("/"), "events": ["s3:ObjectCreated:*"]});
    bob.post_json(&HOOKS.replace("photos", "music"), body).await.check_done();
    let delivering = tokio::spawn(run_sender(world.state.jobs.clone()));
    client.put("/photos/", "a.txt", b"1").await;
    // The maximum number of her deliveries hang, and no more.
    while slow.seen().len() < 4 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    bob.put("/music/", "b.txt", b"1").await;
    while quick.seen().is_empty() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert_eq!(slow.seen().len(), 4);
    delivering.abort();
}
