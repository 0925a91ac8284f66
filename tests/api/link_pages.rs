//! Content of the pages of shared links: previews, Open Graph tags, and the list for programs. `API.md`, Shared links.

use serde_json::{Value, json};
use tests::Client;

use crate::images::png;
use crate::links::{check_page, create, unlock, world};

const BASE: &str = "https://cdn.example.com";

async fn page(client: &Client, paths: Value, more: Value) -> String {
    let mut wish = json!({"paths": paths});
    wish.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let (_, path) = create(client, wish).await;
    let page = client.without_key().get(&path).await;
    assert_eq!(page.status, 200, "{}", page.text());
    page.text()
}

#[tokio::test]
async fn text_preview_is_escaped_and_cut_at_its_limit() {
    let (_world, client) = world().await;
    let put = async |name: &str, content: &[u8]| {
        client.put("/secret/t/", name, content).await;
        page(&client, json!([format!("t/{name}")]), json!({})).await
    };
    let shown = put("a.txt", "<script>ü\u{1b}[31m\nb".as_bytes()).await;
    assert!(shown.contains("&lt;script&gt;ü\u{fffd}[31m\nb</pre>"), "{shown}");
    assert!(!shown.contains("Showing the first"), "{shown}");
    // The limit is inside of the last character.
    let long = format!("{}ü{}", "x".repeat(64 * 1_024 - 1), "END".repeat(9));
    let shown = put("long.txt", long.as_bytes()).await;
    assert!(shown.contains("x</pre>") && !shown.contains("END"));
    assert!(shown.contains("Showing the first 65.5 kB of 65.6 kB."), "{shown}");
    for (name, content) in
        [("latin.txt", &b"caf\xe9 au lait"[..]), ("a.bin", b"\x7fELF\0\0"), ("empty.txt", b"")]
    {
        let shown = put(name, content).await;
        assert!(!shown.contains("<pre"), "{name}: {shown}");
    }
    let shown = put("a.html", b"<h1>Hi</h1>").await;
    assert!(shown.contains("&lt;h1&gt;Hi"), "{shown}");
}

#[tokio::test]
async fn limited_link_shows_no_content_but_small_images() {
    let (_world, client) = world().await;
    client.put("/secret/t/", "a.pdf", b"%PDF-1.4\n").await;
    client.put("/secret/t/", "p.png", &png(60, 40)).await;
    let pdf = page(&client, json!(["t/a.pdf"]), json!({})).await;
    assert!(pdf.contains("<iframe") && pdf.contains("Open the document"), "{pdf}");
    let limited = json!({"downloadsMax": 3});
    for (file, content) in [("t/a.pdf", "<iframe"), ("a/1.txt", "one</pre>")] {
        let shown = page(&client, json!([file]), limited.clone()).await;
        assert!(!shown.contains(content) && shown.contains("no preview"), "{shown}");
    }
    let gallery = page(&client, json!(["t/p.png", "a/1.txt"]), limited).await;
    assert!(gallery.contains(r#"data-side="1024""#), "{gallery}");
    let gallery = page(&client, json!(["t/p.png", "a/1.txt"]), json!({})).await;
    assert!(gallery.contains(r#"data-side="1600""#), "{gallery}");
}

#[tokio::test]
async fn gallery_script_runs_by_a_nonce_of_its_response() {
    let (world, client) = world().await;
    client.put("/secret/t/", "p.png", &png(60, 40)).await;
    let (_, path) = create(&client, json!({"paths": ["t/"]})).await;
    let visitor = world.anonymous();
    let (first, second) = (visitor.get(&path).await, visitor.get(&path).await);
    let nonce = |reply: &tests::Reply| {
        let policy = reply.header("content-security-policy").to_owned();
        for part in ["default-src 'none'", "require-trusted-types-for 'script'", "base-uri 'none'"]
        {
            assert!(policy.contains(part), "{policy}");
        }
        let nonce = policy.split("script-src 'nonce-").nth(1).unwrap().split('\'').next().unwrap();
        let script = format!(r#"<script type="module" nonce="{nonce}">"#);
        assert!(reply.text().contains(&script), "{}", reply.text());
        nonce.to_owned()
    };
    assert_ne!(nonce(&first), nonce(&second));
    // A page with few images is small.
    assert!(first.body.len() <= 20 * 1_024, "{}", first.body.len());
    let list = visitor.get(&format!("{path}?file=t/p.png")).await;
    assert!(!list.text().contains("<script"), "{}", list.text());
}

#[tokio::test]
async fn open_graph_is_only_on_links_without_password_and_maximum() {
    let (world, client) = world().await;
    client.put("/secret/t/", "p & q.png", &png(60, 40)).await;
    client.put("/secret/t/", "clip.mp4", b"\0\0\0\x18ftypmp42\0\0\0\0mp42isom").await;
    let tag =
        |name: &str, content: &str| format!(r#"<meta property="{name}" content="{content}">"#);
    let (_, path) = create(&client, json!({"paths": ["t/p & q.png"], "title": "A \"B\""})).await;
    let text = client.without_key().get(&path).await.text();
    let image = format!(
        "{BASE}{path}/f/t/p%20%26%20q.png?width=1200&amp;height=630&amp;fit=cover&amp;format=jpg"
    );
    for (name, content) in [
        ("og:title", "A &quot;B&quot;"),
        ("og:site_name", "cdn.example.com"),
        ("og:url", &format!("{BASE}{path}")),
        ("og:image", &image),
    ] {
        assert!(text.contains(&tag(name, content)), "{name}: {text}");
    }
    let sent = world.anonymous().get(&path_of_url(&image)).await;
    assert_eq!(sent.header("content-type"), "image/jpeg");
    let folder = page(&client, json!(["t/"]), json!({})).await;
    assert!(folder.contains(r#""og:description" content="2 files, "#), "{folder}");
    assert!(folder.contains("summary_large_image"), "{folder}");
    let video = page(&client, json!(["t/clip.mp4"]), json!({})).await;
    assert!(video.contains(&tag("og:video:type", "video/mp4")), "{video}");
    let limited = page(&client, json!(["t/"]), json!({"downloadsMax": 5})).await;
    assert!(!limited.contains("og:") && !limited.contains("twitter:"), "{limited}");
    // With a password, neither before nor after it was entered.
    let wish = json!({"paths": ["t/"], "password": "tern-42", "expiresIn": 60});
    let (_, path) = create(&client, wish).await;
    let visitor = world.anonymous();
    assert!(!visitor.get(&path).await.text().contains("og:"));
    let cookie = unlock(&visitor, &path, "tern-42").await.header("set-cookie").to_owned();
    let opened = visitor.get_with(&path, &[("cookie", &cookie)]).await;
    check_page(&opened, 200, "clip.mp4");
    assert!(!opened.text().contains("og:"));
    world.clock.advance(60_000);
    assert!(!visitor.get(&path).await.text().contains("og:"));
}

#[tokio::test]
async fn open_graph_of_an_upload_link_shows_title_and_limits() {
    let (_world, client) = world().await;
    let upload = json!({"kind": "upload", "title": "Party", "filesMax": 5});
    let shown = page(&client, json!(["inbox/"]), upload.clone()).await;
    for tag in [
        r#"<meta property="og:title" content="Party">"#,
        r#"<meta property="og:description" content="Up to 5 files, 10 GB together.">"#,
    ] {
        assert!(shown.contains(tag), "{tag}: {shown}");
    }
    let mut locked = upload;
    locked["password"] = json!("tern-42");
    locked["paths"] = json!(["inbox/"]);
    let (_, path) = create(&client, locked).await;
    let visitor = client.without_key();
    let cookie = unlock(&visitor, &path, "tern-42").await.header("set-cookie").to_owned();
    let opened = visitor.get_with(&path, &[("cookie", &cookie)]).await;
    check_page(&opened, 200, "Party");
    assert!(!opened.text().contains("og:"), "{}", opened.text());
}

/// Returns the path and query of an URL in an attribute.
fn path_of_url(url: &str) -> String {
    url.strip_prefix(BASE).unwrap().replace("&amp;", "&")
}

#[tokio::test]
async fn link_entries_are_listed_for_programs() {
    let (world, client) = world().await;
    let (_, path) = create(&client, json!({"paths": ["a/"], "title": "Summer"})).await;
    let visitor = world.anonymous();
    let reply = visitor.get(&format!("{path}/list")).await;
    assert_eq!(reply.header("cache-control"), "private, no-store");
    assert_eq!(reply.header("x-robots-tag"), "noindex");
    let list = reply.json();
    assert_eq!(list["title"], "Summer");
    assert_eq!(list["folders"], json!([{"name": "b", "path": "a/b/"}]));
    assert_eq!(list["files"].as_array().unwrap().len(), 1);
    let file = &list["files"][0];
    assert_eq!(
        (&file["name"], &file["path"], &file["size"]),
        (&json!("1.txt"), &json!("a/1.txt"), &json!(3))
    );
    assert_eq!(file["url"], format!("{BASE}{path}/f/a/1.txt"));
    assert_eq!(visitor.get(&path_of_url(file["url"].as_str().unwrap())).await.text(), "one");
    assert_eq!(list["nextCursor"], Value::Null);
    let below = visitor.get(&format!("{path}/list?path=a/b/")).await.json();
    assert_eq!(below["files"][0]["path"], "a/b/2.txt");
    visitor.get(&format!("{path}/list?path=x/")).await.check_error(404, "file_not_found");
    visitor.get(&format!("{path}/list?cursor=%00")).await.check_error(400, "bad_path");
    let several = json!({"paths": ["a/1.txt", "x/hidden.txt", "a/b/"]});
    let (_, several) = create(&client, several).await;
    client.delete("/secret/x/hidden.txt").await.check_done();
    let list = visitor.get(&format!("{several}/list")).await.json();
    assert_eq!((&list["missingFiles"], &list["folders"][0]["name"]), (&json!(1), &json!("b")));
    let unknown = format!("/-/s/{}/list", "a".repeat(26));
    visitor.get(&unknown).await.check_error(404, "link_not_found");
}

#[tokio::test]
async fn link_list_is_paged_and_hidden_like_the_page() {
    let (world, client) = world().await;
    for number in 0..201 {
        client.put("/secret/many/", &format!("{number:03}.txt"), b"x").await;
    }
    let wish = json!({"paths": ["many/"], "password": "tern-42", "expiresIn": 600});
    let (_, path) = create(&client, wish).await;
    let visitor = world.anonymous();
    let list = format!("{path}/list");
    let locked = visitor.get(&list).await;
    locked.check_error(401, "link_locked");
    assert!(!locked.text().contains("000.txt"));
    let cookie = unlock(&visitor, &path, "tern-42").await.header("set-cookie").to_owned();
    let cookie = [("cookie", &*cookie)];
    let first = visitor.get_with(&list, &cookie).await.json();
    assert_eq!(first["files"].as_array().unwrap().len(), 200);
    let cursor = first["nextCursor"].as_str().unwrap();
    let rest = visitor.get_with(&format!("{list}?cursor={cursor}"), &cookie).await.json();
    assert_eq!(rest["files"][0]["name"], "200.txt");
    assert_eq!((&rest["files"].as_array().unwrap().len(), &rest["nextCursor"]), (&1, &Value::Null));
    world.clock.advance(600_000);
    visitor.get_with(&list, &cookie).await.check_error(410, "link_expired");
}
