//! Listing: specification 4.6, clients 3.5 and 5.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use axum::body::Body;
use catalog::Scope;
use engine::{Batch, BucketName, ObjectKey, ObjectName, PutOptions, StagedBody, Store};
use http::Method;
use serde_json::{Value, json};
use server::management::BucketSettings;
use tests::fixtures::{key_of_folder, key_with_scopes};
use tests::{Client, World};

fn name(key: &str) -> ObjectName {
    ObjectName::new(BucketName::parse("photos").unwrap(), ObjectKey::parse(key).unwrap())
}

fn stage(store: &Store) -> StagedBody {
    let mut upload = store.upload();
    upload.push(b"x").unwrap();
    upload.finish().unwrap()
}

/// Stores many objects directly through the engine.
fn fill<'a>(store: &Store, keys: impl IntoIterator<Item = &'a str>) {
    let staged = stage(store);
    let keys: Vec<&str> = keys.into_iter().collect();
    for some in keys.chunks(1_000) {
        let batch = some.iter().fold(Batch::new(), |batch, key| {
            batch.put(name(key), staged.clone(), PutOptions::default())
        });
        store.commit(batch).unwrap();
    }
}

fn keys(reply: &Value) -> Vec<String> {
    let contents = reply["Contents"].as_array().unwrap().iter();
    contents.map(|content| content["Key"].as_str().unwrap().to_owned()).collect()
}

fn prefixes(reply: &Value) -> Vec<String> {
    let prefixes = reply["CommonPrefixes"].as_array().unwrap().iter();
    prefixes.map(|prefix| prefix["Prefix"].as_str().unwrap().to_owned()).collect()
}

async fn list(client: &Client, query: &str) -> Value {
    let reply = client.get(&format!("/api/list-objects?bucketName=photos{query}")).await;
    assert_eq!(reply.status, 200, "{query}: {}", reply.text());
    let reply = reply.json();
    let count = keys(&reply).len() + prefixes(&reply).len();
    assert_eq!(reply["KeyCount"], count, "{query}");
    assert_eq!(reply["IsTruncated"], reply["NextContinuationToken"].is_string(), "{query}");
    reply
}

/// Returns all pages, each in the order of S3.
async fn all_pages(client: &Client, query: &str) -> Vec<String> {
    let (mut items, mut next) = (Vec::new(), String::new());
    loop {
        let reply = list(client, &format!("{query}{next}")).await;
        let mut page = [keys(&reply), prefixes(&reply)].concat();
        page.sort();
        items.extend(page);
        match reply["NextContinuationToken"].as_str() {
            Some(token) => next = format!("&continuationToken={token}"),
            None => return items,
        }
    }
}

const TREE: [&str; 9] =
    ["a", "a-b/c", "a/", "a/b", "a/c/d", "a/c/e", "a0", "b/x_thumb.webp", "日本/語"];

#[tokio::test]
async fn list_response_has_the_shape_of_s3() {
    let (_world, client) = World::with_bucket(1);
    client.put("/photos/img/", "a.txt", b"hello").await;
    let etag = client.get("/photos/img/a.txt").await.header("etag").to_owned();
    let expected = json!({
        "success": true,
        "Name": "photos",
        "Prefix": "img/",
        "MaxKeys": 1000,
        "KeyCount": 1,
        "IsTruncated": false,
        "Contents": [{
            "Key": "img/a.txt",
            "LastModified": "2026-01-31T12:00:00.000Z",
            "ETag": etag,
            "Size": 5,
            "StorageClass": "STANDARD",
        }],
        "CommonPrefixes": [],
    });
    assert_eq!(list(&client, "&prefix=img/").await, expected);
    let empty = list(&client, "&prefix=none/&delimiter=/&startAfter=a").await;
    assert_eq!((keys(&empty).len(), prefixes(&empty).len()), (0, 0));
    assert_eq!(empty["Delimiter"], "/");
    assert_eq!(empty["StartAfter"], "a");
}

#[tokio::test]
async fn list_keys_are_in_byte_order() {
    let (world, client) = World::with_bucket(1);
    fill(&world.store, TREE);
    assert!(TREE.is_sorted());
    for page in 1..11 {
        assert_eq!(all_pages(&client, &format!("&maxKeys={page}")).await, TREE, "{page}");
    }
    assert_eq!(keys(&list(&client, "&prefix=a/").await), ["a/", "a/b", "a/c/d", "a/c/e"]);
    assert_eq!(keys(&list(&client, "&prefix=a/c/e").await), ["a/c/e"]);
    assert_eq!(keys(&list(&client, "&startAfter=a/c/d&maxKeys=2").await), ["a/c/e", "a0"]);
    assert_eq!(keys(&list(&client, "&startAfter=zz").await), ["日本/語"]);
    // Names are compared in their composed form.
    fill(&world.store, ["é/1"]);
    assert_eq!(keys(&list(&client, "&prefix=e%CC%81/").await), ["é/1"]);
}

#[tokio::test]
async fn list_delimiter_groups_keys() {
    let (world, client) = World::with_bucket(1);
    fill(&world.store, TREE);
    for page in [1, 2, 3, 1_000] {
        let root = all_pages(&client, &format!("&delimiter=/&maxKeys={page}")).await;
        assert_eq!(root, ["a", "a-b/", "a/", "a0", "b/", "日本/"], "{page}");
        let inside = all_pages(&client, &format!("&delimiter=/&prefix=a/&maxKeys={page}")).await;
        assert_eq!(inside, ["a/", "a/b", "a/c/"], "{page}");
        let dash = all_pages(&client, &format!("&delimiter=-b&prefix=a&maxKeys={page}")).await;
        assert_eq!(dash, ["a", "a-b", "a/", "a/b", "a/c/d", "a/c/e", "a0"], "{page}");
    }
    // A group counts as one item at the place of its name.
    let after = list(&client, "&delimiter=/&startAfter=a/b").await;
    assert_eq!(
        (keys(&after), prefixes(&after)),
        (vec!["a0".into()], vec!["b/".into(), "日本/".into()])
    );
}

#[tokio::test]
async fn list_folders_first_order() {
    let (world, client) = World::with_bucket(1);
    fill(&world.store, TREE);
    let mut items = Vec::new();
    let mut next = String::new();
    loop {
        let query = format!("&delimiter=/&order=folders&maxKeys=2{next}");
        let reply = list(&client, &query).await;
        assert!(prefixes(&reply).is_empty() || !items.contains(&"a".to_owned()));
        items.extend(prefixes(&reply));
        items.extend(keys(&reply));
        match reply["NextContinuationToken"].as_str() {
            Some(token) => next = format!("&continuationToken={token}"),
            None => break,
        }
    }
    assert_eq!(items, ["a/", "a-b/", "b/", "日本/", "a", "a0"]);
    let inside = list(&client, "&delimiter=/&order=folders&prefix=a/").await;
    assert_eq!((prefixes(&inside), keys(&inside)), (vec!["a/c/".into()], vec!["a/b".into()]));
    for wrong in [
        "&order=folders",
        "&order=folders&delimiter=-",
        "&order=sideways&delimiter=/",
        "&order=folders&delimiter=/&prefix=a",
        "&order=folders&delimiter=/&startAfter=a",
    ] {
        let reply = client.get(&format!("/api/list-objects?bucketName=photos{wrong}")).await;
        reply.check_error(400, "bad_parameter");
    }
}

#[tokio::test]
async fn list_page_size_is_bounded() {
    let (world, client) = World::with_bucket(1);
    let many: Vec<String> = (0..1_001).map(|at| format!("{at:04}")).collect();
    fill(&world.store, many.iter().map(String::as_str));
    for query in ["", "&maxKeys=", "&maxKeys=1000", "&maxKeys=99999999999999999999999"] {
        let reply = list(&client, query).await;
        assert_eq!(
            (&reply["MaxKeys"], &reply["KeyCount"]),
            (&json!(1_000), &json!(1_000)),
            "{query}"
        );
    }
    let none = list(&client, "&maxKeys=0").await;
    assert_eq!((&none["MaxKeys"], &none["IsTruncated"]), (&json!(0), &json!(false)));
    for wrong in ["-1", "ten", "1.5", "1e3", "0x10"] {
        let reply =
            client.get(&format!("/api/list-objects?bucketName=photos&maxKeys={wrong}")).await;
        reply.check_error(400, "bad_parameter");
        assert_eq!(reply.json()["parameter"], "maxKeys");
    }
}

#[tokio::test]
async fn list_continuation_token_of_another_listing_is_rejected() {
    let (world, client) = World::with_bucket(1);
    world.bucket("ann", "other", BucketSettings::default());
    fill(&world.store, TREE);
    let first = list(&client, "&maxKeys=2&prefix=a").await;
    let token = first["NextContinuationToken"].as_str().unwrap().to_owned();
    let next = list(&client, &format!("&prefix=a&continuationToken={token}&startAfter=zzz")).await;
    assert_eq!(next["ContinuationToken"], token);
    assert_eq!(keys(&next).first().map(String::as_str), Some("a/"));
    let mut tampered = token.clone();
    tampered.replace_range(6..7, if &token[6..7] == "A" { "B" } else { "A" });
    for (bucket, rest) in [
        ("other", format!("&prefix=a&continuationToken={token}")),
        ("photos", format!("&continuationToken={token}")),
        ("photos", format!("&prefix=a/&continuationToken={token}")),
        ("photos", format!("&prefix=a&delimiter=/&continuationToken={token}")),
        ("photos", format!("&prefix=a&continuationToken={tampered}")),
        ("photos", format!("&prefix=a&continuationToken={}", &token[..token.len() - 2])),
        ("photos", "&prefix=a&continuationToken=%00".into()),
        ("photos", "&prefix=a&continuationToken=nonsense".into()),
    ] {
        let reply = client.get(&format!("/api/list-objects?bucketName={bucket}{rest}")).await;
        reply.check_error(400, "bad_parameter");
        assert_eq!(reply.json()["parameter"], "continuationToken", "{rest}");
    }
}

#[tokio::test]
async fn list_requires_list_permission() {
    let (world, client) = World::with_bucket(1);
    fill(&world.store, TREE);
    world.account("bob");
    world.bucket("bob", "bobs", BucketSettings::default());
    let path = "/api/list-objects?bucketName=photos";
    client.without_key().get(path).await.check_error(401, "missing_api_key");
    client.get("/api/list-objects").await.check_error(400, "bad_parameter");
    client.get("/api/list-objects?bucketName=").await.check_error(400, "bad_parameter");
    for foreign in ["bobs", "nowhere", "api", "..", "a%2Fb", "PHOTOS"] {
        let reply = client.get(&format!("/api/list-objects?bucketName={foreign}")).await;
        reply.check_error(404, "bucket_not_found");
    }
    let only = |settings| world.client_of("ann", settings);
    let uploader = only(key_with_scopes(&[Scope::Upload]));
    uploader.get(path).await.check_error(403, "forbidden");
    let below = only(key_of_folder("a"));
    assert_eq!(below.get(&format!("{path}&prefix=a/c/")).await.status, 200);
    assert_eq!(keys(&below.get(&format!("{path}&prefix=a/")).await.json()).len(), 4);
    for above in ["", "&prefix=a", "&prefix=b/", "&delimiter=/", "&prefix=a-b/&delimiter=/"] {
        below.get(&format!("{path}{above}")).await.check_error(403, "forbidden");
    }
    for method in [Method::POST, Method::PUT, Method::DELETE] {
        let reply = client.send(method, path, &[], Body::empty()).await;
        reply.check_error(405, "method_not_allowed");
        assert_eq!(reply.header("allow"), "GET, HEAD, OPTIONS");
    }
}

#[tokio::test]
async fn list_hostile_parameters_are_harmless() {
    let (world, client) = World::with_bucket(1);
    fill(&world.store, TREE);
    for prefix in ["../", "/", "a//", "%00", "a%00", "a/%2e%2e/", "%5c", "./a"] {
        assert_eq!(keys(&list(&client, &format!("&prefix={prefix}")).await), [""; 0], "{prefix}");
    }
    let long = "x".repeat(2_000);
    assert_eq!(keys(&list(&client, &format!("&prefix={long}")).await), [""; 0]);
    for after in ["a/%00", "a/%00%01", "a/%1f"] {
        let rest = keys(&list(&client, &format!("&startAfter={after}")).await);
        assert_eq!(rest, TREE[3..], "{after}");
    }
    assert_eq!(keys(&list(&client, "&delimiter=%00").await), TREE);
    for wrong in ["&prefix=%ff", "&delimiter=%ff", "&startAfter=%ff"] {
        let reply = client.get(&format!("/api/list-objects?bucketName=photos{wrong}")).await;
        reply.check_error(400, "bad_parameter");
    }
}

/// A hundred thousand keys in folders of several depths; every tenth is written concurrently with the listing.
#[tokio::test(flavor = "multi_thread")]
async fn list_returns_stable_keys_once_during_writes() {
    const KEYS: usize = 100_000;
    let (world, client) = World::with_bucket(1);
    let key = |at: usize| match at % 3 {
        0 => format!("{:02}/{:02}/{at:06}.png", at % 37, at % 11),
        1 => format!("{:02}/{at:06}-x", at % 37),
        _ => format!("{at:06}"),
    };
    let stays = |at: &usize| !at.is_multiple_of(10);
    let all: Vec<String> = (0..KEYS).map(key).collect();
    fill(&world.store, all.iter().map(String::as_str));
    let stop = Arc::new(AtomicBool::new(false));
    let writer = {
        let (store, stop) = (world.store.clone(), Arc::clone(&stop));
        std::thread::spawn(move || {
            let staged = stage(&store);
            let mut round = 0;
            while !stop.load(Ordering::Relaxed) {
                let mut batch = Batch::new();
                for step in 0..100 {
                    let at = (round * 997 + step * 10) % KEYS / 10 * 10;
                    let options = PutOptions::default();
                    batch = match (round + step) % 4 {
                        0 => batch.delete(name(&key(at))),
                        1 => batch.put(
                            name(&format!("{}+{round}", key(at))),
                            staged.clone(),
                            options,
                        ),
                        // Overwrites of what stays, too.
                        2 => batch.put(name(&key(at + 1)), staged.clone(), options),
                        _ => batch.put(name(&key(at)), staged.clone(), options),
                    };
                }
                store.commit(batch).unwrap();
                round += 1;
            }
            round
        })
    };
    let expected: BTreeSet<String> = (0..KEYS).filter(stays).map(key).collect();
    let listed = all_pages(&client, "").await;
    let grouped = all_pages(&client, "&delimiter=/&maxKeys=700").await;
    stop.store(true, Ordering::Relaxed);
    assert!(writer.join().unwrap() > 0, "nothing was written concurrently");
    assert!(listed.windows(2).all(|pair| pair[0] < pair[1]), "in order, each once");
    let found: BTreeSet<String> = listed.into_iter().filter(|key| expected.contains(key)).collect();
    assert_eq!(found.len(), expected.len());
    let group = |key: &String| key.split_once('/').map_or(key.clone(), |(at, _)| format!("{at}/"));
    let expected: BTreeSet<String> = expected.iter().map(group).collect();
    assert!(grouped.windows(2).all(|pair| pair[0] < pair[1]), "groups in order, each once");
    let found: BTreeSet<String> =
        grouped.into_iter().filter(|key| expected.contains(key)).collect();
    assert_eq!(found.len(), expected.len());
}
