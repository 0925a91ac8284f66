//! Access to the metrics: with the token, and on the admin listener.

use axum::body::Body;
use http::Method;
use listener::options::ConnectionOptions;
use server::admin::AdminService;
use tests::wire::Listening;
use tests::{Client, OpenMetrics, World};
use usage::registry::ListenerKind;

use super::{TOKEN, config, listening, scrape};

#[tokio::test]
async fn metrics_return_404_without_a_configured_token() {
    let (world, client) = World::with_bucket(1);
    for asking in [client, world.anonymous()] {
        for method in [Method::GET, Method::HEAD, Method::POST, Method::DELETE] {
            let ask = async |path: &str| {
                let reply = asking.send(method.clone(), path, &[], Body::empty()).await;
                let headers: Vec<_> = reply
                    .headers
                    .iter()
                    .filter(|(name, _)| *name != "x-request-id")
                    .map(|(name, value)| format!("{name}: {value:?}"))
                    .collect();
                let id = reply.header("x-request-id").to_owned();
                (reply.status, headers, reply.text().replace(&id, ""))
            };
            let (nothing, metrics) = (ask("/-/nothing").await, ask("/-/metrics").await);
            assert_eq!(metrics, nothing);
            assert_eq!(metrics.0, 404);
        }
    }
}

#[tokio::test]
async fn metrics_require_the_token() {
    let (world, client, server) = listening(config(&[])).await;
    let (metrics, _) = scrape(&server).await;
    assert!(metrics.families.len() > 50);
    let anonymous = world.anonymous();
    let right = format!("Bearer {TOKEN}");
    let reply = anonymous.get_with("/-/metrics", &[("authorization", &right)]).await;
    assert_eq!(reply.status, 200);
    for (name, value) in [
        ("content-type", "application/openmetrics-text; version=1.0.0; charset=utf-8"),
        ("cache-control", "no-store"),
        ("x-content-type-options", "nosniff"),
        ("access-control-allow-origin", ""),
    ] {
        assert_eq!(reply.header(name), value, "{name}");
    }
    let head = anonymous.head_with("/-/metrics", &[("authorization", &right)]).await;
    assert_eq!((head.status.as_u16(), head.body.len()), (200, 0));
    for scheme in ["bearer", "BEARER"] {
        let right = format!("{scheme} {TOKEN}");
        let reply = anonymous.get_with("/-/metrics", &[("authorization", &right)]).await;
        assert_eq!(reply.status, 200, "{scheme}");
    }
    let longer = format!("Bearer {TOKEN}x");
    let shorter = format!("Bearer {}", &TOKEN[1..]);
    let other = format!("Basic {TOKEN}");
    let key = format!("Bearer {}", client.key());
    for wrong in ["Bearer", "Bearer ", TOKEN, &longer, &shorter, &other, &key] {
        let reply = anonymous.get_with("/-/metrics", &[("authorization", wrong)]).await;
        reply.check_error(401, "wrong_metrics_token");
        assert_eq!(reply.header("www-authenticate"), "Bearer");
        assert!(!reply.text().contains(TOKEN) && !reply.text().contains("trug_"), "{wrong}");
    }
    let twice = [("authorization", &*right), ("authorization", "Bearer x")];
    anonymous.get_with("/-/metrics", &twice).await.check_error(401, "wrong_metrics_token");
    // An operator's key and the query are no token, and a token is no key.
    world.operator().get("/-/metrics").await.check_error(401, "wrong_metrics_token");
    let query = format!("/-/metrics?apiKey={TOKEN}&token={TOKEN}");
    anonymous.get(&query).await.check_error(401, "wrong_metrics_token");
    let thief = Client::new(world.app(), Some(TOKEN.to_owned()));
    thief.get("/api/keys").await.check_error(401, "invalid_api_key");
    let post = anonymous.post("/-/metrics").await;
    post.check_error(405, "method_not_allowed");
    let premium = world.at_premium(&thief).get("/-/metrics").await;
    assert_eq!(premium.status, 200);
}

#[tokio::test]
async fn guesses_of_the_metrics_token_are_rate_limited() {
    let (world, _, _server) = listening(config(&["failed_authentications_per_minute=3"])).await;
    let guess = Client::new(world.app(), Some("guess".to_owned())).at("203.0.113.9");
    for _ in 0..3 {
        guess.get("/-/metrics").await.check_error(401, "wrong_metrics_token");
    }
    guess.get("/-/metrics").await.check_error(429, "rate_limited");
    // The right one is let in from there, too.
    let right = Client::new(world.app(), Some(TOKEN.to_owned()));
    assert_eq!(right.at("203.0.113.9").get("/-/metrics").await.status, 200);
    world.clock.advance(60_000);
    guess.get("/-/metrics").await.check_error(401, "wrong_metrics_token");
    // A request without a token is no guess.
    let anonymous = world.anonymous().at("203.0.113.11");
    for _ in 0..10 {
        anonymous.get("/-/metrics").await.check_error(401, "wrong_metrics_token");
    }
}

#[tokio::test]
async fn metrics_listener_serves_only_metrics_and_health() {
    let (world, client) = World::with_bucket(1);
    client.put("/photos/", "a.txt", b"hello").await;
    let counts = world.state.metrics.connections(ListenerKind::Admin).clone();
    let options = ConnectionOptions { counts, ..ConnectionOptions::new() };
    let server = Listening::admin(AdminService::new(world.state.clone()), options).await;
    let mut wire = server.send("").await;
    let mut ask = async |line: &str| {
        let key = client.key();
        let head = format!("{line} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {key}\r\n\r\n");
        wire.write(head).await;
        wire.read_response().await
    };
    let metrics = OpenMetrics::read(&ask("GET /-/metrics").await.text());
    assert_eq!(metrics.value("trug_objects"), 1.0);
    assert_eq!(metrics.value("trug_http_connections{listener=\"admin\"}"), 1.0);
    // Requests on the admin listener are not counted.
    assert_eq!(metrics.value("trug_http_requests_total{op=\"metrics\",status=\"2xx\"}"), 0.0);
    for path in ["/-/health", "/-/ready"] {
        assert_eq!(ask(&format!("GET {path}")).await.json()["store"], "writable");
    }
    for line in [
        "GET /",
        "GET /-/",
        "GET /-/docs",
        "GET /-/openapi.json",
        "GET /-/session",
        "GET /-/set-up",
        "GET /-/files/photos/",
        "GET /photos/a.txt",
        "GET /photos/",
        "GET /api/keys",
        "GET /api/storage",
        "GET /-/metrics/",
        "GET /-/metrics/x",
        "GET //-/metrics",
        "GET /-/%6detrics",
        "POST /photos/",
        "DELETE /photos/a.txt",
        "PUT /photos/a.txt?token=x",
        "POST /api/tus",
        "OPTIONS /photos/a.txt",
    ] {
        let reply = ask(line).await;
        reply.check_error(404, "not_found");
    }
    for line in ["POST /-/metrics", "DELETE /-/health", "OPTIONS /-/ready"] {
        ask(line).await.check_error(405, "method_not_allowed");
    }
    assert_eq!(client.get("/photos/a.txt").await.body, "hello");
    // The admin listener reports a shutdown first.
    world.state.start_draining();
    ask("GET /-/ready").await.check_error(503, "not_ready");
    assert_eq!(ask("GET /-/health").await.status, 200);
}
