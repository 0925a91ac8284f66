//! Presigned tokens: specification 3 and 4.4, clients 3.4 and 13. That a token permits exactly one upload is tested in
//! `presign_once`.

use axum::body::Body;
use catalog::{FairUseStanding, Scope};
use http::Method;
use serde_json::{Value, json};
use server::management::{AccountSettings, AdminRequest, ApiKeySettings, BucketSettings};
use service::Config;
use tests::fixtures::{file_form, key_with_scopes, path_of};
use tests::world::PUBLIC_URL;
use tests::{Client, Form, Reply, World};

const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR";

async fn issue(client: &Client, query: &str) -> Value {
    client.get_json(&format!("/api/presigned-url?{query}")).await
}

/// Returns the path that the token is posted to.
async fn token_path(client: &Client, query: &str) -> String {
    path_of(&issue(client, query).await["url"])
}

async fn use_token(client: &Client, path: &str) -> Reply {
    client.without_key().upload_file(path, "a.txt", b"1").await
}

#[tokio::test]
async fn presign_response_has_every_client_field() {
    let (_world, client) = World::with_bucket(1);
    let reply = client.get("/api/presigned-url?path=photos/img/&expiresAt=600").await;
    assert_eq!(reply.status, 200);
    assert_eq!(reply.header("cache-control"), "no-store");
    let body = reply.json();
    let token = body["token"].as_str().unwrap();
    assert!(token.bytes().all(|byte| byte.is_ascii_alphanumeric()), "{token}");
    let url = format!("{PUBLIC_URL}/api/presigned-url/{token}");
    let expected = json!({
        "success": true,
        "url": url,
        "expiresIn": 600,
        "expiresAt": "2026-01-31T12:10:00.000Z",
        "token": token,
        "presignedUrl": url,
        "data": { "presignedUrl": url },
        "status": "ok",
    });
    assert_eq!(body, expected);
    assert_ne!(issue(&client, "path=photos/img/&expiresAt=600").await["token"], token);
}

#[tokio::test]
async fn presign_token_is_single_use() {
    let (world, client) = World::with_bucket(1);
    let path = token_path(&client, "path=photos/img/").await;
    let anonymous = world.anonymous();
    let reply = anonymous.upload_file(&path, "cat.png", PNG).await;
    assert_eq!(reply.status, 200, "{}", reply.text());
    let body = reply.json();
    assert_eq!(body["message"], "Successfully uploaded 1 file(s)");
    assert_eq!(body["url"], "https://cdn.example.com/photos/img/cat.png");
    assert_eq!(body["thumbnailUrl"], Value::Null);
    assert_eq!(client.get("/photos/img/cat.png").await.body, PNG);
    let again = anonymous.upload_file(&path, "dog.png", PNG).await;
    again.check_error(410, "token_used");
    world.clock.advance(3_600_000);
    anonymous.upload_file(&path, "dog.png", PNG).await.check_error(410, "token_expired");
    assert_eq!(world.object_count("photos"), 1);
}

#[tokio::test]
async fn presign_token_lifetime_is_bounded() {
    let (_world, client) = World::with_bucket(1);
    let now = 1_769_860_800_i64;
    for (asked, seconds) in [
        (String::new(), 3_600),
        ("expiresAt=".into(), 3_600),
        ("expiresAt=60".into(), 60),
        ("expiresIn=60".into(), 60),
        ("ttl=60".into(), 60),
        ("expiresAt=60.9".into(), 60),
        ("expiresAt=3600".into(), 3_600),
        ("expiresAt=3601".into(), 3_600),
        ("expiresAt=0".into(), 1),
        ("expiresAt=-5".into(), 1),
        ("expiresAt=1000000000".into(), 3_600),
        ("expiresAt=1000000001".into(), 1),
        ("expiresAt=1e300".into(), 3_600),
        (format!("expiresAt={}", now + 90), 90),
        (format!("expiresAt={}", now - 90), 1),
        (format!("expiresAt={}", now + 9_000), 3_600),
        (format!("expiresAt={}", (now + 90) * 1_000), 90),
        (format!("expiresAt={}", (now + 90) * 1_000 + 999), 90),
        ("expiresAt=999999999999".into(), 3_600),
        ("expiresAt=1000000000000".into(), 1),
        ("expiresAt=10&ttl=20".into(), 20),
    ] {
        let body = issue(&client, &format!("path=photos/&{asked}")).await;
        assert_eq!(body["expiresIn"], seconds, "{asked}");
    }
    for wrong in ["soon", "NaN", "inf", "10s", "0x10", "1,5"] {
        let reply = client.get(&format!("/api/presigned-url?path=photos/&expiresAt={wrong}")).await;
        reply.check_error(400, "bad_parameter");
        assert_eq!(reply.json()["parameter"], "expiresAt");
    }
}

#[tokio::test]
async fn presign_token_expires_to_the_millisecond() {
    let (world, client) = World::with_bucket(1);
    let first = token_path(&client, "path=photos/&expiresAt=10").await;
    let second = token_path(&client, "path=photos/&expiresAt=10").await;
    world.clock.advance(9_999);
    assert_eq!(use_token(&client, &first).await.status, 200);
    world.clock.advance(1);
    use_token(&client, &second).await.check_error(410, "token_expired");
    // Expired and used: expiry is reported, before and after the used token is removed.
    use_token(&client, &first).await.check_error(410, "token_expired");
}

#[tokio::test]
async fn presign_bucket_is_taken_from_the_path_by_default() {
    let (world, client) = World::with_bucket(1);
    world.bucket("ann", "phone", BucketSettings::default());
    let limited = |prefix: Option<&str>| ApiKeySettings {
        bucket: Some("photos".into()),
        prefix: prefix.map(str::to_owned),
        ..ApiKeySettings::default()
    };
    let one_bucket = world.client_of("ann", limited(None));
    let one_folder = world.client_of("ann", limited(Some("img")));
    for (client, query, key) in [
        (&client, "path=photos/img/", "img/a.txt"),
        (&client, "path=/photos/img/", "img/a.txt"),
        (&client, "path=photos%2Fimg%2F", "img/a.txt"),
        (&client, "path=photos/", "a.txt"),
        (&client, "path=photos", "a.txt"),
        (&client, "path=img/&bucketName=photos", "img/a.txt"),
        (&client, "path=/img/&bucket=photos", "img/a.txt"),
        (&client, "path=photos/&bucket=photos", "photos/a.txt"),
        (&client, "bucketName=photos", "a.txt"),
        (&client, "path=photos/x.txt", "x.txt"),
        (&client, "path=photos/caf%65%CC%81.txt", "caf\u{e9}.txt"),
        (&one_bucket, "", "a.txt"),
        (&one_bucket, "path=img/", "img/a.txt"),
        (&one_bucket, "path=photos/img/", "img/a.txt"),
        (&one_bucket, "path=photos/x/&bucket=photos", "photos/x/a.txt"),
        (&one_bucket, "path=phone/", "phone/a.txt"),
        (&one_folder, "", "img/a.txt"),
        (&one_folder, "bucket=photos", "img/a.txt"),
        (&one_folder, "path=img/x/", "img/x/a.txt"),
        (&one_folder, "path=photos/img/x/", "img/x/a.txt"),
    ] {
        let path = token_path(client, &format!("{query}&overwrite")).await;
        assert_eq!(world.anonymous().put(&path, "a.txt", b"1").await["key"], key, "{query}");
    }
    for (client, query, status, code) in [
        (&client, "", 400, "bad_parameter"),
        (&client, "path=", 400, "bad_parameter"),
        (&client, "path=/", 400, "bad_parameter"),
        (&client, "path=none/img/", 404, "bucket_not_found"),
        (&client, "path=api/img/", 404, "bucket_not_found"),
        (&client, "path=img/&bucket=none", 404, "bucket_not_found"),
        (&client, "path=photos/../x", 400, "bad_path"),
        (&client, "path=photos//x", 400, "bad_path"),
        (&client, "path=//photos/x", 404, "bucket_not_found"),
        (&client, "path=photos/a%00b", 400, "bad_path"),
        (&client, "path=photos/presigned/", 400, "bad_path"),
        (&client, "path=photos/presigned/a.txt", 400, "bad_path"),
        (&client, "path=photos/&overwrite=maybe", 400, "bad_parameter"),
        (&client, "path=photos/&thumb=maybe", 400, "bad_parameter"),
        (&one_bucket, "path=x/&bucket=phone", 403, "forbidden"),
        (&one_folder, "path=photos/", 403, "forbidden"),
        (&one_folder, "path=photos/imgs/", 403, "forbidden"),
        (&one_folder, "path=photos/a.txt", 403, "forbidden"),
    ] {
        let reply = client.get(&format!("/api/presigned-url?{query}")).await;
        reply.check_error(status, code);
    }
}

#[tokio::test]
async fn presign_requires_scope_and_writes_nothing() {
    let (world, client) = World::with_bucket(1);
    let anonymous = world.anonymous();
    anonymous.get("/api/presigned-url?path=photos/").await.check_error(401, "missing_api_key");
    for scope in Scope::ALL {
        let client = world.client_of("ann", key_with_scopes(&[scope]));
        let reply = client.get("/api/presigned-url?path=photos/").await;
        if scope == Scope::Presign {
            assert_eq!(reply.status, 200);
        } else {
            reply.check_error(403, "forbidden");
        }
    }
    let bob = world.account_with_key("bob");
    bob.get("/api/presigned-url?path=photos/").await.check_error(404, "bucket_not_found");
    let operations = world.store.stats().unwrap().overlay_changes;
    for _ in 0..10 {
        issue(&client, "path=photos/").await;
    }
    assert_eq!(world.store.stats().unwrap().overlay_changes, operations);
}

#[tokio::test]
async fn presign_folder_lock_confines_files_to_the_folder() {
    let (world, client) = World::with_bucket(1);
    for (name, key) in [
        ("a.txt", "img/a.txt"),
        ("../b.txt", "img/b.txt"),
        ("/etc/c.txt", "img/c.txt"),
        ("..\\..\\d.txt", "img/d.txt"),
        ("%2e%2e%2fe.txt", "img/%2e%2e%2fe.txt"),
    ] {
        let path = token_path(&client, "path=photos/img/").await;
        assert_eq!(world.anonymous().put(&path, name, b"1").await["key"], key, "{name}");
    }
    // The token has the parameters, the address of its use does not.
    for query in ["?overwrite=true", "?path=photos/x/", "?randomizeName=true", "?bucket=other"] {
        let path = token_path(&client, "path=photos/img/").await;
        let key =
            world.anonymous().put(&format!("{path}{query}"), "a.txt", b"2").await["key"].clone();
        assert!(key.as_str().unwrap().starts_with("img/a ("), "{query}: {key}");
    }
    let path = token_path(&client, "path=photos/img/").await;
    let several = Form::new().file("files", "x.txt", None, b"1").file("files", "y.txt", None, b"1");
    let reply = world.anonymous().upload(&path, several).await.json();
    assert_eq!(
        (&reply["files"][0]["key"], &reply["files"][1]["key"]),
        (&json!("img/x.txt"), &json!("img/y.txt"))
    );
    assert_eq!(client.get("/photos/img/a.txt").await.text(), "1", "nothing was replaced");
}

#[tokio::test]
async fn presign_file_lock_fixes_the_file_name() {
    let (world, client) = World::with_bucket(1);
    let anonymous = world.anonymous();
    let path = token_path(&client, "path=photos/img/tom.txt").await;
    let several = Form::new().file("files", "x.txt", None, b"1").file("files", "y.txt", None, b"1");
    anonymous.upload(&path, several).await.check_error(400, "bad_request");
    assert_eq!(anonymous.put(&path, "../other.png", b"one").await["key"], "img/tom.txt");
    let path = token_path(&client, "path=photos/img/tom.txt").await;
    let reply = anonymous.put(&path, "x.txt", b"two").await;
    assert_eq!((&reply["key"], &reply["renamed"]), (&json!("img/tom (1).txt"), &json!(true)));
    let path = token_path(&client, "path=photos/img/tom.txt&overwrite=true").await;
    assert_eq!(anonymous.put(&path, "x.txt", b"three").await["key"], "img/tom.txt");
    assert_eq!(client.get("/photos/img/tom.txt").await.text(), "three");
}

#[tokio::test]
async fn presign_random_names_stay_in_locked_folder() {
    let (world, client) = World::with_bucket(1);
    for (query, extension) in [
        ("path=photos/img/&randomizeName=true", ".png"),
        ("path=photos/img/tom.jpg&randomizeName=true", ".jpg"),
        ("path=photos/img/tom&randomizeName=1", ".png"),
    ] {
        let path = token_path(&client, query).await;
        let key = world.anonymous().put(&path, "cat.png", PNG).await["key"].clone();
        let name = key.as_str().unwrap().strip_prefix("img/").unwrap();
        assert_eq!(name.len(), 36 + 4, "{query}: {name}");
        assert!(name.ends_with(extension) && !name.contains('/'), "{query}: {name}");
    }
}

#[tokio::test]
async fn presign_phone_bucket_does_not_weaken_the_lock() {
    let (world, client) = World::with_bucket(1);
    world.phone_bucket("ann", "phone");
    let path = token_path(&client, "path=phone/images").await;
    assert_eq!(world.anonymous().put(&path, "a.png", PNG).await["key"], "images");
}

#[tokio::test]
async fn presign_failed_upload_does_not_consume_the_token() {
    let config =
        Config { body_bytes_max: 1_000, reserve_bytes: Some(1 << 30), ..Config::default() };
    let (world, client) = World::with_bucket_and(1, config);
    let anonymous = world.anonymous();
    let path = token_path(&client, "path=photos/img/").await;
    let send = async |kind: &str, body: Vec<u8>| {
        let headers = [("content-type", kind)];
        anonymous.send(Method::POST, &path, &headers, Body::from(body)).await
    };
    let kind = Form::new().content_type();
    send("image/png", PNG.to_vec()).await.check_error(415, "unsupported_media_type");
    send(&kind, b"no form".to_vec()).await.check_error(400, "incomplete_body");
    send(&kind, Form::new().text("a", "b").body()).await.check_error(400, "no_file");
    send(&kind, file_form("a.bin", &[7; 2_000]).body()).await.check_error(413, "file_too_large");
    let whole = file_form("a.txt", b"hello").body();
    for cut in 60..whole.len() - 4 {
        send(&kind, whole[..cut].to_vec()).await.check_error(400, "incomplete_body");
    }
    world.disk.set_free_bytes(1 << 20);
    world.clock.advance(1_000);
    let full = anonymous.upload_file(&path, "a.txt", b"hello").await;
    full.check_error(507, "no_space");
    world.disk.set_free_bytes(4 << 30);
    world.clock.advance(1_000);
    assert_eq!(world.object_count("photos"), 0);
    anonymous.put(&path, "a.txt", b"hello").await;
    use_token(&client, &path).await.check_error(410, "token_used");
}

#[tokio::test]
async fn presign_token_in_use_is_rejected_until_upload_ends() {
    let (world, client) = World::with_bucket(1);
    let path = token_path(&client, "path=photos/").await;
    let anonymous = world.anonymous();
    let (sender, body) = tests::held_body(file_form("a.txt", b"slow").body());
    let slow = {
        let (anonymous, path) = (anonymous.clone(), path.clone());
        tokio::spawn(async move {
            let kind = Form::new().content_type();
            let headers = [("content-type", &*kind)];
            anonymous.send(Method::POST, &path, &headers, body).await
        })
    };
    // Until the first upload waits for the rest of its body.
    for _ in 0..10 {
        tokio::task::yield_now().await;
    }
    use_token(&client, &path).await.check_error(409, "token_in_use");
    // A client that disconnects midway releases the token.
    slow.abort();
    assert!(slow.await.is_err());
    drop(sender);
    assert_eq!(use_token(&client, &path).await.status, 200);
    assert_eq!(world.object_count("photos"), 1);
}

#[tokio::test]
async fn presign_token_has_the_permissions_of_its_issuer() {
    let (world, client) = World::with_bucket(1);
    let standing = |standing| {
        let standing = Some(standing);
        world.edit_account("ann", AccountSettings { standing, ..AccountSettings::default() });
    };
    let issued = world.api_key("ann", ApiKeySettings::default());
    let holder = Client::new(world.app(), Some(issued.key));
    let path = token_path(&holder, "path=photos/").await;
    standing(FairUseStanding::Suspended);
    use_token(&client, &path).await.check_error(410, "token_revoked");
    standing(FairUseStanding::Good);
    let other = token_path(&holder, "path=photos/").await;
    assert_eq!(use_token(&client, &path).await.status, 200, "good again");
    world.manage(AdminRequest::RevokeApiKey { id: issued.api_key.id });
    use_token(&client, &other).await.check_error(410, "token_revoked");

    let expires_at = Some("2026-01-31T12:01:00Z".to_owned());
    let short = world.client_of("ann", ApiKeySettings { expires_at, ..ApiKeySettings::default() });
    let path = token_path(&short, "path=photos/").await;
    world.clock.advance(60_000);
    use_token(&client, &path).await.check_error(410, "token_revoked");

    let path = token_path(&client, "path=photos/").await;
    world.manage(AdminRequest::DeleteBucket { name: "photos".into(), force: true });
    use_token(&client, &path).await.check_error(410, "token_revoked");
    // The name now belongs to another account: the token does not permit writes to it.
    world.account("bob");
    world.bucket("bob", "photos", BucketSettings::default());
    use_token(&client, &path).await.check_error(410, "token_revoked");
    assert_eq!(world.object_count("photos"), 0);
}

#[tokio::test]
async fn presign_token_overrides_other_credentials() {
    let (world, client) = World::with_bucket(1);
    let reader = world.client_of("ann", key_with_scopes(&[Scope::Read]));
    for key in ["Bearer nonsense", "", reader.key()] {
        let path = token_path(&client, "path=photos/&overwrite").await;
        let mut wrong = client.without_key();
        wrong.key = Some(key.to_owned());
        let path = format!("{path}?apiKey=nonsense");
        assert_eq!(wrong.upload_file(&path, "a.txt", b"1").await.status, 200, "{key}");
    }
}

#[tokio::test]
async fn presign_token_accepts_only_post_forms() {
    let (world, client) = World::with_bucket(1);
    let path = token_path(&client, "path=photos/").await;
    let anonymous = world.anonymous();
    // GET and HEAD are for browsers.
    for (method, allow) in [
        (Method::GET, "POST, OPTIONS"),
        (Method::HEAD, "POST, OPTIONS"),
        (Method::PUT, "GET, HEAD, POST, OPTIONS"),
        (Method::DELETE, "GET, HEAD, POST, OPTIONS"),
        (Method::PATCH, "GET, HEAD, POST, OPTIONS"),
    ] {
        for accept in ["*/*", "application/json"] {
            let headers = [("accept", accept)];
            let reply = anonymous.send(method.clone(), &path, &headers, Body::empty()).await;
            let sent = (reply.status.as_u16(), reply.header("allow"));
            assert_eq!(sent, (405, allow), "{method}");
        }
    }
    assert_eq!(anonymous.send(Method::OPTIONS, &path, &[], Body::empty()).await.status, 204);
    let reply = client.post("/api/presigned-url").await;
    reply.check_error(405, "method_not_allowed");
    assert_eq!(reply.header("allow"), "GET, HEAD, OPTIONS");
    assert_eq!(use_token(&client, &path).await.status, 200);
}

#[tokio::test]
async fn presign_forged_token_is_rejected() {
    let (world, client) = World::with_bucket(1);
    let refuse = async |token: &str| {
        let reply = use_token(&client, &format!("/api/presigned-url/{token}")).await;
        reply.check_error(404, "token_not_found");
    };
    let token =
        async |query: &str| issue(&client, query).await["token"].as_str().unwrap().to_owned();
    let narrow = token("path=photos/img/").await;
    let wide = token("path=photos/").await;
    for at in 0..narrow.len() {
        let mut changed = narrow.clone().into_bytes();
        changed[at] = if changed[at] == b'a' { b'b' } else { b'a' };
        refuse(std::str::from_utf8(&changed).unwrap()).await;
        refuse(&narrow[..narrow.len() - 1 - at / 2]).await;
        // The start of one and the end of another.
        let mixed = format!("{}{}", &wide[..at.min(wide.len())], &narrow[at..]);
        if mixed != narrow {
            refuse(&mixed).await;
        }
    }
    let foreign = issue(&World::with_bucket(2).1, "path=photos/").await;
    refuse(foreign["token"].as_str().unwrap()).await;
    let shouted = narrow.to_uppercase();
    for odd in ["x", "%00", "%ff", "a.b.c", "..", "a%2Fb", &shouted, &"a".repeat(10_000)] {
        refuse(odd).await;
    }
    refuse(&format!("%{:02x}{}", narrow.as_bytes()[0], &narrow[1..])).await;
    refuse(&format!("{narrow}=")).await;
    assert_eq!(world.object_count("photos"), 0);
    let path = format!("/api/presigned-url/{narrow}");
    assert_eq!(use_token(&client, &path).await.status, 200, "the right one still works");
}

#[tokio::test]
async fn presign_tokens_survive_restart_and_key_revocation() {
    const DAY_MS: u64 = 24 * 60 * 60 * 1_000;
    let (world, client) = World::with_bucket(1);
    let used = token_path(&client, "path=photos/").await;
    let unused = token_path(&client, "path=photos/").await;
    assert_eq!(use_token(&client, &used).await.status, 200);
    world.store.close().unwrap();
    let world = world.found_on(world.disk.fork());
    let anonymous = world.anonymous();
    use_token(&anonymous, &used).await.check_error(410, "token_used");
    assert_eq!(use_token(&anonymous, &unused).await.status, 200);

    let client = world.client_of("ann", ApiKeySettings::default());
    world.clock.advance(31 * DAY_MS);
    let before = token_path(&client, "path=photos/").await;
    world.state.catalog.tokens().renew_keys().unwrap();
    let after = token_path(&client, "path=photos/").await;
    assert_eq!(use_token(&client, &before).await.status, 200);
    assert_eq!(use_token(&client, &after).await.status, 200);
    // Links to download live for a week, cookies of known devices for 90 days.
    world.clock.advance(92 * DAY_MS);
    world.state.catalog.tokens().renew_keys().unwrap();
    use_token(&client, &before).await.check_error(404, "token_not_found");
    use_token(&client, &after).await.check_error(410, "token_expired");
    let keys = world.store.facts("signing-key/", None, 10).unwrap();
    assert_eq!(keys.len(), 2, "the oldest one is forgotten");
}

#[tokio::test]
async fn presign_signing_key_creation_failure_is_not_fatal() {
    let (world, client) = World::with_bucket(1);
    client.put("/photos/", "a.txt", b"hello").await;
    let key = world.store.facts("signing-key/", None, 1).unwrap().remove(0).0;
    world.store.commit(engine::Batch::new().delete_fact(key)).unwrap();
    world.store.close().unwrap();
    let disk = world.disk.fork();
    disk.set_free_bytes(0);
    let world = world.found_on(disk);
    let mut holder = world.anonymous();
    holder.key = client.key.clone();
    assert_eq!(holder.get("/photos/a.txt").await.text(), "hello");
    holder.get("/api/presigned-url?path=photos/").await.check_error(503, "overloaded");
    world.disk.set_free_bytes(4 << 30);
    world.clock.advance(1_000);
    world.state.catalog.tokens().renew_keys().unwrap();
    let path = token_path(&holder, "path=photos/").await;
    assert_eq!(use_token(&holder, &path).await.status, 200);
}

#[tokio::test]
async fn presign_used_tokens_are_forgotten_after_expiry() {
    let (world, client) = World::with_bucket(1);
    for _ in 0..5 {
        let path = token_path(&client, "path=photos/&expiresAt=60").await;
        assert_eq!(use_token(&client, &path).await.status, 200);
        world.clock.advance(1_000);
    }
    let sweep = || world.state.catalog.tokens().sweep().unwrap();
    let left = || world.store.facts("token/", None, 10).unwrap().len();
    assert_eq!((sweep(), left()), (0, 5));
    world.clock.advance((24 * 60 * 60 + 60) * 1_000 - 5_000 + 1_000);
    assert_eq!((sweep(), left()), (2, 3), "a day after the expiry of the first two");
    world.clock.advance(3_000);
    assert_eq!((sweep(), left(), sweep()), (3, 0, 0));
}
