//! Errors, preflights and reserved addresses: specification 7, clients 2, 7 and 8.1.

use axum::body::Body;
use http::Method;
use tests::World;

#[tokio::test]
async fn every_error_response_is_json() {
    let (_world, client) = World::with_bucket(1);
    for path in ["/api", "/api/", "/api/none", "/api/none/x", "/-", "/-/none", "/-/none/x"] {
        for method in [Method::GET, Method::POST, Method::PUT, Method::DELETE] {
            let reply = client.send(method.clone(), path, &[], Body::empty()).await;
            assert_eq!(reply.status, 404, "{method} {path}");
            reply.check_error(404, "not_found");
        }
    }
}

#[tokio::test]
async fn method_not_allowed_lists_allowed_methods() {
    let (_world, client) = World::with_bucket(1);
    for (path, allow) in [
        ("/photos", "GET, HEAD, POST, DELETE, OPTIONS"),
        ("/photos/", "GET, HEAD, POST, DELETE, OPTIONS"),
        ("/photos/a.txt", "GET, HEAD, POST, DELETE, OPTIONS"),
        ("/-/health", "GET, HEAD, OPTIONS"),
        ("/-/ready", "GET, HEAD, OPTIONS"),
        ("/", "GET, HEAD, OPTIONS"),
        ("/-/", "GET, HEAD, OPTIONS"),
        ("/-/files/photos/a", "GET, HEAD, OPTIONS"),
    ] {
        for method in [Method::PUT, Method::PATCH, Method::TRACE] {
            let reply = client.send(method, path, &[], Body::empty()).await;
            reply.check_error(405, "method_not_allowed");
            assert_eq!(reply.header("allow"), allow, "{path}");
        }
    }
}

#[tokio::test]
async fn preflight_is_allowed_on_every_path() {
    let (world, _) = World::with_bucket(1);
    for path in
        ["/photos/a.txt", "/photos/", "/photos", "/nowhere/a", "/api/none", "/", "/-/health"]
    {
        let headers = [
            ("origin", "https://cfx-nui-phone"),
            ("access-control-request-method", "POST"),
            ("access-control-request-headers", "authorization,x-custom"),
            ("access-control-request-private-network", "true"),
        ];
        let anonymous = world.anonymous();
        let reply = anonymous.send(Method::OPTIONS, path, &headers, Body::empty()).await;
        assert_eq!(reply.status, 204, "{path}");
        assert!(reply.body.is_empty());
        for (name, value) in [
            ("access-control-allow-origin", "*"),
            ("access-control-allow-methods", "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS"),
            ("access-control-allow-headers", "authorization,x-custom"),
            ("access-control-max-age", "7200"),
            ("access-control-allow-private-network", "true"),
        ] {
            assert_eq!(reply.header(name), value, "{path} {name}");
        }
    }
}

#[tokio::test]
async fn options_returns_allowed_methods() {
    let (world, _) = World::with_bucket(1);
    for (path, allow) in [
        ("/api/buckets", "GET, HEAD, POST, OPTIONS"),
        ("/api/tus/", "POST, OPTIONS"),
        ("/-/health", "GET, HEAD, OPTIONS"),
        ("/api/none", ""),
        ("/photos/a.txt", ""),
    ] {
        let reply = world.anonymous().send(Method::OPTIONS, path, &[], Body::empty()).await;
        assert_eq!((reply.status.as_u16(), reply.header("allow")), (204, allow), "{path}");
    }
}

#[tokio::test]
async fn problem_json_is_sent_on_request() {
    let (_world, client) = World::with_bucket(1);
    let headers = [("accept", "application/problem+json")];
    for reply in [
        client.get_with("/photos/none.txt", &headers).await,
        client.send(Method::DELETE, "/photos/none.txt", &headers, Body::empty()).await,
    ] {
        assert_eq!(reply.status, 404);
        assert_eq!(reply.header("content-type"), "application/problem+json");
        let body = reply.json();
        assert_eq!(body["success"], false);
        assert_eq!(body["error"], "File not found");
        assert_eq!(body["title"], "Not Found");
        assert_eq!(body["status"], 404);
    }
}

#[tokio::test]
async fn every_response_has_a_unique_request_id() {
    let (_world, client) = World::with_bucket(1);
    client.put("/photos/", "a.txt", b"1").await;
    let mut ids = std::collections::BTreeSet::new();
    for path in ["/photos/a.txt", "/photos/none.txt", "/api/none", "/-/health", "/photos/a.txt"] {
        let id = client.get(path).await.header("x-request-id").to_owned();
        assert_eq!(id.len(), 16, "{path}");
        assert!(ids.insert(id));
    }
}

#[tokio::test]
async fn health_and_readiness_are_reported() {
    let (world, client) = World::with_bucket(1);
    let anonymous = client.without_key();
    for path in ["/-/health", "/-/ready"] {
        let reply = anonymous.get(path).await;
        assert_eq!(reply.status, 200);
        assert_eq!(reply.json()["success"], true);
    }
    assert!(anonymous.head_with("/-/health", &[]).await.body.is_empty());
    world.state.start_draining();
    assert_eq!(anonymous.get("/-/health").await.status, 200);
    anonymous.get("/-/ready").await.check_error(503, "not_ready");
}

#[tokio::test]
async fn closed_store_rejects_requests_with_503() {
    let (world, client) = World::with_bucket(1);
    world.store.close().unwrap();
    client.delete("/photos/a.txt").await.check_error(503, "shutting_down");
}
