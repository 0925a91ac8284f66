//! Disk with less free space than the reserve: uploads return 507, everything else works; and a failing disk.

use engine::disk::faults::{Fault, FaultRule, Operation};
use server::management::{AdminRequest, AdminResponse, ApiKeySettings};
use service::Config;
use tests::World;
use tests::fixtures::file_form;

const RESERVE_BYTES: u64 = 1 << 30;

fn stats(world: &World) -> serde_json::Value {
    match world.manage(AdminRequest::Stats { segments: false }) {
        AdminResponse::Stats(stats) => serde_json::to_value(stats).unwrap(),
        other => panic!("stats were asked for, not {other:?}"),
    }
}

#[tokio::test]
async fn full_disk_rejects_uploads_and_serves_reads() {
    let config = Config { reserve_bytes: Some(RESERVE_BYTES), ..Config::default() };
    let (world, client) = World::with_bucket_and(1, config);
    let anonymous = client.without_key();
    let upload =
        |name: &str, bytes: usize| client.upload("/photos/", file_form(name, &vec![b'x'; bytes]));
    assert_eq!(upload("kept.txt", 10).await.status, 200);
    assert_eq!(upload("gone.txt", 10).await.status, 200);

    world.disk.set_free_bytes(RESERVE_BYTES - 4_096);
    world.clock.advance(1_000);
    for bytes in [0, 10, 3 << 20] {
        upload("new.txt", bytes).await.check_error(507, "no_space");
    }
    for (path, status) in [("/-/health", "ok"), ("/-/ready", "ready")] {
        let reply = anonymous.get(path).await;
        assert_eq!(reply.status, 200);
        assert_eq!(
            (&reply.json()["status"], &reply.json()["store"]),
            (&status.into(), &"full".into())
        );
    }
    assert_eq!(stats(&world)["full"]["reserveBytes"], RESERVE_BYTES);
    assert_eq!(stats(&world)["full"]["freeBytes"], RESERVE_BYTES - 4_096);
    assert_eq!(anonymous.get("/photos/kept.txt").await.body, "xxxxxxxxxx");
    assert_eq!(client.delete("/photos/gone.txt").await.status, 200);
    assert_eq!(anonymous.get("/photos/gone.txt").await.status, 404);
    world.api_key("ann", ApiKeySettings::default());

    world.disk.set_free_bytes(2 * RESERVE_BYTES);
    upload("new.txt", 10).await.check_error(507, "no_space");
    world.clock.advance(1_000);
    assert_eq!(upload("new.txt", 10).await.status, 200);
    assert_eq!(anonymous.get("/-/health").await.json()["store"], "writable");
    assert!(stats(&world)["full"].is_null());
}

#[tokio::test]
async fn failed_disk_is_reported_and_server_is_read_only() {
    let (world, client) = World::with_bucket(1);
    let anonymous = client.without_key();
    let upload = |name| client.upload_file("/photos/", name, b"x");
    assert_eq!(upload("kept.txt").await.status, 200);
    let log = world.first_log_segment();
    world.disk.inject(FaultRule::once(Operation::SyncData, log, Fault::SyncLost));
    assert_eq!(upload("lost.txt").await.status, 500);
    upload("later.txt").await.check_error(503, "read_only");
    client.delete("/photos/kept.txt").await.check_error(503, "read_only");
    assert_eq!(anonymous.get("/photos/kept.txt").await.body, "x");
    assert_eq!(client.get_json("/api/audit/files").await["nextCursor"], serde_json::Value::Null);
    let reply = anonymous.get("/-/health").await;
    assert_eq!(reply.status, 200);
    assert_eq!(reply.json()["store"], "read_only");
    anonymous.get("/-/ready").await.check_error(503, "not_ready");
    assert!(stats(&world)["readOnly"].as_str().is_some_and(|why| why.contains("log/")));
}
