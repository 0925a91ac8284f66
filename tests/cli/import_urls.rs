//! `trug import --from-urls`: files of a real local server with good and bad responses.

use std::fs;
use std::io::Write;
use std::process::Stdio;

use serde_json::Value;
use tests::{DataFolder, File, FileHost, Ran};

use crate::archives::word;
use crate::import_report::{counts, report};
use crate::with_and_without_server;

const LONG_AGO: &str = "Sun, 06 Nov 1994 08:49:37 GMT";
const IN_A_CENTURY: &str = "Wed, 06 Nov 2115 08:49:37 GMT";

/// Writes a list next to the data and imports it, with more arguments.
fn import(folder: &DataFolder, host: &FileHost, list: &str, words: &[&str]) -> Ran {
    let path = folder.parent().join("list.txt");
    fs::write(&path, list.replace("HOST", &host.origin())).expect("the list can be written");
    let (path, origin) = (word(&path), host.origin());
    let fixed = ["import", "--bucket", "photos", "--from-urls", &path, "--allow", &origin];
    folder.run(&[&fixed, words].concat())
}

fn why(ran: &Ran, name: &str) -> String {
    let report = report(ran);
    let listed = report["refused"]["listed"].as_array().expect("a list");
    let found = listed.iter().find(|it| it["name"].as_str().is_some_and(|it| it.ends_with(name)));
    found.unwrap_or_else(|| panic!("{name}: {ran:?}"))["why"].as_str().unwrap_or("").to_owned()
}

#[test]
fn import_urls_names_files_by_url_path_or_given_key() {
    with_and_without_server(|folder| {
        let long: Vec<u8> = (0..3_000_000_u32).map(|at| (at / 7) as u8).collect();
        let sent = long.clone();
        let host = FileHost::start(move |wanted| match wanted.target.as_str() {
            "/img/a%20b.txt?sig=secret" => File::of("a b").with("Last-Modified", LONG_AGO),
            "/long" => File::of(sent.clone()).chunked(),
            "/plain" => File::of("x,y").with("Content-Type", "text/csv"),
            _ => File::status(404),
        });
        let list = "# comment\r\n\r\nHOST/img/a%20b.txt?sig=secret\r\nHOST/long \t big/long file.bin\n\
                    HOST/plain";
        let ran = import(folder, &host, list, &["--prefix", "old"]);
        assert_eq!(ran.code, 0, "{ran:?}");
        let says = "imported      3 files\nstored        3.0 MB\ntook          ";
        assert!(ran.stdout.starts_with(says), "{ran:?}");
        let out = folder.export_files("out").join("old");
        assert_eq!(fs::read(out.join("img/a b.txt")).unwrap(), b"a b");
        assert!(fs::read(out.join("big/long file.bin")).unwrap() == long);
        assert_eq!(fs::read(out.join("plain")).unwrap(), b"x,y");

        // Again: files changed long ago are not fetched, the rest is compared; nothing is stored twice.
        let ran = import(folder, &host, list, &["--prefix", "old", "--json"]);
        assert_eq!((ran.code, counts(&ran)), (0, [0, 3, 0, 0]), "{ran:?}");
        assert_eq!(report(&ran)["importedBytes"], 0);
        let archive = folder.parent().join("all.tar");
        folder.done(&["export", "--bucket", "photos", "--to", &word(&archive)]);
        let archive = fs::read(archive).expect("it is there");
        assert!(archive.windows(8).any(|it| it == b"text/csv"), "the type is not kept");
    });
}

#[test]
fn import_urls_streams_the_list_from_stdin() {
    with_and_without_server(|folder| {
        let host = FileHost::start(|wanted| File::of(wanted.target.clone()));
        let origin = host.origin();
        let words =
            ["import", "--bucket", "photos", "--from-urls", "-", "--allow", &origin, "--json"];
        let mut child = folder
            .command(&words)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("it runs");
        let mut stdin = child.stdin.take().expect("stdin is a pipe");
        writeln!(stdin, "{}", host.url("/first")).expect("it reads");
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(30);
        let mut seen = Vec::new();
        while seen.is_empty() {
            assert!(std::time::Instant::now() < deadline, "the first is not asked for");
            std::thread::sleep(std::time::Duration::from_millis(20));
            seen = host.take_requests();
        }
        write!(stdin, "{}", host.url("/second")).expect("it reads");
        drop(stdin);
        let output = child.wait_with_output().expect("it ends");
        let report: Value = serde_json::from_slice(&output.stdout).expect("a report");
        assert_eq!(report["importedCount"], 2, "{report}");
    });
}

#[test]
fn import_urls_retries_transient_and_reports_permanent() {
    with_and_without_server(|folder| {
        let body: Vec<u8> = (0..200_000_u32).map(|at| (at / 3) as u8).collect();
        let sent = body.clone();
        let host = FileHost::start(move |wanted| match (wanted.target.as_str(), wanted.time) {
            ("/busy", 1) => File::status(429).with("Retry-After", "1"),
            ("/broken", 1) => File::status(500),
            ("/cut", 1) => File::of(sent.clone()).cut_at(100_000),
            ("/cut-chunked", 1) => File::of(sent.clone()).chunked().cut_at(100_000),
            ("/dead", _) => File::status(503),
            ("/short", _) => File::of(sent.clone()).cut_at(1),
            ("/gone", _) => File::status(404),
            ("/packed", _) => File::of("x").with("Content-Encoding", "gzip"),
            ("/away", _) => File::status(302).with("Location", "http://127.0.0.1:9/x"),
            ("/round", _) => File::status(302).with("Location", "/round"),
            ("/moved", _) => File::status(301).with("Location", "/busy?moved"),
            _ => File::of(sent.clone()),
        });
        let list = "HOST/busy\nHOST/broken\nHOST/dead\nHOST/cut\nHOST/cut-chunked\nHOST/short\n\
                    HOST/gone\nHOST/packed\nHOST/away\nHOST/round\nHOST/moved\nHOST/%2e%2e/up\n\
                    http://127.0.0.1:9/private\nHOST/busy again\nHOST/x busy\nnothing\n";
        let ran = import(folder, &host, list, &["--json"]);
        assert_eq!((ran.code, counts(&ran)), (1, [6, 0, 0, 10]), "{ran:?}");
        assert!(ran.stderr.contains("10 files were refused"), "{ran:?}");
        for (name, says) in [
            ("/dead", "the response status is 503; 5 attempts"),
            ("/short", "the body "),
            ("/gone", "the response status is 404"),
            ("/packed", "the response has a content encoding"),
            ("/away", "the host does not resolve to a public address"),
            ("/round", "too many redirects"),
            ("/%2e%2e/up", "its name is not a valid key"),
            ("line 13, http://127.0.0.1:9/private", "the host does not resolve to a public"),
            ("/x", "duplicate file name in the archive"),
            ("line 16, nothing", "the URL must"),
        ] {
            assert!(why(&ran, name).contains(says), "{name}: {}", why(&ran, name));
        }
        let asked = host.take_requests();
        let times = |target: &str| asked.iter().filter(|it| it.target == target).count();
        for (target, expected) in
            [("/busy", 3), ("/broken", 2), ("/dead", 5), ("/cut", 2), ("/short", 5), ("/gone", 1)]
        {
            assert_eq!(times(target), expected, "{target}");
        }
        let out = folder.export_files("out");
        for name in ["busy", "broken", "cut", "cut-chunked", "moved", "again"] {
            assert!(fs::read(out.join(name)).unwrap() == body, "{name}");
        }
    });
}

#[test]
fn import_urls_skips_existing_by_head_and_conflict_rule() {
    with_and_without_server(|folder| {
        let host = FileHost::start(|wanted| match wanted.target.as_str() {
            "/old" => File::of("same").with("Last-Modified", LONG_AGO),
            "/new" => File::of("fresh").with("Last-Modified", IN_A_CENTURY),
            _ => File::of("longer than it was"),
        });
        let list = "HOST/old\nHOST/new\nHOST/other\n";
        let first = folder.parent().join("first");
        fs::create_dir_all(&first).expect("it can be made");
        for (name, text) in [("old", "SAME"), ("new", "stale"), ("other", "short")] {
            fs::write(first.join(name), text).expect("it can be written");
        }
        folder.done(&["import", "--bucket", "photos", "--from", &word(&first)]);
        // The first counts as unchanged by its size and time, as in rsync.
        let ran = import(folder, &host, list, &["--json"]);
        assert_eq!((ran.code, counts(&ran)), (0, [0, 1, 2, 0]), "{ran:?}");
        let ran = import(folder, &host, list, &["--on-conflict", "replace", "--json"]);
        assert_eq!((ran.code, counts(&ran)), (0, [0, 1, 0, 0]), "{ran:?}");
        assert_eq!(report(&ran)["replacedCount"], 2);
        let out = folder.export_files("out");
        let read = |name: &str| fs::read_to_string(out.join(name)).expect("it is there");
        assert_eq!((read("new"), read("other")), ("fresh".into(), "longer than it was".into()));
    });
}

#[test]
fn import_urls_resumes_after_interruption() {
    with_and_without_server(|folder| {
        let host = FileHost::start(|wanted| {
            File::of(wanted.target.repeat(1_000)).with("Last-Modified", LONG_AGO)
        });
        let list: String = (0..60).map(|at| format!("HOST/many/{at:02}\n")).collect();
        let ran = import(folder, &host, &list, &["--files-max", "25", "--json"]);
        assert_eq!((ran.code, counts(&ran)), (1, [25, 0, 0, 0]), "{ran:?}");
        assert!(ran.stderr.contains("more than 25 files"), "{ran:?}");
        let ran = import(folder, &host, &list, &["--bytes-max", "30000", "--json"]);
        assert_eq!(ran.code, 1, "{ran:?}");
        assert!(ran.stderr.contains("more than 30000 bytes"), "{ran:?}");
        let taken = 25 + counts(&ran)[0];
        let ran = import(folder, &host, &list, &["--json"]);
        assert_eq!((ran.code, counts(&ran)), (0, [60 - taken, taken, 0, 0]), "{ran:?}");
    });
}

#[test]
fn import_urls_rejects_large_file_by_its_headers() {
    let (folder, _) = DataFolder::with_bucket();
    let host = FileHost::start(|wanted| match wanted.target.as_str() {
        "/huge" => File::of("").with("Content-Length", "9000000000000000"),
        _ => File::of("x"),
    });
    let ran = import(&folder, &host, "HOST/huge\nHOST/small\n", &["--json"]);
    assert_eq!((ran.code, counts(&ran)), (1, [1, 0, 0, 1]), "{ran:?}");
    assert_eq!(why(&ran, "/huge"), "it exceeds the maximum object size");
}

#[test]
fn import_urls_rejects_invalid_list() {
    with_and_without_server(|folder| {
        let refused = |words: &[&str], code: i32, says: &str| {
            let fixed = ["import", "--bucket", "photos"];
            folder.run(&[&fixed, words].concat()).check_failure(code, says);
        };
        let nothing = word(&folder.parent().join("nothing.txt"));
        refused(&["--from-urls", &nothing], 1, "does not exist");
        refused(&["--from-urls", &word(folder.parent())], 1, "is a folder");
        refused(&["--from-urls", &nothing, "--allow", "10.0.0.1"], 2, "is not an origin");
        refused(&["--from-urls", &nothing, "--ca-file", &nothing], 2, "--ca-file");
        refused(&["--from-urls", &nothing, "--from", "a.tar"], 2, "cannot be used with");
        refused(&["--allow", "http://10.0.0.1"], 2, "required");
    });
}
