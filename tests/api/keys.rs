//! API keys over HTTP: clients 13.11 and 13.12.

use catalog::Scope;
use serde_json::{Value, json};
use server::management::ApiKeySettings;
use tests::fixtures::key_with_scopes;
use tests::{Client, World};

fn client_with(world: &World, issued: &Value) -> Client {
    Client::new(world.app(), Some(issued["key"].as_str().unwrap().to_owned()))
}

#[tokio::test]
async fn api_key_is_shown_once_listed_and_revoked() {
    let (world, client) = World::with_bucket(1);
    let body = json!({"name": "phone", "scopes": ["upload", "read"], "bucketName": "photos",
        "prefix": "img", "expiresAt": "2030-01-31T12:00:00Z"});
    let issued = client.post_json("/api/keys", body).await.check_done();
    let api_key = &issued["apiKey"];
    for (field, value) in [
        ("name", json!("phone")),
        ("scopes", json!(["upload", "read"])),
        ("bucketName", json!("photos")),
        ("prefix", json!("img/")),
        ("expiresAt", json!("2030-01-31T12:00:00.000Z")),
        ("lastUsedAt", json!(null)),
        ("revokedAt", json!(null)),
    ] {
        assert_eq!(api_key[field], value, "{field}");
    }
    let phone = client_with(&world, &issued);
    phone.put("/photos/img/", "a.txt", b"1").await;
    phone.upload_file("/photos/img2/", "a.txt", b"1").await.check_error(403, "forbidden");

    let listed = client.get("/api/keys").await;
    let secret = issued["key"].as_str().unwrap().split('_').nth(2).unwrap().to_owned();
    assert!(!listed.text().contains(&secret));
    let keys = listed.check_done()["apiKeys"].take();
    let keys = keys.as_array().unwrap();
    assert_eq!(keys.len(), 2);
    let found = keys.iter().find(|key| key["id"] == api_key["id"]).unwrap();
    assert_eq!(found["lastUsedAt"], "2026-01-31T12:00:00.000Z");

    // By its name, or by its bucket.
    for (q, count) in [("PHO", 1), ("phone+photos", 1), ("nobody", 0)] {
        let listed = client.get(&format!("/api/keys?q={q}")).await.check_done();
        assert_eq!(listed["apiKeys"].as_array().unwrap().len(), count, "{q}");
    }

    let path = format!("/api/keys/{}", api_key["id"].as_str().unwrap());
    let revoked = client.delete(&path).await.check_done();
    assert!(revoked["apiKey"]["revokedAt"].is_string());
    phone.delete("/photos/img/a.txt").await.check_error(401, "invalid_api_key");
    assert_eq!(client.delete(&path).await.check_done(), revoked);
}

#[tokio::test]
async fn api_key_last_use_has_hour_resolution() {
    let (world, client) = World::with_bucket(1);
    world.clock.advance(90 * 60 * 1_000);
    let key = client.get("/api/keys").await.check_done()["apiKeys"][0].take();
    assert_eq!(key["lastUsedAt"], "2026-01-31T13:00:00.000Z");
    world.clock.advance(60 * 60 * 1_000);
    let key = client.get("/api/keys").await.check_done()["apiKeys"][0].take();
    assert_eq!(key["lastUsedAt"], "2026-01-31T14:00:00.000Z");
}

#[tokio::test]
async fn api_key_body_errors_name_the_field() {
    let (_world, client) = World::with_bucket(1);
    for (field, value) in [
        ("scopes", json!([])),
        ("scopes", json!(["everything"])),
        ("scopes", json!("upload")),
        ("name", json!(7)),
        ("prefix", json!("a/../b")),
        ("expiresAt", json!("tomorrow")),
        ("account", json!("x")),
        ("secret", json!("x")),
    ] {
        let mut body = json!({"scopes": ["upload"]});
        body[field] = value;
        client.post_json("/api/keys", body).await.check_parameter(field);
    }
    client.post_json("/api/keys", json!({})).await.check_parameter("scopes");
    let past = json!({"scopes": ["read"], "expiresAt": "2001-01-31T12:00:00Z"});
    client.post_json("/api/keys", past).await.check_error(400, "bad_request");
    let nowhere = json!({"scopes": ["read"], "bucketName": "nowhere"});
    let reply = client.post_json("/api/keys", nowhere).await;
    reply.check_error(404, "bucket_not_found");
    assert!(reply.text().contains("nowhere"), "{}", reply.text());
    let theirs = json!({"scopes": ["read"], "bucketName": "no bucket can be called so"});
    client.post_json("/api/keys", theirs).await.check_error(404, "bucket_not_found");
    for id in ["abcdefghijklmnop", "x", "%00", "..%2f"] {
        client.delete(&format!("/api/keys/{id}")).await.check_error(404, "api_key_not_found");
    }
}

#[tokio::test]
async fn api_key_cannot_create_a_more_powerful_key() {
    let (world, whole) = World::with_bucket(1);
    world.bucket("ann", "other", Default::default());
    let settings = ApiKeySettings {
        scopes: vec![Scope::Manage, Scope::Upload],
        bucket: Some("photos".into()),
        prefix: Some("img".into()),
        expires_at: Some("2030-01-31T12:00:00Z".into()),
        ..Default::default()
    };
    let limited = world.client_of("ann", settings);
    let narrow = json!({"scopes": ["upload"], "bucketName": "photos", "prefix": "img/a",
        "expiresAt": "2029-01-31T12:00:00Z"});
    limited.post_json("/api/keys", narrow.clone()).await.check_done();
    for (field, value) in [
        ("scopes", json!(["upload", "delete"])),
        ("scopes", json!(["read"])),
        ("bucketName", json!("other")),
        ("bucketName", json!(null)),
        ("prefix", json!("")),
        ("prefix", json!("im")),
        ("prefix", json!("img2")),
        ("prefix", json!(null)),
        ("expiresAt", json!("2030-01-31T12:00:01Z")),
        ("expiresAt", json!(null)),
    ] {
        let mut body = narrow.clone();
        body[field] = value;
        limited.post_json("/api/keys", body).await.check_error(403, "forbidden");
    }
    // It lists and revokes only keys within its own reach.
    let keys = limited.get("/api/keys").await.check_done()["apiKeys"].take();
    assert_eq!(keys.as_array().unwrap().len(), 2);
    let keys = whole.get("/api/keys").await.check_done()["apiKeys"].take();
    assert_eq!(keys.as_array().unwrap().len(), 3);
    let whole_id = whole.key().split('_').nth(1).unwrap();
    let reply = limited.delete(&format!("/api/keys/{whole_id}")).await;
    reply.check_error(404, "api_key_not_found");
    let uploader = world.client_of("ann", key_with_scopes(&[Scope::Upload]));
    uploader.get("/api/keys").await.check_error(403, "forbidden");
    uploader.post_json("/api/keys", narrow).await.check_error(403, "forbidden");
}

#[tokio::test]
async fn manage_scope_alone_neither_publishes_nor_deletes() {
    let (world, whole) = World::with_bucket(1);
    let access = |access: &str| json!({"access": access});
    whole.patch_json("/api/buckets/photos", access("private")).await.check_done();
    whole.put("/photos/", "a.txt", b"1").await;
    let only = |scopes: &[Scope]| world.client_of("ann", key_with_scopes(scopes));
    let manage = only(&[Scope::Manage]);
    manage.get("/photos/a.txt").await.check_error(403, "forbidden");
    let publish = manage.patch_json("/api/buckets/photos", access("public")).await;
    publish.check_error(403, "forbidden");
    let both = json!({"thumbnails": true, "access": "public"});
    manage.patch_json("/api/buckets/photos", both).await.check_error(403, "forbidden");
    whole.without_key().get("/photos/a.txt").await.check_error(401, "missing_api_key");
    manage.delete("/api/buckets/photos?force=true").await.check_error(403, "forbidden");
    manage.delete("/api/buckets/photos").await.check_error(409, "bucket_not_empty");
    // Requests that neither show nor destroy content are permitted.
    manage.patch_json("/api/buckets/photos", json!({"thumbnails": true})).await.check_done();
    manage.patch_json("/api/buckets/photos", access("private")).await.check_done();
    for scope in [Scope::Read, Scope::List, Scope::Upload, Scope::Delete, Scope::Presign] {
        let client = only(&[scope]);
        for body in [access("public"), json!({"thumbnails": false}), json!({"serveHtml": "page"})] {
            let reply = client.patch_json("/api/buckets/photos", body).await;
            reply.check_error(403, "forbidden");
        }
        for path in ["/api/buckets/photos?force=true", "/api/buckets/photos"] {
            client.delete(path).await.check_error(403, "forbidden");
        }
    }
    let publisher = only(&[Scope::Manage, Scope::Read]);
    publisher.patch_json("/api/buckets/photos", access("public")).await.check_done();
    let destroyer = only(&[Scope::Manage, Scope::Delete]);
    destroyer.delete("/api/buckets/photos?force=true").await.check_done();
}
