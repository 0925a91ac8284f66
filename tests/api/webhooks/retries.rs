//! Retries after a destination rejects an event.

use jobs::webhooks::deliver_due;
use serde_json::json;
use tests::Scripted;

use super::{HOUR_MS, SECOND_MS, hook, hooked, keys, pass, webhook, world};

/// Delays after each failure, each at most one tenth more or less.
const WAITS_SECONDS: [u64; 9] = [5, 300, 1_800, 7_200, 18_000, 36_000, 50_400, 72_000, 86_400];

#[tokio::test]
async fn webhook_retries_back_off_and_then_give_up() {
    let (world, client, receiver, path) = hooked().await;
    let answer = Scripted { body: "out of order".into(), ..Scripted::status(500) };
    receiver.otherwise(answer);
    client.put("/photos/", "a.txt", b"1").await;
    deliver_due(&world.state.jobs).await;
    for seconds in WAITS_SECONDS {
        assert_eq!(receiver.take_received().len(), 1);
        let state = webhook(&client, &path).await;
        assert_eq!((&state["pendingCount"], &state["retryingCount"]), (&json!(1), &json!(1)));
        assert_eq!(
            (&state["lastStatus"], &state["lastError"]),
            (&json!(500), &json!("response status 500"))
        );
        // Nothing before nine tenths of it, all of it before eleven.
        pass(&world, seconds * 900 - 1).await;
        assert_eq!(receiver.seen().len(), 0, "{seconds}");
        pass(&world, seconds * 200 + 2).await;
    }
    assert_eq!(receiver.take_received().len(), 1);
    let state = webhook(&client, &path).await;
    assert_eq!((&state["pendingCount"], &state["retryingCount"]), (&json!(0), &json!(0)));
    assert_eq!(state["deadLetterCount"], 1);
    pass(&world, 30 * 24 * HOUR_MS).await;
    assert_eq!(receiver.seen().len(), 0);
    let letters = client.get(&format!("{path}/dead-letters")).await.check_done();
    let letter = &letters["deadLetters"][0];
    for (field, value) in [
        ("type", json!("ObjectCreated:Post")),
        ("key", json!("a.txt")),
        ("attemptCount", json!(10)),
        ("status", json!(500)),
        ("deliveryError", json!("response status 500")),
        ("answer", json!("out of order")),
        ("timestamp", json!("2026-01-31T12:00:00.000Z")),
    ] {
        assert_eq!(letter[field], value, "{field}");
    }
}

#[tokio::test]
async fn webhook_unreachable_destination_is_probed_rarely() {
    let (world, client, receiver, _) = hooked().await;
    receiver.otherwise(Scripted::status(502));
    for number in 0..200 {
        client.put("/photos/", &format!("{number:03}.txt"), b"1").await;
    }
    // An hour, second by second.
    for _ in 0..3_600 {
        pass(&world, SECOND_MS).await;
    }
    let asked = receiver.take_received().len();
    assert!((5..60).contains(&asked), "{asked}");
    // Once it is reachable again, everything is delivered.
    receiver.otherwise(Scripted::status(200));
    pass(&world, 11 * 60 * SECOND_MS).await;
    let mut came = keys(&receiver.seen());
    came.sort();
    came.dedup();
    assert!(came.len() > 190, "{}", came.len());
    pass(&world, 24 * HOUR_MS).await;
    let mut came = keys(&receiver.seen());
    came.sort();
    assert_eq!(came.len(), 200);
}

#[tokio::test]
async fn webhook_retry_after_is_respected() {
    for (status, header, seconds, after) in [
        (429, "100", 100, 101),
        (503, "Sat, 31 Jan 2026 12:05:00 GMT", 300, 301),
        // Only for relevant statuses, and bounded.
        (500, "100", 4, 6),
        (429, "999999999", 24 * 60 * 60, 24 * 60 * 60 + 1),
        (503, "soon", 4, 6),
    ] {
        let (world, client, receiver, _) = hooked().await;
        let headers = vec![("retry-after", header.to_owned())];
        receiver.script([Scripted { headers, ..Scripted::status(status) }]);
        client.put("/photos/", "a.txt", b"1").await;
        client.put("/photos/", "b.txt", b"1").await;
        deliver_due(&world.state.jobs).await;
        pass(&world, seconds * SECOND_MS - 1).await;
        assert_eq!(keys(&receiver.seen()), ["a.txt"], "{status} {header}");
        pass(&world, (after - seconds) * SECOND_MS + 1).await;
        assert_eq!(keys(&receiver.seen()), ["a.txt", "a.txt", "b.txt"], "{status} {header}");
    }
}

#[tokio::test]
async fn webhook_is_disabled_by_410_gone() {
    let (world, client, receiver, path) = hooked().await;
    receiver.script([Scripted::status(410)]);
    client.put("/photos/", "a.txt", b"1").await;
    deliver_due(&world.state.jobs).await;
    let state = webhook(&client, &path).await;
    assert_eq!((&state["enabled"], &state["lastStatus"]), (&json!(false), &json!(410)));
    assert_eq!(state["disabledReason"], "the destination answered 410 Gone");
    client.put("/photos/", "b.txt", b"1").await;
    pass(&world, 24 * HOUR_MS).await;
    assert_eq!(receiver.take_received().len(), 1);
    // Enabling it again delivers the failed events, and none that occurred while it was disabled.
    let enabled = client.patch_json(&path, json!({"enabled": true})).await.check_done();
    assert_eq!(enabled["webhook"]["disabledReason"], json!(null));
    pass(&world, SECOND_MS).await;
    assert_eq!(keys(&receiver.seen()), ["a.txt"]);
}

#[tokio::test]
async fn webhook_only_2xx_counts_as_delivered() {
    let (world, client, receiver) = world();
    let (path, _) = hook(&client, &receiver.url("/"), &["s3:ObjectCreated:*"]).await;
    for status in [200, 201, 202, 204, 299] {
        receiver.script([Scripted::status(status)]);
        client.put("/photos/", "a.txt", b"1").await;
        pass(&world, SECOND_MS).await;
        let state = webhook(&client, &path).await;
        assert_eq!((&state["pendingCount"], &state["lastStatus"]), (&json!(0), &json!(status)));
    }
    for status in [301, 302, 304, 307, 400, 401, 404, 500] {
        receiver.script([Scripted::status(status)]);
        client.put("/photos/", "a.txt", b"1").await;
        pass(&world, SECOND_MS).await;
        let state = webhook(&client, &path).await;
        assert_eq!((&state["pendingCount"], &state["lastStatus"]), (&json!(1), &json!(status)));
        pass(&world, HOUR_MS).await;
        assert_eq!(webhook(&client, &path).await["pendingCount"], 0);
    }
}

#[tokio::test]
async fn webhook_queue_of_suspended_account_is_held() {
    use catalog::FairUseStanding;
    use server::management::AccountSettings;
    let (world, client, receiver, _) = hooked().await;
    client.put("/photos/", "a.txt", b"1").await;
    let standing = |standing| AccountSettings { standing: Some(standing), ..Default::default() };
    world.edit_account("ann", standing(FairUseStanding::Suspended));
    pass(&world, SECOND_MS).await;
    assert_eq!(receiver.seen().len(), 0);
    world.edit_account("ann", standing(FairUseStanding::Good));
    pass(&world, 61 * SECOND_MS).await;
    assert_eq!(keys(&receiver.seen()), ["a.txt"]);
}
