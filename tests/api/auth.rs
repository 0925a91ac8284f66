//! Authorization by credential and scope: specification 5, clients 3.6, 8.1 and 13.12.

use axum::body::Body;
use catalog::{FairUseStanding, Scope};
use http::Method;
use server::management::{AccountSettings, AdminRequest, ApiKeySettings};
use tests::fixtures::{key_of_bucket, key_of_folder, key_with_scopes};
use tests::world::BEGINNING_MS;
use tests::{Client, Reply, World};

/// Deletes a file that does not exist: 404 means that the credential was accepted.
async fn probe(client: &Client, query: &str, headers: &[(&str, &str)]) -> Reply {
    let path = format!("/photos/none.txt{query}");
    client.without_key().send(Method::DELETE, &path, headers, Body::empty()).await
}

#[tokio::test]
async fn api_key_is_accepted_in_every_form() {
    let (_world, client) = World::with_bucket(1);
    let key = client.key();
    for value in
        [format!("Bearer {key}"), format!("bearer {key}"), key.into(), format!("Key {key}")]
    {
        probe(&client, "", &[("authorization", &value)]).await.check_error(404, "file_not_found");
    }
    probe(&client, "", &[("x-api-key", key)]).await.check_error(404, "file_not_found");
    for name in ["apiKey", "api_key"] {
        let query = format!("?{name}={key}");
        probe(&client, &query, &[]).await.check_error(404, "file_not_found");
        let path = format!("/photos/{query}&overwrite=true");
        assert_eq!(client.without_key().upload_file(&path, "a.txt", b"1").await.status, 200);
    }
}

#[tokio::test]
async fn first_credential_decides_even_if_invalid() {
    let (_world, client) = World::with_bucket(1);
    let key = client.key();
    let both = [("authorization", "Bearer nonsense"), ("x-api-key", key)];
    probe(&client, "", &both).await.check_error(401, "invalid_api_key");
    let foreign = [("authorization", "Basic dTpw"), ("x-api-key", key)];
    probe(&client, "", &foreign).await.check_error(404, "file_not_found");
    let query = format!("?apiKey={key}");
    probe(&client, &query, &[("x-api-key", "x")]).await.check_error(401, "invalid_api_key");
}

#[tokio::test]
async fn writes_require_an_api_key() {
    let (world, client) = World::with_bucket(1);
    let anonymous = client.without_key();
    let reply = anonymous.upload_file("/photos/", "a", b"1").await;
    reply.check_error(401, "missing_api_key");
    assert_eq!(reply.header("www-authenticate"), "Bearer");
    anonymous.delete("/photos/a").await.check_error(401, "missing_api_key");
    anonymous.delete("/nobucket/a").await.check_error(401, "missing_api_key");
    assert_eq!(world.object_count("photos"), 0);
}

#[tokio::test]
async fn invalid_api_keys_are_rejected_alike() {
    let (world, client) = World::with_bucket(1);
    let key = client.key().to_owned();
    let mut typo = key.clone();
    typo.pop();
    let other_world = World::with_bucket(2).1;
    for wrong in [&typo, "trug_a_b_c", "x", other_world.key(), &format!("{key}x")] {
        let headers = [("authorization", wrong)];
        let reply = probe(&client, "", &headers).await;
        reply.check_error(401, "invalid_api_key");
    }
    let issued = world.api_key("ann", ApiKeySettings::default());
    let headers = [("authorization", &*issued.key)];
    probe(&client, "", &headers).await.check_error(404, "file_not_found");
    world.manage(AdminRequest::RevokeApiKey { id: issued.api_key.id });
    probe(&client, "", &headers).await.check_error(401, "invalid_api_key");
}

#[tokio::test]
async fn expired_api_key_is_rejected() {
    let (world, client) = World::with_bucket(1);
    let expires_at = Some("2026-01-31T12:00:10Z".to_owned());
    let issued = world.api_key("ann", ApiKeySettings { expires_at, ..Default::default() });
    let headers = [("x-api-key", &*issued.key)];
    probe(&client, "", &headers).await.check_error(404, "file_not_found");
    world.clock.advance(10_000);
    probe(&client, "", &headers).await.check_error(401, "invalid_api_key");
    assert_eq!(issued.api_key.created_at, "2026-01-31T12:00:00.000Z");
    assert_eq!(BEGINNING_MS, 1_769_860_800_000);
}

#[tokio::test]
async fn api_key_scopes_are_enforced() {
    let (world, client) = World::with_bucket(1);
    client.put("/photos/", "a.txt", b"1").await;
    let uploader = world.client_of("ann", key_with_scopes(&[Scope::Upload]));
    uploader.put("/photos/", "b.txt", b"1").await;
    uploader.delete("/photos/b.txt").await.check_error(403, "forbidden");
    let deleter = world.client_of("ann", key_with_scopes(&[Scope::Delete]));
    deleter.upload_file("/photos/", "c.txt", b"1").await.check_error(403, "forbidden");
    assert_eq!(deleter.delete("/photos/b.txt").await.status, 200);
}

#[tokio::test]
async fn api_key_is_limited_to_its_bucket() {
    let (world, _) = World::with_bucket(1);
    world.bucket("ann", "second", Default::default());
    let client = world.client_of("ann", key_of_bucket("photos"));
    client.put("/photos/", "a.txt", b"1").await;
    let there = client.delete("/second/a.txt").await;
    let nowhere = client.delete("/nowhere/a.txt").await;
    there.check_error(403, "forbidden");
    nowhere.check_error(403, "forbidden");
    assert_eq!(there.json()["error"], nowhere.json()["error"]);
}

#[tokio::test]
async fn api_key_is_limited_to_its_folder() {
    let (world, client) = World::with_bucket(1);
    world.phone_bucket("ann", "phone");
    client.put("/photos/img2/", "a.txt", b"1").await;
    let limited = world.client_of("ann", key_of_folder("img"));
    assert_eq!(limited.put("/photos/img/", "a.txt", b"1").await["key"], "img/a.txt");
    assert_eq!(limited.put("/photos/img/x/y.txt", "a.txt", b"1").await["key"], "img/x/y.txt");
    assert_eq!(limited.put("/phone/img", "a.txt", b"1").await["key"], "img/a.txt");
    for path in ["/photos/", "/photos/img", "/photos/img2/", "/photos/img2/b.txt", "/phone/img2"] {
        limited.upload_file(path, "b.txt", b"1").await.check_error(403, "forbidden");
    }
    let rejected = limited.upload_file("/phone/img", "noextension", b"plain text").await;
    rejected.check_error(403, "forbidden");
    limited.delete("/photos/img2/a.txt").await.check_error(403, "forbidden");
    limited.delete("/photos/img2/").await.check_error(403, "forbidden");
    assert_eq!(limited.delete("/photos/img/").await.json()["deletedCount"], 2);
}

#[tokio::test]
async fn foreign_bucket_returns_404_as_if_missing() {
    let (world, client) = World::with_bucket(1);
    client.put("/photos/", "a.txt", b"1").await;
    let bob = world.account_with_key("bob");
    for path in ["/photos/a.txt", "/photos/none.txt", "/nowhere/a.txt"] {
        bob.delete(path).await.check_error(404, "bucket_not_found");
        bob.upload_file(path, "a.txt", b"1").await.check_error(404, "bucket_not_found");
    }
    assert_eq!(world.object_count("photos"), 1);
}

#[tokio::test]
async fn suspended_account_can_only_deliver() {
    let (world, client) = World::with_bucket(1);
    client.put("/photos/", "a.txt", b"1").await;
    let standing = Some(FairUseStanding::Suspended);
    world.edit_account("ann", AccountSettings { standing, ..Default::default() });
    client.delete("/photos/a.txt").await.check_error(403, "account_suspended");
    assert_eq!(client.without_key().get("/photos/a.txt").await.status, 200);
}
