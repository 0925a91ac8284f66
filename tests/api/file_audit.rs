//! Audit of uploads, copies and deletions of files: `API.md`, Audit.

use http::Method;
use serde_json::{Value, json};
use server::management::ApiKeySettings;
use tests::fixtures::{file_form, key_of_bucket, key_of_folder, path_of};
use tests::{Client, World};

use crate::jobs::{Worker, begin, ended};
use crate::tus::{append, create};

async fn page(client: &Client, query: &str) -> Value {
    client.get_json(&format!("/api/audit/files?{query}")).await
}

/// Returns action and path of the entries, the oldest first.
async fn changes(client: &Client, query: &str) -> Vec<String> {
    let page = page(client, &format!("limit=500&{query}")).await;
    let entries = page["entries"].as_array().unwrap().iter().rev();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    entries.map(|it| format!("{} {}", text(&it["action"]), text(&it["target"]))).collect()
}

#[tokio::test]
async fn upload_in_file_audit_has_actor_size_address_and_request() {
    let (_world, client) = World::with_bucket(1);
    let client = client.at("203.0.113.7");
    let reply = client.upload_file("/photos/2026/", "a.txt", b"12345").await;
    reply.check_done();
    let key = client.get_json("/api/keys").await["apiKeys"][0]["id"].take();
    let ann = client.get_json("/api/account").await["account"]["id"].take();
    let found = page(&client, "").await;
    let expected = json!([{
        "id": found["entries"][0]["id"],
        "time": "2026-01-31T12:00:00.000Z",
        "action": "file.upload",
        "actor": {"kind": "key", "id": key, "name": "", "account": ann},
        "bucketName": "photos",
        "target": "2026/a.txt",
        "targetName": null,
        "detail": "5 bytes",
        "address": "203.0.113.7",
        "requestId": reply.header("x-request-id"),
    }]);
    assert_eq!((&found["entries"], &found["nextCursor"]), (&expected, &Value::Null));
}

#[tokio::test]
async fn file_audit_records_each_way_to_store_and_delete() {
    let (world, client) = World::with_bucket(1);
    client.put("/photos/", "form.txt", b"1").await;
    let token = client.get_json("/api/presigned-url?path=photos/").await["token"].take();
    let path = format!("/api/presigned-url/{}", token.as_str().unwrap());
    let visitor = world.anonymous().at("192.0.2.7");
    visitor.upload(&path, file_form("token.txt", b"1")).await.check_done();
    let url = client.get_json("/photos/presigned/put.txt").await;
    let put = path_of(&url["presignedUrl"]);
    visitor.send_typed(Method::PUT, &put, "text/plain", b"1").await.check_done();
    let begun = create(&client, 3, &[("bucket", "photos"), ("filename", "tus.txt")]).await;
    let upload = format!("/api/tus/{}", begun.header("location"));
    assert_eq!(append(&client, &upload, 0, b"tus").await.status, 204);
    let link = json!({"kind": "upload", "paths": ["inbox/"]});
    let link = client.post_json("/api/buckets/photos/links", link).await.check_done();
    let page_path = path_of(&link["link"]["url"]);
    visitor.upload(&format!("{page_path}/u"), file_form("link.txt", b"1")).await;
    let (from, to) = ("form.txt", "moved.txt");
    let body = json!({"from": from, "to": to});
    client.post_json("/api/buckets/photos/move", body).await.check_done();
    let body = json!({"from": to, "to": "copied.txt"});
    client.post_json("/api/buckets/photos/copy", body).await.check_done();
    client.delete("/photos/copied.txt").await.check_done();
    let body = json!({"path": "copied.txt"});
    client.post_json("/api/buckets/photos/undelete", body).await.check_done();
    client.delete("/photos/inbox/").await.check_done();
    let _worker = Worker::start(&world);
    let job = json!({"kind": "emptyBucket", "bucketName": "photos"});
    let job = ended(&client, &begin(&client, job).await).await;
    assert_eq!(job["state"], "done", "{job}");
    let expected = [
        "file.upload form.txt",
        "file.upload token.txt",
        "file.upload put.txt",
        "file.upload tus.txt",
        "file.upload inbox/link.txt",
        "file.delete form.txt",
        "file.copy moved.txt",
        "file.copy copied.txt",
        "file.delete copied.txt",
        "file.copy copied.txt",
        "file.delete inbox/link.txt",
        "file.delete copied.txt",
        "file.delete moved.txt",
        "file.delete put.txt",
        "file.delete token.txt",
        "file.delete tus.txt",
    ];
    assert_eq!(changes(&client, "").await, expected);
    let entries = page(&client, "").await["entries"].take();
    let by = |path: &str, action: &str| {
        let entries = entries.as_array().unwrap();
        let entry = entries.iter().find(|it| it["target"] == path && it["action"] == action);
        let entry = entry.unwrap();
        (entry["actor"]["kind"].clone(), entry["address"].clone())
    };
    let key = client.get_json("/api/keys").await["apiKeys"][0]["id"].take();
    for entry in entries.as_array().unwrap() {
        let expected = if entry["target"] == "inbox/link.txt" && entry["action"] == "file.upload" {
            &Value::Null
        } else {
            &key
        };
        assert_eq!(&entry["actor"]["id"], expected, "{entry}");
    }
    // Tokens and links act for their creator, from the address of the client.
    assert_eq!(by("token.txt", "file.upload"), (json!("key"), json!("192.0.2.7")));
    assert_eq!(by("put.txt", "file.upload"), (json!("key"), json!("192.0.2.7")));
    assert_eq!(by("inbox/link.txt", "file.upload"), (json!("session"), json!("192.0.2.7")));
    // A rejected change is not recorded.
    client.delete("/photos/none.txt").await.check_error(404, "file_not_found");
    assert_eq!(changes(&client, "").await.len(), expected.len());
    // Secrets of tokens and links are not recorded.
    let text = entries.to_string();
    let secret = page_path.rsplit('/').next().unwrap();
    assert!(!text.contains(secret) && !text.contains(token.as_str().unwrap()), "{text}");
}

#[tokio::test]
async fn file_audit_pages_are_consecutive_across_buckets() {
    let (world, client) = World::with_bucket(1);
    world.bucket("ann", "videos", Default::default());
    for at in 0..40 {
        let bucket = if at % 3 == 0 { "videos" } else { "photos" };
        client.put(&format!("/{bucket}/{}/", at % 2), &format!("{at:02}.txt"), b"1").await;
        world.clock.advance(500);
        if at % 7 == 0 {
            // Each read stores what was collected, so that blocks of both buckets overlap.
            page(&client, "limit=1").await;
        }
    }
    let read = |filter: &'static str| {
        let client = &client;
        async move {
            let (mut seen, mut before) = (Vec::new(), String::new());
            loop {
                let page = page(client, &format!("limit=7&before={before}&{filter}")).await;
                let entries = page["entries"].as_array().unwrap();
                seen.extend(entries.iter().map(|it| it["target"].as_str().unwrap().to_owned()));
                match page["nextCursor"].as_str() {
                    Some(next) => before = next.to_owned(),
                    None => return seen,
                }
            }
        }
    };
    let expected = |wants: fn(usize) -> bool| {
        let found = (0..40).rev().filter(|at| wants(*at));
        found.map(|at| format!("{}/{at:02}.txt", at % 2)).collect::<Vec<_>>()
    };
    assert_eq!(read("").await, expected(|_| true));
    assert_eq!(read("bucketName=videos").await, expected(|at| at % 3 == 0));
    assert_eq!(read("path=1/").await, expected(|at| at % 2 == 1));
    assert_eq!(read("path=1/07.txt").await, ["1/07.txt"]);
    assert_eq!(read("name=0.TXT&bucketName=photos").await, ["0/20.txt", "0/10.txt"]);
    assert!(read("path=1/07").await.is_empty() && read("action=file.delete").await.is_empty());
    assert_eq!(read("action=file.up&actor=ann").await.len(), 0);
    let ann = client.get_json("/api/account").await["account"]["id"].take();
    assert_eq!(
        page(&client, &format!("actor={}", ann.as_str().unwrap())).await["nextCursor"],
        Value::Null
    );
    for query in ["limit=0", "limit=501", "before=x", "before=1-2"] {
        let parameter = query.split_once('=').unwrap().0;
        client.get(&format!("/api/audit/files?{query}")).await.check_parameter(parameter);
    }
    // The entries survive a restart.
    let found = world.found_on(world.disk.fork());
    let again = found.client_of("ann", ApiKeySettings::default());
    assert_eq!(changes(&again, "bucketName=videos").await.len(), 14);
}

#[tokio::test]
async fn file_audit_shows_callers_only_their_own_files() {
    let (world, ann) = World::with_bucket(1);
    let bob = world.account_with_key("bob");
    let operator = world.operator();
    ann.put("/photos/", "a.txt", b"1").await;
    ann.delete("/photos/a.txt").await.check_done();
    assert_eq!(changes(&ann, "").await, ["file.upload a.txt", "file.delete a.txt"]);
    assert!(changes(&bob, "").await.is_empty());
    assert_eq!(changes(&operator, "").await.len(), 2);
    let of_folder = world.client_of("ann", key_of_folder("a/"));
    of_folder.get("/api/audit/files").await.check_error(403, "forbidden");
    world.anonymous().get("/api/audit/files").await.check_error(401, "missing_api_key");
    world.bucket("ann", "videos", Default::default());
    ann.put("/videos/", "b.txt", b"1").await;
    let of_videos = world.client_of("ann", key_of_bucket("videos"));
    assert_eq!(changes(&of_videos, "").await, ["file.upload b.txt"]);
    // The owner of a new bucket does not see files of an earlier bucket with its name.
    world.clock.advance(1);
    ann.delete("/api/buckets/photos").await.check_done();
    world.clock.advance(1);
    bob.post_json("/api/buckets", json!({"bucketName": "photos"})).await.check_done();
    bob.put("/photos/", "c.txt", b"1").await;
    assert_eq!(changes(&bob, "bucketName=photos").await, ["file.upload c.txt"]);
    assert_eq!(changes(&operator, "bucketName=photos").await.len(), 3);
}
