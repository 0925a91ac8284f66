//! `trug export`.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use tests::DataFolder;

use crate::archives::{all_kinds, read_archive, store_with, word};

/// Runs a test on a store with all kinds of files: once without a server, once with one.
fn for_each_server_mode(test: impl Fn(&DataFolder)) {
    for serves in [false, true] {
        let (folder, _) = store_with(&all_kinds());
        let server = serves.then(|| folder.serve());
        test(&folder);
        if let Some(server) = server {
            server.stop();
        }
    }
}

#[test]
fn export_archive_holds_every_file_in_byte_order() {
    for_each_server_mode(|folder| {
        let path = folder.parent().join("all.tar");
        let words = ["export", "--bucket", "photos", "--to", &word(&path)];
        let report = folder.json(&words);
        let mut files = all_kinds();
        files.sort();
        let bytes: usize = files.iter().map(|(_, bytes)| bytes.len()).sum();
        assert_eq!(report["exportedCount"], files.len());
        assert_eq!(report["exportedBytes"], bytes);
        assert!(read_archive(&fs::read(&path).expect("it is there")) == files);
        // Written again, in place of the old one, and accessible to the owner only.
        folder.done(&words);
        let mode = fs::metadata(&path).expect("it is there").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let left: Vec<_> = fs::read_dir(folder.parent()).expect("a folder").flatten().collect();
        assert_eq!(left.len(), 2, "{left:?}");
    });
}

#[test]
fn export_of_bucket_folder_omits_the_bucket_name() {
    for_each_server_mode(|folder| {
        let path = folder.parent().join("deep.tar");
        folder.done(&["export", "--bucket", "photos", "--prefix", "deep", "--to", &word(&path)]);
        let names: Vec<String> = read_archive(&fs::read(&path).expect("it is there"))
            .into_iter()
            .map(|(name, _)| name)
            .collect();
        assert_eq!(names, ["caf\u{e9}.html", "er/b.png"]);
    });
}

#[test]
fn export_to_stdout_reports_to_stderr() {
    for_each_server_mode(|folder| {
        let output = folder.command(&["export", "--bucket", "photos", "--to", "-"]).output();
        let output = output.expect("the binary runs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let mut files = all_kinds();
        files.sort();
        assert!(read_archive(&output.stdout) == files);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(stderr.contains(&format!("exported      {} files", files.len())), "{stderr}");
    });
}

#[test]
fn export_to_folder_adds_only_missing_files() {
    for_each_server_mode(|folder| {
        let path = folder.parent().join("files");
        let words = ["export", "--bucket", "photos", "--to", &format!("{}/", word(&path))];
        folder.done(&words);
        for (name, bytes) in all_kinds() {
            assert!(fs::read(path.join(&name)).expect("it is there") == bytes, "{name}");
        }
        let count = all_kinds().len() as u64;
        let again = folder.json(&words);
        assert_eq!((&again["exportedCount"], &again["unchangedCount"]), (&0.into(), &count.into()));
        fs::write(path.join("a.txt"), "other").expect("it can be written");
        fs::remove_file(path.join("deep/er/b.png")).expect("it can be removed");
        let again = folder.json(&words);
        assert_eq!(again["exportedCount"], 2);
        assert_eq!(fs::read(path.join("a.txt")).expect("it is there"), b"hello");
    });
}

#[test]
fn export_does_not_follow_symlinks() {
    let (folder, _) = store_with(&all_kinds());
    let (path, outside) = (folder.parent().join("files"), folder.parent().join("outside"));
    fs::create_dir_all(&path).expect("a folder can be made");
    fs::create_dir_all(&outside).expect("a folder can be made");
    fs::write(outside.join("kept.txt"), "kept").expect("it can be written");
    std::os::unix::fs::symlink(&outside, path.join("deep")).expect("a link can be made");
    std::os::unix::fs::symlink(outside.join("kept.txt"), path.join("a.txt")).expect("a link");
    fs::create_dir_all(path.join("empty.bin")).expect("a folder can be made");
    let ran = folder.run(&["export", "--bucket", "photos", "--to", &word(&path)]);
    assert_eq!(ran.code, 1, "{ran:?}");
    for part in [
        "not written   3 files",
        "deep/er/b.png: a file or link exists where its folder should be",
        "empty.bin: a folder with its name exists",
    ] {
        assert!(ran.stdout.contains(part), "{part:?} is not in {ran:?}");
    }
    assert_eq!(fs::read(outside.join("kept.txt")).expect("it is there"), b"kept");
    assert_eq!(fs::read_dir(&outside).expect("a folder").count(), 1);
    assert_eq!(fs::read(path.join("a.txt")).expect("it is there"), b"hello");
}

#[test]
fn export_skips_and_names_damaged_file() {
    let marked = b"a line that is found again in the log, to be damaged";
    let files =
        [("bad.txt".to_owned(), marked.to_vec()), ("good.txt".to_owned(), b"good".to_vec())];
    let (folder, _) = store_with(&files);
    folder.damage(marked);
    let path = folder.parent().join("rest.tar");
    let ran = folder.run(&["export", "--bucket", "photos", "--to", &word(&path)]);
    assert_eq!(ran.code, 3, "{ran:?}");
    assert!(ran.stdout.contains("damaged       1 files\n  bad.txt: photos/bad.txt is corrupt"));
    assert!(ran.stderr.contains("1 corrupt files are not in the export"), "{ran:?}");
    assert!(read_archive(&fs::read(&path).expect("it is there")) == files[1..]);
    let out = folder.parent().join("out/");
    let ran = folder.run(&["export", "--bucket", "photos", "--to", &word(&out)]);
    assert_eq!(ran.code, 3, "{ran:?}");
    let names: Vec<_> = fs::read_dir(&out).expect("a folder").flatten().collect();
    assert!(names.len() == 1 && names[0].file_name() == "good.txt", "{names:?}");
}

#[test]
fn export_rejects_invalid_arguments() {
    let sibling = |folder: &DataFolder, name: &str| word(&folder.parent().join(name));
    for_each_server_mode(|folder| {
        let refused = |bucket: &str, to: &str, code: i32, says: &str| {
            folder.run(&["export", "--bucket", bucket, "--to", to]).check_failure(code, says);
        };
        refused("none", &sibling(folder, "a.tar"), 1, "the bucket \"none\" does not exist");
        refused("photos", &sibling(folder, "a.tar.gz"), 1, "neither a folder nor a .tar file");
        refused("photos", &sibling(folder, "none/a.tar"), 1, "No such file");
        refused("photos", &word(&folder.path().join("a.tar")), 2, "it is inside the data folder");
        refused("photos", &word(&folder.path()), 2, "it is inside the data folder");
        std::os::unix::fs::symlink("elsewhere", folder.parent().join("link.tar")).expect("a link");
        refused("photos", &sibling(folder, "link.tar"), 1, "it exists and is not a regular file");
    });
}
