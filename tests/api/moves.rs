//! Files moved in their bucket: `API.md`, Moves.

use catalog::Scope;
use engine::disk::sim::LossPolicy;
use serde_json::{Value, json};
use server::management::{ApiKeySettings, BucketSettings};
use tests::{Client, Form, Reply, World};

use crate::images::jpeg;

const MOVE: &str = "/api/buckets/photos/move";

async fn move_to(client: &Client, from: &str, to: &str) -> Reply {
    client.post_json(MOVE, json!({"from": from, "to": to})).await
}

async fn move_on(client: &Client, from: &str, to: &str, on_conflict: &str) -> Reply {
    client.post_json(MOVE, json!({"from": from, "to": to, "onConflict": on_conflict})).await
}

async fn usage(client: &Client) -> (Value, Value) {
    let mut bucket = client.get("/api/buckets/photos").await.check_done()["bucket"].take();
    (bucket["objectCount"].take(), bucket["totalBytes"].take())
}

#[tokio::test]
async fn move_keeps_content_type_and_creation_time() {
    let (world, client) = World::with_bucket(1);
    let form = Form::new().file("f", "notes.md", Some("text/markdown"), b"# one");
    client.upload("/photos/a/", form).await.check_done();
    let before = client.get("/photos/a/notes.md").await;
    world.clock.advance(60_000);
    let moved = move_to(&client, "a/notes.md", "b/c/read me.txt").await.check_done();
    let expected = json!({
        "success": true,
        "path": "b/c/read me.txt",
        "url": "https://cdn.example.com/photos/b/c/read%20me.txt",
        "renamed": false,
    });
    assert_eq!(moved, expected);
    client.get("/photos/a/notes.md").await.check_error(404, "file_not_found");
    let after = client.get("/photos/b/c/read%20me.txt").await;
    assert_eq!(after.text(), "# one");
    for name in ["content-type", "etag"] {
        assert_eq!(after.header(name), before.header(name), "{name}");
    }
    assert_ne!(after.header("last-modified"), before.header("last-modified"));
    assert_eq!(client.list_keys("").await, ["b/c/read me.txt"]);
    move_to(&client, "a/notes.md", "b").await.check_error(404, "file_not_found");
}

#[tokio::test]
async fn moved_file_is_not_listed_as_deleted_and_frees_quota() {
    let (world, client) = World::with_bucket(1);
    let film = tests::store::body(1, 2_000_000);
    client.put("/photos/", "film.bin", &film).await;
    client.put("/photos/", "note.txt", b"1").await;
    world.clock.advance(60_000);
    move_to(&client, "film.bin", "b/film.bin").await.check_done();
    move_to(&client, "note.txt", "b/note.txt").await.check_done();
    let deleted = "/api/buckets/photos/deleted";
    assert_eq!(client.get(deleted).await.check_done()["versions"], json!([]));
    let stats = world.store.stats().unwrap();
    assert_eq!((stats.retained.segments, stats.big.segments), (0, 1));
    // A file replaced by a move can be restored.
    client.put("/photos/b/", "old.txt", b"old").await;
    world.clock.advance(60_000);
    move_on(&client, "b/note.txt", "b/old.txt", "overwrite").await.check_done();
    let versions = client.get(deleted).await.check_done()["versions"].take();
    assert_eq!(
        (&versions[0]["path"], &versions[0]["state"]),
        (&json!("b/old.txt"), &json!("replaced"))
    );
    assert_eq!(versions.as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn move_takes_thumbnail_along_and_removes_replaced_one() {
    let (_world, client) = World::with_bucket(1);
    let picture = jpeg(500, 300);
    client.put("/photos/a/?thumbnail", "cat.jpg", &picture).await;
    let small = client.get("/photos/a/cat_thumb.webp").await.body;
    move_to(&client, "a/cat.jpg", "b/tom.jpg").await.check_done();
    assert_eq!(client.list_keys("").await, ["b/tom.jpg", "b/tom_thumb.webp"]);
    assert_eq!(client.get("/photos/b/tom_thumb.webp").await.body, small);
    // The same place, of another file.
    move_to(&client, "b/tom.jpg", "b/tom.jpeg").await.check_done();
    assert_eq!(client.list_keys("").await, ["b/tom.jpeg", "b/tom_thumb.webp"]);
    client.delete("/photos/b/tom.jpeg").await.check_done();
    assert_eq!(client.list_keys("").await, Vec::<String>::new());
    // Over another picture, and over one by a file that has none.
    client.put("/photos/?thumbnail", "a.jpg", &picture).await;
    client.put("/photos/?thumbnail", "b.jpg", &jpeg(40, 40)).await;
    move_on(&client, "a.jpg", "b.jpg", "overwrite").await.check_done();
    assert_eq!(client.list_keys("").await, ["b.jpg", "b_thumb.webp"]);
    assert_eq!(client.get("/photos/b_thumb.webp").await.body, small);
    client.put("/photos/", "c.txt", b"1").await;
    move_on(&client, "c.txt", "b.jpg", "overwrite").await.check_done();
    assert_eq!(client.list_keys("").await, ["b.jpg"]);
    // A user's own file does not block the move, and stays.
    client.put("/photos/?thumbnail", "d.jpg", &picture).await;
    client.put("/photos/", "e_thumb.webp", b"mine").await;
    move_to(&client, "d.jpg", "e.jpg").await.check_done();
    assert_eq!(client.list_keys("").await, ["b.jpg", "e.jpg", "e_thumb.webp"]);
    assert_eq!(client.get("/photos/e_thumb.webp").await.text(), "mine");
}

#[tokio::test]
async fn move_to_existing_name_is_rejected_numbered_or_replaced() {
    let (_world, client) = World::with_bucket(1);
    for name in ["a.txt", "b.txt", "c.txt", "d.txt"] {
        client.put("/photos/", name, name.as_bytes()).await;
    }
    move_to(&client, "a.txt", "b.txt").await.check_error(409, "already_exists");
    move_on(&client, "a.txt", "b.txt", "refuse").await.check_error(409, "already_exists");
    assert_eq!(client.get("/photos/a.txt").await.text(), "a.txt");
    let moved = move_on(&client, "a.txt", "b.txt", "rename").await.check_done();
    assert_eq!((&moved["path"], &moved["renamed"]), (&json!("b (1).txt"), &json!(true)));
    let moved = move_on(&client, "c.txt", "b.txt", "overwrite").await.check_done();
    assert_eq!((&moved["path"], &moved["renamed"]), (&json!("b.txt"), &json!(false)));
    assert_eq!(client.get("/photos/b.txt").await.text(), "c.txt");
    assert_eq!(client.list_keys("").await, ["b (1).txt", "b.txt", "d.txt"]);
    move_on(&client, "d.txt", "e.txt", "skip").await.check_parameter("onConflict");
}

#[tokio::test]
async fn large_file_is_moved_intact() {
    let (world, client) = World::with_bucket(1);
    let bytes = tests::store::body(5, 3_000_001);
    client.put("/photos/", "film.bin", &bytes).await;
    move_to(&client, "film.bin", "films/film.bin").await.check_done();
    assert_eq!(client.get("/photos/films/film.bin").await.body, bytes);
    client.get("/photos/film.bin").await.check_error(404, "file_not_found");
    let big = || world.disk.paths().into_iter().filter(|path| path.starts_with("big/")).count();
    assert_eq!(big(), 1, "the copy under its old name is given back at once");
}

#[tokio::test]
async fn move_succeeds_at_full_quota_with_exact_counts() {
    let (world, client) = World::with_bucket(1);
    client.put("/photos/", "a.txt", b"12345").await;
    client.put("/photos/", "b.txt", b"123").await;
    let (quota_bytes, quota_objects) = (Some(Some(8)), Some(Some(2)));
    world.edit_bucket(
        "photos",
        BucketSettings { quota_bytes, quota_objects, ..BucketSettings::default() },
    );
    move_to(&client, "a.txt", "c.txt").await.check_done();
    assert_eq!(usage(&client).await, (json!(2), json!(8)));
    move_on(&client, "c.txt", "b.txt", "overwrite").await.check_done();
    assert_eq!(usage(&client).await, (json!(1), json!(5)));
    client.put("/photos/", "d.txt", b"123").await;
    client.upload_file("/photos/", "e.txt", b"1").await.check_error(507, "quota_exceeded");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn write_during_move_is_never_lost() {
    let (_world, client) = World::with_bucket(1);
    client.put("/photos/", "a.txt", b"0").await;
    for round in 1..=150 {
        let (to, text) = (format!("b{round}.txt"), format!("round {round}"));
        let upload = {
            let (client, text) = (client.clone(), text.clone());
            tokio::spawn(async move {
                client.put("/photos/a.txt?overwrite=true", "a.txt", text.as_bytes()).await;
            })
        };
        let moved = move_to(&client, "a.txt", &to).await;
        upload.await.unwrap();
        let of = |reply: Reply| (reply.status == 200).then(|| reply.text());
        let (here, there) =
            (of(client.get("/photos/a.txt").await), of(client.get(&format!("/photos/{to}")).await));
        let is_new = |it: &Option<String>| it.as_deref() == Some(&text);
        assert!(is_new(&here) != is_new(&there), "{round}: {here:?}, {there:?}");
        // The earlier file is at the target of its move, or was replaced.
        assert_eq!(moved.status == 200, there.is_some(), "{round}: {}", moved.text());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn concurrent_moves_of_one_file_have_one_winner() {
    let (_world, client) = World::with_bucket(1);
    client.put("/photos/", "a.txt", b"a").await;
    let moves = (0..16).map(|at| {
        let client = client.clone();
        tokio::spawn(async move { move_to(&client, "a.txt", &format!("b{at}.txt")).await.status })
    });
    let mut statuses = Vec::new();
    for moving in moves.collect::<Vec<_>>() {
        statuses.push(moving.await.unwrap().as_u16());
    }
    assert_eq!(statuses.iter().filter(|status| **status == 200).count(), 1, "{statuses:?}");
    assert_eq!(client.list_keys("").await.len(), 1);
    let many = client.list_keys("").await;
    for at in 0..8 {
        client.put("/photos/from/", &format!("{at}.txt"), at.to_string().as_bytes()).await;
    }
    let moves = (0..8).map(|at| {
        let client = client.clone();
        let from = format!("from/{at}.txt");
        tokio::spawn(
            async move { move_on(&client, &from, "to/x.txt", "rename").await.check_done() },
        )
    });
    let mut paths = Vec::new();
    for moving in moves.collect::<Vec<_>>() {
        paths.push(moving.await.unwrap()["path"].as_str().unwrap().to_owned());
    }
    paths.sort();
    paths.dedup();
    assert_eq!(paths.len(), 8);
    assert_eq!(client.list_keys("").await.len(), many.len() + 8);
}

#[tokio::test]
async fn move_requires_write_and_delete_permission() {
    let (world, client) = World::with_bucket(1);
    client.put("/photos/in/", "a.txt", b"1").await;
    let with = |scopes: &[Scope], prefix: Option<&str>| {
        let prefix = prefix.map(str::to_owned);
        world.client_of(
            "ann",
            ApiKeySettings { scopes: scopes.to_vec(), prefix, ..ApiKeySettings::default() },
        )
    };
    for scopes in [&[Scope::Upload][..], &[Scope::Delete], &[Scope::Manage, Scope::List]] {
        let refused = move_to(&with(scopes, None), "in/a.txt", "in/b.txt").await;
        refused.check_error(403, "forbidden");
    }
    let both = [Scope::Upload, Scope::Delete];
    let inside = with(&both, Some("in/"));
    move_to(&inside, "in/a.txt", "out/a.txt").await.check_error(403, "forbidden");
    move_to(&inside, "out/a.txt", "in/a.txt").await.check_error(403, "forbidden");
    move_to(&inside, "in/a.txt", "in/b.txt").await.check_done();
    let bob = world.account_with_key("bob");
    move_to(&bob, "in/b.txt", "in/c.txt").await.check_error(404, "bucket_not_found");
    move_to(&client.without_key(), "in/b.txt", "in/c.txt")
        .await
        .check_error(401, "missing_api_key");
}

#[tokio::test]
async fn move_accepts_only_files_and_valid_targets() {
    let (_world, client) = World::with_bucket(1);
    client.put("/photos/?thumbnail", "a.jpg", &jpeg(40, 40)).await;
    for (from, to) in
        [("a/", "b"), ("a.jpg", "b/"), ("a.jpg", ""), ("../a", "b"), ("a.jpg", "b//c")]
    {
        move_to(&client, from, to).await.check_error(400, "bad_path");
    }
    move_to(&client, "a.jpg", "presigned/x").await.check_error(400, "bad_path");
    move_to(&client, "a.jpg", "a.jpg").await.check_parameter("to");
    move_to(&client, "a_thumb.webp", "b.webp").await.check_error(400, "bad_request");
    client.post_json(MOVE, json!({"from": "a.jpg"})).await.check_parameter("to");
    let more = json!({"from": "a.jpg", "to": "b.jpg", "force": true});
    client.post_json(MOVE, more).await.check_parameter("force");
    assert_eq!(client.list_keys("").await, ["a.jpg", "a_thumb.webp"]);
}

#[tokio::test]
async fn power_loss_leaves_moved_file_whole_under_one_name() {
    let (world, client) = World::with_bucket(1);
    let small = jpeg(60, 40);
    client.put("/photos/?thumbnail", "a.jpg", &small).await;
    let large = tests::store::body(5, 1_500_000);
    client.put("/photos/", "film.bin", &large).await;
    world.disk.record_cuts();
    move_to(&client, "a.jpg", "b/a.jpg").await.check_done();
    move_to(&client, "film.bin", "b/film.bin").await.check_done();
    let acknowledged = world.disk.operations();
    // Work of the store's threads completes a little later.
    tokio::time::sleep(std::time::Duration::from_millis(300)).await;
    world.store.close().unwrap();
    let (mut before, mut after) = (0, 0);
    for (at, cut) in world.disk.take_cuts().iter().enumerate() {
        for (seed, policy) in (0..).zip(LossPolicy::ALL) {
            let disk = cut.fork();
            disk.power_on(policy, seed);
            let found = world.found_on(disk);
            let again = Client::new(found.app(), client.key.clone());
            let mut moved = Vec::new();
            for (name, bytes) in [("a.jpg", &small), ("film.bin", &large)] {
                let old = again.get(&format!("/photos/{name}")).await;
                let new = again.get(&format!("/photos/b/{name}")).await;
                let (there, other) = if old.status == 200 { (old, new) } else { (new, old) };
                assert_eq!((there.status.as_u16(), other.status.as_u16()), (200, 404), "{at}");
                assert!(there.body == *bytes, "{policy:?} {at}: {name} is another one");
                moved.push(again.get(&format!("/photos/{name}")).await.status == 404);
            }
            // The thumbnail is where its file is.
            let keys = again.list_keys("").await;
            let thumbnail = if moved[0] { "b/a_thumb.webp" } else { "a_thumb.webp" };
            let thumbnails = keys.iter().filter(|key| key.ends_with("_thumb.webp"));
            assert_eq!(thumbnails.collect::<Vec<_>>(), [thumbnail], "{policy:?} {at}");
            assert_eq!(usage(&again).await.0, json!(2), "{policy:?} {at}");
            let is_over = cut.operations() >= acknowledged;
            assert!(moved[1] || !is_over, "{policy:?} {at}: acknowledged and undone");
            if moved[1] { after += 1 } else { before += 1 }
        }
    }
    assert!(before > 0 && after > 0, "{before} {after}");
}

const COPY: &str = "/api/buckets/photos/copy";

#[tokio::test]
async fn copy_keeps_type_and_source_and_counts_towards_quotas() {
    let (world, client) = World::with_bucket(1);
    let form = Form::new().file("f", "notes.md", Some("text/markdown"), b"# one");
    client.upload("/photos/a/", form).await.check_done();
    let copy = |from: &'static str, to: &'static str, on_conflict: &'static str| {
        let client = &client;
        let body = json!({"from": from, "to": to, "onConflict": on_conflict});
        async move { client.post_json(COPY, body).await }
    };
    let copied = copy("a/notes.md", "b/copy.md", "refuse").await.check_done();
    assert_eq!((&copied["path"], &copied["renamed"]), (&json!("b/copy.md"), &json!(false)));
    assert_eq!(client.list_keys("").await, ["a/notes.md", "b/copy.md"]);
    let found = client.get("/photos/b/copy.md").await;
    assert_eq!(found.text(), "# one");
    let source = client.get("/photos/a/notes.md").await;
    assert_eq!(found.header("content-type"), source.header("content-type"));
    assert_eq!(usage(&client).await, (json!(2), json!(10)));
    copy("a/notes.md", "b/copy.md", "refuse").await.check_error(409, "already_exists");
    let copied = copy("a/notes.md", "b/copy.md", "rename").await.check_done();
    assert_eq!((&copied["path"], &copied["renamed"]), (&json!("b/copy (1).md"), &json!(true)));
    let same_folder = copy("a/notes.md", "a/notes.md", "rename").await.check_done();
    assert_eq!(same_folder["path"], "a/notes (1).md");
    client.put("/photos/b/", "other.md", b"# two").await;
    copy("b/other.md", "b/copy.md", "overwrite").await.check_done();
    assert_eq!(client.get("/photos/b/copy.md").await.text(), "# two");
    copy("a/notes.md", "a/notes.md", "overwrite").await.check_parameter("to");
    copy("a/none.md", "a/x.md", "refuse").await.check_error(404, "file_not_found");
    let quota = BucketSettings { quota_objects: Some(Some(5)), ..BucketSettings::default() };
    world.edit_bucket("photos", quota);
    copy("a/notes.md", "c.md", "refuse").await.check_error(507, "quota_exceeded");
}

#[tokio::test]
async fn copy_requires_read_and_upload_scopes_on_both_paths() {
    let (world, client) = World::with_bucket(1);
    client.put("/photos/a/", "x.txt", b"1").await;
    let wish = json!({"from": "a/x.txt", "to": "a/y.txt"});
    for (scopes, prefix, status) in [
        (vec![Scope::Upload], None, 403),
        (vec![Scope::Read], None, 403),
        (vec![Scope::Read, Scope::Upload], Some("b/"), 403),
        (vec![Scope::Read, Scope::Upload], Some("a/"), 200),
    ] {
        let settings = ApiKeySettings {
            scopes,
            bucket: prefix.map(|_| "photos".to_owned()),
            prefix: prefix.map(str::to_owned),
            ..ApiKeySettings::default()
        };
        let reply = world.client_of("ann", settings).post_json(COPY, wish.clone()).await;
        assert_eq!(reply.status.as_u16(), status, "{}", reply.text());
    }
}
