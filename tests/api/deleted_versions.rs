//! Deleted versions that can be restored: `API.md`, Undelete.

use catalog::Scope;
use http::Method;
use serde_json::{Value, json};
use server::management::{ApiKeySettings, BucketSettings};
use tests::{Client, Reply, World};

use crate::images::jpeg;

const DELETED: &str = "/api/buckets/photos/deleted";
const UNDELETE: &str = "/api/buckets/photos/undelete";

/// Returns all deleted versions, page by page, and the number of pages.
async fn deleted_files(client: &Client, query: &str) -> (Vec<Value>, usize) {
    let (mut versions, mut pages, mut cursor) = (Vec::new(), 0, String::new());
    loop {
        let reply = client.get(&format!("{DELETED}?{query}{cursor}")).await.check_done();
        pages += 1;
        versions.extend(reply["versions"].as_array().unwrap().iter().cloned());
        match reply["nextCursor"].as_str() {
            Some(next) => cursor = format!("&cursor={}", next.replace(' ', "%20")),
            None => return (versions, pages),
        }
    }
}

fn paths(versions: &[Value]) -> Vec<&str> {
    versions.iter().map(|version| version["path"].as_str().unwrap()).collect()
}

async fn undelete(client: &Client, path: &str) -> Reply {
    client.post_json(UNDELETE, json!({ "path": path })).await
}

fn restarted(world: &World, client: &Client) -> (World, Client) {
    world.store.close().unwrap();
    let world = world.found_on(world.disk.fork());
    let client = Client::new(world.app(), client.key.clone());
    (world, client)
}

#[tokio::test]
async fn deleted_file_is_restored_unchanged() {
    let (world, client) = World::with_bucket(1);
    client.put("/photos/a/", "b.html", b"<p>").await;
    let before = client.get("/photos/a/b.html").await;
    world.clock.advance(1_000);
    client.delete("/photos/a/b.html").await.check_done();
    world.clock.advance(1_000);
    let (versions, _) = deleted_files(&client, "").await;
    let [version] = &versions[..] else { panic!("{versions:?}") };
    assert_eq!((&version["path"], &version["state"]), (&json!("a/b.html"), &json!("deleted")));
    assert_eq!((&version["bytes"], &version["type"]), (&json!(3), &json!("text/html")));
    assert_eq!(version["deletedAt"], "2026-01-31T12:00:01.000Z");
    assert_eq!(version["createdAt"], "2026-01-31T12:00:00.000Z");
    let back = undelete(&client, "a/b.html").await.check_done();
    assert_eq!((&back["path"], &back["renamed"]), (&json!("a/b.html"), &json!(false)));
    assert_eq!(back["url"], "https://cdn.example.com/photos/a/b.html");
    assert_eq!(back["lsn"], version["lsn"]);
    let after = client.get("/photos/a/b.html").await;
    for name in ["content-type", "etag"] {
        assert_eq!(after.header(name), before.header(name), "{name}");
    }
    assert_eq!(after.text(), "<p>");
    assert_eq!(version["etag"], after.header("etag"));
    // The file exists: nothing is left to restore, also in the listing from the log.
    assert_eq!(deleted_files(&client, "").await.0, Vec::<Value>::new());
    let (world, client) = restarted(&world, &client);
    assert_eq!(deleted_files(&client, "").await.0, Vec::<Value>::new());
    assert_eq!(world.object_count("photos"), 1);
    undelete(&client, "a/b.html").await.check_error(409, "already_exists");
    undelete(&client, "none").await.check_error(404, "version_not_found");
    client.post_json(UNDELETE, json!({"path": "a/"})).await.check_error(400, "bad_path");
}

#[tokio::test]
async fn deleted_files_are_listed_newest_first_then_by_path() {
    let (world, client) = World::with_bucket(1);
    for name in ["c.txt", "a.txt", "b.txt"] {
        client.put("/photos/", name, name.as_bytes()).await;
    }
    client.put("/photos/other/", "d.txt", b"d").await;
    for name in ["b.txt", "c.txt", "other/d.txt"] {
        world.clock.advance(1_000);
        client.delete(&format!("/photos/{name}")).await.check_done();
    }
    world.clock.advance(1_000);
    client.put("/photos/a.txt?overwrite=true", "a.txt", b"newer").await;
    for limit in [1, 2, 100] {
        let (versions, _) = deleted_files(&client, &format!("limit={limit}")).await;
        assert_eq!(paths(&versions), ["a.txt", "other/d.txt", "c.txt", "b.txt"], "{limit}");
    }
    let (versions, _) = deleted_files(&client, "prefix=other/").await;
    assert_eq!(paths(&versions), ["other/d.txt"]);
    let (by_memory, _) = deleted_files(&client, "").await;

    let (_world, client) = restarted(&world, &client);
    for limit in [1, 3, 100] {
        let (versions, pages) = deleted_files(&client, &format!("limit={limit}")).await;
        assert_eq!(paths(&versions), ["a.txt", "b.txt", "c.txt", "other/d.txt"], "{limit}");
        assert!(pages > 1);
        // The log gives the same for each.
        for version in &versions {
            assert!(by_memory.contains(version), "{version} is not among {by_memory:?}");
        }
    }
    assert_eq!(versions_states(&deleted_files(&client, "prefix=a").await.0), ["replaced"]);
    undelete(&client, "c.txt").await.check_done();
    assert_eq!(client.get("/photos/c.txt").await.text(), "c.txt");
    // Recent deletions are listed first, and once.
    client.delete("/photos/c.txt").await.check_done();
    let (versions, _) = deleted_files(&client, "").await;
    assert_eq!(paths(&versions), ["c.txt", "a.txt", "b.txt", "c.txt", "other/d.txt"]);
}

fn versions_states(versions: &[Value]) -> Vec<&str> {
    versions.iter().map(|version| version["state"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn overwritten_version_is_restored_where_permitted() {
    let (world, client) = World::with_bucket(1);
    let mut lsns = Vec::new();
    for text in ["one", "two", "three"] {
        client.put("/photos/a.txt?overwrite=true", "a.txt", text.as_bytes()).await;
        world.clock.advance(1_000);
    }
    for (version, bytes) in deleted_files(&client, "").await.0.iter().zip([3, 3]) {
        assert_eq!((&version["state"], &version["bytes"]), (&json!("replaced"), &json!(bytes)));
        lsns.push(version["lsn"].as_u64().unwrap());
    }
    let [two, one] = lsns[..] else { panic!("{lsns:?}") };
    undelete(&client, "a.txt").await.check_error(409, "already_exists");
    let wish = |lsn: u64, on_conflict: &str| json!({"path": "a.txt", "lsn": lsn, "onConflict": on_conflict});
    client.post_json(UNDELETE, wish(one, "refuse")).await.check_error(409, "already_exists");
    let back = client.post_json(UNDELETE, wish(one, "rename")).await.check_done();
    assert_eq!((&back["path"], &back["renamed"]), (&json!("a (1).txt"), &json!(true)));
    assert_eq!(client.get("/photos/a%20(1).txt").await.text(), "one");
    client.post_json(UNDELETE, wish(two, "overwrite")).await.check_done();
    assert_eq!(client.get("/photos/a.txt").await.text(), "two");
    // The version replaced by the undelete can be restored in turn, also after a restart.
    let (world, client) = restarted(&world, &client);
    let (versions, _) = deleted_files(&client, "prefix=a.txt").await;
    let newest = versions.iter().map(|it| it["lsn"].as_u64().unwrap()).max().unwrap();
    client.post_json(UNDELETE, wish(newest, "overwrite")).await.check_done();
    assert_eq!(client.get("/photos/a.txt").await.text(), "three");
    let missing = client.post_json(UNDELETE, wish(1 << 40, "overwrite")).await;
    missing.check_error(404, "version_not_found");
    assert_eq!(world.object_count("photos"), 2);
}

#[tokio::test]
async fn deleted_files_of_a_previous_bucket_are_hidden() {
    let (world, ann) = World::with_bucket(1);
    ann.put("/photos/", "secret.txt", b"of ann").await;
    ann.put("/photos/", "kept.txt", b"of ann").await;
    ann.delete("/photos/secret.txt").await.check_done();
    let lsn = deleted_files(&ann, "").await.0[0]["lsn"].clone();
    ann.delete("/api/buckets/photos?force").await.check_done();
    let name = engine::BucketName::parse("photos").unwrap();
    while world.state.catalog.buckets().get(&name).is_some() || world.object_count("photos") > 0 {
        tokio::task::yield_now().await;
    }
    let bob = world.account_with_key("bob");
    let made = loop {
        // The name is free after the removal.
        let made = bob.post_json("/api/buckets", json!({"bucketName": "photos"})).await;
        if made.status != 409 {
            break made;
        }
        tokio::task::yield_now().await;
    };
    made.check_done();
    bob.put("/photos/", "own.txt", b"of bob").await;
    bob.delete("/photos/own.txt").await.check_done();
    for is_restarted in [false, true] {
        let (_world, bob) = match is_restarted {
            false => (None, bob.clone()),
            true => {
                let (world, bob) = restarted(&world, &bob);
                (Some(world), bob)
            }
        };
        assert_eq!(paths(&deleted_files(&bob, "").await.0), ["own.txt"], "{is_restarted}");
        for path in ["secret.txt", "kept.txt"] {
            undelete(&bob, path).await.check_error(404, "version_not_found");
            let wish = json!({"path": path, "lsn": lsn});
            bob.post_json(UNDELETE, wish).await.check_error(404, "version_not_found");
        }
    }
}

#[tokio::test]
async fn deleted_files_respect_key_scopes_and_folders() {
    let (world, client) = World::with_bucket(1);
    client.put("/photos/in/", "a.txt", b"1").await;
    client.put("/photos/out/", "a.txt", b"1").await;
    client.delete("/photos/in/a.txt").await.check_done();
    client.delete("/photos/out/a.txt").await.check_done();
    let key = |scopes: &[Scope]| {
        let prefix = Some("in/".to_owned());
        world.client_of(
            "ann",
            ApiKeySettings { scopes: scopes.to_vec(), prefix, ..ApiKeySettings::default() },
        )
    };
    let inside = key(&[Scope::List, Scope::Delete, Scope::Upload]);
    inside.get(DELETED).await.check_error(403, "forbidden");
    inside.get(&format!("{DELETED}?prefix=out/")).await.check_error(403, "forbidden");
    assert_eq!(paths(&deleted_files(&inside, "prefix=in/").await.0), ["in/a.txt"]);
    undelete(&inside, "out/a.txt").await.check_error(403, "forbidden");
    for scopes in [&[Scope::List][..], &[Scope::Delete], &[Scope::Upload, Scope::Manage]] {
        let few = key(scopes);
        few.get(&format!("{DELETED}?prefix=in/")).await.check_error(403, "forbidden");
        undelete(&few, "in/a.txt").await.check_error(403, "forbidden");
    }
    undelete(&inside, "in/a.txt").await.check_done();
    let bob = world.account_with_key("bob");
    bob.get(DELETED).await.check_error(404, "bucket_not_found");
    undelete(&bob, "out/a.txt").await.check_error(404, "bucket_not_found");
    client.get(&format!("{DELETED}?cursor=x")).await.check_parameter("cursor");
    let method = client.send(Method::PUT, DELETED, &[], axum::body::Body::empty()).await;
    method.check_error(405, "method_not_allowed");
}

#[tokio::test]
async fn restore_respects_quota_and_drops_stale_thumbnail() {
    let (world, client) = World::with_bucket(1);
    let picture = jpeg(60, 40);
    client.put("/photos/?thumbnail", "a.jpg", &picture).await;
    client.delete("/photos/a.jpg").await.check_done();
    client.put("/photos/", "b.txt", b"12345").await;
    let quota = |objects: u64| BucketSettings {
        quota_objects: Some(Some(objects)),
        ..BucketSettings::default()
    };
    world.edit_bucket("photos", quota(1));
    undelete(&client, "a.jpg").await.check_error(507, "quota_exceeded");
    world.edit_bucket("photos", quota(2));
    undelete(&client, "a.jpg").await.check_done();
    assert_eq!(client.get("/photos/a.jpg").await.body, picture);
    client.get("/photos/a_thumb.webp").await.check_error(404, "file_not_found");
    assert_eq!(world.object_count("photos"), 2);
    // Thumbnails are no versions of their own.
    assert_eq!(deleted_files(&client, "prefix=a_thumb").await.0, Vec::<Value>::new());
}

#[tokio::test]
async fn large_file_is_restorable_for_the_retention_window() {
    let (world, client) = World::with_bucket(1);
    let film = tests::store::body(1, 2_000_000);
    client.put("/photos/", "film.bin", &film).await;
    client.delete("/photos/film.bin").await.check_done();
    client.put("/photos/", "note.txt", b"1").await;
    client.delete("/photos/note.txt").await.check_done();
    let (versions, _) = deleted_files(&client, "").await;
    assert_eq!(paths(&versions), ["note.txt", "film.bin"]);
    assert_eq!(versions[0]["recoverableUntil"], Value::Null);
    assert_eq!(versions[1]["recoverableUntil"], "2026-01-31T13:00:00.000Z");
    undelete(&client, "film.bin").await.check_done();
    assert_eq!(client.get("/photos/film.bin").await.body, film);
    client.delete("/photos/film.bin").await.check_done();
    let (world, client) = restarted(&world, &client);
    undelete(&client, "film.bin").await.check_done();
    client.delete("/photos/film.bin").await.check_done();
    world.clock.advance(60 * 60 * 1_000);
    client.put("/photos/", "other.txt", b"1").await;
    let (versions, _) = deleted_files(&client, "prefix=film").await;
    assert_eq!(paths(&versions), [""; 0]);
    undelete(&client, "film.bin").await.check_error(404, "version_not_found");
}

#[tokio::test(flavor = "multi_thread")]
async fn deleted_files_of_a_long_log_are_listed_in_pages() {
    let (world, client) = World::with_bucket(1);
    for at in 0..7 {
        // With content of its own: a file that is put just before another one is deleted looks like a move.
        client.put("/photos/", &format!("{at}.txt"), at.to_string().as_bytes()).await;
    }
    for at in 0..6 {
        client.delete(&format!("/photos/{at}.txt")).await.check_done();
    }
    let (world, client) = restarted(&world, &client);
    let (by_path, _) = deleted_files(&client, "").await;
    let (along, pages) = deleted_files(&client, "limit=2&cursor=along:0:0").await;
    assert_eq!((paths(&along), pages), (paths(&by_path), 4));
    let lsn = along[3]["lsn"].as_u64().unwrap();
    let back = client.post_json(UNDELETE, json!({"path": "3.txt", "lsn": lsn})).await.check_done();
    assert_eq!(back["lsn"], lsn);
    let (along, _) = deleted_files(&client, "cursor=along:0:0").await;
    let (by_path, _) = deleted_files(&client, "").await;
    assert_eq!(paths(&along), paths(&by_path));
    assert_eq!(along.iter().filter(|it| it["state"] == "replaced").count(), 0, "it was deleted");
    for bad in ["along:", "along:1", "along:x:1", "along:1:-1"] {
        let reply = client.get(&format!("{DELETED}?cursor={bad}")).await;
        assert_eq!(reply.status, 400, "{bad}");
    }
    // A listing by path continues along the log when it exceeds its time limit.
    let is_over = std::sync::atomic::AtomicBool::new(false);
    let clock = world.clock.clone();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(std::sync::atomic::Ordering::Relaxed) {
                clock.advance(20_000);
                std::thread::sleep(std::time::Duration::from_micros(20));
            }
        });
        let runtime = tokio::runtime::Handle::current();
        let led = tokio::task::block_in_place(|| {
            runtime.block_on(async {
                for _ in 0..1_000 {
                    let page = client.get(&format!("{DELETED}?cursor=log:")).await.check_done();
                    if page["nextCursor"] == "along:0:0" {
                        return true;
                    }
                }
                false
            })
        });
        is_over.store(true, std::sync::atomic::Ordering::Relaxed);
        assert!(led);
    });
}
