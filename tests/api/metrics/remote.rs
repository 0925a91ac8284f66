//! Metrics of the remote store, and the same in the report of the storage.

use std::io::ErrorKind;

use engine::remote::RemoteCall;
use engine::replication::{ReplicationState, ReplicationStatus};
use serde_json::{Value, json};

use super::{config, counted, listening, replicated, scrape, wait_for_remote};

#[tokio::test]
async fn remote_metrics_are_absent_without_a_remote_store() {
    let (world, _client, server) = listening(config(&[])).await;
    let (metrics, _) = scrape(&server).await;
    let found: Vec<_> =
        metrics.series().into_keys().filter(|name| name.starts_with("trug_remote")).collect();
    assert_eq!(found, Vec::<String>::new());
    let storage = world.operator().get("/api/storage").await.check_done();
    assert_eq!(storage.get("remote"), Some(&Value::Null));
}

#[tokio::test]
async fn remote_metrics_follow_shipping_and_outages() {
    let (world, remote, server) = replicated().await;
    let operator = world.operator();
    wait_for_remote(&world, |status| status.shipped_lsn == status.last_lsn).await;
    let (metrics, _) = scrape(&server).await;
    assert_eq!(metrics.value("trug_remote_up"), 1.0);
    assert_eq!(metrics.value("trug_remote_state{state=\"primary\"}"), 1.0);
    assert_eq!(metrics.value("trug_remote_state{state=\"fenced\"}"), 0.0);
    assert_eq!(metrics.value("trug_remote_epoch"), 1.0);
    assert_eq!(metrics.value("trug_remote_creates_atomically"), 1.0);
    assert_eq!(metrics.value("trug_remote_unshipped_bytes"), 0.0);
    assert_eq!(metrics.value("trug_remote_lag_seconds"), 0.0);
    assert!(metrics.value("trug_remote_last_manifest_timestamp_seconds") > 1.7e9);
    let chunk = metrics.value("trug_remote_chunk");
    let created = "trug_remote_requests_total{call=\"create\",result=\"succeeded\"}";
    assert!(chunk > 0.0 && metrics.value(created) >= chunk, "{chunk}");
    let storage = operator.get("/api/storage").await.check_done();
    let shown = &storage["remote"];
    assert_eq!((&shown["state"], &shown["ack"]), (&json!("primary"), &json!("local")));
    assert_eq!((&shown["error"], &shown["epoch"]), (&Value::Null, &json!(1)));
    assert_eq!(shown["createsAtomically"], json!(true));

    // An outage: writes are accepted, and wait.
    remote.set_outage(Some(ErrorKind::ConnectionRefused));
    world.account("bob");
    wait_for_remote(&world, |status| {
        let [_, failed_creates] = status.requests.of(RemoteCall::Create);
        failed_creates > 0 && status.last_error.is_some() && status.unshipped_bytes > 0
    })
    .await;
    world.clock.advance(90_000);
    let (metrics, _) = scrape(&server).await;
    assert_eq!(metrics.value("trug_remote_up"), 0.0);
    assert!(metrics.value("trug_remote_unshipped_bytes") > 0.0);
    assert!(metrics.value("trug_remote_lag_seconds") >= 90.0);
    assert_eq!(metrics.value("trug_remote_chunk"), chunk);
    assert!(metrics.value("trug_remote_requests_total{call=\"create\",result=\"failed\"}") > 0.0);
    let storage = operator.get("/api/storage").await.check_done();
    let shown = &storage["remote"];
    assert!(shown["lagSeconds"].as_f64().is_some_and(|lag| lag >= 90.0), "{shown}");
    assert!(shown["error"].is_string(), "{shown}");

    remote.set_outage(None);
    wait_for_remote(&world, |status| status.last_error.is_none() && status.unshipped_bytes == 0)
        .await;
    let (metrics, _) = scrape(&server).await;
    assert_eq!(metrics.value("trug_remote_up"), 1.0);
    assert!(metrics.value("trug_remote_chunk") > chunk);
}

#[tokio::test]
async fn remote_metrics_report_a_store_that_is_not_atomic() {
    let (world, remote, _server) = replicated().await;
    remote.ignore_conditions(true);
    let copy = world.copied_to(&remote);
    wait_for_remote(&copy, |status| status.properties.is_some()).await;
    let (metrics, _) = scrape(&counted(&copy).await).await;
    assert_eq!(metrics.value("trug_remote_creates_atomically"), 0.0);
    let storage = copy.operator().get("/api/storage").await.check_done();
    assert_eq!(storage["remote"]["createsAtomically"], json!(false));
}

#[tokio::test]
async fn remote_metrics_report_a_fenced_server() {
    let (world, remote, server) = replicated().await;
    let operator = world.operator();
    wait_for_remote(&world, |status| status.shipped_lsn == status.last_lsn).await;
    let copy = world.copied_to(&remote);
    wait_for_remote(&copy, |status| status.epoch == 2).await;
    world.account("bob");
    let is_fenced =
        |status: &ReplicationStatus| matches!(status.state, ReplicationState::Fenced(_));
    wait_for_remote(&world, is_fenced).await;
    let (metrics, _) = scrape(&server).await;
    assert_eq!(metrics.value("trug_remote_state{state=\"fenced\"}"), 1.0);
    assert_eq!(metrics.value("trug_remote_state{state=\"primary\"}"), 0.0);
    assert_eq!(metrics.value("trug_remote_epoch"), 0.0);
    assert_eq!(metrics.value("trug_store_state{state=\"read_only\"}"), 1.0);
    let storage = operator.get("/api/storage").await.check_done();
    let shown = &storage["remote"];
    assert_eq!((&shown["state"], &shown["epoch"]), (&json!("fenced"), &json!(0)));
    assert!(shown["error"].as_str().is_some_and(|why| !why.is_empty()), "{shown}");
}
