//! rclone: a thousand files both ways, and its list of remaining differences.

use std::fs;
use std::path::Path;
use std::process::Command;

use tests::commands::{done, require_program};

use crate::place::{Place, bytes, client, files, make_files};

fn rclone(place: &Place) -> Command {
    let config = place.temp_path("rclone.conf");
    fs::write(&config, "").unwrap();
    let mut rclone = client(Path::new("rclone"), &place.keys, place.data.parent());
    rclone
        .env("RCLONE_CONFIG", config)
        .env("RCLONE_CONFIG_TRUG_TYPE", "s3")
        .env("RCLONE_CONFIG_TRUG_PROVIDER", "Other")
        .env("RCLONE_CONFIG_TRUG_ENV_AUTH", "true")
        .env("RCLONE_CONFIG_TRUG_ENDPOINT", place.address());
    rclone
}

fn ran(place: &Place, words: &[&str]) -> String {
    require_program("rclone", "version");
    let ran = done(rclone(place).args(words));
    format!("{}{}", ran.stdout, ran.stderr)
}

#[test]
#[ignore = "needs rclone"]
fn rclone_sync_of_1000_files_is_idempotent() {
    let place = Place::new();
    let (here, back) = (place.temp_path("here"), place.temp_path("back"));
    make_files(&here, 1_000);
    let (from, to) = (here.to_str().unwrap(), back.to_str().unwrap());
    let sync = ["sync", "--stats=0", "--transfers=8", "-v"];
    let up = [&sync[..], &[from, "trug:photos/sync"]].concat();
    let first = ran(&place, &up);
    assert_eq!(first.matches("Copied (new)").count(), 1_000, "{first}");
    let again = ran(&place, &up);
    assert!(!again.contains("Copied"), "{again}");
    let down = [&sync[..], &["trug:photos/sync", to]].concat();
    ran(&place, &down);
    assert_eq!(files(&here), files(&back));
    let again = ran(&place, &down);
    assert!(!again.contains("Copied"), "{again}");
    // By checksum, too: the entity tags are MD5 sums as rclone expects.
    let checked = ran(&place, &["check", "-v", from, "trug:photos/sync"]);
    assert!(checked.contains("0 differences found"), "{checked}");
    fs::remove_dir_all(here.join("Album 3")).unwrap();
    ran(&place, &up);
    let left = ran(&place, &["lsf", "-R", "--files-only", "trug:photos/sync"]);
    assert_eq!(left.lines().count(), files(&here).len());
}

#[test]
#[ignore = "needs rclone"]
fn rclone_multipart_upload_keeps_time_and_bytes() {
    let place = Place::new();
    let file = place.temp_path("large.bin");
    fs::write(&file, bytes(23_000_001, 5)).unwrap();
    let from = file.to_str().unwrap();
    let large = ["--s3-upload-cutoff=5M", "--s3-chunk-size=5M", "--s3-upload-concurrency=3", "-v"];
    let up = [&["copyto"], &large[..], &[from, "trug:photos/large.bin"]].concat();
    ran(&place, &up);
    let again = ran(&place, &up);
    assert!(!again.contains("Copied"), "{again}");
    let back = place.temp_path("back.bin");
    ran(&place, &["copyto", "trug:photos/large.bin", back.to_str().unwrap()]);
    assert!(fs::read(&back).unwrap() == fs::read(&file).unwrap());
    ran(&place, &["moveto", "trug:photos/large.bin", "trug:photos/moved.bin"]);
    ran(&place, &["copyto", "trug:photos/moved.bin", back.to_str().unwrap()]);
    assert!(fs::read(&back).unwrap() == fs::read(&file).unwrap());
    assert_eq!(ran(&place, &["lsf", "trug:photos"]), "moved.bin\n");
}
