//! `trug remote`: check of a remote store, begin and end of replication, restore points, restore, status, and garbage
//! collection.

use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, SystemTime};

use serde_json::Value;
use tempfile::TempDir;
use tests::DataFolder;
use tests::commands::{Ran, done, run, trug};
use tests::memory_s3::{S3Fault, memory_s3};

/// Runs the check with these arguments.
fn check(words: &[&str]) -> Ran {
    run(trug().args(["remote", "check"]).args(words))
}

#[test]
fn remote_check_finds_all_properties_of_a_folder() {
    let folder = tempfile::tempdir().expect("a folder");
    let url = format!("file://{}", folder.path().display());
    let ran = done(trug().args(["remote", "check", &url]));
    assert_eq!(ran.stderr, "");
    assert!(ran.stdout.starts_with(&format!("{url}\n")), "{ran:?}");
    assert_eq!(ran.stdout.matches("yes\n").count(), 4, "{ran:?}");
    let ran = done(trug().args(["remote", "check", &url, "--json"]));
    let json: Value = serde_json::from_str(&ran.stdout).expect("JSON");
    assert_eq!((&json["url"], &json["createsAtomically"]), (&url.into(), &true.into()));
    assert!(json["createMs"].is_u64() && json["clockSkewMs"].is_i64(), "{json}");
}

#[test]
fn remote_check_fails_and_explains_a_missing_property() {
    let folder = tempfile::tempdir().expect("a folder");
    let keys = folder.path().join("keys.txt");
    fs::write(&keys, "key-id-1\nsecret-1\n").expect("it can be written");
    let keys = keys.to_str().expect("the path is UTF-8");
    for (fault, line) in [
        (S3Fault::IgnoresConditions, "creates atomically  no   Two primaries cannot be detected"),
        (S3Fault::IgnoresRanges, "reads ranges        no   Files cannot be read in parts"),
    ] {
        let s3 = memory_s3(fault);
        let words = ["s3://pics/a", "--endpoint", &s3.origin(), "--credentials-file", keys];
        let ran = check(&words);
        assert_eq!(ran.code, 1, "{ran:?}");
        assert_eq!(ran.stderr, "trug: s3://pics/a/: a required property is missing\n");
        assert!(ran.stdout.contains(line), "{ran:?}");
        // The service reports a modification in 1994.
        assert!(ran.stdout.contains("Set the clock"), "{ran:?}");
        let json = check(&[&words[..], &["--json"]].concat());
        assert_eq!(json.code, 1, "{json:?}");
        assert!(serde_json::from_str::<Value>(&json.stdout).is_ok(), "{json:?}");
    }
}

#[test]
fn remote_check_reports_unusable_stores_without_secrets() {
    let folder = tempfile::tempdir().expect("a folder");
    let keys = folder.path().join("keys.txt");
    fs::write(&keys, "key-id-1\nsecret-1\n").expect("it can be written");
    let keys = keys.to_str().expect("the path is UTF-8");
    let missing = format!("file://{}/missing", folder.path().display());
    check(&[&missing]).check_failure(1, "the folder must exist");
    let s3 = memory_s3(S3Fault::None);
    let words = ["s3://other", "--endpoint", &s3.origin(), "--credentials-file", keys];
    let ran = check(&words);
    ran.check_failure(1, "s3://other/ cannot be checked: the bucket does not exist");
    assert!(!format!("{ran:?}").contains("secret-1"), "{ran:?}");
    fs::write(keys, "secret-1\n").expect("it can be written");
    let ran = check(&words);
    ran.check_failure(2, "the credentials have 1 lines, not two: access key and secret key");
    assert!(!format!("{ran:?}").contains("secret-1"), "{ran:?}");
    check(&["https://s3.example.com/pics"]).check_failure(2, "use s3://BUCKET/PREFIX");
    check(&["s3://pics", "--endpoint", "rgw"]).check_failure(2, "endpoint \"rgw\": ");
    check(&["s3://pics", "--credentials-file", "/missing"]).check_failure(2, "--credentials-file");
}

/// A store with the file `first.txt`, and an empty folder for its copy.
fn replicated() -> (DataFolder, TempDir, String) {
    let (folder, _) = DataFolder::with_bucket();
    store(&folder, "first.txt", b"first");
    let remote = tempfile::tempdir().expect("a folder");
    let url = format!("file://{}", remote.path().display());
    (folder, remote, url)
}

/// Stores a file in the bucket.
fn store(folder: &DataFolder, name: &str, content: &[u8]) {
    let path = folder.parent().join(name);
    fs::write(&path, content).expect("it can be written");
    folder.done(&["cp", path.to_str().expect("the path is UTF-8"), "photos/"]);
}

fn points(url: &str) -> Vec<Value> {
    let ran = done(trug().args(["remote", "points", url, "--json"]));
    serde_json::from_str(&ran.stdout).expect("JSON")
}

/// Returns the time of the newest restore point after a pause, so that later states have later times.
fn newest_time(url: &str) -> String {
    let time = points(url).last().expect("a restore point")["time"].as_str().map(str::to_owned);
    thread::sleep(Duration::from_millis(20));
    time.expect("a time")
}

#[test]
fn remote_attach_uploads_a_store_and_continues_it() {
    let (folder, _remote, url) = replicated();
    let attached = folder.done(&["remote", "attach", &url]);
    assert!(attached.stdout.starts_with(&format!("replicated to {url}: epoch 1, chunk ")));
    assert_eq!(attached.stderr, "");
    assert_eq!(points(&url).len(), 1);
    store(&folder, "second.txt", b"second");
    let attached = folder.done(&["remote", "attach", &url]);
    assert!(attached.stdout.starts_with(&format!("replicated to {url}: epoch 2, chunk ")));
    let restored = DataFolder::new();
    restored.done(&["remote", "restore", &url]);
    assert_eq!(restored.done(&["cat", "photos/second.txt"]).stdout, "second");
}

#[test]
fn remote_attach_rejects_folders_that_it_cannot_replicate() {
    let (folder, remote, url) = replicated();
    folder.done(&["remote", "attach", &url]);
    let (other, _) = DataFolder::with_bucket();
    other.run(&["remote", "attach", &url]).check_failure(5, "the remote store belongs to store ");
    assert_eq!(points(&url).len(), 1);
    let missing = DataFolder::new();
    missing.run(&["remote", "attach", &url]).check_failure(1, "");
    assert!(!missing.path().exists());
    let gone = format!("file://{}/missing", remote.path().display());
    folder.run(&["remote", "attach", &gone]).check_failure(1, "the folder must exist");
    let server = folder.serve();
    folder.run(&["remote", "attach", &url]).check_failure(4, "in use by process");
    folder.run(&["remote", "detach"]).check_failure(4, "in use by process");
    server.stop();
}

#[test]
fn remote_points_lists_restore_points_and_fails_without_any() {
    let (folder, _remote, url) = replicated();
    let none = run(trug().args(["remote", "points", &url]));
    none.check_failure(1, &format!("{url} has no restore point"));
    assert_eq!(points(&url), Vec::<Value>::new());
    let restored = DataFolder::new();
    restored.run(&["remote", "restore", &url]).check_failure(1, "the remote store is empty");
    folder.done(&["remote", "attach", &url]);
    let points = points(&url);
    assert_eq!(points.len(), 1, "{points:?}");
    assert!(points[0]["lastLsn"].as_u64() > Some(0), "{points:?}");
    let text = done(trug().args(["remote", "points", &url])).stdout;
    let lines: Vec<String> = points
        .iter()
        .map(|point| format!("{}  chunk {}", point["time"].as_str().unwrap(), point["chunk"]))
        .collect();
    assert_eq!(text.lines().collect::<Vec<_>>(), lines);
}

#[test]
fn remote_restore_at_a_time_restores_the_earlier_state() {
    let (folder, _remote, url) = replicated();
    folder.done(&["remote", "attach", &url]);
    let earlier = newest_time(&url);
    store(&folder, "second.txt", b"second");
    folder.done(&["rm", "photos/first.txt"]);
    folder.done(&["remote", "attach", &url]);

    let restored = DataFolder::new();
    let json = restored.json(&["remote", "restore", &url, "--at", &earlier]);
    assert_eq!((&json["damageCount"], &json["damage"]), (&0.into(), &Value::Array(Vec::new())));
    assert!(json["time"].as_str().is_some_and(|time| time <= &*earlier), "{json}");
    assert_eq!(restored.done(&["cat", "photos/first.txt"]).stdout, "first");
    restored.run(&["cat", "photos/second.txt"]).check_failure(1, "second.txt");
    restored.done(&["fsck"]);

    let newest = DataFolder::new();
    let ran = newest.done(&["remote", "restore", &url]);
    assert!(ran.stdout.starts_with("restored the state of "), "{ran:?}");
    assert_eq!(newest.done(&["cat", "photos/second.txt"]).stdout, "second");
    newest.run(&["cat", "photos/first.txt"]).check_failure(1, "first.txt");
    newest.done(&["fsck"]);
}

#[test]
fn remote_restore_rejects_other_folders_and_times() {
    let (folder, _remote, url) = replicated();
    folder.done(&["remote", "attach", &url]);
    let refused = folder.run(&["remote", "restore", &url]);
    refused.check_failure(1, "the folder to restore to contains ");
    assert_eq!(folder.done(&["cat", "photos/first.txt"]).stdout, "first");
    let restored = DataFolder::new();
    let at = |time: &str| restored.run(&["remote", "restore", &url, "--at", time]);
    at("2001-01-01").check_failure(1, "the remote store has no restore point at or before this");
    at("1969-01-01").check_failure(2, "--at: ");
    at("yesterday").check_failure(2, "--at");
    // Nothing was left that a later restore would stumble over.
    restored.done(&["remote", "restore", &url]);
}

#[test]
fn remote_restore_reports_damage_and_restores_the_rest() {
    let (folder, remote, url) = replicated();
    store(&folder, "big.bin", &vec![b'x'; 2 << 20]);
    folder.done(&["remote", "attach", &url]);
    let file = largest(remote.path().to_owned());
    let object = fs::File::options().write(true).open(&file).expect("it can be opened");
    object.set_len(1 << 20).expect("it can be truncated");

    let restored = DataFolder::new();
    let ran = restored.run(&["remote", "restore", &url]);
    assert_eq!(ran.code, 3, "{ran:?}");
    assert!(ran.stdout.contains("\ndamage: ") && ran.stderr.contains("damaged"), "{ran:?}");
    assert_eq!(restored.done(&["cat", "photos/first.txt"]).stdout, "first");
    let ran = DataFolder::new().run(&["remote", "restore", &url, "--json"]);
    assert_eq!(ran.code, 3, "{ran:?}");
    let json: Value = serde_json::from_str(&ran.stdout).expect("JSON");
    assert!(json["damageCount"].as_u64() > Some(0), "{json}");
    assert!(json["damage"][0].is_string(), "{json}");
}

/// Returns the largest file in a folder and its subfolders.
fn largest(folder: PathBuf) -> PathBuf {
    let (mut folders, mut largest) = (vec![folder], (0, PathBuf::new()));
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).expect("it can be listed") {
            let entry = entry.expect("it can be listed");
            let metadata = entry.metadata().expect("it exists");
            match metadata.is_dir() {
                true => folders.push(entry.path()),
                false => largest = largest.max((metadata.len(), entry.path())),
            }
        }
    }
    largest.1
}

#[test]
fn remote_detach_ends_the_replication_of_a_folder() {
    let (folder, _remote, url) = replicated();
    folder.done(&["remote", "attach", &url]);
    let mark = folder.path().join("REMOTE");
    assert!(mark.exists());
    let detached = folder.done(&["remote", "detach"]);
    let path = folder.path();
    assert_eq!(detached.stdout, format!("{} is no longer replicated\n", path.display()));
    assert!(!mark.exists());
    // The remote store keeps its state, and the folder can be attached again.
    assert_eq!(points(&url).len(), 1);
    folder.done(&["remote", "detach"]);
    folder.done(&["remote", "attach", &url]);
    assert!(mark.exists());
    let missing = DataFolder::new();
    missing.run(&["remote", "detach"]).check_failure(1, "");
    assert!(!missing.path().exists());
}

#[test]
fn remote_status_shows_the_remote_store_and_the_folder() {
    let (folder, remote, url) = replicated();
    let none = run(trug().args(["remote", "status", &url]));
    none.check_failure(1, "the remote store is empty");
    folder.done(&["remote", "attach", &url]);
    let newest = points(&url).pop().expect("a restore point");
    let before = names(remote.path());

    let server = folder.serve();
    let json = folder.json(&["remote", "status", &url, "--sizes"]);
    server.stop();
    let last = &json["lastChunk"];
    assert_eq!((&json["restorePointCount"], &json["newestRestorePoint"]), (&1.into(), &newest));
    assert_eq!((&last["epoch"], &last["lastLsn"]), (&1.into(), &newest["lastLsn"]));
    assert!(last["number"].as_u64() >= newest["chunk"].as_u64(), "{json}");
    assert!(last["ageMs"].as_u64() < Some(600_000), "{json}");
    let path = folder.path().display().to_string();
    let same = serde_json::json!({ "path": path, "store": json["store"], "isSameStore": true,
        "epoch": 1, "isNewestEpoch": true });
    assert_eq!(json["folder"], same);
    let counted: Vec<_> = ["log/", "seg/", "manifest/"]
        .map(|prefix| {
            let objects = before.iter().filter(|name| name.starts_with(prefix));
            let sizes = objects.map(|name| fs::metadata(remote.path().join(name)).unwrap().len());
            let (objects, bytes) = (sizes.clone().count(), sizes.sum::<u64>());
            serde_json::json!({ "prefix": prefix, "objects": objects, "bytes": bytes })
        })
        .into();
    assert_eq!(json["sizes"], Value::Array(counted));
    assert_eq!(names(remote.path()), before, "nothing was changed");

    let text = folder.done(&["remote", "status", &url]).stdout;
    assert!(text.starts_with(&format!("{url}\n  store           ")), "{text}");
    assert!(text.contains("\n  restore points  1, the newest of "), "{text}");
    assert!(text.contains("\n  epoch           1, the newest\n"), "{text}");
    assert!(!text.contains("seg/"), "{text}");
    let alone = done(trug().args(["remote", "status", &url, "--json"]));
    let json: Value = serde_json::from_str(&alone.stdout).expect("JSON");
    assert_eq!((&json["folder"], &json["sizes"]), (&Value::Null, &Value::Null));
}

#[test]
fn remote_status_exits_with_5_for_folders_that_lost_the_primary() {
    let (folder, _remote, url) = replicated();
    folder.done(&["remote", "attach", &url]);
    let (other, _) = DataFolder::with_bucket();
    let ran = other.run(&["remote", "status", &url]);
    assert_eq!(ran.code, 5, "{ran:?}");
    assert!(ran.stderr.contains("the remote store belongs to store "), "{ran:?}");
    assert!(ran.stdout.contains("not that of the remote store"), "{ran:?}");
    other.run(&["remote", "gc", &url]).check_failure(5, "the remote store belongs to store ");

    let restored = DataFolder::new();
    restored.done(&["remote", "restore", &url]);
    let ran = restored.done(&["remote", "status", &url]);
    assert!(ran.stdout.contains("none: not replicated"), "{ran:?}");
    restored.run(&["remote", "gc", &url]).check_failure(1, "run `trug remote attach`");
    restored.done(&["remote", "attach", &url]);
    restored.done(&["remote", "status", &url]);
    let ran = folder.run(&["remote", "status", &url, "--json"]);
    assert_eq!(ran.code, 5, "{ran:?}");
    assert!(ran.stderr.contains("is 1, but another process was the primary in epoch 2"), "{ran:?}");
    let json: Value = serde_json::from_str(&ran.stdout).expect("JSON");
    assert_eq!(json["folder"]["isNewestEpoch"], false);
    folder.run(&["remote", "gc", &url, "--dry-run"]).check_failure(5, "in epoch 2");
    DataFolder::new().run(&["remote", "status", &url]).check_failure(1, "has no store");
}

#[test]
fn remote_gc_removes_orphans_that_no_restore_point_needs() {
    let (folder, remote, url) = replicated();
    folder.done(&["remote", "attach", &url]);
    for at in 0..4 {
        store(&folder, &format!("{at}.txt"), b"content");
    }
    folder.done(&["rm", "photos/0.txt"]);
    folder.done(&["remote", "attach", &url]);
    // Another process could have uploaded this before it was fenced. Log segments have odd ids here.
    let orphan = "seg/0000000002-00000000deadbeef".to_owned();
    assert!(!folder.path().join("log/0000000002.seg").exists());
    fs::write(remote.path().join(&orphan), b"orphan").expect("it can be written");

    let before = names(remote.path());
    let dry = folder.json(&["remote", "gc", &url, "--dry-run"]);
    assert_eq!(dry["waiting"]["names"], serde_json::json!([orphan]), "{dry}");
    assert_eq!((&dry["waiting"]["bytes"], &dry["removable"]["objects"]), (&6.into(), &0.into()));
    assert_eq!(names(remote.path()), before, "a dry run changes nothing");
    // The restore points of the last seven days may need it.
    let ran = folder.done(&["remote", "gc", &url]);
    assert_eq!(ran.stdout, "removed 0 objects, 0 bytes\n");
    assert!(names(remote.path()).contains(&orphan));

    // Eight days later.
    let old = SystemTime::now() - Duration::from_secs(8 * 24 * 60 * 60);
    for name in names(remote.path()) {
        let file = fs::File::options().write(true).open(remote.path().join(name));
        file.and_then(|file| file.set_modified(old)).expect("its time can be set");
    }
    let before = names(remote.path());
    let text = folder.done(&["remote", "gc", &url, "--dry-run"]).stdout;
    let (removable, waiting) = text.split_once("0 objects, 0 bytes wait").expect("two parts");
    assert_eq!(waiting, " for older restore points\n");
    let removable: Vec<_> = removable.lines().skip(1).map(str::trim_start).collect();
    assert!(removable.contains(&&*orphan), "{text}");
    assert_eq!(names(remote.path()), before, "a dry run changes nothing");
    let json = folder.json(&["remote", "gc", &url]);
    assert!(json["objects"].as_u64() >= Some(removable.len() as u64), "{json}");
    let after = names(remote.path());
    assert!(removable.iter().all(|name| !after.iter().any(|it| it == name)), "{after:?}");
    let restored = DataFolder::new();
    restored.done(&["remote", "restore", &url]);
    assert_eq!(restored.done(&["cat", "photos/3.txt"]).stdout, "content");
}

/// Returns the names of the objects of a remote store that is a folder.
fn names(remote: &Path) -> Vec<String> {
    let mut names = Vec::new();
    for prefix in ["log", "seg", "manifest"] {
        let found = fs::read_dir(remote.join(prefix)).expect("it can be listed");
        names.extend(found.map(|entry| {
            format!("{prefix}/{}", entry.expect("it can be listed").file_name().display())
        }));
    }
    names.sort();
    names
}
