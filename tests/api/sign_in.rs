//! Sign-in with a password: accepted credentials, and the rate limit of attempts. Design 8, product 5.4.

use axum::body::Body;
use catalog::FairUseStanding;
use http::Method;
use serde_json::json;
use server::management::AccountSettings;
use tests::browser::{COOKIE, HOST};
use tests::{Browser, Client, PASSWORD, Reply, World};

const WRONG: &str = "correct horse cart";

/// Tries a name and a password from an address.
async fn try_from(world: &World, address: &str, name: &str, password: &str) -> Reply {
    Browser::with(world.anonymous().at(address)).sign_in(name, password).await
}

fn without_id(reply: &Reply) -> serde_json::Value {
    let mut body = reply.json();
    body["requestId"].take();
    body
}

#[tokio::test]
async fn sign_in_succeeds_with_correct_password() {
    let (world, _) = World::with_bucket(1);
    let mut browser = Browser::of(&world);
    let nobody = browser.get("/-/session").await;
    assert_eq!(nobody.json(), json!({"success": true, "signedIn": false, "setUpNeeded": true}));
    world.set_password("ann", PASSWORD);
    let reply = browser.sign_in("ann", PASSWORD).await;
    let body = reply.check_done();
    assert_eq!((&body["signedIn"], &body["account"]["name"]), (&true.into(), &"ann".into()));
    assert_eq!(body["account"]["hasPassword"], true);
    assert_eq!(body["session"]["createdAt"], "2026-01-31T12:00:00.000Z");
    assert_eq!(body["session"]["expiresAt"], "2026-02-07T12:00:00.000Z");
    let secret = browser.secret.clone().expect("a cookie was set");
    let cookie =
        format!("{COOKIE}={secret}; HttpOnly; SameSite=Strict; Secure; Path=/; Max-Age=2592000");
    assert_eq!(reply.header("set-cookie"), cookie);
    assert!(!reply.text().contains(&secret), "the secret is in the cookie alone");
    assert_eq!(browser.get("/-/session").await.json(), body);
    // The name as typed, and in another composition.
    assert_eq!(browser.sign_in(" ann ", PASSWORD).await.status, 200);
    world.account("Zo\u{eb}");
    world.set_password("Zo\u{eb}", "caf\u{e9} au lait");
    assert_eq!(browser.sign_in("Zoe\u{308}", "cafe\u{301} au lait").await.status, 200);
}

#[tokio::test]
async fn sign_in_wrong_password_and_unknown_name_look_alike() {
    let (world, _) = World::with_bucket(1);
    world.set_password("ann", PASSWORD);
    let id = world.account("bob");
    let mut browser = Browser::of(&world);
    let wrong = browser.sign_in("ann", WRONG).await;
    wrong.check_own_error(401, "wrong_password");
    assert_eq!(wrong.header("set-cookie"), "");
    // An account without a password, an account id, an unknown name, and invalid passwords.
    let long = "x".repeat(10_000);
    for (name, password) in [
        ("bob", PASSWORD),
        (id.as_str(), PASSWORD),
        ("carl", PASSWORD),
        ("", PASSWORD),
        ("ann", ""),
        ("ann", long.as_str()),
        ("ANN", PASSWORD),
    ] {
        let reply = browser.sign_in(name, password).await;
        reply.check_own_error(401, "wrong_password");
        assert_eq!(without_id(&reply), without_id(&wrong), "{name}");
    }
}

#[tokio::test]
async fn invalid_sign_in_is_rejected_without_echoing_password() {
    let (world, _) = World::with_bucket(1);
    let mut browser = Browser::of(&world);
    for (body, named) in [
        (json!({}), "name"),
        (json!({"name": "ann"}), "password"),
        (json!({"name": "ann", "password": 12345678}), "password"),
        (json!({"name": "ann", "password": ["12345678"]}), "password"),
        (json!({"name": "ann", "password": "12345678", "token": "12345678"}), "token"),
    ] {
        let reply = browser.post("/-/session", body).await;
        reply.check_own_error(400, "bad_parameter");
        assert_eq!(reply.json()["parameter"], named);
        assert!(!reply.text().contains("12345678"), "{}", reply.text());
    }
    let headers = [("content-type", "text/plain"), ("host", HOST)];
    let body = Body::from("{\"name\":\"ann\",\"password\":\"12345678\"}");
    let reply = world.anonymous().send(Method::POST, "/-/session", &headers, body).await;
    reply.check_own_error(415, "unsupported_media_type");
}

#[tokio::test]
async fn sign_in_failures_per_name_are_counted_globally() {
    let (world, _) = World::with_bucket(1);
    world.set_password("ann", PASSWORD);
    // Concurrently: none passes because the others are not decided yet.
    let tries = (0..14).map(|at| {
        let world = &world;
        async move { try_from(world, &format!("192.0.2.{at}"), "ann", WRONG).await.status.as_u16() }
    });
    let mut statuses = Vec::new();
    let mut running: Vec<_> = tries.map(Box::pin).collect();
    std::future::poll_fn(|context| {
        running.retain_mut(|it| match it.as_mut().poll(context) {
            std::task::Poll::Ready(status) => {
                statuses.push(status);
                false
            }
            std::task::Poll::Pending => true,
        });
        if running.is_empty() { std::task::Poll::Ready(()) } else { std::task::Poll::Pending }
    })
    .await;
    let refused = statuses.iter().filter(|status| **status == 429).count();
    assert_eq!((statuses.len(), refused), (14, 4), "{statuses:?}");
    // The right password, and one from the machine itself, must wait, too.
    for address in ["192.0.2.99", "127.0.0.1"] {
        let refused = try_from(&world, address, "ann", PASSWORD).await;
        refused.check_own_error(429, "rate_limited");
        assert_eq!(refused.header("retry-after"), "30");
    }
    world.account("bob");
    world.set_password("bob", PASSWORD);
    assert_eq!(try_from(&world, "192.0.2.1", "bob", PASSWORD).await.status, 200);
    world.clock.advance(30_000);
    assert_eq!(try_from(&world, "192.0.2.1", "ann", PASSWORD).await.status, 200);
    // A right password takes no token, and a wrong one takes the last.
    assert_eq!(try_from(&world, "192.0.2.1", "ann", PASSWORD).await.status, 200);
    assert_eq!(try_from(&world, "192.0.2.1", "ann", WRONG).await.status, 401);
    assert_eq!(try_from(&world, "192.0.2.1", "ann", PASSWORD).await.status, 429);
    // Unknown names have the same rate limit.
    for _ in 0..10 {
        assert_eq!(try_from(&world, "127.0.0.1", "carl", WRONG).await.status, 401);
    }
    assert_eq!(try_from(&world, "127.0.0.1", "carl", WRONG).await.status, 429);
}

/// Signs in with a password and the cookie of a device.
async fn try_on(world: &World, address: &str, device: &str, password: &str) -> Reply {
    let headers = [
        ("content-type", "application/json"),
        ("cookie", device),
        ("host", HOST),
        ("sec-fetch-site", "same-origin"),
    ];
    let body = Body::from(json!({"name": "ann", "password": password}).to_string());
    world.anonymous().at(address).send(Method::POST, "/-/session", &headers, body).await
}

fn device_of(reply: &Reply) -> String {
    let cookies = reply.headers.get_all("set-cookie").iter().filter_map(|it| it.to_str().ok());
    let cookie = cookies.into_iter().find(|it| it.starts_with("__Host-trug-device="));
    let cookie = cookie.expect("the browser gets a cookie to be known by");
    assert!(cookie.ends_with("; HttpOnly; SameSite=Strict; Secure; Path=/; Max-Age=7776000"));
    cookie.split(';').next().unwrap().to_owned()
}

#[tokio::test]
async fn sign_in_from_known_device_passes_during_attack() {
    let (world, _) = World::with_bucket(1);
    world.set_password("ann", PASSWORD);
    let device = device_of(&try_from(&world, "192.0.2.1", "ann", PASSWORD).await);
    for round in 0..20 {
        for at in 0..12 {
            try_from(&world, &format!("198.51.{round}.{at}"), "ann", WRONG).await;
        }
        try_from(&world, "198.51.100.99", "ann", PASSWORD)
            .await
            .check_own_error(429, "rate_limited");
        let address = format!("203.0.113.{round}");
        assert_eq!(try_on(&world, &address, &device, PASSWORD).await.status, 200, "{round}");
        world.clock.advance(1_000);
    }
    // The device has a limit, too, and a device cookie cannot be forged.
    for _ in 0..10 {
        try_on(&world, "192.0.2.1", &device, WRONG).await.check_own_error(401, "wrong_password");
    }
    try_on(&world, "192.0.2.1", &device, PASSWORD).await.check_own_error(429, "rate_limited");
    let mut forged = device.clone();
    let last = if forged.pop() == Some('a') { 'b' } else { 'a' };
    forged.push(last);
    try_on(&world, "192.0.2.2", &forged, PASSWORD).await.check_own_error(429, "rate_limited");
}

#[tokio::test]
async fn sign_in_device_of_another_account_is_not_trusted() {
    let (world, _) = World::with_bucket(1);
    world.account("bob");
    world.set_password("bob", PASSWORD);
    world.set_password("ann", PASSWORD);
    let device = device_of(&try_from(&world, "192.0.2.1", "bob", PASSWORD).await);
    for at in 0..10 {
        try_from(&world, &format!("198.51.100.{at}"), "ann", WRONG).await;
    }
    try_on(&world, "192.0.2.1", &device, PASSWORD).await.check_own_error(429, "rate_limited");
}

#[tokio::test]
async fn sign_in_rejections_are_charged_to_the_address() {
    let (world, _) = World::with_bucket(1);
    world.set_password("ann", PASSWORD);
    world.account("bob");
    world.set_password("bob", PASSWORD);
    for _ in 0..20 {
        try_from(&world, "192.0.2.7", "ann", WRONG).await;
    }
    let refused = try_from(&world, "192.0.2.7", "bob", PASSWORD).await;
    refused.check_own_error(429, "rate_limited");
    assert!(refused.header("ratelimit-policy").contains("sign-in-address"));
}

#[tokio::test]
async fn sign_in_failures_per_address_are_counted_for_all_names() {
    let (world, _) = World::with_bucket(1);
    world.set_password("ann", PASSWORD);
    for at in 0..20 {
        let reply = try_from(&world, "192.0.2.7", &format!("name {at}"), WRONG).await;
        reply.check_own_error(401, "wrong_password");
    }
    let refused = try_from(&world, "192.0.2.7", "ann", PASSWORD).await;
    refused.check_own_error(429, "rate_limited");
    assert_eq!(refused.header("retry-after"), "3");
    assert_eq!(try_from(&world, "192.0.2.8", "ann", PASSWORD).await.status, 200);
    world.clock.advance(3_000);
    assert_eq!(try_from(&world, "192.0.2.7", "ann", PASSWORD).await.status, 200);
}

#[tokio::test]
async fn suspended_account_is_signed_out_and_cannot_sign_in() {
    let (world, _) = World::with_bucket(1);
    let mut browser = Browser::signed_in(&world, "ann").await;
    let standing = |standing| {
        let standing = Some(standing);
        world.edit_account("ann", AccountSettings { standing, ..AccountSettings::default() });
    };
    standing(FairUseStanding::Throttled);
    assert!(browser.is_signed_in().await);
    standing(FairUseStanding::Suspended);
    browser.get("/api/buckets").await.check_error(401, "session_ended");
    assert!(!browser.is_signed_in().await);
    browser.sign_in("ann", PASSWORD).await.check_own_error(403, "account_suspended");
    browser.sign_in("ann", WRONG).await.check_own_error(401, "wrong_password");
    standing(FairUseStanding::Good);
    assert!(!browser.is_signed_in().await, "what ended does not come back");
    assert_eq!(browser.sign_in("ann", PASSWORD).await.status, 200);
}

#[tokio::test]
async fn password_change_revokes_all_other_sessions() {
    let (world, _) = World::with_bucket(1);
    let mut one = Browser::signed_in(&world, "ann").await;
    let mut other = Browser::of(&world);
    assert_eq!(other.sign_in("ann", PASSWORD).await.status, 200);
    let change = |current: &str, new: &str| json!({"current": current, "new": new});
    let wrong = one.put("/-/password", change(WRONG, "a new password")).await;
    wrong.check_own_error(401, "wrong_password");
    let short = one.put("/-/password", change(PASSWORD, "short")).await;
    short.check_own_error(400, "bad_parameter");
    assert_eq!(short.json()["parameter"], "new");
    assert!(short.json()["error"].as_str().unwrap().contains("at least 10 characters"));
    assert!(other.is_signed_in().await);
    let changed = one.put("/-/password", change(PASSWORD, "a new password")).await;
    assert_eq!((changed.status.as_u16(), changed.body.len()), (204, 0));
    assert_eq!(changed.header("cache-control"), "no-store");
    assert!(one.is_signed_in().await);
    assert!(!other.is_signed_in().await);
    other.sign_in("ann", PASSWORD).await.check_own_error(401, "wrong_password");
    assert_eq!(other.sign_in("ann", "a new password").await.status, 200);
    // Set by the operator, a password ends them all.
    world.set_password("ann", PASSWORD);
    assert!(!one.is_signed_in().await && !other.is_signed_in().await);
}

#[tokio::test]
async fn password_change_attempts_are_limited_per_session() {
    let (world, _) = World::with_bucket(1);
    let mut browser = Browser::signed_in(&world, "ann").await;
    let body = json!({"current": WRONG, "new": "a new password"});
    for _ in 0..10 {
        let reply = browser.put("/-/password", body.clone()).await;
        reply.check_own_error(401, "wrong_password");
    }
    browser.put("/-/password", body).await.check_own_error(429, "rate_limited");
    assert!(browser.is_signed_in().await);
    // Other sessions, and the limit of the name, are not affected.
    assert_eq!(browser.sign_in("ann", PASSWORD).await.status, 200);
}

#[tokio::test]
async fn sign_in_always_creates_a_new_session() {
    let (world, _) = World::with_bucket(1);
    world.set_password("ann", PASSWORD);
    world.account("eve");
    // A planted cookie, either of the attacker's own session or an invalid one.
    let eve = Browser::signed_in(&world, "eve").await.secret.unwrap();
    for slipped_in in [eve, "a".repeat(52), "x".into()] {
        let mut browser = Browser::of(&world).holding(Some(slipped_in.clone()));
        assert_eq!(browser.sign_in("ann", PASSWORD).await.status, 200);
        let secret = browser.secret.clone().unwrap();
        assert_ne!(secret, slipped_in);
        let mut attacker = Browser::of(&world).holding(Some(slipped_in));
        assert!(!attacker.is_signed_in().await);
        // The browser's earlier session ends as soon as it has another one.
        assert_eq!(browser.sign_in("ann", PASSWORD).await.status, 200);
        let mut before = Browser::of(&world).holding(Some(secret));
        assert!(!before.is_signed_in().await);
        assert!(browser.is_signed_in().await);
    }
}

#[tokio::test]
async fn api_key_takes_precedence_over_session_cookie() {
    let (world, key) = World::with_bucket(1);
    let session = Browser::signed_in(&world, "ann").await;
    let with = |key: Option<&str>| {
        let client = Client::new(world.app(), key.map(str::to_owned));
        Browser::with(client).holding(session.secret.clone())
    };
    with(Some("nonsense")).get("/api/buckets").await.check_error(401, "invalid_api_key");
    let bucket = Some("photos".to_owned());
    let scopes = vec![catalog::Scope::Read];
    let limited = world.api_key(
        "ann",
        server::management::ApiKeySettings { bucket, scopes, ..Default::default() },
    );
    with(Some(&limited.key)).get("/api/buckets").await.check_error(403, "forbidden");
    assert_eq!(with(None).get("/api/buckets").await.status, 200);
    // Requests reserved to a signed-in user are not permitted for any key.
    let mut keyed = Browser::with(key.clone());
    for (method, path, body) in [
        (Method::GET, "/-/sessions", None),
        (Method::DELETE, "/-/sessions", None),
        (Method::DELETE, "/-/sessions/aaaaaaaaaaaaaaaa", None),
        (Method::PUT, "/-/password", Some(json!({"current": PASSWORD, "new": "a new password"}))),
    ] {
        keyed.request(method, path, body).await.check_own_error(403, "forbidden");
    }
    assert_eq!(key.upload_file("/photos/", "a.txt", b"1").await.status, 200);
}
