//! Single-use tokens: one upload succeeds, among many concurrent ones, and with a power cut at any operation. Object
//! and used token are one batch.

use std::time::Duration;

use engine::disk::sim::LossPolicy;
use http::Method;
use server::management::ApiKeySettings;
use tests::fixtures::path_of;
use tests::{Client, Form, World, held_body};

/// Concurrent uploads, as the issue requires.
const USES: usize = 50;
const ROUNDS: u64 = 1_000;

async fn token_path(client: &Client) -> String {
    path_of(&client.get("/api/presigned-url?path=photos/img/").await.json()["url"])
}

fn form(round: u64) -> Form {
    Form::new().file("file", &format!("{round}.txt"), None, b"hello")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn presign_token_concurrent_use_has_one_winner() {
    let (world, client) = World::with_bucket(1);
    let anonymous = world.anonymous();
    let (mut in_use, mut used) = (0, 0);
    for round in 0..ROUNDS {
        let path = token_path(&client).await;
        let uploads = (0..USES).map(|at| {
            let (anonymous, path) = (anonymous.clone(), path.clone());
            tokio::spawn(async move {
                if at % 5 != 0 {
                    return anonymous.upload(&path, form(round)).await;
                }
                // Some are sent in pieces, so that uploads are in progress when others begin.
                let kind = Form::new().content_type();
                let (sender, body) = held_body(form(round).body());
                let finish = async {
                    tokio::task::yield_now().await;
                    sender.finish().await;
                };
                let headers = [("content-type", &*kind)];
                let sent = anonymous.send(Method::POST, &path, &headers, body);
                tokio::join!(sent, finish).0
            })
        });
        let uploads: Vec<_> = uploads.collect();
        let mut succeeded = 0;
        for upload in uploads {
            let reply = upload.await.unwrap();
            let code = if reply.status == 200 { "ok".into() } else { reply.json()["code"].clone() };
            match (reply.status.as_u16(), code.as_str()) {
                (200, _) => succeeded += 1,
                (409, Some("token_in_use")) => in_use += 1,
                (410, Some("token_used")) => used += 1,
                other => panic!("round {round}: {other:?}"),
            }
        }
        assert_eq!(succeeded, 1, "round {round}");
        assert_eq!(world.object_count("photos"), round + 1, "round {round}");
    }
    println!("{ROUNDS} rounds of {USES}: {in_use} found the token in use, {used} used");
    assert!(in_use > 0 && used > 0, "both refusals were met: {in_use}, {used}");
}

#[tokio::test]
async fn presign_token_claim_race_reports_token_used() {
    // State after a client disconnected while its batch was queued: the claim is released, the batch not yet done.
    let (world, client) = World::with_bucket(1);
    let path = token_path(&client).await;
    let (sender, body) = held_body(form(1).body());
    let kind = Form::new().content_type();
    let headers = [("content-type", &*kind)];
    let slow = client.without_key();
    let sent = slow.send(Method::POST, &path, &headers, body);
    let concurrent = async {
        tokio::task::yield_now().await;
        let token = path.rsplit('/').next().unwrap();
        let grant = world.state.catalog.tokens().verify(token).unwrap();
        world.store.commit(grant.redeem().unwrap()).unwrap();
        sender.finish().await;
    };
    tokio::join!(sent, concurrent).0.check_error(410, "token_used");
    assert_eq!(world.object_count("photos"), 0);
}

/// Cuts power in the middle of each operation of an upload of so many bytes, and checks the remaining state.
async fn check_object_and_token_atomic(bytes: usize) {
    let (world, client) = World::with_bucket(1);
    let path = token_path(&client).await;
    world.disk.record_cuts();
    let reply = client.without_key().upload_file(&path, "a.bin", &vec![7; bytes]).await;
    assert_eq!(reply.status, 200, "{}", reply.text());
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
            let is_stored = client_of(&found).get("/photos/img/a.bin").await.status == 200;
            let again = found.anonymous().upload(&path, form(1)).await;
            let is_used = match again.status.as_u16() {
                200 => false,
                410 => {
                    again.check_error(410, "token_used");
                    true
                }
                _ => panic!("{policy:?} {at}: {}", again.text()),
            };
            assert_eq!(is_stored, is_used, "{policy:?} {at}: one without the other");
            let was_acknowledged = cut.operations() >= acknowledged;
            assert!(is_stored || !was_acknowledged, "{policy:?} {at}: acknowledged and gone");
            if is_stored { after += 1 } else { before += 1 }
        }
    }
    println!("{bytes} bytes, {} cuts: {before} before the upload, {after} after it", cuts.len());
    assert!(before > 0 && after > 0, "{before} {after}");
}

fn client_of(world: &World) -> Client {
    world.client_of("ann", ApiKeySettings::default())
}

#[tokio::test]
async fn power_loss_keeps_small_object_and_token_use_atomic() {
    check_object_and_token_atomic(1_000).await;
}

#[tokio::test]
async fn power_loss_keeps_large_object_and_token_use_atomic() {
    check_object_and_token_atomic(3_000_000).await;
}
