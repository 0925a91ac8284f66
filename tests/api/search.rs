//! Search and browsing: specification 4.7, clients 3.5.

use std::sync::Arc;

use axum::body::Body;
use catalog::Scope;
use http::Method;
use serde_json::{Value, json};
use server::management::BucketSettings;
use service::limits::SEARCHES_QUEUED_MAX;
use tests::fixtures::{key_of_folder, key_with_scopes};
use tests::{Client, Reply, World};

async fn search(client: &Client, query: &str) -> Value {
    client.get_json(&format!("/api/search/photos?{query}")).await
}

fn keys(reply: &Value) -> Vec<&str> {
    reply["hits"].as_array().unwrap().iter().map(|hit| hit["key"].as_str().unwrap()).collect()
}

async fn with_files(files: &[&str]) -> (World, Client) {
    let (world, client) = World::with_bucket(1);
    for file in files {
        let (folder, name) =
            file.rsplit_once('/').map_or(("", *file), |(folder, name)| (folder, name));
        let path = if folder.is_empty() { "/photos/".into() } else { format!("/photos/{folder}/") };
        client.put(&path, name, b"hello").await;
    }
    (world, client)
}

#[tokio::test]
async fn search_returns_folders_then_files() {
    let (_world, client) = with_files(&["cats/tom.txt", "a/Cat.txt", "dog.txt"]).await;
    let reply = search(&client, "q=cat").await;
    assert_eq!(keys(&reply), ["cats/", "a/Cat.txt", "cats/tom.txt"]);
    let etag = client.get("/photos/a/Cat.txt").await.header("etag").to_owned();
    let mut hits = reply["hits"].as_array().unwrap().clone();
    hits.truncate(2);
    let expected = json!([
        {
            "type": "folder", "name": "cats", "key": "cats/", "path": "cats/", "parent": "", "score": 900,
            "matches": [[0, 3]], "size": null, "lastModified": null, "etag": null, "contentType": null, "url": null,
            "thumbnailUrl": null,
        },
        {
            "type": "file", "name": "Cat.txt", "key": "a/Cat.txt", "path": "a/Cat.txt", "parent": "a/",
            "score": 1000, "matches": [[2, 5]], "size": 5, "lastModified": "2026-01-31T12:00:00.000Z",
            "etag": etag, "contentType": "text/plain", "url": "https://cdn.example.com/photos/a/Cat.txt",
            "thumbnailUrl": null,
        },
    ]);
    assert_eq!(Value::Array(hits), expected);
    for (pointer, want) in [
        ("/success", json!(true)),
        ("/query", json!("cat")),
        ("/bucketName", json!("photos")),
        ("/parent", json!("")),
        ("/limit", json!(20)),
        ("/offset", json!(0)),
        ("/total", json!(3)),
        ("/estimatedTotalHits", json!(3)),
        ("/totalIsExact", json!(true)),
        ("/processingTimeMs", json!(0)),
    ] {
        assert_eq!(reply.pointer(pointer), Some(&want), "{pointer}");
    }
}

#[tokio::test]
async fn search_ignores_case_accents_word_order_and_typos() {
    let (_world, client) = with_files(&["Été à la plage.txt", "vacation.txt"]).await;
    for query in
        ["q=ete", "q=%C3%89T%C3%89", "q=E%CC%81te%CC%81", "q=plage+ete", "q=PLAGE", "q=tplg"]
    {
        assert_eq!(keys(&search(&client, query).await), ["Été à la plage.txt"], "{query}");
    }
    for query in ["q=vacatoin", "q=vaction", "q=vakation", "q=vcation"] {
        assert_eq!(keys(&search(&client, query).await), ["vacation.txt"], "{query}");
    }
    assert!(keys(&search(&client, "q=zebra").await).is_empty());
}

#[tokio::test]
async fn search_parent_is_listed_without_query() {
    let (_world, client) =
        with_files(&["a/b/c.txt", "a/z.txt", "a/b/z.txt", "a/d.txt", "z.txt", "ab/z.txt"]).await;
    for parent in ["parent=a/", "parent=a", "parent=/a/", "parent=a%2F", "q=+&parent=a"] {
        let reply = search(&client, parent).await;
        assert_eq!(keys(&reply), ["a/b/", "a/d.txt", "a/z.txt"], "{parent}");
        assert_eq!(reply["parent"], "a/");
        assert_eq!(reply["total"], 3);
    }
    assert_eq!(keys(&search(&client, "parent=a&offset=1&limit=1").await), ["a/d.txt"]);
    assert_eq!(keys(&search(&client, "q=z&parent=a").await), ["a/b/z.txt", "a/z.txt"]);
    for root in ["", "parent=", "parent=/"] {
        assert_eq!(keys(&search(&client, root).await), ["a/", "ab/", "z.txt"], "{root}");
    }
    assert!(keys(&search(&client, "parent=none").await).is_empty());
    let reply = client.get("/api/search/photos?parent=a/../b").await;
    reply.check_error(400, "bad_parameter");
}

#[tokio::test]
async fn search_reports_thumbnails_only_by_name() {
    let files = ["cat.txt", "cat_thumb.webp", "dog.txt"];
    let (_world, client) = with_files(&files).await;
    let reply = search(&client, "q=cat").await;
    assert_eq!(keys(&reply), ["cat.txt"]);
    let thumbnail = "https://cdn.example.com/photos/cat_thumb.webp";
    assert_eq!(reply["hits"][0]["thumbnailUrl"], thumbnail);
    assert_eq!(keys(&search(&client, "").await), ["cat.txt", "dog.txt"]);
    let named = search(&client, "q=cat_thumb").await;
    assert_eq!(keys(&named), ["cat_thumb.webp"]);
    assert_eq!(named["hits"][0]["thumbnailUrl"], Value::Null);
}

#[tokio::test]
async fn search_pages_are_consecutive_and_bounded() {
    let files: Vec<String> = (0..25).map(|at| format!("cat {at:02}.txt")).collect();
    let (_world, client) = with_files(&files.iter().map(String::as_str).collect::<Vec<_>>()).await;
    assert_eq!(keys(&search(&client, "q=cat").await).len(), 20);
    let mut paged = Vec::new();
    for offset in (0..30).step_by(10) {
        let reply = search(&client, &format!("q=cat&limit=10&offset={offset}")).await;
        assert_eq!(reply["total"], 25);
        paged.extend(keys(&reply).into_iter().map(str::to_owned));
    }
    assert_eq!(paged, files);
    for (asked, limit) in
        [("0", 1), ("1", 1), ("1000", 1_000), ("1001", 1_000), ("9999999999999999999999", 1_000)]
    {
        assert_eq!(search(&client, &format!("q=cat&limit={asked}")).await["limit"], limit);
    }
    let last = search(&client, "q=cat&offset=9980").await;
    assert_eq!((keys(&last).len(), &last["total"]), (0, &json!(25)));
    let words = vec!["a"; 17].join("+");
    for (wrong, parameter) in [
        ("limit=ten", "limit"),
        ("limit=-1", "limit"),
        ("offset=-1", "offset"),
        ("offset=x", "offset"),
        ("offset=9981", "offset"),
        ("offset=99999999999999999999999", "offset"),
        (&*format!("q={}", "x".repeat(257)), "q"),
        (&*format!("q={words}"), "q"),
        ("q=%ff", "q"),
        ("parent=%ff", "parent"),
        ("parent=a%00", "parent"),
    ] {
        let reply = client.get(&format!("/api/search/photos?{wrong}")).await;
        reply.check_error(400, "bad_parameter");
        assert_eq!(reply.json()["parameter"], parameter, "{wrong}");
    }
    assert_eq!(search(&client, &format!("q={}", "x".repeat(256))).await["total"], 0);
}

#[tokio::test]
async fn search_requires_list_permission() {
    let (world, client) = with_files(&["a/cat.txt", "b/cat.txt"]).await;
    world.account("bob");
    world.bucket("bob", "bobs", BucketSettings::default());
    client.without_key().get("/api/search/photos?q=cat").await.check_error(401, "missing_api_key");
    for foreign in ["bobs", "nowhere", "api", "photos%2Fa"] {
        let reply = client.get(&format!("/api/search/{foreign}?q=cat")).await;
        reply.check_error(404, "bucket_not_found");
    }
    for none in ["/api/search", "/api/search/", "/api/search/photos/a"] {
        client.get(none).await.check_error(404, "not_found");
    }
    let only = |settings| world.client_of("ann", settings);
    let reader = only(key_with_scopes(&[Scope::Read]));
    reader.get("/api/search/photos?q=cat").await.check_error(403, "forbidden");
    let below = only(key_of_folder("a"));
    assert_eq!(keys(&search(&below, "q=cat&parent=a").await), ["a/cat.txt"]);
    for above in ["q=cat", "q=cat&parent=b", "parent=", "parent=a.b"] {
        let reply = below.get(&format!("/api/search/photos?{above}")).await;
        reply.check_error(403, "forbidden");
    }
    for method in [Method::POST, Method::PUT, Method::DELETE] {
        let reply = client.send(method, "/api/search/photos", &[], Body::empty()).await;
        reply.check_error(405, "method_not_allowed");
    }
}

#[tokio::test]
async fn search_concurrency_limit_returns_retry_after() {
    let (world, client) = with_files(&["cat.txt"]).await;
    let searches = &world.state.searches;
    let count = searches.permits().available_permits();
    assert!(count >= 1);
    let all = Arc::clone(searches.permits());
    let all = all.acquire_many_owned(u32::try_from(count).unwrap()).await.unwrap();
    let ask = || {
        let client = client.clone();
        tokio::spawn(async move { client.get("/api/search/photos?q=cat").await })
    };
    let busy = |reply: Reply| {
        reply.check_error(503, "overloaded");
        assert_eq!(reply.header("retry-after"), "2");
    };
    // A search beyond the queue's limit is rejected at once.
    let waiting: Vec<_> = (0..SEARCHES_QUEUED_MAX).map(|_| ask()).collect();
    while searches.waiting() < SEARCHES_QUEUED_MAX {
        tokio::task::yield_now().await;
    }
    busy(ask().await.unwrap());
    // A client that disconnects while queued frees its place.
    for search in waiting {
        search.abort();
        assert!(search.await.unwrap_err().is_cancelled());
    }
    assert_eq!(searches.waiting(), 0);
    // A search that waits too long is then rejected.
    tokio::time::pause();
    let reply = client.get("/api/search/photos?q=cat").await;
    tokio::time::resume();
    busy(reply);
    drop(all);
    assert_eq!(keys(&search(&client, "q=cat").await), ["cat.txt"]);
    assert_eq!((searches.permits().available_permits(), searches.waiting()), (count, 0));
}
