//! Upload pages of presigned tokens: `API.md`, Presigned tokens.

use axum::body::Body;
use http::Method;
use serde_json::json;
use server::management::{AdminRequest, ApiKeySettings};
use tests::fixtures::{file_form, path_of};
use tests::{Client, Form, Reply, World};

use crate::images::png;
use crate::links::check_page;

const HTML: [(&str, &str); 1] = [("accept", "text/html,application/xhtml+xml;q=0.9,*/*;q=0.8")];

async fn token(client: &Client, path: &str) -> String {
    let issued = client.get_json(&format!("/api/presigned-url?path={path}&expiresIn=600")).await;
    path_of(&issued["url"])
}

async fn open(client: &Client, path: &str) -> Reply {
    client.get_with(path, &HTML).await
}

#[tokio::test]
async fn token_page_uploads_once_and_answers_with_a_page() {
    let (world, client) = World::with_bucket(1);
    let path = token(&client, "photos/hidden-folder/").await;
    let visitor = world.anonymous();
    for _ in 0..3 {
        let page = open(&visitor, &path).await;
        check_page(&page, 200, "Upload files");
        for part in [
            &*format!(r#"action="{path}?page=1""#),
            "Up to 100 files, ",
            "open until 31 Jan 2026, 12:10 UTC",
            "multiple",
        ] {
            assert!(page.text().contains(part), "{part}: {}", page.text());
        }
        for hidden in ["photos", "hidden-folder", "ann", "data-tus", "og:"] {
            let text = page.text().replace(&path, "");
            let text = text.split("<script").next().unwrap();
            assert!(!text.contains(hidden), "{hidden}");
        }
        assert!(page.header("content-security-policy").contains("script-src 'nonce-"));
        assert!(page.body.len() <= 20 * 1_024, "{}", page.body.len());
    }
    let head = visitor.send(Method::HEAD, &path, &HTML, Body::empty()).await;
    assert_eq!((head.status.as_u16(), head.body.len()), (200, 0));
    let form = Form::new().file("file", "a.txt", None, b"one").file("file", "b.txt", None, b"two");
    let done = visitor.upload(&format!("{path}?page=1"), form).await;
    check_page(&done, 200, "2 files uploaded. You can close this page.");
    assert!(!done.text().contains("Upload more"), "{}", done.text());
    assert_eq!(client.get("/photos/hidden-folder/b.txt").await.text(), "two");
    check_page(&open(&visitor, &path).await, 410, "This link was already used");
    let again = visitor.upload(&format!("{path}?page=1"), file_form("c.txt", b"x")).await;
    check_page(&again, 410, "This link was already used");
    // Programs get JSON as before.
    visitor.upload_file(&path, "c.txt", b"x").await.check_error(410, "token_used");
    assert_eq!(world.object_count("photos"), 2);
}

#[tokio::test]
async fn token_page_is_only_for_clients_that_accept_html() {
    let (world, client) = World::with_bucket(1);
    let path = token(&client, "photos/").await;
    let visitor = world.anonymous();
    for accept in ["*/*", "application/json", "text/plain", "application/problem+json, text/html"] {
        let reply = visitor.get_with(&path, &[("accept", accept)]).await;
        assert_eq!(reply.status, 405, "{accept}");
    }
    let json = visitor.upload(&format!("{path}?page=0"), file_form("a.txt", b"x")).await;
    assert_eq!(json.check_done()["key"], "a.txt");
}

#[tokio::test]
async fn token_page_shows_limits_and_why_files_are_refused() {
    let (world, client) = World::with_bucket(1);
    let rules = json!({"fileBytesMax": 5_000, "allowedTypes": ["image/*"]});
    client.patch_json("/api/buckets/photos", rules).await.check_done();
    let path = token(&client, "photos/only.png").await;
    let visitor = world.anonymous();
    let page = open(&visitor, &path).await;
    check_page(&page, 200, "Up to 1 file, 5 kB each, ");
    check_page(&page, 200, "Images only.");
    assert!(!page.text().contains("multiple") && !page.text().contains("only.png"));
    let form = format!("{path}?page=1");
    for (name, bytes, status, says) in [
        ("a.txt", &b"text"[..], 415, "Type not accepted"),
        ("a.png", &[0; 5_001], 413, "Too large (limit 5 kB)"),
    ] {
        let refused = visitor.upload(&form, file_form(name, bytes)).await;
        check_page(&refused, status, says);
        assert!(refused.text().contains(&format!(r#"action="{form}""#)), "{}", refused.text());
    }
    check_page(&visitor.upload(&form, Form::new()).await, 400, "Choose at least one file.");
    let done = visitor.upload(&form, file_form("a.png", &png(2, 2))).await;
    check_page(&done, 200, "1 file uploaded.");
    assert_eq!(client.get("/photos/only.png").await.status, 200);
}

#[tokio::test]
async fn token_page_says_why_a_token_cannot_be_used() {
    let (world, client) = World::with_bucket(1);
    let expired = token(&client, "photos/").await;
    world.clock.advance(600_000);
    let visitor = world.anonymous();
    let issued = world.api_key("ann", ApiKeySettings::default());
    let revoked = token(&Client::new(world.app(), Some(issued.key)), "photos/").await;
    world.manage(AdminRequest::RevokeApiKey { id: issued.api_key.id });
    let valid = token(&client, "photos/").await;
    let changed = format!("{}x", valid.trim_end_matches('x'));
    let raw = client.get_json("/photos/presigned/a.txt").await;
    let raw = raw["presignedUrl"].as_str().unwrap().split("token=").nth(1).unwrap().to_owned();
    let raw = format!("/api/presigned-url/{raw}");
    for (path, status, says) in [
        (&*expired, 410, "This link has expired"),
        (&*revoked, 410, "This link is no longer available"),
        (&*changed, 404, "This link doesn’t exist"),
        ("/api/presigned-url/none", 404, "This link doesn’t exist"),
        // A token for a raw body.
        (&*raw, 404, "This link doesn’t exist"),
    ] {
        check_page(&open(&visitor, path).await, status, says);
        let form = visitor.upload(&format!("{path}?page=1"), file_form("a.txt", b"x")).await;
        check_page(&form, status, says);
    }
    check_page(&open(&visitor, &valid).await, 200, "Upload files");
    assert_eq!(world.object_count("photos"), 0);
}
