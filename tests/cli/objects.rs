//! Object commands: `ls`, `stat`, `cat`, `cp`, `mv`, `rm`, `du` and `presign`.

use std::fs;
use std::path::PathBuf;
use std::process::Stdio;

use tests::DataFolder;

use crate::archives::word;
use crate::with_and_without_server;

/// Writes a local file next to the data folder. Returns its path.
fn local(folder: &DataFolder, name: &str, content: &[u8]) -> String {
    let path = folder.parent().join(name);
    fs::create_dir_all(path.parent().expect("a parent")).expect("the folder can be created");
    fs::write(&path, content).expect("the file can be written");
    word(&path)
}

fn out(folder: &DataFolder, name: &str) -> PathBuf {
    folder.parent().join("downloads").join(name)
}

#[test]
fn cp_stores_files_and_brings_them_back() {
    with_and_without_server(|folder| {
        let content = vec![b'x'; 300_000];
        let file = local(folder, "cat.bin", &content);
        let copied = folder.done(&["cp", &file, "photos/2026/"]);
        assert_eq!(copied.stdout, "copied 1 object, 300.0 kB\n");
        folder.done(&["cp", &file, "photos/renamed", "--type", "application/x-cat"]);
        let stat = folder.json(&["stat", "photos/renamed"]);
        assert_eq!(
            (&stat["bytes"], &stat["contentType"]),
            (&300_000.into(), &"application/x-cat".into())
        );
        let folder_out = out(folder, "");
        fs::create_dir_all(&folder_out).unwrap();
        folder.done(&["cp", "photos/2026/cat.bin", &word(&folder_out)]);
        assert_eq!(fs::read(out(folder, "cat.bin")).unwrap(), content);
        assert_eq!(folder.done(&["cat", "photos/2026/cat.bin"]).stdout.as_bytes(), content);
        // No unfinished file is left, also after a failure.
        folder.run(&["cp", "photos/none.bin", &word(&folder_out)]).check_failure(1, "none.bin");
        let left: Vec<_> = fs::read_dir(&folder_out).unwrap().collect();
        assert_eq!(left.len(), 1, "{left:?}");
    });
}

#[test]
fn cp_stores_empty_files_and_standard_input() {
    with_and_without_server(|folder| {
        let empty = local(folder, "empty.txt", b"");
        folder.done(&["cp", &empty, "photos/"]);
        assert_eq!(folder.json(&["stat", "photos/empty.txt"])["bytes"], 0);
        assert_eq!(folder.done(&["cat", "photos/empty.txt"]).stdout, "");
        let input = local(folder, "input.txt", b"from standard input");
        let mut command = folder.command(&["cp", "-", "photos/input.txt"]);
        command.stdin(fs::File::open(input).unwrap());
        assert_eq!(tests::commands::run(&mut command).code, 0);
        let mut piped = folder.command(&["cp", "-", "photos/piped.txt"]);
        let mut child = piped.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
        std::io::Write::write_all(&mut child.stdin.take().unwrap(), b"piped").unwrap();
        assert!(child.wait().unwrap().success());
        assert_eq!(folder.done(&["cat", "photos/input.txt"]).stdout, "from standard input");
        assert_eq!(folder.done(&["cp", "photos/piped.txt", "-"]).stdout, "piped");
    });
}

#[test]
fn cp_copies_folders_in_out_and_within_the_store() {
    with_and_without_server(|folder| {
        let deep = local(folder, "trip/days/1.txt", b"one");
        local(folder, "trip/2.txt", b"two");
        let trip = word(&folder.parent().join("trip"));
        folder.run(&["cp", &trip, "photos/"]).check_failure(2, "use -r");
        folder.done(&["cp", "-r", &trip, "photos/"]);
        folder.done(&["cp", "-r", &format!("{trip}/"), "photos/contents/"]);
        let list = folder.json(&["ls", "-r", "photos"]);
        let paths: Vec<_> =
            list["objects"].as_array().unwrap().iter().map(|it| &it["path"]).collect();
        assert_eq!(
            paths,
            ["contents/2.txt", "contents/days/1.txt", "trip/2.txt", "trip/days/1.txt"]
        );
        folder.done(&["cp", "-r", "photos/trip", "photos/copies/"]);
        assert_eq!(folder.done(&["cat", "photos/copies/trip/days/1.txt"]).stdout, "one");
        folder.run(&["cp", "-r", "photos/trip", "photos/trip/again"]).check_failure(2, "inside");
        fs::create_dir_all(out(folder, "")).unwrap();
        folder.done(&["cp", "-r", "photos/trip", &word(&out(folder, ""))]);
        assert_eq!(fs::read(out(folder, "trip/days/1.txt")).unwrap(), fs::read(deep).unwrap());
        folder.run(&["cp", "./a", "./b"]).check_failure(2, "bucket");
    });
}

#[test]
fn mv_renames_objects_and_moves_folders_between_buckets() {
    with_and_without_server(|folder| {
        folder.done(&["bucket", "create", "archive", "--account", "ann"]);
        for name in ["a/1.txt", "a/2.txt", "draft.txt"] {
            folder.done(&["cp", &local(folder, name, name.as_bytes()), &format!("photos/{name}")]);
        }
        let created = folder.json(&["stat", "photos/draft.txt"])["createdAt"].clone();
        folder.done(&["mv", "photos/draft.txt", "photos/final.txt"]);
        let moved = folder.json(&["stat", "photos/final.txt"]);
        assert_eq!((&moved["createdAt"], &moved["bytes"]), (&created, &9.into()));
        folder.run(&["stat", "photos/draft.txt"]).check_failure(1, "draft.txt");
        let report = folder.done(&["mv", "-r", "photos/a", "archive/"]).stdout;
        assert_eq!(report, "moved 2 objects, 14 bytes\n");
        assert_eq!(folder.done(&["cat", "archive/a/2.txt"]).stdout, "a/2.txt");
        let left = folder.json(&["ls", "-r", "photos"]);
        assert_eq!(left["objects"].as_array().map(Vec::len), Some(1), "{left}");
        folder.run(&["mv", "photos/none.txt", "photos/b.txt"]).check_failure(1, "none.txt");
        folder.run(&["mv", "photos/final.txt", "photos/final.txt"]).check_failure(1, "both");
    });
}

#[test]
fn rm_deletes_objects_folders_and_thumbnails() {
    let (folder, key) = DataFolder::with_bucket();
    let server = folder.serve();
    let picture = fs::read("../server/assets/screenshots/files.png").unwrap();
    let answer = server.connect().with_key(&key).upload_file(
        "/photos/pets/?thumbnail=true",
        "cat.png",
        &picture,
    );
    let answer = answer.unwrap();
    assert_eq!(answer.status, 200, "{}", answer.text());
    let check = || {
        folder.done(&["cp", &local(&folder, "a.txt", b"a"), "photos/pets/a.txt"]);
        folder.done(&["cp", "-r", "photos/pets", "photos/more/"]);
        assert!(folder.done(&["ls", "-r", "photos/more/"]).stdout.contains("cat_thumb.webp"));
        folder.run(&["rm", "photos/more/pets"]).check_failure(2, "use -r");
        folder.run(&["rm", "-r", "photos"]).check_failure(2, "photos/");
        assert_eq!(
            folder.done(&["rm", "photos/more/pets/a.txt"]).stdout,
            "deleted 1 object, 1 bytes\n"
        );
        let deleted = folder.json(&["rm", "-r", "photos/more/"]);
        assert_eq!(deleted["deletedCount"], 1, "{deleted}");
        assert_eq!(folder.json(&["ls", "-r", "photos/more/"])["objects"], serde_json::json!([]));
        folder.run(&["rm", "photos/none"]).check_failure(1, "none");
    };
    check();
    server.stop();
    check();
    folder.done(&["rm", "-r", "photos/"]);
    assert_eq!(folder.json(&["bucket", "list"])[0]["objectCount"], 0);
}

#[test]
fn ls_shows_folders_first_and_du_counts_them() {
    with_and_without_server(|folder| {
        for name in ["b/deep/1.txt", "b/2.txt", "a.txt"] {
            folder.done(&["cp", &local(folder, name, name.as_bytes()), &format!("photos/{name}")]);
        }
        let listed = folder.done(&["ls", "photos"]).stdout;
        let names: Vec<_> =
            listed.lines().filter_map(|line| line.split_whitespace().last()).collect();
        assert_eq!(names, ["b/", "a.txt"], "{listed}");
        assert!(listed.contains("  5 bytes  20"), "{listed}");
        let usage = folder.json(&["du", "photos/b"]);
        assert_eq!((&usage["objectCount"], &usage["totalBytes"]), (&2.into(), &19.into()));
        assert_eq!(usage["folders"][0]["folder"], "b/deep/");
        let text = folder.done(&["du", "photos"]).stdout;
        assert_eq!(
            text,
            "FOLDER   FILES  STORED\nb/       2      19 bytes\nphotos/  3      24 bytes\n"
        );
        assert!(folder.done(&["ls"]).stdout.contains("photos"));
        folder.run(&["ls", "none"]).check_failure(1, "none");
    });
}

#[test]
fn presign_gives_urls_that_download_and_upload() {
    let (folder, _) = DataFolder::with_bucket();
    folder.done(&["bucket", "edit", "photos", "--access", "private"]);
    folder.done(&["cp", &local(&folder, "a.txt", b"content"), "photos/"]);
    let relative = folder.run(&["presign", "photos/a.txt"]);
    assert!(relative.stdout.starts_with("/photos/a.txt?token="), "{relative:?}");
    assert!(relative.stderr.contains("--public-url"), "{relative:?}");
    let server = folder.serve();
    let download = folder.done(&["presign", "photos/a.txt", "--expires", "10m"]).stdout;
    let path =
        |url: &str| url.trim_end().split_once(&server.address().to_string()).unwrap().1.to_owned();
    let answer = server.get(&path(&download));
    assert_eq!((answer.status, answer.text().as_ref()), (200, "content"));
    assert_eq!(server.get("/photos/a.txt").status, 401);
    let upload = folder.json(&["presign", "photos/new.txt", "--put"]);
    let url = upload["url"].as_str().unwrap();
    let mut curl = tests::commands::without_settings("curl");
    curl.args(["-fsS", "-T", &local(&folder, "new.txt", b"uploaded"), url]);
    assert_eq!(tests::commands::run(&mut curl).code, 0);
    assert_eq!(folder.done(&["cat", "photos/new.txt"]).stdout, "uploaded");
    folder.run(&["presign", "photos/none.txt"]).check_failure(1, "none.txt");
    folder.run(&["presign", "photos/a.txt", "--expires", "8d"]).check_failure(1, "604800");
    folder.done(&["bucket", "edit", "photos", "--access", "public"]);
    let public = folder.run(&["presign", "photos/a.txt"]);
    assert!(
        public.stderr.contains("does not expire") && !public.stdout.contains("token"),
        "{public:?}"
    );
}

#[test]
fn cat_shares_a_redirected_file_with_other_programs() {
    with_and_without_server(|folder| {
        folder.done(&["cp", &local(folder, "a.txt", b"content\n"), "photos/"]);
        let shared = folder.parent().join("shared.txt");
        let cat = format!("{} cat photos/a.txt", tests::commands::trug_binary().display());
        let script = format!("{{ echo before; {cat}; echo after; }} > \"$SHARED\"");
        let mut shell = tests::commands::without_settings("sh");
        shell.args(["-ec", &script]).env("SHARED", &shared).env("TRUG_DATA", folder.path());
        assert_eq!(tests::commands::run(&mut shell).code, 0);
        assert_eq!(fs::read_to_string(shared).unwrap(), "before\ncontent\nafter\n");
    });
}

#[test]
fn truncated_content_is_not_stored() {
    let (folder, _) = DataFolder::with_bucket();
    let server = folder.serve();
    let mut command = folder.command(&["cp", "-", "photos/cut.txt"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    std::io::Write::write_all(&mut input, &[b'x'; 200_000]).unwrap();
    std::thread::sleep(std::time::Duration::from_millis(500));
    child.kill().unwrap();
    child.wait().unwrap();
    drop(input);
    // The server ends the request when it detects that the client has disconnected.
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(20);
    while folder.run(&["scrub"]).code != 0 {
        assert!(std::time::Instant::now() < deadline, "the request goes on");
    }
    folder.run(&["stat", "photos/cut.txt"]).check_failure(1, "cut.txt");
    server.stop();
}

#[test]
fn set_changes_metadata_and_expiry_but_not_the_content() {
    with_and_without_server(|folder| {
        folder.done(&["cp", &local(folder, "a.txt", b"content"), "photos/"]);
        let before = folder.json(&["stat", "photos/a.txt"]);
        let meta = ["--meta", "camera=X100", "--meta", "by=ann"];
        let set = ["set", "photos/a.txt", "--type", "text/markdown", "--expires", "1d"];
        let after = folder.json(&[&set[..], &meta].concat());
        for field in ["etag", "createdAt", "lastModified", "bytes"] {
            assert_eq!(after[field], before[field], "{field}");
        }
        assert_eq!(after["contentType"], "text/markdown");
        assert_eq!(after["metadata"], serde_json::json!({"camera": "X100", "by": "ann"}));
        assert!(after["expiresAt"].is_string());
        let set = ["set", "photos/a.txt", "--meta", "by=", "--expires", "never"];
        let after = folder.json(&set);
        assert_eq!(after["metadata"], serde_json::json!({"camera": "X100"}));
        assert!(after["expiresAt"].is_null());
        assert!(
            folder
                .done(&["stat", "photos/a.txt"])
                .stdout
                .contains("metadata            camera: X100")
        );
        assert_eq!(folder.done(&["cat", "photos/a.txt"]).stdout, "content");
        folder.run(&["set", "photos/none.txt", "--meta", "a=b"]).check_failure(1, "none.txt");
        folder
            .run(&["set", "photos/a.txt", "--type", "image/png"])
            .check_failure(1, "contradicted");
        folder.run(&["set", "photos/a.txt", "--meta", "A=b"]).check_failure(1, "has the key");
        folder.run(&["set", "photos/a.txt", "--expires", "30s"]).check_failure(1, "allowed: 60");
        folder.run(&["set", "photos/a.txt"]).check_failure(2, "--meta");
    });
}

#[test]
fn lifecycle_rules_are_listed_set_and_deleted() {
    with_and_without_server(|folder| {
        assert!(
            folder.json(&["lifecycle", "list", "photos"])["rules"].as_array().unwrap().is_empty()
        );
        folder.done(&["lifecycle", "set", "photos", "tmp/", "--after", "30d"]);
        folder.done(&["lifecycle", "set", "photos", "", "--after", "365d"]);
        let set = folder.done(&["lifecycle", "set", "photos", "tmp/", "--after", "90m"]).stdout;
        assert_eq!(
            set,
            "PREFIX  EXPIRES     ENABLED\n-       after 365d  yes\ntmp/    after 90m   yes\n"
        );
        folder
            .run(&["lifecycle", "set", "photos", "tmp/", "--after", "30s"])
            .check_failure(1, "60");
        folder.done(&["lifecycle", "delete", "photos", "tmp/"]);
        folder.run(&["lifecycle", "delete", "photos", "tmp/"]).check_failure(1, "\"tmp/\"");
        assert_eq!(folder.json(&["lifecycle", "list", "photos"])["rules"][0]["id"], "photos");
        folder.done(&["lifecycle", "delete", "photos", ""]);
        folder.run(&["lifecycle", "list", "none"]).check_failure(1, "none");
    });
}
