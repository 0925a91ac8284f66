//! Requests through proxies: the client address, wherever it counts.

use axum::body::Body;
use http::Method;
use listener::ip_network::Network;
use service::config::Config;
use tests::{Client, Reply, World};

const PROXY: &str = "10.0.0.1";

fn config() -> Config {
    Config {
        trusted_proxies: vec![Network::parse("10.0.0.0/8").unwrap()],
        address_requests_per_second: 1,
        address_requests_burst: 3,
        failed_authentications_per_minute: 2,
        ..Config::default()
    }
}

/// Sends a request through a proxy, for a client as the proxy names it.
async fn request(client: &Client, proxy: &str, forwarded: &str) -> Reply {
    client.without_key().at(proxy).get_with("/photos/a", &[("x-forwarded-for", forwarded)]).await
}

async fn world() -> (World, Client) {
    let (world, client) = World::with_bucket_and(1, config());
    client.put("/photos/", "a", b"hello").await;
    (world, client)
}

#[tokio::test]
async fn proxy_clients_have_separate_rate_limits() {
    let (_world, client) = world().await;
    for _ in 0..3 {
        assert_eq!(request(&client, PROXY, "192.0.2.1").await.status, 200);
    }
    // For any value sent by the client before the proxy's entry, and through any proxy.
    for forwarded in ["192.0.2.1", "203.0.113.9, 192.0.2.1", "unknown,192.0.2.1, 10.9.9.9"] {
        request(&client, PROXY, forwarded).await.check_error(429, "rate_limited");
        request(&client, "10.0.0.2", forwarded).await.check_error(429, "rate_limited");
    }
    client.without_key().at("192.0.2.1").get("/photos/a").await.check_error(429, "rate_limited");
    assert_eq!(request(&client, PROXY, "192.0.2.2").await.status, 200);
    // The proxy itself is an address like others.
    for _ in 0..3 {
        assert_eq!(client.without_key().at(PROXY).get("/photos/a").await.status, 200);
    }
    request(&client, PROXY, "nonsense").await.check_error(429, "rate_limited");
}

#[tokio::test]
async fn proxy_headers_of_untrusted_peers_are_ignored() {
    let (_world, client) = world().await;
    for number in 0..3 {
        let forwarded = format!("192.0.2.{number}");
        assert_eq!(request(&client, "203.0.113.1", &forwarded).await.status, 200);
    }
    for forwarded in ["192.0.2.77", "10.0.0.1", "127.0.0.1"] {
        request(&client, "203.0.113.1", forwarded).await.check_error(429, "rate_limited");
    }
    // Nor is a client of a proxy treated as the machine itself, which has no limits.
    for _ in 0..3 {
        assert_eq!(request(&client, PROXY, "127.0.0.1").await.status, 200);
    }
    request(&client, PROXY, "127.0.0.1").await.check_error(429, "rate_limited");
}

#[tokio::test]
async fn proxy_client_address_is_used_for_failures_and_audit() {
    let (_world, client) = world().await;
    let guess = |forwarded: &'static str, key: &'static str| {
        let client = client.without_key().at(PROXY);
        async move {
            let headers = [("authorization", key), ("x-forwarded-for", forwarded)];
            client.send(Method::DELETE, "/photos/none", &headers, Body::empty()).await
        }
    };
    for _ in 0..2 {
        guess("192.0.2.1", "Bearer trug_wrong").await.check_error(401, "invalid_api_key");
    }
    guess("192.0.2.1", "Bearer trug_wrong").await.check_error(429, "rate_limited");
    guess("192.0.2.2", "Bearer trug_wrong").await.check_error(401, "invalid_api_key");

    let headers = [("content-type", "application/json"), ("x-forwarded-for", "192.0.2.9")];
    let body = Body::from(r#"{"bucketName":"more"}"#);
    let made = client.at(PROXY).send(Method::POST, "/api/buckets", &headers, body).await;
    made.check_done();
    let audit = client.get("/api/audit?action=bucket.create").await.check_done();
    assert_eq!(audit["entries"][0]["address"], "192.0.2.9", "{audit}");
}

#[tokio::test]
async fn proxy_host_and_scheme_headers_do_not_change_urls() {
    let (world, client) = world().await;
    world.make_private("photos");
    let headers = [
        ("x-forwarded-for", "192.0.2.1"),
        ("x-forwarded-proto", "gopher"),
        ("x-forwarded-host", "evil.example"),
        ("forwarded", "for=192.0.2.5;host=evil.example;proto=gopher"),
        ("content-type", "application/json"),
    ];
    let body = Body::from(r#"{"path":"a","expiresIn":60}"#);
    let path = "/api/buckets/photos/download-links";
    let made = client.at(PROXY).send(Method::POST, path, &headers, body).await.check_done();
    assert!(
        made["url"].as_str().unwrap().starts_with("https://cdn.example.com/photos/a?"),
        "{made}"
    );
}
