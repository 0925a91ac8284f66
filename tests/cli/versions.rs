//! `trug history` and `trug undelete`.

use serde_json::Value;
use tests::{DataFolder, ServerProcess};

/// Creates a store in which `a.txt` was replaced and deleted, `dir/b.txt` and `dir/big.bin` were deleted, and
/// `kept.txt` was replaced. Large files are retained for so many seconds.
fn store_with_history(window: &str) -> DataFolder {
    let (folder, key) = DataFolder::with_bucket();
    let server = folder.serve_with_env(&[("TRUG_UNDELETE_WINDOW_SECONDS", window)]);
    let put = |path: &str, bytes: &[u8]| {
        let (parent, name) = path.rsplit_once('/').unwrap_or(("", path));
        let slash = if parent.is_empty() { "" } else { "/" };
        let address = format!("/photos/{parent}{slash}?overwrite=true");
        server.put(&key, &address, name, bytes);
    };
    let delete = |path: &str| {
        let address = format!("/photos/{path}");
        let answer = server.connect().with_key(&key).delete(&address).expect("it answers");
        assert_eq!(answer.status, 200, "{path}: {}", answer.text());
    };
    put("a.txt", b"first");
    put("a.txt", b"second");
    put("kept.txt", b"old");
    put("kept.txt", b"new");
    put("dir/b.txt", b"in a folder");
    put("dir/big.bin", &vec![7; 2_000_000]);
    delete("a.txt");
    delete("dir/b.txt");
    delete("dir/big.bin");
    server.stop();
    folder
}

/// Runs a test with the store free, and with a server on it; the test requests files from a server.
fn with_and_without_server(test: impl Fn(&DataFolder, &dyn Fn(&str) -> (u16, Vec<u8>))) {
    for serves in [false, true] {
        let folder = store_with_history("0");
        let get = |server: &ServerProcess, path: &str| {
            let answer = server.get(&format!("/photos/{path}"));
            (answer.status, answer.body)
        };
        if serves {
            let server = folder.serve();
            test(&folder, &|path| get(&server, path));
            server.stop();
        } else {
            test(&folder, &|path| {
                let server = folder.serve();
                let got = get(&server, path);
                server.stop();
                got
            });
        }
    }
}

fn history(folder: &DataFolder, words: &[&str]) -> Vec<Value> {
    let words = [&["history", "--bucket", "photos"], words].concat();
    folder.json(&words)["versions"].as_array().expect("a list").clone()
}

fn undelete(folder: &DataFolder, words: &[&str]) -> tests::Ran {
    folder.run(&[&["undelete", "--bucket", "photos"], words].concat())
}

#[test]
fn version_history_shows_events_and_restorable_versions() {
    with_and_without_server(|folder, _| {
        let versions = history(folder, &["a.txt"]);
        let states: Vec<_> = versions.iter().map(|it| it["state"].clone()).collect();
        assert_eq!(states, ["replaced", "deleted", "deletion"]);
        assert!(versions[0]["lsn"].as_u64() < versions[1]["lsn"].as_u64());
        assert_eq!(versions[1]["content"]["bytes"], 6);
        assert_eq!(versions[1]["content"]["recoverable"], true);
        assert!(versions[2]["content"].is_null());

        let of_folder = history(folder, &["dir/"]);
        assert_eq!(of_folder.len(), 4, "{of_folder:?}");
        let big = of_folder.iter().find(|it| it["path"] == "dir/big.bin").expect("it was there");
        assert_eq!(big["content"]["recoverable"], false);
        let why = "its space was reclaimed";
        assert_eq!(big["content"]["unrecoverableBecause"], why);

        assert_eq!(history(folder, &[]).len(), 9);
        assert_eq!(history(folder, &["--since", "2100-01-01T00:00:00Z"]).len(), 0);
        let first = folder.json(&["history", "--bucket", "photos", "--limit", "1"]);
        assert_eq!(
            (first["versions"].as_array().map(Vec::len), &first["truncated"]),
            (Some(1), &true.into())
        );

        let ran = folder.done(&["history", "--bucket", "photos"]);
        assert!(ran.stdout.starts_with("PATH         VERSION  WHEN "), "{}", ran.stdout);
        assert!(ran.stdout.contains(&format!("  no: {why}\n")), "{}", ran.stdout);
        assert!(ran.stderr.contains("until compaction removes them"), "{}", ran.stderr);
    });
}

#[test]
fn undelete_restores_by_path_or_earlier_version() {
    with_and_without_server(|folder, get| {
        assert_eq!(get("a.txt").0, 404);
        let ran = undelete(folder, &["a.txt"]);
        assert_eq!(ran.code, 0, "{ran:?}");
        assert!(ran.stdout.starts_with("restored      1 files\n  a.txt: version "), "{ran:?}");
        assert_eq!(get("a.txt"), (200, b"second".to_vec()));

        let again = undelete(folder, &["a.txt"]);
        assert_eq!(again.code, 1, "{again:?}");
        assert!(again.stderr.contains("a.txt was not restored: it is there"), "{again:?}");

        let lsn = history(folder, &["kept.txt"])[0]["lsn"].to_string();
        assert_eq!(undelete(folder, &["kept.txt", "--version", &lsn]).code, 0);
        assert_eq!(get("kept.txt"), (200, b"old".to_vec()));
    });
}

#[test]
fn undelete_restores_large_file_within_retention() {
    let folder = store_with_history("3600");
    // Read-only commands do not reclaim space.
    folder.done(&["stats"]);
    let versions = history(&folder, &["dir/big.bin"]);
    assert_eq!(versions[0]["content"]["recoverable"], true, "{versions:?}");
    assert_eq!(undelete(&folder, &["dir/big.bin"]).code, 0);
    let server = folder.serve();
    let answer = server.get("/photos/dir/big.bin");
    assert_eq!((answer.status, answer.body), (200, vec![7; 2_000_000]));
    server.stop();
}

#[test]
fn undelete_restores_folder_as_far_as_possible() {
    with_and_without_server(|folder, get| {
        let ran = undelete(folder, &["dir/", "--since", "2100-01-01T00:00:00Z"]);
        assert_eq!((ran.code, ran.stdout.as_str()), (0, "restored      0 files\n"), "{ran:?}");
        let ran = undelete(folder, &["dir/"]);
        assert_eq!(ran.code, 0, "{ran:?}");
        let says = "not restored  1 files\n  dir/big.bin: its space was reclaimed\n";
        assert!(ran.stdout.contains("  dir/b.txt: version ") && ran.stdout.ends_with(says));
        assert_eq!(get("dir/b.txt"), (200, b"in a folder".to_vec()));
        // By its path, it is a failure.
        assert_eq!(undelete(folder, &["dir/big.bin"]).code, 1);
        // The rest of the bucket.
        assert_eq!(undelete(folder, &["--since", "2020-01-01T00:00:00Z"]).code, 0);
        assert_eq!(get("a.txt"), (200, b"second".to_vec()));
        assert_eq!(get("kept.txt"), (200, b"new".to_vec()));
    });
}

#[test]
fn undelete_restores_bucket_once_recreated() {
    with_and_without_server(|folder, get| {
        folder.done(&["bucket", "delete", "--name", "photos", "--force"]);
        let last = history(folder, &["kept.txt"]).pop().expect("it is known");
        assert_eq!(last["state"], "deletion");
        undelete(folder, &["kept.txt"]).check_failure(1, "\"photos\" does not exist");
        folder.done(&["bucket", "create", "--account", "ann", "--name", "photos"]);
        assert_eq!(undelete(folder, &["kept.txt"]).code, 0);
        assert_eq!(get("kept.txt"), (200, b"new".to_vec()));
    });
}

#[test]
fn undelete_rejects_invalid_arguments() {
    let folder = store_with_history("0");
    let refused = |words: &[&str], code: i32, says: &str| {
        folder.run(words).check_failure(code, says);
    };
    refused(&["history", "--bucket", "none"], 1, "\"none\" does not exist");
    refused(&["history", "--bucket", "photos", "../a"], 1, "path");
    refused(&["history", "photos/never.txt"], 1, "no version of \"photos/never.txt\" found");
    refused(
        &["history", "--bucket", "photos", "--since", "yesterday"],
        2,
        "not a duration such as 30d",
    );
    refused(&["undelete", "--bucket", "photos"], 2, "--since");
    refused(
        &["undelete", "--bucket", "photos", "dir/", "--version", "7"],
        2,
        "--version needs the path of an object",
    );
    refused(
        &["undelete", "--bucket", "photos", "a.txt", "--since", "2020-01-01T00:00:00Z"],
        2,
        "--since needs a folder",
    );
    let ran = undelete(&folder, &["never.txt"]);
    assert_eq!(ran.code, 1);
    assert!(ran.stderr.contains("never.txt was not restored: no such version"), "{ran:?}");
}
