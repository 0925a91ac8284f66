//! Rate limits of accounts and addresses: specification 8, clients 8.2, product 0.

use axum::body::Body;
use catalog::{FairUseStanding, Plan, Role};
use http::Method;
use server::management::{AccountSettings, ApiKeySettings, BucketSettings};
use service::config::Config;
use tests::fixtures::path_of;
use tests::{Client, Form, Reply, World};

const MINUTE_MS: u64 = 60_000;

async fn upload(client: &Client) -> Reply {
    client.upload_file("/photos/a.txt?overwrite=true", "a", b"1").await
}

/// Returns the number of uploads that succeed in a row.
async fn passing(client: &Client) -> u32 {
    let mut count = 0;
    while upload(client).await.status == 200 {
        count += 1;
    }
    count
}

#[track_caller]
fn check_fields(reply: &Reply, policy: &str, limit: &str, remaining: &str, reset: &str) {
    let name = policy.split(';').next().unwrap();
    assert_eq!(reply.header("ratelimit-policy"), policy);
    assert_eq!(reply.header("ratelimit"), format!("{name};r={remaining};t={reset}"));
    let trio = ["limit", "remaining", "reset"].map(|it| reply.header(&format!("x-ratelimit-{it}")));
    assert_eq!(trio, [limit, remaining, reset]);
}

#[tokio::test]
async fn rate_limit_allows_100_uploads_then_refills() {
    let (world, client) = World::with_bucket_and(1, Config::default());
    for count in 1..=100_u32 {
        let reply = upload(&client).await;
        assert_eq!(reply.status, 200, "{count}: {}", reply.text());
        let remaining = (100 - count).to_string();
        // All that were taken come back at 0.6 seconds each; when none is left, the next one counts.
        let reset = if count == 100 { 1 } else { (count * 60).div_ceil(100) }.to_string();
        check_fields(&reply, "\"upload-free\";q=100;w=60", "100", &remaining, &reset);
    }
    let refused = upload(&client).await;
    refused.check_error(429, "rate_limited");
    check_fields(&refused, "\"upload-free\";q=100;w=60", "100", "0", "1");
    assert_eq!(refused.header("retry-after"), "1");
    assert_eq!(refused.json()["retryAfter"], 1);
    assert_eq!(refused.json().get("violated-policies"), None);

    world.clock.advance(599);
    assert_eq!(passing(&client).await, 0);
    world.clock.advance(1);
    assert_eq!(passing(&client).await, 1);
    world.clock.advance(10 * MINUTE_MS);
    assert_eq!(passing(&client).await, 100);
}

#[tokio::test]
async fn rate_limit_depends_on_the_plan() {
    let config = Config { business_uploads_per_minute: 1_200, ..Config::default() };
    let (world, client) = World::with_bucket_and(1, config);
    for (plan, rate) in
        [(Plan::Free, 100), (Plan::Starter, 300), (Plan::Pro, 1_000), (Plan::Business, 1_200)]
    {
        world.edit_plan(Some(plan), None);
        assert_eq!(passing(&client).await, rate, "{plan:?}");
    }
}

#[tokio::test]
async fn rate_limit_of_throttled_account_is_a_tenth() {
    let (world, client) = World::with_bucket_and(1, Config::default());
    world.edit_plan(None, Some(FairUseStanding::Throttled));
    assert_eq!(passing(&client).await, 10);
    let refused = upload(&client).await;
    check_fields(&refused, "\"upload-free-throttled\";q=10;w=60", "10", "0", "6");
    assert_eq!(refused.header("retry-after"), "6");
    assert_eq!(client.delete("/photos/a.txt").await.header("x-ratelimit-limit"), "100");

    world.edit_plan(None, Some(FairUseStanding::Suspended));
    upload(&client).await.check_error(403, "account_suspended");
    assert_eq!(client.get("/photos/a.txt").await.status, 404);
}

#[tokio::test]
async fn rate_limit_is_shared_by_keys_of_one_account() {
    let (world, client) = World::with_bucket_and(1, Config::default());
    assert_eq!(passing(&client).await, 100);
    let second = world.client_of("ann", ApiKeySettings::default());
    upload(&second).await.check_error(429, "rate_limited");
    world.account("bob");
    world.bucket("bob", "films", BucketSettings::default());
    let bob = world.client_of("bob", ApiKeySettings::default());
    bob.put("/films/", "a.txt", b"1").await;
}

#[tokio::test]
async fn rate_limit_counts_deletes_as_management() {
    let (_world, client) = World::with_bucket_and(1, Config::default());
    assert_eq!(passing(&client).await, 100);
    let deleted = client.delete("/photos/a.txt").await;
    assert_eq!(deleted.status, 200);
    check_fields(&deleted, "\"management\";q=1000;w=60", "1000", "999", "1");
    for _ in 0..999 {
        // A failed request counts like any other.
        client.delete("/photos/a.txt").await.check_error(404, "file_not_found");
    }
    client.delete("/photos/a.txt").await.check_error(429, "rate_limited");
}

#[tokio::test]
async fn rate_limit_ignores_unauthenticated_and_preflight() {
    let (_world, client) = World::with_bucket_and(1, Config::default());
    let anonymous = client.without_key();
    for _ in 0..150 {
        upload(&anonymous).await.check_error(401, "missing_api_key");
        let headers = [("authorization", "Bearer nonsense")];
        let wrong = anonymous.send(Method::POST, "/photos/", &headers, Body::empty()).await;
        wrong.check_error(401, "invalid_api_key");
        assert_eq!(wrong.header("ratelimit"), "");
        let preflight = client.send(Method::OPTIONS, "/photos/a", &[], Body::empty()).await;
        assert_eq!((preflight.status.as_u16(), preflight.header("ratelimit")), (204, ""));
        let method = client.send(Method::PATCH, "/photos/a", &[], Body::empty()).await;
        method.check_error(405, "method_not_allowed");
    }
    assert_eq!(passing(&client).await, 100);
}

#[tokio::test]
async fn rate_limit_problem_names_its_policy() {
    let (_world, client) = World::with_bucket_and(1, Config::default());
    passing(&client).await;
    let headers = [("accept", "application/problem+json")];
    let refused = client.send(Method::POST, "/photos/", &headers, Body::empty()).await;
    assert_eq!(refused.header("content-type"), "application/problem+json");
    let body = refused.json();
    assert_eq!(body["type"], "https://iana.org/assignments/http-problem-types#quota-exceeded");
    assert_eq!(body["violated-policies"], serde_json::json!(["upload-free"]));
    assert_eq!((&body["success"], &body["status"]), (&false.into(), &429.into()));
    assert!(body["error"].is_string() && body["retryAfter"] == 1, "{body}");
}

#[tokio::test]
async fn rate_limit_of_account_ignores_delivery() {
    let (_world, client) = World::with_bucket_and(1, Config::default());
    client.put("/photos/", "a.txt", b"1").await;
    for _ in 0..300 {
        let reply = client.get("/photos/a.txt").await;
        assert_eq!((reply.status.as_u16(), reply.header("ratelimit")), (200, ""));
    }
    assert_eq!(passing(&client).await, 99);
}

#[tokio::test]
async fn rate_limit_charges_token_use_to_its_issuer() {
    let (world, client) = World::with_bucket_and(1, Config::default());
    let issue = async || {
        let reply = client.get("/api/presigned-url?path=photos/&randomizeName=true").await;
        let path = format!("/api/presigned-url/{}", reply.json()["token"].as_str().unwrap());
        (reply, path)
    };
    let form = || Form::new().file("f", "a.txt", None, b"1");
    let (issued, path) = issue().await;
    check_fields(&issued, "\"management\";q=1000;w=60", "1000", "999", "1");
    let used = client.without_key().upload(&path, form()).await;
    assert_eq!(used.status, 200, "{}", used.text());
    check_fields(&used, "\"upload-free\";q=100;w=60", "100", "99", "1");
    assert_eq!(passing(&client).await, 99);

    // Rate limited: the token stays valid.
    let (_, path) = issue().await;
    client.without_key().upload(&path, form()).await.check_error(429, "rate_limited");
    world.clock.advance(600);
    assert_eq!(client.without_key().upload(&path, form()).await.status, 200);
    upload(&client).await.check_error(429, "rate_limited");

    // The tokens taken before have been refilled by now.
    let address = client.get("/photos/presigned/b.txt").await;
    check_fields(&address, "\"management\";q=1000;w=60", "1000", "999", "1");
    let path = &path_of(&address.json()["presignedUrl"]);
    let put = async || client.without_key().send(Method::PUT, path, &[], Body::from("1")).await;
    put().await.check_error(429, "rate_limited");
    world.clock.advance(600);
    let put = put().await;
    assert_eq!((put.status.as_u16(), put.header("x-ratelimit-remaining")), (200, "0"));
}

#[tokio::test]
async fn rate_limit_headers_are_on_every_keyed_route() {
    let (world, client) = World::with_bucket_and(1, Config::default());
    let operator = AccountSettings { role: Some(Role::Operator), ..AccountSettings::default() };
    world.edit_account("ann", operator);
    for path in [
        "/api/presigned-url?path=photos/",
        "/api/list-objects?bucketName=photos",
        "/api/search/photos",
        "/api/buckets",
        "/api/buckets/photos",
        "/api/buckets/photos/folders",
        "/api/keys",
        "/api/organisations",
        "/api/account",
        "/api/usage",
        "/api/accounts",
        "/api/organisations/none",
    ] {
        let reply = client.get(path).await;
        assert!(matches!(reply.status.as_u16(), 200 | 404), "{path}: {}", reply.text());
        assert_eq!(reply.header("x-ratelimit-limit"), "1000", "{path}");
        client.without_key().get(path).await.check_error(401, "missing_api_key");
    }
    let sweep = client.post("/api/accounts/sweep").await;
    assert_eq!((sweep.status.as_u16(), sweep.header("x-ratelimit-remaining")), (200, "987"));
    // A resumable upload is one upload, whatever happens to its creation.
    let created = client.post("/api/tus/").await;
    assert_eq!(created.header("x-ratelimit-limit"), "100", "{}", created.text());
    let piece = client.send(Method::PATCH, "/api/tus/none", &[], Body::empty()).await;
    assert_eq!(piece.header("x-ratelimit-limit"), "1000", "{}", piece.text());
}
