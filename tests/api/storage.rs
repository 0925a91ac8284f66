//! State of the store and its disk: `API.md`, Storage.

use serde_json::{Value, json};
use service::config::{Layer, Sources};
use tests::{Client, World};

#[tokio::test]
async fn operator_sees_disk_segments_and_compaction_plan() {
    let (world, client) = World::with_bucket(1);
    let operator = world.operator();
    for at in 0..10 {
        client.put("/photos/a/", &format!("{at}.bin"), &tests::store::body(at, 50_000)).await;
    }
    client.put("/photos/", "film.bin", &tests::store::body(1, 2_000_000)).await;
    let before = operator.get("/api/storage").await.check_done();
    assert_eq!((&before["health"], &before["damageCount"]), (&json!("writable"), &json!(0)));
    assert!(before["disk"]["totalBytes"].as_u64() >= before["disk"]["freeBytes"].as_u64());
    assert!(before["index"]["bytes"].as_u64().unwrap() > 0);
    assert_eq!(
        (&before["lastBackup"], &before["segmentsTruncated"]),
        (&Value::Null, &json!(false))
    );
    let kind = |reply: &Value, kind: &str| -> Value {
        let kinds = reply["kinds"].as_array().unwrap();
        kinds.iter().find(|it| it["kind"] == kind).unwrap().clone()
    };
    assert_eq!(kind(&before, "big")["segments"], 1);
    // Large files have no line of their own.
    let segments = before["segments"].as_array().unwrap();
    assert!(segments.iter().all(|it| it["kind"] == "log"), "{segments:?}");
    assert_eq!(segments.iter().filter(|it| it["sealed"] == false).count(), 1);
    assert!(segments.iter().map(|it| it["objects"].as_u64().unwrap()).sum::<u64>() >= 11);

    client.delete("/photos/a/").await.check_done();
    let after = operator.get("/api/storage").await.check_done();
    let dead = |reply: &Value| kind(reply, "log")["deadBytes"].as_u64().unwrap();
    assert!(dead(&after) >= dead(&before) + 500_000);
    // It reports the space that could be reclaimed once the newest segment is sealed.
    assert!(after["compaction"]["wouldFree"].is_u64() && after["compaction"]["wouldCopy"].is_u64());
}

#[tokio::test]
async fn damage_is_reported_per_file_with_remedy() {
    let (world, client) = World::with_bucket(1);
    let operator = world.operator();
    let bytes = tests::store::body(3, 50_000);
    client.put("/photos/a/", "b.bin", &bytes).await;
    world.damage(&bytes[..64]);
    client.get("/photos/a/b.bin").await.check_error(500, "damaged");
    let storage = operator.get("/api/storage").await.check_done();
    assert_eq!(storage["damageCount"], 1, "{storage}");
    let damage = &storage["damage"][0];
    assert_eq!(
        (&damage["bucketName"], &damage["path"]),
        (&json!("photos"), &json!("a/b.bin")),
        "{damage}"
    );
    assert!(damage["whatToDo"].as_str().unwrap().contains("Upload the file again"), "{damage}");
}

#[tokio::test]
async fn storage_report_is_limited_to_operators() {
    let (world, client) = World::with_bucket(1);
    client.get("/api/storage").await.check_error(403, "forbidden");
    world.anonymous().get("/api/storage").await.check_error(401, "missing_api_key");
}

#[tokio::test]
async fn settings_report_hides_secrets_and_requires_operator() {
    let text = "metrics_token = \"a-secret-of-enough-characters\"\ndrain_seconds = 7\n";
    let layer = Layer::from_toml(text, "trug.toml").unwrap();
    let config = Sources::new().overlay("trug.toml", layer).config().unwrap();
    let (world, client) = World::with_bucket_and(1, config);
    let reply = world.operator().get("/api/settings").await;
    assert!(!reply.text().contains("a-secret-of-enough-characters"));
    let reply = reply.check_done();
    let setting = |name: &str| -> Value {
        let settings = reply["settings"].as_array().unwrap();
        settings.iter().find(|it| it["name"] == name).unwrap().clone()
    };
    assert_eq!(setting("drain_seconds")["value"], "7");
    assert_eq!(setting("drain_seconds")["source"], "trug.toml");
    assert_eq!(setting("metrics_token")["value"], "\"***\"");
    assert_eq!(setting("listen")["source"], "default");
    assert_eq!(reply["version"], env!("CARGO_PKG_VERSION"));
    client.get("/api/settings").await.check_error(403, "forbidden");
}

#[tokio::test]
async fn recent_uploads_list_readable_buckets_newest_first() {
    let (world, client) = World::with_bucket(1);
    for name in ["a.txt", "b.txt", "c.txt"] {
        client.put("/photos/x/", name, name.as_bytes()).await;
    }
    client.delete("/photos/x/b.txt").await.check_done();
    let recent = |client: Client, query: &'static str| async move {
        let reply = client.get(&format!("/api/recent-uploads{query}")).await.check_done();
        let uploads = reply["uploads"].as_array().unwrap();
        uploads.iter().map(|it| it["key"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(recent(client.clone(), "").await, ["x/c.txt", "x/a.txt"]);
    assert_eq!(recent(client.clone(), "?limit=1").await, ["x/c.txt"]);
    assert_eq!(recent(world.operator(), "").await, Vec::<String>::new());
    client.get("/api/recent-uploads?limit=13").await.check_parameter("limit");
}
