//! Sessions: permissions, lifetime, and cross-site protection: design 8, product 5.2 and 5.4.

use axum::body::Body;
use catalog::Scope;
use http::Method;
use serde_json::json;
use server::management::{AccountSettings, BucketSettings};
use tests::browser::{COOKIE, HOST};
use tests::{Browser, Form, PASSWORD, Reply, World};

const HOUR_MS: u64 = 60 * 60 * 1_000;
const DAY_MS: u64 = 24 * HOUR_MS;

/// Sends a form from a same-origin page.
async fn upload(world: &World, browser: &Browser, path: &str) -> Reply {
    let form = Form::new().file("file", "a.txt", None, b"hello");
    let content_type = form.content_type();
    let cookie = format!("{COOKIE}={}", browser.secret.as_deref().unwrap_or_default());
    let headers = [
        ("host", HOST),
        ("cookie", cookie.as_str()),
        ("sec-fetch-site", "same-origin"),
        ("content-type", content_type.as_str()),
    ];
    world.anonymous().send(Method::POST, path, &headers, Body::from(form.body())).await
}

fn private(world: &World) {
    world.make_private("photos");
}

#[tokio::test]
async fn session_grants_the_access_of_its_account() {
    let (world, _) = World::with_bucket(1);
    private(&world);
    let mut ann = Browser::signed_in(&world, "ann").await;
    assert_eq!(upload(&world, &ann, "/photos/a.txt").await.status, 200);
    let file = ann.get("/photos/a.txt").await;
    assert_eq!((file.status.as_u16(), &*file.text()), (200, "hello"));
    Browser::of(&world).get("/photos/a.txt").await.check_error(401, "missing_api_key");
    assert_eq!(ann.get("/api/buckets").await.check_done()["buckets"][0]["bucketName"], "photos");
    assert_eq!(ann.get("/api/account").await.check_done()["account"]["name"], "ann");
    ann.get("/api/list-objects?bucketName=photos").await.check_done();
    ann.get("/api/usage").await.check_done();
    ann.post("/api/buckets", json!({"bucketName": "second"})).await.check_done();
    let scopes: Vec<&str> = Scope::ALL.iter().map(|scope| scope.as_str()).collect();
    let issued = ann.post("/api/keys", json!({"scopes": scopes})).await.check_done();
    assert!(issued["key"].as_str().unwrap().starts_with("trug_"));
    let tus = [
        ("sec-fetch-site", "same-origin"),
        ("tus-resumable", "1.0.0"),
        ("upload-length", "1"),
        ("upload-metadata", "bucketName cGhvdG9z"),
    ];
    let begun = ann.request_with(Method::POST, "/api/tus/", &tus, None).await;
    assert_eq!(begun.status, 201, "{}", begun.text());
    assert_eq!(ann.delete("/photos/a.txt").await.status, 200);
    // Nothing else is permitted: other accounts' buckets, and operator requests.
    world.account("bob");
    world.bucket("bob", "films", BucketSettings::default());
    ann.get("/api/buckets/films").await.check_error(404, "bucket_not_found");
    upload(&world, &ann, "/films/a.txt").await.check_error(404, "bucket_not_found");
    ann.get("/api/accounts").await.check_error(403, "forbidden");
    let role = Some(catalog::Role::Operator);
    world.edit_account("ann", AccountSettings { role, ..AccountSettings::default() });
    ann.get("/api/accounts").await.check_done();
    // The plan is required as with keys.
    let premium = Browser::with(world.at_premium(&world.anonymous())).holding(ann.secret.clone());
    premium.clone().get("/api/buckets").await.check_error(403, "plan_required");
}

#[tokio::test]
async fn rate_limit_applies_to_sessions_as_to_keys() {
    let (world, _) = World::with_bucket_and(1, service::config::Config::default());
    let ann = Browser::signed_in(&world, "ann").await;
    for count in 0..100 {
        let reply = upload(&world, &ann, "/photos/a.txt?overwrite=1").await;
        assert_eq!(reply.header("x-ratelimit-remaining"), (99 - count).to_string());
    }
    upload(&world, &ann, "/photos/a.txt").await.check_error(429, "rate_limited");
}

#[tokio::test]
async fn sign_out_invalidates_the_session_cookie() {
    let (world, _) = World::with_bucket(1);
    let mut ann = Browser::signed_in(&world, "ann").await;
    let kept = ann.clone();
    let reply = ann.delete("/-/session").await;
    assert_eq!((reply.status.as_u16(), ann.secret.as_ref()), (204, None));
    let cleared = format!("{COOKIE}=; HttpOnly; SameSite=Strict; Secure; Path=/; Max-Age=0");
    assert_eq!(reply.header("set-cookie"), cleared);
    // Replayed.
    let mut thief = kept.clone();
    thief.get("/api/buckets").await.check_error(401, "session_ended");
    upload(&world, &kept, "/photos/").await.check_error(401, "session_ended");
    assert!(!thief.is_signed_in().await);
    assert_eq!(thief.secret, None, "the cookie is cleared");
    // Signing out twice succeeds, too.
    assert_eq!(kept.clone().delete("/-/session").await.status, 204);
    assert_eq!(ann.delete("/-/session").await.status, 204);
    // The response to an invalid cookie equals that to an ended session.
    let mut none = Browser::of(&world).holding(Some("x".into()));
    none.get("/api/buckets").await.check_error(401, "session_ended");
}

#[tokio::test]
async fn sessions_are_listed_and_revoked_singly_or_all() {
    let (world, _) = World::with_bucket(1);
    let mut one = Browser::signed_in(&world, "ann").await;
    world.clock.advance(2 * HOUR_MS);
    let mut other = Browser::with(world.anonymous().at("2001:db8::7"));
    assert_eq!(other.sign_in("ann", PASSWORD).await.status, 200);
    world.account("bob");
    let mut bob = Browser::signed_in(&world, "bob").await;
    let list = other.get("/-/sessions").await.check_done();
    let sessions = list["sessions"].as_array().unwrap();
    assert_eq!(sessions.len(), 2, "{list}");
    assert_eq!((&sessions[0]["current"], &sessions[1]["current"]), (&true.into(), &false.into()));
    assert_eq!(sessions[0]["address"], "2001:db8::7");
    assert_eq!(sessions[0]["agent"], "Mozilla/5.0 (a browser)");
    assert_eq!(sessions[1]["lastSeenAt"], "2026-01-31T12:00:00.000Z");
    assert_eq!(sessions[1]["expiresAt"], "2026-02-07T12:00:00.000Z");
    assert!(!list.to_string().contains(one.secret.as_deref().unwrap()), "{list}");
    let path = format!("/-/sessions/{}", sessions[1]["id"].as_str().unwrap());
    bob.delete(&path).await.check_own_error(404, "session_not_found");
    assert_eq!(other.delete(&path).await.status, 204);
    other.delete(&path).await.check_own_error(404, "session_not_found");
    assert!(!one.is_signed_in().await && other.is_signed_in().await);

    assert_eq!(one.sign_in("ann", PASSWORD).await.status, 200);
    assert_eq!(one.delete("/-/sessions").await.status, 204);
    assert_eq!(one.secret, None);
    assert!(!one.is_signed_in().await && !other.is_signed_in().await);
    assert!(bob.is_signed_in().await);
}

#[tokio::test]
async fn session_expires_when_idle_and_after_a_month() {
    let (world, _) = World::with_bucket(1);
    let mut idle = Browser::signed_in(&world, "ann").await;
    let mut busy = Browser::of(&world);
    assert_eq!(busy.sign_in("ann", PASSWORD).await.status, 200);
    world.clock.advance(6 * DAY_MS);
    assert!(busy.is_signed_in().await);
    world.clock.advance(DAY_MS - 1);
    let mut last = idle.clone();
    world.clock.advance(1);
    idle.get("/api/buckets").await.check_error(401, "session_ended");
    assert!(!last.is_signed_in().await);
    for _ in 0..22 {
        world.clock.advance(DAY_MS);
        assert!(busy.is_signed_in().await);
    }
    let expires = busy.get("/-/session").await.json()["session"]["expiresAt"].clone();
    assert_eq!(expires, "2026-03-02T12:00:00.000Z");
    world.clock.advance(DAY_MS - 1);
    assert!(busy.is_signed_in().await);
    world.clock.advance(1);
    assert!(!busy.is_signed_in().await);
    // Ended sessions are removed.
    assert_eq!(world.state.catalog.sessions().sweep().unwrap(), 2);
    assert_eq!(world.state.catalog.sessions().sweep().unwrap(), 0);
}

#[tokio::test]
async fn sessions_survive_restart() {
    let (world, _) = World::with_bucket(1);
    let mut ann = Browser::signed_in(&world, "ann").await;
    let mut gone = Browser::of(&world);
    assert_eq!(gone.sign_in("ann", PASSWORD).await.status, 200);
    assert_eq!(gone.clone().delete("/-/session").await.status, 204);
    world.clock.advance(5 * DAY_MS);
    assert!(ann.is_signed_in().await);
    world.state.catalog.sessions().write_uses().unwrap();
    let found = world.found_on(world.disk.fork());
    found.clock.advance(5 * DAY_MS);
    let mut ann = Browser::of(&found).holding(ann.secret);
    let mut gone = Browser::of(&found).holding(gone.secret);
    assert!(ann.is_signed_in().await && !gone.is_signed_in().await);
    assert_eq!(ann.sign_in("ann", PASSWORD).await.status, 200);
}

/// Headers of a request, and whether a reading and a changing one with them are permitted.
type Site = (&'static [(&'static str, &'static str)], bool, bool);

/// Fetch Metadata of requests.
const SITES: &[Site] = &[
    // Headers; whether the cookie permits reads, and changes.
    (&[("sec-fetch-site", "same-origin")], true, true),
    (&[("sec-fetch-site", "none")], true, false),
    (&[("sec-fetch-site", "same-site")], false, false),
    (&[("sec-fetch-site", "cross-site")], false, false),
    (&[("sec-fetch-site", "cross-site"), ("origin", "https://cdn.example.com")], false, false),
    (&[("sec-fetch-site", "nonsense")], false, false),
    (&[("origin", "https://cdn.example.com")], true, true),
    (&[("origin", "https://evil.example.com")], false, false),
    (&[("origin", "https://cdn.example.com:8443")], false, false),
    (&[("origin", "null")], false, false),
    (&[], true, false),
];

#[tokio::test]
async fn csrf_cookie_is_accepted_from_same_origin_only() {
    let (world, client) = World::with_bucket(1);
    private(&world);
    client.put("/photos/", "a.txt", b"hello").await;
    let ann = Browser::signed_in(&world, "ann").await;
    for (headers, reads, changes) in SITES {
        for method in [Method::GET, Method::HEAD] {
            for path in ["/api/buckets", "/photos/a.txt", "/-/session", "/-/sessions"] {
                let reply = ann.clone().request_with(method.clone(), path, headers, None).await;
                let status = if *reads { 200 } else { 403 };
                assert_eq!(reply.status, status, "{method} {path} {headers:?}");
                if !*reads && method == Method::GET {
                    assert_eq!(reply.json()["code"], "cross_site");
                }
            }
        }
        for (method, path) in [
            (Method::POST, "/api/buckets"),
            (Method::PATCH, "/api/buckets/photos"),
            (Method::DELETE, "/photos/none.txt"),
            (Method::DELETE, "/-/sessions/aaaaaaaaaaaaaaaa"),
        ] {
            let body = (method != Method::DELETE).then(|| json!({"unknown": 1}));
            let reply = ann.clone().request_with(method.clone(), path, headers, body).await;
            // Permitted requests report other errors.
            let is_refused = reply.json()["code"] == "cross_site";
            assert_eq!(is_refused, !*changes, "{method} {path} {headers:?}: {}", reply.text());
            assert_eq!(reply.status == 403, !*changes);
        }
    }
    // With a key the cookie is ignored, and the site does not matter.
    let mut keyed = Browser::with(client).holding(ann.secret.clone());
    let foreign = [("sec-fetch-site", "cross-site"), ("origin", "https://evil.example.com")];
    assert_eq!(keyed.request_with(Method::GET, "/api/buckets", &foreign, None).await.status, 200);
    // Nor where no credential is required.
    let access = Some(catalog::Access::Public);
    world.edit_bucket("photos", BucketSettings { access, ..BucketSettings::default() });
    let mut ann = ann;
    let public = ann.request_with(Method::GET, "/photos/a.txt", &foreign, None).await;
    assert_eq!(public.status, 200);
}

#[tokio::test]
async fn csrf_cross_site_sign_in_and_out_are_rejected() {
    let (world, _) = World::with_bucket(1);
    let mut ann = Browser::signed_in(&world, "ann").await;
    let body = json!({"name": "ann", "password": PASSWORD});
    for (headers, _, changes) in SITES {
        // Without a cookie only the session itself could be forged: tools send no Fetch Metadata.
        let mut browser = Browser::of(&world);
        let reply =
            browser.request_with(Method::POST, "/-/session", headers, Some(body.clone())).await;
        let may = *changes || headers.is_empty();
        assert_eq!(reply.status, if may { 200 } else { 403 }, "{headers:?}");
        assert_eq!(browser.secret.is_some(), may);
        if !*changes {
            let reply = ann.request_with(Method::DELETE, "/-/session", headers, None).await;
            reply.check_own_error(403, "cross_site");
        }
    }
    assert!(ann.is_signed_in().await);
}

#[tokio::test]
async fn duplicate_session_cookies_are_rejected() {
    let (world, _) = World::with_bucket(1);
    let ann = Browser::signed_in(&world, "ann").await;
    let secret = ann.secret.unwrap();
    for cookie in
        [format!("{COOKIE}={secret}; {COOKIE}={secret}"), format!("{COOKIE}=x; {COOKIE}={secret}")]
    {
        let headers =
            [("host", HOST), ("cookie", cookie.as_str()), ("sec-fetch-site", "same-origin")];
        let reply = world.anonymous().get_with("/api/buckets", &headers).await;
        reply.check_error(401, "session_ended");
    }
    // Under https the cookie of http is not accepted.
    let plain = format!("trug-session={secret}");
    let headers = [("host", HOST), ("cookie", plain.as_str()), ("sec-fetch-site", "same-origin")];
    let reply = world.anonymous().get_with("/api/buckets", &headers).await;
    reply.check_error(401, "missing_api_key");
}

#[tokio::test]
async fn dashboard_answers_only_on_its_own_host_names() {
    let config = service::config::Config {
        dashboard_hosts: vec!["files.internal".into()],
        plan_rates: false,
        ..Default::default()
    };
    let (world, _) = World::with_bucket_and(1, config);
    let ann = Browser::signed_in(&world, "ann").await;
    for (host, is_ours) in [
        ("cdn.example.com", true),
        ("cdn.example.com:8443", true),
        ("files.internal:8080", true),
        ("localhost:8080", true),
        ("127.0.0.1:8080", true),
        ("[::1]:8080", true),
        ("192.0.2.1", true),
        ("evil.example.com", false),
        ("127.0.0.1.evil.example.com", false),
        ("localhost.evil.example.com:8080", false),
    ] {
        for (method, path) in [
            (Method::GET, "/-/session"),
            (Method::POST, "/-/session"),
            (Method::DELETE, "/-/session"),
            (Method::GET, "/-/sessions"),
            (Method::DELETE, "/-/sessions"),
            (Method::PUT, "/-/password"),
            (Method::POST, "/-/set-up"),
            (Method::POST, "/-/invitation"),
        ] {
            let headers = [("host", host), ("sec-fetch-site", "same-origin")];
            // Without a session: nothing is ended here.
            let mut browser = ann.holding(None);
            let reply = browser.request_with(method.clone(), path, &headers, Some(json!({}))).await;
            assert_eq!(reply.status == 421, !is_ours, "{method} {path} at {host}");
            if !is_ours {
                reply.check_own_error(421, "wrong_host");
            }
        }
    }
    // Files and the API are not bound to a host name.
    let headers = [("host", "evil.example.com")];
    let reply = world.anonymous().get_with("/photos/none.txt", &headers).await;
    reply.check_error(404, "file_not_found");
}

#[tokio::test]
async fn cors_hides_session_from_other_origins() {
    let (world, _) = World::with_bucket(1);
    let mut ann = Browser::signed_in(&world, "ann").await;
    let is_open = |reply: &Reply| {
        let names = reply.headers.keys().map(http::HeaderName::as_str);
        names.filter(|name| name.starts_with("access-control-")).count() > 0
    };
    for path in ["/-/session", "/-/sessions", "/-/sessions/aaaaaaaaaaaaaaaa", "/-/set-up"] {
        for method in [Method::GET, Method::POST, Method::DELETE, Method::OPTIONS] {
            let headers = [
                ("sec-fetch-site", "same-origin"),
                ("origin", "https://cdn.example.com"),
                ("access-control-request-method", "POST"),
                ("access-control-request-headers", "content-type"),
                ("access-control-request-private-network", "true"),
            ];
            let reply = ann.request_with(method.clone(), path, &headers, None).await;
            assert!(!is_open(&reply), "{method} {path}: {:?}", reply.headers);
            if method == Method::OPTIONS {
                assert_eq!(reply.status, 204);
                assert!(reply.header("allow").ends_with("OPTIONS"), "{path}");
            }
        }
    }
    assert!(is_open(&world.anonymous().get("/api/buckets").await));
}

#[tokio::test]
async fn presigned_upload_ends_with_its_session() {
    let (world, _) = World::with_bucket(1);
    let mut ann = Browser::signed_in(&world, "ann").await;
    let form = || Form::new().file("file", "a.txt", None, b"hello");
    let mut paths = Vec::new();
    for _ in 0..3 {
        let issued = ann.get("/api/presigned-url?path=photos/").await.check_done();
        paths.push(format!("/api/presigned-url/{}", issued["token"].as_str().unwrap()));
    }
    let holder = world.anonymous();
    assert_eq!(holder.upload(&paths[0], form()).await.status, 200);
    // Not used for as long as the token lives, the session lives on.
    world.clock.advance(HOUR_MS - 1);
    assert_eq!(holder.upload(&paths[1], form()).await.status, 200);
    assert_eq!(ann.delete("/-/session").await.status, 204);
    holder.upload(&paths[2], form()).await.check_error(410, "token_revoked");
    assert_eq!(world.object_count("photos"), 2);
}
