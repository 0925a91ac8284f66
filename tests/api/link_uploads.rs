//! Links that request files, and their pages: `API.md`, Links that request files.

use axum::body::Body;
use catalog::{FairUseStanding, Scope};
use http::Method;
use serde_json::{Value, json};
use server::management::{AccountSettings, AdminRequest, ApiKeySettings, BucketSettings};
use tests::fixtures::{file_form, key_of_folder, key_with_scopes, path_of};
use tests::{Browser, Client, Form, Reply, World};

use crate::images::png;
use crate::links::{check_page, unlock};
use crate::tus::{CHUNK, VERSION, append, head, metadata};

const LINKS: &str = "/api/buckets/photos/links";

/// Creates a link; returns it, and the path of its page.
async fn create(client: &Client, wish: Value) -> (Value, String) {
    let mut body = json!({"kind": "upload", "paths": ["inbox/"]});
    body.as_object_mut().unwrap().extend(wish.as_object().unwrap().clone());
    let link = client.post_json(LINKS, body).await.check_done()["link"].clone();
    let path = path_of(&link["url"]);
    (link, path)
}

async fn shown(client: &Client, link: &Value) -> Value {
    let id = link["id"].as_str().unwrap();
    client.get_json(&format!("/api/links/{id}")).await["link"].clone()
}

async fn begin(client: &Client, path: &str, length: usize, pairs: &[(&str, &str)]) -> Reply {
    let (length, metadata) = (length.to_string(), metadata(pairs));
    let headers = [VERSION, ("upload-length", &*length), ("upload-metadata", &*metadata)];
    client.send(Method::POST, &format!("{path}/tus"), &headers, Body::empty()).await
}

/// Uploads a file by tus; returns the response that ends it.
async fn tus(client: &Client, path: &str, pairs: &[(&str, &str)], bytes: &[u8]) -> Reply {
    let begun = begin(client, path, bytes.len(), pairs).await;
    assert_eq!(begun.status, 201, "{}", begun.text());
    append(client, &format!("{path}/{}", begun.header("location")), 0, bytes).await
}

async fn keys(client: &Client) -> Vec<String> {
    let list = client.get_json("/api/list-objects?bucketName=photos&prefix=inbox/").await;
    let objects = list["Contents"].as_array().unwrap().iter();
    objects.map(|object| object["Key"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn form_and_tus_uploads_are_stored_under_free_names() {
    let (world, client) = World::with_bucket(1);
    client.put("/photos/inbox/", "a.txt", b"before").await;
    let wish = json!({"title": "Party", "message": "Hi\nthere", "filesMax": 5});
    let (link, path) = create(&client, wish).await;
    for (field, value) in [
        ("kind", json!("upload")),
        ("filesMax", json!(5)),
        ("bytesMax", json!(10_000_000_000_u64)),
        ("fileBytesMax", Value::Null),
        ("allowedTypes", json!([])),
        ("askName", json!("optional")),
        ("uploadedFiles", json!(0)),
        ("state", json!("active")),
    ] {
        assert_eq!(link[field], value, "{field}");
    }
    let visitor = world.anonymous();
    let page = visitor.get(&path).await;
    for says in
        ["Party", "Hi\nthere", "Up to 5 files, 10 GB together.", "Your name", "cdn.example.com"]
    {
        check_page(&page, 200, says);
    }
    let policy = page.header("content-security-policy");
    for part in ["script-src 'nonce-", "require-trusted-types-for 'script'", "connect-src 'self'"] {
        assert!(policy.contains(part), "{policy}");
    }
    assert!(page.body.len() <= 20 * 1_024, "{}", page.body.len());
    for hidden in ["a.txt", "inbox", "ann", "photos"] {
        assert!(!page.text().contains(hidden), "{hidden}");
    }
    let form = Form::new().text("uploadedBy", " Carl Müller ");
    let form = form.file("file", "a.txt", Some("text/plain"), b"form");
    let done = visitor.upload(&format!("{path}/u"), form.file("file", "b.txt", None, b"b")).await;
    check_page(&done, 200, "2 files uploaded. You can close this page.");
    let pairs =
        [("filename", "a.txt"), ("uploadedBy", "Dora"), ("path", "other/"), ("overwrite", "true")];
    let stored = tus(&visitor, &path, &pairs, b"tus").await;
    assert_eq!((stored.status.as_u16(), stored.header("upload-offset")), (204, "3"));
    assert!(!stored.headers.contains_key("x-object-url"), "{stored:?}");
    assert!(!stored.headers.contains_key("access-control-allow-origin"), "{stored:?}");
    assert_eq!(
        keys(&client).await,
        ["inbox/a (1).txt", "inbox/a (2).txt", "inbox/a.txt", "inbox/b.txt"]
    );
    assert_eq!(client.get("/photos/inbox/a.txt").await.text(), "before");
    assert_eq!(client.get("/photos/inbox/a%20(2).txt").await.text(), "tus");
    let link = shown(&client, &link).await;
    assert_eq!((&link["uploadedFiles"], &link["uploadedBytes"]), (&json!(3), &json!(8)));
    let audit = client.get_json("/api/audit?limit=2").await;
    let details: Vec<_> =
        audit["entries"].as_array().unwrap().iter().map(|it| &it["detail"]).collect();
    let detail = [
        "name: Dora, files: inbox/a (2).txt",
        "name: Carl Müller, files: inbox/a (1).txt, inbox/b.txt",
    ];
    assert_eq!(details, detail, "{audit}");
    let address = visitor.at("192.0.2.7");
    tus(&address, &path, &[("filename", "c.txt")], b"c").await;
    let audit = client.get_json("/api/audit?limit=1").await["entries"][0].clone();
    assert_eq!((&audit["action"], &audit["target"]), (&json!("link.upload"), &link["id"]));
    assert_eq!(audit["address"], "192.0.2.7");
}

#[tokio::test]
async fn concurrent_uploads_to_a_link_are_exact() {
    let (world, client) = World::with_bucket(1);
    let (link, path) = create(&client, json!({"filesMax": 5})).await;
    let visitor = world.anonymous();
    let requests = (0..20).map(|number| {
        let (visitor, path) = (visitor.clone(), path.clone());
        tokio::spawn(async move {
            let name = format!("{number}.txt");
            if number % 2 == 0 {
                return visitor.upload(&format!("{path}/u"), file_form(&name, b"x")).await.status
                    == 200;
            }
            let begun = begin(&visitor, &path, 1, &[("filename", &name)]).await;
            if begun.status != 201 {
                return false;
            }
            let to = format!("{path}/{}", begun.header("location"));
            append(&visitor, &to, 0, b"x").await.status == 204
        })
    });
    let mut done = 0;
    for request in requests.collect::<Vec<_>>() {
        done += usize::from(request.await.unwrap());
    }
    assert_eq!(keys(&client).await.len(), 5);
    assert!(done >= 5, "{done}");
    let full = shown(&client, &link).await;
    assert_eq!((&full["uploadedFiles"], &full["state"]), (&json!(5), &json!("used_up")));
    check_page(&visitor.get(&path).await, 200, "This request is full");
    begin(&visitor, &path, 1, &[]).await.check_error(409, "link_full");
    // Across a restart.
    let world = world.found_on(world.disk.fork());
    check_page(&world.anonymous().get(&path).await, 200, "This request is full");
    let client = Client::new(world.app(), Some(client.key().to_owned()));
    assert_eq!(shown(&client, &link).await["uploadedFiles"], 5);
    let id = link["id"].as_str().unwrap();
    client.patch_json(&format!("/api/links/{id}"), json!({"filesMax": 6})).await.check_done();
    assert_eq!(tus(&world.anonymous(), &path, &[("filename", "6.txt")], b"x").await.status, 204);
    check_page(&world.anonymous().get(&path).await, 200, "This request is full");
}

#[tokio::test]
async fn unfinished_uploads_hold_their_share_until_they_end() {
    let (world, client) = World::with_bucket(1);
    let (link, path) = create(&client, json!({"filesMax": 2, "bytesMax": 10})).await;
    let visitor = world.anonymous();
    begin(&visitor, &path, 11, &[]).await.check_error(409, "link_full");
    let first = begin(&visitor, &path, 6, &[("filename", "a.txt")]).await;
    let first = format!("{path}/{}", first.header("location"));
    assert_eq!(append(&visitor, &first, 0, b"one").await.header("upload-offset"), "3");
    begin(&visitor, &path, 5, &[]).await.check_error(409, "link_full");
    // Across a restart, from the stored record.
    let world = world.found_on(world.disk.fork());
    let visitor = world.anonymous();
    begin(&visitor, &path, 5, &[]).await.check_error(409, "link_full");
    let second = begin(&visitor, &path, 4, &[("filename", "b.txt")]).await;
    assert_eq!(second.status, 201);
    begin(&visitor, &path, 0, &[]).await.check_error(409, "link_full");
    let second = format!("{path}/{}", second.header("location"));
    assert_eq!(visitor.send(Method::DELETE, &second, &[VERSION], Body::empty()).await.status, 204);
    assert_eq!(tus(&visitor, &path, &[("filename", "c.txt")], b"four").await.status, 204);
    assert_eq!(head(&visitor, &first).await.header("upload-offset"), "3");
    assert_eq!(append(&visitor, &first, 3, b"two").await.status, 204);
    // The last response was lost: the offset can be read although the link is full.
    assert_eq!(head(&visitor, &first).await.header("upload-offset"), "6");
    let client = Client::new(world.app(), Some(client.key().to_owned()));
    let link = shown(&client, &link).await;
    assert_eq!((&link["uploadedFiles"], &link["uploadedBytes"]), (&json!(2), &json!(10)));
    // Uploads of a link are not those of the account, and the reverse.
    let id = first.rsplit('/').next().unwrap();
    let of_account = client.head_with(&format!("/api/tus/{id}"), &[VERSION]).await;
    assert_eq!(of_account.status, 404);
}

#[tokio::test]
async fn refused_files_release_their_share() {
    let (world, client) = World::with_bucket(1);
    let wish = json!({"filesMax": 1, "fileBytesMax": 5_000, "allowedTypes": ["image/*"]});
    let (_, path) = create(&client, wish).await;
    let visitor = world.anonymous();
    check_page(
        &visitor.get(&path).await,
        200,
        "Up to 1 file, 5 kB each, 10 GB together. Images only.",
    );
    let form = format!("{path}/u");
    for (name, bytes, status, says) in [
        ("a.txt", &b"text"[..], 415, "Type not accepted"),
        ("a.png", b"no image", 415, "Type not accepted"),
        ("a.png", &[0; 5_001], 413, "Too large (limit 5 kB)"),
    ] {
        check_page(&visitor.upload(&form, file_form(name, bytes)).await, status, says);
        let begun = begin(&visitor, &path, bytes.len(), &[("filename", name)]).await;
        if status == 413 {
            begun.check_error(413, "file_too_large");
            continue;
        }
        let to = format!("{path}/{}", begun.header("location"));
        append(&visitor, &to, 0, bytes).await.check_error(status, "type_not_allowed");
    }
    let two =
        Form::new().file("file", "a.png", None, &png(2, 2)).file("file", "b.png", None, &png(2, 2));
    check_page(&visitor.upload(&form, two).await, 409, "more than this request accepts");
    check_page(
        &visitor.upload(&form, Form::new().text("uploadedBy", "x")).await,
        400,
        "Choose at least one file.",
    );
    check_page(
        &visitor.upload(&form, file_form("a.png", &png(2, 2))).await,
        200,
        "1 file uploaded",
    );
    assert_eq!(keys(&client).await, ["inbox/a.png"]);
    check_page(
        &visitor.upload(&form, file_form("b.png", &png(2, 2))).await,
        200,
        "This request is full",
    );
}

#[tokio::test]
async fn link_is_never_wider_than_its_bucket_or_the_quotas() {
    let (world, client) = World::with_bucket(1);
    let (link, path) =
        create(&client, json!({"fileBytesMax": 100, "allowedTypes": ["image/*", "text/plain"]}))
            .await;
    let limits = json!({"fileBytesMax": 10, "allowedTypes": ["text/*"]});
    client.patch_json("/api/buckets/photos", limits).await.check_done();
    let visitor = world.anonymous();
    check_page(&visitor.get(&path).await, 200, "10 B each");
    let form = format!("{path}/u");
    check_page(
        &visitor.upload(&form, file_form("a.png", &png(1, 1)[..8])).await,
        415,
        "Type not accepted",
    );
    check_page(
        &visitor.upload(&form, file_form("a.txt", &[b'x'; 11])).await,
        413,
        "Too large (limit 10 B)",
    );
    check_page(&visitor.upload(&form, file_form("a.txt", b"12345")).await, 200, "1 file uploaded");
    let api = format!("/api/links/{}", link["id"].as_str().unwrap());
    client.patch_json(&api, json!({"fileBytesMax": 11})).await.check_parameter("fileBytesMax");
    client
        .patch_json(&api, json!({"allowedTypes": ["image/png"]}))
        .await
        .check_parameter("allowedTypes");
    client
        .patch_json(&api, json!({"allowedTypes": ["text/csv"], "fileBytesMax": null}))
        .await
        .check_done();
    client.patch_json(&api, json!({"allowedTypes": []})).await.check_done();
    let quota = BucketSettings { quota_bytes: Some(Some(7)), ..BucketSettings::default() };
    world.manage(AdminRequest::EditBucket { name: "photos".into(), settings: quota });
    let refused = visitor.upload(&form, file_form("b.txt", b"123")).await;
    check_page(&refused, 507, "There is no space for these files.");
    let refused = begin(&visitor, &path, 3, &[("filename", "b.txt")]).await;
    refused.check_error(507, "quota_exceeded");
    assert!(!refused.text().contains("photos"), "{}", refused.text());
}

#[tokio::test]
async fn hostile_names_and_paths_stay_in_the_folder() {
    let (world, client) = World::with_bucket(1);
    let (_, path) = create(&client, json!({"askName": "no"})).await;
    let visitor = world.anonymous();
    for name in [
        "../../a.txt",
        "/etc/passwd",
        "..",
        "C:\\x\\b.txt",
        "inbox/c.txt",
        "<b>.txt",
        "a\u{202e}txt.exe",
        "",
    ] {
        let pairs = [("filename", name), ("path", "../"), ("bucketName", "other")];
        assert_eq!(tus(&visitor, &path, &pairs, b"x").await.status, 204, "{name}");
    }
    let form = Form::new().text("path", "other/").file("../x", "../../d.txt", None, b"x");
    check_page(
        &visitor.upload(&format!("{path}/u?path=other/&overwrite=true"), form).await,
        200,
        "1 file",
    );
    let all = client.get_json("/api/list-objects?bucketName=photos").await;
    let all = all["Contents"].as_array().unwrap();
    assert_eq!(all.len(), 9);
    for object in all {
        let name = object["Key"].as_str().unwrap().strip_prefix("inbox/").unwrap();
        assert!(!name.contains('/') && !name.contains('\u{202e}'), "{name}");
    }
}

#[tokio::test]
async fn upload_links_list_and_deliver_nothing() {
    let (world, client) = World::with_bucket(1);
    client.put("/photos/inbox/", "a.txt", b"secret").await;
    let (_, path) = create(&client, json!({})).await;
    let visitor = world.anonymous();
    for part in ["/f/inbox/a.txt", "/zip", "/f/a.txt"] {
        check_page(&visitor.get(&format!("{path}{part}")).await, 404, "File not found");
    }
    for part in ["?path=inbox/", "?file=inbox/a.txt", "?after=x"] {
        let page = visitor.get(&format!("{path}{part}")).await;
        assert!(!page.text().contains("a.txt") && !page.text().contains("inbox"), "{part}");
    }
    let body = json!({"paths": ["inbox/"]});
    let link = client.post_json(LINKS, body).await.check_done()["link"].clone();
    let download = path_of(&link["url"]);
    check_page(
        &visitor.upload(&format!("{download}/u"), file_form("b.txt", b"x")).await,
        404,
        "File not found",
    );
    begin(&visitor, &download, 1, &[]).await.check_error(404, "link_not_found");
    let unknown = format!("/-/s/{}", "a".repeat(26));
    check_page(
        &visitor.upload(&format!("{unknown}/u"), file_form("b.txt", b"x")).await,
        404,
        "doesn’t exist",
    );
    begin(&visitor, &unknown, 1, &[]).await.check_error(404, "link_not_found");
    assert_eq!(keys(&client).await, ["inbox/a.txt"]);
}

#[tokio::test]
async fn password_locks_uploads() {
    let (world, client) = World::with_bucket(1);
    let (_, path) = create(&client, json!({"password": "tern-42", "title": "Party"})).await;
    let visitor = world.anonymous();
    let page = visitor.get(&path).await;
    check_page(&page, 401, "protected by a password");
    assert!(!page.text().contains("Party"));
    check_page(
        &visitor.upload(&format!("{path}/u"), file_form("b.txt", b"x")).await,
        401,
        "password",
    );
    begin(&visitor, &path, 1, &[]).await.check_error(401, "link_locked");
    let unlocked = unlock(&visitor, &path, "tern-42").await;
    let cookie = unlocked.header("set-cookie").split(';').next().unwrap().to_owned();
    let length = [VERSION, CHUNK, ("upload-length", "1"), ("cookie", &*cookie)];
    let reply = visitor.send(Method::POST, &format!("{path}/tus"), &length, Body::from("x")).await;
    assert_eq!(reply.status, 201, "{}", reply.text());
    check_page(&visitor.get_with(&path, &[("cookie", &*cookie)]).await, 200, "Party");
}

#[tokio::test]
async fn names_are_asked_for() {
    let (world, client) = World::with_bucket(1);
    let (_, path) = create(&client, json!({"askName": "required"})).await;
    let visitor = world.anonymous();
    let form = format!("{path}/u");
    check_page(&visitor.upload(&form, file_form("b.txt", b"x")).await, 400, "Enter your name");
    let blank = Form::new().text("uploadedBy", "  ").file("file", "b.txt", None, b"x");
    check_page(&visitor.upload(&form, blank).await, 400, "Enter your name");
    let long = Form::new().text("uploadedBy", &"x".repeat(101)).file("file", "b.txt", None, b"x");
    check_page(&visitor.upload(&form, long).await, 400, "Enter your name");
    begin(&visitor, &path, 1, &[("filename", "b.txt")]).await.check_parameter("uploadedBy");
    let named = Form::new().text("uploadedBy", "Carl").file("file", "b.txt", None, b"x");
    check_page(&visitor.upload(&form, named).await, 200, "1 file uploaded");
}

#[tokio::test]
async fn other_sites_cannot_upload() {
    let (world, client) = World::with_bucket(1);
    let (_, path) = create(&client, json!({})).await;
    let visitor = world.anonymous();
    for header in [
        ("sec-fetch-site", "cross-site"),
        ("sec-fetch-site", "same-site"),
        ("sec-fetch-site", "none"),
        ("origin", "https://evil.example"),
        ("origin", "null"),
    ] {
        let length = [VERSION, ("upload-length", "1"), header];
        let created =
            visitor.send(Method::POST, &format!("{path}/tus"), &length, Body::empty()).await;
        created.check_error(403, "cross_site");
        let form = visitor.send(Method::POST, &format!("{path}/u"), &[header], Body::empty()).await;
        form.check_error(403, "cross_site");
        let begun = begin(&visitor, &path, 1, &[]).await;
        let to = format!("{path}/{}", begun.header("location"));
        for method in [Method::HEAD, Method::PATCH, Method::DELETE] {
            let headers = [VERSION, CHUNK, ("upload-offset", "0"), header];
            assert_eq!(visitor.send(method, &to, &headers, Body::empty()).await.status, 403);
        }
    }
    let own = [VERSION, ("upload-length", "1"), ("sec-fetch-site", "same-origin")];
    assert_eq!(
        visitor.send(Method::POST, &format!("{path}/tus"), &own, Body::empty()).await.status,
        201
    );
    // A key and a session have no effect, also where they would have more rights.
    let (_, locked) = create(&client, json!({"password": "tern-42"})).await;
    begin(&client, &locked, 1, &[]).await.check_error(401, "link_locked");
    let mut ann = Browser::signed_in(&world, "ann").await;
    check_page(&ann.get(&locked).await, 401, "password");
}

#[tokio::test]
async fn upload_link_has_the_current_rights_of_its_creator() {
    let (world, client) = World::with_bucket(1);
    for missing in [Scope::Presign, Scope::Upload] {
        let scopes: Vec<_> = Scope::ALL.into_iter().filter(|scope| *scope != missing).collect();
        let client = world.client_of("ann", key_with_scopes(&scopes));
        let wish = json!({"kind": "upload", "paths": ["inbox/"]});
        client.post_json(LINKS, wish).await.check_error(403, "forbidden");
    }
    let folder = world.client_of("ann", key_of_folder("inbox/"));
    let outside = json!({"kind": "upload", "paths": ["other/"]});
    folder.post_json(LINKS, outside).await.check_error(403, "forbidden");
    let issued = world.api_key("ann", ApiKeySettings::default());
    let (link, path) = create(&Client::new(world.app(), Some(issued.key)), json!({})).await;
    let visitor = world.anonymous();
    let begun = begin(&visitor, &path, 1, &[("filename", "a.txt")]).await;
    let to = format!("{path}/{}", begun.header("location"));
    let standing = |standing| AccountSettings { standing: Some(standing), ..Default::default() };
    world.edit_account("ann", standing(FairUseStanding::Suspended));
    check_page(&visitor.get(&path).await, 410, "no longer available");
    append(&visitor, &to, 0, b"x").await.check_error(410, "link_expired");
    world.edit_account("ann", standing(FairUseStanding::Good));
    assert_eq!(append(&visitor, &to, 0, b"x").await.status, 204);
    world.manage(AdminRequest::RevokeApiKey { id: issued.api_key.id });
    check_page(
        &visitor.upload(&format!("{path}/u"), file_form("b.txt", b"x")).await,
        410,
        "no longer available",
    );
    begin(&visitor, &path, 1, &[]).await.check_error(410, "link_expired");
    assert_eq!(shown(&client, &link).await["state"], "blocked");
}

#[tokio::test]
async fn invalid_settings_of_upload_links_are_rejected() {
    let (_world, client) = World::with_bucket(1);
    client.put("/photos/inbox/", "a.txt", b"x").await;
    for (wish, parameter) in [
        (json!({"kind": "both"}), "kind"),
        (json!({"paths": ["inbox"]}), "paths"),
        (json!({"paths": ["inbox/", "other/"]}), "paths"),
        (json!({"filesMax": 0}), "filesMax"),
        (json!({"filesMax": 10_001}), "filesMax"),
        (json!({"filesMax": null}), "filesMax"),
        (json!({"bytesMax": 0}), "bytesMax"),
        (json!({"fileBytesMax": 0}), "fileBytesMax"),
        (json!({"allowedTypes": ["image"]}), "allowedTypes"),
        (json!({"askName": "maybe"}), "askName"),
        (json!({"downloadsMax": 1}), "downloadsMax"),
        (json!({"zip": true}), "zip"),
        (json!({"layout": "list"}), "layout"),
        (json!({"uploadedFiles": 0}), "uploadedFiles"),
        (json!({"kind": "download", "filesMax": 1}), "filesMax"),
    ] {
        let mut body = json!({"kind": "upload", "paths": ["inbox/"]});
        body.as_object_mut().unwrap().extend(wish.as_object().unwrap().clone());
        client.post_json(LINKS, body).await.check_parameter(parameter);
    }
    let (link, _) = create(&client, json!({})).await;
    let api = format!("/api/links/{}", link["id"].as_str().unwrap());
    client.patch_json(&api, json!({"downloadsMax": 1})).await.check_parameter("downloadsMax");
    client.patch_json(&api, json!({"kind": "download"})).await.check_parameter("kind");
    let change = json!({"filesMax": 7, "bytesMax": 9, "askName": "no", "message": "Hello"});
    let edited = client.patch_json(&api, change).await.check_done()["link"].clone();
    assert_eq!((&edited["filesMax"], &edited["bytesMax"]), (&json!(7), &json!(9)));
    assert_eq!((&edited["askName"], &edited["message"]), (&json!("no"), &json!("Hello")));
    let found = client.get_json("/api/links?kind=upload").await;
    assert_eq!(found["links"].as_array().unwrap().len(), 1);
    assert_eq!(client.get_json("/api/links?kind=download").await["links"], json!([]));
    client.get("/api/links?kind=x").await.check_parameter("kind");
}
