//! `trug import`.

use std::fs;
use std::io::Write;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use tests::DataFolder;

use crate::archives::{NamedFile, all_kinds, archive_of, store_with, word};
use crate::import_report::report;
use crate::with_and_without_server;

fn file(name: &str, text: &str) -> NamedFile {
    (name.to_owned(), text.as_bytes().to_vec())
}

fn many(count: usize) -> Vec<NamedFile> {
    (0..count).map(|at| file(&format!("many/{at:05}.txt"), &format!("{at}").repeat(300))).collect()
}

/// Starts an import from stdin, which is left open.
fn begin(folder: &DataFolder, bucket: &str) -> Child {
    let mut command = folder.command(&["import", "--bucket", bucket, "--from", "-", "--json"]);
    piped(&mut command).spawn().expect("the binary runs")
}

fn piped(command: &mut Command) -> &mut Command {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped())
}

/// Sends a piece, and waits for it to be processed.
fn send(child: &mut Child, bytes: &[u8]) {
    let stdin = child.stdin.as_mut().expect("stdin is a pipe");
    stdin.write_all(bytes).expect("the import reads");
    thread::sleep(Duration::from_millis(700));
}

#[test]
fn import_restores_an_export_byte_for_byte() {
    for serves in [false, true] {
        let (folder, _) = store_with(&all_kinds());
        let mut server = serves.then(|| folder.serve());
        let path = folder.parent().join("all.tar");
        folder.done(&["export", "--bucket", "photos", "--to", &word(&path)]);
        let words = ["import", "--bucket", "copy", "--prefix", "back", "--from", &word(&path)];
        let first = folder.json(&words);
        let count = all_kinds().len() as u64;
        assert_eq!(
            (&first["importedCount"], &first["refused"]["count"]),
            (&count.into(), &0.into())
        );
        let again = folder.json(&words);
        assert_eq!((&again["importedCount"], &again["unchangedCount"]), (&0.into(), &count.into()));
        let server = server.take().unwrap_or_else(|| folder.serve());
        for (name, bytes) in all_kinds() {
            let name = name.replace('\u{e9}', "%C3%A9");
            let get = |path: String| server.get(&path);
            let (old, new) = (get(format!("/photos/{name}")), get(format!("/copy/back/{name}")));
            assert_eq!(new.status, 200, "{name}");
            assert!(new.body == bytes && old.body == bytes, "{name}");
            for header in ["content-type", "etag", "content-length"] {
                assert_eq!(new.header(header), old.header(header), "{name}");
            }
        }
        // Metadata that only the archive holds, apart from the content type, is exported again in the same form.
        let (one, two) = (folder.parent().join("1.tar"), folder.parent().join("2.tar"));
        folder.done(&["export", "--bucket", "photos", "--to", &word(&one)]);
        folder.done(&["export", "--bucket", "copy", "--prefix", "back", "--to", &word(&two)]);
        let metadata = |path| {
            let bytes = fs::read(path).expect("it is there");
            let lines = bytes.split(|byte| *byte == b'\n').map(String::from_utf8_lossy);
            let own = |line: &str| line.find("TRUG.").map(|at| line[at..].to_owned());
            let kept = lines.filter_map(|line| own(&line)).filter(|line| {
                line.starts_with("TRUG.attributes={\"declaredType\"")
                    || line.starts_with("TRUG.created=")
            });
            kept.collect::<Vec<_>>()
        };
        let before = metadata(one);
        assert!(before.len() as u64 > count, "{before:?}");
        assert_eq!(metadata(two), before);
        server.stop();
    }
}

#[test]
fn import_of_plain_archive_and_folder_agree() {
    with_and_without_server(|folder| {
        let source = folder.parent().join("source");
        for (name, bytes) in all_kinds() {
            let path = source.join(name);
            fs::create_dir_all(path.parent().expect("it is in a folder")).expect("it can be made");
            fs::write(path, bytes).expect("it can be written");
        }
        let count = all_kinds().len() as u64;
        let words = ["import", "--bucket", "photos", "--from", &word(&source)];
        assert_eq!(folder.json(&words)["importedCount"], count);
        let ran = folder.import_archive(&archive_of(&all_kinds()), &["--json"]);
        assert_eq!((ran.code, &report(&ran)["unchangedCount"]), (0, &count.into()), "{ran:?}");
        let ran = folder.import_archive(&archive_of(&all_kinds()), &["--prefix", "else"]);
        assert!(ran.stdout.starts_with(&format!("imported      {count} files\n")), "{ran:?}");
    });
}

#[test]
fn import_conflicts_follow_the_requested_rule() {
    with_and_without_server(|folder| {
        let old = archive_of(&[file("a.txt", "old"), file("b.txt", "same")]);
        let new = archive_of(&[file("a.txt", "new"), file("b.txt", "same"), file("c.txt", "more")]);
        assert_eq!(folder.import_archive(&old, &[]).code, 0);
        let ran = folder.import_archive(&new, &[]);
        assert_eq!(ran.code, 0, "{ran:?}");
        let says = "skipped       1 files\n  a.txt: an object with other content has its key\n";
        assert!(
            ran.stdout.contains(says) && ran.stdout.contains("unchanged     1 files"),
            "{ran:?}"
        );

        let failing = archive_of(&[file("a.txt", "new"), file("late.txt", "late")]);
        let ran = folder.import_archive(&failing, &["--on-conflict", "fail"]);
        assert_eq!(ran.code, 1, "{ran:?}");
        assert!(ran.stderr.contains("ended early: a.txt: an object with other content"), "{ran:?}");

        for (round, renamed, unchanged) in [(1, 1, 2), (2, 0, 3)] {
            let ran = folder.import_archive(&new, &["--on-conflict", "rename", "--json"]);
            let report = report(&ran);
            let counts = (&report["renamedCount"], &report["unchangedCount"]);
            assert_eq!(counts, (&renamed.into(), &unchanged.into()), "round {round}: {ran:?}");
        }
        let ran = folder.import_archive(&new, &["--on-conflict", "replace", "--json"]);
        let report = report(&ran);
        assert_eq!(report["replacedCount"], 1, "{ran:?}");

        let out = folder.parent().join("out/");
        folder.done(&["export", "--bucket", "photos", "--to", &word(&out)]);
        let read = |name: &str| fs::read_to_string(out.join(name)).unwrap_or_default();
        assert_eq!(
            (read("a.txt"), read("a (1).txt"), read("b.txt"), read("c.txt"), read("late.txt")),
            ("new".into(), "new".into(), "same".into(), "more".into(), String::new())
        );
    });
}

#[test]
fn import_resumes_after_kill() {
    let (folder, _) = DataFolder::with_bucket();
    let files = many(2_000);
    let archive = archive_of(&files);
    let mut child = begin(&folder, "photos");
    send(&mut child, &archive[..archive.len() / 2]);
    child.kill().expect("it can be killed");
    child.wait().expect("it ended");
    let kept = folder.json(&["stats"])["objects"].as_u64().expect("a number");
    assert!(kept > 0 && kept < files.len() as u64, "{kept}");
    let ran = folder.import_archive(&archive, &["--json"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    let report = report(&ran);
    assert_eq!(report["unchangedCount"], kept);
    assert_eq!(report["importedCount"], files.len() as u64 - kept);
}

#[test]
fn import_stops_on_signal_and_keeps_progress() {
    let (folder, _) = DataFolder::with_bucket();
    let archive = archive_of(&many(500));
    let mut child = begin(&folder, "photos");
    send(&mut child, &archive[..archive.len() / 2]);
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw).expect("it has an id");
    kill_process(pid, Signal::INT).expect("it can be signalled");
    // Stdin stays open: the import must stop although nothing more arrives.
    let stdin = child.stdin.take();
    let output = child.wait_with_output().expect("it ends");
    drop(stdin);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert!(stderr.contains("cancelled"), "{stderr}");
    let kept = folder.json(&["stats"])["objects"].as_u64().expect("a number");
    assert!(kept > 0 && kept < 500, "{kept}");
}

#[test]
fn server_runs_one_long_task_and_cancels_abandoned_ones() {
    let (folder, _) = DataFolder::with_bucket();
    let server = folder.serve();
    let archive = archive_of(&many(500));
    let mut child = begin(&folder, "photos");
    send(&mut child, &archive[..archive.len() / 2]);
    let out = folder.parent().join("out.tar");
    let export = ["export", "--bucket", "photos", "--to", &word(&out)];
    folder.run(&export).check_failure(1, "Another long operation is running");
    // Short requests still work.
    folder.done(&["stats"]);
    child.kill().expect("it can be killed");
    child.wait().expect("it ended");
    let is_free = |_| {
        thread::sleep(Duration::from_millis(100));
        folder.run(&export).code == 0
    };
    assert!((0..100).any(is_free), "the work goes on without anybody who waits for it");
    server.stop();
}

#[test]
fn server_shutdown_cancels_long_tasks() {
    let (folder, _) = DataFolder::with_bucket();
    let mut server = folder.serve();
    let archive = archive_of(&many(500));
    let mut child = begin(&folder, "photos");
    send(&mut child, &archive[..archive.len() / 2]);
    server.terminate();
    assert!(server.wait().success(), "{}", server.log());
    let stdin = child.stdin.take();
    let output = child.wait_with_output().expect("it ends");
    drop(stdin);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert!(stderr.contains("cancelled"), "{stderr}");
    folder.done(&["stats"]);
}

#[test]
fn import_limits_stop_it() {
    with_and_without_server(|folder| {
        let archive = archive_of(&many(10));
        let check = |words: &[&str], says: &str, most: u64| {
            let ran = folder.import_archive(&archive, &[words, &["--json"]].concat());
            assert_eq!(ran.code, 1, "{ran:?}");
            assert!(ran.stderr.contains(says), "{ran:?}");
            let report = report(&ran);
            assert!(report["stopped"].is_string(), "{ran:?}");
            assert!(report["importedCount"].as_u64() <= Some(most), "{ran:?}");
        };
        check(&["--files-max", "3"], "more than 3 files", 3);
        check(&["--bytes-max", "1300"], "more than 1300 bytes", 4);
    });
}

#[test]
fn import_rejects_invalid_arguments() {
    with_and_without_server(|folder| {
        let refused = |bucket: &str, from: &str, code: i32, says: &str| {
            folder.run(&["import", "--bucket", bucket, "--from", from]).check_failure(code, says);
        };
        let nothing = word(&folder.parent().join("nothing.tar"));
        refused("none", &nothing, 1, "the bucket \"none\" does not exist");
        refused("photos", &nothing, 1, "does not exist");
        refused("photos", &word(&folder.path()), 2, "it is inside the data folder");
    });
}

#[test]
fn import_keeps_thumbnails_until_their_file_is_replaced() {
    let (folder, key) = store_with(&[]);
    let server = folder.serve();
    let picture = include_bytes!("../fixtures/jpeg/420.jpg");
    let uploaded =
        server.connect().with_key(&key).upload_file("/photos/?thumbnail", "a.jpg", picture);
    let uploaded = uploaded.expect("it answers").json();
    assert!(uploaded["thumbnailUrl"].is_string(), "{uploaded}");
    let out = folder.parent().join("out/");
    folder.done(&["export", "--bucket", "photos", "--to", &word(&out)]);
    let names: Vec<_> = fs::read_dir(&out).expect("it is a folder").collect();
    assert_eq!(names.len(), 1, "{names:?}");

    let has_thumbnail = || {
        let answer = server.get("/photos/a_thumb.webp");
        answer.status == 200
    };
    let same = archive_of(&[("a.jpg".to_owned(), picture.to_vec())]);
    let words = ["--on-conflict", "replace", "--json"];
    assert_eq!(report(&folder.import_archive(&same, &words))["unchangedCount"], 1);
    assert!(has_thumbnail());
    let other = archive_of(&[file("a.jpg", "no picture")]);
    assert_eq!(report(&folder.import_archive(&other, &words))["replacedCount"], 1);
    assert!(!has_thumbnail());
    server.stop();
}
