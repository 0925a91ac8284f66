//! Usage over time: `API.md`, Usage over time. Exact counts, in memory, across restarts, and bounded.

use std::time::Duration;

use engine::clock::Clock;
use listener::options::ConnectionOptions;
use serde_json::{Value, json};
use server::management::{AdminRequest, ApiKeySettings, BucketSettings};
use tests::fixtures::{key_of_bucket, key_with_scopes};
use tests::{Client, Form, World};
use tokio::io::AsyncReadExt;

const MINUTE_MS: u64 = 60_000;
const HOUR_MS: u64 = 60 * MINUTE_MS;
const DAY_MS: u64 = 24 * HOUR_MS;

async fn points(client: &Client, query: &str) -> Vec<Value> {
    let reply = client.get(&format!("/api/usage/history?{query}")).await.check_done();
    reply["points"].as_array().unwrap().clone()
}

/// Returns the values of the last point under these names.
async fn last(client: &Client, query: &str, names: &[&str]) -> Vec<Value> {
    let points = points(client, query).await;
    names.iter().map(|name| points.last().unwrap()[*name].clone()).collect()
}

/// Returns the sum over all points under this name.
async fn sum(client: &Client, query: &str, name: &str) -> u64 {
    points(client, query).await.iter().map(|point| point[name].as_u64().unwrap()).sum()
}

fn write(world: &World) {
    world.state.catalog.usage().write().unwrap();
    world.state.catalog.usage().compact().unwrap();
}

#[tokio::test]
async fn usage_history_counts_requests_and_bytes_both_ways() {
    let (world, client) = World::with_bucket(1);
    let form = || Form::new().file("file", "a.bin", None, &[7; 5_000]);
    let form_bytes = form().body().len();
    client.upload("/photos/", form()).await.check_done();
    let names = ["requests", "errors", "refusals", "bytesIn", "objectCount", "storedBytes"];
    let of_bucket = "bucketName=photos&step=minute";
    assert_eq!(
        last(&client, of_bucket, &names).await,
        [json!(1), json!(0), json!(0), json!(form_bytes), json!(1), json!(5_000)]
    );

    world.clock.advance(MINUTE_MS);
    assert_eq!(client.get("/photos/a.bin").await.body.len(), 5_000);
    client.get_with("/photos/a.bin", &[("range", "bytes=0-9")]).await;
    client.head_with("/photos/a.bin", &[]).await;
    let missing = client.get("/photos/none").await;
    missing.check_error(404, "file_not_found");
    // An anonymous request to the bucket, and one outside of it.
    let refused = world.anonymous().delete("/photos/a.bin").await;
    refused.check_error(401, "missing_api_key");
    world.anonymous().get("/api/list-objects?bucketName=photos").await;
    let listing = client.get("/api/list-objects?bucketName=photos").await;
    let out = 5_000 + 10 + missing.body.len() + refused.body.len() + listing.body.len();
    let names = ["requests", "refusals", "bytesOut", "bytesIn"];
    let expected = [json!(6), json!(2), json!(out), json!(0)];
    assert_eq!(last(&client, of_bucket, &names).await, expected);
    // The minute before is unchanged.
    let minutes = points(&client, of_bucket).await;
    assert_eq!(minutes.len(), 60);
    assert_eq!(minutes[58]["requests"], 1);
    assert!(minutes[..58].iter().all(|minute| minute["requests"] == 0), "{minutes:?}");
    assert_eq!(sum(&client, "bucketName=photos&step=hour", "requests").await, 7);
    assert_eq!(sum(&client, "step=day", "requests").await, 7);
}

#[tokio::test]
async fn usage_history_steps_are_ordered_and_invalid_rejected() {
    let (world, client) = World::with_bucket(1);
    world.clock.advance(30 * MINUTE_MS);
    let reply = client.get("/api/usage/history").await.check_done();
    assert_eq!((&reply["step"], reply["points"].as_array().unwrap().len()), (&json!("hour"), 24));
    assert_eq!(reply["from"], "2026-01-30T13:00:00.000Z");
    assert_eq!(reply["to"], "2026-01-31T12:30:00.000Z");
    assert!(reply.get("since").is_none());
    let times: Vec<_> = reply["points"].as_array().unwrap().iter().map(|it| &it["time"]).collect();
    assert_eq!(
        (times[0], times[23]),
        (&json!("2026-01-30T13:00:00.000Z"), &json!("2026-01-31T12:00:00.000Z"))
    );
    let query = "step=hour&from=2026-01-31T08:20:00Z&to=2026-01-31T12:00:00%2B01:00";
    let hours = points(&client, query).await;
    assert_eq!(hours.len(), 3, "{hours:?}");
    assert_eq!(hours[0]["time"], "2026-01-31T08:00:00.000Z");
    let minutes = client.get("/api/usage/history?step=minute").await.check_done();
    assert_eq!(minutes["since"], "2026-01-31T12:00:00.000Z");
    // The whole retained history can be requested at once.
    for (query, count) in [
        ("step=minute&from=2026-01-31T11:30:00Z", 61),
        ("step=hour&from=2025-12-31T12:30:00Z", 745),
        ("step=day&from=2024-12-27T12:30:00Z", 401),
    ] {
        assert_eq!(points(&client, query).await.len(), count, "{query}");
    }
    for (query, parameter) in [
        ("step=week", "step"),
        ("from=yesterday", "from"),
        ("to=x", "to"),
        ("from=2026-01-31T12:00:00Z&to=2026-01-31T11:00:00Z", "from"),
        ("from=2026-02-01T00:00:00Z", "from"),
        ("step=minute&from=2026-01-31T11:29:00Z", "from"),
        ("step=hour&from=2025-12-31T11:59:00Z", "from"),
        ("step=hour&from=2025-12-01T00:00:00Z&to=2025-12-02T00:00:00Z", "from"),
        ("step=day&from=2024-12-26T23:00:00Z", "from"),
    ] {
        client.get(&format!("/api/usage/history?{query}")).await.check_parameter(parameter);
    }
}

#[tokio::test]
async fn usage_history_concurrent_requests_are_exact() {
    const CLIENTS: usize = 8;
    const EACH: usize = 50;
    let (world, client) = World::with_bucket(1);
    client.put("/photos/", "a.bin", &tests::store::body(1, 100_000)).await;
    world.clock.advance(MINUTE_MS);
    let server = world.listen(ConnectionOptions::new()).await;
    let asking = (0..CLIENTS).map(|_| {
        let address = server.address;
        tokio::task::spawn_blocking(move || {
            let mut connection = tests::Connection::connect(address).unwrap();
            for at in 0..EACH {
                let path = if at % 5 == 0 { "/photos/none" } else { "/photos/a.bin" };
                connection.get(path).unwrap();
            }
        })
    });
    for asked in asking.collect::<Vec<_>>() {
        asked.await.unwrap();
    }
    let missing = client.without_key().get("/photos/none").await.body.len();
    let (all, missed) = (CLIENTS * EACH + 1, CLIENTS * EACH / 5 + 1);
    let out = (all - missed) * 100_000 + missed * missing;
    let names = ["requests", "refusals", "bytesOut"];
    let counted = last(&client, "bucketName=photos&step=minute", &names).await;
    assert_eq!(counted, [json!(all), json!(missed), json!(out)]);
}

#[tokio::test]
async fn usage_history_counts_sent_bytes_of_aborted_download() {
    const LARGE_BYTES: usize = 32 << 20;
    const READ_BYTES: usize = 1 << 20;
    let (world, client) = World::with_bucket(1);
    client.put("/photos/", "large.bin", &vec![7; LARGE_BYTES]).await;
    let server = world.listen(ConnectionOptions::new()).await;
    let mut wire = server.send("GET /photos/large.bin HTTP/1.1\r\nHost: a\r\n\r\n").await;
    let mut bytes = vec![0; READ_BYTES];
    wire.0.read_exact(&mut bytes).await.unwrap();
    drop(wire);
    let counted = || sum(&client, "bucketName=photos&step=minute", "bytesOut");
    let mut before = counted().await;
    loop {
        tokio::time::sleep(Duration::from_millis(300)).await;
        let now = counted().await;
        if now == before {
            break;
        }
        before = now;
    }
    assert!(before >= READ_BYTES as u64 - 1_000, "{before}");
    // Buffers of sockets and a piece or two.
    assert!(before < LARGE_BYTES as u64 * 3 / 4, "{before}");
    assert_eq!(sum(&client, "bucketName=photos&step=minute", "requests").await, 2);
}

#[tokio::test]
async fn usage_history_counts_uploads_live_for_the_token_bucket() {
    let (_, client) = World::with_bucket(1);
    let token = client.get("/api/presigned-url?bucketName=photos&path=a.bin").await.check_done();
    let token = token["token"].as_str().unwrap_or_default();
    let form = || Form::new().file("file", "a.bin", None, &[1; 3_000]);
    let sent = form().body().len() as u64;
    let stored = client.without_key().upload(&format!("/api/presigned-url/{token}"), form()).await;
    stored.check_done();
    assert_eq!(sum(&client, "bucketName=photos&step=minute", "bytesIn").await, sent);
    assert_eq!(sum(&client, "bucketName=photos&step=minute", "requests").await, 2);
}

#[tokio::test]
async fn usage_history_counts_renders_once() {
    let (_, client) = World::with_bucket(1);
    client.put("/photos/?thumbnail=true", "a.png", &crate::images::png(64, 64)).await;
    let images = || sum(&client, "bucketName=photos&step=minute", "images");
    assert_eq!(images().await, 1);
    for _ in 0..2 {
        assert_eq!(client.get("/photos/a.png?width=20&format=webp").await.status, 200);
    }
    assert_eq!(images().await, 2);
}

#[tokio::test]
async fn usage_history_restores_saved_values_after_restart() {
    let (world, client) = World::with_bucket(1);
    client.put("/photos/", "a.bin", &[7; 100]).await;
    client.get("/photos/a.bin").await;
    write(&world);
    client.get("/photos/a.bin").await;
    // Written counts are not written again; later ones are added.
    for _ in 0..3 {
        write(&world);
    }
    client.get("/photos/a.bin").await;
    assert_eq!(sum(&client, "bucketName=photos", "requests").await, 4);
    let found = world.found_on(world.disk.fork());
    let client = found.client_of("ann", ApiKeySettings::default());
    assert_eq!(sum(&client, "bucketName=photos", "requests").await, 3);
    assert_eq!(sum(&client, "bucketName=photos", "bytesOut").await, 200 + upload_answer(&found));
    assert_eq!(sum(&client, "bucketName=photos&step=minute", "requests").await, 0);
    let hours = points(&client, "bucketName=photos").await;
    assert_eq!(hours[22]["objectCount"], Value::Null);
    assert_eq!((&hours[23]["objectCount"], &hours[23]["storedBytes"]), (&json!(1), &json!(100)));
    // The same to an operator, with requests outside of buckets.
    let operator = found.operator();
    let everything = sum(&operator, "", "requests").await;
    assert!(everything > 3, "{everything}");
}

/// Returns the bytes of the response to the upload of the test above.
fn upload_answer(world: &World) -> u64 {
    let day = world.clock.unix_ms() / DAY_MS;
    let name = engine::FactName::parse(&format!("traffic-hours/photos/{day:06}")).unwrap();
    let fact = world.store.fact(&name).unwrap().unwrap();
    let fact: Value = serde_json::from_slice(&fact).unwrap();
    fact["record"]["parts"]["12"]["bytes_out"].as_u64().unwrap() - 200
}

#[tokio::test]
async fn usage_history_reports_storage_in_idle_periods() {
    let (world, client) = World::with_bucket(1);
    client.put("/photos/", "a.bin", &[7; 100]).await;
    write(&world);
    world.clock.advance(3 * HOUR_MS);
    client.put("/photos/", "b.bin", &[7; 50]).await;
    write(&world);
    world.clock.advance(5 * DAY_MS);
    let counts = |points: &[Value]| -> Vec<Value> {
        points.iter().map(|point| point["objectCount"].clone()).collect()
    };
    let from = "bucketName=photos&step=hour&from=2026-01-31T11:00:00Z&to=2026-01-31T17:00:00Z";
    let expected = [Value::Null, json!(1), json!(1), json!(1), json!(2), json!(2)];
    assert_eq!(counts(&points(&client, from).await), expected);
    // Without requests in the requested range, the result is unchanged.
    let quiet = counts(&points(&client, "bucketName=photos&step=hour").await);
    assert!(quiet.iter().all(|count| *count == json!(2)), "{quiet:?}");
    let days = counts(&points(&client, "step=day&from=2026-01-30T00:00:00Z").await);
    assert_eq!(days, [&[Value::Null][..], &vec![json!(2); 6]].concat());
}

#[tokio::test]
async fn usage_history_of_other_accounts_is_hidden() {
    let (world, ann) = World::with_bucket(1);
    world.bucket("ann", "films", BucketSettings::default());
    world.account("bob");
    world.bucket("bob", "bobs", BucketSettings::default());
    let bob = world.client_of("bob", ApiKeySettings::default());
    ann.put("/photos/", "a.bin", &[7; 100]).await;
    ann.put("/films/", "a.bin", &[7; 100]).await;
    bob.put("/bobs/", "a.bin", &[7; 100]).await;
    let history = |name: &str| format!("/api/usage/history?bucketName={name}");
    bob.get(&history("photos")).await.check_error(404, "bucket_not_found");
    bob.get(&history("none")).await.check_error(404, "bucket_not_found");
    assert_eq!(sum(&bob, "", "requests").await, 1);
    assert_eq!(last(&bob, "", &["objectCount"]).await, [json!(1)]);
    assert_eq!(sum(&ann, "", "requests").await, 2);
    let of_films = world.client_of("ann", key_of_bucket("films"));
    assert_eq!(sum(&of_films, "", "requests").await, 1);
    of_films.get(&history("photos")).await.check_error(403, "forbidden");
    let reader = world.client_of("ann", key_with_scopes(&[catalog::Scope::Read]));
    reader.get(&history("photos")).await.check_error(403, "forbidden");
    world.anonymous().get(&history("photos")).await.check_error(401, "missing_api_key");
    let operator = world.operator();
    let everything = sum(&operator, "", "requests").await;
    // Three uploads, and the requests above, the rejected ones included.
    assert!(everything >= 3 + 9, "{everything}");
    assert_eq!(last(&operator, "", &["objectCount", "storedBytes"]).await, [json!(3), json!(300)]);
}

#[tokio::test]
async fn usage_history_is_deleted_with_its_bucket() {
    let (world, client) = World::with_bucket(1);
    let operator = world.operator();
    client.put("/photos/", "a.bin", &[7; 100]).await;
    write(&world);
    client.get("/photos/a.bin").await;
    let before = sum(&operator, "", "requests").await;
    assert!(!world.store.facts("traffic-hours/photos/", None, 10).unwrap().is_empty());
    let (name, force) = ("photos".to_owned(), true);
    world.manage(AdminRequest::DeleteBucket { name, force });
    for prefix in ["traffic-hours/photos/", "traffic-days/photos/"] {
        assert!(world.store.facts(prefix, None, 10).unwrap().is_empty(), "{prefix}");
    }
    world.account("bob");
    world.bucket("bob", "photos", BucketSettings::default());
    let bob = world.client_of("bob", ApiKeySettings::default());
    assert_eq!(sum(&bob, "bucketName=photos", "requests").await, 0);
    assert_eq!(sum(&bob, "bucketName=photos&step=minute", "requests").await, 0);
    write(&world);
    let hours = points(&bob, "bucketName=photos").await;
    assert_eq!((&hours[22]["objectCount"], &hours[23]["objectCount"]), (&Value::Null, &json!(0)));
    // The server's events are counted.
    assert!(sum(&operator, "", "requests").await > before);
}

#[tokio::test]
async fn usage_history_is_bounded() {
    let (world, client) = World::with_bucket(1);
    client.put("/photos/", "a.bin", &[7; 100]).await;
    for day in 1..=480_u64 {
        for _ in 0..day % 3 + 1 {
            client.get("/photos/a.bin").await;
        }
        write(&world);
        world.clock.advance(DAY_MS);
        write(&world);
    }
    let count = |prefix: &str| world.store.facts(prefix, None, 1_000).unwrap().len();
    assert_eq!(count("traffic-hours/photos/"), 31);
    assert!(
        (12..=13).contains(&count("traffic-days/photos/")),
        "{}",
        count("traffic-days/photos/")
    );
    // The request of the 31st of January and those of the day that has begun are known to the hour, older ones to the
    // day: nothing is lost or doubled on the way.
    let days = points(&client, "bucketName=photos&step=day&from=2026-04-21T12:00:00Z").await;
    assert_eq!(days.len(), 401);
    let requests: Vec<_> = days.iter().map(|day| day["requests"].as_u64().unwrap()).collect();
    let expected: Vec<_> = (81..=480).map(|day| day % 3 + 1).chain([0]).collect();
    assert_eq!(requests, expected);
    assert!(days.iter().all(|day| day["storedBytes"] == 100), "{days:?}");
}

#[tokio::test]
async fn usage_history_of_deleted_bucket_stays_in_the_total() {
    let (world, client) = World::with_bucket(1);
    let operator = world.operator();
    client.put("/photos/", "a.txt", b"12345").await;
    let name = engine::BucketName::parse("photos").unwrap();
    // A concurrent download.
    let under_way = world.state.catalog.buckets().get(&name).unwrap();
    let before = sum(&operator, "step=minute", "bytesOut").await;
    under_way.traffic.add_bytes_out(100_000);
    client.delete("/api/buckets/photos?force").await.check_done();
    while world.state.catalog.buckets().get(&name).is_some() {
        tokio::task::yield_now().await;
    }
    under_way.traffic.add_bytes_out(200_000);
    // Responses of this API count, too, and are small.
    let added = sum(&operator, "step=minute", "bytesOut").await - before;
    assert!((300_000..400_000).contains(&added), "{added}");
    write(&world);
    under_way.traffic.add_bytes_out(1_000_000);
    drop(under_way);
    write(&world);
    let added = sum(&operator, "step=hour", "bytesOut").await - before;
    assert!((1_300_000..1_400_000).contains(&added), "{added}");
    world.store.close().unwrap();
    let world = world.found_on(world.disk.fork());
    let operator = Client::new(world.app(), operator.key.clone());
    let added = sum(&operator, "step=day", "bytesOut").await - before;
    assert!((1_300_000..1_400_000).contains(&added), "{added}");
}
