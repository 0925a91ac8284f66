//! Download links: `API.md`, Download links.

use catalog::{Access, FairUseStanding, Scope};
use http::StatusCode;
use serde_json::{Value, json};
use server::management::{AccountSettings, AdminRequest, ApiKeySettings, BucketSettings};
use tests::fixtures::path_of;
use tests::{Browser, Client, World};

const PATH: &str = "/api/buckets/secret/download-links";

/// Creates Ann's private bucket `secret` with two files.
async fn world() -> (World, Client) {
    let (world, client) = World::with_bucket(1);
    let access = Some(Access::Private);
    let private = BucketSettings { access, ..Default::default() };
    world.bucket("ann", "secret", private);
    client.put("/secret/a/", "b c.txt", b"0123456789").await;
    client.put("/secret/a/", "other.txt", b"other").await;
    (world, client)
}

async fn link(client: &Client, wish: Value) -> String {
    path_of(&client.post_json(PATH, wish).await.check_done()["url"])
}

#[tokio::test]
async fn download_link_grants_only_its_file() {
    let (world, client) = world().await;
    let anonymous = world.anonymous();
    assert_eq!(anonymous.get("/secret/a/b%20c.txt").await.status, StatusCode::UNAUTHORIZED);
    let reply = client.post_json(PATH, json!({"path": "a/b c.txt"})).await.check_done();
    assert_eq!(reply["expiresAt"], "2026-01-31T13:00:00.000Z");
    let link = link(&client, json!({"path": "a/b c.txt", "expiresIn": 60})).await;
    assert!(link.starts_with("/secret/a/b%20c.txt?token="), "{link}");
    assert_eq!(anonymous.get(&link).await.text(), "0123456789");
    let reply = anonymous.get(&format!("{link}&download")).await;
    assert_eq!(reply.status, StatusCode::OK);
    assert!(reply.header("content-disposition").starts_with("attachment"));
    let cached = reply.header("cache-control");
    assert!(cached.contains("private") || cached.contains("no-store"), "{cached}");
    let token = link.split_once("?token=").unwrap().1.to_owned();
    for path in ["/secret/a/other.txt", "/secret/a/none.txt", "/secret/a/", "/secret/"] {
        let reply = anonymous.get(&format!("{path}?token={token}")).await;
        reply.check_error(404, "token_not_found");
    }
    for wrong in [&token[1..], "x", ""] {
        let reply = anonymous.get(&format!("/secret/a/b%20c.txt?token={wrong}")).await;
        assert!([401, 404].contains(&reply.status.as_u16()), "{wrong}: {}", reply.status);
    }
    // The link is read-only.
    let put = anonymous.send(http::Method::PUT, &link, &[], axum::body::Body::from("x")).await;
    put.check_error(404, "token_not_found");
    let delete = anonymous.delete(&link).await;
    assert_eq!(delete.status, StatusCode::UNAUTHORIZED);
    world.clock.advance(59_999);
    assert_eq!(anonymous.get(&link).await.status, StatusCode::OK);
    world.clock.advance(1);
    anonymous.get(&link).await.check_error(410, "token_expired");
}

#[tokio::test]
async fn download_link_has_the_permissions_of_its_issuer() {
    let (world, client) = world().await;
    let anonymous = world.anonymous();
    let wish = || json!({"path": "a/b c.txt", "expiresIn": 604_800});
    let issued = world.api_key("ann", ApiKeySettings::default());
    let of_key = link(&Client::new(world.app(), Some(issued.key)), wish()).await;
    let mut ann = Browser::signed_in(&world, "ann").await;
    let reply = ann.post(PATH, wish()).await.json();
    let of_session = &path_of(&reply["url"]);
    assert_eq!(ann.delete("/-/session").await.status, 204);
    assert_eq!(anonymous.get(of_session).await.text(), "0123456789", "it outlives the session");
    world.manage(AdminRequest::RevokeApiKey { id: issued.api_key.id });
    anonymous.get(&of_key).await.check_error(410, "token_revoked");
    let standing = |standing| AccountSettings { standing: Some(standing), ..Default::default() };
    world.edit_account("ann", standing(FairUseStanding::Suspended));
    anonymous.get(of_session).await.check_error(410, "token_revoked");
    world.edit_account("ann", standing(FairUseStanding::Good));
    assert_eq!(anonymous.get(of_session).await.text(), "0123456789");
    // The link delivers the current file of that name.
    client.put("/secret/a/b%20c.txt?overwrite=true", "b c.txt", b"new").await;
    assert_eq!(anonymous.get(of_session).await.text(), "new");
    client.delete("/secret/a/b%20c.txt").await.check_done();
    anonymous.get(of_session).await.check_error(404, "file_not_found");
}

#[tokio::test]
async fn download_link_survives_revocation_of_its_key() {
    let (world, client) = world().await;
    let week = link(&client, json!({"path": "a/b c.txt", "expiresIn": 604_800})).await;
    world.clock.advance(7 * 24 * 60 * 60 * 1_000 - 1);
    world.state.catalog.tokens().renew_keys().unwrap();
    assert_eq!(world.anonymous().get(&week).await.text(), "0123456789");
}

#[tokio::test]
async fn invalid_download_link_request_is_rejected_with_reason() {
    let (world, client) = world().await;
    for (wish, status, code) in [
        (json!({"path": "a/none.txt"}), 404, "file_not_found"),
        (json!({"path": "a/"}), 400, "bad_path"),
        (json!({"path": "a/b c.txt", "expiresIn": 0}), 400, "bad_parameter"),
        (json!({"path": "a/b c.txt", "expiresIn": 604_801}), 400, "bad_parameter"),
        (json!({"path": "a/b c.txt", "until": 5}), 400, "bad_parameter"),
    ] {
        let reply = client.post_json(PATH, wish.clone()).await;
        assert_eq!(reply.status.as_u16(), status, "{wish}: {}", reply.text());
        assert_eq!(reply.json()["code"], code, "{wish}");
    }
    client.put("/photos/", "a.txt", b"1").await;
    let public = "/api/buckets/photos/download-links";
    client.post_json(public, json!({"path": "a.txt"})).await.check_error(409, "conflict");
    let wish = json!({"path": "a/b c.txt"});
    for scopes in [vec![Scope::Read], vec![Scope::Presign]] {
        let settings = ApiKeySettings { scopes, ..Default::default() };
        let lacking = world.client_of("ann", settings);
        lacking.post_json(PATH, wish.clone()).await.check_error(403, "forbidden");
    }
    let bob = world.account_with_key("bob");
    bob.post_json(PATH, wish).await.check_error(404, "bucket_not_found");
}
