//! Expiry of files: by a lifetime of their own, and by lifecycle rules of their bucket.

use catalog::Scope;
use engine::BucketName;
use http::Method;
use jobs::ExpirySweep;
use serde_json::{Value, json};
use tests::fixtures::{key_with_scopes, path_of};
use tests::{Client, World};

const RULES: &str = "/api/buckets/photos";

fn photos() -> BucketName {
    BucketName::parse("photos").unwrap()
}

fn sweep(world: &World) -> ExpirySweep {
    ExpirySweep::new(world.state.jobs.clone())
}

async fn set_rules(client: &Client, rules: Value) -> Value {
    let reply = client.patch_json(RULES, json!({"lifecycle": rules})).await;
    reply.check_done()["bucket"]["lifecycle"].clone()
}

/// Returns the actions and details of the audit log, newest first.
async fn audited(world: &World, action: &str) -> Vec<Value> {
    let operator = world.operator();
    let audit = operator.get_json("/api/audit").await;
    let entries = audit["entries"].as_array().unwrap().clone();
    entries.into_iter().filter(|entry| entry["action"] == action).collect()
}

#[tokio::test]
async fn expired_file_reads_as_missing_at_once() {
    let (world, client) = World::with_bucket(1);
    client.put("/photos/?expiresIn=60", "a.txt", b"short").await;
    client.put("/photos/", "b.txt", b"long").await;
    world.clock.advance(59_999);
    assert_eq!(client.get("/photos/a.txt").await.status, 200);
    world.clock.advance(1);
    // No sweep has run.
    assert_eq!(client.get("/photos/a.txt").await.status, 404);
    assert_eq!(client.get("/photos/a.txt?width=10").await.status, 404);
    let described = client.get("/api/buckets/photos/object?path=a.txt").await;
    described.check_error(404, "file_not_found");
    assert_eq!(client.list_keys("").await, ["b.txt"]);
    let found = client.get_json("/api/search/photos?q=txt").await;
    assert_eq!(found["hits"].as_array().unwrap().len(), 1, "{found}");
    let selection = json!({"paths": ["a.txt"]});
    assert_eq!(client.post_json("/api/buckets/photos/zips", selection).await.status, 404);
    let zip = client.post_json("/api/buckets/photos/zips", json!({"paths": [""]})).await;
    assert_eq!(zip.check_done()["files"], 1);
}

#[tokio::test]
async fn expired_files_are_deleted_and_can_be_restored() {
    let (world, client) = World::with_bucket(2);
    let at = "2026-01-31T12:02:00Z";
    client.put("/photos/?expiresIn=60", "a.txt", b"a").await;
    client.put(&format!("/photos/?expiresAt={at}"), "b.txt", b"b").await;
    client.put("/photos/?expiresIn=180&thumbnail=true", "c.png", &crate::images::png(20, 20)).await;
    client.put("/photos/", "d.txt", b"d").await;
    let mut sweep = sweep(&world);
    let mut left = async |advance_ms| {
        world.clock.advance(advance_ms);
        sweep.run().await.unwrap();
        world.store.bucket_usage(&photos()).unwrap().objects
    };
    assert_eq!(left(59_999).await, 4);
    assert_eq!(left(1).await, 3);
    assert_eq!(left(60_000).await, 2);
    assert!(world.derived_count() > 0);
    assert_eq!(left(60_000).await, 1);
    assert_eq!(world.derived_count(), 0);
    let entries = audited(&world, "lifecycle.expire").await;
    assert_eq!(entries.len(), 1, "{entries:?}");
    assert_eq!(entries[0]["detail"], "1 files, 1 bytes, by own expiry time");
    assert_eq!(entries[0]["actor"]["kind"], "server");
    // A restored file has no expiry time in the past, or it would be deleted again.
    client.post_json("/api/buckets/photos/undelete", json!({"path": "a.txt"})).await.check_done();
    assert_eq!(client.get("/photos/a.txt").await.text(), "a");
    assert_eq!(left(1_000_000).await, 2);
}

#[tokio::test]
async fn expiry_survives_a_restart_and_follows_a_move() {
    let (world, client) = World::with_bucket(3);
    client.put("/photos/?expiresIn=60", "a.txt", b"a").await;
    let body = json!({"from": "a.txt", "to": "moved/b.txt"});
    client.post_json("/api/buckets/photos/move", body).await.check_done();
    client.put("/photos/?expiresIn=60", "replaced.txt", b"old").await;
    client.put("/photos/?overwrite=true", "replaced.txt", b"new").await;
    let world = world.found_on(world.disk.fork());
    world.clock.advance(60_000);
    sweep(&world).run().await.unwrap();
    let client = Client::new(world.app(), Some(client.key().to_owned()));
    assert_eq!(client.get("/photos/moved/b.txt").await.status, 404);
    assert_eq!(client.get("/photos/replaced.txt").await.text(), "new");
    assert_eq!(world.store.facts("expiry/", None, 10).unwrap(), []);
}

#[tokio::test]
async fn lifecycle_rules_delete_old_files_below_a_prefix() {
    let (world, client) = World::with_bucket(4);
    client.put("/photos/tmp/", "old.txt", b"old").await;
    client.put("/photos/", "kept.txt", b"kept").await;
    world.clock.advance(100_000);
    client.put("/photos/tmp/", "new.txt", b"new").await;
    let rules = json!([
        {"id": "tmp", "prefix": "tmp/", "expireAfterSeconds": 100},
        {"id": "off", "prefix": "", "expireAfterSeconds": 60, "enabled": false},
    ]);
    let set = set_rules(&client, rules).await;
    assert_eq!(
        set[0],
        json!({"id": "tmp", "prefix": "tmp/", "expireAfterSeconds": 100, "enabled": true})
    );
    assert_eq!(client.get("/photos/tmp/old.txt").await.status, 404);
    let described = client.get_json("/api/buckets/photos/object?path=tmp/new.txt").await;
    assert_eq!(described["object"]["expiresAt"], "2026-01-31T12:03:20.000Z");
    assert_eq!(described["object"]["expiresByRule"], "tmp");
    let mut sweep = sweep(&world);
    sweep.run().await.unwrap();
    let keys = async || {
        let keys = world.store.list_keys(&photos(), "", None, 10).unwrap().objects;
        keys.iter().map(|it| it.name().key.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(keys().await, ["kept.txt", "tmp/new.txt"]);
    // Uploaded after the scan, which therefore does not know it.
    world.clock.advance(50_000);
    client.put("/photos/tmp/", "newer.txt", b"newer").await;
    world.clock.advance(50_000);
    sweep.run().await.unwrap();
    assert_eq!(keys().await, ["kept.txt", "tmp/newer.txt"]);
    world.clock.advance(50_000);
    sweep.run().await.unwrap();
    assert_eq!(keys().await, ["kept.txt"]);
    set_rules(&client, json!([{"id": "all", "expireAt": "2026-01-31T12:00:00Z"}])).await;
    sweep.run().await.unwrap();
    assert!(keys().await.is_empty());
    assert_eq!(set_rules(&client, Value::Null).await, json!([]));
}

#[tokio::test]
async fn changed_rules_do_not_delete_what_no_longer_expires() {
    let (world, client) = World::with_bucket(5);
    client.put("/photos/", "a.txt", b"a").await;
    let rule = |seconds| json!([{"id": "all", "expireAfterSeconds": seconds}]);
    set_rules(&client, rule(100)).await;
    let mut sweep = sweep(&world);
    sweep.run().await.unwrap();
    set_rules(&client, rule(1_000)).await;
    world.clock.advance(100_000);
    sweep.run().await.unwrap();
    assert_eq!(client.get("/photos/a.txt").await.text(), "a");
    // Replaced after the scan that remembered its expiry.
    world.clock.advance(899_000);
    client.put("/photos/?overwrite=true", "a.txt", b"b").await;
    world.clock.advance(1_000);
    sweep.run().await.unwrap();
    assert_eq!(client.get("/photos/a.txt").await.text(), "b");
}

#[tokio::test]
async fn invalid_lifecycle_rules_are_rejected() {
    let (world, client) = World::with_bucket(6);
    let day = 86_400;
    for (rules, why) in [
        (json!([{"id": "a", "expireAfterSeconds": 59}]), "59; allowed: 60 to 315360000"),
        (json!([{"id": "a"}]), "either expireAfterSeconds or expireAt"),
        (
            json!([{"id": "a", "expireAfterSeconds": day, "expireAt": "2027-01-01T00:00:00Z"}]),
            "either",
        ),
        (json!([{"id": "a", "expireAt": "tomorrow"}]), "is not a date and time"),
        (json!([{"id": "", "expireAfterSeconds": day}]), "1 to 255 characters"),
        (
            json!([{"id": "a", "expireAfterSeconds": day}, {"id": "a", "expireAfterSeconds": day}]),
            "twice",
        ),
    ] {
        let reply = client.patch_json(RULES, json!({"lifecycle": rules})).await;
        reply.check_parameter("lifecycle");
        assert!(reply.text().contains(why), "{}", reply.text());
    }
    // A rule deletes files.
    let manager = world.client_of("ann", key_with_scopes(&[Scope::Manage]));
    let rules = json!({"lifecycle": [{"id": "a", "expireAfterSeconds": day}]});
    assert_eq!(manager.patch_json(RULES, rules).await.status, 403);
}

#[tokio::test]
async fn expiry_out_of_range_is_rejected_before_the_file_is_stored() {
    let (_world, client) = World::with_bucket(7);
    for query in [
        "expiresIn=59",
        "expiresIn=315360001",
        "expiresIn=soon",
        "expiresAt=2026-01-31T12:00:59Z",
        "expiresAt=never",
        "expiresIn=60&expiresAt=2026-02-01T00:00:00Z",
    ] {
        let reply = client.upload_file(&format!("/photos/?{query}"), "a.txt", b"a").await;
        reply.check_error(400, "bad_parameter");
    }
    assert!(client.list_keys("").await.is_empty());
    let reply = client.upload_file("/photos/?expiresIn=30", "a.txt", b"a").await;
    assert!(reply.text().contains("is 30; allowed: 60 to 315360000 seconds"), "{}", reply.text());
}

#[tokio::test]
async fn tokens_and_presigned_urls_accept_an_expiry() {
    let (world, client) = World::with_bucket(8);
    let token = client.get_json("/api/presigned-url?path=photos/in/").await;
    let path = format!("{}?expiresIn=60", path_of(&token["url"]));
    world.anonymous().put(&path, "a.txt", b"a").await;
    let address = client.get_json("/photos/presigned/in/b.txt").await;
    let path = format!("{}&expiresIn=60", path_of(&address["presignedUrl"]));
    let reply = world.anonymous().send_typed(Method::PUT, &path, "text/plain", b"b").await;
    reply.check_done();
    assert_eq!(client.list_keys("in/").await.len(), 2);
    world.clock.advance(60_000);
    assert!(client.list_keys("in/").await.is_empty());
}

#[tokio::test]
async fn expiry_of_one_bucket_does_not_wait_for_another() {
    let (world, client) = World::with_bucket(9);
    world.bucket("ann", "full", server::management::BucketSettings::default());
    let rules = json!({"lifecycle": [{"id": "all", "expireAfterSeconds": 60}]});
    for bucket in ["full", "photos"] {
        client.patch_json(&format!("/api/buckets/{bucket}"), rules.clone()).await.check_done();
        client.put(&format!("/{bucket}/?expiresIn=60"), "a.txt", b"a").await;
    }
    // A version is kept by a copy, for which the disk has no room.
    let state = Some(catalog::versions::VersioningState::Enabled);
    let change = catalog::BucketChange { versioning: state, ..Default::default() };
    world.state.catalog.buckets().edit(&BucketName::parse("full").unwrap(), change).unwrap();
    world.clock.advance(60_000);
    world.disk.set_free_bytes(0);
    world.clock.advance(engine::limits::FREE_SPACE_POLL_MS);
    let error = sweep(&world).run().await.unwrap_err();
    assert_eq!(error.code(), "no_space", "{}", error.message());
    let left = |bucket| world.store.bucket_usage(&BucketName::parse(bucket).unwrap()).unwrap();
    assert_eq!((left("full").objects, left("photos").objects), (1, 0));
}

#[tokio::test]
async fn preview_counts_the_files_that_rules_would_delete_at_once() {
    let (world, client) = World::with_bucket(21);
    client.put("/photos/tmp/", "old.txt", b"1234").await;
    client.put("/photos/tmp/?expiresIn=60", "gone.txt", b"12").await;
    client.put("/photos/log/", "old.txt", b"123").await;
    world.clock.advance(600_000);
    client.put("/photos/tmp/", "new.txt", b"1").await;
    let preview = async |rules: Value| {
        let wish = json!({"lifecycle": rules});
        let reply = client.post_json(&format!("{RULES}/lifecycle/preview"), wish).await;
        let reply = reply.check_done();
        assert_eq!(reply["isComplete"], true);
        (reply["files"].as_u64().unwrap(), reply["bytes"].as_u64().unwrap())
    };
    let rule = |id: &str, prefix: &str, seconds: u64| json!({"id": id, "prefix": prefix, "expireAfterSeconds": seconds});
    assert_eq!(preview(json!([])).await, (0, 0));
    // Without a file that has expired by itself already.
    assert_eq!(preview(json!([rule("a", "tmp/", 600)])).await, (1, 4));
    assert_eq!(preview(json!([rule("a", "tmp/", 601)])).await, (0, 0));
    // Overlapping rules count a file once.
    let both = json!([rule("a", "", 600), rule("b", "tmp/", 60)]);
    assert_eq!(preview(both.clone()).await, (2, 7));
    let mut disabled = rule("a", "", 600);
    disabled["enabled"] = json!(false);
    assert_eq!(preview(json!([disabled])).await, (0, 0));
    // It saves and deletes nothing.
    assert_eq!(client.get_json(RULES).await["bucket"]["lifecycle"], json!([]));
    assert_eq!(client.list_keys("").await, ["log/old.txt", "tmp/new.txt", "tmp/old.txt"]);
    // Files that expire by the current rules are not counted again.
    set_rules(&client, json!([rule("a", "tmp/", 600)])).await;
    assert_eq!(preview(both).await, (1, 3));
    let path = format!("{RULES}/lifecycle/preview");
    let invalid = json!({"lifecycle": [rule("a", "", 59)]});
    client.post_json(&path, invalid).await.check_parameter("lifecycle");
    let uploader = world.client_of("ann", key_with_scopes(&[Scope::Upload, Scope::Delete]));
    let denied = uploader.post_json(&path, json!({"lifecycle": []}));
    denied.await.check_error(403, "forbidden");
}
