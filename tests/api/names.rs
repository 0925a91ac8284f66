//! Names of uploaded files: specification 4.2, clients 3.2.

use std::collections::BTreeSet;

use serde_json::Value;
use tests::{Form, World};

const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR";

#[tokio::test]
async fn taken_name_gets_the_next_number() {
    let (_world, client) = World::with_bucket(1);
    for (name, second, third) in [
        ("a.txt", "a (1).txt", "a (2).txt"),
        ("a.tar.gz", "a.tar (1).gz", "a.tar (2).gz"),
        ("README", "README (1)", "README (2)"),
        (".env", ".env (1)", ".env (2)"),
    ] {
        let path = "/photos/x/";
        let first = client.put(path, name, b"text").await;
        assert_eq!(
            (&first["key"], &first["renamed"]),
            (&format!("x/{name}").into(), &false.into())
        );
        let key = client.put(path, name, b"text").await;
        assert_eq!((&key["key"], &key["renamed"]), (&format!("x/{second}").into(), &true.into()));
        assert_eq!(client.put(path, name, b"text").await["key"], format!("x/{third}"));
    }
    let exact = client.put("/photos/x/a.txt", "other", b"text").await;
    assert_eq!(exact["key"], "x/a (3).txt");
    assert_eq!(exact["url"], "https://cdn.example.com/photos/x/a%20(3).txt");
}

#[tokio::test]
async fn files_of_one_form_do_not_overwrite_each_other() {
    let (world, client) = World::with_bucket(1);
    let form = || Form::new().file("f", "a.txt", None, b"1").file("f", "a.txt", None, b"2");
    let keys = |reply: Value| [reply["files"][0]["key"].clone(), reply["files"][1]["key"].clone()];
    let reply = client.upload("/photos/", form()).await.json();
    assert_eq!(keys(reply), ["a.txt", "a (1).txt"]);
    let reply = client.upload("/photos/?overwrite=1", form()).await.json();
    assert_eq!(keys(reply), ["a.txt", "a (2).txt"]);
    assert_eq!(world.object_count("photos"), 3);
    assert_eq!(client.get("/photos/a%20(2).txt").await.text(), "2");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn concurrent_uploads_get_distinct_names() {
    let (world, client) = World::with_bucket(1);
    let uploads = (0..100).map(|number| {
        let (client, bytes) = (client.clone(), [PNG, format!("{number}").as_bytes()].concat());
        tokio::spawn(async move { (client.put("/photos/", "shot.png", &bytes).await, bytes) })
    });
    let uploads: Vec<_> = uploads.collect();
    let mut keys = BTreeSet::new();
    for upload in uploads {
        let (reply, bytes) = upload.await.unwrap();
        let path = reply["url"].as_str().unwrap().strip_prefix("https://cdn.example.com").unwrap();
        assert_eq!(client.get(path).await.body, bytes, "{path}");
        keys.insert(reply["key"].as_str().unwrap().to_owned());
    }
    let numbered = (1..100).map(|number| format!("shot ({number}).png"));
    assert_eq!(keys, numbered.chain(["shot.png".to_owned()]).collect());
    assert_eq!(world.object_count("photos"), 100);
}

#[tokio::test]
async fn random_names_are_uuids_with_the_extension() {
    let (_world, client) = World::with_bucket(1);
    for (path, name, folder, extension) in [
        ("/photos/?randomizeName=true", "A.PNG", "", ".png"),
        ("/photos/x/?randomizeName=1", "blob", "x/", ".png"),
        ("/photos/x/me.jpeg?randomizeName", "A.PNG", "x/", ".jpeg"),
    ] {
        let key = client.put(path, name, PNG).await["key"].as_str().unwrap().to_owned();
        let stem = key.strip_prefix(folder).and_then(|key| key.strip_suffix(extension));
        let stem = stem.unwrap_or_else(|| panic!("{path}: {key}"));
        assert_eq!((stem.len(), &stem[14..15]), (36, "4"), "{key}");
    }
}

#[tokio::test]
async fn file_name_gets_the_correct_extension() {
    let (_world, client) = World::with_bucket(1);
    for (name, bytes, key) in [
        ("blob", PNG, "blob.png"),
        ("../../etc/passwd", b"root", "passwd"),
        ("C:\\\\pics\\\\me.png", PNG, "me.png"),
        ("a%22b.txt", b"x", "a\"b.txt"),
        ("\u{65e5}\u{672c} \u{8a9e}.webp", b"x", "\u{65e5}\u{672c} \u{8a9e}.webp"),
        ("e\u{301}.txt", b"x", "\u{e9}.txt"),
        ("..", PNG, ""),
    ] {
        let reply = client.put("/photos/", name, bytes).await;
        let got = reply["key"].as_str().unwrap();
        if key.is_empty() {
            assert!(got.len() == 40 && got.ends_with(".png"), "{name}: {got}");
        } else {
            assert_eq!(got, key, "{name}");
        }
    }
    let reply = client.put("/photos/", "käse & brot#1?.txt", b"x").await;
    let url = reply["url"].as_str().unwrap();
    let path = url.strip_prefix("https://cdn.example.com").unwrap();
    assert_eq!(client.get(path).await.text(), "x", "{url}");
}

#[tokio::test]
async fn invalid_key_is_rejected_with_the_rule() {
    let (_world, client) = World::with_bucket(1);
    let long = "k".repeat(1_025);
    for path in ["a//b.txt", "a/../b.txt", "a%00.txt", "a%5Cb.txt", "./b.txt", &long, "%zz"] {
        let reply = client.upload_file(&format!("/photos/{path}"), "a.txt", b"1").await;
        reply.check_error(400, "bad_path");
    }
    client.put(&format!("/photos/{}", "k".repeat(1_024)), "a.txt", b"1").await;
}
