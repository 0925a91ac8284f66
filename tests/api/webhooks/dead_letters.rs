//! Dead letters: list, retry, discard.

use jobs::webhooks::deliver_due;
use serde_json::{Value, json};
use tests::{Client, Receiver, Scripted, World};

use super::{HOUR_MS, SECOND_MS, hooked, keys, pass, webhook};

/// Creates so many dead letters.
async fn with_dead_letters(count: usize) -> (World, Client, Receiver, String) {
    let (world, client, receiver, path) = hooked().await;
    receiver.otherwise(Scripted::status(500));
    for number in 0..count {
        client.put("/photos/", &format!("{number}.txt"), b"1").await;
    }
    deliver_due(&world.state.jobs).await;
    let mut hours = 0;
    while webhook(&client, &path).await["deadLetterCount"] != count {
        pass(&world, HOUR_MS).await;
        hours += 1;
        assert!(hours < 1_000, "they are not given up");
    }
    receiver.otherwise(Scripted::status(200));
    receiver.take_received();
    (world, client, receiver, path)
}

async fn letters(client: &Client, path: &str, query: &str) -> Value {
    client.get(&format!("{path}/dead-letters{query}")).await.check_done()
}

async fn retry(client: &Client, path: &str, query: &str) -> tests::Reply {
    let path = format!("{path}/dead-letters/retry{query}");
    client.post(&path).await
}

#[tokio::test]
async fn dead_letters_are_paged() {
    let (_world, client, _receiver, path) = with_dead_letters(5).await;
    let (mut seen, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = letters(&client, &path, &format!("?limit=2{cursor}")).await;
        let found = page["deadLetters"].as_array().unwrap();
        seen.extend(found.iter().map(|letter| letter["key"].as_str().unwrap().to_owned()));
        match page["nextCursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => break,
        }
    }
    assert_eq!(seen, ["0.txt", "1.txt", "2.txt", "3.txt", "4.txt"]);
    let wrong = client.get(&format!("{path}/dead-letters?cursor=x")).await;
    wrong.check_parameter("cursor");
}

#[tokio::test]
async fn dead_letters_are_resent_singly_or_all() {
    let (world, client, receiver, path) = with_dead_letters(3).await;
    let found = letters(&client, &path, "").await;
    let id = found["deadLetters"][1]["eventId"].as_str().unwrap();
    let one = retry(&client, &path, &format!("?eventId={id}")).await.check_done();
    assert_eq!(one["retriedCount"], 1);
    assert_eq!(webhook(&client, &path).await["pendingCount"], 1);
    deliver_due(&world.state.jobs).await;
    assert_eq!(keys(&receiver.seen()), ["1.txt"]);
    assert_eq!(receiver.take_received()[0].header("webhook-id"), id);
    retry(&client, &path, &format!("?eventId={id}")).await.check_error(404, "not_found");
    assert_eq!(retry(&client, &path, "").await.check_done()["retriedCount"], 2);
    deliver_due(&world.state.jobs).await;
    assert_eq!(keys(&receiver.take_received()), ["0.txt", "2.txt"]);
    let state = webhook(&client, &path).await;
    assert_eq!((&state["pendingCount"], &state["deadLetterCount"]), (&json!(0), &json!(0)));
    assert_eq!(retry(&client, &path, "").await.check_done()["retriedCount"], 0);
    assert_eq!(letters(&client, &path, "").await["deadLetters"], json!([]));
}

#[tokio::test]
async fn dead_letters_resent_may_fail_again() {
    let (world, client, receiver, path) = with_dead_letters(1).await;
    receiver.otherwise(Scripted::status(500));
    retry(&client, &path, "").await.check_done();
    deliver_due(&world.state.jobs).await;
    assert_eq!(receiver.seen().len(), 1);
    for _ in 0..100 {
        pass(&world, HOUR_MS).await;
    }
    assert_eq!(receiver.seen().len(), 10);
    assert_eq!(letters(&client, &path, "").await["deadLetters"][0]["attemptCount"], 10);
}

#[tokio::test]
async fn dead_letters_are_deleted_singly_or_all() {
    let (world, client, receiver, path) = with_dead_letters(3).await;
    let found = letters(&client, &path, "").await;
    let id = found["deadLetters"][0]["eventId"].as_str().unwrap();
    let dead = format!("{path}/dead-letters");
    let one = client.delete(&format!("{dead}?eventId={id}")).await.check_done();
    assert_eq!(one["deletedCount"], 1);
    client.delete(&format!("{dead}?eventId={id}")).await.check_error(404, "not_found");
    assert_eq!(webhook(&client, &path).await["deadLetterCount"], 2);
    assert_eq!(client.delete(&dead).await.check_done()["deletedCount"], 2);
    assert_eq!(world.store.facts("webhook-dead/", None, 10).unwrap(), []);
    pass(&world, SECOND_MS).await;
    assert_eq!(receiver.seen().len(), 0);
}

#[tokio::test]
async fn dead_letters_expire_after_a_month() {
    let (world, client, _receiver, path) = with_dead_letters(2).await;
    let day_ms = 24 * HOUR_MS;
    world.clock.advance(29 * day_ms);
    assert_eq!(world.state.catalog.deliveries().sweep().unwrap(), 0);
    world.clock.advance(2 * day_ms);
    assert_eq!(world.state.catalog.deliveries().sweep().unwrap(), 2);
    assert_eq!(webhook(&client, &path).await["deadLetterCount"], 0);
    assert_eq!(letters(&client, &path, "").await["deadLetters"], json!([]));
}
