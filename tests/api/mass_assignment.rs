//! Mass assignment: protected fields on every route that takes JSON; and errors that do not echo dangerous input:
//! product 5.4.

use axum::body::Body;
use catalog::Role;
use http::Method;
use serde_json::{Value, json};
use server::management::AccountSettings;
use tests::{Client, Reply, World};

/// Fields that an attacker would like to set.
const PROTECTED_FIELDS: &[(&str, &str)] = &[
    ("id", "\"abcdefghijklmnop\""),
    ("account", "\"abcdefghijklmnop\""),
    ("owner", "\"abcdefghijklmnop\""),
    ("role", "\"operator\""),
    ("isAdmin", "true"),
    ("plan", "\"Business\""),
    ("standing", "\"good\""),
    ("standingChanges", "[]"),
    ("storageBytesMax", "null"),
    ("objectCountMax", "null"),
    ("objectCount", "0"),
    ("totalBytes", "0"),
    ("createdAt", "\"2000-01-01T00:00:00Z\""),
    ("updatedAt", "\"2000-01-01T00:00:00Z\""),
    ("revokedAt", "null"),
    ("lastUsedAt", "null"),
    ("secret", "\"x\""),
    ("key", "\"trug_x_y_z\""),
    ("members", "[]"),
    ("success", "true"),
    ("__proto__", "{}"),
    ("constructor", "{}"),
];

/// Returns every route that takes JSON from an ordinary account, a valid body, and the protected fields that it may
/// set.
fn routes(organisation: &str) -> Vec<(Method, String, Value, &'static [&'static str])> {
    let organisation = format!("/api/organisations/{organisation}");
    vec![
        (Method::POST, "/api/buckets".into(), json!({"bucketName": "mine"}), &[]),
        (Method::PATCH, "/api/buckets/photos".into(), json!({"access": "public"}), &[]),
        (Method::POST, "/api/keys".into(), json!({"scopes": ["read"]}), &[]),
        (Method::POST, "/api/organisations".into(), json!({"name": "Crew"}), &[]),
        (Method::PATCH, organisation.clone(), json!({"name": "Team"}), &[]),
        (
            Method::POST,
            format!("{organisation}/members"),
            json!({"account": "abcdefghijklmnop", "role": "viewer"}),
            &["account", "role"],
        ),
        (Method::PATCH, "/api/account".into(), json!({"name": "ann"}), &[]),
        (Method::POST, "/api/buckets/photos/move".into(), json!({"from": "a", "to": "b"}), &[]),
        (Method::POST, "/api/buckets/photos/copy".into(), json!({"from": "a", "to": "b"}), &[]),
        (Method::POST, "/api/buckets/photos/undelete".into(), json!({"path": "a"}), &[]),
        (
            Method::POST,
            "/api/jobs".into(),
            json!({"kind": "emptyBucket", "bucketName": "photos"}),
            &[],
        ),
    ]
}

async fn send(client: &Client, method: &Method, path: &str, body: String) -> Reply {
    client.send_typed(method.clone(), path, "application/json", body.as_bytes()).await
}

/// Returns everything that ann can see of herself.
async fn seen(client: &Client) -> Vec<String> {
    let mut seen = Vec::new();
    for path in ["account", "buckets", "organisations", "usage"] {
        let mut reply = client.get(&format!("/api/{path}")).await.check_done();
        reply.as_object_mut().unwrap().remove("requestId");
        seen.push(reply.to_string());
    }
    seen
}

#[tokio::test]
async fn mass_assignment_of_protected_fields_is_rejected() {
    let (_world, client) = World::with_bucket(1);
    let made = client.post_json("/api/organisations", json!({"name": "First"})).await.check_done();
    let id = made["organisation"]["id"].as_str().unwrap();
    let before = seen(&client).await;
    for (method, path, body, own) in routes(id) {
        for (field, value) in PROTECTED_FIELDS.iter().filter(|(field, _)| !own.contains(field)) {
            // Before and after the valid fields.
            let fine = body.to_string();
            let fine = &fine[1..fine.len() - 1];
            for wish in [
                format!("{{\"{field}\": {value}, {fine}}}"),
                format!("{{{fine}, \"{field}\": {value}}}"),
            ] {
                let reply = send(&client, &method, &path, wish.clone()).await;
                assert_eq!(reply.status, 400, "{method} {path} {wish}: {}", reply.text());
                reply.check_parameter(field);
            }
        }
    }
    assert_eq!(seen(&client).await, before);
}

#[tokio::test]
async fn json_field_names_are_case_sensitive() {
    let (_world, client) = World::with_bucket(1);
    let before = seen(&client).await;
    for (path, body) in [
        ("/api/buckets/photos", r#"{"Access": "private"}"#),
        ("/api/buckets/photos", r#"{"access ": "private"}"#),
        ("/api/buckets/photos", r#"{"\u0061ccess\u0000": "private"}"#),
        ("/api/account", r#"{"NAME": "operator"}"#),
    ] {
        let reply = send(&client, &Method::PATCH, path, body.to_owned()).await;
        assert_eq!(reply.status, 400, "{body}: {}", reply.text());
    }
    assert_eq!(seen(&client).await, before);
}

#[tokio::test]
async fn json_body_must_be_an_object() {
    let (_world, client) = World::with_bucket(1);
    let deep = format!("{}{}", "[".repeat(5_000), "]".repeat(5_000));
    let nested = format!("{{\"name\": {deep}}}");
    for body in [
        "",
        "null",
        "[]",
        "\"x\"",
        "1",
        "{",
        "{}{}",
        "{\"name\": 1e999}",
        "\u{feff}{}",
        &deep,
        &nested,
    ] {
        let reply = send(&client, &Method::PATCH, "/api/account", body.to_owned()).await;
        assert_eq!(reply.status, 400, "{}: {}", &body[..body.len().min(20)], reply.text());
    }
    let wrong = [("content-type", "text/plain")];
    let reply =
        client.send(Method::PATCH, "/api/account", &wrong, Body::from("{\"name\": \"x\"}")).await;
    reply.check_error(415, "unsupported_media_type");
}

#[tokio::test]
async fn error_messages_escape_control_characters_and_are_short() {
    let (world, client) = World::with_bucket(1);
    world.edit_account(
        "ann",
        AccountSettings { role: Some(Role::Operator), ..AccountSettings::default() },
    );
    const EVIL: &str = "\u{1b}[2J\u{7f}\u{85}\u{202e}\r\nX: y<script>";
    let escaped = "%1b%5b2J%7f%c2%85%e2%80%ae%0d%0aX:%20y%3Cscript%3E";
    let long = "x".repeat(10_000);
    let mut replies = Vec::new();
    for path in [
        format!("/photos/{escaped}"),
        format!("/{escaped}/a"),
        format!("/api/{escaped}"),
        format!("/api/list-objects?bucketName={escaped}"),
        format!("/api/list-objects?bucketName=photos&maxKeys={escaped}"),
        format!("/api/list-objects?bucketName=photos&continuationToken={escaped}"),
        format!("/api/search/{escaped}?q=x"),
        format!("/api/search/photos?limit={escaped}"),
        format!("/api/presigned-url?path={escaped}"),
        format!("/api/presigned-url?path=photos/&expiresAt={escaped}"),
        format!("/api/buckets/{escaped}"),
        format!("/api/buckets?limit={escaped}"),
        format!("/api/organisations/{escaped}"),
        format!("/api/accounts/{escaped}"),
        format!("/-/integrations/sharex?bucket={escaped}"),
    ] {
        replies.push(client.get(&path).await);
    }
    for path in ["/api/buckets", "/api/keys", "/api/organisations", "/api/accounts"] {
        for body in [
            json!({EVIL: 1}),
            json!({&*long: 1}),
            json!({"name": EVIL, "bucketName": EVIL, "type": EVIL, "scopes": [EVIL], "plan": EVIL}),
            json!({"bucketName": "fine", "allowedTypes": [EVIL], "corsOrigins": [EVIL], "cacheControl": EVIL}),
            json!({"bucketName": "fine", "allowedTypes": [&*long]}),
            json!({"name": "x", "scopes": ["read"], "expiresAt": EVIL, "prefix": EVIL}),
        ] {
            replies.push(client.post_json(path, body).await);
        }
    }
    let headers = [("authorization", "Bearer <script>\u{e9}")];
    let latin = headers.map(|(name, value)| (name, value));
    replies.push(client.without_key().get_with("/api/account", &latin).await);
    for (name, value) in [
        ("upload-length", "<script>"),
        ("upload-metadata", "<script> !"),
        ("upload-checksum", "<script> x"),
    ] {
        let headers = [("tus-resumable", "1.0.0"), (name, value)];
        replies.push(client.send(Method::POST, "/api/tus/", &headers, Body::empty()).await);
    }
    for reply in replies {
        assert!(reply.status.is_client_error(), "{}", reply.text());
        assert!(reply.body.len() < 5_000, "{} bytes: {}", reply.body.len(), reply.text());
        let body = reply.json();
        for name in ["error", "message", "parameter", "header", "code"] {
            let text = body[name].as_str().unwrap_or_default();
            assert!(!text.contains(char::is_control), "{name}: {text:?}");
            assert!(name == "parameter" || !text.contains('\u{202e}'), "{name}: {text:?}");
        }
    }
}
