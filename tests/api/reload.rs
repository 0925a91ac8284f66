//! Settings that change at run time: when each takes effect. Product 3.

use axum::body::Body;
use catalog::Plan;
use http::Method;
use listener::ip_network::Network;
use service::config::Config;
use tests::World;

#[tokio::test]
async fn reload_applies_rate_limits_and_keeps_counters() {
    let mut config = Config {
        address_requests_per_second: 1,
        address_requests_burst: 4,
        failed_authentications_per_minute: 2,
        ..Config::default()
    };
    let (world, client) = World::with_bucket_and(1, config.clone());
    world.set_plan("ann", Plan::Business);
    let near = client.without_key().at("192.0.2.1");
    let wrong = [("authorization", "Bearer trug_wrong")];
    let guess = || near.send(Method::DELETE, "/photos/a", &wrong, Body::empty());
    guess().await.check_error(401, "invalid_api_key");
    guess().await.check_error(401, "invalid_api_key");
    assert!(guess().await.header("ratelimit-policy").contains("failed-auth"));
    near.get("/photos/a").await.check_error(404, "file_not_found");
    near.get("/photos/a").await.check_error(429, "rate_limited");

    (config.address_requests_burst, config.business_uploads_per_minute) = (9, 7);
    world.state.reload(config.clone());
    near.get("/photos/a").await.check_error(404, "file_not_found");
    let refused = guess().await;
    refused.check_error(429, "rate_limited");
    assert!(refused.header("ratelimit-policy").contains("failed-auth"), "it was not changed");
    let stored = client.upload_file("/photos/", "a", b"a").await;
    assert!(stored.header("ratelimit-policy").contains("q=7"), "{:?}", stored.headers);

    config.trusted_networks = vec![Network::parse("192.0.2.0/24").unwrap()];
    world.state.reload(config.clone());
    for _ in 0..20 {
        assert_eq!(near.get("/photos/a").await.status, 200);
    }
    config.plan_rates = false;
    world.state.reload(config);
    let stored = client.upload_file("/photos/", "b", b"b").await;
    assert_eq!((stored.status.as_u16(), stored.header("ratelimit-policy")), (200, ""));
}

#[tokio::test]
async fn reload_applies_webhook_allow_list_to_open_connections() {
    use jobs::webhooks::deliver_due;
    use protocol::destination::Origin;
    use serde_json::json;
    use tests::Receiver;

    let receiver = Receiver::start();
    let mut config = Config { plan_rates: false, ..Config::default() };
    let (world, client) = World::with_bucket_and(1, config.clone());
    let body = json!({"url": receiver.url("/hook"), "events": ["s3:ObjectCreated:*"]});
    let hooks = "/api/buckets/photos/webhooks";
    client.post_json(hooks, body.clone()).await.check_parameter("url");

    config.webhook_allow = vec![Origin::parse(&receiver.origin()).unwrap()];
    world.state.reload(config.clone());
    client.post_json(hooks, body).await.check_done();
    client.put("/photos/", "a.txt", b"a").await;
    deliver_due(&world.state.jobs).await;
    assert_eq!(receiver.seen().len(), 1);

    config.webhook_allow = Vec::new();
    world.state.reload(config);
    client.put("/photos/", "b.txt", b"b").await;
    deliver_due(&world.state.jobs).await;
    assert_eq!(receiver.seen().len(), 1, "it is no longer allowed");
}
