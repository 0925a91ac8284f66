//! `trug compact`.

use std::fs;
use std::path::PathBuf;

use memchr::memmem;
use serde_json::Value;
use tests::DataFolder;

use crate::archives::{NamedFile, archive_of, read_archive, word};

const COUNT: usize = 20;
/// Length of the footer trailer, after the last block.
const FOOTER_TRAILER_BYTES: usize = 64;

/// Returns twenty files of about 10 KiB.
fn files(version: u8) -> Vec<NamedFile> {
    let text = |at| format!("a line of some length, {at:02}.{version}\n").repeat(400).into_bytes();
    (0..COUNT).map(|at| (format!("{at:02}.txt"), text(at))).collect()
}

/// Creates a store with a half-dead segment: half of the files were replaced later.
fn half_dead_store() -> DataFolder {
    let (folder, _) = DataFolder::with_bucket();
    put(&folder, &files(1));
    put(&folder, &files(2)[..COUNT / 2]);
    // The active segment is not compacted.
    put(&folder, &[("end.txt".to_owned(), b"end".to_vec())]);
    folder
}

fn put(folder: &DataFolder, files: &[NamedFile]) {
    let ran = folder.import_archive(&archive_of(files), &["--on-conflict", "replace"]);
    assert_eq!(ran.code, 0, "{ran:?}");
}

fn contents(folder: &DataFolder) -> Vec<NamedFile> {
    let path = folder.parent().join("out.tar");
    folder.done(&["export", "--bucket", "photos", "--to", &word(&path)]);
    read_archive(&fs::read(&path).expect("it is there"))
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("{value} is no number"))
}

#[test]
fn compact_run_matches_its_dry_run() {
    for serves in [false, true] {
        let folder = half_dead_store();
        let before = contents(&folder);
        let server = serves.then(|| folder.serve());
        let stats = folder.json(&["stats"]);
        let dead = number(&stats["log"]["deadBytes"]);
        assert!(dead > 100_000, "{stats}");

        let dry = folder.json(&["compact", "--dry-run", "--rate", "50000"]);
        let (copies, frees) = (number(&dry["copyBytes"]), number(&dry["freeBytes"]));
        assert!(copies > 80_000 && frees > 80_000, "{dry}");
        assert_eq!(dry["steps"][0]["segments"][0]["class"], "log", "{dry}");
        assert_eq!(number(&dry["expectedSeconds"]), copies.div_ceil(50_000));
        let text = folder.done(&["compact", "--dry-run"]).stdout;
        for part in ["STEP  SEGMENT     CLASS", "\nwould copy ", "\nwould free ", "/s\n"] {
            assert!(text.contains(part), "{part:?} is not in {text}");
        }
        let picky = folder.json(&["compact", "--dry-run", "--dead-percent-min", "90"]);
        assert_eq!((&picky["copyBytes"], number(&picky["deadBytes"])), (&0.into(), dead));
        assert_eq!(folder.json(&["stats"])["log"], stats["log"], "nothing was done");

        let done = folder.json(&["compact"]);
        assert_eq!(number(&done["copiedBytes"]), copies, "{done}");
        assert!(number(&done["freedBytes"]) > 80_000, "{done}");
        assert_eq!(done["refused"].as_array().map(Vec::len), Some(0));
        let stats = folder.json(&["stats"]);
        assert!(number(&stats["log"]["deadBytes"]) < dead / 2, "{stats}");
        assert_eq!(number(&stats["compacted"]["segments"]), number(&done["segmentsWritten"]));
        let again = folder.done(&["compact"]).stdout;
        // Except for a fact or two written by the commands themselves.
        assert!(again.contains("\ncopied              0 bytes\n"), "{again}");
        assert!(contents(&folder) == before);
        if let Some(server) = server {
            server.stop();
        }
    }
}

/// Damages the head of a live record, and the footer, where its copy is packed. Returns the segment.
fn damage_head_and_footer(folder: &DataFolder) -> PathBuf {
    let name = b"19.txt";
    for entry in fs::read_dir(folder.path().join("log")).expect("there is a log").flatten() {
        let mut bytes = fs::read(entry.path()).expect("a segment can be read");
        let Some(head) = memmem::find(&bytes, name) else {
            continue;
        };
        let footer = bytes.len() - FOOTER_TRAILER_BYTES - 1;
        for at in [head, footer] {
            bytes[at] ^= 1;
        }
        fs::write(entry.path(), bytes).expect("a segment can be written");
        return entry.path();
    }
    panic!("the file is in the log");
}

#[test]
fn compact_skips_and_names_damaged_segment() {
    for serves in [false, true] {
        let folder = half_dead_store();
        let damaged = damage_head_and_footer(&folder);
        let server = serves.then(|| folder.serve());
        let ran = folder.run(&["compact"]);
        assert_eq!(ran.code, 3, "{ran:?}");
        let id = damaged.file_stem().and_then(|it| it.to_str()).expect("it has a name");
        let says = format!("\nnot compacted       segment {id}: ");
        assert!(ran.stdout.contains(&says), "{says:?} is not in {ran:?}");
        assert!(ran.stderr.contains("segments are corrupt"), "{ran:?}");
        assert!(damaged.exists());
        if let Some(server) = server {
            server.stop();
        }
    }
}
