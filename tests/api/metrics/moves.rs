//! Counters change by exactly the executed operations.

use std::collections::BTreeMap;
use std::time::Duration;

use jobs::webhooks::deliver_due;
use serde_json::json;
use tests::wire::{Listening, SOON};
use tests::{Client, Form, OpenMetrics, Receiver, Scripted};

use super::{config, listening, scrape};
use crate::images::png;
use crate::jobs::{Worker, begin};

/// Returns the increase of series with these prefixes.
fn increases(before: &OpenMetrics, after: &OpenMetrics, starts: &[&str]) -> BTreeMap<String, f64> {
    let (before, after) = (before.series(), after.series());
    let all = after.into_iter().filter(|(name, _)| starts.iter().any(|it| name.starts_with(it)));
    all.map(|(name, value)| {
        let by = value - before[&name];
        (name, by)
    })
    .filter(|(_, by)| *by != 0.0)
    .collect()
}

#[track_caller]
fn check(moved: &BTreeMap<String, f64>, expected: &[(&str, f64)]) {
    let expected: BTreeMap<String, f64> =
        expected.iter().map(|(name, by)| ((*name).to_owned(), *by)).collect();
    assert_eq!(*moved, expected);
}

/// Waits until a series reaches a value.
async fn come(server: &Listening, name: &str, value: f64) {
    let waited = tokio::time::timeout(SOON, async {
        while scrape(server).await.0.value(name) != value {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    });
    waited.await.unwrap_or_else(|_| panic!("{name} does not come to {value}"));
}

fn upload(client: &Client, name: &str, bytes: &[u8]) -> (Vec<u8>, usize) {
    let (key, kind) = (client.key(), Form::new().content_type());
    let body = Form::new().file("file", name, None, bytes).body();
    let head = format!(
        "POST /photos/ HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {key}\r\nContent-Type: {kind}\r\n\
         Content-Length: {}\r\n\r\n",
        body.len()
    );
    ([head.into_bytes(), body.clone()].concat(), body.len())
}

#[tokio::test]
async fn metrics_count_requests_by_route_and_body_bytes() {
    let (_world, client, server) = listening(config(&[])).await;
    let key = client.key();
    let (before, mut bytes_out) = scrape(&server).await;
    let mut bytes_in = 0;
    let mut wire = server.send("").await;
    for name in ["a.txt", "b.txt", "c.txt"] {
        let (request, body_bytes) = upload(&client, name, b"hello");
        wire.write(request).await;
        let answer = wire.read_response().await;
        assert_eq!(answer.status, 200, "{}", answer.text());
        bytes_out += answer.body.len();
        bytes_in += body_bytes;
    }
    let bad = "Authorization: Bearer trug_wrong\r\n";
    let good = format!("Authorization: Bearer {key}\r\n");
    for (line, headers, status) in [
        ("GET /photos/a.txt", "", 200),
        ("GET /photos/a.txt", "Range: bytes=1-2\r\n", 206),
        ("GET /photos/b.txt?v=2", "", 200),
        ("GET /photos/a.txt", "If-None-Match: *\r\n", 304),
        ("GET /photos/missing.txt", "", 404),
        ("GET /none/a.txt?width=7", "", 404),
        ("GET /api/keys", bad, 401),
        ("GET /api/keys", "", 401),
        ("GET /api/keys", &*good, 200),
        ("GET /api/list-objects?bucketName=photos", &*good, 200),
        ("GET /-/health", "", 200),
        ("OPTIONS /photos/a.txt", "", 204),
        ("DELETE /photos/c.txt", &*good, 200),
        ("BREW /photos/c.txt", "", 405),
    ] {
        wire.write(format!("{line} HTTP/1.1\r\nHost: a\r\n{headers}\r\n")).await;
        let answer = match status {
            204 | 304 => wire.read_response_to_head().await,
            _ => wire.read_response().await,
        };
        assert_eq!(answer.status, status, "{line} {headers}: {}", answer.text());
        bytes_out += answer.body.len();
    }
    let (after, _) = scrape(&server).await;
    let starts = [
        "trug_http_requests_total",
        "trug_http_request_duration_seconds_count",
        "trug_http_bytes",
        "trug_http_connections_accepted",
        "trug_auth",
        "trug_ratelimited",
        "trug_uploads",
        "trug_object",
        "trug_group_records_sum",
        "trug_group_records_count",
    ];
    check(
        &increases(&before, &after, &starts),
        &[
            ("trug_http_requests_total{op=\"upload\",status=\"2xx\"}", 3.0),
            ("trug_http_requests_total{op=\"deliver\",status=\"2xx\"}", 3.0),
            ("trug_http_requests_total{op=\"deliver\",status=\"3xx\"}", 1.0),
            ("trug_http_requests_total{op=\"deliver\",status=\"4xx\"}", 1.0),
            ("trug_http_requests_total{op=\"picture\",status=\"4xx\"}", 1.0),
            ("trug_http_requests_total{op=\"manage\",status=\"4xx\"}", 2.0),
            ("trug_http_requests_total{op=\"manage\",status=\"2xx\"}", 1.0),
            ("trug_http_requests_total{op=\"list\",status=\"2xx\"}", 1.0),
            ("trug_http_requests_total{op=\"health\",status=\"2xx\"}", 1.0),
            ("trug_http_requests_total{op=\"preflight\",status=\"2xx\"}", 1.0),
            ("trug_http_requests_total{op=\"delete\",status=\"2xx\"}", 1.0),
            ("trug_http_requests_total{op=\"other\",status=\"4xx\"}", 1.0),
            // The previous scrape.
            ("trug_http_requests_total{op=\"metrics\",status=\"2xx\"}", 1.0),
            ("trug_http_request_duration_seconds_count{op=\"upload\"}", 3.0),
            ("trug_http_request_duration_seconds_count{op=\"deliver\"}", 5.0),
            ("trug_http_request_duration_seconds_count{op=\"picture\"}", 1.0),
            ("trug_http_request_duration_seconds_count{op=\"manage\"}", 3.0),
            ("trug_http_request_duration_seconds_count{op=\"list\"}", 1.0),
            ("trug_http_request_duration_seconds_count{op=\"health\"}", 1.0),
            ("trug_http_request_duration_seconds_count{op=\"preflight\"}", 1.0),
            ("trug_http_request_duration_seconds_count{op=\"delete\"}", 1.0),
            ("trug_http_request_duration_seconds_count{op=\"other\"}", 1.0),
            ("trug_http_request_duration_seconds_count{op=\"metrics\"}", 1.0),
            ("trug_http_bytes_total{dir=\"in\"}", bytes_in as f64),
            ("trug_http_bytes_total{dir=\"out\"}", bytes_out as f64),
            ("trug_http_connections_accepted_total{listener=\"public\"}", 2.0),
            ("trug_auth_failures_total{kind=\"key\"}", 1.0),
            ("trug_auth_failures_total{kind=\"no_key\"}", 1.0),
            ("trug_objects", 2.0),
            ("trug_object_bytes", 10.0),
            // Three files, and one of them deleted.
            ("trug_group_records_sum", 4.0),
            ("trug_group_records_count", 4.0),
        ],
    );
}

#[tokio::test]
async fn metrics_gauge_open_connections_and_uploads() {
    let (_world, client, server) = listening(config(&[])).await;
    let wires = [server.send("").await, server.send("").await, server.send("").await];
    let reaches = async |name: &str, value: f64| come(&server, name, value).await;
    let connections = "trug_http_connections{listener=\"public\"}";
    // Including the connection of the scrape.
    reaches(connections, 4.0).await;
    drop(wires);
    reaches(connections, 1.0).await;

    let (request, _) = upload(&client, "a.txt", &[b'x'; 5_000]);
    let (now, later) = request.split_at(request.len() - 100);
    let mut wire = server.send(now).await;
    reaches("trug_uploads_inflight", 1.0).await;
    wire.write(later).await;
    assert_eq!(wire.read_response().await.status, 200);
    reaches("trug_uploads_inflight", 0.0).await;
    // Also one aborted by its client.
    let wire = server.send(now).await;
    reaches("trug_uploads_inflight", 1.0).await;
    drop(wire);
    reaches("trug_uploads_inflight", 0.0).await;
}

#[tokio::test]
async fn metrics_count_rejections_by_limit() {
    let more = ["failed_authentications_per_minute=2", "address_requests_burst=7"];
    let rates = "address_requests_per_second=1";
    let (world, client, server) = listening(config(&[more[0], more[1], rates])).await;
    let (before, _) = scrape(&server).await;
    let guess = Client::new(world.app(), Some("trug_wrong".to_owned())).at("203.0.113.9");
    let mut statuses = Vec::new();
    for _ in 0..9 {
        statuses.push(guess.get("/api/keys").await.status.as_u16());
    }
    assert_eq!(statuses, [401, 401, 429, 429, 429, 429, 429, 429, 429]);
    // The machine itself has no address limit, whatever its key.
    client.get("/api/keys").await.check_done();
    let (after, _) = scrape(&server).await;
    check(
        &increases(&before, &after, &["trug_ratelimited", "trug_auth"]),
        &[
            ("trug_auth_failures_total{kind=\"key\"}", 2.0),
            ("trug_ratelimited_total{reason=\"failed_auth\"}", 5.0),
            ("trug_ratelimited_total{reason=\"address\"}", 2.0),
        ],
    );
    // One of its plan.
    let limited = service::Config { plan_rates: true, ..config(&[]) };
    let (_world, client, server) = listening(limited).await;
    for at in 0..=100 {
        let reply = client.upload_file("/photos/a.txt?overwrite=true", "a", b"1").await;
        assert_eq!(reply.status.as_u16(), if at < 100 { 200 } else { 429 });
    }
    let (metrics, _) = scrape(&server).await;
    assert_eq!(metrics.value("trug_ratelimited_total{reason=\"uploads\"}"), 1.0);
}

#[tokio::test]
async fn metrics_count_renders_and_cache_hits() {
    let (_world, client, server) = listening(config(&[])).await;
    client.put("/photos/", "a.png", &png(80, 60)).await;
    let (before, _) = scrape(&server).await;
    for _ in 0..3 {
        assert_eq!(client.get("/photos/a.png?width=40").await.status, 200);
    }
    let (after, _) = scrape(&server).await;
    let kept = after.value("trug_image_cache_bytes");
    assert!(kept > 0.0);
    check(
        &increases(&before, &after, &["trug_image_cache", "trug_image_work_seconds_count"]),
        &[
            ("trug_image_cache_misses_total", 1.0),
            ("trug_image_cache_hits_total", 2.0),
            ("trug_image_cache_variants", 1.0),
            ("trug_image_cache_bytes", kept),
            ("trug_image_work_seconds_count", 1.0),
        ],
    );
    let ended = increases(&before, &after, &["trug_image_jobs_ended"]);
    let names: Vec<_> = ended.keys().map(String::as_str).collect();
    // Its header is work as well.
    assert_eq!(names, ["trug_image_jobs_ended_total{end=\"done\"}"]);
    assert_eq!(after.value("trug_image_jobs{state=\"running\"}"), 0.0);
    assert_eq!(after.value("trug_derived_objects"), 1.0);
}

#[tokio::test]
async fn metrics_count_jobs_webhooks_and_accounts() {
    let receiver = Receiver::start();
    let allow = format!("webhook_allow={}", receiver.origin());
    let (world, client, server) = listening(config(&[&allow])).await;
    let (before, _) = scrape(&server).await;
    let wish = json!({"url": receiver.url("/hook"), "events": ["s3:ObjectCreated:*"]});
    client.post_json("/api/buckets/photos/webhooks", wish).await.check_done();
    receiver.script([Scripted::status(500)]);
    client.put("/photos/", "a.txt", b"1").await;
    deliver_due(&world.state.jobs).await;
    let (failed, _) = scrape(&server).await;
    check(
        &increases(&before, &failed, &["trug_webhook"]),
        &[
            ("trug_webhooks", 1.0),
            ("trug_webhook_deliveries_total{outcome=\"failed\"}", 1.0),
            ("trug_webhook_events{state=\"pending\"}", 1.0),
            ("trug_webhook_events{state=\"retrying\"}", 1.0),
        ],
    );
    world.clock.advance(60 * 60 * 1_000);
    deliver_due(&world.state.jobs).await;
    let (delivered, _) = scrape(&server).await;
    check(
        &increases(&before, &delivered, &["trug_webhook"]),
        &[
            ("trug_webhooks", 1.0),
            ("trug_webhook_deliveries_total{outcome=\"failed\"}", 1.0),
            ("trug_webhook_deliveries_total{outcome=\"delivered\"}", 1.0),
        ],
    );
    let _worker = Worker::start(&world);
    begin(&client, json!({"kind": "emptyBucket", "bucketName": "photos"})).await;
    come(&server, "trug_jobs_ended_total{kind=\"emptyBucket\",end=\"done\"}", 1.0).await;
    let (after, _) = scrape(&server).await;
    check(
        &increases(&delivered, &after, &["trug_jobs_ended", "trug_accounts", "trug_buckets"]),
        &[("trug_jobs_ended_total{kind=\"emptyBucket\",end=\"done\"}", 1.0)],
    );
    assert_eq!(after.value("trug_accounts"), 1.0);
    assert_eq!(after.value("trug_buckets"), 1.0);
}
