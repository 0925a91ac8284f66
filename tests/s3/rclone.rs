//! rclone: a thousand files both ways, and what it thinks is left to do.

use std::fs;
use std::process::Command;

use crate::place::{Place, bytes, client, done, files, make_files, program};

fn rclone(place: &Place) -> Option<Command> {
    let config = place.beside("rclone.conf");
    fs::write(&config, "").unwrap();
    let mut rclone = client(&program("rclone")?, &place.keys, place.data.beside());
    rclone
        .env("RCLONE_CONFIG", config)
        .env("RCLONE_CONFIG_TRUG_TYPE", "s3")
        .env("RCLONE_CONFIG_TRUG_PROVIDER", "Other")
        .env("RCLONE_CONFIG_TRUG_ENV_AUTH", "true")
        .env("RCLONE_CONFIG_TRUG_ENDPOINT", place.address());
    Some(rclone)
}

fn ran(place: &Place, words: &[&str]) -> Option<String> {
    let mut rclone = rclone(place)?;
    let ran = done(rclone.args(words));
    Some(format!("{}{}", ran.stdout, ran.stderr))
}

#[test]
fn a_thousand_files_go_both_ways_and_a_second_time_nothing_does() {
    let place = Place::new();
    let (here, back) = (place.beside("here"), place.beside("back"));
    make_files(&here, 1_000);
    let (from, to) = (here.to_str().unwrap(), back.to_str().unwrap());
    let sync = ["sync", "--stats=0", "--transfers=8", "-v"];
    let up = [&sync[..], &[from, "trug:photos/sync"]].concat();
    let Some(first) = ran(&place, &up) else { return };
    assert_eq!(first.matches("Copied (new)").count(), 1_000, "{first}");
    let again = ran(&place, &up).unwrap();
    assert!(!again.contains("Copied"), "{again}");
    let down = [&sync[..], &["trug:photos/sync", to]].concat();
    ran(&place, &down).unwrap();
    assert_eq!(files(&here), files(&back));
    let again = ran(&place, &down).unwrap();
    assert!(!again.contains("Copied"), "{again}");
    // By checksum, too: the entity tags are what rclone takes them for.
    let checked = ran(&place, &["check", "-v", from, "trug:photos/sync"]).unwrap();
    assert!(checked.contains("0 differences found"), "{checked}");
    fs::remove_dir_all(here.join("Album 3")).unwrap();
    ran(&place, &up).unwrap();
    let left = ran(&place, &["lsf", "-R", "--files-only", "trug:photos/sync"]).unwrap();
    assert_eq!(left.lines().count(), files(&here).len());
}

#[test]
fn a_large_file_goes_in_parts_and_keeps_its_time_and_its_bytes() {
    let place = Place::new();
    let file = place.beside("large.bin");
    fs::write(&file, bytes(23_000_001, 5)).unwrap();
    let from = file.to_str().unwrap();
    let large = ["--s3-upload-cutoff=5M", "--s3-chunk-size=5M", "--s3-upload-concurrency=3", "-v"];
    let up = [&["copyto"], &large[..], &[from, "trug:photos/large.bin"]].concat();
    let Some(_) = ran(&place, &up) else { return };
    let again = ran(&place, &up).unwrap();
    assert!(!again.contains("Copied"), "{again}");
    let back = place.beside("back.bin");
    ran(&place, &["copyto", "trug:photos/large.bin", back.to_str().unwrap()]).unwrap();
    assert!(fs::read(&back).unwrap() == fs::read(&file).unwrap());
    ran(&place, &["moveto", "trug:photos/large.bin", "trug:photos/moved.bin"]).unwrap();
    ran(&place, &["copyto", "trug:photos/moved.bin", back.to_str().unwrap()]).unwrap();
    assert!(fs::read(&back).unwrap() == fs::read(&file).unwrap());
    assert_eq!(ran(&place, &["lsf", "trug:photos"]).unwrap(), "moved.bin\n");
}
