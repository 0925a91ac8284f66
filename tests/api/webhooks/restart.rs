//! Events survive a restart: delivered at least once, whatever happened in between.

use std::time::Duration;

use catalog::{CatalogError, OnNonEmpty};
use engine::BucketName;
use engine::disk::sim::LossPolicy;
use jobs::webhooks::deliver_due;
use tests::{Client, Scripted};

use super::{HOUR_MS, hook_with, hooked, keys, pass, webhook};

#[tokio::test]
async fn webhook_queue_and_retries_resume_after_restart() {
    let (world, client, receiver, path) = hooked().await;
    receiver.script([Scripted::status(500)]);
    client.put("/photos/", "a.txt", b"1").await;
    client.put("/photos/", "b.txt", b"1").await;
    deliver_due(&world.state.jobs).await;
    assert_eq!(keys(&receiver.take_received()), ["a.txt"]);
    world.store.close().unwrap();
    let world = world.found_on(world.disk.fork());
    let client = Client::new(world.app(), client.key.clone());
    let state = webhook(&client, &path).await;
    assert_eq!((&state["pendingCount"], &state["retryingCount"]), (&2.into(), &1.into()));
    assert_eq!(
        (&state["lastStatus"], &state["lastError"]),
        (&500.into(), &"response status 500".into())
    );
    // The first is not due before its time; the webhook's back-off is reset.
    deliver_due(&world.state.jobs).await;
    assert_eq!(keys(&receiver.take_received()), ["b.txt"]);
    pass(&world, 6_000).await;
    assert_eq!(keys(&receiver.take_received()), ["a.txt"]);
    // New events have numbers of their own.
    client.put("/photos/", "c.txt", b"1").await;
    deliver_due(&world.state.jobs).await;
    assert_eq!(keys(&receiver.take_received()), ["c.txt"]);
    pass(&world, 24 * HOUR_MS).await;
    assert_eq!(receiver.seen().len(), 0);
}

#[tokio::test]
async fn webhook_dead_letters_survive_restart() {
    let (world, client, receiver, path) = hooked().await;
    receiver.otherwise(Scripted::status(500));
    client.put("/photos/", "a.txt", b"1").await;
    for _ in 0..100 {
        pass(&world, HOUR_MS).await;
    }
    assert_eq!(webhook(&client, &path).await["deadLetterCount"], 1);
    world.store.close().unwrap();
    let world = world.found_on(world.disk.fork());
    let client = Client::new(world.app(), client.key.clone());
    client.put("/photos/", "b.txt", b"1").await;
    for _ in 0..100 {
        pass(&world, HOUR_MS).await;
    }
    let letters = client.get(&format!("{path}/dead-letters")).await.check_done();
    let letters = letters["deadLetters"].as_array().unwrap();
    let keys: Vec<_> = letters.iter().map(|letter| letter["key"].as_str().unwrap()).collect();
    assert_eq!(keys, ["a.txt", "b.txt"]);
}

#[tokio::test]
async fn power_loss_keeps_file_and_webhook_event_atomic() {
    let (world, client, receiver, _) = hooked().await;
    world.disk.record_cuts();
    client.put("/photos/", "a.txt", &[7; 1_000]).await;
    let acknowledged = world.disk.operations();
    // Work of the store's threads completes a little later.
    tokio::time::sleep(Duration::from_millis(300)).await;
    world.store.close().unwrap();
    let cuts = world.disk.take_cuts();
    assert!(cuts.len() > 3, "only {} operations", cuts.len());
    let (mut before, mut after) = (0, 0);
    for (at, cut) in cuts.iter().enumerate() {
        for (seed, policy) in (0..).zip(LossPolicy::ALL) {
            let disk = cut.fork();
            disk.power_on(policy, seed);
            let found = world.found_on(disk);
            let again = Client::new(found.app(), client.key.clone());
            let is_stored = again.get("/photos/a.txt").await.status == 200;
            receiver.take_received();
            deliver_due(&found.state.jobs).await;
            let is_delivered = keys(&receiver.take_received()) == ["a.txt"];
            assert_eq!(is_stored, is_delivered, "{policy:?} {at}: one without the other");
            let was_acknowledged = cut.operations() >= acknowledged;
            assert!(is_stored || !was_acknowledged, "{policy:?} {at}: acknowledged and gone");
            if is_stored { after += 1 } else { before += 1 }
        }
    }
    assert!(before > 0 && after > 0, "{before} {after}");
}

#[tokio::test]
async fn webhook_power_loss_during_delivery_is_at_least_once() {
    let (world, client, receiver, path) = hooked().await;
    client.put("/photos/", "a.txt", b"1").await;
    world.disk.record_cuts();
    deliver_due(&world.state.jobs).await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    world.store.close().unwrap();
    assert_eq!(receiver.take_received().len(), 1);
    let (mut again, mut done) = (0, 0);
    for cut in world.disk.take_cuts() {
        for (seed, policy) in (0..).zip(LossPolicy::ALL) {
            let disk = cut.fork();
            disk.power_on(policy, seed);
            let found = world.found_on(disk);
            deliver_due(&found.state.jobs).await;
            match receiver.take_received().len() {
                0 => done += 1,
                1 => again += 1,
                more => panic!("{more}"),
            }
            let client = Client::new(found.app(), client.key.clone());
            let state = webhook(&client, &path).await;
            assert_eq!(state["pendingCount"], 0);
            assert!(state["lastDeliveryAt"].is_string(), "{state}");
        }
    }
    assert!(again > 0 && done > 0, "{again} {done}");
}

#[tokio::test]
async fn webhook_leftovers_of_interrupted_delete_are_removed() {
    let (world, client, receiver, path) = hooked().await;
    let other = serde_json::json!({"url": receiver.url("/"), "events": ["s3:ObjectCreated:*"]});
    hook_with(&client, other).await;
    receiver.otherwise(Scripted::status(500));
    client.put("/photos/", "a.txt", b"1").await;
    deliver_due(&world.state.jobs).await;
    // The webhook is deleted, and its queue is not.
    let id = path.rsplit('/').next().unwrap();
    let fact = engine::FactName::parse(&format!("webhook/{id}")).unwrap();
    world.store.commit(engine::Batch::new().delete_fact(fact)).unwrap();
    world.store.close().unwrap();
    let world = world.found_on(world.disk.fork());
    assert_eq!(world.store.facts("webhook-event/", None, 10).unwrap().len(), 2);
    world.state.catalog.webhooks().remove_leftovers().unwrap();
    for prefix in ["webhook-event/", "webhook-state/"] {
        let facts = world.store.facts(prefix, None, 10).unwrap();
        assert!(facts.len() == 1 && !facts[0].0.as_str().contains(id), "{facts:?}");
    }
}

#[tokio::test]
async fn webhooks_of_interrupted_bucket_delete_are_removed_later() {
    let (world, client, receiver, _) = hooked().await;
    client.put("/photos/", "a.txt", b"1").await;
    let photos = BucketName::parse("photos").unwrap();
    drop(world.state.catalog.buckets().delete(&photos, OnNonEmpty::DeleteToo).unwrap());
    world.store.close().unwrap();
    let world = world.found_on(world.disk.fork());
    deliver_due(&world.state.jobs).await;
    assert_eq!(world.state.catalog.buckets().resume_deletions().unwrap(), 1);
    for prefix in ["webhook/", "webhook-event/", "webhook-state/"] {
        assert_eq!(world.store.facts(prefix, None, 10).unwrap(), [], "{prefix}");
    }
    assert_eq!(receiver.seen().len(), 0);
}

#[tokio::test]
async fn restored_bucket_keeps_its_webhooks() {
    let (world, client, receiver, path) = hooked().await;
    client.put("/photos/", "a.txt", b"1").await;
    client.delete("/photos/a.txt").await.check_done();
    let photos = BucketName::parse("photos").unwrap();
    let removal = world.state.catalog.buckets().delete(&photos, OnNonEmpty::Refuse).unwrap();
    deliver_due(&world.state.jobs).await;
    assert_eq!(receiver.seen().len(), 0);
    let upload = world.store.upload().finish().unwrap();
    let name = engine::ObjectName::new(photos, engine::ObjectKey::parse("b.txt").unwrap());
    world.store.commit(engine::Batch::new().put(name, upload, Default::default())).unwrap();
    assert!(matches!(removal.finish(), Err(CatalogError::NotEmpty(..))));
    assert_eq!(webhook(&client, &path).await["pendingCount"], 2);
    pass(&world, HOUR_MS).await;
    assert_eq!(keys(&receiver.seen()), ["a.txt", "a.txt"]);
}
