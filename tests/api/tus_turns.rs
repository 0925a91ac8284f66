//! Concurrent requests to one resumable upload, requests that are aborted, and power cuts during the last one:
//! `API.md`, Resumable uploads.

use std::time::Duration;

use axum::body::Body;
use engine::disk::sim::LossPolicy;
use http::Method;
use server::management::ApiKeySettings;
use tests::store::body;
use tests::{Client, Reply, World, held_body};

use super::tus::{CHUNK, VERSION, append, begun, head};

const SAID: [(&str, &str); 2] = [("bucketName", "photos"), ("path", "a.bin")];

fn offset(reply: &Reply) -> usize {
    reply.header("upload-offset").parse().unwrap()
}

/// Sends the missing bytes, as a resuming client does.
async fn finish(client: &Client, path: &str, whole: &[u8]) {
    let info = head(client, path).await;
    assert_eq!(info.status, 200);
    let at = offset(&info);
    if at < whole.len() {
        let reply = append(client, path, at, &whole[at..]).await;
        assert_eq!(reply.status, 204, "{}", reply.text());
    }
    let stored = client.get("/photos/a.bin").await;
    assert_eq!(stored.status, 200, "{at} of {}: {}", whole.len(), stored.text());
    assert!(stored.body == whole, "other bytes are stored than came");
}

#[tokio::test]
async fn tus_later_request_takes_over_and_keeps_received_bytes() {
    let (world, client) = World::with_bucket(1);
    let whole = body(1, 400_000);
    for later in [Method::HEAD, Method::PATCH] {
        let path = begun(&client, whole.len(), &SAID).await;
        let (held, slow_body) = held_body(whole.clone());
        let headers = [VERSION, CHUNK, ("upload-offset", "0")];
        let slow = client.send(Method::PATCH, &path, &headers, slow_body);
        let concurrent = async {
            held.first_is_taken().await;
            // The received half counts once the earlier request has released the upload.
            if later == Method::PATCH {
                append(&client, &path, 0, &whole).await.check_error(409, "wrong_offset");
            }
            let info = head(&client, &path).await;
            assert_eq!(offset(&info), whole.len() / 2);
            let reply = append(&client, &path, offset(&info), &whole[offset(&info)..]).await;
            assert_eq!(reply.status, 204, "{}", reply.text());
            held.finish().await;
        };
        tokio::join!(slow, concurrent).0.check_error(423, "upload_locked");
        assert!(client.get("/photos/a.bin").await.body == whole);
        client.delete("/photos/a.bin").await.check_done();
    }
    assert_eq!(world.object_count("photos"), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn tus_concurrent_patches_count_each_byte_once() {
    for round in 0..10 {
        let (world, client) = World::with_bucket(round);
        let whole = body(round, 700_000);
        let path = begun(&client, whole.len(), &SAID).await;
        let requests: Vec<_> = (0..20)
            .map(|_| {
                let (client, path, whole) = (client.clone(), path.clone(), whole.clone());
                tokio::spawn(async move { append(&client, &path, 0, &whole).await.status })
            })
            .collect();
        for request in requests {
            let status = request.await.unwrap().as_u16();
            assert!([204, 409, 423].contains(&status), "{status}");
        }
        finish(&client, &path, &whole).await;
        assert_eq!(world.object_count("photos"), 1);
    }
}

/// A client that stops an upload disconnects without notice, and may return before the server has ended the request.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn tus_abandoned_request_does_not_write_into_the_next() {
    for round in 0..150 {
        let (world, client) = World::with_bucket(round);
        // Small ones, and ones that become a big segment.
        let whole = body(round, if round % 2 == 0 { 700_000 } else { 1_600_000 });
        let path = begun(&client, whole.len(), &SAID).await;
        for step in 0..3 {
            let gone = {
                let (client, path, whole) = (client.clone(), path.clone(), whole.clone());
                tokio::spawn(async move {
                    let at = offset(&head(&client, &path).await).to_string();
                    let rest = whole[at.parse().unwrap()..].to_vec();
                    let headers = [VERSION, CHUNK, ("upload-offset", &*at)];
                    client.send(Method::PATCH, &path, &headers, Body::from(rest)).await
                })
            };
            tokio::time::sleep(Duration::from_micros((round * 61 + step * 997) % 4_000)).await;
            gone.abort();
            // A client that still runs would preempt the next one. The server may still store what it received.
            drop(gone.await);
        }
        finish(&client, &path, &whole).await;
        assert_eq!(world.object_count("photos"), 1);
    }
}

/// Cuts power in the middle of each operation of the last piece, and resumes as a client does.
async fn check_acknowledged_is_stored(bytes: usize) {
    let (world, client) = World::with_bucket(1);
    let whole = body(1, bytes);
    let path = begun(&client, whole.len(), &SAID).await;
    assert_eq!(append(&client, &path, 0, &whole[..bytes / 2]).await.status, 204);
    world.disk.record_cuts();
    assert_eq!(append(&client, &path, bytes / 2, &whole[bytes / 2..]).await.status, 204);
    let acknowledged = world.disk.operations();
    // Work of the store's threads completes a little later.
    tokio::time::sleep(Duration::from_millis(300)).await;
    world.store.close().unwrap();
    let cuts = world.disk.take_cuts();
    assert!(cuts.len() > 3, "only {} operations", cuts.len());
    let mut went_on = 0;
    for (at, cut) in cuts.iter().enumerate() {
        for (seed, policy) in (0..).zip(LossPolicy::ALL) {
            let disk = cut.fork();
            disk.power_on(policy, seed);
            let found = world.found_on(disk);
            let client = found.client_of("ann", ApiKeySettings::default());
            let info = head(&client, &path).await;
            assert_eq!(info.status, 200, "{policy:?} {at}: {info:?}");
            assert!(offset(&info) >= bytes / 2, "{policy:?} {at}");
            let was_acknowledged = cut.operations() >= acknowledged;
            let is_whole = offset(&info) == bytes;
            assert!(is_whole || !was_acknowledged, "{policy:?} {at}: acknowledged and gone");
            finish(&client, &path, &whole).await;
            went_on += u32::from(!is_whole);
        }
    }
    assert!(went_on > 0);
}

#[tokio::test]
async fn tus_small_upload_survives_power_loss() {
    check_acknowledged_is_stored(10_000).await;
}

#[tokio::test]
async fn tus_large_upload_survives_power_loss() {
    check_acknowledged_is_stored(1_500_000).await;
}
