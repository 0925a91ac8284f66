//! Tenant isolation: product 5.4, authentication and tenant isolation.

use axum::body::Body;
use catalog::Scope;
use http::Method;
use serde_json::json;
use server::management::{AdminRequest, ApiKeySettings};
use tests::fixtures::key_of_bucket;
use tests::{Client, Form, Reply, World};

/// Ann with a private bucket that holds a file, and Bob with a bucket of his own.
struct Town {
    world: World,
    ann: Client,
    bob: Client,
    organisation: String,
    ann_key_id: String,
}

impl Town {
    async fn new() -> Self {
        let (world, ann) = World::with_bucket(1);
        ann.patch_json("/api/buckets/photos", json!({"access": "private"})).await.check_done();
        ann.put("/photos/img/", "a.txt", b"1").await;
        let made = ann.post_json("/api/organisations", json!({"name": "Crew"})).await.check_done();
        let organisation = made["organisation"]["id"].as_str().unwrap().to_owned();
        world.account("bob");
        world.bucket("bob", "theirs", Default::default());
        let bob = world.client_of("bob", ApiKeySettings::default());
        let ann_key_id = ann.key().split('_').nth(1).unwrap().to_owned();
        Self { world, ann, bob, organisation, ann_key_id }
    }

    /// Returns every request that names something of Ann's, and the same for names that do not exist.
    fn requests(&self) -> Vec<(Method, String, String)> {
        let organisation = format!("/api/organisations/{}", self.organisation);
        let nobody = "/api/organisations/abcdefghijklmnop".to_owned();
        let (members, no_members) =
            (format!("{organisation}/members"), format!("{nobody}/members"));
        let member = |path: &str| format!("{path}?account=abcdefghijklmnop");
        let mut requests = vec![
            (Method::DELETE, "/photos/img/a.txt".into(), "/nowhere/img/a.txt".into()),
            (Method::DELETE, "/photos/img/".into(), "/nowhere/img/".into()),
            (Method::GET, "/api/buckets/photos".into(), "/api/buckets/nowhere".into()),
            (
                Method::GET,
                "/api/buckets/photos/folders".into(),
                "/api/buckets/nowhere/folders".into(),
            ),
            (
                Method::GET,
                "/api/buckets/photos/deleted".into(),
                "/api/buckets/nowhere/deleted".into(),
            ),
            (Method::POST, "/api/buckets/photos/move".into(), "/api/buckets/nowhere/move".into()),
            (Method::POST, "/api/buckets/photos/copy".into(), "/api/buckets/nowhere/copy".into()),
            (
                Method::POST,
                "/api/buckets/photos/undelete".into(),
                "/api/buckets/nowhere/undelete".into(),
            ),
            (Method::PATCH, "/api/buckets/photos".into(), "/api/buckets/nowhere".into()),
            (Method::DELETE, "/api/buckets/photos".into(), "/api/buckets/nowhere".into()),
            (
                Method::DELETE,
                "/api/buckets/photos?force".into(),
                "/api/buckets/nowhere?force".into(),
            ),
            (
                Method::DELETE,
                format!("/api/keys/{}", self.ann_key_id),
                "/api/keys/abcdefghijklmnop".into(),
            ),
            (Method::DELETE, member(&members), member(&no_members)),
        ];
        for method in [Method::GET, Method::PATCH, Method::DELETE] {
            requests.push((method, organisation.clone(), nobody.clone()));
        }
        for method in [Method::GET, Method::POST] {
            requests.push((method, members.clone(), no_members.clone()));
        }
        let membership = |organisation: &str| format!("{organisation}/membership");
        for method in [Method::POST, Method::DELETE] {
            requests.push((method, membership(&organisation), membership(&nobody)));
        }
        requests
    }
}

/// Sends a request with a body that would be valid.
async fn request(client: &Client, method: &Method, path: &str, headers: &[(&str, &str)]) -> Reply {
    let body = match (method, path) {
        (&Method::POST, _) => json!({"account": "abcdefghijklmnop", "role": "viewer"}).to_string(),
        (&Method::PATCH, path) if path.contains("/organisations/") => {
            json!({"name": "x"}).to_string()
        }
        (&Method::PATCH, _) => json!({"access": "public"}).to_string(),
        _ => String::new(),
    };
    let headers = [&[("content-type", "application/json")], headers].concat();
    client.send(method.clone(), path, &headers, Body::from(body)).await
}

#[tokio::test]
async fn tenant_resources_of_others_return_404() {
    let town = Town::new().await;
    for (method, there, nowhere) in town.requests() {
        let there = request(&town.bob, &method, &there, &[]).await;
        let nowhere = request(&town.bob, &method, &nowhere, &[]).await;
        assert_eq!(there.status, 404, "{method} {}", there.text());
        for field in ["error", "code", "status"] {
            assert_eq!(there.json()[field], nowhere.json()[field], "{method}");
        }
    }
    let form = || Form::new().file("f", "b.txt", None, b"1");
    town.bob.upload("/photos/", form()).await.check_error(404, "bucket_not_found");
    let key = json!({"scopes": ["read"], "bucketName": "photos"});
    let there = town.bob.post_json("/api/keys", key).await;
    there.check_error(404, "bucket_not_found");
    assert!(!town.bob.get("/api/buckets").await.text().contains("photos"));
    assert!(!town.bob.get("/api/usage").await.text().contains("photos"));
    assert!(!town.bob.get("/api/keys").await.text().contains(&town.ann_key_id));
    assert!(!town.bob.get("/api/organisations").await.text().contains(&town.organisation));
    // No change was made.
    assert_eq!(town.world.object_count("photos"), 1);
    assert_eq!(
        town.ann.get("/api/buckets/photos").await.check_done()["bucket"]["access"],
        "private"
    );
    town.ann.get(&format!("/api/organisations/{}", town.organisation)).await.check_done();
}

#[tokio::test]
async fn tenant_isolation_holds_for_every_credential() {
    let town = Town::new().await;
    let (ann, bob) = (town.ann.key().to_owned(), town.bob.key().to_owned());
    let anonymous = town.bob.without_key();
    for (method, path, _) in town.requests() {
        let separator = if path.contains('?') { '&' } else { '?' };
        request(&anonymous, &method, &path, &[]).await.check_error(401, "missing_api_key");
        for value in [format!("Bearer {bob}"), format!("Key {bob}"), bob.clone()] {
            let reply = request(&anonymous, &method, &path, &[("authorization", &value)]).await;
            assert_eq!(reply.status, 404, "{method} {path}");
        }
        let reply = request(&anonymous, &method, &path, &[("x-api-key", &bob)]).await;
        assert_eq!(reply.status, 404, "{method} {path}");
        for name in ["apiKey", "api_key"] {
            let with_key = format!("{path}{separator}{name}={bob}");
            assert_eq!(
                request(&anonymous, &method, &with_key, &[]).await.status,
                404,
                "{method} {path}"
            );
        }
        // Of two credentials the first decides, whichever is the stronger.
        let both = [("authorization", &*bob), ("x-api-key", &*ann)];
        assert_eq!(request(&anonymous, &method, &path, &both).await.status, 404, "{method} {path}");
        let with_ann = format!("{path}{separator}apiKey={ann}");
        let reply = request(&anonymous, &method, &with_ann, &[("x-api-key", &bob)]).await;
        assert_eq!(reply.status, 404, "{method} {path}");
    }
    assert_eq!(town.world.object_count("photos"), 1);
    // In the other order the owner's decides.
    let both = [("authorization", &*ann), ("x-api-key", &*bob)];
    request(&anonymous, &Method::GET, "/api/buckets/photos", &both).await.check_done();
}

#[tokio::test]
async fn key_without_manage_scope_manages_nothing() {
    let town = Town::new().await;
    let scopes = Scope::ALL.into_iter().filter(|scope| *scope != Scope::Manage).collect();
    let client = town.world.client_of("ann", ApiKeySettings { scopes, ..Default::default() });
    // These require the scopes of their file operations.
    let in_files = ["/deleted", "/move", "/copy", "/undelete"];
    let requests = town.requests().into_iter().filter(|(_, path, _)| {
        path.starts_with("/api/") && !in_files.iter().any(|end| path.ends_with(end))
    });
    for (method, path, _) in requests {
        request(&client, &method, &path, &[]).await.check_error(403, "forbidden");
    }
    for path in [
        "/api/buckets",
        "/api/keys",
        "/api/organisations",
        "/api/account",
        "/api/usage",
        "/api/accounts",
    ] {
        client.get(path).await.check_error(403, "forbidden");
    }
    client
        .post_json("/api/buckets", json!({"bucketName": "mine"}))
        .await
        .check_error(403, "forbidden");
    let key = json!({"scopes": ["manage"]});
    client.post_json("/api/keys", key).await.check_error(403, "forbidden");
}

#[tokio::test]
async fn bucket_key_manages_only_its_bucket() {
    let town = Town::new().await;
    town.world.bucket("ann", "second", Default::default());
    let client = town.world.client_of("ann", key_of_bucket("second"));
    client.get("/api/buckets/second").await.check_done();
    client.patch_json("/api/buckets/second", json!({"thumbnails": true})).await.check_done();
    let listed = client.get("/api/buckets").await.check_done();
    assert_eq!(listed["buckets"].as_array().unwrap().len(), 1);
    for path in ["/api/buckets/photos", "/api/buckets/nowhere"] {
        client.get(path).await.check_error(403, "forbidden");
        client.patch_json(path, json!({"access": "public"})).await.check_error(403, "forbidden");
    }
    client.delete("/api/buckets/second").await.check_error(403, "forbidden");
    client
        .post_json("/api/buckets", json!({"bucketName": "mine"}))
        .await
        .check_error(403, "forbidden");
    for path in ["/api/organisations", "/api/account", "/api/accounts"] {
        client.get(path).await.check_error(403, "forbidden");
    }
    client.patch_json("/api/account", json!({"name": "x"})).await.check_error(403, "forbidden");
    // A key for a folder sees the bucket's settings, which are not its own to change.
    for prefix in ["img", "img/"] {
        let prefix = Some(prefix.to_owned());
        let client = town.world.client_of("ann", ApiKeySettings { prefix, ..Default::default() });
        client.get("/api/buckets/photos").await.check_done();
        let body = json!({"access": "public"});
        client.patch_json("/api/buckets/photos", body).await.check_error(403, "forbidden");
        client.delete("/api/buckets/second").await.check_error(403, "forbidden");
        assert_eq!(client.get("/photos/img/a.txt").await.status, 200);
        client.get("/photos/img2/a.txt").await.check_error(403, "forbidden");
        client.get("/photos/im").await.check_error(403, "forbidden");
        client.get("/photos/img").await.check_error(403, "forbidden");
    }
}

#[tokio::test]
async fn revoked_key_is_rejected_from_the_next_request() {
    let town = Town::new().await;
    let issued = town.world.api_key("ann", ApiKeySettings::default());
    let client = Client::new(town.world.app(), Some(issued.key));
    client.get("/api/account").await.check_done();
    town.world.manage(AdminRequest::RevokeApiKey { id: issued.api_key.id });
    for (method, path, _) in town.requests() {
        request(&client, &method, &path, &[]).await.check_error(401, "invalid_api_key");
    }
    client.get("/photos/img/a.txt").await.check_error(401, "invalid_api_key");
    client.get("/api/account").await.check_error(401, "invalid_api_key");
}
