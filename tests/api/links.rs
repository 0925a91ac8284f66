//! Shared links and their pages: `API.md`, Links.

use std::time::Duration;

use axum::body::Body;
use catalog::{Access, Actor, FairUseStanding, Scope, SharedLinkId};
use http::Method;
use serde_json::{Value, json};
use server::management::{AccountSettings, AdminRequest, ApiKeySettings, BucketSettings};
use service::Config;
use tests::fixtures::{key_of_folder, key_with_scopes, path_of};
use tests::{Browser, Client, Reply, World};

use crate::images::png;

const LINKS: &str = "/api/buckets/secret/links";
const DAY_MS: u64 = 24 * 60 * 60 * 1_000;

/// Creates Ann's private bucket `secret` with some files.
pub(super) async fn world() -> (World, Client) {
    let (world, client) = World::with_bucket(1);
    let private = BucketSettings { access: Some(Access::Private), ..Default::default() };
    world.bucket("ann", "secret", private);
    for (folder, file, content) in
        [("a/", "1.txt", "one"), ("a/b/", "2.txt", "two"), ("x/", "hidden.txt", "hidden")]
    {
        client.put(&format!("/secret/{folder}"), file, content.as_bytes()).await;
    }
    (world, client)
}

/// Creates a link; returns it, and the path of its page.
pub(super) async fn create(client: &Client, wish: Value) -> (Value, String) {
    let link = client.post_json(LINKS, wish).await.check_done()["link"].clone();
    let path = path_of(&link["url"]);
    (link, path)
}

/// Checks that a response is a page with a text.
#[track_caller]
pub(super) fn check_page(reply: &Reply, status: u16, says: &str) {
    assert_eq!(reply.status, status, "{}", reply.text());
    assert_eq!(reply.header("content-type"), "text/html; charset=utf-8");
    assert_eq!(reply.header("cache-control"), "private, no-store");
    assert_eq!(reply.header("x-robots-tag"), "noindex");
    assert!(["no-referrer", "same-origin"].contains(&reply.header("referrer-policy")));
    let policy = reply.header("content-security-policy");
    assert!(policy.contains("default-src 'none'") && !policy.contains("unsafe"), "{policy}");
    assert!(reply.text().contains(says), "{says}: {}", reply.text());
}

pub(super) async fn unlock(client: &Client, path: &str, password: &str) -> Reply {
    let headers = [("content-type", "application/x-www-form-urlencoded")];
    let form = Body::from(format!("password={password}"));
    client.send(Method::POST, &format!("{path}/unlock"), &headers, form).await
}

#[tokio::test]
async fn shared_folder_opens_a_page_and_delivers_its_files() {
    let (world, client) = world().await;
    let (link, path) = create(&client, json!({"paths": ["a/"], "message": "Hi\nthere"})).await;
    assert_eq!(link["state"], "active");
    assert_eq!(link["expiresAt"], "2026-02-07T12:00:00.000Z");
    assert_eq!((&link["hasPassword"], &link["zip"]), (&json!(false), &json!(true)));
    let anonymous = world.anonymous();
    let page = anonymous.get(&path).await;
    for says in ["1.txt", "3 B", "Hi\nthere", "until 7 Feb 2026, 12:00 UTC", "cdn.example.com"] {
        check_page(&page, 200, says);
    }
    assert!(!page.text().contains("ann") && !page.text().contains("hidden.txt"), "{}", page.text());
    check_page(&anonymous.get(&format!("{path}?path=a/b/")).await, 200, "2.txt");
    check_page(&anonymous.get(&format!("{path}?file=a/b/2.txt")).await, 200, "Download");
    let file = anonymous.get(&format!("{path}/f/a/b/2.txt")).await;
    assert_eq!((file.status.as_u16(), file.text().as_str()), (200, "two"));
    assert_eq!(file.header("cache-control"), "private, no-store");
    assert!(file.header("content-security-policy").contains("sandbox"));
    let range = [("range", "bytes=1-")];
    assert_eq!(anonymous.get_with(&format!("{path}/f/a/1.txt"), &range).await.text(), "ne");
    let archive = anonymous.get(&format!("{path}/zip")).await;
    assert_eq!(archive.header("content-disposition"), "attachment; filename=\"a.zip\"");
    assert!(archive.body.starts_with(b"PK"));
    for outside in ["x/hidden.txt", "a", "none", "a/../x/hidden.txt", "a/%2e%2e/x/hidden.txt"] {
        let reply = anonymous.get(&format!("{path}/f/{outside}")).await;
        assert!([400, 404].contains(&reply.status.as_u16()), "{outside}: {}", reply.status);
    }
    for outside in ["?path=x/", "?path=", "?file=x/hidden.txt", "?path=a", "?path=/"] {
        let reply = anonymous.get(&format!("{path}{outside}")).await;
        assert!(!reply.text().contains("hidden.txt"), "{outside}");
    }
    check_page(&anonymous.get(&format!("{path}?path=x/")).await, 404, "File not found");
}

#[tokio::test]
async fn link_of_a_file_shows_it() {
    let (world, client) = world().await;
    client.put("/secret/a/", "p.png", &png(600, 400)).await;
    let (_, path) = create(&client, json!({"paths": ["a/p.png"]})).await;
    let page = world.anonymous().get(&path).await;
    let image = format!("{path}/f/a/p.png?width=1600&amp;height=1600&amp;format=auto");
    check_page(&page, 200, &image);
    let (_, path) = create(&client, json!({"paths": ["a/p.png", "a/1.txt", "a/b/"]})).await;
    let page = world.anonymous().get(&path).await;
    for says in ["3 items", "p.png", "1.txt", "<bdi>b/</bdi>", "width=400"] {
        check_page(&page, 200, says);
    }
    client.delete("/secret/a/p.png").await.check_done();
    check_page(&world.anonymous().get(&path).await, 200, "1 file is no longer available.");
}

#[tokio::test]
async fn hostile_names_in_link_pages_are_escaped() {
    let (world, client) = world().await;
    client.put("/secret/a/", "<b>&\".txt", b"x").await;
    let wish = json!({"paths": ["a/"], "title": "<script>alert(1)</script>", "message": "<i>"});
    let (_, path) = create(&client, wish).await;
    let text = world.anonymous().get(&path).await.text();
    assert!(text.contains("&lt;script&gt;") && text.contains("&lt;b&gt;"), "{text}");
    assert!(!text.contains("<script") && !text.contains("<b>") && !text.contains("<i>"), "{text}");
}

#[tokio::test]
async fn password_locks_every_part_of_a_link() {
    let (world, client) = world().await;
    let (link, path) = create(&client, json!({"paths": ["a/"], "password": "tern-42"})).await;
    assert_eq!(link["hasPassword"], true);
    assert!(!link.to_string().contains("tern-42"));
    let visitor = world.anonymous().at("192.0.2.1");
    for part in ["", "/f/a/1.txt", "/zip", "?file=a/1.txt"] {
        let reply = visitor.get(&format!("{path}{part}")).await;
        check_page(&reply, 401, "protected by a password");
        assert!(!reply.text().contains("1.txt") && !reply.text().contains("<title>a"), "{part}");
    }
    check_page(&unlock(&visitor, &path, "wrong").await, 401, "Wrong password.");
    let unlocked = unlock(&visitor, &path, "tern-42").await;
    assert_eq!((unlocked.status.as_u16(), unlocked.header("location")), (303, &*path));
    let cookie = unlocked.header("set-cookie").to_owned();
    for part in ["HttpOnly", "SameSite=Lax", "Secure", &format!("Path={path}")] {
        assert!(cookie.contains(part), "{cookie}");
    }
    let cookie = cookie.split(';').next().unwrap().to_owned();
    let cookie = [("cookie", &*cookie)];
    check_page(&visitor.get_with(&path, &cookie).await, 200, "1.txt");
    let file = format!("{path}/f/a/1.txt");
    assert_eq!(visitor.get_with(&file, &cookie).await.text(), "one");
    // Another link, another password, and time.
    let (_, other) = create(&client, json!({"paths": ["x/"], "password": "tern-42"})).await;
    check_page(&visitor.get_with(&other, &cookie).await, 401, "password");
    let change = format!("/api/links/{}", link["id"].as_str().unwrap());
    world.clock.advance(1);
    client.patch_json(&change, json!({"password": "gull-17"})).await.check_done();
    check_page(&visitor.get_with(&path, &cookie).await, 401, "password");
    let unlocked = unlock(&visitor, &path, "gull-17").await;
    let cookie = unlocked.header("set-cookie").split(';').next().unwrap().to_owned();
    let cookie = [("cookie", &*cookie)];
    check_page(&visitor.get_with(&path, &cookie).await, 200, "1.txt");
    world.clock.advance(DAY_MS / 2);
    check_page(&visitor.get_with(&path, &cookie).await, 401, "password");
    client.patch_json(&change, json!({"password": null})).await.check_done();
    check_page(&visitor.get(&path).await, 200, "1.txt");
}

#[tokio::test]
async fn guesses_of_a_link_password_are_limited() {
    let (world, client) = world().await;
    let (_, path) = create(&client, json!({"paths": ["a/"], "password": "tern-42"})).await;
    // The burst of a link, from any number of addresses.
    for number in 1..=10 {
        let visitor = world.anonymous().at(&format!("192.0.2.{number}"));
        check_page(&unlock(&visitor, &path, "wrong").await, 401, "Wrong password.");
    }
    let visitor = world.anonymous().at("192.0.2.99");
    let limited = unlock(&visitor, &path, "tern-42").await;
    check_page(&limited, 429, "Try again in 30 s.");
    assert_eq!(limited.header("retry-after"), "30");
    world.clock.advance(30_000);
    assert_eq!(unlock(&visitor, &path, "tern-42").await.status, 303);
}

#[tokio::test]
async fn guesses_of_link_secrets_count_as_failed_authentication() {
    let (world, _) = world().await;
    let visitor = world.anonymous().at("192.0.2.1");
    let unknown = format!("/-/s/{}", "a".repeat(26));
    for path in [&*unknown, "/-/s/short", "/-/s/%2e%2e"] {
        check_page(&visitor.get(path).await, 404, "doesn’t exist");
    }
    for _ in 0..57 {
        check_page(&visitor.get(&format!("{unknown}/f/x")).await, 404, "doesn’t exist");
    }
    visitor.get(&unknown).await.check_error(429, "rate_limited");
}

#[tokio::test]
async fn limited_link_allows_exactly_its_downloads() {
    let (world, client) = world().await;
    client.put("/secret/a/", "p.png", &png(600, 400)).await;
    let wish = json!({"paths": ["a/"], "downloadsMax": 3});
    let (link, path) = create(&client, wish).await;
    let visitor = world.anonymous();
    let file = format!("{path}/f/a/1.txt");
    // Nothing of this is a download.
    for _ in 0..3 {
        check_page(&visitor.get(&path).await, 200, "1.txt");
        assert_eq!(visitor.head_with(&file, &[]).await.status, 200);
        let preview = visitor.get(&format!("{path}/f/a/p.png?width=400&format=webp")).await;
        assert_eq!(preview.header("content-type"), "image/webp");
        visitor.get_with(&file, &[("sec-purpose", "prefetch")]).await.check_error(403, "forbidden");
    }
    // A preview that would be the file itself.
    let preview = visitor.get(&format!("{path}/f/a/1.txt?width=400")).await;
    check_page(&preview, 404, "File not found");
    // A range has no effect, so that no part leaves uncounted.
    let ranged = visitor.get_with(&file, &[("range", "bytes=1-")]).await;
    assert_eq!((ranged.status.as_u16(), ranged.text().as_str()), (200, "one"));
    assert!(visitor.get(&format!("{path}/zip")).await.body.starts_with(b"PK"));
    let large = visitor.get(&format!("{path}/f/a/p.png?width=2000&format=webp")).await;
    assert_eq!(large.status, 200);
    check_page(&visitor.get(&file).await, 410, "download limit");
    check_page(&visitor.get(&path).await, 410, "download limit");
    let id = link["id"].as_str().unwrap();
    let link = client.get_json(&format!("/api/links/{id}")).await["link"].clone();
    assert_eq!((&link["state"], &link["downloadCount"]), (&json!("used_up"), &json!(3)));
    let more = json!({"downloadsMax": 4});
    client.patch_json(&format!("/api/links/{id}"), more).await.check_done();
    assert_eq!(visitor.get(&file).await.text(), "one");
    check_page(&visitor.get(&file).await, 410, "download limit");
}

#[tokio::test]
async fn concurrent_downloads_of_a_limited_link_are_exact() {
    let (world, client) = world().await;
    let (_, path) = create(&client, json!({"paths": ["a/"], "downloadsMax": 5})).await;
    let visitor = world.anonymous();
    let requests = (0..20).map(|_| {
        let (visitor, file) = (visitor.clone(), format!("{path}/f/a/1.txt"));
        tokio::spawn(async move { visitor.get(&file).await.status.as_u16() })
    });
    let mut statuses = Vec::new();
    for request in requests.collect::<Vec<_>>() {
        statuses.push(request.await.unwrap());
    }
    assert_eq!(statuses.iter().filter(|status| **status == 200).count(), 5, "{statuses:?}");
    assert_eq!(statuses.iter().filter(|status| **status == 410).count(), 15, "{statuses:?}");
    // Across a restart.
    let again = world.found_on(world.disk.fork());
    check_page(&again.anonymous().get(&path).await, 410, "download limit");
}

#[tokio::test]
async fn links_expire_and_end() {
    let (world, client) = world().await;
    let (_, expiring) = create(&client, json!({"paths": ["a/"], "expiresIn": 60})).await;
    let (link, ended) = create(&client, json!({"paths": ["a/"], "expiresAt": null})).await;
    assert_eq!(link["expiresAt"], Value::Null);
    let visitor = world.anonymous();
    world.clock.advance(59_999);
    check_page(&visitor.get(&expiring).await, 200, "1.txt");
    world.clock.advance(1);
    for part in ["", "/f/a/1.txt", "/zip"] {
        let reply = visitor.get(&format!("{expiring}{part}")).await;
        check_page(&reply, 410, "This link has expired");
        assert!(!reply.text().contains("1.txt"));
    }
    check_page(&visitor.get(&ended).await, 200, "1.txt");
    let api = format!("/api/links/{}", link["id"].as_str().unwrap());
    client.delete(&api).await.check_done();
    check_page(&visitor.get(&ended).await, 410, "no longer available");
    client.delete(&api).await.check_error(409, "link_ended");
    client.patch_json(&api, json!({"title": "x"})).await.check_error(409, "link_ended");
    assert_eq!(client.get_json(&api).await["link"]["state"], "ended");
    // Listed for 30 days.
    world.clock.advance(30 * DAY_MS);
    let state = &world.state;
    state.catalog.shared_links().delete_old().unwrap();
    client.get(&api).await.check_error(404, "link_not_found");
    check_page(&visitor.get(&ended).await, 404, "doesn’t exist");
}

#[tokio::test]
async fn ended_link_reopens_within_a_minute_only() {
    let (world, client) = world().await;
    let (link, path) = create(&client, json!({"paths": ["a/"]})).await;
    let api = format!("/api/links/{}", link["id"].as_str().unwrap());
    let visitor = world.anonymous();
    // Of an active link it changes nothing.
    client.patch_json(&api, json!({"ended": false})).await.check_done();
    client.delete(&api).await.check_done();
    check_page(&visitor.get(&path).await, 410, "no longer available");
    client.patch_json(&api, json!({"ended": true})).await.check_parameter("ended");
    let both = json!({"ended": false, "title": "x"});
    client.patch_json(&api, both).await.check_parameter("title");
    world.account("bob");
    let bob = world.client_of("bob", ApiKeySettings::default());
    bob.patch_json(&api, json!({"ended": false})).await.check_error(404, "link_not_found");
    check_page(&visitor.get(&path).await, 410, "no longer available");
    world.clock.advance(60_000);
    let reopened = client.patch_json(&api, json!({"ended": false})).await.check_done();
    assert_eq!(reopened["link"]["state"], "active");
    check_page(&visitor.get(&path).await, 200, "1.txt");
    let entry = client.get_json("/api/audit?action=link.change").await["entries"][0].take();
    assert_eq!(entry["detail"], "ended_by: none, ended_ms: null");
    // A link that a manager ended stays ended.
    let manager = Actor { account: Some("manager".to_owned()), ..Actor::default() };
    let catalog = world.state.catalog.acting_as(manager);
    let id = SharedLinkId::parse(link["id"].as_str().unwrap()).unwrap();
    catalog.shared_links().end(&id).unwrap();
    client.patch_json(&api, json!({"ended": false})).await.check_error(409, "link_ended");
    catalog.shared_links().reopen(&id).unwrap();
    client.delete(&api).await.check_done();
    world.clock.advance(60_001);
    client.patch_json(&api, json!({"ended": false})).await.check_error(409, "link_ended");
    check_page(&visitor.get(&path).await, 410, "no longer available");
}

#[tokio::test]
async fn link_days_max_bounds_the_lifetime_of_links() {
    let config = Config { link_days_max: 3, plan_rates: false, ..Config::default() };
    let (world, client) = World::with_bucket_and(1, config);
    client.put("/photos/a/", "1.txt", b"one").await;
    let links = "/api/buckets/photos/links";
    let days = |days: u64| 24 * 60 * 60 * days;
    let link = client.post_json(links, json!({"paths": ["a/"]})).await.check_done()["link"].clone();
    assert_eq!(link["expiresAt"], "2026-02-03T12:00:00.000Z");
    let api = format!("/api/links/{}", link["id"].as_str().unwrap());
    assert_eq!(client.get_json(links).await["daysMax"], 3);
    for (expiry, parameter) in [
        (json!({"expiresIn": days(3) + 1}), "expiresIn"),
        (json!({"expiresIn": null}), "expiresIn"),
        (json!({"expiresAt": null}), "expiresAt"),
        (json!({"expiresAt": "2026-02-03T12:00:01Z"}), "expiresAt"),
    ] {
        let mut wish = expiry.clone();
        wish["paths"] = json!(["a/"]);
        let refused = client.post_json(links, wish).await;
        refused.check_parameter(parameter);
        assert!(refused.text().contains("at most 3 days"), "{}", refused.text());
        client.patch_json(&api, expiry).await.check_parameter(parameter);
    }
    let upload = json!({"kind": "upload", "paths": ["in/"], "expiresIn": days(4)});
    client.post_json(links, upload).await.check_parameter("expiresIn");
    world.clock.advance(DAY_MS);
    client.patch_json(&api, json!({"expiresIn": days(3)})).await.check_done();
    client.patch_json(&api, json!({"title": "x"})).await.check_done();
    // A longer maximum leaves the default.
    let config = Config { link_days_max: 30, plan_rates: false, ..Config::default() };
    let (_, client) = World::with_bucket_and(2, config);
    client.put("/photos/a/", "1.txt", b"one").await;
    let link = client.post_json(links, json!({"paths": ["a/"]})).await.check_done()["link"].clone();
    assert_eq!(link["expiresAt"], "2026-02-07T12:00:00.000Z");
}

#[tokio::test]
async fn link_has_the_current_rights_of_its_creator() {
    let (world, _) = world().await;
    let issued = world.api_key("ann", ApiKeySettings::default());
    let client = Client::new(world.app(), Some(issued.key));
    let (_, of_key) = create(&client, json!({"paths": ["a/"]})).await;
    let mut ann = Browser::signed_in(&world, "ann").await;
    let reply = ann.post(LINKS, json!({"paths": ["a/"]})).await.json();
    let of_session = path_of(&reply["link"]["url"]);
    assert_eq!(ann.delete("/-/session").await.status, 204);
    let visitor = world.anonymous();
    check_page(&visitor.get(&of_session).await, 200, "1.txt");
    world.manage(AdminRequest::RevokeApiKey { id: issued.api_key.id });
    check_page(&visitor.get(&of_key).await, 410, "no longer available");
    let standing = |standing| AccountSettings { standing: Some(standing), ..Default::default() };
    world.edit_account("ann", standing(FairUseStanding::Suspended));
    check_page(&visitor.get(&of_session).await, 410, "no longer available");
    world.edit_account("ann", standing(FairUseStanding::Good));
    check_page(&visitor.get(&of_session).await, 200, "1.txt");
}

#[tokio::test]
async fn links_of_a_deleted_bucket_do_not_open_its_successor() {
    let (world, client) = world().await;
    let (link, path) = create(&client, json!({"paths": [""], "expiresIn": null})).await;
    client.delete("/api/buckets/secret?force=true").await.check_done();
    let status = world.anonymous().get(&path).await.status.as_u16();
    assert!([404, 410].contains(&status), "{status}");
    world.clock.advance(1);
    // The name is free when the files are removed.
    while client.post_json("/api/buckets", json!({"bucketName": "secret"})).await.status != 200 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    client.put("/secret/a/", "new.txt", b"new").await;
    check_page(&world.anonymous().get(&path).await, 404, "doesn’t exist");
    let api = format!("/api/links/{}", link["id"].as_str().unwrap());
    client.get(&api).await.check_error(404, "link_not_found");
}

#[tokio::test]
async fn links_are_listed_by_bucket_state_and_path() {
    let (world, client) = world().await;
    for number in 0..3 {
        create(&client, json!({"paths": ["a/"], "title": format!("link {number}")})).await;
        world.clock.advance(1);
    }
    create(&client, json!({"paths": ["x/hidden.txt"], "expiresIn": 60})).await;
    let titles = |reply: &Value| -> Vec<String> {
        let links = reply["links"].as_array().unwrap();
        links.iter().map(|link| link["title"].as_str().unwrap().to_owned()).collect()
    };
    let page = client.get_json("/api/links?limit=2").await;
    assert_eq!(titles(&page), ["", "link 2"]);
    let cursor = page["nextCursor"].as_str().unwrap();
    let rest = client.get_json(&format!("/api/links?limit=2&cursor={cursor}")).await;
    assert_eq!(
        (titles(&rest), &rest["nextCursor"]),
        (vec!["link 1".into(), "link 0".into()], &Value::Null)
    );
    let of_file = client.get_json(&format!("{LINKS}?path=a/b/2.txt")).await;
    assert_eq!(titles(&of_file).len(), 3);
    for (path, count, exact) in [("a/", 3, 3), ("a/b/", 3, 0), ("x/", 0, 0), ("x/hidden.txt", 1, 1)]
    {
        let found = client.get_json(&format!("{LINKS}?path={path}")).await;
        assert_eq!(titles(&found).len(), count, "{path}");
        let found = client.get_json(&format!("{LINKS}?path={path}&exact=true")).await;
        assert_eq!(titles(&found).len(), exact, "{path}");
    }
    let other = world.client_of("ann", ApiKeySettings::default());
    assert_eq!(titles(&other.get_json(LINKS).await).len(), 4);
    assert_eq!(titles(&other.get_json(&format!("{LINKS}?own=true")).await).len(), 0);
    assert_eq!(titles(&client.get_json(&format!("{LINKS}?own=true")).await).len(), 4);
    world.clock.advance(60_000);
    assert_eq!(titles(&client.get_json("/api/links?state=expired").await), [""]);
    assert_eq!(titles(&client.get_json("/api/links?state=active").await).len(), 3);
    client.get("/api/links?state=open").await.check_parameter("state");
    client.get("/api/links?cursor=x").await.check_parameter("cursor");
}

#[tokio::test]
async fn links_of_others_are_hidden() {
    let (world, client) = world().await;
    let (link, _) = create(&client, json!({"paths": ["a/"]})).await;
    let api = format!("/api/links/{}", link["id"].as_str().unwrap());
    world.account("bob");
    let bob = world.client_of("bob", ApiKeySettings::default());
    let folder = world.client_of("ann", key_of_folder("x/"));
    for other in [&bob, &folder] {
        other.get(&api).await.check_error(404, "link_not_found");
        other.patch_json(&api, json!({"title": "x"})).await.check_error(404, "link_not_found");
        other.delete(&api).await.check_error(404, "link_not_found");
        assert_eq!(other.get_json("/api/links").await["links"], json!([]));
    }
    bob.get(LINKS).await.check_error(404, "bucket_not_found");
    bob.post_json(LINKS, json!({"paths": ["a/"]})).await.check_error(404, "bucket_not_found");
    folder.post_json(LINKS, json!({"paths": ["a/"]})).await.check_error(403, "forbidden");
    for missing in [Scope::Presign, Scope::Read, Scope::List] {
        let scopes: Vec<_> = Scope::ALL.into_iter().filter(|scope| *scope != missing).collect();
        let client = world.client_of("ann", key_with_scopes(&scopes));
        client.post_json(LINKS, json!({"paths": ["a/"]})).await.check_error(403, "forbidden");
    }
}

#[tokio::test]
async fn invalid_link_settings_are_rejected() {
    let (_world, client) = world().await;
    let post = |wish: Value| client.post_json(LINKS, wish);
    for (wish, parameter) in [
        (json!({}), "paths"),
        (json!({"paths": []}), "paths"),
        (json!({"paths": vec!["a/1.txt"; 501]}), "paths"),
        (json!({"paths": ["a/"], "expiresIn": 59}), "expiresIn"),
        (json!({"paths": ["a/"], "expiresIn": 315_360_001_u64}), "expiresIn"),
        (json!({"paths": ["a/"], "expiresAt": "soon"}), "expiresAt"),
        (json!({"paths": ["a/"], "expiresAt": "2020-01-01T00:00:00Z"}), "expiresAt"),
        (json!({"paths": ["a/"], "expiresIn": 60, "expiresAt": null}), "expiresAt"),
        (json!({"paths": ["a/"], "password": "abc"}), "password"),
        (json!({"paths": ["a/"], "password": "x".repeat(129)}), "password"),
        (json!({"paths": ["a/"], "downloadsMax": 0}), "downloadsMax"),
        (json!({"paths": ["a/"], "downloadsMax": 1_000_001}), "downloadsMax"),
        (json!({"paths": ["a/"], "title": "x".repeat(101)}), "title"),
        (json!({"paths": ["a/"], "title": "a\nb"}), "title"),
        (json!({"paths": ["a/"], "message": "x".repeat(501)}), "message"),
        (json!({"paths": ["a/"], "layout": "wide"}), "layout"),
        (json!({"paths": ["a/"], "secret": "x"}), "secret"),
        (json!({"paths": ["a/"], "ended": true}), "ended"),
    ] {
        post(wish).await.check_parameter(parameter);
    }
    post(json!({"paths": ["none"]})).await.check_error(404, "file_not_found");
    post(json!({"paths": ["none/"]})).await.check_error(404, "file_not_found");
    post(json!({"paths": ["a/../x/"]})).await.check_error(400, "bad_path");
}

#[tokio::test]
async fn link_pages_ignore_keys_and_sessions() {
    let (world, client) = world().await;
    let (_, path) = create(&client, json!({"paths": ["a/"], "password": "tern-42"})).await;
    check_page(&client.get(&path).await, 401, "password");
    let mut ann = Browser::signed_in(&world, "ann").await;
    check_page(&ann.get(&path).await, 401, "password");
    let outside = client.get(&format!("{path}/f/x/hidden.txt")).await;
    check_page(&outside, 401, "password");
}
