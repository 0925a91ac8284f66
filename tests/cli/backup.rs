//! `trug backup`, and restoring from it.

use std::fs;
use std::path::Path;

use tests::DataFolder;
use tests::commands::{done, trug};

use crate::archives::{NamedFile, all_kinds, read_archive, store_with, upload, word};

/// Returns the content of the bucket in a folder that is a store, or became one by copying.
fn contents(data: &Path, archive: &Path) -> Vec<NamedFile> {
    let words = ["export", "--bucket", "photos", "--to", &word(archive), "--data", &word(data)];
    done(trug().args(words));
    read_archive(&fs::read(archive).expect("it is there"))
}

fn copy_folder(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a folder can be made");
    for entry in fs::read_dir(from).expect("a folder").flatten() {
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy_folder(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).expect("a file can be copied");
        }
    }
}

#[test]
fn backup_is_updated_and_restored_by_copy() {
    for serves in [false, true] {
        let (folder, key) = store_with(&all_kinds());
        let mut server = serves.then(|| folder.serve());
        let to = folder.parent().join("backup/of/it");
        let words = ["backup", "--to", &word(&to)];
        let first = folder.json(&words);
        assert!(first["copiedFiles"].as_u64() >= Some(2), "{first}");
        assert!(first["copiedBytes"].as_u64() > Some(3_000_000), "{first}");
        assert_eq!((&first["keptFiles"], &first["damageCount"]), (&0.into(), &0.into()));

        let more = [("more.txt".to_owned(), b"more".to_vec())];
        let running = server.take().unwrap_or_else(|| folder.serve());
        upload(&running, &key, &more);
        if serves {
            server = Some(running);
        } else {
            running.stop();
        }
        let second = folder.json(&words);
        assert!(second["keptBytes"].as_u64() > Some(3_000_000), "the large file is kept: {second}");
        assert!(second["lastLsn"].as_u64() > first["lastLsn"].as_u64());
        let text = folder.done(&words).stdout;
        assert!(text.starts_with("backed up to ") && text.contains("\nthere already "), "{text}");
        if let Some(server) = server {
            server.stop();
        }

        // The disk is lost; the backup is copied to the place of the data.
        fs::remove_dir_all(folder.path()).expect("it can be removed");
        copy_folder(&to, &folder.path());
        assert_eq!(folder.run(&["fsck", "--deep"]).code, 0);
        let stats = folder.json(&["stats"]);
        let mut files = all_kinds();
        files.extend(more);
        files.sort();
        assert_eq!(stats["objects"], files.len());
        assert_eq!((&stats["accounts"], &stats["damage"]["count"]), (&1.into(), &0.into()));
        assert_eq!(folder.json(&["scrub"])["damage"]["count"], 0);
        folder.done(&["fsck", "--deep"]);
        assert!(contents(&folder.path(), &folder.parent().join("out.tar")) == files);
        // The copy is a store like any other.
        folder.done(&["backup", "--to", &word(&folder.parent().join("next"))]);
    }
}

#[test]
fn backup_requires_its_own_folder() {
    for serves in [false, true] {
        let (folder, _) = DataFolder::with_bucket();
        let server = serves.then(|| folder.serve());
        let refused = |to: &Path, code: i32, says: &str| {
            folder.run(&["backup", "--to", &word(to)]).check_failure(code, says);
        };
        refused(&folder.path().join("in"), 2, "it is inside the data folder");
        let files = folder.parent().join("files");
        fs::create_dir(&files).expect("a folder can be made");
        fs::write(files.join("mine.txt"), "mine").expect("it can be written");
        refused(&files, 1, "contains other files, such as mine.txt");
        assert_eq!(fs::read_dir(&files).expect("a folder").count(), 1);
        refused(&files.join("mine.txt"), 1, "not a folder");
        // A relative path is resolved against the working directory of the command, not of the server.
        let mut command = folder.command(&["backup", "--to", "relative"]);
        done(command.current_dir(folder.parent()));
        assert!(folder.parent().join("relative/STORE").exists());
        if let Some(server) = server {
            server.stop();
        }
    }
}
