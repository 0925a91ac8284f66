//! Use of shared links: counts, audit log, and downloads that are running when a link ends. `API.md`, Shared links.

use std::time::Duration;

use catalog::FairUseStanding;
use listener::options::ConnectionOptions;
use serde_json::{Value, json};
use server::management::{AccountSettings, AdminRequest, ApiKeySettings};
use tests::fixtures::{path_of, private_bucket};
use tests::wire::{Listening, SOON};
use tests::{Client, Form, World};
use tokio::io::AsyncReadExt;

use crate::links::{check_page, unlock};

const LINKS: &str = "/api/buckets/secret/links";
const MINUTE_MS: u64 = 60_000;
const HOUR_MS: u64 = 60 * MINUTE_MS;
/// More than the buffers of a connection.
const LARGE_BYTES: usize = 48 << 20;

async fn world() -> (World, Client) {
    let (world, client) = World::with_bucket(1);
    world.bucket("ann", "secret", private_bucket());
    client.put("/secret/a/", "1.txt", b"one").await;
    (world, client)
}

/// Creates a link; returns the path of its API, and that of its page.
async fn create(client: &Client, wish: Value) -> (String, String) {
    let link = client.post_json(LINKS, wish).await.check_done()["link"].clone();
    (format!("/api/links/{}", link["id"].as_str().unwrap()), path_of(&link["url"]))
}

/// Returns the views and the time of the last use.
async fn use_of(client: &Client, api: &str) -> (Value, Value) {
    let mut link = client.get_json(api).await["link"].take();
    (link["viewCount"].take(), link["lastUsedAt"].take())
}

#[tokio::test]
async fn link_counts_views_and_has_the_time_of_its_last_use() {
    let (world, client) = world().await;
    let (api, page) = create(&client, json!({"paths": ["a/"], "password": "tern-42"})).await;
    assert_eq!(use_of(&client, &api).await, (json!(0), Value::Null));
    let visitor = world.anonymous();
    // Neither the request for the password nor a wrong one is a use.
    check_page(&visitor.get(&page).await, 401, "password");
    check_page(&unlock(&visitor, &page, "wrong").await, 401, "Wrong password.");
    assert_eq!(use_of(&client, &api).await, (json!(0), Value::Null));
    client.patch_json(&api, json!({"password": null})).await.check_done();
    check_page(&visitor.get(&page).await, 200, "1.txt");
    world.clock.advance(MINUTE_MS);
    check_page(&visitor.get(&format!("{page}?file=a/1.txt")).await, 200, "1.txt");
    let viewed = (json!(2), json!("2026-01-31T12:01:00.000Z"));
    assert_eq!(use_of(&client, &api).await, viewed);
    world.clock.advance(MINUTE_MS);
    assert_eq!(visitor.head_with(&page, &[]).await.status, 200);
    visitor.get_with(&page, &[("sec-purpose", "prefetch")]).await;
    check_page(&visitor.get(&format!("{page}?path=x/")).await, 404, "File not found");
    assert_eq!(use_of(&client, &api).await, viewed);
    assert_eq!(visitor.get(&format!("{page}/f/a/1.txt")).await.text(), "one");
    assert_eq!(use_of(&client, &api).await, (json!(2), json!("2026-01-31T12:02:00.000Z")));
    // An edit keeps the use.
    client.patch_json(&api, json!({"downloadsMax": 5})).await.check_done();
    world.clock.advance(MINUTE_MS);
    visitor.get(&format!("{page}/zip")).await;
    let used = (json!(2), json!("2026-01-31T12:03:00.000Z"));
    assert_eq!(use_of(&client, &api).await, used);
    // Across a restart.
    world.state.catalog.shared_links().write_uses().unwrap();
    let again = world.found_on(world.disk.fork());
    let client = Client::new(again.app(), client.key.clone());
    assert_eq!(use_of(&client, &api).await, used);
    assert_eq!(client.get_json(&api).await["link"]["downloadCount"], 2);
}

#[tokio::test]
async fn upload_to_a_link_is_its_last_use() {
    let (world, client) = world().await;
    let (api, page) = create(&client, json!({"kind": "upload", "paths": ["inbox/"]})).await;
    world.clock.advance(HOUR_MS);
    let form = Form::new().file("files", "b.txt", None, b"two");
    assert_eq!(world.anonymous().upload(&format!("{page}/u"), form).await.status, 200);
    assert_eq!(use_of(&client, &api).await, (json!(0), json!("2026-01-31T13:00:00.000Z")));
}

#[tokio::test]
async fn views_of_a_link_are_not_written_one_by_one() {
    let (world, client) = world().await;
    let (api, page) = create(&client, json!({"paths": ["a/"]})).await;
    let links = world.state.catalog.shared_links();
    world.anonymous().get(&page).await;
    links.write_uses().unwrap();
    for _ in 0..20 {
        check_page(&world.anonymous().get(&page).await, 200, "1.txt");
    }
    assert_eq!(use_of(&client, &api).await.0, 21);
    // A crash loses those since the last write.
    let again = world.found_on(world.disk.fork());
    let client = Client::new(again.app(), client.key.clone());
    assert_eq!(use_of(&client, &api).await.0, 1);
}

/// Returns the details of the entries with an action, the oldest first.
async fn details(client: &Client, action: &str) -> Vec<Value> {
    let reply = client.get_json(&format!("/api/audit?action={action}")).await;
    let entries = reply["entries"].as_array().unwrap();
    entries.iter().rev().map(|entry| entry["detail"].clone()).collect()
}

#[tokio::test]
async fn link_downloads_are_summed_by_hour_in_the_audit_log() {
    let (world, client) = world().await;
    let (api, page) = create(&client, json!({"paths": ["a/"]})).await;
    let links = world.state.catalog.shared_links();
    for address in ["192.0.2.1", "192.0.2.2", "192.0.2.1"] {
        let visitor = world.anonymous().at(address);
        assert_eq!(visitor.get(&format!("{page}/f/a/1.txt")).await.text(), "one");
    }
    assert_eq!(world.anonymous().at("192.0.2.1").get(&format!("{page}/zip")).await.status, 200);
    // Not before the hour has passed.
    world.clock.advance(HOUR_MS - 1);
    links.write_events().unwrap();
    assert_eq!(details(&client, "link.download").await, Vec::<Value>::new());
    world.clock.advance(1);
    assert_eq!(world.anonymous().get(&format!("{page}/f/a/1.txt")).await.text(), "one");
    links.write_events().unwrap();
    let first = "hour: 2026-01-31T12:00:00.000Z, files: 3, archives: 1, addresses: 2";
    assert_eq!(details(&client, "link.download").await, [first]);
    // As at a stop.
    links.write_all_events().unwrap();
    links.write_all_events().unwrap();
    let second = "hour: 2026-01-31T13:00:00.000Z, files: 1, addresses: 0";
    assert_eq!(details(&client, "link.download").await, [first, second]);
    let reply = client.get_json("/api/audit?action=link.download").await;
    let entry = &reply["entries"][0];
    assert_eq!(entry["actor"]["kind"], "server");
    assert_eq!(entry["bucketName"], "secret");
    assert_eq!(format!("/api/links/{}", entry["target"].as_str().unwrap()), api);
    let secret = page.strip_prefix("/-/s/").unwrap();
    assert!(!reply.to_string().contains(secret) && !reply.to_string().contains("192.0.2."));
    // Others do not see it.
    world.account("bob");
    let bob = world.client_of("bob", ApiKeySettings::default());
    assert_eq!(details(&bob, "link.download").await, Vec::<Value>::new());
}

#[tokio::test]
async fn refused_link_requests_are_summed_by_reason_in_the_audit_log() {
    let (world, client) = world().await;
    let wish = json!({"paths": ["a/"], "password": "tern-42", "expiresIn": 120});
    let (_, locked) = create(&client, wish).await;
    let (_, limited) = create(&client, json!({"paths": ["a/"], "downloadsMax": 1})).await;
    let (api, ended) = create(&client, json!({"paths": ["a/"]})).await;
    client.delete(&api).await.check_done();
    let visitor = world.anonymous().at("192.0.2.1");
    // Locked, unknown and missing are no refusals.
    check_page(&visitor.get(&locked).await, 401, "password");
    visitor.get(&format!("/-/s/{}", "a".repeat(26))).await;
    visitor.get(&format!("{limited}/f/none")).await;
    for number in 0..12 {
        let status = unlock(&visitor, &locked, "gull-17").await.status.as_u16();
        assert_eq!(status, if number < 10 { 401 } else { 429 });
    }
    for status in [200, 410, 410] {
        assert_eq!(visitor.get(&format!("{limited}/f/a/1.txt")).await.status, status);
    }
    check_page(&world.anonymous().at("192.0.2.2").get(&ended).await, 410, "no longer");
    world.clock.advance(2 * MINUTE_MS);
    check_page(&visitor.get(&locked).await, 410, "expired");
    let standing = AccountSettings {
        standing: Some(FairUseStanding::Suspended),
        ..AccountSettings::default()
    };
    let (_, blocked) = create(&client, json!({"paths": ["a/"]})).await;
    world.edit_account("ann", standing);
    check_page(&visitor.get(&blocked).await, 410, "no longer available");
    let good =
        AccountSettings { standing: Some(FairUseStanding::Good), ..AccountSettings::default() };
    world.edit_account("ann", good);
    world.state.catalog.shared_links().write_all_events().unwrap();
    let mut found: Vec<_> = details(&client, "link.refused").await;
    found.sort_by_key(Value::to_string);
    let hour = "hour: 2026-01-31T12:00:00.000Z";
    let expected = [
        format!("{hour}, blocked: 1, addresses: 1"),
        format!("{hour}, ended: 1, addresses: 1"),
        format!("{hour}, limit reached: 2, addresses: 1"),
        format!("{hour}, wrong password: 10, too many attempts: 2, expired: 1, addresses: 1"),
    ];
    assert_eq!(found, expected);
    assert!(!Value::from(found).to_string().contains("gull-17"));
}

/// Ends a running download in some way.
type Cut = fn(&World, &str);

/// Begins a download, cuts it, and returns the promised length and the bytes received.
async fn cut(server: &Listening, path: &str, cut: impl FnOnce()) -> (u64, u64) {
    let request = format!("GET {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    let mut wire = server.send(request).await;
    let head = wire.read_response_to_head().await;
    assert_eq!(head.status, 200, "{path}");
    let promised = head.header("content-length").parse().expect("a length");
    cut();
    let mut body = Vec::new();
    loop {
        // Large bodies may take longer on a busy machine, but always make progress.
        let read = tokio::time::timeout(SOON, wire.0.read_buf(&mut body)).await;
        match read.expect("more of the body, or the end of the connection") {
            Ok(0) | Err(_) => return (promised, body.len() as u64),
            Ok(_) => {}
        }
    }
}

#[tokio::test]
async fn running_link_downloads_are_cut_when_access_ends() {
    let ways: [(&str, Cut); 4] = [
        ("end", |world, id| {
            let id = catalog::SharedLinkId::parse(id).unwrap();
            world.state.catalog.shared_links().end(&id).unwrap();
        }),
        ("suspension", |world, _| {
            let standing = Some(FairUseStanding::Suspended);
            world.edit_account("ann", AccountSettings { standing, ..Default::default() });
        }),
        ("bucket", |world, _| {
            let name = "secret".to_owned();
            world.manage(AdminRequest::DeleteBucket { name, force: true });
        }),
        ("key", |world, _| {
            let keys = world.state.catalog.api_keys();
            let link = world.state.catalog.shared_links().select(|_| true).remove(0);
            keys.revoke(link.api_key.as_ref().unwrap()).unwrap();
        }),
    ];
    for (name, way) in ways {
        let (world, client) = world().await;
        client.put("/secret/a/", "2.bin", &vec![b'x'; LARGE_BYTES]).await;
        let server = world.listen(ConnectionOptions::new()).await;
        let (api, page) = create(&client, json!({"paths": ["a/"]})).await;
        let id = api.strip_prefix("/api/links/").unwrap();
        let file = format!("{page}/f/a/2.bin");
        let (promised, received) = cut(&server, &file, || {}).await;
        assert_eq!((promised, received), (LARGE_BYTES as u64, LARGE_BYTES as u64));
        let zip = format!("{page}/zip");
        let (zip_promised, zip_received) = cut(&server, &zip, || {}).await;
        assert_eq!(zip_promised, zip_received);
        let path = if name == "end" { &zip } else { &file };
        let (promised, received) = cut(&server, path, || way(&world, id)).await;
        assert!(received < promised, "{name}: {received} of {promised}");
    }
}

#[tokio::test]
async fn file_download_is_cut_when_its_link_is_ended_by_request() {
    let (world, client) = world().await;
    client.put("/secret/a/", "2.bin", &vec![b'x'; LARGE_BYTES]).await;
    let server = world.listen(ConnectionOptions::new()).await;
    let (api, page) = create(&client, json!({"paths": ["a/"]})).await;
    let request = format!("GET {page}/f/a/2.bin HTTP/1.1\r\nHost: a\r\n\r\n");
    let mut wire = server.send(request).await;
    let head = wire.read_response_to_head().await;
    assert_eq!(head.header("content-length"), LARGE_BYTES.to_string());
    // A slow reader: the buffers are full.
    tokio::time::sleep(Duration::from_millis(300)).await;
    client.delete(&api).await.check_done();
    let (body, _) = wire.read_remaining().await;
    assert!(body.len() < LARGE_BYTES && !body.is_empty(), "{}", body.len());
}
