//! `trug fsck`.

use std::path::Path;

use tests::{DataFolder, Form};

/// Creates a store with a small file and a large one, which no process has open.
fn filled() -> DataFolder {
    let (folder, key) = DataFolder::with_bucket();
    let server = folder.serve();
    let large = vec![7; 2 << 20];
    let form = Form::new().file("file", "small.txt", None, b"small bodies are in the log");
    let form = form.file("file", "large.bin", None, &large);
    let answer = server.connect().with_key(&key).upload("/photos/", form).expect("it answers");
    assert_eq!(answer.status, 200, "{}", answer.text());
    server.stop();
    folder
}

fn flip(path: &Path, offset: usize) {
    let mut bytes = std::fs::read(path).expect("the file is there");
    bytes[offset] ^= 1;
    std::fs::write(path, bytes).expect("the file can be written");
}

#[test]
fn fsck_reports_a_clean_store() {
    let folder = filled();
    for words in [&["fsck"][..], &["fsck", "--deep"], &["fsck", "--deep", "--repair"]] {
        let ran = folder.done(words);
        assert!(ran.stdout.contains("no problems found\n"), "{ran:?}");
        assert_eq!(ran.stderr, "");
    }
    let found = folder.json(&["fsck", "--deep"]);
    assert_eq!(found["clean"], true);
    assert_eq!(found["report"]["objects"], 2);
    assert_eq!(found["report"]["findings"].as_array().map(Vec::len), Some(0));
    assert!(found["report"]["bytes"].as_u64() > Some(2 << 20));
}

#[test]
fn fsck_rejects_store_in_use_and_foreign_folder() {
    let (folder, _) = DataFolder::with_bucket();
    let server = folder.serve();
    folder.run(&["fsck"]).check_failure(4, "is in use");
    server.stop();
    let none = DataFolder::new();
    none.run(&["fsck"]).check_failure(1, "does not exist");
    std::fs::create_dir(none.path()).expect("a folder");
    none.run(&["fsck"]).check_failure(1, "contains no store");
    let left = std::fs::read_dir(none.path()).expect("the folder").count();
    assert_eq!(left, 0, "nothing was made in it");
}

#[test]
fn fsck_damage_exits_with_3_and_names_the_owner() {
    let folder = filled();
    folder.damage(b"small bodies");
    folder.done(&["fsck"]);
    let ran = folder.run(&["fsck", "--deep"]);
    assert_eq!(ran.code, 3, "{ran:?}");
    assert!(ran.stdout.contains("photos/small.txt") && ran.stdout.contains("loss"), "{ran:?}");
    let ran = folder.run(&["fsck", "--deep", "--json"]);
    assert_eq!(ran.code, 3);
    let found: serde_json::Value = serde_json::from_str(&ran.stdout).expect("one document");
    assert_eq!(found["clean"], false);
    assert_eq!(found["report"]["findings"][0]["objects"][0], "photos/small.txt");
    assert_eq!(found["report"]["findings"][0]["severity"], "loss");
}

/// redb panics on some of this damage.
#[test]
fn fsck_reports_damaged_index_without_panic_message() {
    let folder = filled();
    let path = folder.path().join("index.redb");
    let intact = std::fs::read(&path).expect("the index is there");
    let mut structural = 0;
    for page in 1..8 {
        let mut bytes = intact.clone();
        bytes[page * 4_096..][..3_000].fill(0x5a);
        std::fs::write(&path, bytes).expect("the file can be written");
        let ran = folder.run(&["fsck"]);
        assert!(!ran.stderr.contains("panic"), "{ran:?}");
        let is_unusable = ran.stdout.contains("the index is unusable: index.redb");
        assert_eq!(ran.code, if is_unusable { 3 } else { 0 }, "{ran:?}");
        structural += usize::from(ran.stdout.contains("its parts contradict each other"));
    }
    assert!(structural > 0);
    folder.done(&["fsck", "--repair"]);
    folder.done(&["fsck", "--deep"]);
}

#[test]
fn fsck_repair_exits_with_0_when_all_is_repaired() {
    let folder = filled();
    flip(&folder.path().join("STORE"), 20);
    let ran = folder.run(&["fsck"]);
    assert_eq!(ran.code, 3, "{ran:?}");
    let ran = folder.done(&["fsck", "--repair"]);
    assert!(
        ran.stdout.contains("done: STORE") && ran.stdout.contains("no problems found"),
        "{ran:?}"
    );
    folder.done(&["fsck", "--deep"]);
}

#[test]
fn fsck_recorded_loss_exits_with_3_once() {
    let folder = filled();
    let big = folder.path().join("big/00");
    let file = std::fs::read_dir(big).expect("there is one").next().expect("one").expect("one");
    std::fs::remove_file(file.path()).expect("it can be removed");
    let ran = folder.run(&["fsck", "--repair"]);
    assert_eq!(ran.code, 3, "{ran:?}");
    assert!(ran.stdout.contains("done: photos/large.bin: recorded as lost"), "{ran:?}");
    let found = folder.json(&["fsck", "--deep"]);
    assert_eq!((&found["clean"], &found["report"]["lostBefore"]), (&true.into(), &1.into()));
    let server = folder.serve();
    let answer = server.get("/photos/large.bin");
    assert_eq!(answer.status, 500, "{}", answer.text());
    assert!(answer.text().contains("damaged"), "{}", answer.text());
    let answer = server.get("/photos/small.txt");
    assert_eq!(answer.status, 200);
    server.stop();
}
