//! Per-address rate limits against abuse: product 0 and 5.4, clients 8.2.

use axum::body::Body;
use http::Method;
use listener::options::ConnectionOptions;
use service::config::Config;
use tests::fixtures::private_bucket;
use tests::{Browser, Client, Form, PASSWORD, Reply, World};

fn few_requests() -> Config {
    Config { address_requests_per_second: 2, address_requests_burst: 5, ..Config::default() }
}

async fn guess(client: &Client, address: &str) -> Reply {
    let headers = [("authorization", "Bearer trug_nonsense")];
    client
        .without_key()
        .at(address)
        .send(Method::DELETE, "/photos/a", &headers, Body::empty())
        .await
}

#[tokio::test]
async fn address_rate_limit_allows_burst_then_rate() {
    let (world, client) = World::with_bucket_and(1, few_requests());
    client.put("/photos/", "a.txt", b"hello").await;
    let near = client.without_key().at("192.0.2.1");
    for _ in 0..5 {
        assert_eq!(near.get("/photos/a.txt").await.status, 200);
    }
    let refused = near.get("/photos/a.txt").await;
    refused.check_error(429, "rate_limited");
    assert_eq!((refused.header("retry-after"), &refused.json()["retryAfter"]), ("1", &1.into()));
    assert_eq!(refused.header("ratelimit-policy"), "\"address\";q=5;w=3");
    let far = client.without_key().at("192.0.2.2");
    assert_eq!(far.get("/photos/a.txt").await.status, 200);

    world.clock.advance(499);
    near.get("/photos/a.txt").await.check_error(429, "rate_limited");
    world.clock.advance(1);
    assert_eq!(near.get("/photos/a.txt").await.status, 200);
    near.get("/photos/none").await.check_error(429, "rate_limited");
}

#[tokio::test]
async fn address_rate_limit_groups_ipv6_64_and_skips_preflight() {
    let (_world, client) = World::with_bucket_and(1, few_requests());
    let at = |host: u32| client.without_key().at(&format!("2001:db8:1:2::{host:x}"));
    for host in 0..50 {
        assert_eq!(
            at(host).send(Method::OPTIONS, "/photos/a", &[], Body::empty()).await.status,
            204
        );
    }
    at(1).get("/photos/a").await.check_error(404, "file_not_found");
    at(2).get("/nobucket/a").await.check_error(404, "bucket_not_found");
    at(3).delete("/photos/a").await.check_error(401, "missing_api_key");
    assert_eq!(at(4).get("/").await.status, 302);
    assert_eq!(at(5).get("/-/health").await.status, 200);
    at(6).get("/photos/a").await.check_error(429, "rate_limited");
    at(7).delete("/photos/a").await.check_error(429, "rate_limited");
    let other = client.without_key().at("2001:db8:1:3::1");
    other.get("/photos/a").await.check_error(404, "file_not_found");
}

#[tokio::test]
async fn valid_credentials_pass_despite_failures_of_address() {
    let (world, client) = World::with_bucket_and(1, Config::default());
    let mut browser = Browser::with(world.anonymous().at("192.0.2.1"));
    world.set_password("ann", PASSWORD);
    assert_eq!(browser.sign_in("ann", PASSWORD).await.status, 200);
    for _ in 0..60 {
        guess(&client, "192.0.2.1").await.check_error(401, "invalid_api_key");
    }
    let refused = guess(&client, "192.0.2.1").await;
    refused.check_error(429, "rate_limited");
    assert_eq!(refused.header("ratelimit-policy"), "\"failed-auth\";q=60;w=60");
    assert_eq!(refused.header("retry-after"), "1");
    let near = client.at("192.0.2.1");
    near.delete("/photos/a").await.check_error(404, "file_not_found");
    near.get("/api/buckets").await.check_done();
    browser.get("/api/buckets").await.check_done();
    assert_eq!(near.without_key().get("/photos/a").await.status, 404);
    guess(&client, "192.0.2.2").await.check_error(401, "invalid_api_key");

    world.clock.advance(1_000);
    guess(&client, "192.0.2.1").await.check_error(401, "invalid_api_key");
    guess(&client, "192.0.2.1").await.check_error(429, "rate_limited");
}

#[tokio::test]
async fn cross_site_requests_are_not_charged_as_failures() {
    let (world, client) = World::with_bucket_and(1, Config::default());
    world.bucket("ann", "secret", private_bucket());
    let visitor = client.without_key().at("192.0.2.1");
    let image = [("sec-fetch-site", "cross-site"), ("sec-fetch-dest", "image")];
    for _ in 0..200 {
        let reply = visitor.get_with("/secret/x.png?apiKey=trug_nonsense", &image).await;
        reply.check_error(401, "invalid_api_key");
    }
    guess(&client, "192.0.2.1").await.check_error(401, "invalid_api_key");
}

#[tokio::test]
async fn address_rate_limit_ipv6_48_has_its_own_limit() {
    let (_world, client) = World::with_bucket_and(1, few_requests());
    let mut statuses = Vec::new();
    for subnet in 0..20 {
        let near = client.without_key().at(&format!("2001:db8:1:{subnet:x}::1"));
        for _ in 0..5 {
            statuses.push(near.get("/photos/a").await.status.as_u16());
        }
    }
    let limit = 5 * listener::limits::ADDRESSES_PER_NETWORK.get() as usize;
    assert!(statuses[..limit].iter().all(|status| *status == 404), "{statuses:?}");
    assert!(statuses[limit..].iter().all(|status| *status == 429), "{statuses:?}");
    let other = client.without_key().at("2001:db8:2::1");
    other.get("/photos/a").await.check_error(404, "file_not_found");
}

#[tokio::test]
async fn key_guessing_at_private_bucket_is_limited() {
    let (world, client) = World::with_bucket_and(1, Config::default());
    world.bucket("ann", "secret", private_bucket());
    let near = client.without_key().at("192.0.2.1");
    let headers = [("authorization", "Bearer trug_nonsense")];
    for _ in 0..60 {
        near.get_with("/secret/a", &headers).await.check_error(401, "invalid_api_key");
    }
    near.get_with("/secret/a", &headers).await.check_error(429, "rate_limited");
    assert_eq!(near.get_with("/photos/a", &headers).await.status, 404, "public files need no key");
}

#[tokio::test]
async fn requests_without_a_key_are_not_counted_as_guesses() {
    let (_world, client) = World::with_bucket_and(1, Config::default());
    let near = client.at("192.0.2.1");
    for _ in 0..100 {
        near.without_key().delete("/photos/a").await.check_error(401, "missing_api_key");
    }
    near.delete("/photos/a").await.check_error(404, "file_not_found");
}

#[tokio::test]
async fn address_rate_limit_uses_peer_and_exempts_loopback() {
    let one =
        Config { address_requests_per_second: 1, address_requests_burst: 1, ..Config::default() };
    let (world, _) = World::with_bucket_and(1, one);
    let server = world.listen(ConnectionOptions::new()).await;
    let get = "GET /photos/a HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: 192.0.2.1\r\nConnection: close\r\n\r\n";
    for _ in 0..5 {
        assert!(server.request(get).await.starts_with("HTTP/1.1 404 "));
    }
}

#[tokio::test]
async fn rejected_large_upload_still_receives_its_response() {
    let (world, client) = World::with_bucket_and(1, Config::default());
    let small = || Form::new().file("f", "a", None, b"1");
    while client.upload("/photos/a?overwrite=true", small()).await.status == 200 {}
    let server = world.listen(ConnectionOptions::new()).await;
    let body = vec![b'x'; 8 << 20];
    let head = format!(
        "POST /photos/ HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {}\r\nContent-Type: {}\r\nContent-Length: {}\r\n\r\n",
        client.key(),
        small().content_type(),
        body.len()
    );
    let answer = server.request([head.as_bytes(), &body].concat()).await;
    assert!(
        answer.starts_with("HTTP/1.1 429 ") && answer.contains("\r\nretry-after: 1\r\n"),
        "{answer}"
    );
    assert!(answer.contains("\"code\":\"rate_limited\""), "{answer}");
}
