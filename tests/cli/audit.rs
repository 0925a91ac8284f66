//! `trug audit`.

use serde_json::Value;
use tests::DataFolder;

fn actions(folder: &DataFolder, words: &[&str]) -> Vec<String> {
    let audit = folder.json(&[&["audit"], words].concat());
    let entries = audit["entries"].as_array().expect("entries are listed");
    entries.iter().map(|entry| entry["action"].as_str().expect("it has one").to_owned()).collect()
}

#[test]
fn audit_is_printed_with_store_free_and_served() {
    let (folder, key) = DataFolder::with_bucket();
    assert_eq!(actions(&folder, &[]), ["key.create", "bucket.create", "account.create"]);
    let server = folder.serve();
    folder.done(&["bucket", "edit", "--name", "photos", "--access", "private"]);
    let mut connection = server.connect().with_key(&key);
    let json = [("content-type", "application/json")];
    let body = br#"{"bucketName": "second"}"#;
    let made = connection.send("POST", "/api/buckets", &json, body).expect("it answers");
    assert_eq!(made.status, 200, "{}", made.text());
    check(&folder);
    server.put(&key, "/photos/2026/", "b.txt", b"b");
    server.put(&key, "/photos/2026/", "a.txt", b"12345");
    folder.done(&["rm", "photos/2026/a.txt"]);
    check_files(&folder);
    server.stop();
    check(&folder);
    check_files(&folder);
    // Also of commands without a server.
    folder.done(&["cp", "photos/2026/b.txt", "photos/copy.txt"]);
    assert_eq!(actions(&folder, &["--files", "--name", "COPY"]), ["file.copy"]);
    assert!(!folder.done(&["audit", "--json"]).stdout.contains(&key));
}

fn check_files(folder: &DataFolder) {
    let all = folder.json(&["audit", "--files", "--bucket", "photos", "--path", "2026/a.txt"]);
    let kinds: Vec<_> = (0..2).map(|at| all["entries"][at]["actor"]["kind"].clone()).collect();
    assert_eq!(kinds, ["operator", "key"]);
    let expected = ["file.delete", "file.upload", "file.upload"];
    assert_eq!(actions(folder, &["--files", "--path", "2026/"]), expected);
    assert_eq!(all["entries"][1]["detail"], "5 bytes");
    let shown = folder.done(&["audit", "--files", "--limit", "1"]).stdout;
    assert!(shown.contains("2026/a.txt"), "{shown}");
}

fn check(folder: &DataFolder) {
    let all = folder.json(&["audit"]);
    let kinds: Vec<_> = (0..2).map(|at| all["entries"][at]["actor"]["kind"].clone()).collect();
    assert_eq!(kinds, ["key", "operator"]);
    assert_eq!(all["entries"][0]["address"], "127.0.0.1");
    assert_eq!(all["entries"][1]["detail"], "access: private");
    assert_eq!(all["nextCursor"], Value::Null);
    assert_eq!(actions(folder, &["--bucket", "photos"]), ["bucket.change", "bucket.create"]);
    assert_eq!(actions(folder, &["--action", "key."]), ["key.create"]);
    let ran = folder.done(&["audit", "--limit", "2"]);
    assert!(ran.stdout.starts_with("ENTRY"), "{ran:?}");
    assert_eq!(ran.stdout.lines().count(), 3, "{ran:?}");
    let last = ran.stdout.lines().last().and_then(|line| line.split(' ').next());
    let last = last.expect("an entry has a number");
    assert!(ran.stderr.contains(&format!("--before {last}\n")), "{ran:?}");
    let before = actions(folder, &["--before", last]);
    assert_eq!(before, ["key.create", "bucket.create", "account.create"]);
}
